//! The pacer of one subscriber's anchors.
//!
//! Anchors share the downlink with video, which has priority. A token bucket at the rate that video leaves admits or
//! drops an anchor as a whole. An admitted anchor is sent as messages, spread over time at half of the downlink's rate,
//! so that they do not delay the video behind them. Messages wait while the link is busy with a large video frame. What
//! is left of an anchor at its deadline is dropped, never sent late. The bytes that wait here and in the data channel
//! are bounded.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use str0m::media::Mid;
use windlass_types::message::{self, AnchorHeader};
use windlass_types::{Anchor, Bitrate};

use crate::core::gcra::Gcra;

/// Maximum bytes of anchors that wait in the pacer and in the data channel, a new anchor included.
pub(crate) const MAX_BUFFERED: usize = 128 * 1024;
/// Rate of anchors without congestion control.
pub(crate) const UNLIMITED: Bitrate = Bitrate::bps(16_000_000);
/// Depth of the token bucket, as time at the anchors' rate.
const BUCKET_DEPTH: Duration = Duration::from_millis(250);
/// Minimum depth of the token bucket in bytes: one usual anchor.
const MIN_BUCKET_BYTES: f64 = 32_768.0;
/// Share of the downlink's rate at which messages are spread, if the deadline permits.
const LINK_SHARE: f64 = 0.5;
/// Maximum share of an anchor's remaining time over which its messages are spread. The rest is for the path.
const MAX_SPREAD: f64 = 0.6;
/// Maximum transmission time of one message, which delays the video behind it.
const MAX_MESSAGE_TIME: Duration = Duration::from_millis(30);
/// Minimum size of a message in bytes: one packet.
const MIN_MESSAGE_BYTES: usize = 1100;
/// Transmission time of sent video above which messages wait: a key frame is longer, other frames are shorter.
const BUSY_TIME: Duration = Duration::from_millis(50);
/// Maximum transmission time of video that is assumed to wait in the link. More would be the error of an estimate below
/// the video's bitrate.
const MAX_VIDEO_QUEUE: Duration = Duration::from_millis(500);

/// Decision about an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send it; its last message is due after this time.
    Send(Duration),
    /// Drop it: it would come to the client after the latency budget.
    Late,
    /// Drop it: tokens, buffer or time do not suffice.
    Full,
}

/// A message that waits to be sent.
#[derive(Debug)]
struct Waiting {
    deadline: Instant,
    slot: Mid,
    message: Vec<u8>,
    /// Time until the next message.
    spacing: Duration,
    /// Set for the anchor's last message.
    end: Option<AnchorEnd>,
}

/// The end of an anchor, with its last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnchorEnd {
    /// The m-line of the anchor's video.
    pub slot: Mid,
    /// Bytes of all the anchor's messages.
    pub bytes: usize,
    /// Age of the anchor's frame when the anchor was admitted.
    pub age: Duration,
}

/// Result of [`AnchorPacer::release`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// A message to send, and the end of its anchor if it is the last one.
    Message(Vec<u8>, Option<AnchorEnd>),
    /// The rest of an anchor of this m-line is dropped: its deadline has passed.
    Stale(Mid),
}

/// The pacer.
#[derive(Debug)]
pub(crate) struct AnchorPacer {
    /// Tokens of the bucket, in bytes.
    tokens: f64,
    last_refill: Instant,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// When the spacing after the last message ends.
    next_send: Instant,
    /// Transmission time of the video that was sent.
    video: Gcra,
    /// The downlink's rate in bit/s; 0: no congestion control.
    downlink_bps: f64,
    /// Time that a message takes to the client.
    path: Duration,
}

impl AnchorPacer {
    /// A pacer with tokens for one anchor.
    pub(crate) fn new(now: Instant) -> AnchorPacer {
        AnchorPacer {
            tokens: MIN_BUCKET_BYTES,
            last_refill: now,
            waiting: VecDeque::new(),
            bytes: 0,
            next_send: now,
            video: Gcra::default(),
            downlink_bps: 0.0,
            path: Duration::ZERO,
        }
    }

    /// Sets the time that a message takes to the client.
    pub(crate) fn set_path(&mut self, delay: Duration) {
        self.path = delay;
    }

