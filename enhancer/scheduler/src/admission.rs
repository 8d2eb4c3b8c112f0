//! Which streams are enhanced, where not all can be: the others are refused, and their plain video goes on.
//!
//! Source: ARISE §5.2 refuses clients that would break its promise to others; here the promise is that a frame is decoded while
//! it can still become an anchor, and what may break it is the CPU's time. A stream's demand is its frames per
//! second × what one took of a slot; all demands and what else takes slots (coding, inference) together may be no more than a
//! share of the slots. Time in a slot is time by the clock: what the machine's other work takes of it is in it. Beside it, all
//! streams together may take so much memory ([`crate::memory`]), and there may be so many of them.
//!
//! **Who.** Not who came first, but who claims least for its share: a stream counts by what it takes most of (time, memory or
//! places), and a room's streams are filled in one after the other, publisher by publisher, the cheaper first; a room claims what its
//! streams so far take over its [share](crate::shares). Of equal claims the older goes first. So a room that takes much, or a publisher with
//! many rooms, is refused before one that takes little, whenever it came (max-min fairness by what is scarcest, as in Ghodsi et
//! al., *Dominant resource fairness*, 2011).
//!
//! **No flapping.** Each stream that comes back costs its publisher a key frame. So it takes more room to be admitted than to stay, nobody
//! goes for a load that passes, or for one whose claim is not clearly less, and after streams had to go nobody is admitted for a while
//! whose claim is not clearly less than theirs: twice as long each time that this was too soon, which is forgotten after a quiet minute.
//! A few are admitted at once, for what they will take is only then known.
//!
//! Pure: times are since one origin that the caller keeps to. Bounded by the streams that the caller does not forget.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_types::{Owner, Refusal, StreamId};

use crate::memory;
use crate::shares::Shares;

/// Load up to which streams are admitted, beyond which some must go, and to which it is then brought: shares of the slots' time.
const TO_ENTER: f64 = 0.6;
const TO_STAY: f64 = 0.8;
const AFTERWARDS: f64 = 0.55;
/// Ratio of two claims from which on one is clearly less than the other.
const CLEARLY: f64 = 1.5;
/// Interval of checks.
const EVERY: Duration = Duration::from_millis(500);
/// Duration of overload before streams are refused.
const TIMEOUT: Duration = Duration::from_millis(1500);
/// Time without admissions after that. It doubles each time that it was too short, up to [`MAX_DOUBLINGS`] times, and falls back after
/// [`FORGIVEN`] without.
const CLOSED: Duration = Duration::from_secs(4);
const MAX_DOUBLINGS: u32 = 4;
const FORGIVEN: Duration = Duration::from_secs(60);
/// Maximum admissions between two checks: this number, or one for each [`SHARE`] admitted streams.
const AT_ONCE: usize = 16;
const SHARE: usize = 8;
/// Weight of a new measurement, and of one that is lower than the mean: a stream that pauses goes on as before.
const WEIGHT: f64 = 0.3;
const WEIGHT_OF_LESS: f64 = 0.05;
/// Assumed frames per second of a new stream, and slot time per frame in seconds.
const FIRST_RATE: f64 = 30.0;
const FIRST_COST: f64 = 0.0006;
/// Assumed bytes of a new stream: of the largest pictures by default.
const UNKNOWN: u64 = memory::of(windlass_types::MAX_LR_PIXELS as u64, 0);

/// What a stream's decoders did since they were last asked.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Low frames decoded.
    pub frames: u64,
    /// Seconds of a slot that they took.
    pub seconds: f64,
    /// Seconds of a slot that other pictures of the stream took, at HR size.
    pub more: f64,
    /// Bytes that the stream takes by the pictures that it has had; 0 where it has had none.
    pub memory: u64,
}

/// What all streams together may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Slots of the CPU.
    pub slots: usize,
    /// Bytes.
    pub memory: u64,
    /// Streams; those that there are stay where it is lowered.
    pub streams: usize,
}

