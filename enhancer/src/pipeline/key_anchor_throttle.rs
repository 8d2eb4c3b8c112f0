//! Decides which anchors are key anchors: on request, one for all subscribers, throttled.
//!
//! Late joiners and subscribers who lost an anchor ask. Whoever asks while a key anchor is due, or too soon after one,
//! shares the next. Time is an argument, as a span since any fixed moment.

use std::time::Duration;

/// Collects requests for key anchors of one stream.
#[derive(Debug, Clone)]
pub(super) struct KeyAnchorThrottle {
    interval: Duration,
    last: Option<Duration>,
    wanted: bool,
}

impl KeyAnchorThrottle {
    /// Allows at most one key anchor in each `interval`.
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, last: None, wanted: false }
    }

    /// Notes that a subscriber needs a key anchor.
    pub(super) fn request(&mut self) {
        self.wanted = true;
    }

    /// Whether the anchor that is made now is to be a key anchor. If so, it answers all requests.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let rested = self.last.is_none_or(|last| now.saturating_sub(last) >= self.interval);
        let due = self.last.is_none() || self.wanted && rested;
        if due {
            self.last = Some(now);
            self.wanted = false;
        }
        due
    }

    /// Notes that the key anchor that [`take`](Self::take) allowed was not sent. The next one is due at once.
    pub(super) fn failed(&mut self) {
        self.last = None;
    }
}

impl Default for KeyAnchorThrottle {
    /// Allows one key anchor in two seconds.
    fn default() -> Self {
        Self::new(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_anchor_is_a_key_anchor() {
        let mut throttle = KeyAnchorThrottle::default();
        assert!(throttle.take(at(70_000)));
        assert!(!throttle.take(at(90_000)), "nobody asked");
    }

    #[test]
    fn a_key_anchor_that_was_not_sent_is_due_again_at_once() {
        let mut throttle = KeyAnchorThrottle::default();
        assert!(throttle.take(at(0)));
        throttle.failed();
        assert!(throttle.take(at(1)) && !throttle.take(at(2)));
    }

    #[test]
    fn requests_share_one_key_anchor_and_wait_for_it() {
        let mut throttle = KeyAnchorThrottle::new(at(2000));
        assert!(throttle.take(at(0)));
        for _ in 0..5 {
            throttle.request();
        }
        assert!(!throttle.take(at(1999)));
        assert!(throttle.take(at(2000)));
        assert!(!throttle.take(at(9000)));
    }
}
