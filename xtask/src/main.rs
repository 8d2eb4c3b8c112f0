//! `cargo xtask`: everything a person or CI does with the project, one command each.
//!
//! Each step says in one plain sentence what it does, does nothing where nothing is to be done,
//! and fails with what to do next.

mod advisories;
mod apt;
mod binaries;
mod borders;
mod calls;
mod capped;
mod checks;
mod circles;
mod clips;
mod comments;
mod fuzz;
mod gpu;
mod gstreamer;
mod imports;
mod memory;
mod metadata;
mod models;
mod neon;
mod oldest;
mod page;
mod process;
mod protocol;
mod python;
mod release;
mod rustup;
mod sentences;
mod sizes;
mod skipped;
mod soak;
mod source;
mod spelling;
mod test;
mod wasm;
mod wheel;
mod workers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::process::{Cmd, step};

/// Set up, build, run and test Windlass.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing on this machine, without building or running anything.
    Setup,
    /// Set up, build and start the server with its demo page on http://localhost:7880.
    Run {
        /// Arguments for `windlass serve`, after `--`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Set up, then run every check and test, the ones in a real browser too.
    Test {
        /// Run just these parts: lint, rust, fuzz, web, wasm, chart, e2e.
        #[arg(value_enum)]
        parts: Vec<test::Part>,
    },
    /// Write what is made from the server's types: the client's message types (client-web/src/sdk/protocol.gen.ts), and
    /// the OpenAPI description with the server SDKs (signaling/sdk).
    Protocol,
    /// Build the WebAssembly module into client-web/dist; a page takes the one that it was built with, so build it
    /// after.
    Wasm,
    /// Build the WebAssembly module and the demo page into client-web/dist.
    Page,
    Release(release::Args),
    /// Measure every trained network: cost, speed, gain on held-out clips, and other libraries; prints Markdown.
    Models(models::Args),
    /// Check licences and sources of all dependencies with cargo-deny.
    Deny,
    /// Ask what is known against all dependencies: RustSec's database and npm's registry, or, where they cannot be
    /// reached, the notes in xtask/advisories.toml.
    Advisories {
        /// A folder with RustSec's database, such as a clone of it.
        #[arg(long)]
        database: Option<PathBuf>,
    },
    /// Run the codec's tests on an emulated aarch64 machine, which has NEON.
    Neon,
    /// Run the codec's tests in Miri and with AddressSanitizer.
    Memory,
    /// Check the GPU's engine without a GPU: its kernels by NVRTC, which comes from PyPI.
    Gpu,
    /// Run the long tests, which take about two hours: rare impairments, other browsers, many seeds, fuzzing.
    Soak {
        /// Run just these parts: properties, neon, memory, gpu, fuzz, sdks, docs, browsers, attack, links, visits, vp9.
        #[arg(value_enum)]
        parts: Vec<soak::Part>,
        /// How many times as long as that everything lasts that can last longer: calls, floods, fuzzing, seeds.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
        times: u32,
    },
    /// Fuzz the codec, the SFU and signalling; with a nightly tool chain, under AddressSanitizer.
    Fuzz {
        /// How long each target runs, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

/// The project's root folder: that of the checkout that cargo runs this for. It need not be the one in which this
/// program was built, where several share a build folder.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder in which cargo builds; honours `CARGO_TARGET_DIR`.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn main() -> ExitCode {
    match perform(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nFailed: {error:#}.");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Setup => {
            apt::install(apt::BUILD)?;
            apt::install(apt::TEST)?;
            wasm::toolchain().map(drop)
        }
        Task::Run { args } => {
            page::build()?;
            step("Building the server (the first time takes some minutes)");
            // Without what a server for this machine alone does not need: cluster, jemalloc, traces, enhanced
            // recordings.
            Cmd::cargo(["build", "--locked", "--profile", "serve", "--package", "windlass"])
                .arg("--no-default-features")
                .run()?;
            step("Starting the server; stop it with Ctrl-C");
            Cmd::new(target_dir().join("serve/windlass")).arg("serve").args(args).exec()
        }
        Task::Test { parts } => test::run(&parts),
        Task::Protocol => protocol::write(),
        Task::Wasm => wasm::build(),
        Task::Page => page::build(),
        Task::Release(args) => release::run(&args),
        Task::Models(args) => models::run(&args),
        Task::Deny => test::deny(),
        Task::Advisories { database } => advisories::run(database),
        Task::Neon => neon::run(),
        Task::Memory => memory::run(),
        Task::Gpu => gpu::run(),
        Task::Soak { parts, times } => soak::run(&parts, times),
        Task::Fuzz { seconds } => fuzz::run(seconds, &fuzz::Build::best().all()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of this program that stand in a page: behind its name, up to the end of the code.
    fn commands(page: &str) -> impl Iterator<Item = &str> {
        page.split("cargo xtask ")
            .skip(1)
            .filter_map(|rest| rest.split(['`', '\n', '#', '|', '…', '&']).next())
    }

    #[test]
    fn commands_that_stand_in_the_pages_are_known() {
        assert_eq!(
            commands("`cargo xtask a b`, or cargo xtask c # d").collect::<Vec<_>>(),
            ["a b", "c "]
        );
        for page in sentences::pages().unwrap() {
            for command in commands(&std::fs::read_to_string(&page).unwrap()) {
                // In capitals: whatever the reader puts there.
                let words =
                    command.split_whitespace().take_while(|w| !w.chars().any(char::is_uppercase));
                let parsed = Cli::try_parse_from(["xtask"].into_iter().chain(words));
                if let Err(error) = parsed {
                    let page = page.display();
                    assert_eq!(error.exit_code(), 0, "{page}: cargo xtask {command}: {error}");
                }
            }
        }
    }
}
