//! Time budget of learning: a share of one core, for all streams together.

use std::time::{Duration, Instant};

/// Time that may be spent. It grows by a share of the time that passes, up to the share of a span. Training may start
/// while any is left; after an overrun it waits.
#[derive(Debug)]
pub(crate) struct TimeBudget {
    share: f64,
    /// Maximum time that can be saved up, in seconds.
    max: f64,
    /// Time that may be spent now, in seconds; below zero after a sample that took more than was left.
    left: f64,
    as_of: Instant,
}

impl TimeBudget {
    /// Creates a budget of `share` (0 to 1) of the time, in any `span` and one sample more.
    pub(crate) fn new(share: f64, span: Duration, now: Instant) -> Self {
        let max = share * span.as_secs_f64();
        TimeBudget { share, max, left: max, as_of: now }
    }

    /// Takes the time of a sample that ended at `now` off the budget.
    pub(crate) fn spend(&mut self, now: Instant, took: Duration) {
        self.grow(now);
        self.left -= took.as_secs_f64();
    }

    /// Time at which the next sample may begin.
    pub(crate) fn ready_at(&mut self, now: Instant) -> Instant {
        self.grow(now);
        if self.left > 0.0 {
            return now;
        }
        // A little more than nothing, or rounding would leave it at nothing.
        let wait = (-self.left / self.share).min(3600.0);
        now + Duration::from_secs_f64(wait) + Duration::from_millis(1)
    }

    fn grow(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.as_of);
        self.as_of = self.as_of.max(now);
        self.left = (self.left + self.share * passed.as_secs_f64()).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(5);

    /// Seconds spent in a minute of samples that each take `took`, as many as may begin.
    fn spent(took: Duration) -> f64 {
        let start = Instant::now();
        let mut budget = TimeBudget::new(0.1, SPAN, start);
        let (mut now, mut sum) = (start, 0.0);
        loop {
            now = budget.ready_at(now);
            if now >= start + Duration::from_secs(60) {
                return sum;
            }
            now += took;
            budget.spend(now, took);
            sum += took.as_secs_f64();
        }
    }

    #[test]
    fn lessons_of_any_length_stay_within_the_share() {
        for took in [1, 30, 100, 400, 2000].map(Duration::from_millis) {
            // What was saved at the start, and the last sample, come on top.
            let max = 6.0 + 0.5 + took.as_secs_f64();
            let spent = spent(took);
            assert!(spent <= max, "{took:?}: {spent} s");
            assert!(spent >= 5.0, "{took:?}: {spent} s");
        }
    }

    #[test]
    fn time_in_which_nothing_was_learned_is_saved_up_to_the_span_only() {
        let start = Instant::now();
        let mut budget = TimeBudget::new(0.1, SPAN, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(budget.ready_at(later), later);
        budget.spend(later, Duration::from_secs(1));
        let wait = budget.ready_at(later).saturating_duration_since(later);
        assert!((4.9..5.1).contains(&wait.as_secs_f64()), "{wait:?}");
    }
}
