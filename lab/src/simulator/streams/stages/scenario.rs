//! A scenario of requests with stages on the CPU, as a file has it.

use serde::{Deserialize, Serialize};

use super::super::scenario::{self, ScenarioError, value, within};

/// Requests whose stages take turns on the CPU and away from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageScenario {
    /// A description in a sentence.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Seed of all that is random.
    #[serde(default = "scenario::one")]
    pub seed: u64,
    /// Number of rounds, each with other random numbers.
    #[serde(default = "scenario::one")]
    pub rounds: u64,
    /// Number of requests of a round.
    pub count: u32,
    /// Mean time between two requests, in milliseconds: they come at random (a Poisson process).
    pub every_ms: f64,
    /// Minimum and maximum of the requests' goals, in milliseconds: the time within which a request is in time.
    pub goals_ms: (f64, f64),
    /// Multiple of its goal from which on a request counts as missed.
    #[serde(default = "tenth_over")]
    pub missed_over: f64,
    /// Number of the CPU's cores, or of those that are left of them.
    pub cores: f64,
    /// Slowdown of all running tasks by each task more than there are cores, as a share of their speed.
    #[serde(default)]
    pub switching: f64,
    /// The numbers of slots that are compared.
    #[serde(default = "one_slot")]
    pub caps: Vec<usize>,
    /// Time after its deadline from which on a request is a lost cause, in milliseconds.
    #[serde(default)]
    pub lost_cause_threshold_ms: f64,
    /// The stages of a request, one after the other.
    pub stages: Vec<StageSpec>,
}

/// A stage: on the CPU, or away from it, at inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    /// Time on a core of its own, in milliseconds.
    #[serde(default)]
    pub cpu_ms: Option<f64>,
    /// Time away from the CPU, in milliseconds.
    #[serde(default)]
    pub away_ms: Option<f64>,
    /// Standard deviation of the time between requests, over its mean.
    #[serde(default)]
    pub spread: f64,
}

impl StageScenario {
    /// Fails if a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        value((1..=1000).contains(&self.rounds), "rounds", "from 1 to 1000")?;
        let count = u64::from(self.count).saturating_mul(self.rounds);
        value((1..=100_000).contains(&count), "count", "so that 1 to 100000 come in all rounds")?;
        value(within(self.every_ms, 0.001, 60_000.0), "every_ms", "from 0.001 to 60000")?;
        let (least, most) = self.goals_ms;
        let ordered = within(least, 0.001, 3.6e6) && within(most, least, 3.6e6);
        value(ordered, "goals_ms", "[least, most], from 0.001 to 3600000")?;
        value(within(self.missed_over, 0.0, 100.0), "missed_over", "from 0 to 100")?;
        value(within(self.cores, 0.01, 1024.0), "cores", "from 0.01 to 1024")?;
        value(within(self.switching, 0.0, 10.0), "switching", "from 0 to 10")?;
        let caps = !self.caps.is_empty() && self.caps.len() <= 64;
        value(
            caps && self.caps.iter().all(|c| (1..=1024).contains(c)),
            "caps",
            "1 to 64 numbers from 1 to 1024",
        )?;
        let threshold = within(self.lost_cause_threshold_ms, 0.0, 3.6e6);
        value(threshold, "lost_cause_threshold_ms", "from 0 to 3600000")?;
        value((1..=64).contains(&self.stages.len()), "stages", "from 1 to 64")?;
        for stage in &self.stages {
            let one = stage.cpu_ms.is_some() != stage.away_ms.is_some();
            value(one, "stages", "of cpu_ms or away_ms, one of them each")?;
            let time = stage.cpu_ms.or(stage.away_ms).unwrap_or_default();
            value(within(time, 0.0, 60_000.0), "stages: cpu_ms, away_ms", "from 0 to 60000")?;
            value(within(stage.spread, 0.0, 1.0), "stages: spread", "from 0 to 1")?;
        }
        Ok(())
    }
}

/// The default of `missed_over`, from ZARN's footnote 2.
fn tenth_over() -> f64 {
    1.1
}

fn one_slot() -> Vec<usize> {
    vec![1]
}
