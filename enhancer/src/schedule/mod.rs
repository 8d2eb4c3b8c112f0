//! Which frames become anchors: zero-inference selection under a compute cap.
//!
//! Source: NeuroScaler §5.1 (selection), §5.2 (global selector) and Appendix A (Algorithm 1), with the
//! latency-sensitive interval of 66 ms.
//!
//! Pure: no clocks, threads or randomness. Every time is a [`Duration`] since one origin that the
//! caller keeps to; the same calls give the same choice, in whatever order streams were pushed.
//!
//! In: one [`Candidate`] per decoded frame, what inference really cost ([`Scheduler::finished`]),
//! and a [`Scheduler::tick`] per interval. Out: [`Chosen`] frames, in the order to run them.
//! Every candidate of an interval is decided at its tick and then forgotten; but of a stream that got nothing because compute was
//! spent, the best frame that can still be in time waits for the next tick.
//!
//! **Fairness.** NeuroScaler compares the frames of all streams by tier and gain. Here that holds among streams that have had no more
//! and no less than their fair share ([`shares`]) of what was spent lately, but for an anchor; whoever is behind goes before them, and
//! whoever is ahead comes after. So key frames, which a stream may have as many of as it likes, go before everything within their
//! stream's share, and not beyond.
//!
//! ```
//! use std::time::Duration;
//! use windlass_enhancer::schedule::{Candidate, Scheduler, SchedulerConfig, Tier};
//! use windlass_types::StreamId;
//!
//! let mut scheduler = Scheduler::new(SchedulerConfig::default());
//! scheduler.push(Candidate {
//!     id: 7,
//!     stream: StreamId(1),
//!     tier: Tier::Key,
//!     bytes: 9_000,
//!     width: 320,
//!     height: 180,
//!     arrival: Duration::from_millis(10),
//!     per_mille: 1000,
//!     scale: 2,
//!     most_scale: 4,
//! });
//! let mut chosen = Vec::new();
//! scheduler.tick(Duration::from_millis(66), &mut chosen);
//! assert_eq!(chosen[0].id, 7);
//! ```

pub mod admission;
mod cost;
mod gain;
pub mod jct;
mod margin;
pub mod memory;
mod networks;
pub mod pace;
mod planned;
pub mod policy;
pub mod promise;
pub mod queue;
pub mod regions;
pub mod shares;
pub mod slots;
pub mod subjects;
pub mod tiles;
pub mod worth;

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use windlass_types::{AnchorPolicy, Owner, Refusal, StreamId};

pub use cost::CostModel;
pub use gain::GainEstimator;
use margin::Margin;
pub use networks::NetworkCost;
use networks::{Assigner, Demand, Room};
pub use policy::Policy;
pub use promise::Terms;
use promise::{Promised, Promises};
pub use regions::{RegionConfig, RegionLedger, Request, energy_by_tile, stakes};
use shares::Shares;
pub use subjects::Subjects;
pub use tiles::{TileConfig, TileEnergy, TileLedger};
use worth::Worth;

/// How strongly other frames depend on a frame; the first tier is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// A key frame: everything after it depends on it.
    Key,
    /// Refreshes the golden or the alternative reference (Chromium's real-time VP9 has no
    /// invisible alternative references; golden refreshes take their place).
    Golden,
    /// Any other frame.
    Normal,
}

/// A decoded frame that may become an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The caller's name for it, given back in [`Chosen`].
    pub id: u64,
    /// Whose frame it is.
    pub stream: StreamId,
    /// How strongly other frames depend on it.
    pub tier: Tier,
    /// Encoded size in bytes: stands for its residual.
    pub bytes: u32,
    /// Width of the LR picture in pixels.
    pub width: u32,
    /// Height of the LR picture in pixels.
    pub height: u32,
    /// When it reached the SFU.
    pub arrival: Duration,
    /// Most anchors of a thousand frames of its stream; the operator's fraction holds as well.
    pub per_mille: u16,
    /// Width of its anchor's picture over its own.
    pub scale: usize,
    /// By how much its stream's pictures may be enlarged.
    pub most_scale: usize,
}

/// What a publisher gives of its own pictures of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Captured {
    /// Nothing.
    #[default]
    No,
    /// Stills, coded as anchors, which it is asked for.
    Stills,
    /// Pictures of its frames, of which anchors are made here without a network.
    Pictures,
}

/// A frame to make an anchor of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The candidate's id.
    pub id: u64,
    /// Whose frame it is.
    pub stream: StreamId,
    /// Width of the LR picture in pixels.
    pub width: u32,
    /// Height of the LR picture in pixels.
    pub height: u32,
    /// Which of [`SchedulerConfig::networks`] is to run.
    pub network: usize,
    /// What the cost model expects it to cost; hand it back to [`Scheduler::finished`].
    pub cost: Duration,
    /// From the frame's arrival to its anchor coded: later it is of no use.
    pub deadline: Duration,
    /// Its stream's anchors were worth nothing lately: it is made to see whether they are again, and sent if so.
    pub probe: bool,
}

