//! Tests and steps that could not run on this machine. They add lines to a file, which are printed at the end.

use std::path::PathBuf;

use anyhow::{Context, Result};
use windlass_skips::{FILE, add, read};

use crate::process::Cmd;
use crate::target_dir;

fn file() -> PathBuf {
    // Tests run in folders of their own, so the path must be absolute.
    let file = target_dir().join("skipped");
    std::path::absolute(&file).unwrap_or(file)
}

/// Deletes the lines of an earlier run.
pub(crate) fn begin() -> Result<()> {
    std::fs::create_dir_all(target_dir())?;
    std::fs::write(file(), "").with_context(|| format!("{} cannot be written", file().display()))
}

/// Sets the environment that tells tests where to note that they cannot run.
pub(crate) fn told(cmd: Cmd) -> Cmd {
    cmd.env(FILE, file())
}

/// Notes a step of this program that cannot run, and why, with what to install.
pub(crate) fn note(name: &str, why: &str) {
    eprintln!("skipped: {name}: {why}");
    if let Err(error) = add(&file(), name, why) {
        eprintln!("{}: {error}", file().display());
    }
}

/// Prints all lines, at the end of a run.
pub(crate) fn say() {
    match read(&file()) {
        Ok(lines) => eprintln!("\n{}", summary(&lines)),
        Err(error) => eprintln!("\n{}: {error}", file().display()),
    }
}

fn summary(lines: &[String]) -> String {
    if lines.is_empty() {
        return "Nothing was skipped.".into();
    }
    format!("{} skipped:\n  {}", lines.len(), lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn what_was_skipped_is_counted_and_each_has_its_line() {
        assert_eq!(summary(&[]), "Nothing was skipped.");
        let lines = ["a call: no Firefox".to_owned(), "spelling: no typos".to_owned()];
        assert_eq!(summary(&lines), "2 skipped:\n  a call: no Firefox\n  spelling: no typos");
    }
}
