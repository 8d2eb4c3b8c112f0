//! Sums of clients' reports of anchors, for `/metrics`: at most what the SFU has sent.

use std::sync::atomic::{AtomicU64, Ordering};

use windlass_sfu::{AnchorReport, ReportError, TakenReport};

use crate::metrics::Metric;

/// Sums of reports since the start.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    reports: AtomicU64,
    unwatched: AtomicU64,
    too_soon: AtomicU64,
    excess: AtomicU64,
    used: AtomicU64,
    late: AtomicU64,
    lost: AtomicU64,
    duplicate: AtomicU64,
    former_epoch: AtomicU64,
}

impl Reported {
    /// Counts a report that the SFU has checked.
    pub(crate) fn count(&self, taken: Result<TakenReport, ReportError>) {
        let add = |counter: &AtomicU64, n: u64| {
            counter.fetch_add(n, Ordering::Relaxed);
        };
        let TakenReport { counted, excess } = match taken {
            Ok(taken) => taken,
            Err(ReportError::NotWatched) => return add(&self.unwatched, 1),
            Err(ReportError::TooSoon) => return add(&self.too_soon, 1),
            Err(ReportError::Closed) => return,
        };
        let AnchorReport { used, late, lost, duplicate, former_epoch } = counted;
        add(&self.reports, 1);
        add(&self.excess, excess);
        add(&self.used, used.into());
        add(&self.late, late.into());
        add(&self.lost, lost.into());
        add(&self.duplicate, duplicate.into());
        add(&self.former_epoch, former_epoch.into());
    }

    pub(crate) fn metrics(&self) -> [Metric; 9] {
        let counter =
            |name, value: &AtomicU64| Metric::counter(name, value.load(Ordering::Relaxed));
        let ignored = |reason: &str, value| {
            let metric = counter("client_reports_ignored", value);
            metric.labelled(format!("reason=\"{reason}\""))
        };
        [
            counter("client_reports", &self.reports),
            ignored("unwatched", &self.unwatched),
            ignored("too_soon", &self.too_soon),
            counter("client_anchors_excess", &self.excess),
            counter("client_anchors_used", &self.used),
            counter("client_anchors_late", &self.late),
            counter("client_anchors_lost", &self.lost),
            counter("client_anchors_duplicate", &self.duplicate),
            counter("client_anchors_former_epoch", &self.former_epoch),
        ]
    }
}
