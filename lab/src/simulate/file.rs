//! A scenario's file, by its kind.

use std::path::Path;

use crate::simulator::servers::ClusterScenario;
use crate::simulator::servers::day::DayScenario;
use crate::simulator::streams::clients::ClientsScenario;
use crate::simulator::streams::{RequestScenario, Scenario, StageScenario, Trace, Traces};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A scenario of one kind.
#[derive(Debug, Clone)]
pub(super) enum File {
    /// Streams, whose anchors the scheduler chooses.
    Streams(Scenario, Traces),
    /// Requests that come to the accelerators' queue.
    Requests(RequestScenario),
    /// Clients, each with a promise.
    Clients(ClientsScenario),
    /// Requests with stages on the CPU.
    Stages(StageScenario),
    /// Servers that share rooms.
    Cluster(ClusterScenario),
    /// A day on workers that come and go.
    Day(DayScenario),
}

/// The keys by which the kinds are told apart.
#[derive(Debug, Deserialize)]
struct Kind {
    requests: Option<IgnoredAny>,
    clients: Option<IgnoredAny>,
    stages: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
    hours: Option<IgnoredAny>,
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<File> {
    let name = || path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the scenario {}", name()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).with_context(|| format!("{} is no scenario", name()))
}

/// The scenario in a text, whose traces are in `folder`.
fn parse(text: &str, folder: &Path) -> Result<File> {
    let kind: Kind = serde_saphyr::from_str(text)?;
    Ok(match kind {
        Kind { requests: Some(_), .. } => File::Requests(serde_saphyr::from_str(text)?),
        Kind { clients: Some(_), .. } => File::Clients(serde_saphyr::from_str(text)?),
        Kind { stages: Some(_), .. } => File::Stages(serde_saphyr::from_str(text)?),
        Kind { nodes: Some(_), .. } => File::Cluster(serde_saphyr::from_str(text)?),
        Kind { hours: Some(_), .. } => File::Day(serde_saphyr::from_str(text)?),
        Kind { .. } => {
            let scenario: Scenario = serde_saphyr::from_str(text)?;
            let traces = traces(&scenario, folder)?;
            File::Streams(scenario, traces)
        }
    })
}

fn traces(scenario: &Scenario, folder: &Path) -> Result<Traces> {
    let mut traces = Traces::new();
    for name in scenario.traces() {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the trace {}", path.display()))?;
        let trace =
            Trace::parse(&text).with_context(|| format!("{} is no trace", path.display()))?;
        traces.insert(name.to_owned(), trace);
    }
    Ok(traces)
}

/// All that are shipped.
#[cfg(test)]
pub(super) fn shipped() -> Vec<std::path::PathBuf> {
    let folder = "scenarios";
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let paths = files.map(|file| file.expect("it can be read").path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_shipped_is_a_scenario() {
        let paths = shipped();
        assert!(paths.len() >= 4, "{paths:?}");
        for path in paths {
            read(&path).unwrap_or_else(|e| panic!("{path:?}: {e:#}"));
        }
    }

    #[test]
    fn clients_are_told_from_streams() {
        let read = |text| parse(text, Path::new(""));
        let clients = read(include_str!("../../scenarios/clients.yaml"));
        assert!(matches!(clients, Ok(File::Clients(_))), "{clients:?}");
        let streams = read(include_str!("../../scenarios/burst.yaml"));
        assert!(matches!(streams, Ok(File::Streams(..))), "{streams:?}");
        assert!(read("clients: 3").is_err());
    }

    #[test]
    fn a_file_that_is_no_scenario_is_an_error_that_says_where() {
        let error =
            |text: &str| format!("{:#}", parse(text, Path::new("")).expect_err("it is none"));
        let number = error("about: x\nseconds: ten\n");
        assert!(number.contains("line 2"), "{number}");
        let field = error("about: x\nsecnds: 10\n");
        assert!(field.contains("secnds"), "{field}");
        let request = error("about: x\nrequests:\n  - { networks: -1 }\n");
        assert!(request.contains("line 3"), "{request}");
        let trace = error(
            "about: x\nseconds: 1\nnetworks: [{ ns_by_pixel: 9 }]\naccelerators: [{}]\n\
             streams: [{ name: a, count: 1, width: 32, height: 32, trace: there/is-none.csv }]\n",
        );
        assert!(trace.contains("there/is-none.csv"), "{trace}");
        for text in ["", "[]", "7", "about: [", "requests: 7", "\u{0}"] {
            error(text);
        }
    }
}
