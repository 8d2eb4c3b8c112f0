//! A token bucket: how many messages a client may send.

use std::time::Instant;

/// A token bucket. It has `burst` tokens at first and gains `per_second` from then on.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    tokens: f64,
    burst: f64,
    per_second: f64,
    filled: Instant,
}

impl TokenBucket {
    pub(crate) fn new(burst: u32, per_second: u32, now: Instant) -> Self {
        Self::with_rate(burst, f64::from(per_second), now)
    }

    /// A full bucket of `burst` tokens that gains `per_second` of them, which may be less than one.
    pub(crate) fn with_rate(burst: u32, per_second: f64, now: Instant) -> Self {
        let burst = f64::from(burst);
        Self { tokens: burst, burst, per_second, filled: now }
    }

    /// Takes one token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.take_many(1, now)
    }

    /// Takes `count` tokens if the bucket has them.
    pub(crate) fn take_many(&mut self, count: u32, now: Instant) -> bool {
        let count = f64::from(count);
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        if self.tokens < count {
            return false;
        }
        self.tokens -= count;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(3, 2, start);
        assert_eq!((0..5).filter(|_| bucket.take(start)).count(), 3);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..5).filter(|_| bucket.take(later)).count(), 2);
    }

    #[test]
    fn many_are_taken_at_once_or_none() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10, 5, start);
        assert!(bucket.take_many(8, start) && !bucket.take_many(3, start));
        assert!(bucket.take_many(2, start) && bucket.take_many(0, start));
        assert!(bucket.take_many(5, start + Duration::from_secs(1)));
    }

    #[test]
    fn tokens_do_not_pile_up_beyond_the_burst_and_time_may_stand_still() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(2, 1000, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..9).filter(|_| bucket.take(later)).count(), 2);
        assert!(!bucket.take(start));
    }
}
