//! When the publisher of a stream is asked for a key frame. Browsers leave requests out that follow a recent key frame, silently, and packets are lost: who waits
//! asks again and again.
//!
//! Pure: every time is an argument.

use std::time::{Duration, Instant};

/// Between two wishes. Requests are throttled once more where they are sent.
const EVERY: Duration = Duration::from_millis(200);

/// Whether a stream waits for a key frame, before which nothing of it can be decoded.
#[derive(Debug, Default)]
pub struct KeyWish {
    /// It does, and asked then, if it did.
    waits: bool,
    asked: Option<Instant>,
}

impl KeyWish {
    /// One that waits from the start. The first key frame is under way: nobody need be asked just yet.
    pub fn new(now: Instant) -> Self {
        KeyWish { waits: true, asked: Some(now) }
    }

    /// Nothing can be decoded before the next key frame. Whether it is asked for now.
    pub fn wait(&mut self, now: Instant) -> bool {
        if !std::mem::replace(&mut self.waits, true) {
            self.asked = None;
        }
        let due = self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= EVERY);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// A frame has come. Whether it can be decoded.
    pub fn came(&mut self, key: bool) -> bool {
        self.waits &= !key;
        !self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_frame_is_asked_for_until_it_comes() {
        let begin = Instant::now();
        let mut wish = KeyWish::new(begin);
        assert!(wish.came(true) && wish.came(false));
        assert!(wish.wait(begin));
        assert!(!wish.came(false));
        assert!(!wish.wait(begin + EVERY / 2));
        assert!(wish.wait(begin + EVERY), "the first request may be lost");
        assert!(wish.wait(begin + 2 * EVERY));
        assert!(wish.came(true));
        assert!(wish.wait(begin + 2 * EVERY), "another loss is asked about at once");
    }

    #[test]
    fn who_begins_gives_the_first_key_frame_a_moment() {
        let begin = Instant::now();
        let mut wish = KeyWish::new(begin);
        assert!(!wish.wait(begin));
        assert!(wish.wait(begin + EVERY));
    }
}
