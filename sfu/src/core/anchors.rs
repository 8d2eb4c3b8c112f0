//! Anchors on their way to one subscriber: whether one may go, and when its messages do.
//!
//! Anchors share one bandwidth with the video, which comes first: in the mean they get what the estimate leaves (a token bucket decides
//! whether one may go at all). One that may goes in messages, spread so that they take half of the bandwidth while they last: all at once they would
//! hold up the video behind them. While the link is busy with a large frame of video they wait. What is still here at its deadline is dropped, never
//! sent late; and what the data channel still holds must stay small.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::media::Mid;
use windlass_types::Anchor;
use windlass_types::message::{self, AnchorHeader};

use super::used::Used;

/// Most bytes that wait here and in the data channel, the new anchor included.
pub const BUFFERED_MAX: usize = 128 * 1024;
/// What is spent at most without an estimate, in bits per second.
pub const UNLIMITED_BPS: u64 = 16_000_000;
/// How much saved-up bandwidth an anchor may use.
const DEPTH: Duration = Duration::from_millis(250);
/// A bucket holds at least one usual anchor.
const DEPTH_MIN_BYTES: f64 = 32_768.0;
/// The share of the bandwidth that messages take while they go out, if there is time.
const SHARE: f64 = 0.5;
/// The share of the time that an anchor has left which its messages may take.
const SPREAD: f64 = 0.6;
/// A message holds up the link for no longer than this,
const MESSAGE: Duration = Duration::from_millis(30);
/// but is not smaller than one packet.
const MESSAGE_MIN_BYTES: usize = 1100;
/// Messages wait for video that keeps the link busy for longer: for a key frame, not for each frame.
const BUSY: Duration = Duration::from_millis(50);
/// No link queues more video than this: what an estimate below the video's bitrate counts beyond it is the estimate's error.
const QUEUE: Duration = Duration::from_millis(500);

/// What becomes of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go; its last message will go that much later.
    Send(Duration),
    /// It is older than the budget.
    Late,
    /// There is no room for it, or not enough before it would be too old.
    Full,
}

/// A message that waits for its turn.
#[derive(Debug)]
struct Waiting {
    deadline: Instant,
    slot: Mid,
    message: Vec<u8>,
    /// How long the next one waits after it.
    takes: Duration,
    /// Of the anchor's last message: bytes of all of them, and the anchor's age when it was admitted.
    ends: Option<(usize, Duration)>,
}

/// What comes out.
#[derive(Debug, PartialEq, Eq)]
pub enum Released {
    /// A message to send; with the last one of an anchor its slot, its size, and its age.
    Message(Vec<u8>, Option<(Mid, usize, Duration)>),
    /// What is left of an anchor is too old.
    Stale(Mid),
}

/// See the module.
#[derive(Debug)]
pub struct AnchorPacer {
    tokens: f64,
    earned: Instant,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// When the next message may go, as far as the messages before it are concerned.
    free: Instant,
    /// What the video that was sent has used of the link.
    video: Used,
    /// What the downlink carries, in bits per second; 0: nobody counts.
    downlink_bps: f64,
}

impl AnchorPacer {
    /// A pacer that has room for one anchor.
    pub fn new(now: Instant) -> AnchorPacer {
        AnchorPacer {
            tokens: DEPTH_MIN_BYTES,
            earned: now,
            waiting: VecDeque::new(),
            bytes: 0,
            free: now,
            video: Used::default(),
            downlink_bps: 0.0,
        }
    }

    /// Sets what the subscriber's downlink carries in all; `None`: nobody counts.
    pub fn set_downlink(&mut self, bps: Option<u64>) {
        self.downlink_bps = bps.map_or(0.0, |bps| bps as f64);
    }

    /// Counts `bytes` of video that were sent.
    pub fn video_sent(&mut self, now: Instant, bytes: usize) {
        if self.video.is_within(now, QUEUE) {
            self.video.add(now, self.alone(bytes));
        }
    }