    /// Sets the downlink's rate; `None`: no congestion control.
    pub(crate) fn set_downlink(&mut self, rate: Option<Bitrate>) {
        self.downlink_bps = rate.map_or(0.0, |rate| rate.as_bps() as f64);
    }

    /// Counts `bytes` of video that were sent.
    pub(crate) fn video_sent(&mut self, now: Instant, bytes: usize) {
        if self.video.conforms(now, MAX_VIDEO_QUEUE) {
            self.video.add(now, self.transmission_time(bytes));
        }
    }

    /// Maximum payload of a message in bytes.
    pub(crate) fn max_message(&self) -> usize {
        if self.downlink_bps <= 0.0 {
            return message::MAX_CHUNK;
        }
        let bytes = (self.downlink_bps / 8.0 * MAX_MESSAGE_TIME.as_secs_f64()) as usize;
        bytes.clamp(MIN_MESSAGE_BYTES, message::MAX_CHUNK)
    }

    /// Decides about an anchor of `bytes` whose frame came `age` ago, and that is to be at the client within `budget`.
    /// `rate` is the mean rate of anchors, `buffered` the bytes in the data channel.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        rate: Bitrate,
        buffered: usize,
        bytes: usize,
        age: Duration,
        budget: Duration,
    ) -> Verdict {
        let bytes_per_s = rate.as_bps() as f64 / 8.0;
        let depth = (bytes_per_s * BUCKET_DEPTH.as_secs_f64()).max(MIN_BUCKET_BYTES);
        let earned = bytes_per_s * now.saturating_duration_since(self.last_refill).as_secs_f64();
        self.tokens = (self.tokens + earned).min(depth);
        self.last_refill = now;
        let budget = self.until_sent(budget);
        if age > budget {
            return Verdict::Late;
        }
        let wait = self.wait(now);
        let send_time = wait + self.spread(bytes, budget.saturating_sub(age + wait));
        // An anchor larger than the bucket may go when the bucket is full; tokens are negative afterwards.
        if buffered + self.bytes + bytes > MAX_BUFFERED
            || self.tokens < (bytes as f64).min(depth)
            || age + send_time > budget
        {
            return Verdict::Full;
        }
        self.tokens -= bytes as f64;
        Verdict::Send(send_time)
    }

    /// Queues the messages of an admitted anchor.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        slot: Mid,
        messages: Vec<Vec<u8>>,
        age: Duration,
        budget: Duration,
    ) {
        let bytes: usize = messages.iter().map(Vec::len).sum();
        let budget = self.until_sent(budget);
        let deadline = now + budget.saturating_sub(age);
        let last = messages.len().saturating_sub(1);
        let wait = self.wait(now);
        let spread = self.spread(bytes, budget.saturating_sub(age + wait));
        self.bytes += bytes;
        self.waiting.extend(messages.into_iter().enumerate().map(|(n, message)| Waiting {
            deadline,
            slot,
            spacing: spread.mul_f64(message.len() as f64 / bytes.max(1) as f64),
            message,
            end: (n == last).then_some(AnchorEnd { slot, bytes, age }),
        }));
    }

    /// The next message that is due, or an anchor whose deadline has passed.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Released> {
        let first = self.waiting.front()?;
        if now > first.deadline {
            let slot = first.slot;
            while let Some(dropped) = self.waiting.pop_front() {
                self.bytes -= dropped.message.len();
                if dropped.end.is_some() {
                    break;
                }
            }
            return Some(Released::Stale(slot));
        }
        let due = self.due();
        if due > now {
            return None;
        }
        let Waiting { message, spacing, end, .. } = self.waiting.pop_front()?;
        self.bytes -= message.len();
        self.next_send = now.max(due) + spacing;
        Some(Released::Message(message, end))
    }

    /// When [`AnchorPacer::release`] is due.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        // Messages that wait for video may pass their deadline: they are dropped just after it.
        let stale = |first: &Waiting| first.deadline + Duration::from_nanos(1);
        self.waiting.front().map(|first| self.due().min(stale(first)))
    }

    /// When the next message is due.
    fn due(&self) -> Instant {
        self.video.conforms_at(BUSY_TIME).map_or(self.next_send, |video| video.max(self.next_send))
    }

    /// Number of anchors whose messages wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.iter().filter(|w| w.end.is_some()).count() as u64
    }

    /// Time until the messages that wait already are sent.
    fn wait(&self, now: Instant) -> Duration {
        let waiting: Duration = self.waiting.iter().map(|w| w.spacing).sum();
        self.due().saturating_duration_since(now) + waiting
    }

    /// The part of a budget in which an anchor must be sent: the rest is for its way to the client. That is half of the
    /// budget at most. A client far away gets anchors late, as it gets its video.
    fn until_sent(&self, budget: Duration) -> Duration {
        budget.saturating_sub(self.path.min(budget / 2))
    }

    /// Time over which the messages of an anchor are spread that has `left` until its deadline.
    fn spread(&self, bytes: usize, left: Duration) -> Duration {
        let min = self.transmission_time(bytes);
        min.div_f64(LINK_SHARE).min(left.mul_f64(MAX_SPREAD)).max(min)
    }

    /// Transmission time of `bytes` at the downlink's rate.
    fn transmission_time(&self, bytes: usize) -> Duration {
        if self.downlink_bps <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.downlink_bps)
    }
}

