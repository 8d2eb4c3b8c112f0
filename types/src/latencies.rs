//! Durations counted in buckets, from which the histograms of `/metrics` are made.
//!
//! All histograms have the same bounds, so that they can be added over threads and servers, and compared over stages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest duration of each bucket, in microseconds; the last bucket has no bound and is not listed. A forwarded
/// packet takes tens of microseconds, a queue on a busy CPU seconds. The bounds are closest around the budget of an
/// anchor (200 ms).
const BOUNDS_US: [u64; 19] = [
    20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 150_000, 200_000,
    300_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
];
/// Number of buckets: one for each bound, and one for longer durations.
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Durations counted in buckets, with their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latencies {
    counts: [u64; BUCKETS],
    sum: Duration,
}

impl Latencies {
    /// Counts one duration.
    pub fn record(&mut self, took: Duration) {
        self.counts[bucket(took)] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// The number of counted durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all counted durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The durations of both, counted together.
    #[must_use]
    pub fn plus(mut self, other: Latencies) -> Latencies {
        self.counts.iter_mut().zip(other.counts).for_each(|(to, from)| *to += from);
        self.sum = self.sum.saturating_add(other.sum);
        self
    }

    /// The buckets in order, each with its longest duration in seconds (infinite for the last) and the number of
    /// durations in it. A duration is in one bucket only.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = BOUNDS_US.into_iter().map(|us| us as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.counts)
    }
}

/// Durations counted in buckets by many threads, which do not wait for each other.
#[derive(Debug, Default)]
pub struct SharedLatencies {
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl SharedLatencies {
    /// Counts one duration.
    pub fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(took)].fetch_add(1, Ordering::Relaxed);
        // The sum wraps around after five hundred years of durations.
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// A copy of the durations counted so far.
    pub fn read(&self) -> Latencies {
        Latencies {
            counts: self.counts.each_ref().map(|n| n.load(Ordering::Relaxed)),
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

/// The first bucket whose longest duration is not shorter than `took`.
fn bucket(took: Duration) -> usize {
    let ns = took.as_nanos();
    BOUNDS_US.partition_point(|us| u128::from(*us) * 1000 < ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn filled(latencies: Latencies) -> Vec<(f64, u64)> {
        latencies.buckets().filter(|(_, n)| *n > 0).collect()
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_that_is_not_too_short() {
        let mut latencies = Latencies::default();
        for took in [Duration::ZERO, 20 * US, 20 * US + Duration::from_nanos(1), 200_000 * US] {
            latencies.record(took);
        }
        latencies.record(Duration::MAX);
        let buckets = [(0.000_02, 2), (0.000_05, 1), (0.2, 1), (f64::INFINITY, 1)];
        assert_eq!(filled(latencies), buckets);
        assert_eq!((latencies.count(), latencies.sum()), (5, Duration::MAX));
    }

    #[test]
    fn bounds_rise() {
        assert!(BOUNDS_US.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn those_of_several_threads_are_added() {
        let shared = SharedLatencies::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| shared.record(70 * US)));
            }
        });
        let mut other = Latencies::default();
        other.record(US);
        let both = shared.read().plus(other);
        assert_eq!(filled(both), [(0.000_02, 1), (0.000_1, 4000)]);
        assert_eq!(both.sum(), 280_001 * US);
    }
}
