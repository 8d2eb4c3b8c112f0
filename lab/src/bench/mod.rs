//! `windlass-lab bench`: how fast the parts are, against their peers, measured in one run.
//!
//! Source: `lab/reports.md`. Each bench prints a table, or one JSON object with `--json`;
//! progress goes to standard error.

mod anchors;
mod codecs;
mod engine;
mod gpu;
mod hybrid;
mod links;
mod mirror;
mod networks;
mod pictures;
mod plans;
mod schedule;
mod stages;
mod vp9;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Measure how fast the parts are, against their peers.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Clone, Subcommand)]
enum Bench {
    Vp9(Box<vp9::Vp9Args>),
    Anchors(Box<anchors::AnchorsArgs>),
    Hybrid(Box<hybrid::HybridArgs>),
    Gpu(Box<gpu::GpuArgs>),
    Engine(Box<engine::EngineArgs>),
    Schedule(schedule::ScheduleArgs),
    Stages(Box<stages::StagesArgs>),
    Links(links::LinksArgs),
    Codecs(codecs::CodecsArgs),
}

/// Runs the bench and prints its report on standard output.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    match &args.bench {
        Bench::Vp9(args) => vp9::run(args),
        Bench::Anchors(args) => anchors::run(args),
        Bench::Hybrid(args) => hybrid::run(args),
        Bench::Gpu(args) => gpu::run(args),
        Bench::Engine(args) => engine::run(args),
        Bench::Schedule(args) => schedule::run(args),
        Bench::Stages(args) => stages::run(args),
        Bench::Links(args) => links::run(args),
        Bench::Codecs(args) => codecs::run(args),
    }
}
