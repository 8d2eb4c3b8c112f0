//! Percentiles of durations over the last ten to twenty seconds, in bounded memory.

use std::time::{Duration, Instant};

/// Length of a histogram's span. Percentiles cover the current and the last one.
const SPAN: Duration = Duration::from_secs(10);
/// Bins between a duration and its double: percentiles are exact to an eighth.
const BINS_PER_DOUBLE: u32 = 8;
/// Doublings from one microsecond. Durations above a second count as a second.
const DOUBLINGS: u32 = 20;
/// Bins of a histogram.
const BINS: usize = (BINS_PER_DOUBLE * DOUBLINGS) as usize;

/// Two histograms with logarithmic bins.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    now: [u32; BINS],
    before: [u32; BINS],
    turns: Instant,
}

/// Percentiles, each at most an eighth too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

impl Latencies {
    /// Empty histograms.
    pub(crate) fn new(now: Instant) -> Latencies {
        Latencies { now: [0; BINS], before: [0; BINS], turns: now + SPAN }
    }

    /// Adds a duration.
    pub(crate) fn record(&mut self, now: Instant, took: Duration) {
        if now >= self.turns {
            self.before = std::mem::replace(&mut self.now, [0; BINS]);
            if now >= self.turns + SPAN {
                self.before = [0; BINS];
            }
            self.turns = now + SPAN;
        }
        let bin = &mut self.now[bin(took)];
        *bin = bin.saturating_add(1);
    }

    /// Adds the durations of `other`.
    pub(crate) fn add(&mut self, other: &Latencies) {
        for (to, from) in [(&mut self.now, &other.now), (&mut self.before, &other.before)] {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = to.saturating_add(*from));
        }
    }

    /// Number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.now.iter().chain(&self.before).map(|&n| u64::from(n)).sum()
    }

    /// Percentiles of the durations.
    pub(crate) fn percentiles(&self) -> Percentiles {
        let count = self.count();
        let at = |percent: u64| {
            let rank = (count * percent).div_ceil(100);
            let mut seen = 0;
            let bin = self.now.iter().zip(&self.before).position(|(now, before)| {
                seen += u64::from(*now) + u64::from(*before);
                seen >= rank
            });
            bin.filter(|_| count > 0).map_or(Duration::ZERO, end)
        };
        Percentiles { count, p50: at(50), p95: at(95), p99: at(99) }
    }
}

/// Bin of a duration, by its logarithm.
fn bin(took: Duration) -> usize {
    let us = took.as_nanos().max(1000) as f64 / 1000.0;
    ((us.log2() * f64::from(BINS_PER_DOUBLE)) as usize).min(BINS - 1)
}

/// Longest duration of a bin.
fn end(bin: usize) -> Duration {
    Duration::from_secs_f64(((bin + 1) as f64 / f64::from(BINS_PER_DOUBLE)).exp2() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn percentiles_are_at_most_an_eighth_too_long() {
        let now = Instant::now();
        let mut all = Latencies::new(now);
        (1..=1000).for_each(|us| all.record(now, us * US));
        let p = all.percentiles();
        for (found, exact) in [(p.p50, 500), (p.p95, 950), (p.p99, 990)] {
            assert!(found >= exact * US && found <= exact * US * 9 / 8, "{found:?} for {exact} µs");
        }
        assert_eq!(p.count, 1000);
    }

    #[test]
    fn latencies_of_long_ago_are_forgotten() {
        let now = Instant::now();
        let mut all = Latencies::new(now);
        all.record(now, 900 * US);
        all.record(now + SPAN, 3 * US);
        assert_eq!(all.count(), 2);
        all.record(now + 2 * SPAN, 3 * US);
        assert_eq!(all.count(), 2);
        assert!(all.percentiles().p99 < 4 * US);
        all.record(now + 9 * SPAN, 5 * US);
        assert_eq!(all.count(), 1);
    }

    #[test]
    fn latencies_of_two_threads_are_merged() {
        let now = Instant::now();
        let [mut one, mut other] = [(); 2].map(|()| Latencies::new(now));
        one.record(now, 10 * US);
        other.record(now, 10 * US);
        (0..8).for_each(|_| other.record(now + SPAN, 1000 * US));
        one.add(&other);
        let p = one.percentiles();
        assert_eq!(p.count, 10);
        assert!(p.p50 > 500 * US);
    }

    #[test]
    fn zero_and_very_long_latencies_are_bounded() {
        let now = Instant::now();
        assert_eq!(Latencies::new(now).percentiles(), Percentiles::default());
        let mut all = Latencies::new(now);
        all.record(now, Duration::ZERO);
        all.record(now, Duration::from_secs(1000));
        let p = all.percentiles();
        assert!(p.p50 < 2 * US && p.p99 > Duration::from_secs(1), "{p:?}");
    }
}
