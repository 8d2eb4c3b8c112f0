//! Scenarios of streams: each in all ways that are to be compared.

use std::fmt::Write as _;

use crate::simulator::streams::{self, GroupReport, PlacementUnit, Report, Scenario, Traces};
use anyhow::{Context, Result};
use serde::Serialize;

use super::plots::Plots;
use super::{Played, SimulateArgs};

/// Plays a scenario in all ways that are asked for.
pub(super) fn play(
    scenario: &Scenario,
    traces: &Traces,
    args: &SimulateArgs,
    plots: Option<Plots<'_>>,
) -> Result<Played> {
    let mut played = Played::default();
    let mut reports = Vec::new();
    for scenario in variants(scenario, args) {
        let report = streams::run(&scenario, traces).context("cannot play the scenario")?;
        let way = way(&scenario);
        played.add(&table(&report, &way), &Way { way, report: &report })?;
        reports.push((label(&scenario, args), report));
    }
    if let Some(plots) = plots {
        plots.streams(&reports)?;
    }
    Ok(played)
}

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

/// The scenario's name among those that it is compared with.
fn label(scenario: &Scenario, args: &SimulateArgs) -> String {
    let policy = scenario.streams.first().map(|group| group.policy.to_string());
    let parts = [
        (args.order.len(), super::order(scenario.order).to_owned()),
        (args.placement.len(), placement(scenario.placement).to_owned()),
        (args.policy.len(), policy.unwrap_or_default()),
    ];
    let compared = parts.into_iter().filter(|(count, _)| *count > 1).map(|(_, part)| part);
    let compared: Vec<String> = compared.collect();
    if compared.is_empty() { "all streams".to_owned() } else { compared.join(", ") }
}

fn placement(placement: PlacementUnit) -> &'static str {
    match placement {
        PlacementUnit::Anchor => "anchor",
        PlacementUnit::Stream => "stream",
    }
}

/// The way in which a scenario was played.
fn way(scenario: &Scenario) -> String {
    let order = super::order(scenario.order);
    let placement = placement(scenario.placement);
    let mut policies: Vec<String> = scenario.streams.iter().map(|g| g.policy.to_string()).collect();
    policies.dedup();
    format!("policy {}, placement {placement}, order {order}", policies.join("/"))
}

/// A report, with the way in which its scenario was played.
#[derive(Serialize)]
struct Way<'a> {
    way: String,
    #[serde(flatten)]
    report: &'a Report,
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
    if report.by_network.len() > 1 {
        let made: Vec<String> = report.by_network.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "anchors by network: {}; loads: {}", made.join(", "), report.loads);
    }
    let (kept, refused) = report.promised;
    if kept + refused > 0 {
        let _ = writeln!(out, "streams promised a quality: {kept}; refused: {refused}");
    }
    let GroupReport { lost, anchors_lost, worth, .. } = &report.all;
    if lost + anchors_lost > 0 {
        for group in &report.groups {
            let _ = writeln!(
                out,
                "{}: {} frames lost or undecodable, {} anchors lost",
                group.name, group.lost, group.anchors_lost
            );
        }
    }
    if let Some(worth) = worth {
        let _ = writeln!(out, "anchors gave {worth:.2} times what frames at random give");
    }
    let passed: Vec<String> = report
        .passed_over
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(why, n)| format!("{why} {n}"))
        .collect();
    let _ = writeln!(out, "frames passed over: {}", passed.join(", "));
    if let Some(paper) = &report.paper {
        let _ = writeln!(out, "paper: {paper}");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use crate::simulator::streams::Scenario;

    use super::super::file::{self, File};
    use super::*;

    /// What must hold of any scenario; an error says what does not.
    fn sane(report: &Report) -> Result<(), &'static str> {
        let Report { all, groups, utilisation, percentiles_ms, .. } = report;
        let sum = |of: fn(&GroupReport) -> u64| groups.iter().map(of).sum::<u64>();
        let holds = [
            ("frames come", all.frames > 0),
            ("frames add up", sum(|g| g.frames) == all.frames),
            ("anchors add up", sum(|g| g.anchors) == all.anchors),
            ("streams add up", sum(|g| g.streams) == all.streams),
            ("a frame has one anchor at the most", groups.iter().all(|g| g.anchors <= g.frames)),
            ("misses are a share", (0.0..=1.0).contains(&all.miss_rate)),
            ("percentiles rise", all.p50_ms <= all.p95_ms && all.p95_ms <= all.p99_ms),
            ("percentiles rise", percentiles_ms.is_sorted()),
            ("accelerators work all the time at the most", {
                utilisation.iter().all(|u| (0.0..=1.0).contains(u))
            }),
            ("gains are numbers", all.gain_db.is_finite() && all.lacks_p95_db.is_finite()),
        ];
        holds.iter().find(|(_, holds)| !holds).map_or(Ok(()), |(what, _)| Err(*what))
    }

    #[test]
    fn every_scenario_of_streams_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Streams(scenario, traces) = file::read(&path).expect("it is a scenario")
            else {
                continue;
            };
            let short = Scenario { seconds: 1.0, ..scenario };
            let report = streams::run(&short, &traces).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            sane(&report).unwrap_or_else(|what| panic!("{path:?}: {what}: {report:?}"));
            assert!(table(&report, &way(&short)).contains("anchors"));
            played += 1;
        }
        assert!(played >= 4);
    }
}
