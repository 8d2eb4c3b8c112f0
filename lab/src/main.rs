//! The laboratory of Windlass: what its parts are worth, how fast they are, and what a server bears.
//!
//! Nothing of the server depends on it.

mod bench;
mod calibrate;
mod cli;
mod compare;
mod eval;
mod interrupt;
mod latencies;
mod link;
mod loadtest;
mod output;
mod page;
mod plot;
mod progress;
mod report;
mod simulate;
mod simulator;
mod viewer;

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};

/// The allocator, which is that of the server.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ready = windlass_sr::max_isa().map_err(anyhow::Error::msg).and_then(|_| start_logging());
    let listening = interrupt::listen;
    let done = ready.and_then(|()| match cli.command {
        Command::Bench(args) => listening().and_then(|()| bench::run(&args)),
        Command::Calibrate(args) => listening().and_then(|()| calibrate::run(&args)),
        Command::Compare(args) => compare::run(&args),
        Command::Eval(args) => listening().and_then(|()| eval::run(&args)),
        Command::Link(args) => link::run(&args),
        Command::Loadtest(args) => listening().and_then(|()| loadtest::run(&args)),
        Command::Report(args) => report::run(&args),
        Command::Simulate(args) => simulate::run(&args),
    });
    if let Err(error) = &done {
        eprintln!("windlass-lab: {error:#}");
    }
    match done {
        _ if interrupt::pressed() => interrupt::STATUS.into(),
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Logs warnings on standard error, or what `WINDLASS_LOG` asks for.
fn start_logging() -> Result<()> {
    let text = std::env::var("WINDLASS_LOG").unwrap_or_else(|_| "warn".into());
    let filter = EnvFilter::builder()
        .parse(&text)
        .with_context(|| format!("WINDLASS_LOG: `{text}` is no log filter; try `info`"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init()
        .map_err(|e| anyhow!("cannot start logging: {e}"))
}
