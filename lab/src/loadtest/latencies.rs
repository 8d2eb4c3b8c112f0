//! Latencies of a whole run in bounded memory.

use serde::{Deserialize, Serialize};

/// Width of a bin in milliseconds: percentiles are exact to this.
const BIN_MS: f64 = 0.5;
/// Width of a fine bin in milliseconds, for latencies that are mostly far below a millisecond.
const FINE_BIN_MS: f64 = 0.02;
/// What is longer than this many bins (five seconds; fine ones: 200 ms) is that long.
const BINS: usize = 10_000;

/// How often each latency was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Sparse", into = "Sparse")]
pub(super) struct Latencies {
    bin_ms: f64,
    bins: Vec<u64>,
    count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { bin_ms: BIN_MS, bins: vec![0; BINS], count: 0 }
    }
}

impl Latencies {
    /// With bins for what takes microseconds.
    pub(super) fn fine() -> Self {
        Latencies { bin_ms: FINE_BIN_MS, ..Latencies::default() }
    }

    /// Counts one; less than zero is zero.
    pub(super) fn record(&mut self, ms: f64) {
        self.bins[((ms / self.bin_ms) as usize).min(BINS - 1)] += 1;
        self.count += 1;
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the latencies of another part of the same run.
    pub(super) fn add(&mut self, other: &Latencies) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, n)| *bin += n);
        self.count += other.count;
    }

    /// The latencies recorded after the copy `before` was made.
    #[must_use]
    pub(super) fn since(&self, before: &Latencies) -> Latencies {
        let bins: Vec<u64> = self
            .bins
            .iter()
            .zip(&before.bins)
            .map(|(now, then)| now.saturating_sub(*then))
            .collect();
        Latencies { bin_ms: self.bin_ms, count: bins.iter().sum(), bins }
    }

    /// So many of a hundred were at most this long, in milliseconds; `None` where there were none.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = ((self.count as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        let bin = self.bins.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        bin.map(|bin| (bin + 1) as f64 * self.bin_ms)
    }
}

/// The bins that are not empty, for the way between processes.
#[derive(Serialize, Deserialize)]
struct Sparse {
    bin_ms: f64,
    bins: Vec<(usize, u64)>,
}

impl From<Latencies> for Sparse {
    fn from(all: Latencies) -> Sparse {
        let bins = all.bins.into_iter().enumerate().filter(|(_, n)| *n > 0).collect();
        Sparse { bin_ms: all.bin_ms, bins }
    }
}

impl From<Sparse> for Latencies {
    fn from(some: Sparse) -> Latencies {
        let mut all = Latencies { bin_ms: some.bin_ms, ..Latencies::default() };
        for (at, n) in some.bins {
            all.bins[at.min(BINS - 1)] += n;
            all.count += n;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut latencies = Latencies::default();
        (0..100).for_each(|n| latencies.record(f64::from(n)));
        assert_eq!(latencies.percentile(50.0), Some(49.5));
        assert_eq!(latencies.percentile(99.0), Some(98.5));
        assert_eq!(latencies.count(), 100);
    }

    #[test]
    fn none_have_no_percentile_and_absurd_ones_are_bounded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50.0), None);
        for absurd in [-1.0, f64::NAN] {
            latencies.record(absurd);
        }
        assert_eq!(latencies.percentile(100.0), Some(0.5));
        latencies.record(1e12);
        assert_eq!(latencies.percentile(100.0), Some(5000.0));
    }

    #[test]
    fn parts_of_a_run_add_up_and_its_beginning_is_taken_off() {
        let (mut all, mut part) = (Latencies::fine(), Latencies::fine());
        all.record(150.0);
        let before = all.clone();
        part.record(0.05);
        all.add(&part);
        let since = all.since(&before);
        assert_eq!((since.count(), since.percentile(50.0)), (1, Some(0.06)));
    }

    #[test]
    fn they_are_the_same_in_another_process() {
        let mut latencies = Latencies::fine();
        for ms in [0.0, 3.0, 1e9] {
            latencies.record(ms);
        }
        let text = serde_json::to_string(&latencies).unwrap();
        assert_eq!(serde_json::from_str::<Latencies>(&text).unwrap(), latencies);
    }
}
