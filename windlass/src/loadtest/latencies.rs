//! Latencies of a whole run in bounded memory.

/// Width of a bin in milliseconds: percentiles are exact to this.
const BIN_MS: f64 = 0.5;
/// What is longer than five seconds is that long.
const BINS: usize = 10_000;

/// How often each latency was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies {
    bins: Vec<u64>,
    count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { bins: vec![0; BINS], count: 0 }
    }
}

impl Latencies {
    /// Counts one; less than zero is zero.
    pub fn record(&mut self, ms: f64) {
        self.bins[((ms / BIN_MS) as usize).min(BINS - 1)] += 1;
        self.count += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// So many of a hundred were at most this long, in milliseconds; `None` where there were none.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = ((self.count as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        let bin = self.bins.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        bin.map(|bin| (bin + 1) as f64 * BIN_MS)
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
}
