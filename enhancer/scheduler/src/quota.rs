//! How many anchors a stream may have by the fraction of its frames.

use std::time::Duration;

use crate::candidate::{Candidate, Tier};
use crate::config::SchedulerConfig;
use crate::policy::{self, Policy, Selection};

/// One stream's account of anchors.
#[derive(Debug)]
pub(crate) struct Quota {
    /// Anchors that the fraction still allows. At most one is saved, and at most one borrowed.
    allowed: f64,
    /// Anchors since the rate was last asked for: those that the fraction allowed, or that a plan made.
    earned: f64,
    /// Maximum anchors per frame, by the stream's last frame.
    fraction: f64,
}

impl Default for Quota {
    fn default() -> Self {
        Quota { allowed: 1.0, earned: 0.0, fraction: 1.0 }
    }
}

impl Quota {
    /// Takes note of a stream's frame.
    pub(crate) fn frame(
        &mut self,
        frame: &Candidate,
        policy: &dyn Policy,
        config: &SchedulerConfig,
    ) {
        self.fraction = f64::from(frame.per_mille) / 1000.0;
        if policy.selection() != Selection::ByPlan {
            self.earned += share(frame, policy, config);
        }
    }

    /// Adds the anchors that the frames of an interval allow.
    pub(crate) fn refill(
        &mut self,
        frames: &[Candidate],
        policy: &dyn Policy,
        config: &SchedulerConfig,
    ) {
        let more: f64 = frames.iter().map(|frame| share(frame, policy, config)).sum();
        self.allowed = self.allowed.min(1.0) + more;
    }

    /// Whether a frame may become an anchor. A key frame may borrow its anchor, so that a scene never begins without
    /// one.
    pub(crate) fn allows(&self, tier: Tier) -> bool {
        self.allowed >= if tier == Tier::Key { 0.0 } else { 1.0 }
    }

    /// Books an anchor that is made, or that would be made if it were worth something.
    pub(crate) fn spend(&mut self) {
        self.allowed -= 1.0;
    }

    /// Adds an anchor of a plan: under a plan, a stream's quota grows with its anchors.
    pub(crate) fn earn_planned(&mut self) {
        self.earned += 1.0;
    }

    /// Anchors per second since the last call. `elapsed` is the time since then.
    pub(crate) fn take_rate(&mut self, elapsed: Duration) -> f64 {
        std::mem::take(&mut self.earned) / elapsed.as_secs_f64()
    }

    /// Maximum anchors per frame that the stream itself sets.
    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }
}

/// Share of an anchor that a frame adds to its stream's account.
fn share(frame: &Candidate, policy: &dyn Policy, config: &SchedulerConfig) -> f64 {
    policy::fraction(policy, config).min(f64::from(frame.per_mille) / 1000.0)
}

#[cfg(test)]
mod tests {
    use windlass_types::AnchorPolicy;

    use super::*;
    use crate::tests::candidate;

    #[test]
    fn one_anchor_is_saved_and_a_key_frame_borrows_one() {
        let policy = policy::of(AnchorPolicy::default());
        let config = SchedulerConfig { anchor_fraction: 0.2, ..SchedulerConfig::default() };
        let frames = [candidate(0, 1, Tier::Normal, 10, Duration::ZERO); 50];
        let mut quota = Quota::default();
        quota.refill(&frames, policy, &config);
        quota.refill(&frames[..5], policy, &config);
        let normal = std::iter::from_fn(|| quota.allows(Tier::Normal).then(|| quota.spend()));
        assert_eq!(normal.count(), 2, "one saved, one of five frames");
        assert!(quota.allows(Tier::Key));
        quota.spend();
        assert!(!quota.allows(Tier::Key));
    }
}
