//! The global anchor selector: one tick is plan, share, rank, earn, select, assign and close.

use std::time::Duration;

use windlass_types::{AnchorPolicy, Owner, StreamId};

use crate::cadence::Cadence;
use crate::candidate::{Candidate, Captured, Chosen};
use crate::compute::Compute;
use crate::config::SchedulerConfig;
use crate::cost::CostModel;
use crate::counters::SchedulerCounters;
use crate::gain::GainEstimator;
use crate::margin::Margin;
use crate::networks::{ASSIGN_EVERY, Demand, Networks, Room};
use crate::policy::{self, Policy};
use crate::promise::Promises;
use crate::rank::Ranked;
use crate::stream::{Ranking, Stream};
use crate::streams::Streams;

/// The global anchor selector.
///
/// ```
/// use std::time::Duration;
/// use windlass_scheduler::{Candidate, Scheduler, SchedulerConfig, Tier};
/// use windlass_types::{Size, StreamId};
///
/// let (mut scheduler, mut chosen) = (Scheduler::new(SchedulerConfig::default()), Vec::new());
/// let key = |id, arrival| Candidate {
///     id, stream: StreamId(1), tier: Tier::Key, bytes: 9_000, size: Size::new(320, 180), arrival,
///     per_mille: 1000, scale: 2, max_scale: 2,
/// };
/// // A frame that comes too late for its deadline is a lost cause; the one after it is in time.
/// scheduler.push(key(1, Duration::from_millis(500)));
/// scheduler.push(key(2, Duration::from_millis(990)));
/// scheduler.tick(Duration::from_secs(1), &mut chosen);
/// assert_eq!(chosen.iter().map(|frame| frame.id).collect::<Vec<_>>(), [2]);
/// assert_eq!(scheduler.counters().lost_causes, 1);
/// ```
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) config: SchedulerConfig,
    pub(crate) streams: Streams,
    pub(crate) networks: Networks,
    pub(crate) compute: Compute,
    pub(crate) cadence: Cadence,
    pub(crate) promises: Promises,
    pub(crate) margin: Margin,
    pub(crate) counters: SchedulerCounters,
    gains: GainEstimator,
    /// The candidates of the tick under way, in the order in which they are decided.
    pub(crate) ranked: Vec<Ranked>,
}

impl Scheduler {
    /// Creates a selector without streams.
    pub fn new(config: SchedulerConfig) -> Self {
        Scheduler {
            networks: Networks::new(&config.networks),
            config,
            streams: Streams::default(),
            compute: Compute::default(),
            cadence: Cadence::default(),
            promises: Promises::default(),
            margin: Margin::default(),
            counters: SchedulerCounters::default(),
            gains: GainEstimator::default(),
            ranked: Vec::new(),
        }
    }

    /// Takes the next decoded frame of a stream, in decoding order. Gives back the candidate that
    /// had to go for it, when the stream has more than it may keep.
    pub fn push(&mut self, candidate: Candidate) -> Option<Candidate> {
        self.counters.considered += 1;
        let stream = self.streams.get_or_new(candidate.stream, candidate.arrival);
        stream.last_seen = stream.last_seen.max(candidate.arrival);
        stream.promised.saw(candidate.arrival);
        stream.quota.frame(&candidate, stream.policy, &self.config);
        let intervals = policy::intervals(stream.policy, &self.config) as usize;
        let evicted = stream.frames.push(candidate, self.config.frames_per_stream, intervals);
        self.counters.overflowed += u64::from(evicted.is_some());
        evicted
    }

    /// Sets how many inferences can run side by side: an accelerator was lost, or is back. Only the
    /// laboratory's simulations do so.
    pub fn set_devices(&mut self, devices: u32) {
        self.config.devices = devices;
    }

    /// Sets the policy by which a stream's anchors are chosen from the next tick on. The new policy also decides frames
    /// that the old one still held. For an unknown stream, it holds from its first frame on.
    pub fn set_policy(&mut self, stream: StreamId, policy: AnchorPolicy, now: Duration) {
        self.set_policy_by(stream, policy::of(policy), now);
    }

    /// Chooses a stream's anchors by a policy of the caller's own, as [`set_policy`](Self::set_policy) does by a named
    /// one.
    pub fn set_policy_by(&mut self, stream: StreamId, policy: &'static dyn Policy, now: Duration) {
        let known = self.streams.get_or_new(stream, now);
        if std::mem::replace(&mut known.policy, policy).name() != policy.name() {
            self.promises.left(stream);
        }
    }