    /// Most bytes of payload in a message.
    pub fn max_message(&self) -> usize {
        if self.downlink_bps <= 0.0 {
            return message::MAX_CHUNK;
        }
        let bytes = (self.downlink_bps / 8.0 * MESSAGE.as_secs_f64()) as usize;
        bytes.clamp(MESSAGE_MIN_BYTES, message::MAX_CHUNK)
    }

    /// Decides about an anchor of `bytes` whose frame came `age` ago. `rate_bps` is what anchors may take now in the mean,
    /// `buffered` what the channel still holds.
    pub fn admit(
        &mut self,
        now: Instant,
        rate_bps: u64,
        buffered: usize,
        bytes: usize,
        age: Duration,
        budget: Duration,
    ) -> Verdict {
        let rate = rate_bps as f64 / 8.0;
        let depth = (rate * DEPTH.as_secs_f64()).max(DEPTH_MIN_BYTES);
        let earned = rate * now.saturating_duration_since(self.earned).as_secs_f64();
        self.tokens = (self.tokens + earned).min(depth);
        self.earned = now;
        if age > budget {
            return Verdict::Late;
        }
        let waits = self.waits(now);
        let takes = waits + self.takes(bytes, budget.saturating_sub(age + waits));
        // An anchor larger than the bucket may go when it is full, and is paid back afterwards.
        if buffered + self.bytes + bytes > BUFFERED_MAX
            || self.tokens < (bytes as f64).min(depth)
            || age + takes > budget
        {
            return Verdict::Full;
        }
        self.tokens -= bytes as f64;
        Verdict::Send(takes)
    }

    /// Takes the messages of an anchor that was admitted, whose age is `age`.
    pub fn push(
        &mut self,
        now: Instant,
        slot: Mid,
        messages: Vec<Vec<u8>>,
        age: Duration,
        budget: Duration,
    ) {
        let bytes: usize = messages.iter().map(Vec::len).sum();
        let deadline = now + budget.saturating_sub(age);
        let last = messages.len().saturating_sub(1);
        let waits = self.waits(now);
        let takes = self.takes(bytes, budget.saturating_sub(age + waits));
        self.bytes += bytes;
        self.waiting.extend(messages.into_iter().enumerate().map(|(n, message)| Waiting {
            deadline,
            slot,
            takes: takes.mul_f64(message.len() as f64 / bytes.max(1) as f64),
            message,
            ends: (n == last).then_some((bytes, age)),
        }));
    }

    /// The next message that may go now, or whose anchor has become too old.
    pub fn release(&mut self, now: Instant) -> Option<Released> {
        let first = self.waiting.front()?;
        if now > first.deadline {
            let slot = first.slot;
            while let Some(dropped) = self.waiting.pop_front() {
                self.bytes -= dropped.message.len();
                if dropped.ends.is_some() {
                    break;
                }
            }
            return Some(Released::Stale(slot));
        }
        let due = self.due();
        if due > now {
            return None;
        }
        let Waiting { slot, message, takes, ends, .. } = self.waiting.pop_front()?;
        self.bytes -= message.len();
        self.free = now.max(due) + takes;
        Some(Released::Message(message, ends.map(|(bytes, age)| (slot, bytes, age))))
    }

    /// When [`AnchorPacer::release`] is due.
    pub fn timeout(&self) -> Option<Instant> {
        // What waits for video may become too old meanwhile: just after its deadline.
        let stale = |first: &Waiting| first.deadline + Duration::from_nanos(1);
        self.waiting.front().map(|first| self.due().min(stale(first)))
    }

    /// When the next message may go.
    fn due(&self) -> Instant {
        self.video.within(BUSY).map_or(self.free, |video| video.max(self.free))
    }

