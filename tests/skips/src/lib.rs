//! Lets a test that cannot run say so and count as skipped: it adds a line to a file, which `cargo xtask test` reads at
//! its end.
//!
//! A line is `name: why`, and `why` says what to install. Without the file (a test that is run by hand) the line is
//! only printed. `tests/e2e/support/skips.mjs` is the same for JavaScript.
//!
//! ```
//! // A test says why it does not run.
//! # let folder = tempfile::tempdir()?;
//! let file = folder.path().join("skipped");
//! windlass_skips::add(&file, "a call", "no Firefox (`apt install firefox`)")?;
//! windlass_skips::add(&file, "a call", "no Firefox (`apt install firefox`)")?;
//! assert_eq!(windlass_skips::read(&file)?, ["a call: no Firefox (`apt install firefox`)"]);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Name of the environment variable that names the file.
pub const FILE: &str = "WINDLASS_SKIPPED";

/// Notes that the calling test does not run, and why.
pub fn skip(why: impl AsRef<str>) {
    note(&name(), why.as_ref());
}

/// Notes that `name` does not run, and why.
pub fn note(name: &str, why: &str) {
    eprintln!("skipped: {name}: {why}");
    let Some(file) = std::env::var_os(FILE) else { return };
    if let Err(error) = add(Path::new(&file), name, why) {
        eprintln!("{}: {error}", Path::new(&file).display());
    }
}

/// Adds a line to a file.
///
/// # Errors
///
/// Where the file cannot be opened or written.
pub fn add(file: &Path, name: &str, why: &str) -> io::Result<()> {
    let line = format!("{name}: {why}").split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    // Written in one call, as other tests add lines at the same time.
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

/// The lines of a file, in order, without duplicates. There are none if the file does not exist.
///
/// # Errors
///
/// Where the file is there and cannot be read as text.
pub fn read(file: &Path) -> io::Result<Vec<String>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    Ok(lines)
}

/// Package and name of the running test, by the name of its thread.
fn name() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    format!("{package} {}", thread.name().unwrap_or("a test")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_order_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        assert_eq!(read(&file).unwrap(), [""; 0]);
        add(&file, "lint", "no typos\n(`cargo install typos-cli`)").unwrap();
        add(&file, "a call", "no Firefox").unwrap();
        add(&file, "a call", "no Firefox").unwrap();
        assert_eq!(
            read(&file).unwrap(),
            ["a call: no Firefox", "lint: no typos (`cargo install typos-cli`)"]
        );
    }

    #[test]
    fn lines_of_many_threads_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    (0..50).for_each(|i| add(file, &format!("{n} {i}"), "why").unwrap());
                });
            }
        });
        let lines = read(&file).unwrap();
        assert!(
            lines.len() == 400 && lines.iter().all(|line| line.ends_with(": why")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_test_is_named_by_its_package_and_path() {
        let name = name();
        assert!(name.ends_with("tests::a_test_is_named_by_its_package_and_path"), "{name}");
    }
}
