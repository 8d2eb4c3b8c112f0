//! Which streams are enhanced where not all can be. The others are refused, and their plain video goes on.
//!
//! Source: ARISE §5.2 refuses clients that would break its promise to others. Here the promise is that a frame is
//! decoded while it can still become an anchor, and the scarce resources are CPU slots, memory ([`crate::memory`]) and
//! the number of streams. A stream's demand is its frames per second × slot time per frame. All demands, and the slot
//! time of encoding and inference, may take a share of the slots. Slot time is wall time, so that other work of the
//! machine counts.
//!
//! **Order.** A stream's claim is the share of the resource that it takes most of. The claims of a room's streams are
//! added up in order, publisher by publisher, the smaller ones first, and divided by the room's fair
//! [share](crate::shares). The smallest claims are admitted; of equal claims the older one. So a room that takes much,
//! or a publisher with many rooms, is refused before one that takes little (max-min fairness by the dominant resource:
//! Ghodsi et al., *Dominant Resource Fairness*, NSDI 2011).
//!
//! **Hysteresis.** Each stream that comes back costs its publisher a key frame. So admission takes more room than
//! staying, a short overload refuses nobody, and a stream is replaced only by one whose claim is clearly smaller. After
//! a refusal, admission is closed for a while to claims that are not clearly smaller: twice as long each time that it
//! was opened too early, until a quiet minute has passed. Few streams are admitted at once, because what they take is
//! known only afterwards.
//!
//! Pure: times are since one origin of the caller. Bounded by the streams that the caller does not forget.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_types::{Owner, Refusal, StreamId};

use crate::memory;
use crate::shares::Shares;

/// Load up to which streams are admitted, as a share of the slots' time.
const TO_ENTER: f64 = 0.6;
/// Load beyond which some streams must go, as a share of the slots' time.
const TO_STAY: f64 = 0.8;
/// Load to which it is then brought, as a share of the slots' time.
const AFTERWARDS: f64 = 0.55;
/// Ratio of two claims from which on one is clearly less than the other.
const CLEARLY: f64 = 1.5;
/// Time between two checks of the load. Each check refuses and admits streams.
const EVERY: Duration = Duration::from_millis(500);
/// Maximum duration of an overload. If it lasts longer, streams are refused.
const MAX_OVERLOAD: Duration = Duration::from_millis(1500);
/// Time without admissions after streams were refused for overload. It doubles each time that it was too short, up to
/// [`MAX_DOUBLINGS`] times, and returns to this value after [`FORGIVEN`] without an overload.
const CLOSED: Duration = Duration::from_secs(4);
/// Maximum doublings of [`CLOSED`].
const MAX_DOUBLINGS: u32 = 4;
/// Time without an overload after which [`CLOSED`] is no longer doubled.
const FORGIVEN: Duration = Duration::from_secs(60);
/// Maximum admissions between two checks: this number, or one for each [`SHARE`] admitted streams.
const AT_ONCE: usize = 16;
/// Admitted streams for each of which one more may be admitted between two checks.
const SHARE: usize = 8;
/// Weight of a new measurement of a stream's frame rate or slot time in the mean (EWMA).
const WEIGHT: f64 = 0.3;
/// Weight of a measurement below the mean (EWMA). It is small because a stream that pauses goes on later as before.
const WEIGHT_OF_LESS: f64 = 0.05;
/// Assumed frames per second of a new stream.
const FIRST_RATE: f64 = 30.0;
/// Assumed slot time per frame of a new stream, in seconds.
const FIRST_COST: f64 = 0.0006;
/// Assumed bytes of a new stream: those of the largest low pictures that are accepted by default.
const UNKNOWN: u64 = memory::of(windlass_types::MAX_LR_PIXELS as u64, 0);

/// Work of a stream's decoders since the last check.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Frames of the low layer decoded.
    pub frames: u64,
    /// Slot time that the low frames took.
    pub low: Duration,
    /// Slot time of the stream's pictures at HR size.
    pub high: Duration,
    /// Bytes of memory that the stream takes, by the sizes of its pictures; 0 before the first picture.
    pub memory: u64,
}

