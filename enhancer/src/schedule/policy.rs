//! Policies: how the anchors of a room's streams are chosen, and what may be asked of them.
//!
//! Source: seed 000 §5.2 (`latency-sensitive` and `cost-effective`) and §2 (the baselines `per-frame`, `key-uniform`). All streams
//! share one compute cap and one merge, whatever their policies; a policy says how long a stream's frames are held before
//! they are compared, how many may become anchors, by when, and what each is worth.
//!
//! A stream of a longer interval is decided at every so manyeth tick. Which one depends on its number, so that streams of the
//! same policy spread their work over all ticks instead of filling the queue at one of them (seed 000 has one interval for
//! all, and so no such choice).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::gain::GainEstimator;
use super::{Candidate, SchedulerConfig};

/// How anchors are chosen: see the module.
pub trait Policy: fmt::Debug + Send + Sync {
    /// What configuration calls it.
    fn name(&self) -> &'static str;

    /// How long frames are held before they are compared with each other.
    fn interval(&self, operator: &SchedulerConfig) -> Duration {
        operator.interval
    }

    /// Most anchors by frame, 0 to 1.
    fn fraction(&self, operator: &SchedulerConfig) -> f64 {
        operator.anchor_fraction
    }

    /// From a frame's arrival to its anchor coded.
    fn deadline(&self, operator: &SchedulerConfig) -> Duration {
        operator.deadline
    }

    /// Residual in bytes per LR pixel below which another anchor would tell nothing new.
    fn least_residual(&self, operator: &SchedulerConfig) -> f64 {
        operator.least_residual
    }

    /// Whether golden frames go before others.
    fn has_middle_tier(&self) -> bool {
        true
    }

    /// What each of a stream's frames is worth, in the order of the frames; `carried` is the residual before them, in bytes.
    fn gains<'a>(
        &self,
        frames: &[Candidate],
        carried: u64,
        operator: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64];
}

/// For calls: decided every interval of the operator's (66 ms), in time for the latency budget or not at all.
#[derive(Debug)]
struct LatencySensitive;

impl Policy for LatencySensitive {
    fn name(&self) -> &'static str {
        "latency-sensitive"
    }

    fn gains<'a>(
        &self,
        frames: &[Candidate],
        carried: u64,
        operator: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        estimator.estimate(frames, carried, operator.horizon)
    }
}

/// For streams that nobody answers: the best of 666 ms of frames, at most 7.5 % of them.
#[derive(Debug)]
struct CostEffective;

impl CostEffective {
    const INTERVAL: Duration = Duration::from_millis(666);
    const FRACTION: f64 = 0.075;
}

impl Policy for CostEffective {
    fn name(&self) -> &'static str {
        "cost-effective"
    }

    fn interval(&self, operator: &SchedulerConfig) -> Duration {
        Self::INTERVAL.max(operator.interval)
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        Self::FRACTION
    }

    fn deadline(&self, operator: &SchedulerConfig) -> Duration {
        self.interval(operator) + operator.deadline
    }

    fn gains<'a>(
        &self,
        frames: &[Candidate],
        carried: u64,
        operator: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        estimator.estimate(frames, carried, operator.horizon)
    }
}

/// A baseline: every frame, as far as compute goes.
#[derive(Debug)]
struct PerFrame;

impl Policy for PerFrame {
    fn name(&self) -> &'static str {
        "per-frame"
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        1.0
    }

    fn least_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn has_middle_tier(&self) -> bool {
        false
    }

    fn gains<'a>(
        &self,
        frames: &[Candidate],
        _: u64,
        _: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        estimator.alike(frames.len())
    }
}

/// A baseline: key frames, and frames at equal distances.
#[derive(Debug)]
struct KeyUniform;

impl Policy for KeyUniform {
    fn name(&self) -> &'static str {
        "key-uniform"
    }

    fn least_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn has_middle_tier(&self) -> bool {
        false
    }

    fn gains<'a>(
        &self,
        frames: &[Candidate],
        _: u64,
        _: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        // All alike: whichever comes first once the fraction allows another.
        estimator.alike(frames.len())
    }
}

/// All of them, the default first.
pub const ALL: [&dyn Policy; 4] = [&LatencySensitive, &CostEffective, &PerFrame, &KeyUniform];

/// A policy by its name.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Named(pub &'static dyn Policy);

impl Default for Named {
    fn default() -> Self {
        Named(ALL[0])
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for Named {}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// There is no policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no policy {0:?}; there are: {names}", names = ALL.map(Policy::name).join(", "))]
pub struct UnknownPolicy(String);

impl FromStr for Named {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Named, UnknownPolicy> {
        let found = ALL.into_iter().find(|policy| policy.name() == name);
        found.map(Named).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl TryFrom<String> for Named {
    type Error = UnknownPolicy;

    fn try_from(name: String) -> Result<Named, UnknownPolicy> {
        name.parse()
    }
}

impl From<Named> for String {
    fn from(Named(policy): Named) -> String {
        policy.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_others_are_named_in_the_error() {
        for policy in ALL {
            assert_eq!(
                policy.name().parse::<Named>().map(|n| n.to_string()),
                Ok(policy.name().to_owned())
            );
        }
        let error =
            "nemo".parse::<Named>().expect_err("it needs inference on all frames").to_string();
        assert!(error.contains("cost-effective"), "{error}");
    }
}
