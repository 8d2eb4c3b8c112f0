//! When a tap asks for key frames: less and less often while it needs one again and again, as each takes bits from all
//! subscribers.

use std::time::{Duration, Instant};

use crate::core::publisher::key_frames::MIN_INTERVAL;

/// Time without a gap after which key frames are requested at the first interval again.
const STEADY_TIME: Duration = Duration::from_secs(2);
/// Number of times that the interval between two requests may double: up to 32 × [`MIN_INTERVAL`].
const MAX_DOUBLINGS: u32 = 5;

/// The key frame requests of one tap.
#[derive(Debug, Default)]
pub(crate) struct TapKeys {
    /// Number of requests since frames last came without gaps.
    requests: u32,
    next: Option<Instant>,
    /// When the last key frame came, if there was no gap since.
    steady_since: Option<Instant>,
}

impl TapKeys {
    /// Whether to request a key frame now.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.next.is_some_and(|at| now < at) {
            return false;
        }
        self.next = Some(now + MIN_INTERVAL * (1 << self.requests.min(MAX_DOUBLINGS)));
        self.requests += 1;
        true
    }

    /// Marks a gap: frames do not follow each other any more.
    pub(crate) fn on_gap(&mut self) {
        self.steady_since = None;
    }

    /// Takes the arrival of a frame that follows the one before it, or of a key frame.
    pub(crate) fn on_frame(&mut self, arrival: Instant) {
        let since = *self.steady_since.get_or_insert(arrival);
        if arrival.saturating_duration_since(since) >= STEADY_TIME {
            (self.requests, self.next) = (0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_doubles_until_frames_come_for_a_while() {
        let (mut keys, now) = (TapKeys::default(), Instant::now());
        assert!(keys.take(now) && !keys.take(now));
        assert!(keys.take(now + MIN_INTERVAL));
        assert!(!keys.take(now + 2 * MIN_INTERVAL) && keys.take(now + 3 * MIN_INTERVAL));
        keys.on_frame(now);
        keys.on_gap();
        keys.on_frame(now + STEADY_TIME);
        assert!(!keys.take(now + 4 * MIN_INTERVAL), "it has only begun again");
        keys.on_frame(now + 2 * STEADY_TIME);
        assert!(keys.take(now + 4 * MIN_INTERVAL));
    }
}
