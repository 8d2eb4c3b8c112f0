//! Policies: how the anchors of a room's streams are chosen, and what may be asked of them.
//!
//! Source: NeuroScaler §5.2 (`latency-sensitive` and `cost-effective`), ARISE (`quality-sla`). All streams share one
//! compute cap and one order, whatever their policies. A policy says how long a stream's frames are held before they
//! are compared, how many may become anchors, by when, and what each is worth.
//!
//! A stream of a longer interval is decided at one tick in several. Which one depends on its number, so that streams of
//! the same policy spread their work over all ticks (NeuroScaler has one interval for all streams).

use std::fmt;
use std::time::Duration;

use windlass_types::AnchorPolicy;

use crate::candidate::Candidate;
use crate::config::SchedulerConfig;
use crate::gain::GainEstimator;

/// How the frames of one stream compete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Golden frames before others, then by the residual that an anchor would clear.
    ByGain,
    /// Frames are alike: the first one becomes an anchor once the fraction allows it.
    InOrder,
    /// A plan made beforehand names the frames ([`promise`](crate::promise)).
    ByPlan,
}

/// How the anchors of a stream are chosen, and what may be asked of them (see the module's head).
pub trait Policy: fmt::Debug + Send + Sync {
    /// Name of the policy. Policies of one name are alike.
    fn name(&self) -> &'static str;

    /// How long frames are held before they are compared with each other.
    fn interval(&self, operator: &SchedulerConfig) -> Duration {
        operator.interval
    }

    /// Maximum anchors per frame, 0 to 1.
    fn fraction(&self, operator: &SchedulerConfig) -> f64 {
        operator.anchor_fraction
    }

    /// Maximum time from a frame's arrival to its anchor encoded.
    fn deadline(&self, operator: &SchedulerConfig) -> Duration {
        operator.deadline
    }

    /// Residual in bytes per LR pixel below which a frame counts as unchanged.
    fn min_residual(&self, operator: &SchedulerConfig) -> f64 {
        operator.min_residual
    }

    /// How a stream's frames compete.
    fn selection(&self) -> Selection {
        Selection::ByGain
    }

    /// Whether a stream whose anchors have no worth gets none. The quality SLA makes anchors in any case.
    fn stops_when_worthless(&self) -> bool {
        false
    }

    /// Gains of a stream's frames, in the order of the frames. `carried` is the residual before them, in bytes.
    fn gains<'a>(
        &self,
        frames: &[Candidate],
        carried: u64,
        operator: &SchedulerConfig,
        estimator: &'a mut GainEstimator,
    ) -> &'a [u64] {
        match self.selection() {
            Selection::ByGain => estimator.estimate(frames, carried, operator.horizon),
            Selection::InOrder | Selection::ByPlan => {
                estimator.alike(frames, carried, operator.horizon)
            }
        }
    }
}

/// Policy for calls: decides at each of the operator's intervals (66 ms), and drops what cannot meet the latency
/// budget.
#[derive(Debug)]
struct LatencySensitive;

impl Policy for LatencySensitive {
    fn name(&self) -> &'static str {
        AnchorPolicy::LatencySensitive.name()
    }

    fn stops_when_worthless(&self) -> bool {
        true
    }
}

/// Policy for streams that nobody answers: the best frames of each 666 ms, at most 7.5 % of them.
#[derive(Debug)]
struct CostEffective;

impl CostEffective {
    /// Maximum anchors per frame (NeuroScaler §5.2).
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

    fn stops_when_worthless(&self) -> bool {
        true
    }
}

/// Policy that promises a quality to each stream. The plan ([`promise`](crate::promise)) says which frames become
/// anchors, not their gains.
#[derive(Debug)]
struct QualitySla;

impl Policy for QualitySla {
    fn name(&self) -> &'static str {
        AnchorPolicy::QualitySla.name()
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        1.0
    }

    fn min_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn selection(&self) -> Selection {
        Selection::ByPlan
    }
}

/// Returns the policy of a name.
pub fn of(policy: AnchorPolicy) -> &'static dyn Policy {
    match policy {
        AnchorPolicy::LatencySensitive => &LatencySensitive,
        AnchorPolicy::CostEffective => &CostEffective,
        AnchorPolicy::QualitySla => &QualitySla,
    }
}

/// Maximum anchors per frame, 0 to 1; none where the policy gives no number.
pub(crate) fn fraction(policy: &dyn Policy, config: &SchedulerConfig) -> f64 {
    let max = policy.fraction(config);
    if max.is_finite() { max.clamp(0.0, 1.0) } else { 0.0 }
}

/// Ticks between two decisions of a policy, at least one.
pub(crate) fn intervals(policy: &dyn Policy, config: &SchedulerConfig) -> u64 {
    let base = config.interval.as_secs_f64().max(1e-3);
    (policy.interval(config).as_secs_f64() / base).round().clamp(1.0, 1e3) as u64
}
