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

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::eval::report::Machine;
use crate::simulator::streams::{OrderName, PlacementUnit, PlayedPolicy};
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

    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// The results of one scenario.
#[derive(Debug, Default)]
struct Played {
    /// The results for people.
    table: String,
    /// An object for each way in which it was played.
    rows: Vec<Map<String, Value>>,
}

impl Played {
    /// The results of a scenario that is played in one way.
    fn one(table: &str, report: &impl Serialize) -> Result<Played> {
        let mut played = Played::default();
        played.add(table, report)?;
        Ok(played)
    }

    /// Adds the report of one way.
    fn add(&mut self, table: &str, report: &impl Serialize) -> Result<()> {
        self.table += table;
        let Value::Object(row) = serde_json::to_value(report)? else {
            bail!("a report is no object");
        };
        self.rows.push(row);
        Ok(())
    }
}

/// All results of one command.
#[derive(Debug, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    rows: Vec<Map<String, Value>>,
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

/// Plays all scenarios, and prints their results.
pub(crate) fn run(args: &SimulateArgs) -> Result<()> {
    let mut rows = Vec::new();
    for path in &args.scenarios {
        let begun = Instant::now();
        let played = play(path, args).with_context(|| path.display().to_string())?;
        if !args.json {
            print!("{}", played.table);
        }
        rows.extend(played.rows);
        eprintln!("{}: played in {:.1} s", path.display(), begun.elapsed().as_secs_f64());
    }
    if args.json {
        let report = Report { command: "simulate", machine: Machine::here(), rows };
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}

/// Plays a scenario in all ways that are asked for.
fn play(path: &Path, args: &SimulateArgs) -> Result<Played> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plots = args.plot.as_deref().map(|folder: &Path| Plots { folder, stem: &stem });
    let mut played = match file::read(path)? {
        File::Streams(scenario, traces) => streams::play(&scenario, &traces, args, plots),
        File::Requests(scenario) => requests::play(&scenario, args, plots),
        File::Clients(scenario) => clients::play(&scenario, args.seed),
        File::Stages(scenario) => stages::play(&scenario, args, plots),
        File::Cluster(scenario) => cluster::play(scenario, args.seed),
        File::Day(scenario) => day::play(scenario, args.seed),
    }?;
    for row in &mut played.rows {
        row.insert("scenario".to_owned(), path.display().to_string().into());
    }
    Ok(played)
}

#[cfg(test)]
mod contrasts_tests;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: SimulateArgs,
    }

    #[test]
    fn a_scenario_gives_an_object_with_its_name_for_each_way() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/worst-order.yaml");
        let command = ["simulate", path, "--placement", "anchor,stream"];
        let Command { args } = Command::try_parse_from(command).unwrap();
        let Played { table, rows } = play(Path::new(path), &args).unwrap();
        assert_eq!(rows.len(), 2);
        for (row, placement) in rows.iter().zip(["placement anchor", "placement stream"]) {
            assert_eq!(row["scenario"], path);
            assert!(row["way"].as_str().unwrap().contains(placement), "{row:?}");
            assert!(table.contains(placement) && row["all"]["anchors"].as_u64() > Some(0));
        }
    }
}
