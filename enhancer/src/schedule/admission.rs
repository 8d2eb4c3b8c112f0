//! Which streams the processor can decode: the others are refused enhancement, and their plain video goes on.
//!
//! Source: seed 002 §5.2 refuses clients that would break its promise to others; here the promise is that a frame is decoded while
//! it can still become an anchor, and what may break it is the processor's time. A stream's demand is its frames per
//! second × what one took of a slot; all demands and what else takes slots (coding, inference) together may be no more than a
//! share of the slots. Time in a slot is time by the clock: what the machine's other work takes of it is in it.
//!
//! **Who.** Streams in the order in which they came: the newest are refused first, and the oldest of those admitted again first.
//!
//! **No flapping.** Each stream that comes back costs its publisher a key frame. So it takes more room to be admitted than to stay, nobody
//! goes for a load that passes, and after streams had to go nobody is admitted for a while: twice as long each time that this was
//! too soon, which is forgotten after a quiet minute. A few are admitted at once, for what they will take is only then known.
//!
//! Pure: times are since one origin that the caller keeps to. Bounded by the streams that the caller does not forget.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_media::StreamId;

/// Shares of the slots' time: up to which streams are admitted, beyond which some must go, and to which the rest is then brought.
const TO_ENTER: f64 = 0.6;
const TO_STAY: f64 = 0.8;
const AFTERWARDS: f64 = 0.55;
/// From one look to the next.
const EVERY: Duration = Duration::from_millis(500);
/// So long it may be too much before streams go.
const PATIENCE: Duration = Duration::from_millis(1500);
/// So long nobody is admitted after that, at first; doubled up to so often, and forgotten after so long without.
const CLOSED: Duration = Duration::from_secs(4);
const MOST_DOUBLINGS: u32 = 4;
const FORGIVEN: Duration = Duration::from_secs(60);
/// Between two looks so many are admitted, or one for so many that are.
const AT_ONCE: usize = 16;
const SHARE: usize = 8;
/// Weight of the last look, and that of one that says less than was known: who stops for a moment goes on as before.
const WEIGHT: f64 = 0.3;
const WEIGHT_OF_LESS: f64 = 0.05;
/// What is taken to be true of a stream before it is known: frames per second, and seconds of a slot for each.
const FIRST_RATE: f64 = 30.0;
const FIRST_COST: f64 = 0.0006;

/// What a stream's decoders did since they were last asked.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Low frames decoded.
    pub frames: u64,
    /// Seconds of a slot that they took.
    pub seconds: f64,
    /// Seconds of a slot that other pictures of the stream took, at HR size.
    pub more: f64,
}

#[derive(Debug)]
struct Stream {
    /// The less, the older.
    number: u64,
    admitted: bool,
    /// Frames since the last look.
    came: u32,
    /// Frames by second, once known.
    rate: Option<f64>,
    /// Seconds of a slot by frame, once known.
    cost: Option<f64>,
    more: f64,
}

impl Stream {
    fn demand(&self, mean_cost: f64) -> f64 {
        self.rate.unwrap_or(FIRST_RATE) * self.cost.unwrap_or(mean_cost) + self.more
    }
}

/// See the module.
#[derive(Debug)]
pub struct Admission {
    /// Slots.
    capacity: f64,
    streams: BTreeMap<StreamId, Stream>,
    numbers: u64,
    looked: Duration,
    /// Streams that may be admitted before the next look.
    places: usize,
    /// What else takes slots: of each second.
    others: f64,
    over_since: Option<Duration>,
    /// When streams last had to go, how often it was too soon to admit others, and until when nobody is.
    went: Option<Duration>,
    too_soon: u32,
    closed_until: Duration,
}

impl Admission {
    /// Nobody has come to a machine of so many slots.
    pub fn new(slots: usize) -> Self {
        Admission {
            capacity: slots.max(1) as f64,
            streams: BTreeMap::new(),
            numbers: 0,
            looked: Duration::ZERO,
            places: AT_ONCE,
            others: 0.0,
            over_since: None,
            went: None,
            too_soon: 0,
            closed_until: Duration::ZERO,
        }
    }

