//! Scenarios of requests with stages on the CPU: each way at each cap.

use std::fmt::Write as _;

use crate::simulator::streams::{StageReport, StageScenario, run_stages};
use anyhow::{Context, Result};

use super::plots::Plots;
use super::{Played, SimulateArgs};

/// Plays a scenario.
pub(super) fn play(
    scenario: &StageScenario,
    args: &SimulateArgs,
    plots: Option<Plots<'_>>,
) -> Result<Played> {
    let seed = args.seed.unwrap_or(scenario.seed);
    let scenario = StageScenario { seed, ..scenario.clone() };
    let report = run_stages(&scenario).context("cannot play the scenario")?;
    if let Some(plots) = plots {
        plots.stages(&report)?;
    }
    Played::one(&table(&report), &report)
}

fn table(report: &StageReport) -> String {
    let StageReport { about, seed, rounds, requests, .. } = report;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{about}\nseed {seed}, {rounds} rounds of {requests} requests\n");
    let _ = writeln!(
        out,
        "{:<8} {:>5} {:>14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "way",
        "slots",
        "missed, first",
        "missed",
        "given up",
        "mean ms",
        "p50 ms",
        "p95 ms",
        "waited ms"
    );
    for row in &report.rows {
        let way = row.way.name();
        let cap = row.cap.map_or("–".to_owned(), |cap| cap.to_string());
        let _ = writeln!(
            out,
            "{way:<8} {cap:>5} {:>14} {:>9.1} {:>9.1} {:>9.0} {:>9.0} {:>9.0} {:>10.0}",
            row.missed_first,
            row.missed,
            row.given_up,
            row.mean_ms,
            row.p50_ms,
            row.p95_ms,
            row.waited_ms
        );
    }
    if let Some(paper) = &report.paper {
        let _ = writeln!(out, "\npaper: {paper}");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_scenario_of_stages_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Stages(scenario) = file::read(&path).expect("it is a scenario") else {
                continue;
            };
            let report = run_stages(&scenario).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(table(&report).contains("edf"), "{path:?}");
            for row in &report.rows {
                let all = f64::from(report.requests);
                let counts = (0.0..=all).contains(&row.missed) && row.given_up <= all;
                assert!(counts && row.mean_ms > 0.0, "{path:?}: {row:?}");
                assert!(row.p50_ms <= row.p95_ms, "{path:?}: {row:?}");
            }
            played += 1;
        }
        assert!(played >= 2);
    }
}