/// Limits of all streams together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Number of CPU slots.
    pub slots: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Number of streams. Lowering it refuses no admitted stream.
    pub streams: usize,
}

#[derive(Debug)]
struct Stream {
    /// Number of the stream in the order of arrival.
    number: u64,
    owner: Owner,
    admitted: bool,
    /// Reason for which the stream is refused. It has no meaning while the stream is admitted.
    why: Refusal,
    /// Frames since the last check of the load.
    came: u32,
    /// Frames per second; `None` before the first check.
    rate: Option<f64>,
    /// Slot time per frame, in seconds; `None` before the first check.
    cost: Option<f64>,
    more: f64,
    memory: u64,
}

impl Stream {
    /// Slot seconds that the stream takes per second. `usual` is the slot time of a frame per byte of its stream's
    /// memory, for a stream that was not measured yet.
    fn demand(&self, usual: f64) -> f64 {
        let cost = self.cost.unwrap_or(usual * self.unit());
        self.rate.unwrap_or(FIRST_RATE) * cost + self.more
    }

    fn unit(&self) -> f64 {
        self.memory.max(1) as f64
    }
}

/// What a stream takes of the machine, compared with the fair share of its room.
#[derive(Debug, Clone, Copy)]
struct Claim {
    id: StreamId,
    number: u64,
    admitted: bool,
    owner: Owner,
    share: f64,
    /// Share of the scarcest resource that the stream takes: the largest of its shares of slots, memory and places.
    takes: f64,
    /// Sum of the claims up to and with this one over the fair share: of its publisher while a room is ordered, then of
    /// the room.
    over: f64,
}

/// Claims that are larger than the smallest of their group by no more than this factor count as equal to it.
const EQUAL: f64 = 1.2;

/// Sorts smaller claims first. Those that differ by less than a fifth count as equal, so that noise decides nothing: of
/// them, admitted streams come first, then older ones.
fn sort(claims: &mut [Claim]) {
    claims.sort_unstable_by(|a, b| a.over.total_cmp(&b.over));
    let mut rest = claims;
    while let Some(smallest) = rest.first().map(|claim| claim.over) {
        let equal = rest.partition_point(|claim| claim.over <= EQUAL * smallest).max(1);
        let (group, larger) = rest.split_at_mut(equal);
        group.sort_unstable_by_key(|claim| (!claim.admitted, claim.number));
        rest = larger;
    }
}

/// Decides which streams are enhanced where not all can be.
#[derive(Debug)]
pub struct Admission {
    bounds: Bounds,
    streams: BTreeMap<StreamId, Stream>,
    shares: Shares,
    numbers: u64,
    looked: Duration,
    /// Number of streams that may still be admitted before the next check.
    places: usize,
    /// Slot seconds of other work per second.
    others: f64,
    over_since: Option<Duration>,
    /// When streams last had to go. After that, `too_soon` counts admissions that came too early. Until `closed_until`
    /// only streams whose claim is clearly less than `min_gone` are admitted.
    went: Option<Duration>,
    too_soon: u32,
    closed_until: Duration,
    min_gone: f64,
}

impl Admission {
    /// Creates an admission without streams.
    pub fn new(bounds: Bounds) -> Self {
        Admission {
            bounds: Bounds { slots: bounds.slots.max(1), ..bounds },
            streams: BTreeMap::new(),
            shares: Shares::default(),
            numbers: 0,
            looked: Duration::ZERO,
            places: AT_ONCE,
            others: 0.0,
            over_since: None,
            went: None,
            too_soon: 0,
            closed_until: Duration::ZERO,
            min_gone: f64::INFINITY,
        }
    }

    /// Sets the maximum number of streams.
    pub fn set_max_streams(&mut self, streams: usize) {
        self.bounds.streams = streams;
    }