    /// A frame of a stream has come. Whether it is to be decoded.
    pub fn frame(&mut self, now: Duration, id: StreamId) -> bool {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.came = stream.came.saturating_add(1);
            return stream.admitted;
        }
        let (number, came) = (self.numbers, 1);
        self.numbers += 1;
        let mut stream =
            Stream { number, admitted: false, came, rate: None, cost: None, more: 0.0 };
        // Not before those that wait.
        let admitted = self.refused() == 0 && self.fits(now, &stream);
        stream.admitted = admitted;
        self.places = self.places.saturating_sub(usize::from(admitted));
        self.streams.insert(id, stream);
        self.keep_one();
        admitted || self.streams.len() == 1
    }

    /// A stream has ended.
    pub fn forget(&mut self, id: StreamId) {
        self.streams.remove(&id);
        self.keep_one();
    }

    /// Without any nothing would be known: the oldest is decoded in any case.
    fn keep_one(&mut self) {
        if self.streams.values().all(|s| !s.admitted)
            && let Some(oldest) = self.streams.values_mut().min_by_key(|s| s.number)
        {
            oldest.admitted = true;
        }
    }

    /// Streams that are refused now.
    pub fn refused(&self) -> usize {
        self.streams.values().filter(|s| !s.admitted).count()
    }

    /// What all that is admitted takes of the slots, as a share of them.
    pub fn load(&self) -> f64 {
        self.total() / self.capacity
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
            let Work { frames, seconds, more } = work(id);
            let rate = f64::from(std::mem::take(&mut stream.came)) / elapsed;
            // Of one that came in the middle of the time, less is known.
            stream.rate = Some(blend(stream.rate.unwrap_or(FIRST_RATE), rate));
            stream.more = blend(stream.more, sane(more) / elapsed);
            if frames > 0 {
                let cost = sane(seconds) / frames as f64;
                stream.cost = Some(blend(stream.cost.unwrap_or(cost), cost));
            }
        }
        let admitted = self.streams.len() - self.refused();
        self.places = AT_ONCE.max(admitted / SHARE);
        if self.total() > TO_STAY * self.capacity {
            let since = *self.over_since.get_or_insert(now);
            if now.saturating_sub(since) >= PATIENCE {
                self.send_away(now, gone);
            }
        } else {
            self.over_since = None;
            self.admit(now);
        }
    }

    /// The newest go until the rest fits well. The oldest stays.
    fn send_away(&mut self, now: Duration, gone: &mut Vec<StreamId>) {
        self.over_since = None;
        let before = gone.len();
        let mean = self.mean_cost();
        let mut total = self.total();
        let mut admitted = self.ids(true);
        while total > AFTERWARDS * self.capacity && admitted.len() > 1 {
            let Some(id) = admitted.pop() else { break };
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.admitted = false;
                total -= stream.demand(mean);
                gone.push(id);
            }
        }
        if gone.len() == before {
            return;
        }
        let soon = self.went.is_some_and(|went| now.saturating_sub(went) < FORGIVEN);
        self.too_soon = if soon { (self.too_soon + 1).min(MOST_DOUBLINGS) } else { 0 };
        self.went = Some(now);
        self.closed_until = now + CLOSED * (1 << self.too_soon);
    }

    fn admit(&mut self, now: Duration) {
        for id in self.ids(false) {
            if !self.streams.get(&id).is_some_and(|stream| self.fits(now, stream)) {
                return;
            }
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.admitted = true;
                self.places = self.places.saturating_sub(1);
            }
        }
    }

    fn fits(&self, now: Duration, stream: &Stream) -> bool {
        let demand = self.total() + stream.demand(self.mean_cost());
        let open = self.places > 0 && now >= self.closed_until;
        open && demand <= TO_ENTER * self.capacity
    }

    /// Those that are admitted, or are not, the oldest first.
    fn ids(&self, admitted: bool) -> Vec<StreamId> {
        let of = self.streams.iter().filter(|(_, s)| s.admitted == admitted);
        let mut ids: Vec<_> = of.map(|(&id, s)| (s.number, id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    fn total(&self) -> f64 {
        let mean = self.mean_cost();
        let admitted = self.streams.values().filter(|s| s.admitted);
        self.others + admitted.map(|s| s.demand(mean)).sum::<f64>()
    }

    /// Of a frame of a stream of which nothing is known.
    fn mean_cost(&self) -> f64 {
        let known = self.streams.values().filter_map(|s| s.cost);
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), cost| (sum + cost, count + 1.0));
        if count > 0.0 { sum / count } else { FIRST_COST }
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
