//! `windlass completions` and `windlass man`: made from the command line's own declaration.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `windlass completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `windlass man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder that the pages are written to
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints a shell's completions.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "windlass", &mut text);
    io::stdout().write_all(&text).context("could not print the completions")
}

/// Writes a page of the manual for the program, and one for each of its commands.
pub(crate) fn pages(args: &ManArgs, command: Command) -> Result<()> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("could not write the manual to {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;

    fn command() -> Command {
        crate::cli::Cli::command()
    }

    fn shown() -> Vec<String> {
        let command = command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command(), "windlass", &mut text);
            let text = String::from_utf8(text).unwrap();
            for name in shown() {
                assert!(text.contains(&name), "{shell} does not know {name}");
            }
            assert!(text.contains("drain-timeout"), "{shell} does not know the options of serve");
        }
    }

    #[test]
    fn every_command_has_a_page_of_the_manual() {
        let dir = tempfile::tempdir().unwrap();
        pages(&ManArgs { folder: dir.path().to_owned() }, command()).unwrap();
        let there = |name: &str| dir.path().join(name).is_file();
        assert!(there("windlass.1"));
        for name in shown() {
            assert!(there(&format!("windlass-{name}.1")), "{name} has no page");
        }
        assert!(!there("windlass-man.1"), "what is hidden has none");
        let serve = fs::read_to_string(dir.path().join("windlass-serve.1")).unwrap();
        assert!(serve.contains(".TH") && serve.contains("drain\\-timeout"), "{serve}");
    }
}
