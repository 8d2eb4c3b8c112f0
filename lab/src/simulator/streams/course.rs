//! The figures of a scenario, second by second.

use std::time::Duration;

use crate::latencies::Latencies;
use crate::simulator::mean::Mean;

/// The sums and counts of a second.
#[derive(Debug, Clone, Default)]
struct Sums {
    frames: u64,
    missed: u64,
    latencies_ms: Vec<f64>,
    gain_db: Mean,
    busy_s: f64,
}

/// A second of a scenario, all streams together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Second {
    /// End of the second, in seconds from the beginning.
    pub at_s: f64,
    /// Median latency of the anchors, in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of the latency of the anchors, in milliseconds.
    pub p95_ms: f64,
    /// Missed and dropped anchors over all chosen ones.
    pub miss_rate: f64,
    /// Number of anchors over number of frames.
    pub fraction: f64,
    /// Share of all accelerators' time that they worked.
    pub utilisation: f64,
    /// Predicted gain over no anchors, in dB.
    pub gain_db: f64,
}

/// Counts second by second.
#[derive(Debug, Clone)]
pub(super) struct Course(Vec<Sums>);

impl Course {
    pub(super) fn new(length: Duration) -> Course {
        Course(vec![Sums::default(); length.as_secs_f64().ceil() as usize])
    }

    /// The second of a time; `None` after the end, which is not counted.
    fn at(&mut self, at: Duration) -> Option<&mut Sums> {
        self.0.get_mut(usize::try_from(at.as_secs()).ok()?)
    }

    pub(super) fn frame(&mut self, at: Duration) {
        self.at(at).into_iter().for_each(|sums| sums.frames += 1);
    }

    pub(super) fn anchor(&mut self, at: Duration, latency_ms: f64) {
        self.at(at).into_iter().for_each(|sums| sums.latencies_ms.push(latency_ms));
    }

    pub(super) fn missed(&mut self, at: Duration) {
        self.at(at).into_iter().for_each(|sums| sums.missed += 1);
    }

    pub(super) fn gain(&mut self, at: Duration, gain_db: f64) {
        if let Some(sums) = self.at(at) {
            sums.gain_db.add(gain_db);
        }
    }

    /// Adds the work of an accelerator from a time on.
    pub(super) fn work(&mut self, from: Duration, took: Duration) {
        let (mut from, end) = (from, from.saturating_add(took));
        while from < end {
            let until = Duration::from_secs(from.as_secs() + 1).min(end);
            let Some(sums) = self.at(from) else { return };
            sums.busy_s += until.saturating_sub(from).as_secs_f64();
            from = until;
        }
    }

    pub(super) fn seconds(self, accelerators: usize) -> Vec<Second> {
        let seconds = self.0.into_iter().enumerate().map(|(n, sums)| {
            // Histograms are not kept for every second, as each takes a quarter of a MiB.
            let latencies: Latencies = sums.latencies_ms.iter().collect();
            let count = latencies.count();
            Second {
                at_s: (n + 1) as f64,
                p50_ms: latencies.percentile_or_zero(50.0),
                p95_ms: latencies.percentile_or_zero(95.0),
                miss_rate: sums.missed as f64 / (count + sums.missed).max(1) as f64,
                fraction: count as f64 / sums.frames.max(1) as f64,
                utilisation: sums.busy_s / accelerators.max(1) as f64,
                gain_db: sums.gain_db.get().unwrap_or_default(),
            }
        });
        seconds.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_in_the_seconds_in_which_it_is_done() {
        let mut course = Course::new(Duration::from_secs(3));
        course.work(Duration::from_millis(500), Duration::from_secs(2));
        course.work(Duration::from_millis(2_900), Duration::from_secs(9));
        let used: Vec<f64> = course.seconds(2).iter().map(|s| s.utilisation).collect();
        let close = used.iter().zip([0.25, 0.5, 0.3]).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close, "{used:?}");
    }

    #[test]
    fn a_second_without_anchors_has_none() {
        let mut course = Course::new(Duration::from_millis(1_500));
        course.frame(Duration::from_millis(1_200));
        let seconds = course.seconds(1);
        assert_eq!(seconds.len(), 2);
        assert_eq!((seconds[1].fraction, seconds[1].miss_rate, seconds[1].p95_ms), (0.0, 0.0, 0.0));
    }
}
