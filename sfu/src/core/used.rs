//! What has been used of a rate: one point in time, and no timer.

use std::time::{Duration, Instant};

/// When all that was used will have been earned again.
#[derive(Debug, Default, Clone, Copy)]
pub struct Used(Option<Instant>);

impl Used {
    /// Uses what so much time earns.
    pub fn add(&mut self, now: Instant, time: Duration) {
        self.0 = Some(self.0.map_or(now, |until| until.max(now)) + time);
    }

    /// From when on no more is used than so much time earns; `None`: it was never more.
    pub fn within(self, time: Duration) -> Option<Instant> {
        self.0.and_then(|until| until.checked_sub(time))
    }

    /// Whether no more is used than so much time earns.
    pub fn is_within(self, now: Instant, time: Duration) -> bool {
        self.within(time).is_none_or(|from| from <= now)
    }
}
