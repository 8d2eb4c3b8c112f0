//! The command line.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Parser, Subcommand};
use windlass_admin::{AdminCommand, token};
use windlass_plan::PlanArgs;

use crate::cluster::enhance;
use crate::config::{self, Config, File, Settings};
use crate::{devices, health, key, manual};

/// A video conferencing server whose neural enhancement makes weak pictures sharp.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server with its demo page.
    ///
    /// Without options it serves this machine only, on http://localhost:7880. To serve others, on a machine to which
    /// calls.example leads and whose ports 443 (TCP) and 7881 (UDP and TCP) are open:
    ///
    ///   windlass serve --public calls.example
    ///
    /// It prints a link to a room. With --open-rooms, everybody who reaches the server may enter every room.
    ///
    /// Browsers give camera and microphone to pages from localhost or over HTTPS only. Behind a proxy with a
    /// certificate:
    ///
    ///   windlass serve --public calls.example --http 127.0.0.1:7880
    ///
    /// Media goes to port 7881 directly.
    #[command(verbatim_doc_comment)]
    Serve(Box<ServeArgs>),
    /// Run enhancement for servers on other machines, which name this one with --workers.
    Enhance(Box<enhance::EnhanceArgs>),
    /// List this machine's GPUs and their slices (MIG), and what to set to use them; ends with an error where there are
    /// none.
    Devices(devices::DevicesArgs),
    /// Print the configuration file with every option, check one, or show what a server would have.
    Config(Box<ConfigArgs>),
    /// Check whether a server with these options can serve, and say how to correct each fault.
    ///
    /// It takes the options of `windlass serve`, starts nothing, and ends with an error where there is a fault.
    Doctor(Box<DoctorArgs>),
    /// Compute the hardware that a server needs for some publishers, and the quality that its enhancement gains.
    ///
    ///   windlass plan --publishers 50 --layer 320x180 --budget 200ms --viewers 3 --euro-core 0.02
    ///
    /// The result is computed from measured constants, which it names.
    #[command(verbatim_doc_comment)]
    Plan(PlanArgs),
    /// Check whether a server answers. The exit status is 0 if it does.
    Health(health::HealthArgs),
    /// Make a key that signs access tokens, in a file. An existing key is kept.
    Key(key::KeyArgs),
    /// Make an access token, with which a participant joins, or an operator administers a server with token keys.
    Token(token::TokenArgs),
    /// Print the script by which a shell completes this command line.
    ///
    /// Packages install it. By hand, for the current user:
    ///
    ///   windlass completions bash > ~/.local/share/bash-completion/completions/windlass
    ///   windlass completions fish > ~/.config/fish/completions/windlass.fish
    ///   windlass completions zsh > ~/.zfunc/_windlass        (~/.zfunc stands in fpath)
    #[command(verbatim_doc_comment)]
    Completions(manual::CompletionsArgs),
    /// Write the pages of the manual.
    #[command(hide = true)]
    Man(manual::ManArgs),
    /// What an operator asks of a running server.
    #[command(flatten)]
    Admin(AdminCommand),
}

/// Arguments of `windlass serve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Read settings from this YAML file; its keys are the names of the options below without
    /// their dashes in front (`budget: 150ms`). Options of the command line win. No file is read unless it is named
    /// here; `windlass config --annotated` prints one. Each option may also be in the environment, between the two:
    /// WINDLASS_OPEN_ROOMS is --open-rooms
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

impl ServeArgs {
    /// File that is read; `None` if no file was named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Settings of the command line and the file; the command line wins.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let file = match &self.config {
            Some(path) => read(path)?.settings,
            None => Settings::default(),
        };
        Ok(self.settings.clone().over(file))
    }

    /// The configuration: the settings, with defaults for the others.
    pub(crate) fn load(&self) -> Result<Config> {
        Config::resolve(self.settings()?)
    }
}

/// Arguments of `windlass doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Arguments of `windlass config`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["annotated", "check", "show"])))]
pub(crate) struct ConfigArgs {
    /// Print a configuration file with every option, its help, unit and default
    #[arg(long)]
    annotated: bool,

    /// Check this file as `windlass serve --config` would, without starting anything
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Show every option as a server with these options, this environment and --config FILE would have it, and where
    /// its value comes from. Secrets are hidden
    #[arg(long)]
    show: bool,

    #[command(flatten)]
    serve: ServeArgs,
}

impl ConfigArgs {
    /// Runs the command.
    pub(crate) fn run(&self, given: &ArgMatches) -> Result<()> {
        if let Some(path) = &self.check {
            read(path)?;
            println!("{} can be used.", path.display());
        } else if self.show {
            let config = self.serve.load()?;
            print!("{}", config::shown::shown(given, self.serve.file(), &config)?);
        } else {
            print!("{}", config::annotated());
        }
        Ok(())
    }
}

/// Reads a file, and warns once of options that the next version will not read.
fn read(path: &Path) -> Result<File> {
    static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let file = File::read(path)
        .with_context(|| format!("cannot use the configuration file {}", path.display()))?;
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for warning in &file.warnings {
        if !shown.contains(warning) {
            windlass_logging::say(&format!("windlass: {}: {warning}", path.display()));
            shown.push(warning.clone());
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn load(args: &[&str]) -> Result<Config> {
        let cli = Cli::try_parse_from([&["windlass", "serve"], args].concat())?;
        match cli.command {
            Command::Serve(args) => args.load(),
            _ => unreachable!("`serve` was parsed"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_options_only_this_machine_is_served() {
        let config = load(&[]).unwrap();
        assert_eq!(config.http.to_string(), "127.0.0.1:7880");
        assert_eq!(config.sfu.udp.to_string(), "0.0.0.0:7881");
        assert!(config.sfu.advertise.is_empty());
        assert_eq!(config.sfu.budget.as_millis(), 200);
        assert!(config.enhancer.is_some());
    }

    #[test]
    fn options_reach_the_parts_they_are_for() {
        let config = load(&[
            "--http=0.0.0.0:80",
            "--udp=0.0.0.0:7000",
            "--advertise=192.0.2.1:7001",
            "--advertise=192.0.2.2",
            "--budget=150ms",
            "--max-participants=3",
            "--enhancer-threads=7",
        ])
        .unwrap();
        assert_eq!(config.http.port(), 80);
        assert_eq!(config.sfu.udp.port(), 7000);
        let advertised: Vec<String> =
            config.sfu.advertise.iter().map(ToString::to_string).collect();
        assert_eq!(advertised, ["192.0.2.1:7001", "192.0.2.2:0"]);
        assert_eq!(config.signaling.session.budget.as_millis(), 150);
        assert_eq!(config.sfu.limits.participants_per_room, 3);
        let enhancer = config.enhancer.unwrap();
        assert_eq!((enhancer.threads, enhancer.budget.as_millis()), (7, 150));
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("windlass.yaml");
        std::fs::write(&file, "budget: 150ms\ndevice: off\nmax-participants: 3\n").unwrap();
        let file = file.to_str().unwrap();
        let config = load(&["--config", file, "--budget", "300ms"]).unwrap();
        assert_eq!(config.sfu.budget.as_millis(), 300);
        assert_eq!(config.sfu.limits.participants_per_room, 3);
        assert!(config.enhancer.is_none());
        let config = load(&["--config", file, "--device=cpu"]).unwrap();
        assert!(config.enhancer.is_some());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = format!("{:#}", load(&["--config", "/no/such.yaml"]).unwrap_err());
        assert!(error.contains("/no/such.yaml"), "{error}");
    }
}