    /// Anchors of which messages wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.iter().filter(|w| w.ends.is_some()).count() as u64
    }

    /// How long what came before keeps a new anchor waiting.
    fn waits(&self, now: Instant) -> Duration {
        let waiting: Duration = self.waiting.iter().map(|w| w.takes).sum();
        self.due().saturating_duration_since(now) + waiting
    }

    /// How long the messages of an anchor are spread that has so much time left.
    fn takes(&self, bytes: usize, left: Duration) -> Duration {
        let alone = self.alone(bytes);
        alone.div_f64(SHARE).min(left.mul_f64(SPREAD)).max(alone)
    }

    /// How long the link takes for so much.
    fn alone(&self, bytes: usize) -> Duration {
        if self.downlink_bps <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.downlink_bps)
    }
}

/// The messages of an anchor at its place in a subscriber's timeline; `None` when the format has no room for it.
pub fn messages(
    anchor: &Anchor,
    rtp_timestamp: u32,
    epoch: u16,
    age: Duration,
    max_message: usize,
) -> Option<Vec<Vec<u8>>> {
    if anchor.payload.is_empty() || anchor.width == 0 || anchor.height == 0 {
        return None;
    }
    let size = (anchor.width, anchor.height);
    let header = AnchorHeader {
        tiled: anchor.tiled,
        beyond_prior: anchor.beyond_prior,
        stream: anchor.stream.0,
        epoch,
        age_ms: u16::try_from(age.as_millis()).unwrap_or(u16::MAX),
        ..AnchorHeader::new(anchor.codec, anchor.source, rtp_timestamp, size)
    };
    message::encode_chunks(&header, &anchor.payload, max_message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(200);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sent(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Send(_))
    }

    #[test]
    fn an_anchor_over_the_budget_is_late() {
        let now = Instant::now();
        let mut pacer = AnchorPacer::new(now);
        assert_eq!(pacer.admit(now, 1_000_000, 0, 10_000, BUDGET + MS(1), BUDGET), Verdict::Late);
        assert!(sent(pacer.admit(now, 1_000_000, 0, 10_000, BUDGET, BUDGET)));
    }

    #[test]
    fn anchors_get_no_more_than_their_rate() {
        let start = Instant::now();
        let mut pacer = AnchorPacer::new(start);
        let mut bytes = 0;
        for i in 0..1000 {
            let now = start + MS(10) * i;
            if sent(pacer.admit(now, 400_000, 0, 5000, Duration::ZERO, BUDGET)) {
                bytes += 5000;
            }
        }
        assert!((450_000..=540_000).contains(&bytes), "{bytes} bytes in 10 s at 50 kB/s");
    }

    #[test]
    fn a_full_channel_takes_nothing_more() {
        let now = Instant::now();
        let verdict = AnchorPacer::new(now).admit(now, 1_000_000, BUFFERED_MAX, 1, MS(0), BUDGET);
        assert_eq!(verdict, Verdict::Full);
    }

    #[test]
    fn without_bandwidth_video_goes_alone() {
        let start = Instant::now();
        let mut pacer = AnchorPacer::new(start);
        pacer.admit(start, 0, 0, 32_768, Duration::ZERO, BUDGET);
        let later = start + Duration::from_secs(60);
        assert_eq!(pacer.admit(later, 0, 0, 1000, Duration::ZERO, BUDGET), Verdict::Full);
    }

    /// An anchor of eight messages of 1000 bytes over a downlink of 1.28 Mbit/s: 12.5 ms by message.
    fn eight(now: Instant) -> AnchorPacer {
        let mut pacer = AnchorPacer::new(now);
        pacer.set_downlink(Some(1_280_000));
        assert_eq!(pacer.admit(now, 400_000, 0, 8000, MS(20), BUDGET), Verdict::Send(MS(100)));
        pacer.push(now, Mid::from("v"), vec![vec![7; 1000]; 8], MS(20), BUDGET);
        pacer
    }

    #[test]
    fn its_messages_are_spread() {
        let start = Instant::now();
        let mut pacer = eight(start);
        let mut at = Vec::new();
        while let Some(due) = pacer.timeout() {
            match pacer.release(due.max(start)) {
                Some(Released::Message(_, ends)) => at.push((due - start, ends.is_some())),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(at.len(), 8);
        assert_eq!(at[7], (Duration::from_micros(87_500), true));
        assert!(at[..7].iter().all(|(_, ends)| !ends));
    }

    #[test]
    fn what_is_left_at_the_deadline_is_dropped() {
        let start = Instant::now();
        let mut pacer = eight(start);
        assert!(matches!(pacer.release(start), Some(Released::Message(..))));
        let late = start + MS(181);
        assert_eq!(pacer.release(late), Some(Released::Stale(Mid::from("v"))));
        assert_eq!((pacer.release(late), pacer.timeout(), pacer.bytes), (None, None, 0));
    }

    #[test]
    fn what_could_not_be_sent_in_time_is_not_begun() {
        let now = Instant::now();
        let mut pacer = eight(now);
        assert_eq!(pacer.admit(now, 400_000, 0, 8000, MS(90), BUDGET), Verdict::Full);
    }

    #[test]
    fn one_with_little_time_left_takes_all_there_is() {
        let now = Instant::now();
        let mut pacer = AnchorPacer::new(now);
        pacer.set_downlink(Some(1_280_000));
        // 50 ms by itself, 100 ms at half of it.
        let verdict = |age| pacer.admit(now, 1_000_000, 0, 8000, MS(age), BUDGET);
        assert_eq!(
            [20, 100, 150, 151].map(verdict),
            [Verdict::Send(MS(100)), Verdict::Send(MS(60)), Verdict::Send(MS(50)), Verdict::Full,]
        );
    }

    #[test]
    fn messages_wait_for_a_key_frame() {
        let start = Instant::now();
        let mut pacer = eight(start);
        assert!(matches!(pacer.release(start), Some(Released::Message(..))));
        pacer.video_sent(start, 16_000);
        assert_eq!(pacer.timeout(), Some(start + MS(50)));
        assert_eq!(pacer.release(start + MS(49)), None);
        assert!(matches!(pacer.release(start + MS(50)), Some(Released::Message(..))));
    }

    #[test]
    fn video_beyond_the_estimate_keeps_messages_waiting_for_no_longer_than_a_queue() {
        let start = Instant::now();
        let mut pacer = AnchorPacer::new(start);
        // Ten seconds of 1 Mbit/s while the link is taken to carry 100 kbit/s.
        pacer.set_downlink(Some(100_000));
        for n in 0..1000 {
            pacer.video_sent(start + MS(10) * n, 1250);
        }
        let end = start + MS(10_000);
        pacer.set_downlink(Some(1_000_000));
        let admitted = pacer.admit(end + QUEUE + MS(50), 1_000_000, 0, 100, MS(0), BUDGET);
        assert!(sent(admitted), "{admitted:?}");
    }

    #[test]
    fn a_message_takes_little_of_a_narrow_link() {
        let mut pacer = AnchorPacer::new(Instant::now());
        assert_eq!(pacer.max_message(), message::MAX_CHUNK);
        let mut of = |bps| {
            pacer.set_downlink(Some(bps));
            pacer.max_message()
        };
        assert_eq!([50_000, 800_000, 100_000_000].map(&mut of), [1100, 3000, message::MAX_CHUNK]);
    }

    #[test]
    fn without_an_estimate_it_goes_at_once() {
        let now = Instant::now();
        let mut pacer = AnchorPacer::new(now);
        pacer.push(now, Mid::from("v"), vec![vec![7; 1000]; 3], MS(0), BUDGET);
        for _ in 0..3 {
            assert!(matches!(pacer.release(now), Some(Released::Message(..))));
        }
        assert_eq!(pacer.release(now), None);
    }
}
