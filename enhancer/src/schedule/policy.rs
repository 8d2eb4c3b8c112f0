//! Policies: how the anchors of a room's streams are chosen, and what may be asked of them.
//!
//! Source: NeuroScaler §5.2 (`latency-sensitive` and `cost-effective`), ARISE (`quality-sla`). All streams
//! share one compute cap and one merge, whatever their policies; a policy says how long a stream's frames are held before
//! they are compared, how many may become anchors, by when, and what each is worth.
//!
//! A stream of a longer interval is decided at every so manyeth tick. Which one depends on its number, so that streams of the
//! same policy spread their work over all ticks instead of filling the queue at one of them (NeuroScaler has one interval for
//! all, and so no such choice).

use std::fmt;
use std::time::Duration;

use windlass_types::AnchorPolicy;

use super::gain::GainEstimator;
use super::{Candidate, SchedulerConfig};

/// How anchors are chosen: see the module.
pub trait Policy: fmt::Debug + Send + Sync {
    /// What it is called; policies of one name are alike.
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

    /// Whether frames are told apart: golden ones before others, then by what they would clear.
    fn ranks_frames(&self) -> bool {
        true
    }

    /// Whether a stream whose anchors are worth nothing goes without them. What was promised does not ask.
    fn weighs(&self) -> bool {
        false
    }

    /// Whether a plan made beforehand says which frames become anchors.
    fn plans(&self) -> bool {
        false
    }

    /// What each of a stream's frames is worth, in the order of the frames; `carried` is the residual before them, in bytes. Where
    /// frames are not ranked all are worth the same: whichever comes first once the fraction allows another.
    fn gains<'a>(
        &self,
        frames: &[Candidate],
        carried: u64,
        operator: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        if self.ranks_frames() {
            estimator.estimate(frames, carried, operator.horizon)
        } else {
            estimator.alike(frames, carried, operator.horizon)
        }
    }
}

/// For calls: decided every interval of the operator's (66 ms), in time for the latency budget or not at all.
#[derive(Debug)]
struct LatencySensitive;

impl Policy for LatencySensitive {
    fn name(&self) -> &'static str {
        AnchorPolicy::LatencySensitive.name()
    }

    fn weighs(&self) -> bool {
        true
    }
}

/// For streams that nobody answers: the best of 666 ms of frames, at most 7.5 % of them.
#[derive(Debug)]
struct CostEffective;

impl CostEffective {
    const FRACTION: f64 = 0.075;
}

impl Policy for CostEffective {
    fn name(&self) -> &'static str {
        AnchorPolicy::CostEffective.name()
    }

    fn interval(&self, operator: &SchedulerConfig) -> Duration {
        AnchorPolicy::CostEffective.holds().max(operator.interval)
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        Self::FRACTION
    }

    fn deadline(&self, operator: &SchedulerConfig) -> Duration {
        self.interval(operator).saturating_add(operator.deadline)
    }

    fn weighs(&self) -> bool {
        true
    }
}

/// A quality promised to each stream: which frames become anchors says the plan ([`super::promise`]), not their gains.
#[derive(Debug)]
struct QualitySla;

impl Policy for QualitySla {
    fn name(&self) -> &'static str {
        AnchorPolicy::QualitySla.name()
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        1.0
    }

    fn least_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn ranks_frames(&self) -> bool {
        false
    }

    fn plans(&self) -> bool {
        true
    }
}

/// What a policy does.
pub fn of(policy: AnchorPolicy) -> &'static dyn Policy {
    match policy {
        AnchorPolicy::LatencySensitive => &LatencySensitive,
        AnchorPolicy::CostEffective => &CostEffective,
        AnchorPolicy::QualitySla => &QualitySla,
    }
}
