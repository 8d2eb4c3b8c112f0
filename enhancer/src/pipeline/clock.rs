//! The clock of the pipeline's threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock: the machine's, or one that a test moves by hand. Clones show the same time.
///
/// A waiting thread waits in the machine's time, and looks at the clock again before it decides anything.
#[derive(Clone)]
pub(super) struct Clock {
    now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Start of the pipeline, from which the scheduler and ledgers count time.
    origin: Instant,
}

impl Clock {
    /// Creates a clock that reads `now`, with the present as its origin.
    pub(super) fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Clock {
        let origin = now();
        Clock { now: Arc::new(now), origin }
    }

    pub(super) fn now(&self) -> Instant {
        (self.now)()
    }

    /// Start of the pipeline.
    pub(super) fn origin(&self) -> Instant {
        self.origin
    }

    /// Time since the origin.
    pub(super) fn elapsed(&self) -> Duration {
        self.since(self.origin)
    }

    /// Time from the origin to `then`; zero if `then` was before.
    pub(super) fn span_to(&self, then: Instant) -> Duration {
        then.saturating_duration_since(self.origin)
    }

    /// Instant at `span` after the origin; `None` if no such instant exists.
    pub(super) fn after(&self, span: Duration) -> Option<Instant> {
        self.origin.checked_add(span)
    }

    /// Time that has passed since `then`; zero if `then` is in the future.
    pub(super) fn since(&self, then: Instant) -> Duration {
        self.now().saturating_duration_since(then)
    }

    /// Time that is left until `then`; zero if `then` has passed.
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
