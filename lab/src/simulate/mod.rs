//! `windlass-lab simulate`: the scheduler's own code, under load that is made up.
//!
//! In: scenarios (YAML): of streams ([`streams`]), of requests to the accelerators' queue ([`requests`]), of clients
//! with a promise ([`clients`]), of requests with stages on the CPU ([`stages`]), of servers that share rooms
//! ([`cluster`]), or of a day on workers that come and go ([`day`]). Out: what came of them, as tables or as JSON.
//! Equal scenarios and seeds give equal reports.

mod clients;
mod cluster;
mod day;
mod file;
mod plots;
mod requests;
mod stages;
mod streams;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::simulator::streams::{OrderName, PlacementUnit, PlayedPolicy};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use file::File;
use plots::Plots;

/// Play scenarios through the scheduler and its queues, without pictures.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// The scenarios.
    #[arg(required = true, value_name = "FILE")]
    pub scenarios: Vec<PathBuf>,

    /// Decides what is left to chance, in place of the scenario's.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// By what accelerators take their next job, in place of the scenario's; several are compared.
    #[arg(long, value_delimiter = ',', value_name = "ORDER,…")]
    pub order: Vec<OrderArg>,

    /// How all streams' anchors are chosen, in place of what the scenario says (latency-sensitive, cost-effective,
    /// quality-sla, per-frame, key-uniform, nemo); several are compared.
    #[arg(long, value_delimiter = ',', value_name = "POLICY,…")]
    pub policy: Vec<PlayedPolicy>,

    /// Where anchors are made, in place of the scenario's; several are compared.
    #[arg(long, value_delimiter = ',', value_name = "PLACEMENT,…")]
    pub placement: Vec<PlacementArg>,

    /// Draw what came of it too, as SVG to this folder: anchor latency, its distribution, what was missed, fraction,
    /// utilisation and predicted quality second by second; of requests, latency, throughput and loads by load.
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    /// Print one JSON object a line instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// An order by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// As they came.
    Fifo,
    /// The shortest by what was expected when it came.
    Shortest,
    /// The shortest by what is expected now, on this accelerator.
    Calibrated,
}

/// A placement by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementArg {
    /// By one selector, on whatever accelerator is free.
    Anchor,
    /// Each stream on an accelerator of its own.
    Stream,
}

impl From<PlacementArg> for PlacementUnit {
    fn from(placement: PlacementArg) -> PlacementUnit {
        match placement {
            PlacementArg::Anchor => PlacementUnit::Anchor,
            PlacementArg::Stream => PlacementUnit::Stream,
        }
    }
}

impl From<OrderArg> for OrderName {
    fn from(order: OrderArg) -> OrderName {
        match order {
            OrderArg::Fifo => OrderName::Fifo,
            OrderArg::Shortest => OrderName::Shortest,
            OrderArg::Calibrated => OrderName::Calibrated,
        }
    }
}

/// Text at the end of the command's long help.
const EXAMPLES: &str = "\
Examples:
  windlass-lab simulate lab/scenarios/thousand.yaml
  windlass-lab simulate lab/scenarios/networks.yaml --order fifo,shortest,calibrated
  windlass-lab simulate lab/scenarios/recommend.yaml lab/scenarios/verify.yaml
  windlass-lab simulate lab/scenarios/stages.yaml lab/scenarios/slots.yaml
  windlass-lab simulate lab/scenarios/cluster.yaml
  windlass-lab simulate lab/scenarios/day.yaml
  windlass-lab simulate lab/scenarios/placement.yaml --placement anchor,stream
  windlass-lab simulate lab/scenarios/policies.yaml --policy latency-sensitive,cost-effective,quality-sla,key-uniform,per-frame,nemo
  windlass-lab simulate lab/scenarios/recorded.yaml lab/scenarios/network.yaml --plot plots
  windlass-lab simulate my.yaml --seed 7 --json";

/// The name of an order.
fn order(order: OrderName) -> &'static str {
    match order {
        OrderName::Fifo => "fifo",
        OrderName::Shortest => "shortest",
        OrderName::Calibrated => "calibrated",
    }
}

/// Plays all scenarios, and prints their reports.
pub(crate) fn run(args: &SimulateArgs) -> Result<()> {
    for path in &args.scenarios {
        let begun = Instant::now();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let plots = args.plot.as_deref().map(|folder: &Path| Plots { folder, stem: &stem });
        match file::read(path)? {
            File::Streams(scenario, traces) => streams::play(&scenario, &traces, args, plots),
            File::Requests(scenario) => requests::play(&scenario, args, plots),
            File::Clients(scenario) => {
                clients::play(&scenario, args.seed, args.json).map(|text| print!("{text}"))
            }
            File::Stages(scenario) => stages::play(&scenario, args, plots),
            File::Cluster(scenario) => {
                cluster::play(scenario, args.seed, args.json).map(|text| print!("{text}"))
            }
            File::Day(scenario) => {
                day::play(scenario, args.seed, args.json).map(|text| print!("{text}"))
            }
        }
        .with_context(|| path.display().to_string())?;
        eprintln!("{}: played in {:.1} s", path.display(), begun.elapsed().as_secs_f64());
    }
    Ok(())
}