/// The messages of an anchor at a place in a subscriber's timeline; `None` if the format cannot hold it.
pub(crate) fn messages(
    anchor: &Anchor,
    rtp_timestamp: u32,
    epoch: u16,
    age: Duration,
    max_message: usize,
) -> Option<Vec<Vec<u8>>> {
    if anchor.payload.is_empty() || anchor.size.width == 0 || anchor.size.height == 0 {
        return None;
    }
    let age_ms = u16::try_from(age.as_millis()).unwrap_or(u16::MAX);
    let header = AnchorHeader { rtp_timestamp, epoch, age_ms, ..anchor.header() };
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
        assert_eq!(
            pacer.admit(now, Bitrate::bps(1_000_000), 0, 10_000, BUDGET + MS(1), BUDGET),
            Verdict::Late
        );
        assert!(sent(pacer.admit(now, Bitrate::bps(1_000_000), 0, 10_000, BUDGET, BUDGET)));
    }

    #[test]
    fn an_anchors_way_to_the_client_is_part_of_its_budget() {
        let now = Instant::now();
        let verdict = |path, age| {
            let mut pacer = AnchorPacer::new(now);
            pacer.set_path(path);
            pacer.admit(now, Bitrate::bps(1_000_000), 0, 10_000, age, BUDGET)
        };
        assert!(sent(verdict(MS(60), MS(140))));
        assert_eq!(verdict(MS(60), MS(141)), Verdict::Late);
        // A satellite's path alone would take all of it.
        assert!(sent(verdict(MS(300), MS(100))));
        assert_eq!(verdict(MS(300), MS(101)), Verdict::Late);
    }

    #[test]
    fn a_message_that_would_come_too_late_is_not_sent() {
        let now = Instant::now();
        let mut pacer = eight(now);
        pacer.set_path(MS(50));
        let admitted = pacer.admit(now, Bitrate::bps(4_000_000), 0, 1000, MS(20), BUDGET);
        assert!(sent(admitted), "{admitted:?}");
        pacer.push(now, Mid::from("w"), vec![vec![7; 1000]], MS(20), BUDGET);
        let last = pacer.waiting.back().map(|w| w.deadline);
        assert_eq!(last, Some(now + MS(130)));
    }

    #[test]
    fn anchors_get_no_more_than_their_rate() {
        let start = Instant::now();
        let mut pacer = AnchorPacer::new(start);
        let mut bytes = 0;
        for i in 0..1000 {
            let now = start + MS(10) * i;
            if sent(pacer.admit(now, Bitrate::bps(400_000), 0, 5000, Duration::ZERO, BUDGET)) {
                bytes += 5000;
            }
        }
        assert!((450_000..=540_000).contains(&bytes), "{bytes} bytes in 10 s at 50 kB/s");
    }

    #[test]
    fn a_full_channel_takes_nothing_more() {
        let now = Instant::now();
        let verdict = AnchorPacer::new(now).admit(
            now,
            Bitrate::bps(1_000_000),
            MAX_BUFFERED,
            1,
            MS(0),
            BUDGET,
        );
        assert_eq!(verdict, Verdict::Full);
    }

    #[test]
    fn without_bandwidth_video_goes_alone() {
        let start = Instant::now();
        let mut pacer = AnchorPacer::new(start);
        pacer.admit(start, Bitrate::ZERO, 0, 32_768, Duration::ZERO, BUDGET);
        let later = start + Duration::from_secs(60);
        assert_eq!(
            pacer.admit(later, Bitrate::ZERO, 0, 1000, Duration::ZERO, BUDGET),
            Verdict::Full
        );
    }

    /// An anchor of eight messages of 1000 bytes over a downlink of 1.28 Mbit/s: 12.5 ms by message.
    fn eight(now: Instant) -> AnchorPacer {
        let mut pacer = AnchorPacer::new(now);
        pacer.set_downlink(Some(Bitrate::bps(1_280_000)));
        assert_eq!(
            pacer.admit(now, Bitrate::bps(400_000), 0, 8000, MS(20), BUDGET),
            Verdict::Send(MS(100))
        );
        pacer.push(now, Mid::from("v"), vec![vec![7; 1000]; 8], MS(20), BUDGET);
        pacer
    }

    #[test]
    fn the_messages_of_an_anchor_are_spread_over_time() {
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
    fn messages_left_at_the_deadline_are_dropped() {
        let start = Instant::now();
        let mut pacer = eight(start);
        assert!(matches!(pacer.release(start), Some(Released::Message(..))));
        let late = start + MS(181);
        assert_eq!(pacer.release(late), Some(Released::Stale(Mid::from("v"))));
        assert_eq!((pacer.release(late), pacer.timeout(), pacer.bytes), (None, None, 0));
    }

    #[test]
    fn an_anchor_that_cannot_be_sent_in_time_is_refused() {
        let now = Instant::now();
        let mut pacer = eight(now);
        assert_eq!(pacer.admit(now, Bitrate::bps(400_000), 0, 8000, MS(90), BUDGET), Verdict::Full);
    }

    #[test]
    fn an_anchor_with_little_time_left_takes_the_whole_downlink() {
        let now = Instant::now();
        let mut pacer = AnchorPacer::new(now);
        pacer.set_downlink(Some(Bitrate::bps(1_280_000)));
        // 50 ms by itself, 100 ms at half of it.
        let verdict = |age| pacer.admit(now, Bitrate::bps(1_000_000), 0, 8000, MS(age), BUDGET);
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
        pacer.set_downlink(Some(Bitrate::bps(100_000)));
        for n in 0..1000 {
            pacer.video_sent(start + MS(10) * n, 1250);
        }
        let end = start + MS(10_000);
        pacer.set_downlink(Some(Bitrate::bps(1_000_000)));
        let admitted = pacer.admit(
            end + MAX_VIDEO_QUEUE + MS(50),
            Bitrate::bps(1_000_000),
            0,
            100,
            MS(0),
            BUDGET,
        );
        assert!(sent(admitted), "{admitted:?}");
    }

    #[test]
    fn a_message_takes_little_of_a_narrow_link() {
        let mut pacer = AnchorPacer::new(Instant::now());
        assert_eq!(pacer.max_message(), message::MAX_CHUNK);
        let mut of = |bps| {
            pacer.set_downlink(Some(Bitrate::bps(bps)));
            pacer.max_message()
        };
        assert_eq!([50_000, 800_000, 100_000_000].map(&mut of), [1100, 3000, message::MAX_CHUNK]);
    }

    #[test]
    fn without_an_estimate_an_anchor_is_sent_at_once() {
        let now = Instant::now();
        let mut pacer = AnchorPacer::new(now);
        pacer.push(now, Mid::from("v"), vec![vec![7; 1000]; 3], MS(0), BUDGET);
        for _ in 0..3 {
            assert!(matches!(pacer.release(now), Some(Released::Message(..))));
        }
        assert_eq!(pacer.release(now), None);
    }
}
