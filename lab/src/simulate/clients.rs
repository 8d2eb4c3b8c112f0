//! `windlass-lab simulate` of scenarios with `clients`: how many have what they were promised (ARISE).

use std::fmt::Write as _;

use crate::simulator::streams::clients::{self, ClientsReport, ClientsScenario, ServingPolicy};
use anyhow::Result;
use serde_json::json;

use super::Played;

/// Plays a scenario.
pub(super) fn play(scenario: &ClientsScenario, seed: Option<u64>) -> Result<Played> {
    let seed = seed.unwrap_or(scenario.seed);
    let scenario = ClientsScenario { seed, ..scenario.clone() };
    let reports = clients::run(&scenario)?;
    let mut text = String::new();
    writeln!(text, "\n{}", scenario.about)?;
    writeln!(
        text,
        "\n| promise | way | clients | ours : it | promises broken | of it taken | pictures by batch | idle |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )?;
    for report in &reports {
        let same = |other: &&ClientsReport| {
            other.promise == report.promise && other.way == ServingPolicy::QualitySla
        };
        let ours = reports.iter().find(same).map_or(0.0, |ours| ours.clients);
        let promise: Vec<String> = report.promise.iter().map(f64::to_string).collect();
        let fixed = report.fixed.map_or_else(String::new, |(interval, batch)| match report.way {
            ServingPolicy::Static => format!(" (every {interval} frames, batches of {batch})"),
            _ => format!(" (every {interval} frames)"),
        });
        writeln!(
            text,
            "| {} | {}{fixed} | {:.1} | {:.2} | {:.1} % | {:.0} % | {:.1} | {:.0} % |",
            promise.join("–"),
            name(report.way),
            report.clients,
            ours / report.clients.max(1e-9),
            100.0 * report.broken,
            100.0 * report.taken,
            report.batch,
            100.0 * report.idle
        )?;
    }
    if let Some(paper) = &scenario.paper {
        writeln!(text, "\n{paper}")?;
    }
    Played::one(&text, &json!({"about": scenario.about, "seed": seed, "rows": reports}))
}

fn name(way: ServingPolicy) -> &'static str {
    match way {
        ServingPolicy::Static => "static",
        ServingPolicy::Clipper => "clipper",
        ServingPolicy::Chameleon => "chameleon",
        ServingPolicy::Reactive => "reactive (ARISE-α)",
        ServingPolicy::QualitySla => "quality-sla",
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::{self, File};
    use super::*;

    #[test]
    fn every_scenario_of_clients_that_is_shipped_can_be_played() {
        let mut played = 0;
        for path in file::shipped() {
            let File::Clients(scenario) = file::read(&path).expect("it is a scenario") else {
                continue;
            };
            // The best static setting is searched for each promise among batches up to the largest.
            let short = ClientsScenario {
                seconds: 6.0,
                max_batch: 2,
                promises: scenario.promises[..1].to_vec(),
                ..scenario
            };
            let reports = clients::run(&short).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            for promise in &short.promises {
                let of = reports.iter().filter(|report| report.promise == *promise);
                assert!(of.clone().count() > 1, "{path:?}: {promise:?} in several ways");
                for report in of {
                    let shares = [report.broken, report.idle];
                    let shares = shares.iter().all(|share| (0.0..=1.0).contains(share));
                    assert!(shares && report.clients > 0.0, "{path:?}: {report:?}");
                }
            }
            played += 1;
        }
        assert!(played >= 1);
    }
}
