//! One stream between ticks.

use std::time::Duration;

use windlass_types::{AnchorPolicy, Owner, Size, StreamId};

use crate::candidate::{Captured, Tier};
use crate::config::SchedulerConfig;
use crate::frames::{Frames, accumulate};
use crate::gain::GainEstimator;
use crate::lateness::Lateness;
use crate::networks::{Networks, StreamNetwork};
use crate::policy::{self, Policy, Selection};
use crate::promise::Promised;
use crate::quota::Quota;
use crate::rank::{Ranked, order_stream};
use crate::shares::FairShare;
use crate::worth::Worth;

/// All that the scheduler keeps of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub policy: &'static dyn Policy,
    /// Frames that are not decided yet.
    pub frames: Frames,
    /// Whether the stream's frames are decided at the tick that is under way.
    pub due: bool,
    /// Account of the anchors that the fraction allows.
    pub quota: Quota,
    /// Size of the stream's last picture; zero before the first one.
    pub size: Size,
    /// Maximum scale of the stream's last picture.
    pub max_scale: usize,
    pub network: StreamNetwork,
    pub share: FairShare,
    pub lateness: Lateness,
    /// State of the stream's promise, for the policy `quality-sla`.
    pub promised: Promised,
    /// Worth of the stream's enhanced anchors.
    pub worth: Worth,
    /// What the publisher gives of its own pictures. No network runs for those.
    pub captured: Captured,
    pub first_seen: Duration,
    pub last_seen: Duration,
    /// When the stream last got an anchor. Among equals, the one that has waited longest goes first.
    pub last_chosen: Duration,
}

impl Stream {
    pub(crate) fn new(id: StreamId, arrival: Duration) -> Self {
        Stream {
            policy: policy::of(AnchorPolicy::default()),
            frames: Frames::default(),
            due: false,
            quota: Quota::default(),
            size: Size::default(),
            max_scale: 0,
            network: StreamNetwork::default(),
            share: FairShare::new(Owner::alone(id)),
            lateness: Lateness::default(),
            promised: Promised::default(),
            worth: Worth::default(),
            captured: Captured::No,
            first_seen: arrival,
            last_seen: arrival,
            last_chosen: Duration::ZERO,
        }
    }

    /// Whether the stream makes no anchors but probes.
    pub(crate) fn is_held_back(&self) -> bool {
        self.worth.holds_back()
            && self.captured != Captured::Pictures
            && self.policy.stops_when_worthless()
    }

    /// Takes note of the interval's frames: its last picture, and the anchors that they allow.
    pub(crate) fn begin_decision(&mut self, config: &SchedulerConfig) {
        let frames = self.frames.waiting();
        self.quota.refill(frames, self.policy, config);
        if let Some(last) = frames.last() {
            (self.size, self.max_scale) = (last.size, last.max_scale);
        }
    }

    /// Number of frames that the plan passes over: all but the newest ones whose batches begin before `until`.
    /// Without a plan, none.
    pub(crate) fn take_unplanned(&mut self, until: Duration) -> usize {
        if self.policy.selection() != Selection::ByPlan {
            return 0;
        }
        let wanted = self.promised.take_wanted(until);
        self.frames.waiting().len().saturating_sub(wanted)
    }

    /// Appends the stream's frames but the first `skipped` to those of others, with gains, costs and ranks. Returns how
    /// many frames of an earlier tick are dropped for it.
    pub(crate) fn rank(
        &mut self,
        context: &mut Ranking<'_>,
        skipped: usize,
        ranked: &mut Vec<Ranked>,
    ) -> u64 {
        let Ranking { now, config, ref mut gains, networks, spent_s } = *context;
        let (policy, selection) = (self.policy, self.policy.selection());
        let (mut residual, frames) = (self.frames.residual(), self.frames.waiting());
        let gains = policy.gains(frames, residual, config, gains);
        let first = ranked.len();
        ranked.extend(frames.iter().zip(gains).enumerate().map(|(position, (frame, &gain))| {
            residual = accumulate(residual, frame);
            Ranked {
                candidate: *frame,
                ahead: 0,
                tier: match frame.tier {
                    Tier::Golden if selection != Selection::ByGain => Tier::Normal,
                    tier => tier,
                },
                gain,
                network: networks.fitting(self.network.index(), frame),
                cost: Duration::ZERO,
                last_chosen: self.last_chosen.min(now),
                residual,
                position,
                planned: selection == Selection::ByPlan,
            }
        }));
        ranked.drain(first..first + skipped);
        let kept = self.frames.take_kept();
        let dropped = kept.filter(|_| selection == Selection::ByPlan);
        ranked.extend(kept.filter(|_| dropped.is_none()));
        let own = &mut ranked[first..];
        for Ranked { candidate, network, cost, .. } in &mut *own {
            *cost = networks.predict(*network, self.captured, candidate.size);
        }
        order_stream(own, self.share.spent_s, self.share.share * spent_s);
        u64::from(dropped.is_some())
    }
}

/// Inputs that a stream needs to rank its frames.
pub(crate) struct Ranking<'a> {
    pub now: Duration,
    pub config: &'a SchedulerConfig,
    pub gains: &'a mut GainEstimator,
    pub networks: &'a Networks,
    /// Inference seconds that were spent on all streams lately.
    pub spent_s: f64,
}