    /// Takes note of a stream's frame, and of the stream's memory in bytes if known. Returns the reason where it must
    /// not be decoded.
    pub fn frame(
        &mut self,
        now: Duration,
        id: StreamId,
        owner: Owner,
        memory: Option<u64>,
    ) -> Option<Refusal> {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.came = stream.came.saturating_add(1);
            stream.owner = owner;
            if !stream.admitted {
                stream.memory = memory.unwrap_or(stream.memory);
            }
            return (!stream.admitted).then_some(stream.why);
        }
        let number = self.numbers;
        self.numbers += 1;
        let mut stream = Stream {
            number,
            owner,
            admitted: false,
            why: Refusal::Cpu,
            came: 1,
            rate: None,
            cost: None,
            more: 0.0,
            memory: memory.unwrap_or(UNKNOWN),
        };
        // Not before those that wait.
        let refusal = if self.refused() > 0 || now < self.closed_until {
            self.lacks(&stream).or(Some(Refusal::Cpu))
        } else {
            self.lacks(&stream)
        };
        stream.admitted = refusal.is_none();
        stream.why = refusal.unwrap_or(stream.why);
        self.places = self.places.saturating_sub(usize::from(stream.admitted));
        self.streams.insert(id, stream);
        self.keep_one();
        let stream = &self.streams[&id];
        (!stream.admitted).then_some(stream.why)
    }

    /// A stream has ended.
    pub fn forget(&mut self, id: StreamId) {
        self.streams.remove(&id);
        self.keep_one();
    }

    /// Admits the first stream however much it takes: without one, nothing would be measured.
    fn keep_one(&mut self) {
        if self.bounds.streams == 0 || self.streams.values().any(|s| s.admitted) {
            return;
        }
        let max = self.bounds.memory;
        let fits = |claim: &&Claim| self.streams.get(&claim.id).is_some_and(|s| s.memory <= max);
        let claims = claims(&self.streams, &mut self.shares, self.bounds);
        let first = claims.iter().find(fits).map(|claim| claim.id);
        if let Some(stream) = first.and_then(|id| self.streams.get_mut(&id)) {
            stream.admitted = true;
        }
    }

    /// Number of streams that are refused now.
    pub fn refused(&self) -> usize {
        self.streams.values().filter(|s| !s.admitted).count()
    }

    /// Load of all admitted streams, as a share of the slots.
    pub fn load(&self) -> f64 {
        self.total() / self.capacity()
    }

    /// Memory of all admitted streams, in bytes.
    pub fn memory(&self) -> u64 {
        let admitted = self.streams.values().filter(|s| s.admitted);
        admitted.fold(0, |sum, s| sum.saturating_add(s.memory))
    }

    /// Whether the next check is due.
    pub fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked) >= EVERY
    }

    /// Checks the work of each stream's decoders since the last check, and the slot time of other work. Appends
    /// streams that are refused from now on to `gone`.
    pub fn look(
        &mut self,
        now: Duration,
        mut work: impl FnMut(StreamId) -> Work,
        others: Duration,
        gone: &mut Vec<StreamId>,
    ) {
        let elapsed = now.saturating_sub(self.looked).as_secs_f64();
        self.looked = now;
        if elapsed <= 0.0 {
            return;
        }
        self.others = blend(self.others, seconds(others) / elapsed);
        for (&id, stream) in &mut self.streams {
            let Work { frames, low, high, memory } = work(id);
            let rate = f64::from(std::mem::take(&mut stream.came)) / elapsed;
            // Less is known of a stream that came after the last check.
            stream.rate = Some(blend(stream.rate.unwrap_or(FIRST_RATE), rate));
            stream.more = blend(stream.more, seconds(high) / elapsed);
            if memory > 0 {
                stream.memory = memory;
            }
            if frames > 0 {
                let cost = seconds(low) / frames as f64;
                stream.cost = Some(blend(stream.cost.unwrap_or(cost), cost));
            }
        }
        let admitted = self.streams.len() - self.refused();
        self.places = AT_ONCE.max(admitted / SHARE);
        let crowded = self.memory() > self.bounds.memory;
        if crowded || self.total() > TO_STAY * self.capacity() {
            let since = *self.over_since.get_or_insert(now);
            if crowded || now.saturating_sub(since) >= MAX_OVERLOAD {
                self.send_away(now, gone);
            }
        } else {
            self.over_since = None;
        }
        // Where it is too much, too: those who wait may have the fairer claim.
        if gone.is_empty() {
            self.admit(now, gone);
        }
        self.keep_one();
    }

    /// Refuses the largest claims until the load is at most [`AFTERWARDS`]. One stream always stays.
    fn send_away(&mut self, now: Duration, gone: &mut Vec<StreamId>) {
        self.over_since = None;
        let why = if self.memory() > self.bounds.memory { Refusal::Memory } else { Refusal::Cpu };
        let mut admitted = claims(&self.streams, &mut self.shares, self.bounds);
        admitted.retain(|claim| claim.admitted);
        while admitted.len() > 1
            && (self.total() > AFTERWARDS * self.capacity() || self.memory() > self.bounds.memory)
        {
            let Some(claim) = admitted.pop() else { break };
            self.refuse(now, &claim, why, gone);
        }
    }

    /// Refuses an admitted stream.
    fn refuse(&mut self, now: Duration, claim: &Claim, why: Refusal, gone: &mut Vec<StreamId>) {
        let Some(stream) = self.streams.get_mut(&claim.id) else { return };
        (stream.admitted, stream.why) = (false, why);
        gone.push(claim.id);
        let again = self.went != Some(now);
        if again {
            let soon = self.went.is_some_and(|went| now.saturating_sub(went) < FORGIVEN);
            self.too_soon = if soon { (self.too_soon + 1).min(MAX_DOUBLINGS) } else { 0 };
            self.went = Some(now);
            self.closed_until = now + CLOSED * (1 << self.too_soon);
            self.min_gone = f64::INFINITY;
        }
        self.min_gone = self.min_gone.min(claim.over);
    }

    /// Admits waiting streams, the smallest claims first, where there is room, or where clearly greater claims can be
    /// refused for them.
    fn admit(&mut self, now: Duration, gone: &mut Vec<StreamId>) {
        if self.refused() == 0 {
            return;
        }
        let mut all = claims(&self.streams, &mut self.shares, self.bounds);
        let waiting: Vec<Claim> = all.iter().filter(|claim| !claim.admitted).copied().collect();
        all.retain(|claim| claim.admitted);
        for claim in waiting {
            let Some(stream) = self.streams.get(&claim.id) else { continue };
            let open = now >= self.closed_until || claim.over * CLEARLY < self.min_gone;
            if !open || self.places == 0 {
                return;
            }
            if let Some(lacks) = self.lacks(stream) {
                let victims = self.victims(stream, &claim, &all);
                if victims == 0 {
                    // It stays the first of those that wait, unless there is never room for it.
                    let alone = stream.demand(self.usual()) + self.others;
                    let never =
                        stream.memory > self.bounds.memory || alone > TO_ENTER * self.capacity();
                    if let Some(stream) = self.streams.get_mut(&claim.id) {
                        stream.why = lacks;
                    }
                    if never {
                        continue;
                    }
                    return;
                }
                for victim in all.split_off(all.len() - victims) {
                    self.refuse(now, &victim, lacks, gone);
                }
            }
            if let Some(stream) = self.streams.get_mut(&claim.id) {
                stream.admitted = true;
                self.places -= 1;
            }
        }
    }

    /// Number of admitted streams that would have to be refused for a stream to fit, the largest claims first; 0 if not
    /// enough of them claim clearly more.
    fn victims(&self, stream: &Stream, claim: &Claim, admitted: &[Claim]) -> usize {
        let usual = self.usual();
        let mut demand = self.total() + stream.demand(usual);
        let mut memory = self.memory().saturating_add(stream.memory);
        let mut count = admitted.len() + 1;
        for (victims, other) in (1..).zip(admitted.iter().rev()) {
            if other.over <= CLEARLY * claim.over {
                return 0;
            }
            let Some(other) = self.streams.get(&other.id) else { return 0 };
            demand -= other.demand(usual);
            memory = memory.saturating_sub(other.memory);
            count -= 1;
            if self.exceeded(demand, memory, count).is_none() {
                return victims;
            }
        }
        0
    }

    /// The resource that one more stream would exceed.
    fn lacks(&self, stream: &Stream) -> Option<Refusal> {
        let demand = self.total() + stream.demand(self.usual());
        let count = self.streams.len() - self.refused() + 1;
        let lacks = self.exceeded(demand, self.memory().saturating_add(stream.memory), count);
        lacks.or_else(|| (self.places == 0).then_some(Refusal::Cpu))
    }

    fn exceeded(&self, demand: f64, memory: u64, count: usize) -> Option<Refusal> {
        if count > self.bounds.streams {
            Some(Refusal::Full)
        } else if memory > self.bounds.memory {
            Some(Refusal::Memory)
        } else {
            (demand > TO_ENTER * self.capacity()).then_some(Refusal::Cpu)
        }
    }

    fn capacity(&self) -> f64 {
        self.bounds.slots as f64
    }

    fn total(&self) -> f64 {
        let usual = self.usual();
        let admitted = self.streams.values().filter(|s| s.admitted);
        self.others + admitted.map(|s| s.demand(usual)).sum::<f64>()
    }

    fn usual(&self) -> f64 {
        usual(&self.streams)
    }
}

