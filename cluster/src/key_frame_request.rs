//! Times at which the publisher of a stream is asked for a key frame. Browsers silently ignore a request soon after a
//! key frame, and requests get lost. So a request is repeated until a key frame arrives.
//!
//! Pure: every time is an argument.

use std::time::{Duration, Instant};

/// Interval between two requests. The SFU throttles them once more.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);

/// Whether a stream waits for a key frame, before which none of its frames can be decoded.
#[derive(Debug, Default)]
pub(crate) struct KeyFrameRequest {
    is_pending: bool,
    /// Time of the last request for this key frame.
    requested: Option<Instant>,
}

impl KeyFrameRequest {
    /// The state of a new stream. Its first key frame is under way, so the first request is due after
    /// [`REPEAT_INTERVAL`].
    pub(crate) fn new(now: Instant) -> Self {
        KeyFrameRequest { is_pending: true, requested: Some(now) }
    }

    /// Notes that the stream needs a key frame. Returns whether a request is due now.
    pub(crate) fn need(&mut self, now: Instant) -> bool {
        if !std::mem::replace(&mut self.is_pending, true) {
            self.requested = None;
        }
        let due =
            self.requested.is_none_or(|at| now.saturating_duration_since(at) >= REPEAT_INTERVAL);
        if due {
            self.requested = Some(now);
        }
        due
    }

    /// Notes that a frame arrived. Returns whether it can be decoded.
    pub(crate) fn on_frame(&mut self, key: bool) -> bool {
        self.is_pending &= !key;
        !self.is_pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_frame_is_asked_for_until_it_comes() {
        let begin = Instant::now();
        let mut request = KeyFrameRequest::new(begin);
        assert!(request.on_frame(true) && request.on_frame(false));
        assert!(request.need(begin));
        assert!(!request.on_frame(false));
        assert!(!request.need(begin + REPEAT_INTERVAL / 2));
        assert!(request.need(begin + REPEAT_INTERVAL), "the first request may be lost");
        assert!(request.need(begin + 2 * REPEAT_INTERVAL));
        assert!(request.on_frame(true));
        assert!(request.need(begin + 2 * REPEAT_INTERVAL), "another loss is asked about at once");
    }

    #[test]
    fn who_begins_gives_the_first_key_frame_a_moment() {
        let begin = Instant::now();
        let mut request = KeyFrameRequest::new(begin);
        assert!(!request.need(begin));
        assert!(request.need(begin + REPEAT_INTERVAL));
    }
}