/// What the operator allows, and how the selection looks ahead.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerConfig {
    /// T_intv: time between two ticks. Shorter is sooner, longer chooses better.
    pub interval: Duration,
    /// How many inferences run side by side.
    pub devices: u32,
    /// Share of the devices' time that inference may take, 0 to 1.
    pub compute_cap: f64,
    /// Most anchors per frame of a stream, 0 to 1: anchors cost bytes on every subscriber's link.
    pub anchor_fraction: f64,
    /// Residual since the last anchor, in bytes per LR pixel, below which another one would tell
    /// nothing new: on a screen that stands still it would only cost bits.
    pub least_residual: f64,
    /// From a frame's arrival to its anchor coded; what cannot meet it is a lost cause.
    pub deadline: Duration,
    /// How many frames after the interval an anchor is expected to last when no key frame is in
    /// sight (a call has no periodic ones).
    pub horizon: u32,
    /// Most candidates kept for a stream by interval; beyond it the oldest goes.
    pub frames_per_stream: usize,
    /// The networks that anchors can be made by, by scale, then the cheapest and worst first. At least one.
    pub networks: Vec<NetworkCost>,
    /// Most pixels of an HR picture, beyond the least scale: browsers make all of them.
    pub most_pixels: u64,
    /// A stream without frames for so long is forgotten.
    pub forget_after: Duration,
    /// What streams of the policy `quality-sla` are promised.
    pub terms: Terms,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig {
            interval: Duration::from_millis(66),
            devices: 1,
            compute_cap: 1.0,
            anchor_fraction: 0.033,
            least_residual: 1.0 / 64.0,
            deadline: Duration::from_millis(140),
            horizon: 30,
            frames_per_stream: 16,
            networks: vec![NetworkCost { scale: 2, per_pixel: Duration::from_nanos(300) }],
            most_pixels: 1280 * 720,
            forget_after: Duration::from_secs(10),
            terms: Terms::default(),
        }
    }
}

impl SchedulerConfig {
    /// Inference time that one interval offers, in seconds.
    fn capacity_s(&self, elapsed: Duration) -> f64 {
        let cap = if self.compute_cap.is_finite() { self.compute_cap.clamp(0.0, 1.0) } else { 0.0 };
        elapsed.as_secs_f64() * f64::from(self.devices) * cap
    }
}

/// What became of all candidates so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedulerCounters {
    /// Candidates pushed.
    pub considered: u64,
    /// Candidates chosen.
    pub chosen: u64,
    /// Passed over: the stream had its share of anchors.
    pub over_fraction: u64,
    /// Passed over: hardly anything had changed since the stream's last anchor.
    pub unchanged: u64,
    /// Passed over: the interval's compute was spent.
    pub over_capacity: u64,
    /// Dropped: could not have met the deadline even if started at once.
    pub lost_causes: u64,
    /// Dropped before the tick: more candidates than a stream may keep.
    pub overflowed: u64,
    /// Passed over: the plan that keeps the promise to all wants other frames of the stream.
    pub not_planned: u64,
    /// Passed over: the stream's anchors would break the promise to others.
    pub refused: u64,
    /// Passed over: the stream's anchors were worth nothing lately. As many as it would have had else.
    pub worthless: u64,
}

impl AddAssign for SchedulerCounters {
    fn add_assign(&mut self, other: SchedulerCounters) {
        self.considered += other.considered;
        self.chosen += other.chosen;
        self.over_fraction += other.over_fraction;
        self.unchanged += other.unchanged;
        self.over_capacity += other.over_capacity;
        self.lost_causes += other.lost_causes;
        self.overflowed += other.overflowed;
        self.not_planned += other.not_planned;
        self.refused += other.refused;
        self.worthless += other.worthless;
    }
}

/// One stream between ticks.
#[derive(Debug)]
struct Stream {
    /// The interval's frames in decoding order.
    frames: Vec<Candidate>,
    /// Residual accumulated since the last key frame or anchor before them, in bytes.
    carried: u64,
    /// Anchors that the fraction still allows: at most one is saved, at most one borrowed.
    allowance: f64,
    /// When it last got an anchor: the longest without goes first among equals.
    last_chosen: Duration,
    last_seen: Duration,
    /// What its anchors are made by.
    network: usize,
    /// When the scale of that last changed.
    rescaled: Option<Duration>,
    /// How often it could not be sustained lately.
    falls: u32,
    most_scale: usize,
    first_seen: Duration,
    /// Anchors that the fraction has allowed since networks were last assigned.
    earned: f64,
    /// Width and height of its last picture.
    size: (u32, u32),
    policy: &'static dyn Policy,
    /// Its frames are decided at the tick that is under way.
    due: bool,
    /// For the policy `quality-sla`.
    promised: Promised,
    /// Most anchors by frame, of the stream itself.
    most: f64,
    /// Of which room and publisher, and what share it has by that.
    owner: Owner,
    share: f64,
    /// Inference seconds that were spent on it lately.
    spent: f64,
    /// Since when none of its frames was in time, of which some could not have been though nothing else was in their way; and whether that
    /// was told.
    slow: Option<Duration>,
    told_slow: bool,
    /// Its best frame of the last tick, where compute was spent before any of them had its turn.
    kept: Option<Entry>,
    /// What its enhanced anchors are worth.
    worth: Worth,
    /// What its publisher gives of its own pictures: for those no network runs.
    captured: Captured,
    /// Its network cannot be sustained, and has only the scale of its publisher's own pictures.
    too_dear: bool,
}