/// Slot time of a frame per byte of its stream's memory, over all measured streams: the assumption for streams that
/// were not measured yet.
fn usual(streams: &BTreeMap<StreamId, Stream>) -> f64 {
    let known = streams.values().filter_map(|s| Some((s.cost?, s.unit())));
    let (cost, units) = known.fold((0.0, 0.0), |(sum, all), (cost, unit)| (sum + cost, all + unit));
    if units > 0.0 {
        return cost / units;
    }
    let units: f64 = streams.values().map(Stream::unit).sum();
    FIRST_COST * streams.len() as f64 / units.max(1.0)
}

/// Claims of all streams, the smallest first.
fn claims(streams: &BTreeMap<StreamId, Stream>, shares: &mut Shares, bounds: Bounds) -> Vec<Claim> {
    let shares = shares.of(streams.values().map(|stream| stream.owner));
    let usual = usual(streams);
    let mut all: Vec<Claim> = streams
        .iter()
        .zip(shares)
        .map(|((&id, stream), &share)| {
            let time = stream.demand(usual) / bounds.slots as f64;
            let memory = stream.memory as f64 / bounds.memory.max(1) as f64;
            let place = 1.0 / bounds.streams.max(1) as f64;
            let takes = time.max(memory).max(place);
            let Stream { number, owner, admitted, .. } = *stream;
            Claim { id, number, admitted, owner, share, takes, over: takes }
        })
        .collect();
    all.sort_unstable_by_key(|c| (c.owner.room, c.owner.publisher));
    for room in all.chunk_by_mut(|a, b| a.owner.room == b.owner.room) {
        for publisher in room.chunk_by_mut(|a, b| a.owner.publisher == b.owner.publisher) {
            sort(publisher);
            add_up(publisher);
        }
        sort(room);
        add_up(room);
    }
    sort(&mut all);
    all
}

/// Sets each claim to the sum of it and those before it, over the fair share.
fn add_up(claims: &mut [Claim]) {
    let share: f64 = claims.iter().map(|claim| claim.share).sum();
    let mut taken = 0.0;
    for claim in claims {
        taken += claim.takes;
        claim.over = taken / share;
    }
}

/// A mean after another measurement.
fn blend(known: f64, seen: f64) -> f64 {
    known + if seen < known { WEIGHT_OF_LESS } else { WEIGHT } * (seen - known)
}

/// A slot time in seconds, of at most an hour.
fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().min(3_600.0)
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
