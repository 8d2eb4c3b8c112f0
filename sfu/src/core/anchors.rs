//! Whether an anchor may go to a subscriber now. It goes at once or not at all: nothing is queued here.
//!
//! Anchors share one bandwidth with the video, which comes first: they get what the estimate leaves. A token
//! bucket spreads them, and what the data channel still holds must stay small, or video would wait behind it.

use std::time::{Duration, Instant};

use windlass_hybrid::anchor::message::{self, AnchorHeader, AnchorOrigin};
use windlass_media::{Anchor, AnchorSource};

/// Most bytes that the data channel may hold, the new anchor included.
pub const BUFFERED_MAX: usize = 128 * 1024;
/// What is spent at most without an estimate, in bits per second.
pub const UNLIMITED_BPS: u64 = 16_000_000;
/// How much saved-up bandwidth a burst may use.
const DEPTH: Duration = Duration::from_millis(250);
/// A bucket holds at least one usual anchor.
const DEPTH_MIN_BYTES: f64 = 32_768.0;

/// What became of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go.
    Send,
    /// It is older than the budget.
    Late,
    /// There is no room for it.
    Full,
}

/// The token bucket of one subscriber.
#[derive(Debug)]
pub struct Pace {
    tokens: f64,
    last: Instant,
}

impl Pace {
    /// A bucket that has room for one anchor.
    pub fn new(now: Instant) -> Pace {
        Pace { tokens: DEPTH_MIN_BYTES, last: now }
    }

    /// Decides about an anchor of `bytes` whose frame came `age` ago. `rate_bps` is what anchors may take now,
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
        let earned = rate * now.saturating_duration_since(self.last).as_secs_f64();
        self.tokens = (self.tokens + earned).min(depth);
        self.last = now;
        if age > budget {
            return Verdict::Late;
        }
        // An anchor larger than the bucket may go when it is full, and is paid back afterwards.
        if buffered + bytes > BUFFERED_MAX || self.tokens < (bytes as f64).min(depth) {
            return Verdict::Full;
        }
        self.tokens -= bytes as f64;
        Verdict::Send
    }
}

/// The messages of an anchor at its place in a subscriber's timeline; `None` when the format has no room for it.
pub fn messages(
    anchor: &Anchor,
    rtp_timestamp: u32,
    epoch: u16,
    age: Duration,
) -> Option<Vec<Vec<u8>>> {
    if anchor.payload.is_empty() || anchor.width == 0 || anchor.height == 0 {
        return None;
    }
    let source = match anchor.source {
        AnchorSource::Enhanced => AnchorOrigin::Enhanced,
        AnchorSource::Captured => AnchorOrigin::Captured,
    };
    let size = (anchor.width, anchor.height);
    let header = AnchorHeader {
        tiled: anchor.tiled,
        beyond_prior: anchor.beyond_prior,
        stream: anchor.stream.0,
        epoch,
        age_ms: u16::try_from(age.as_millis()).unwrap_or(u16::MAX),
        ..AnchorHeader::new(anchor.codec, source, rtp_timestamp, size)
    };
    message::encode_chunks(&header, &anchor.payload, message::MAX_CHUNK).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(200);

    #[test]
    fn an_anchor_over_the_budget_is_late() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!(
            pace.admit(now, 1_000_000, 0, 10_000, BUDGET + Duration::from_millis(1), BUDGET),
            Verdict::Late
        );
        assert_eq!(pace.admit(now, 1_000_000, 0, 10_000, BUDGET, BUDGET), Verdict::Send);
    }

    #[test]
    fn anchors_get_no_more_than_their_rate() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut sent = 0;
        for i in 0..1000 {
            let now = start + Duration::from_millis(10) * i;
            if pace.admit(now, 400_000, 0, 5000, Duration::ZERO, BUDGET) == Verdict::Send {
                sent += 5000;
            }
        }
        assert!((450_000..=540_000).contains(&sent), "{sent} bytes in 10 s at 50 kB/s");
    }

    #[test]
    fn a_full_channel_takes_nothing_more() {
        let now = Instant::now();
        assert_eq!(
            Pace::new(now).admit(now, 1_000_000, BUFFERED_MAX, 1, Duration::ZERO, BUDGET),
            Verdict::Full
        );
    }

    #[test]
    fn without_bandwidth_video_goes_alone() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.admit(start, 0, 0, 32_768, Duration::ZERO, BUDGET);
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.admit(later, 0, 0, 1000, Duration::ZERO, BUDGET), Verdict::Full);
    }
}
