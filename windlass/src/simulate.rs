//! `windlass simulate`: many streams without pictures, by the scheduler's own code.
//!
//! In: a scenario (YAML). Out: what came of it, as a table or as JSON. Equal scenarios and seeds give equal reports.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use windlass_enhancer::simulate::{self, GroupReport, OrderName, Report, Scenario};

/// Play scenarios of many streams through the scheduler and the accelerators' queue, without pictures.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SimulateArgs {
    /// The scenarios.
    #[arg(required = true, value_name = "FILE")]
    pub scenarios: Vec<PathBuf>,

    /// Decides what is left to chance, in place of the scenario's.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// By what accelerators take their next job, in place of the scenario's; several are compared.
    #[arg(long, value_delimiter = ',', value_name = "ORDER,…")]
    pub order: Vec<OrderArg>,

    /// Print one JSON object a line instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// An order by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// As they came.
    Fifo,
    /// The shortest by what was expected when it came.
    Shortest,
    /// The shortest by what is expected now, on this accelerator.
    Calibrated,
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

const EXAMPLES: &str = "\
Examples:
  windlass simulate enhancer/scenarios/thousand.yaml
  windlass simulate enhancer/scenarios/networks.yaml --order fifo,shortest,calibrated
  windlass simulate my.yaml --seed 7 --json";

/// Plays all and prints.
pub fn run(args: &SimulateArgs) -> Result<()> {
    for path in &args.scenarios {
        let name = || path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the scenario {}", name()))?;
        let scenario: Scenario =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is no scenario", name()))?;
        let orders: Vec<OrderName> = args.order.iter().map(|&order| order.into()).collect();
        let orders = if orders.is_empty() { vec![scenario.order] } else { orders };
        for order in orders {
            let seed = args.seed.unwrap_or(scenario.seed);
            let scenario = Scenario { order, seed, ..scenario.clone() };
            let begun = Instant::now();
            let report = simulate::run(&scenario)
                .with_context(|| format!("cannot play the scenario {}", name()))?;
            eprintln!(
                "{}: {:.1} s for {} s",
                name(),
                begun.elapsed().as_secs_f64(),
                report.seconds
            );
            if args.json {
                println!("{}", serde_json::to_string(&report)?);
            } else {
                print!("{}", table(&report, order));
            }
        }
    }
    Ok(())
}

fn table(report: &Report, order: OrderName) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ =
        writeln!(out, "{}\n{order:?}, seed {}, {} s\n", report.about, report.seed, report.seconds);
    let _ = writeln!(
        out,
        "{:<16} {:>8} {:>10} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "group", "streams", "frames", "anchors", "fraction", "missed", "p50 ms", "p95 ms", "p99 ms"
    );
    let mut row = |group: &GroupReport| {
        let _ = writeln!(
            out,
            "{:<16} {:>8} {:>10} {:>9} {:>8.2}% {:>6.2}% {:>8.1} {:>8.1} {:>8.1}",
            group.name,
            group.streams,
            group.frames,
            group.anchors,
            100.0 * group.fraction,
            100.0 * group.miss_rate,
            group.p50_ms,
            group.p95_ms,
            group.p99_ms
        );
    };
    report.groups.iter().for_each(&mut row);
    if report.groups.len() > 1 {
        row(&report.all);
    }
    let used: Vec<String> =
        report.utilisation.iter().take(8).map(|u| format!("{:.0}%", 100.0 * u)).collect();
    let more = if report.utilisation.len() > 8 { ", …" } else { "" };
    let _ = writeln!(
        out,
        "\naccelerators busy: {}{more}; given back: {}",
        used.join(", "),
        report.given_back
    );
    let passed: Vec<String> =
        report.passed_over.iter().map(|(why, n)| format!("{why} {n}")).collect();
    let _ = writeln!(out, "frames passed over: {}\n", passed.join(", "));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that are shipped.
    fn shipped() -> Vec<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../enhancer/scenarios");
        let files = std::fs::read_dir(folder).expect("the folder is there");
        files.map(|file| file.expect("it can be read").path()).collect()
    }

    #[test]
    fn every_scenario_that_is_shipped_can_be_played() {
        let paths = shipped();
        assert!(paths.len() >= 4, "{paths:?}");
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let scenario: Scenario =
                serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let short = Scenario { seconds: 1.0, ..scenario };
            let report = simulate::run(&short).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(report.all.frames > 0, "{path:?}");
            assert!(table(&report, short.order).contains("anchors"));
        }
    }

    #[test]
    fn a_file_that_is_no_scenario_is_an_error_that_says_where() {
        let error =
            serde_saphyr::from_str::<Scenario>("about: x\nseconds: ten\n").expect_err("no number");
        assert!(error.to_string().contains("line 2"), "{error}");
        let error =
            serde_saphyr::from_str::<Scenario>("about: x\nsecnds: 10\n").expect_err("no field");
        assert!(error.to_string().contains("secnds"), "{error}");
    }
}
