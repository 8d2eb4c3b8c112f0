//! `windlass simulate`: many streams without pictures, by the scheduler's own code.
//!
//! In: a scenario (YAML). Out: what came of it, as a table or as JSON. Equal scenarios and seeds give equal reports.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use windlass_enhancer::simulate::{self, GroupReport, OrderName, Placement, Report, Scenario};
use windlass_media::AnchorPolicy;

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

    /// How all streams' anchors are chosen, in place of what the scenario says (latency-sensitive, cost-effective, per-frame,
    /// key-uniform); several are compared.
    #[arg(long, value_delimiter = ',', value_name = "POLICY,…")]
    pub policy: Vec<AnchorPolicy>,

    /// Where anchors are made, in place of the scenario's; several are compared.
    #[arg(long, value_delimiter = ',', value_name = "PLACEMENT,…")]
    pub placement: Vec<PlacementArg>,

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

/// A placement by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlacementArg {
    /// By one selector, on whatever accelerator is free.
    Anchor,
    /// Each stream on an accelerator of its own.
    Stream,
}

impl From<PlacementArg> for Placement {
    fn from(placement: PlacementArg) -> Placement {
        match placement {
            PlacementArg::Anchor => Placement::Anchor,
            PlacementArg::Stream => Placement::Stream,
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

const EXAMPLES: &str = "\
Examples:
  windlass simulate enhancer/scenarios/thousand.yaml
  windlass simulate enhancer/scenarios/networks.yaml --order fifo,shortest,calibrated
  windlass simulate enhancer/scenarios/placement.yaml --placement anchor,stream
  windlass simulate enhancer/scenarios/policies.yaml --policy latency-sensitive,cost-effective,key-uniform,per-frame
  windlass simulate my.yaml --seed 7 --json";

/// The scenario in each of the ways that are to be compared.
fn variants(scenario: &Scenario, args: &SimulateArgs) -> Vec<Scenario> {
    let seed = args.seed.unwrap_or(scenario.seed);
    let mut all = vec![Scenario { seed, ..scenario.clone() }];
    let each = |all: Vec<Scenario>, change: &dyn Fn(&mut Scenario, usize), count: usize| {
        if count == 0 {
            return all;
        }
        let changed = |(scenario, n): (Scenario, usize)| {
            let mut scenario = scenario;
            change(&mut scenario, n);
            scenario
        };
        all.into_iter().flat_map(|s| (0..count).map(move |n| (s.clone(), n))).map(changed).collect()
    };
    all = each(all, &|s, n| s.order = args.order[n].into(), args.order.len());
    all = each(all, &|s, n| s.placement = args.placement[n].into(), args.placement.len());
    let policy = |s: &mut Scenario, n: usize| {
        s.streams.iter_mut().for_each(|group| group.policy = args.policy[n]);
    };
    each(all, &policy, args.policy.len())
}

/// In which way it was played.
fn way(scenario: &Scenario) -> String {
    let order = match scenario.order {
        OrderName::Fifo => "fifo",
        OrderName::Shortest => "shortest",
        OrderName::Calibrated => "calibrated",
    };
    let placement = match scenario.placement {
        Placement::Anchor => "anchor",
        Placement::Stream => "stream",
    };
    let mut policies: Vec<String> = scenario.streams.iter().map(|g| g.policy.to_string()).collect();
    policies.dedup();
    format!("policy {}, placement {placement}, order {order}", policies.join("/"))
}

/// Plays all and prints.
pub fn run(args: &SimulateArgs) -> Result<()> {
    for path in &args.scenarios {
        let name = || path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the scenario {}", name()))?;
        if let Some(scenario) = crate::clients::scenario(&text) {
            let scenario = scenario.with_context(|| format!("cannot play {}", name()))?;
            print!("{}", crate::clients::play(&scenario, args.seed, args.json)?);
            continue;
        }
        let scenario: Scenario =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is no scenario", name()))?;
        for scenario in variants(&scenario, args) {
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
                println!("{}", serde_json::to_string(&json(&scenario, &report)?)?);
            } else {
                print!("{}", table(&report, &way(&scenario)));
            }
        }
    }
    Ok(())
}

/// The report with the way that it was played in.
fn json(scenario: &Scenario, report: &Report) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(report)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("way".to_owned(), way(scenario).into());
    }
    Ok(value)
}

fn table(report: &Report, way: &str) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}\n{way}, seed {}, {} s\n", report.about, report.seed, report.seconds);
    let _ = writeln!(
        out,
        "{:<16} {:>8} {:>10} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "group",
        "streams",
        "frames",
        "anchors",
        "fraction",
        "missed",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "gain dB",
        "lacks p95"
    );
    let mut row = |group: &GroupReport| {
        let _ = writeln!(
            out,
            "{:<16} {:>8} {:>10} {:>9} {:>8.2}% {:>6.2}% {:>8.1} {:>8.1} {:>8.1} {:>8.2} {:>9.2}",
            group.name,
            group.streams,
            group.frames,
            group.anchors,
            100.0 * group.fraction,
            100.0 * group.miss_rate,
            group.p50_ms,
            group.p95_ms,
            group.p99_ms,
            group.gain_db,
            group.lacks_p95_db
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
        "\naccelerators busy: {}{more}; wanted: {}; given back: {}",
        used.join(", "),
        report.devices_wanted,
        report.given_back
    );
    let passed: Vec<String> =
        report.passed_over.iter().map(|(why, n)| format!("{why} {n}")).collect();
    let _ = writeln!(out, "frames passed over: {}", passed.join(", "));
    if let Some(paper) = &report.paper {
        let _ = writeln!(out, "paper: {paper}");
    }
    out.push('\n');
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
            assert!(table(&report, &way(&short)).contains("anchors"));
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
