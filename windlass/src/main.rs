//! The Windlass binary: a WebRTC SFU with neural enhancement built in.
//!
//! Composition only: each command hands its arguments to the crate that does the work.

// The options of a cluster are parsed without that feature too, and then not used.
#![cfg_attr(not(feature = "cluster"), allow(dead_code))]

mod bridge;
mod cli;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "no_cluster.rs"]
mod cluster;
mod config;
mod deliver;
mod devices;
mod doctor;
mod health;
mod key;
mod manual;
mod public;
mod reload;
#[cfg(feature = "renderer")]
mod renderer;
#[cfg(not(feature = "renderer"))]
#[path = "no_renderer.rs"]
mod renderer;
mod serve;
mod shutdown;
mod supervise;
mod time;
mod tls;
mod traces;
mod watch;

use std::process::ExitCode;

use anyhow::Error;
use clap::{CommandFactory, FromArgMatches};

use crate::cli::{Cli, Command};
use crate::cluster::enhance;

/// Allocator of the program. Streams have threads of their own, which come and go. With glibc's allocator the server
/// kept the memory of its busiest moment, and more; jemalloc gives it back.
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let _written = windlass_logging::FlushOnDrop;
    let given = Cli::command().get_matches();
    let command = match Cli::from_arg_matches(&given) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    let done = windlass_sr::max_isa().map_err(Error::msg).and_then(|_| match command {
        Command::Serve(args) => serve::run(&args),
        Command::Enhance(args) => enhance::run(&args),
        Command::Devices(args) => {
            windlass_logging::init("warn", false).and_then(|_| devices::run(&args))
        }
        Command::Config(args) => args.run(given.subcommand_matches("config").unwrap_or(&given)),
        Command::Doctor(args) => windlass_logging::init("error", false)
            .and_then(|_| doctor::run(args.serve.load(), args.json)),
        Command::Plan(args) => args
            .run()
            .map_err(Error::new)
            .and_then(|text| windlass_logging::announce(text.trim_end())),
        Command::Health(args) => health::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Token(args) => {
            args.run().map_err(Error::new).and_then(|text| windlass_logging::announce(&text))
        }
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::pages(&args, Cli::command()),
        Command::Admin(command) => {
            command.run().map_err(Error::new).and_then(|text| windlass_logging::announce(&text))
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            windlass_logging::say(&format!("windlass: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