impl Stream {
    fn new(id: StreamId, arrival: Duration) -> Self {
        Stream {
            frames: Vec::new(),
            carried: 0,
            allowance: 1.0,
            last_chosen: Duration::ZERO,
            last_seen: arrival,
            network: 0,
            rescaled: None,
            falls: 0,
            most_scale: 0,
            first_seen: arrival,
            earned: 0.0,
            size: (0, 0),
            policy: policy::of(AnchorPolicy::default()),
            due: false,
            promised: Promised::default(),
            most: 1.0,
            owner: Owner::alone(id),
            share: 1.0,
            spent: 0.0,
            slow: None,
            told_slow: false,
            kept: None,
            worth: Worth::default(),
            captured: Captured::No,
            too_dear: false,
        }
    }
}

impl Stream {
    /// Whether it makes no anchors but probes.
    fn is_held_back(&self) -> bool {
        self.worth.holds_back() && self.captured != Captured::Pictures && self.policy.weighs()
    }
}

/// One candidate among those of all streams.
#[derive(Debug, Clone, Copy)]
struct Entry {
    candidate: Candidate,
    /// By how much its stream would be ahead of its fair share, or behind it, in steps of some anchors.
    ahead: i32,
    tier: Tier,
    gain: u64,
    network: usize,
    /// What its anchor is expected to cost.
    cost: Duration,
    last_chosen: Duration,
    /// Residual accumulated up to and with this frame, in bytes.
    residual: u64,
    position: usize,
    /// A plan wants it.
    planned: bool,
}

impl Entry {
    /// Where it is among all; the least first.
    fn rank(&self) -> impl Ord + use<> {
        let Entry { ahead, tier, last_chosen, position, planned, .. } = *self;
        let (gain, stream) = (std::cmp::Reverse(self.gain), self.candidate.stream);
        (!planned, ahead, tier, gain, last_chosen, stream, position, self.candidate.id)
    }

    /// Whether the last anchor still says all there is to say about this frame.
    fn is_unchanged(&self, now: Duration, least_residual: f64) -> bool {
        let c = &self.candidate;
        let least = f64::from(c.width) * f64::from(c.height) * least_residual;
        c.tier != Tier::Key
            && (self.residual as f64) < least
            && now.saturating_sub(self.last_chosen) < REFRESH
    }
}

/// A stream whose scale has changed is not enlarged by more for so long: its viewers see each change. Twice as long for each
/// time that it could not be sustained, which is forgotten after so long without.
const SETTLE: Duration = Duration::from_secs(10);
const MOST_DOUBLINGS: u32 = 5;
const FORGIVEN: Duration = Duration::from_secs(60);

/// Between two assignments of networks.
const ASSIGN_EVERY: Duration = Duration::from_secs(1);

/// Overruns are paid back by no more than what may be spent in this time: where a thread lost its core for minutes, streams are not
/// kept waiting for as long.
const MOST_OWED: Duration = Duration::from_secs(2);

/// What an anchor of the publisher's own picture is taken to cost for each LR pixel before one was made.
const CAPTURED_PER_PIXEL: Duration = Duration::from_nanos(150);

/// A stream is told that no network is fast enough when none of its frames could have been in time for so long.
const SLOW: Duration = Duration::from_secs(4);

/// What was spent on a stream counts half after so long.
const SPENT_HALVES: Duration = Duration::from_millis(1500);
/// Streams that are ahead of their fair share, or behind it, by as many anchors to so many count as equally so.
const ANCHORS_AHEAD: f64 = 2.0;

/// An unchanged picture gets an anchor all the same after this time: the last may have been lost.
const REFRESH: Duration = Duration::from_secs(5);

