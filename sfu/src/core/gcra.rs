//! A rate limit by the generic cell rate algorithm (GCRA, ITU-T I.371, as virtual scheduling): one instant, and no
//! timer.

use std::time::{Duration, Instant};

/// The theoretical arrival time: when all that was used will have been earned again. `None`: nothing was used yet.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Gcra(Option<Instant>);

impl Gcra {
    /// Uses what is earned in the time `cost`.
    pub(crate) fn add(&mut self, now: Instant, cost: Duration) {
        self.0 = Some(self.0.map_or(now, |until| until.max(now)) + cost);
    }

    /// Time from which on at most `burst` is in use; `None` if more was never in use.
    pub(crate) fn conforms_at(self, burst: Duration) -> Option<Instant> {
        self.0.and_then(|until| until.checked_sub(burst))
    }

    /// Whether at most `burst` is in use.
    pub(crate) fn conforms(self, now: Instant, burst: Duration) -> bool {
        self.conforms_at(burst).is_none_or(|from| from <= now)
    }
}
