//! Takes candidates in order while they fit, and says of each what becomes of it.

use std::time::Duration;

use windlass_types::Refusal;

use crate::candidate::{Candidate, Captured, Chosen};
use crate::policy;
use crate::promise::time_of;
use crate::rank::Ranked;
use crate::scheduler::Scheduler;

/// Outcome of a candidate at a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Chosen {
        deadline: Duration,
        probe: bool,
    },
    /// The candidate waits for the next tick.
    Kept,
    OverFraction,
    Unchanged,
    OverCapacity,
    LostCause,
    Worthless,
    /// The candidate's stream is no longer known.
    Gone,
}

/// One pass over all candidates of a tick.
#[derive(Debug)]
struct Pass {
    now: Duration,
    /// Whether a candidate did not fit. Later ones must not spend what it saves up for.
    spent: bool,
    /// Whether the margin was lowered in this pass.
    doubted: bool,
}

impl Scheduler {
    /// Decides all ranked candidates; appends the chosen ones to `out`.
    pub(crate) fn select(&mut self, now: Duration, out: &mut Vec<Chosen>) {
        let mut pass = Pass { now, spent: false, doubted: false };
        let ranked = std::mem::take(&mut self.ranked);
        for candidate in &ranked {
            let fate = self.decide(candidate, &mut pass);
            if let Fate::Chosen { deadline, probe } = fate {
                self.choose(candidate, now, probe);
                let Ranked { candidate: frame, network, cost, .. } = *candidate;
                let Candidate { id, stream, size, .. } = frame;
                out.push(Chosen { id, stream, size, network, cost, deadline, probe });
            }
            match fate {
                Fate::Chosen { .. } => self.counters.chosen += 1,
                Fate::OverFraction => self.counters.over_fraction += 1,
                Fate::Unchanged => self.counters.unchanged += 1,
                Fate::OverCapacity => self.counters.over_capacity += 1,
                Fate::LostCause => self.counters.lost_causes += 1,
                Fate::Worthless => self.counters.worthless += 1,
                Fate::Kept | Fate::Gone => {}
            }
        }
        self.ranked = ranked;
    }

    fn decide(&mut self, ranked: &Ranked, pass: &mut Pass) -> Fate {
        let (now, frame) = (pass.now, &ranked.candidate);
        let Some(stream) = self.streams.get_mut(frame.stream) else { return Fate::Gone };
        let (policy, captured) = (stream.policy, stream.captured == Captured::Pictures);
        if self.networks.scale(ranked.network).is_none()
            || !stream.network.is_sustained() && !captured
        {
            return Fate::LostCause;
        }
        let deadline = policy.deadline(&self.config);
        let backlog_s = self.compute.backlog_s(self.config.devices);
        let cost_s = ranked.cost.as_secs_f64();
        let ready_s = now.saturating_sub(frame.arrival).as_secs_f64() + backlog_s + cost_s;
        let due_s = deadline.as_secs_f64() - self.margin.of(deadline);
        if ready_s > due_s {
            if self.compute.is_idle() {
                let misses = ready_s > deadline.as_secs_f64();
                self.doubt(ranked, misses, pass);
            }
            return Fate::LostCause;
        }
        if ranked.is_unchanged(now, policy.min_residual(&self.config)) {
            return Fate::Unchanged;
        }
        if !stream.quota.allows(frame.tier) || policy::fraction(policy, &self.config) <= 0.0 {
            return Fate::OverFraction;
        }
        let probe = stream.is_held_back();
        if probe && !stream.worth.is_probe_due(now) {
            stream.quota.spend();
            return Fate::Worthless;
        }
        // A patient stream leaves room for those that cannot wait: else overload would make all of their frames lost
        // causes. Among themselves patient streams leave no more room than calls would: else each would be served at
        // its last moment.
        let mixed = self.cadence.is_mixed();
        let max_backlog = if mixed { self.config.interval } else { self.config.deadline };
        let patient = deadline > self.config.deadline;
        if patient && backlog_s > max_backlog.as_secs_f64() {
            return Fate::OverCapacity;
        }
        pass.spent |= !self.compute.affords(cost_s);
        if !pass.spent {
            return Fate::Chosen { deadline, probe };
        }
        let has_time = ready_s + self.config.interval.as_secs_f64() <= due_s;
        let may_wait = has_time && !ranked.planned && stream.last_chosen < now;
        if may_wait && stream.frames.keep(ranked) { Fate::Kept } else { Fate::OverCapacity }
    }

    /// Decays the cost estimate of a frame that is blocked by its cost alone, so that it is tried and measured again.
    /// `misses`: the cost makes the frame late even without the margin.
    fn doubt(&mut self, ranked: &Ranked, misses: bool, pass: &mut Pass) {
        let frame = &ranked.candidate;
        let Some(stream) = self.streams.get_mut(frame.stream) else { return };
        if stream.captured == Captured::Pictures {
            return self.networks.captured_cost_mut().doubt(frame.size);
        }
        if stream.lateness.miss(pass.now, stream.captured != Captured::No) {
            self.promises.refuse(frame.stream, Some(Refusal::Slow));
        }
        if misses {
            if let Some(costs) = self.networks.costs_mut(ranked.network) {
                costs.doubt(frame.size);
            }
        } else if !std::mem::replace(&mut pass.doubted, true) {
            self.margin.doubt();
        }
    }

    /// Books a chosen candidate as an anchor, or as a probe.
    fn choose(&mut self, ranked: &Ranked, now: Duration, probe: bool) {
        let frame = &ranked.candidate;
        let Some(stream) = self.streams.get_mut(frame.stream) else { return };
        let cost_s = ranked.cost.as_secs_f64();
        self.compute.spend(cost_s);
        stream.share.spent_s += cost_s;
        stream.quota.spend();
        stream.last_chosen = now;
        stream.frames.mark_chosen(frame.id);
        if ranked.planned {
            stream.quota.earn_planned();
            let backlog = time_of(self.compute.backlog_s(self.config.devices));
            stream.promised.chosen(frame.arrival, now.saturating_add(backlog));
        }
        if probe {
            stream.worth.probes(now);
        }
    }
}
