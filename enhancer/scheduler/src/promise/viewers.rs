//! Viewers' reports of how a stream's picture gets worse. Viewers are not trusted: no report decides alone.
//!
//! Each viewer counts once a second, within bounds, until some time after its last report. The result is the median of
//! all; if their number is even, the usual loss is added. So a false report can move the median to another viewer's
//! report, or to the usual loss, at most. A single viewer is trusted: its false report harms nobody else.

use std::time::Duration;

/// Minimum time between two reports of a viewer. It is a little less than the interval at which viewers report.
const EVERY: Duration = Duration::from_millis(900);
/// Time after its last report at which a viewer is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// Maximum viewers per stream; the first ones count.
const MAX_VIEWERS: usize = 64;
/// Weight of a viewer's new report (EWMA).
const WEIGHT: f64 = 0.5;
/// Bounds of the reported loss after one frame, in square grey levels.
const BELIEVED: (f64, f64) = (1e-3, 1e3);

#[derive(Debug, Clone, Copy)]
struct Viewer {
    id: u64,
    heard: Duration,
    first: f64,
}

/// The latest reports of one stream's viewers.
#[derive(Debug, Clone, Default)]
pub(super) struct Viewers {
    viewers: Vec<Viewer>,
}

impl Viewers {
    /// Takes a viewer's report. `first` is the loss after one frame, in square grey levels.
    pub(super) fn report(&mut self, id: u64, now: Duration, first: f64) {
        let first = first.clamp(BELIEVED.0, BELIEVED.1);
        self.viewers.retain(|viewer| now.saturating_sub(viewer.heard) < FORGOTTEN);
        if let Some(known) = self.viewers.iter_mut().find(|viewer| viewer.id == id) {
            if now.saturating_sub(known.heard) >= EVERY {
                known.first += WEIGHT * (first - known.first);
                known.heard = now;
            }
        } else if self.viewers.len() < MAX_VIEWERS {
            self.viewers.push(Viewer { id, heard: now, first });
        }
    }

    /// Median of all recent reports of the loss after one frame; `None` without any. Of an even number, `usual` counts
    /// as one more report.
    pub(super) fn lost(&self, now: Duration, usual: f64) -> Option<f64> {
        let heard =
            self.viewers.iter().filter(|viewer| now.saturating_sub(viewer.heard) < FORGOTTEN);
        let mut values: Vec<f64> = heard.map(|viewer| viewer.first).collect();
        if values.is_empty() {
            return None;
        }
        if values.len().is_multiple_of(2) {
            values.push(usual);
        }
        let middle = values.len() / 2;
        Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: f64 = 1.2;
    const START: Duration = Duration::ZERO;
    const SECOND: Duration = Duration::from_secs(1);

    fn values(reports: &[f64]) -> Option<f64> {
        let mut viewers = Viewers::default();
        for (id, &first) in (0..).zip(reports) {
            viewers.report(id, START, first);
        }
        viewers.lost(SECOND, USUAL)
    }

    #[test]
    fn a_false_report_moves_the_decay_no_further_than_to_what_others_report() {
        assert_eq!(values(&[]), None);
        assert_eq!(values(&[0.4]), Some(0.4), "who watches alone is believed");
        assert_eq!(values(&[0.4, 1e9]), Some(USUAL));
        assert_eq!(values(&[2.0, 1e-9]), Some(USUAL));
        assert_eq!(values(&[0.4, 0.5, 1e9]), Some(0.5));
        assert_eq!(values(&[0.4, 0.5, 0.0]), Some(0.4));
    }

    #[test]
    fn a_viewer_is_heard_once_a_second_and_within_bounds() {
        let mut viewers = Viewers::default();
        viewers.report(1, START, 1.0);
        (0..40).for_each(|n| viewers.report(1, n * SECOND / 50, 1e300));
        assert_eq!(viewers.lost(SECOND, USUAL), Some(1.0));
        viewers.report(1, SECOND, 1e300);
        assert_eq!(viewers.lost(SECOND, USUAL), Some(500.5), "half of what is believed at most");
    }

    #[test]
    fn viewers_are_bounded_and_forgotten() {
        let mut viewers = Viewers::default();
        (0..1_000).for_each(|id| viewers.report(id, START, 1.0));
        assert_eq!(viewers.viewers.len(), MAX_VIEWERS);
        assert_eq!(viewers.lost(FORGOTTEN, USUAL), None);
        viewers.report(7, FORGOTTEN + SECOND, 3.0);
        assert_eq!(viewers.viewers.len(), 1);
    }
}
