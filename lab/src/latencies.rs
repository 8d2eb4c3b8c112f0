//! Latencies and their percentiles, in bounded memory: exact to a microsecond, and beyond 30 ms to a ten-thousandth.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Number of significant digits of the histogram.
const DIGITS: u8 = 4;
/// The longest latency that is told apart: ten minutes, in microseconds. Longer ones count as this.
const LONGEST_US: u64 = 600_000_000;
/// Number of parts of a bucket among which its latencies are spread, where only the bucket is known.
const PARTS: u64 = 100;

/// A histogram of latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // The histogram takes memory only for latencies that were seen.
        Latencies(Histogram::new(DIGITS).expect("up to five digits are possible"))
    }
}

impl Latencies {
    /// Counts one latency in milliseconds. A negative number and NaN count as zero.
    pub(crate) fn record(&mut self, ms: f64) {
        self.count_us((ms * 1e3).round() as u64, 1);
    }

    fn count_us(&mut self, us: u64, times: u64) {
        if times > 0 {
            // No latency is out of bounds: the histogram grows.
            let _ = self.0.record_n(us.min(LONGEST_US), times);
        }
    }

    /// Counts latencies between two bounds, spread evenly as Prometheus assumes.
    pub(crate) fn record_between(&mut self, from_ms: f64, to_ms: f64, times: u64) {
        let parts = times.clamp(1, PARTS);
        for part in 0..parts {
            let ms = from_ms + (to_ms - from_ms) * (part as f64 + 0.5) / parts as f64;
            let times = times * (part + 1) / parts - times * part / parts;
            self.count_us((ms * 1e3).round() as u64, times);
        }
    }

    /// The number of counted latencies.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Adds the latencies of another part of the same run.
    pub(crate) fn add(&mut self, other: &Latencies) {
        // All latencies fit, as both histograms grow.
        let _ = self.0.add(&other.0);
    }

    /// The latencies that were recorded after the copy `before` was made.
    #[must_use]
    pub(crate) fn since(&self, before: &Latencies) -> Latencies {
        let mut since = Latencies::default();
        for seen in self.0.iter_recorded() {
            let us = seen.value_iterated_to();
            let then = if us > before.0.high() { 0 } else { before.0.count_at(us) };
            since.count_us(us, seen.count_at_value().saturating_sub(then));
        }
        since
    }

    /// The latency that `percent` of all do not exceed, in milliseconds; `None` where there are none.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles([percent]).next()
    }

    /// The latency that [`percentile`](Self::percentile) returns, or 0 where there are none.
    pub(crate) fn percentile_or_zero(&self, percent: f64) -> f64 {
        self.percentile(percent).unwrap_or_default()
    }

    /// All percentiles from the 0th to the 100th, in milliseconds; empty where there are no latencies.
    pub(crate) fn hundred(&self) -> Vec<f64> {
        self.percentiles((0..=100).map(f64::from)).collect()
    }

    /// The latencies at rising percentiles, by one walk over the histogram; none where there are no latencies.
    fn percentiles(&self, rising: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
        let quantiles = rising.into_iter().map(|percent| percent / 100.0);
        let all = self.0.value_at_quantiles(quantiles).take(if self.0.is_empty() {
            0
        } else {
            usize::MAX
        });
        all.map(|us| self.0.lowest_equivalent(us) as f64 / 1e3)
    }
}

impl FromIterator<f64> for Latencies {
    /// Counts a series of latencies in milliseconds.
    fn from_iter<I: IntoIterator<Item = f64>>(series: I) -> Latencies {
        let mut all = Latencies::default();
        for ms in series {
            all.record(ms);
        }
        all
    }
}

impl<'a> FromIterator<&'a f64> for Latencies {
    fn from_iter<I: IntoIterator<Item = &'a f64>>(series: I) -> Latencies {
        series.into_iter().copied().collect()
    }
}

/// Converts to microseconds with their counts, to be sent between processes.
impl From<Latencies> for Vec<(u64, u64)> {
    fn from(all: Latencies) -> Self {
        let seen = all.0.iter_recorded();
        seen.map(|seen| (seen.value_iterated_to(), seen.count_at_value())).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(seen: Vec<(u64, u64)>) -> Latencies {
        let mut all = Latencies::default();
        for (us, times) in seen {
            all.count_us(us, times);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let latencies: Latencies = (0..100).map(f64::from).collect();
        assert_eq!(latencies.percentile(50.0), Some(49.0));
        assert_eq!(latencies.percentile(99.0), Some(98.0));
        assert_eq!(latencies.count(), 100);
    }

    #[test]
    fn none_have_no_percentile_and_absurd_ones_are_bounded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50.0), None);
        for absurd in [-1.0, f64::NAN] {
            latencies.record(absurd);
        }
        assert_eq!(latencies.percentile(100.0), Some(0.0));
        latencies.record(1e12);
        let longest = latencies.percentile(100.0).unwrap();
        assert!((longest / 600_000.0 - 1.0).abs() < 1e-4, "{longest}");
    }

    #[test]
    fn parts_of_a_run_add_up_and_its_beginning_is_taken_off() {
        let (mut all, mut part) = (Latencies::default(), Latencies::default());
        all.record(150.0);
        let before = all.clone();
        part.record(0.05);
        all.add(&part);
        let since = all.since(&before);
        assert_eq!((since.count(), since.percentile(50.0)), (1, Some(0.05)));
    }

    #[test]
    fn they_are_the_same_in_another_process() {
        let latencies: Latencies = [0.0, 3.0, 3.0, 150.1, 1e9].into_iter().collect();
        let text = serde_json::to_string(&latencies).unwrap();
        let there: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(there, latencies);
    }

    #[test]
    fn those_of_a_bucket_lie_evenly_in_it() {
        let mut latencies = Latencies::default();
        latencies.record_between(10.0, 20.0, 3000);
        latencies.record_between(20.0, 50.0, 1);
        assert_eq!(latencies.count(), 3001);
        let median = latencies.percentile(50.0).unwrap();
        assert!((median - 15.0).abs() < 0.1, "{median}");
        assert_eq!(latencies.percentile(100.0), Some(35.0));
    }
}