/// The global anchor selector.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    /// Of each network.
    costs: Vec<CostModel>,
    /// Of anchors made of the publisher's own pictures.
    captured_cost: CostModel,
    scales: Vec<usize>,
    assigner: Assigner,
    /// How many streams have each network.
    in_use: Vec<usize>,
    gains: GainEstimator,
    streams: BTreeMap<StreamId, Stream>,
    shares: Shares,
    /// Streams have come or gone since shares were computed, or have other owners.
    regroup: bool,
    /// Inference seconds that may still be spent; below zero after an overrun.
    credit_s: f64,
    /// Expected seconds of chosen work that has not finished.
    outstanding_s: f64,
    last_tick: Option<Duration>,
    assigned: Option<Duration>,
    merged: Vec<Entry>,
    counters: SchedulerCounters,
    ticks: u64,
    /// Ticks of the shortest interval of any stream, and whether others have longer ones.
    shortest: u64,
    mixed: bool,
    /// Inference seconds that all streams together would take of a second, were there no cap.
    demand_s: f64,
    promises: Promises,
    /// Seconds of the costliest anchor that is planned for: between two such anchors compute is saved up.
    costliest_planned: f64,
    margin: Margin,
}

/// How many accelerators do `demand_s` seconds of inference in each second, where they may be used for a share `compute_cap` of their time: NeuroScaler §5.2.
pub fn devices_for(demand_s: f64, compute_cap: f64) -> u32 {
    let capped = compute_cap.is_finite() && compute_cap > 0.0;
    let cap = if capped { compute_cap.min(1.0) } else { 1.0 };
    // A hair less than whole is whole.
    (demand_s / cap - 1e-9).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}

impl Scheduler {
    /// A selector that has seen nothing.
    pub fn new(config: SchedulerConfig) -> Self {
        let costs = config.networks.iter().map(|n| CostModel::new(n.per_pixel)).collect();
        Scheduler {
            costs,
            captured_cost: CostModel::new(CAPTURED_PER_PIXEL),
            scales: config.networks.iter().map(|n| n.scale).collect(),
            assigner: Assigner::default(),
            in_use: vec![0; config.networks.len()],
            config,
            gains: GainEstimator::default(),
            streams: BTreeMap::new(),
            shares: Shares::default(),
            regroup: false,
            credit_s: 0.0,
            outstanding_s: 0.0,
            last_tick: None,
            assigned: None,
            merged: Vec::new(),
            counters: SchedulerCounters::default(),
            ticks: 0,
            shortest: 1,
            mixed: false,
            demand_s: 0.0,
            promises: Promises::default(),
            costliest_planned: 0.0,
            margin: Margin::default(),
        }
    }

    /// Takes the next decoded frame of a stream, in decoding order. Gives back the candidate that
    /// had to go for it, when the stream has more than it may keep.
    pub fn push(&mut self, candidate: Candidate) -> Option<Candidate> {
        self.counters.considered += 1;
        let (regroup, id) = (&mut self.regroup, candidate.stream);
        let stream = self.streams.entry(id).or_insert_with(|| {
            *regroup = true;
            Stream::new(id, candidate.arrival)
        });
        stream.last_seen = stream.last_seen.max(candidate.arrival);
        let mut evicted = None;
        stream.promised.saw(candidate.arrival);
        stream.most = f64::from(candidate.per_mille) / 1000.0;
        let policy = stream.policy;
        if !policy.plans() {
            stream.earned += share(policy, &self.config, &candidate);
        }
        let intervals = intervals(policy, &self.config) as usize;
        let most = self.config.frames_per_stream.max(1).saturating_mul(intervals).min(MOST_HELD);
        if stream.frames.len() >= most.max(self.config.frames_per_stream.max(1)) {
            let oldest = stream.frames.remove(0);
            stream.carried = accumulate(stream.carried, &oldest);
            self.counters.overflowed += 1;
            evicted = Some(oldest);
        }
        stream.frames.push(candidate);
        evicted
    }

    /// So many inferences can run side by side from now on: an accelerator was lost, or is back.
    pub fn set_devices(&mut self, devices: u32) {
        self.config.devices = devices;
    }

    /// Chooses a stream's anchors by another policy from the next tick on. Frames that the last one held are decided by the new
    /// one. A stream that it does not know has the policy from its first frame on.
    pub fn set_policy(&mut self, stream: StreamId, policy: AnchorPolicy, now: Duration) {
        self.set_policy_by(stream, policy::of(policy), now);
    }

    /// The same for a policy of the caller's own.
    pub fn set_policy_by(&mut self, stream: StreamId, policy: &'static dyn Policy, now: Duration) {
        let known = self.streams.entry(stream).or_insert_with(|| {
            self.regroup = true;
            Stream::new(stream, now)
        });
        if std::mem::replace(&mut known.policy, policy).name() != policy.name() {
            self.promises.left(stream);
        }
    }

    /// Says of which room and publisher a stream is that it knows; until then it counts as alone in its room.
    pub fn set_owner(&mut self, stream: StreamId, owner: Owner) {
        if let Some(stream) = self.streams.get_mut(&stream).filter(|stream| stream.owner != owner) {
            stream.owner = owner;
            self.regroup = true;
        }
    }

