//! The measured time as differences, from which every group of the row is computed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::latencies::Latencies;
use crate::loadtest::measurement::Measurement;
use crate::loadtest::scrape::{Figures, Series};
use crate::loadtest::tally::Totals;

/// The two ends of the measured time, with rates over it.
pub(super) struct Span<'a> {
    /// The clients' totals at the beginning.
    pub before: &'a Totals,
    /// The clients' totals at the end.
    pub now: &'a Totals,
    /// The server's metrics at the beginning.
    pub figures_before: &'a Figures,
    /// The server's metrics at the end.
    pub figures: &'a Figures,
    /// The server's counters that grew, and by how much.
    pub counters: BTreeMap<String, f64>,
    /// Length of the measured time in seconds.
    pub seconds: f64,
    /// Longest time by which this machine was late.
    pub stall_max: Duration,
}

impl<'a> Span<'a> {
    /// The measured time of a run.
    pub(super) fn of(measurement: &'a Measurement) -> Span<'a> {
        let (figures_before, before) = &measurement.before;
        let (figures, now) = &measurement.after;
        let counters = figures.grown_since(figures_before);
        let seconds = measurement.seconds();
        let stall_max = measurement.stall_max;
        Span { before, now, figures_before, figures, counters, seconds, stall_max }
    }

    /// The growth of a counter of the server.
    pub(super) fn grown(&self, counter: &str) -> f64 {
        self.counters.get(counter).copied().unwrap_or_default()
    }

    /// The latencies that a histogram of the server has counted.
    pub(super) fn latencies(&self, histogram: &Series<'_>) -> Latencies {
        self.figures.latencies_since(self.figures_before, histogram)
    }

    /// Bitrate of `bytes` in kbit/s; 0 where no time passed.
    pub(super) fn kbps(&self, bytes: u64) -> f64 {
        share(bytes as f64 * 8.0 / 1000.0, self.seconds).unwrap_or_default()
    }

    /// A count as a rate: `n` a second and subscription.
    pub(super) fn per_second(&self, n: u64) -> Option<f64> {
        share(n as f64, self.seconds * self.now.subscriptions.all as f64)
    }

    /// A count as a rate: `n` a minute and subscription.
    pub(super) fn per_minute(&self, n: f64) -> Option<f64> {
        share(60.0 * n, self.seconds * self.now.subscriptions.all as f64)
    }
}

/// The ratio `part / whole`; `None` where `whole` is not positive.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
