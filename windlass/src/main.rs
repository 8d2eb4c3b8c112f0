//! The Windlass binary: a WebRTC SFU with neural enhancement built in.
//!
//! Composition only: each command hands its arguments to the crate that does the work.

mod bridge;
mod cli;
mod config;
mod devices;
mod enhance;
mod health;
mod key;
mod logging;
mod metrics;
mod mutual;
mod node;
mod page;
mod reload;
mod serve;
mod shutdown;
mod supervise;
mod tls;
mod token;
mod workers;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// Streams have threads of their own, which come and go: with glibc's allocator the server kept what the busiest moment took, and
/// more. This one gives it back.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let _written = logging::LastWords;
    let done = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Enhance(args) => enhance::run(&args),
        Command::Devices(args) => logging::init("warn", false).and_then(|_| devices::run(&args)),
        Command::Config(args) => args.run(),
        Command::Health(args) => health::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Token(args) => token::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::say(&format!("windlass: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
