//! What the pipeline's threads read the time from.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tells the time: the machine's, or one that a test moves on by hand. Clones tell the same.
///
/// Where a thread waits, it waits in the machine's time, and looks at the clock again before it concludes anything.
#[derive(Clone)]
pub(super) struct Clock {
    now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// The pipeline's beginning, from which the scheduler and ledgers count time.
    origin: Instant,
}

impl Clock {
    /// A clock by `now`, whose origin is the present.
    pub(super) fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Clock {
        let origin = now();
        Clock { now: Arc::new(now), origin }
    }

    pub(super) fn now(&self) -> Instant {
        (self.now)()
    }

    /// The pipeline's beginning.
    pub(super) fn origin(&self) -> Instant {
        self.origin
    }

    /// Time since the origin.
    pub(super) fn elapsed(&self) -> Duration {
        self.since(self.origin)
    }

    /// From the origin to `then`; none if it was before.
    pub(super) fn span_to(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.origin)
    }

    /// When so much has passed since the origin, if that is a time.
    pub(super) fn after(&self, span: Duration) -> Option<Instant> {
        self.origin.checked_add(span)
    }

    /// Time that has passed since `then`; none if it is yet to come.
    pub(super) fn since(&self, then: Instant) -> Duration {
        self.now().saturating_duration_since(then)
    }

    /// Time that is left until `then`; none if it has passed.
    pub(super) fn until(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.now())
    }
}

impl Default for Clock {
    /// The machine's monotonic clock.
    fn default() -> Self {
        Clock::new(Instant::now)
    }
}