#[derive(Debug)]
struct Stream {
    /// The less, the older.
    number: u64,
    owner: Owner,
    admitted: bool,
    /// Why it is not admitted, if so.
    why: Refusal,
    /// Frames since the last look.
    came: u32,
    /// Frames by second, once known.
    rate: Option<f64>,
    /// Seconds of a slot by frame, once known.
    cost: Option<f64>,
    more: f64,
    memory: u64,
}

impl Stream {
    /// `usual`: what a frame takes by byte of its stream's memory, and so by pixel.
    fn demand(&self, usual: f64) -> f64 {
        let cost = self.cost.unwrap_or(usual * self.unit());
        self.rate.unwrap_or(FIRST_RATE) * cost + self.more
    }

    fn unit(&self) -> f64 {
        self.memory.max(1) as f64
    }
}

/// A stream among all, by what it claims.
#[derive(Debug, Clone, Copy)]
struct Claim {
    id: StreamId,
    number: u64,
    admitted: bool,
    owner: Owner,
    share: f64,
    /// The part of what there is that it takes most of.
    takes: f64,
    /// What is claimed up to it, over the share: in its publisher's part while its room is put in order, then in all.
    over: f64,
}

impl Claim {
    /// The lesser claim first. Claims that differ by less than a fifth count as equal, so that noise decides nothing.
    fn rank(&self) -> (i64, bool, u64) {
        let step = (self.over.max(1e-9).ln() / 0.2).floor() as i64;
        (step, !self.admitted, self.number)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Admission {
    bounds: Bounds,
    streams: BTreeMap<StreamId, Stream>,
    shares: Shares,
    numbers: u64,
    looked: Duration,
    /// Streams that may be admitted before the next look.
    places: usize,
    /// What else takes slots: of each second.
    others: f64,
    over_since: Option<Duration>,
    /// When streams last had to go, how often it was too soon to admit others, and until when nobody is whose claim is not clearly
    /// less than the least of theirs.
    went: Option<Duration>,
    too_soon: u32,
    closed_until: Duration,
    min_gone: f64,
}

impl Admission {
    /// Nobody has come yet.
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

    /// A frame of a stream has come, which takes so many bytes if that is known. Why it is not to be decoded, if so.
    pub fn frame(
        &mut self,
        now: Duration,
        (id, owner): (StreamId, Owner),
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
            why: Refusal::Processor,
            came: 1,
            rate: None,
            cost: None,
            more: 0.0,
            memory: memory.unwrap_or(UNKNOWN),
        };
        // Not before those that wait.
        let refusal = if self.refused() > 0 || now < self.closed_until {
            self.lacks(&stream).or(Some(Refusal::Processor))
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

    /// Without any nothing would be known: the first is decoded however much of the CPU it takes.
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

    /// Streams that are refused now.
    pub fn refused(&self) -> usize {
        self.streams.values().filter(|s| !s.admitted).count()
    }

    /// What all that is admitted takes of the slots, as a share of them.
    pub fn load(&self) -> f64 {
        self.total() / self.capacity()
    }

    /// Bytes that all that is admitted takes, as they are counted.
    pub fn memory(&self) -> u64 {
        let admitted = self.streams.values().filter(|s| s.admitted);
        admitted.fold(0, |sum, s| sum.saturating_add(s.memory))
    }

    /// Whether it is time to look.
    pub fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked) >= EVERY
    }

    /// Looks at what each stream's decoders did since the last time, and at the seconds of slots that others took. Those that are
    /// to go from now on come to `gone`.
    pub fn look(
        &mut self,
        now: Duration,
        mut work: impl FnMut(StreamId) -> Work,
        others: f64,
        gone: &mut Vec<StreamId>,
    ) {
        let elapsed = now.saturating_sub(self.looked).as_secs_f64();
        self.looked = now;
        if elapsed <= 0.0 {
            return;
        }
        self.others = blend(self.others, sane(others) / elapsed);
        for (&id, stream) in &mut self.streams {
            let Work { frames, seconds, more, memory } = work(id);
            let rate = f64::from(std::mem::take(&mut stream.came)) / elapsed;
            // Of one that came in the middle of the time, less is known.
            stream.rate = Some(blend(stream.rate.unwrap_or(FIRST_RATE), rate));
            stream.more = blend(stream.more, sane(more) / elapsed);
            if memory > 0 {
                stream.memory = memory;
            }
            if frames > 0 {
                let cost = sane(seconds) / frames as f64;
                stream.cost = Some(blend(stream.cost.unwrap_or(cost), cost));
            }
        }
        let admitted = self.streams.len() - self.refused();
        self.places = AT_ONCE.max(admitted / SHARE);
        let crowded = self.memory() > self.bounds.memory;
        if crowded || self.total() > TO_STAY * self.capacity() {
            let since = *self.over_since.get_or_insert(now);
            if crowded || now.saturating_sub(since) >= TIMEOUT {
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

    /// Those with the greatest claims go until the rest fits well; the first stays.
    fn send_away(&mut self, now: Duration, gone: &mut Vec<StreamId>) {
        self.over_since = None;
        let why =
            if self.memory() > self.bounds.memory { Refusal::Memory } else { Refusal::Processor };
        let mut admitted = claims(&self.streams, &mut self.shares, self.bounds);
        admitted.retain(|claim| claim.admitted);
        while admitted.len() > 1
            && (self.total() > AFTERWARDS * self.capacity() || self.memory() > self.bounds.memory)
        {
            let Some(claim) = admitted.pop() else { break };
            self.refuse(now, &claim, why, gone);
        }
    }

    /// A stream that is admitted has to go.
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

    /// Admits those that wait, the least claim first, as far as there is room, or could be if others went whose claims are clearly greater.
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

    /// How many of those admitted, the greatest claims first, would have to go for a stream to fit, where all of them claim clearly more;
    /// 0 where that is not enough.
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

    /// What there is too little of for one more stream.
    fn lacks(&self, stream: &Stream) -> Option<Refusal> {
        let demand = self.total() + stream.demand(self.usual());
        let count = self.streams.len() - self.refused() + 1;
        let lacks = self.exceeded(demand, self.memory().saturating_add(stream.memory), count);
        lacks.or_else(|| (self.places == 0).then_some(Refusal::Processor))
    }

    fn exceeded(&self, demand: f64, memory: u64, count: usize) -> Option<Refusal> {
        if count > self.bounds.streams {
            Some(Refusal::Full)
        } else if memory > self.bounds.memory {
            Some(Refusal::Memory)
        } else {
            (demand > TO_ENTER * self.capacity()).then_some(Refusal::Processor)
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

/// What frames take by byte of their streams' memory, for those of which nothing else is known.
fn usual(streams: &BTreeMap<StreamId, Stream>) -> f64 {
    let known = streams.values().filter_map(|s| Some((s.cost?, s.unit())));
    let (cost, units) = known.fold((0.0, 0.0), |(sum, all), (cost, unit)| (sum + cost, all + unit));
    if units > 0.0 {
        return cost / units;
    }
    let units: f64 = streams.values().map(Stream::unit).sum();
    FIRST_COST * streams.len() as f64 / units.max(1.0)
}

/// All streams, the least claim first.
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
    all.sort_unstable_by_key(|c| (c.owner.room, c.owner.publisher, c.rank()));
    for room in all.chunk_by_mut(|a, b| a.owner.room == b.owner.room) {
        for publisher in room.chunk_by_mut(|a, b| a.owner.publisher == b.owner.publisher) {
            add_up(publisher);
        }
        room.sort_unstable_by_key(Claim::rank);
        add_up(room);
    }
    all.sort_unstable_by_key(Claim::rank);
    all
}

/// Says of each what it and those before it take, over the share of all.
fn add_up(claims: &mut [Claim]) {
    let share: f64 = claims.iter().map(|claim| claim.share).sum();
    let mut taken = 0.0;
    for claim in claims {
        taken += claim.takes;
        claim.over = taken / share;
    }
}

/// What is known of something after another look at it.
fn blend(known: f64, seen: f64) -> f64 {
    known + if seen < known { WEIGHT_OF_LESS } else { WEIGHT } * (seen - known)
}

/// What no clock measures counts as nothing.
fn sane(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.clamp(0.0, 3_600.0) } else { 0.0 }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
