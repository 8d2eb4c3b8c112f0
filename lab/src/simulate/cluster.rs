//! `windlass-lab simulate` of scenarios with servers that share rooms.

use std::fmt::Write;

use crate::simulator::servers::{ClusterReport, ClusterScenario, play as play_cluster};
use anyhow::Result;

use super::Played;

/// Plays a scenario.
pub(super) fn play(mut scenario: ClusterScenario, seed: Option<u64>) -> Result<Played> {
    scenario.seed = seed.unwrap_or(scenario.seed);
    let report = play_cluster(&scenario);
    Played::one(&table(&scenario, &report), &report)
}

fn table(scenario: &ClusterScenario, report: &ClusterReport) -> String {
    let mut out = String::new();
    let ClusterScenario { about, nodes, rooms, participants, seconds, .. } = scenario;
    let _ = writeln!(out, "{about}");
    let _ =
        writeln!(out, "{nodes} nodes, {rooms} rooms, {participants} participants, {seconds} s\n");
    let rows = [
        ("joins", report.joins.to_string()),
        ("sent on to another node", report.hops.to_string()),
        ("claims that came second", report.conflicts.to_string()),
        ("asked a node that was lost", report.dead_ends.to_string()),
        ("participants of lost nodes", report.displaced.to_string()),
        ("on a node again, p50, p99", format!("{}, {} ms", report.back_p50_ms, report.back_p99_ms)),
        (
            "most over mean of nodes, mean, most",
            format!("{:.2}, {:.2}", report.imbalance_mean, report.max_imbalance),
        ),
        (
            "rooms on two nodes",
            format!("{} s, {} at the most", report.split_seconds, report.max_split_rooms),
        ),
        ("rooms brought together", report.healed.to_string()),
        ("rooms on several as claimed, at the most", report.max_spread_rooms.to_string()),
        (
            "leases, claims written",
            format!(
                "{:.0}, {:.0} a second",
                report.writes_per_s.leases, report.writes_per_s.claims
            ),
        ),
        ("told to nodes", format!("{:.0} a second", report.told_per_s)),
        ("deciding where a room is", format!("{:.0} ns", report.place_ns)),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "{name:<40} {value}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_scenario_of_a_cluster_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Cluster(scenario) = file::read(&path).expect("it is a scenario") else {
                continue;
            };
            let small = ClusterScenario {
                nodes: scenario.nodes / 10,
                rooms: scenario.rooms / 20,
                participants: scenario.participants / 20,
                seconds: 90,
                ..scenario
            };
            let report = play_cluster(&small);
            let told = format!("{path:?}: {}", table(&small, &report));
            assert!(report.joins >= small.participants as u64, "all join: {told}");
            assert!(report.displaced > 0 && report.displaced <= report.joins, "{told}");
            assert!(report.back_p50_ms <= report.back_p99_ms, "{told}");
            assert!(report.imbalance_mean >= 1.0, "{told}");
            assert!(report.max_imbalance >= report.imbalance_mean, "{told}");
            assert!(report.max_split_rooms <= small.rooms, "{told}");
            played += 1;
        }
        assert!(played >= 2);
    }

    #[test]
    fn a_report_is_a_table_and_an_object() {
        let small = ClusterScenario {
            nodes: 3,
            rooms: 9,
            participants: 60,
            seconds: 90,
            ..Default::default()
        };
        let text = play(small.clone(), None).unwrap().table;
        assert!(text.contains("3 nodes") && text.contains("told to nodes"), "{text}");
        let report = &play(small, Some(7)).unwrap().rows[0];
        assert!(report["joins"].as_u64() >= Some(60), "{report:?}");
    }
}