    /// Sets the room and publisher of a known stream; until then it counts as alone in its room.
    pub fn set_owner(&mut self, stream: StreamId, owner: Owner) {
        self.streams.set_owner(stream, owner);
    }

    /// Sets what the publisher gives of its own pictures of a stream.
    pub fn set_captured(&mut self, id: StreamId, captured: Captured) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.captured = captured;
        if captured != Captured::No && stream.lateness.captured() {
            self.promises.refuse(id, None);
        }
    }

    /// Takes the measured worth of a stream's enhanced anchor or probe: the mean gain in dB over the time that it is
    /// shown.
    pub fn measured(&mut self, id: StreamId, db: f64, now: Duration) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.worth.measured(db, now);
        }
    }

    /// Whether a stream makes only probes, because its recent enhanced anchors had no worth.
    pub fn is_held_back(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(Stream::is_held_back)
    }

    /// Whether no network is to run for a stream but as a probe: it is worth nothing, or cannot be sustained.
    pub fn runs_no_network(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_some_and(|stream| !stream.network.is_sustained() || stream.is_held_back())
    }

    /// Number of streams that make only probes, because their recent enhanced anchors had no worth.
    pub fn held_back(&self) -> usize {
        self.streams.iter().filter(|(_, stream)| stream.is_held_back()).count()
    }

    /// Mean worth of enhanced anchors lately, in dB, over the streams for which it was measured; `None` without any.
    pub fn worth_db(&self) -> Option<f64> {
        let known = self.streams.iter().filter_map(|(_, stream)| stream.worth.db());
        let (sum, count) = known.fold((0.0, 0u32), |(sum, count), db| (sum + db, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Changes the limits, from the next tick on. Networks, interval and devices must stay as they are.
    pub fn retune(&mut self, change: impl FnOnce(&mut SchedulerConfig)) {
        change(&mut self.config);
    }

    /// Whether a stream's frame was held for a later tick than the last.
    pub fn holds(&self, stream: StreamId, id: u64) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.frames.holds(id))
    }

    /// Number of accelerators that would give all streams the anchors that their fractions allow, in the last second.
    /// It is NeuroScaler §5.2's signal for autoscaling, `⌈ΣT_DNN ÷ T_intv⌉`.
    pub fn devices_wanted(&self) -> u32 {
        devices_for(self.networks.demand_s(), self.config.compute_cap)
    }

    /// Seconds of accelerators that all streams would take in each second: [`devices_wanted`](Self::devices_wanted)
    /// before division and rounding. Sums over servers stay exact, because no remainder counts as a whole accelerator.
    pub fn demand(&self) -> f64 {
        self.networks.demand_s()
    }

    /// Forgets a stream and its candidates.
    pub fn forget(&mut self, stream: StreamId) {
        self.promises.left(stream);
        let gone = self.streams.remove(stream);
        let had_kept = gone.is_some_and(|gone| gone.frames.has_kept());
        self.counters.over_capacity += u64::from(had_kept);
    }

    /// Books what a chosen frame really cost. `took` is `None` if it was dropped before running. The difference to the
    /// expected cost goes back to the compute that may be spent, or comes out of it.
    pub fn finished(&mut self, chosen: &Chosen, took: Option<Duration>) {
        self.compute.settle(chosen.cost, took.unwrap_or_default());
        if let (Some(took), Some(costs)) = (took, self.networks.costs_mut(chosen.network)) {
            costs.observe(chosen.size, took);
        }
    }

    /// Books what a chosen frame really cost if it became an anchor without its network. It teaches nothing about the
    /// network's cost.
    pub fn finished_without_network(&mut self, chosen: &Chosen, took: Duration) {
        self.compute.settle(chosen.cost, took);
        self.networks.captured_cost_mut().observe(chosen.size, took);
    }

    /// Notes that a frame of a stream became an anchor in time.
    pub fn served(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.lateness.served() {
            self.promises.refuse(id, None);
        }
    }

    /// Notes whether a chosen frame was given up because it was late. Later frames are then chosen with more time to
    /// spare.
    pub fn was_late(&mut self, late: bool) {
        self.margin.learn(late, self.config.deadline);
    }

    /// Decides every waiting candidate; appends the chosen ones to `out` in running order.
    pub fn tick(&mut self, now: Duration, out: &mut Vec<Chosen>) {
        self.cadence.advance();
        self.plan(now);
        self.streams.update_shares(self.compute.since_last_tick(now));
        self.rank(now);
        let costliest = self.ranked.iter().map(|ranked| ranked.cost);
        let costliest = costliest.fold(self.promises.costliest(), Duration::max).as_secs_f64();
        self.compute.earn(now, &self.config, self.cadence.shortest(), costliest);
        self.select(now, out);
        self.assign_networks(now);
        self.close(now);
    }

    /// The scale of a stream's next pictures; `None` if the stream is not known.
    pub fn scale(&self, stream: StreamId) -> Option<usize> {
        self.networks.scale(self.streams.get(stream)?.network.index())
    }

    /// Number of streams that each network served at the last tick.
    pub fn assigned(&self) -> &[usize] {
        self.networks.in_use()
    }

    /// Counts of all candidates so far, by what became of them.
    pub fn counters(&self) -> SchedulerCounters {
        self.counters
    }

    /// Measured inference cost by picture size, for each network.
    pub fn costs(&self) -> &[CostModel] {
        self.networks.costs()
    }

    /// Ranks the candidates of all streams that are decided at this tick.
    fn rank(&mut self, now: Duration) {
        self.ranked.clear();
        let config = &self.config;
        let until = now.saturating_add(config.interval);
        let spent_s = self.streams.spent_s();
        let (gains, networks) = (&mut self.gains, &self.networks);
        let mut ranking = Ranking { now, config, gains, networks, spent_s };
        for (id, stream) in self.streams.iter_mut() {
            let every = policy::intervals(stream.policy, config);
            stream.due = self.cadence.is_due(id, every);
            if !stream.due {
                continue;
            }
            stream.begin_decision(config);
            let skipped = stream.take_unplanned(until);
            if self.promises.refuses(id) {
                self.counters.refused += skipped as u64;
            } else {
                self.counters.not_planned += skipped as u64;
            }
            self.counters.over_capacity += stream.rank(&mut ranking, skipped, &mut self.ranked);
        }
        self.ranked.sort_unstable_by_key(Ranked::rank);
    }

    /// Decides once a second by which network each stream's anchors are made.
    fn assign_networks(&mut self, now: Duration) {
        let Some(elapsed) = self.networks.begin_assignment(now) else { return };
        let demands = self.streams.iter_mut().map(|(_, stream)| Demand {
            size: stream.size,
            rate: stream.quota.take_rate(elapsed),
            network: stream.network.index(),
            max_scale: stream.max_scale,
            // The rate of a new stream is not known yet.
            may_grow: stream.network.may_grow(now)
                && now.saturating_sub(stream.first_seen) >= ASSIGN_EVERY,
            captured: stream.captured != Captured::No,
            held_back: stream.is_held_back(),
        });
        let room = Room {
            capacity: self.config.capacity_s(Duration::from_secs(1)),
            deadline: self.config.deadline,
            max_pixels: self.config.max_pixels,
        };
        self.networks.assign(demands, &room);
        let streams = self.streams.iter_mut();
        self.networks.apply(now, streams.map(|(_, s)| (&mut s.network, s.max_scale)));
    }

    /// Carries residuals over to the next interval and forgets candidates and silent streams.
    fn close(&mut self, now: Duration) {
        let (forget_after, counters) = (self.config.forget_after, &mut self.counters);
        self.streams.retain(|stream| {
            if stream.due {
                stream.frames.close();
            }
            let stays = now.saturating_sub(stream.last_seen) < forget_after;
            counters.over_capacity += u64::from(!stays && stream.frames.has_kept());
            stays
        });
        self.networks.count(self.streams.iter().map(|(_, stream)| &stream.network));
    }
}

/// Number of accelerators for a load of `demand`, in accelerators that work without a pause, if each may work for a
/// share `compute_cap` of its time: NeuroScaler §5.2.
pub fn devices_for(demand: f64, compute_cap: f64) -> u32 {
    let capped = compute_cap.is_finite() && compute_cap > 0.0;
    let cap = if capped { compute_cap.min(1.0) } else { 1.0 };
    // A hair less than whole is whole.
    (demand / cap - 1e-9).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}
