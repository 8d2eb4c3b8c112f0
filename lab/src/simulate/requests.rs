//! Scenarios of requests to the accelerators' queue: each order at each load.

use std::fmt::Write as _;

use crate::simulator::streams::{RequestReport, RequestRow, RequestScenario, run_requests};
use anyhow::{Context, Result};

use super::plots::Plots;
use super::{Played, SimulateArgs};

/// Plays a scenario.
pub(super) fn play(
    scenario: &RequestScenario,
    args: &SimulateArgs,
    plots: Option<Plots<'_>>,
) -> Result<Played> {
    let mut played = Played::default();
    let mut scenario = scenario.clone();
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if !args.order.is_empty() {
        scenario.orders = args.order.iter().map(|&order| order.into()).collect();
    }
    for &placement in &placements(&scenario, args) {
        scenario.placement = placement;
        let report = run_requests(&scenario).context("cannot play the scenario")?;
        played.add(&table(&report), &report)?;
        if let Some(plots) = plots {
            plots.requests(&report)?;
        }
    }
    Ok(played)
}

fn placements(
    scenario: &RequestScenario,
    args: &SimulateArgs,
) -> Vec<crate::simulator::streams::PlacementUnit> {
    match &args.placement[..] {
        [] => vec![scenario.placement],
        some => some.iter().map(|&placement| placement.into()).collect(),
    }
}

fn table(report: &RequestReport) -> String {
    let RequestReport { about, seed, rounds, requests, at_once_per_s, .. } = report;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{about}\nseed {seed}, {rounds} rounds of {requests} requests; x = {at_once_per_s:.2} a second\n"
    );
    let _ = writeln!(
        out,
        "{:<11} {:>6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>7} {:>10}",
        "order",
        "λ",
        "offered",
        "served/s",
        "mean ms",
        "p50 ms",
        "p99 ms",
        "most ms",
        "loads",
        "busy",
        "x fifo",
        "x shortest"
    );
    let mut last = None;
    for row in report.rows.iter().chain(&report.lambdas) {
        if last.is_some_and(|last| last != row.order) {
            out.push('\n');
        }
        last = Some(row.order);
        let _ = writeln!(out, "{}", line(row));
    }
    if let Some(paper) = &report.paper {
        let _ = writeln!(out, "\npaper: {paper}");
    }
    out.push('\n');
    out
}

fn line(row: &RequestRow) -> String {
    let load = row.load.map_or("at once".to_owned(), |load| format!("{load:.2} x"));
    let more = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.2}"));
    format!(
        "{:<11} {:>6} {:>8} {:>9.2} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>6.2} {:>5.0}% {:>7} {:>10}",
        super::order(row.order),
        row.lambda,
        load,
        row.throughput_per_s,
        row.mean_ms,
        row.p50_ms,
        row.p99_ms,
        row.max_ms,
        row.loads,
        100.0 * row.utilisation,
        more(row.x_fifo),
        more(row.x_shortest)
    )
}

#[cfg(test)]
mod tests {
    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_scenario_of_requests_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Requests(scenario) = file::read(&path).expect("it is a scenario") else {
                continue;
            };
            let short = RequestScenario { rounds: 1, loads: vec![1.0], ..scenario };
            let report = run_requests(&short).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(table(&report).contains("calibrated"), "{path:?}");
            assert!(report.requests > 0 && !report.rows.is_empty(), "{path:?}");
            for row in report.rows.iter().chain(&report.lambdas) {
                let rise = row.p50_ms <= row.p99_ms && row.p99_ms <= row.max_ms;
                let shares = (0.0..=1.0).contains(&row.utilisation);
                assert!(row.throughput_per_s > 0.0 && rise && shares, "{path:?}: {row:?}");
            }
            played += 1;
        }
        assert!(played >= 2);
    }
}