    /// Says what the publisher gives of its own pictures of a stream.
    pub fn set_captured(&mut self, id: StreamId, captured: Captured) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.captured = captured;
        if captured != Captured::No && std::mem::take(&mut stream.told_slow) {
            self.promises.tell(id, None);
        }
    }

    /// An enhanced anchor of a stream, or a probe, was worth so many dB in the mean over the time that it is shown.
    pub fn measured(&mut self, id: StreamId, db: f64, now: Duration) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.worth.measured(db, now);
        }
    }

    /// Whether a stream makes no enhanced anchors but probes, because they were worth nothing lately.
    pub fn is_held_back(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(Stream::is_held_back)
    }

    /// Whether no network is to run for a stream but as a probe: it is worth nothing, or cannot be sustained.
    pub fn runs_no_network(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.too_dear || stream.is_held_back())
    }

    /// How many streams are held back so.
    pub fn held_back(&self) -> usize {
        self.streams.values().filter(|stream| stream.is_held_back()).count()
    }

    /// What enhanced anchors are worth lately, in dB: the mean of the streams of which it was measured.
    pub fn worth_db(&self) -> Option<f64> {
        let known = self.streams.values().filter_map(|stream| stream.worth.db());
        let (sum, count) = known.fold((0.0, 0u32), |(sum, count), db| (sum + db, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Changes the limits, from the next tick on. Networks, interval and devices must stay as they are.
    pub fn retune(&mut self, change: impl FnOnce(&mut SchedulerConfig)) {
        change(&mut self.config);
    }

    /// Whether a stream's frame was held for a later tick than the last.
    pub fn holds(&self, stream: StreamId, id: u64) -> bool {
        self.streams.get(&stream).is_some_and(|stream| {
            stream.frames.iter().any(|frame| frame.id == id)
                || stream.kept.is_some_and(|kept| kept.candidate.id == id)
        })
    }

    /// How many accelerators would give all streams the anchors that their fractions allow: NeuroScaler §5.2's signal for autoscaling,
    /// `⌈ΣT_DNN ÷ T_intv⌉`, of the last second.
    pub fn devices_wanted(&self) -> u32 {
        devices_for(self.demand_s, self.config.compute_cap)
    }

    /// The same before it is divided and rounded: seconds of accelerators in each second. These may be added up over servers, where sums of
    /// rounded ones would count each server's remainder as a whole accelerator.
    pub fn demand(&self) -> f64 {
        self.demand_s
    }

    /// Forgets a stream and its candidates.
    pub fn forget(&mut self, stream: StreamId) {
        self.promises.left(stream);
        if let Some(gone) = self.streams.remove(&stream) {
            self.counters.over_capacity += u64::from(gone.kept.is_some());
            self.regroup = true;
        }
    }

    /// Says what a chosen frame really cost; `took` is `None` when it was dropped before running.
    /// The difference goes back to, or comes out of, the compute that may be spent.
    pub fn finished(&mut self, chosen: &Chosen, took: Option<Duration>) {
        self.settle(chosen, took.unwrap_or_default());
        if let (Some(took), Some(costs)) = (took, self.costs.get_mut(chosen.network)) {
            costs.observe(chosen.width, chosen.height, took);
        }
    }

    /// The same of a frame that became an anchor without its network: that says nothing of what the network costs.
    pub fn finished_without_network(&mut self, chosen: &Chosen, took: Duration) {
        self.settle(chosen, took);
        self.captured_cost.observe(chosen.width, chosen.height, took);
    }

    /// Says that a frame of a stream became an anchor in time.
    pub fn served(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.slow = None;
        if std::mem::take(&mut stream.told_slow) {
            self.promises.tell(id, None);
        }
    }

    /// Says whether a chosen frame was given up because it was late: those that follow are chosen with more time to spare, so that few are.
    pub fn was_late(&mut self, late: bool) {
        self.margin.learn(late, self.config.deadline);
    }

    fn settle(&mut self, chosen: &Chosen, took: Duration) {
        let expected = chosen.cost.as_secs_f64();
        self.outstanding_s = (self.outstanding_s - expected).max(0.0);
        self.credit_s += expected - took.as_secs_f64();
    }

    /// Decides every waiting candidate; appends the chosen ones to `out` in running order.
    pub fn tick(&mut self, now: Duration, out: &mut Vec<Chosen>) {
        self.ticks = self.ticks.wrapping_add(1);
        self.plan(now);
        self.share(now);
        self.merge(now);
        let costliest = self.merged.iter().map(|e| e.cost.as_secs_f64()).fold(0.0, f64::max);
        self.earn(now, costliest.max(self.costliest_planned));
        self.fill(now, out);
        self.assign(now);
        self.close(now);
    }

    /// Decides by which network each stream's anchors are made, now and then.
    fn assign(&mut self, now: Duration) {
        let last = *self.assigned.get_or_insert(now);
        let elapsed = now.saturating_sub(last);
        if elapsed < ASSIGN_EVERY {
            return;
        }
        self.assigned = Some(now);
        let demands = self.streams.values_mut().map(|stream| {
            let rate = std::mem::take(&mut stream.earned) / elapsed.as_secs_f64();
            let settled = stream.rescaled.map(|then| now.saturating_sub(then));
            let wait = SETTLE * (1 << stream.falls.min(MOST_DOUBLINGS));
            // The rate of one that has just come is not known yet.
            let may_grow = settled.is_none_or(|settled| settled >= wait)
                && now.saturating_sub(stream.first_seen) >= ASSIGN_EVERY;
            let Stream { size, network, most_scale, .. } = *stream;
            let captured = stream.captured != Captured::No;
            Demand { size, rate, network, most_scale, may_grow, captured }
        });
        self.assigner.demands.clear();
        self.assigner.demands.extend(demands);
        let room = Room {
            capacity: self.config.capacity_s(Duration::from_secs(1)),
            deadline: self.config.deadline,
            most_pixels: self.config.most_pixels,
        };
        self.demand_s = 0.0;
        for (demand, stream) in self.assigner.demands.iter().zip(self.streams.values()) {
            if stream.is_held_back() {
                continue;
            }
            let cost = self
                .costs
                .get(demand.network)
                .map_or(Duration::ZERO, |c| c.predict(demand.size.0, demand.size.1));
            self.demand_s += demand.rate * cost.as_secs_f64();
        }
        self.assigner.assign(&self.scales, &mut self.costs, &room);
        let assigned = self.assigner.networks.iter().zip(&self.assigner.too_dear);
        for (stream, (&network, &too_dear)) in self.streams.values_mut().zip(assigned) {
            let (old, new) = (self.scales.get(stream.network), self.scales.get(network));
            if new != old {
                let forced = new < old && old.is_some_and(|&old| old <= stream.most_scale);
                stream.falls += u32::from(forced);
                stream.rescaled = Some(now);
            } else if new > self.scales.first()
                && stream.rescaled.is_some_and(|then| now.saturating_sub(then) >= FORGIVEN)
            {
                stream.falls = 0;
            }
            (stream.network, stream.too_dear) = (network, too_dear);
        }
    }

    /// By how much the next pictures of a stream are to be enlarged; `None` of one that it does not know.
    pub fn scale(&self, stream: StreamId) -> Option<usize> {
        self.scales.get(self.streams.get(&stream)?.network).copied()
    }

    /// How many streams' anchors were made by each network at the last tick.
    pub fn assigned(&self) -> &[usize] {
        &self.in_use
    }

    /// What became of all candidates so far.
    pub fn counters(&self) -> SchedulerCounters {
        self.counters
    }

    /// The measured cost of inference by picture size, of each network.
    pub fn costs(&self) -> &[CostModel] {
        &self.costs
    }

    /// How many streams it remembers.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Gives each stream its fair share, and lets what was spent on it pass.
    fn share(&mut self, now: Duration) {
        if std::mem::take(&mut self.regroup) {
            let shares = self.shares.of(self.streams.values().map(|stream| stream.owner));
            for (stream, &share) in self.streams.values_mut().zip(shares) {
                stream.share = share;
            }
        }
        let elapsed = now.saturating_sub(self.last_tick.unwrap_or(now));
        let left = (-elapsed.as_secs_f64() / SPENT_HALVES.as_secs_f64()).exp2();
        self.streams.values_mut().for_each(|stream| stream.spent *= left);
    }

    /// Estimates gains stream by stream and sorts all candidates: those of streams within their fair share first, then by tier, then gain.
    fn merge(&mut self, now: Duration) {
        self.merged.clear();
        let (config, ticks) = (&self.config, self.ticks);
        let all: f64 = self.streams.values().map(|stream| stream.spent).sum();
        let (mut shortest, mut longest) = (u64::MAX, 0);
        for (&id, stream) in &mut self.streams {
            let policy = stream.policy;
            let every = intervals(policy, config);
            (shortest, longest) = (shortest.min(every), longest.max(every));
            stream.due = is_due(id, ticks, every);
            if !stream.due {
                continue;
            }
            let share = |frame: &Candidate| share(policy, config, frame);
            stream.allowance =
                stream.allowance.min(1.0) + stream.frames.iter().map(share).sum::<f64>();
            if let Some(last) = stream.frames.last() {
                stream.size = (last.width, last.height);
                stream.most_scale = last.most_scale;
            }
            let planned = policy.plans();
            let mut passed = 0;
            if planned {
                // The newest, as many as begin before the next tick.
                let wanted =
                    stream.promised.take_wanted(now.saturating_add(config.interval).as_secs_f64());
                passed = stream.frames.len().saturating_sub(wanted);
                if self.promises.refuses(id) {
                    self.counters.refused += passed as u64;
                } else {
                    self.counters.not_planned += passed as u64;
                }
            }
            let gains = policy.gains(&stream.frames, stream.carried, config, &mut self.gains);
            let mut residual = stream.carried;
            let first = self.merged.len();
            self.merged.extend(stream.frames.iter().zip(gains).enumerate().map(
                |(position, (candidate, gain))| {
                    residual = accumulate(residual, candidate);
                    Entry {
                        candidate: *candidate,
                        ahead: 0,
                        tier: match candidate.tier {
                            Tier::Golden if !policy.ranks_frames() => Tier::Normal,
                            tier => tier,
                        },
                        gain: *gain,
                        network: fitting(&self.scales, stream.network, candidate.scale),
                        cost: Duration::ZERO,
                        last_chosen: stream.last_chosen.min(now),
                        residual,
                        position,
                        planned,
                    }
                },
            ));
            self.merged.drain(first..first + passed);
            match stream.kept.take() {
                Some(_) if planned => self.counters.over_capacity += 1,
                kept => self.merged.extend(kept),
            }
            let own = &mut self.merged[first..];
            for entry in &mut *own {
                let costs = match stream.captured {
                    Captured::Pictures => Some(&self.captured_cost),
                    _ => self.costs.get(entry.network),
                };
                let size = (entry.candidate.width, entry.candidate.height);
                entry.cost = costs.map_or(Duration::ZERO, |costs| costs.predict(size.0, size.1));
            }
            own.sort_unstable_by_key(Entry::rank);
            let mut spent = stream.spent;
            for entry in own {
                let cost = entry.cost.as_secs_f64();
                let ahead = (spent - stream.share * all) / (ANCHORS_AHEAD * cost).max(1e-9);
                // What is no number is nothing.
                entry.ahead = ahead.round() as i32;
                spent += cost;
            }
        }
        (self.shortest, self.mixed) = (shortest.min(longest).max(1), shortest < longest);
        self.merged.sort_unstable_by_key(Entry::rank);
    }

    /// Adds the compute of the time since the last tick. What is saved up is bounded by one
    /// interval (the shortest of any stream's policy) and the costliest candidate, so that a picture that needs more than one interval
    /// is served in the end, and idle time is not spent in a burst.
    fn earn(&mut self, now: Duration, costliest_s: f64) {
        let interval = self.config.interval;
        let elapsed = self.last_tick.map_or(interval, |last| now.saturating_sub(last));
        self.last_tick = Some(now);
        let shortest = interval.saturating_mul(u32::try_from(self.shortest).unwrap_or(u32::MAX));
        let most = self.config.capacity_s(shortest) + costliest_s;
        let earned = self.config.capacity_s(elapsed.min(interval.saturating_mul(4)));
        let owed = self.config.capacity_s(MOST_OWED);
        self.credit_s = (self.credit_s.max(-owed) + earned).min(most);
    }

    /// Takes candidates in order while they fit.
    fn fill(&mut self, now: Duration, out: &mut Vec<Chosen>) {
        let devices = f64::from(self.config.devices.max(1));
        let (mut spent, mut doubted) = (false, false);
        for entry in &self.merged {
            let candidate = &entry.candidate;
            let Some(stream) = self.streams.get_mut(&candidate.stream) else { continue };
            let (width, height) = (candidate.width, candidate.height);
            let (network, policy) = (entry.network, stream.policy);
            let deadline = policy.deadline(&self.config);
            let Some(costs) = self.costs.get_mut(network) else {
                self.counters.lost_causes += 1;
                continue;
            };
            let own = stream.captured == Captured::Pictures;
            if stream.too_dear && !own {
                self.counters.lost_causes += 1;
                continue;
            }
            let (cost, cost_s) = (entry.cost, entry.cost.as_secs_f64());
            let age_s = now.saturating_sub(candidate.arrival).as_secs_f64();
            let ready_s = age_s + self.outstanding_s / devices + cost_s;
            let deadline_s = deadline.as_secs_f64();
            if ready_s > deadline_s - self.margin.of(deadline) {
                self.counters.lost_causes += 1;
                // With nothing else in its way, only a measurement can show that this is still so.
                if self.outstanding_s <= 0.0 && own {
                    self.captured_cost.doubt(width, height);
                } else if self.outstanding_s <= 0.0 {
                    let since = *stream.slow.get_or_insert(now);
                    let told = stream.told_slow || stream.captured != Captured::No;
                    if !told && now.saturating_sub(since) >= SLOW {
                        stream.told_slow = true;
                        self.promises.tell(candidate.stream, Some(Refusal::Slow));
                    }
                    if ready_s > deadline_s {
                        costs.doubt(width, height);
                    } else if !std::mem::replace(&mut doubted, true) {
                        self.margin.doubt();
                    }
                }
                continue;
            }
            if entry.is_unchanged(now, policy.least_residual(&self.config)) {
                self.counters.unchanged += 1;
                continue;
            }
            // A key frame may borrow its anchor, so that a scene never begins without one.
            let needed = if candidate.tier == Tier::Key { 0.0 } else { 1.0 };
            if stream.allowance < needed || fraction(policy, &self.config) <= 0.0 {
                self.counters.over_fraction += 1;
                continue;
            }
            let probe = stream.is_held_back();
            if probe && !stream.worth.is_probe_due(now) {
                stream.allowance -= 1.0;
                self.counters.worthless += 1;
                continue;
            }
            // Who can wait leaves room for those who cannot: a backlog that overload keeps up would make theirs all lost causes.
            // And among themselves they leave no more than calls would: or each would come at the last moment.
            let most = if self.mixed { self.config.interval } else { self.config.deadline };
            let patient = deadline > self.config.deadline;
            if patient && self.outstanding_s / devices > most.as_secs_f64() {
                self.counters.over_capacity += 1;
                continue;
            }
            // The first that does not fit ends the interval: cheap frames behind it must not
            // spend what it is saving up for. Without any compute there are none, even if they cost nothing.
            spent |= cost_s > self.credit_s || self.credit_s <= 0.0;
            if spent {
                let next = ready_s + self.config.interval.as_secs_f64();
                let has_time = next <= deadline_s - self.margin.of(deadline);
                if has_time && !entry.planned && stream.kept.is_none() && stream.last_chosen < now {
                    stream.kept = Some(*entry);
                } else {
                    self.counters.over_capacity += 1;
                }
                continue;
            }
            self.credit_s -= cost_s;
            self.outstanding_s += cost_s;
            stream.spent += cost_s;
            stream.allowance -= 1.0;
            stream.last_chosen = now;
            if entry.planned {
                stream.earned += 1.0;
                let ready = now.as_secs_f64() + self.outstanding_s / devices;
                stream.promised.chosen(candidate.arrival, ready);
            }
            if probe {
                stream.worth.probes(now);
            }
            self.counters.chosen += 1;
            let (id, stream_id, frames) = (candidate.id, candidate.stream, &mut stream.frames);
            let stream = stream_id;
            out.push(Chosen { id, stream, width, height, network, cost, deadline, probe });
            mark_chosen(frames, candidate.id);
        }
    }

    /// Carries residuals over to the next interval and forgets candidates and silent streams.
    fn close(&mut self, now: Duration) {
        let (forget_after, before) = (self.config.forget_after, self.streams.len());
        self.in_use.fill(0);
        self.streams.retain(|_, stream| {
            let decided = if stream.due { stream.frames.len() } else { 0 };
            for frame in stream.frames.drain(..decided) {
                stream.carried = accumulate(stream.carried, &frame);
            }
            let stays = now.saturating_sub(stream.last_seen) < forget_after;
            if let Some(streams) =
                self.in_use.get_mut(stream.network).filter(|_| stays && !stream.too_dear)
            {
                *streams += 1;
            }
            self.counters.over_capacity += u64::from(!stays && stream.kept.is_some());
            stays
        });
        self.regroup |= self.streams.len() < before;
    }
}

/// Most frames that a policy may hold of a stream.
const MOST_HELD: usize = 64;

/// By how much a frame raises the number of anchors that its stream may have.
fn share(policy: &dyn Policy, config: &SchedulerConfig, frame: &Candidate) -> f64 {
    fraction(policy, config).min(f64::from(frame.per_mille) / 1000.0)
}

/// Most anchors by frame, 0 to 1; what is no number is none.
fn fraction(policy: &dyn Policy, config: &SchedulerConfig) -> f64 {
    let most = policy.fraction(config);
    if most.is_finite() { most.clamp(0.0, 1.0) } else { 0.0 }
}

/// Every how manyeth tick a policy decides.
fn intervals(policy: &dyn Policy, config: &SchedulerConfig) -> u64 {
    let base = config.interval.as_secs_f64().max(1e-3);
    (policy.interval(config).as_secs_f64() / base).round().clamp(1.0, 1e3) as u64
}

/// Whether a stream is decided at a tick: streams of neighbouring numbers at different ones.
fn is_due(StreamId(stream): StreamId, tick: u64, intervals: u64) -> bool {
    (tick + u64::from(stream)).is_multiple_of(intervals)
}

/// The network of a frame: its stream's, or the cheapest of the frame's scale where that is about to change.
fn fitting(scales: &[usize], network: usize, scale: usize) -> usize {
    let fits = scales.get(network) == Some(&scale);
    if fits { network } else { scales.iter().position(|&s| s == scale).unwrap_or(usize::MAX) }
}

/// The residual after a frame: a key frame, or one that became an anchor, clears it.
fn accumulate(carried: u64, frame: &Candidate) -> u64 {
    if frame.tier == Tier::Key { 0 } else { carried.saturating_add(u64::from(frame.bytes)) }
}

/// An anchor clears the residual like a key frame does.
fn mark_chosen(frames: &mut [Candidate], id: u64) {
    if let Some(frame) = frames.iter_mut().find(|f| f.id == id) {
        frame.tier = Tier::Key;
    }
}

#[cfg(test)]
mod planned_tests;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worth_tests;
