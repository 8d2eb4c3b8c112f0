//! Requests with stages on the processor, as a file says them.

use serde::{Deserialize, Serialize};

use super::super::scenario::{self, ScenarioError, value, within};

/// Requests whose stages take turns on the processor and away from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageScenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// What a paper reports of the like, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Decides what is left to chance.
    #[serde(default = "scenario::one")]
    pub seed: u64,
    /// How often it is played, each time by other chance.
    #[serde(default = "scenario::one")]
    pub rounds: u64,
    /// Requests of a round.
    pub count: u32,
    /// Mean time between two: they come at random (a Poisson process).
    pub every_ms: f64,
    /// What a request takes at the most to be in time, the least and the most of them.
    pub goals_ms: (f64, f64),
    /// A request has missed when it took so many times its goal.
    #[serde(default = "tenth_over")]
    pub missed_over: f64,
    /// Cores of the processor, or what is left of them.
    pub cores: f64,
    /// What each task more than there are cores costs all that run, as a share of their speed.
    #[serde(default)]
    pub switching: f64,
    /// The caps of slots that are compared.
    #[serde(default = "one_slot")]
    pub caps: Vec<usize>,
    /// How long after its deadline a request is a lost cause.
    #[serde(default)]
    pub lost_cause_threshold_ms: f64,
    /// Lost causes are given up, instead of going behind all others.
    #[serde(default)]
    pub gives_up: bool,
    /// After this long a lost cause goes before all others.
    #[serde(default = "patience")]
    pub patience_ms: f64,
    /// What a request goes through, one after the other.
    pub stages: Vec<StageSpec>,
}

/// A stage: on the processor, or away from it, at inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    /// Time on a core of its own.
    #[serde(default)]
    pub cpu_ms: Option<f64>,
    /// Time away from the processor.
    #[serde(default)]
    pub away_ms: Option<f64>,
    /// Standard deviation of that between requests, over the mean.
    #[serde(default)]
    pub spread: f64,
}

impl StageScenario {
    /// Whether all values make sense.
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
        let times = [self.lost_cause_threshold_ms, self.patience_ms];
        value(
            times.into_iter().all(|t| within(t, 0.0, 3.6e6)),
            "lost_cause_threshold_ms, patience_ms",
            "from 0 to 3600000",
        )?;
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

/// ZARN's footnote 2.
fn tenth_over() -> f64 {
    1.1
}

fn one_slot() -> Vec<usize> {
    vec![1]
}

/// Longer than anybody waits: ZARN has no bound.
fn patience() -> f64 {
    600_000.0
}
