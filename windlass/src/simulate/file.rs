//! A scenario's file, and what it is about.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;
use windlass_enhancer::simulate::clients::ClientsScenario;
use windlass_enhancer::simulate::{RequestScenario, Scenario, StageScenario};

/// What a file is about.
#[derive(Debug, Clone)]
pub enum File {
    /// Streams, whose anchors the scheduler chooses.
    Streams(Scenario),
    /// Requests that come to the accelerators' queue.
    Requests(RequestScenario),
    /// Clients, each with a promise.
    Clients(ClientsScenario),
    /// Requests with stages on the processor.
    Stages(StageScenario),
}

/// The keys that tell them apart.
#[derive(Debug, Deserialize)]
struct Kind {
    requests: Option<IgnoredAny>,
    stages: Option<IgnoredAny>,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<File> {
    let name = || path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the scenario {}", name()))?;
    parse(&text).with_context(|| format!("{} is no scenario", name()))
}

fn parse(text: &str) -> Result<File> {
    if let Some(scenario) = crate::clients::scenario(text) {
        return scenario.map(File::Clients);
    }
    let kind: Kind = serde_saphyr::from_str(text)?;
    Ok(match kind {
        Kind { requests: Some(_), .. } => File::Requests(serde_saphyr::from_str(text)?),
        Kind { stages: Some(_), .. } => File::Stages(serde_saphyr::from_str(text)?),
        Kind { .. } => File::Streams(serde_saphyr::from_str(text)?),
    })
}

/// All that are shipped.
#[cfg(test)]
pub fn shipped() -> Vec<std::path::PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../enhancer/scenarios");
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
    fn a_file_that_is_no_scenario_is_an_error_that_says_where() {
        let error = |text: &str| format!("{:#}", parse(text).expect_err("it is none"));
        let number = error("about: x\nseconds: ten\n");
        assert!(number.contains("line 2"), "{number}");
        let field = error("about: x\nsecnds: 10\n");
        assert!(field.contains("secnds"), "{field}");
        let request = error("about: x\nrequests:\n  - { networks: -1 }\n");
        assert!(request.contains("line 3"), "{request}");
        for text in ["", "[]", "7", "about: [", "requests: 7", "\u{0}"] {
            error(text);
        }
    }
}
