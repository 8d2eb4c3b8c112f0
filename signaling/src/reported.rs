//! Sums of clients' reports of anchors, for `/metrics`: at most what the SFU has sent.

use std::sync::atomic::{AtomicU64, Ordering};

use windlass_protocol::FrameNetwork;
use windlass_sfu::{AnchorReport, ReportError, TakenReport};

use crate::metric::Metric;

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
    /// Number of reports by network, in the order of [`NETWORKS`].
    networks: [AtomicU64; 4],
}

/// The networks that reports name, with their labels in metrics.
const NETWORKS: [(FrameNetwork, &str); 4] = [
    (FrameNetwork::None, "none"),
    (FrameNetwork::Xxs, "xxs"),
    (FrameNetwork::Xs, "xs"),
    (FrameNetwork::Other, "other"),
];

impl Reported {
    /// Counts a report that the SFU has checked.
    pub(crate) fn count(&self, taken: Result<TakenReport, ReportError>, network: FrameNetwork) {
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
        for (counter, _) in self.networks.iter().zip(NETWORKS).filter(|(_, (of, _))| *of == network)
        {
            add(counter, 1);
        }
        add(&self.excess, excess);
        add(&self.used, used.into());
        add(&self.late, late.into());
        add(&self.lost, lost.into());
        add(&self.duplicate, duplicate.into());
        add(&self.former_epoch, former_epoch.into());
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let ignored = |reason, value: &AtomicU64| {
            Metric::new("windlass_client_reports_ignored_total", value).label("reason", reason)
        };
        let by_network = self.networks.iter().zip(NETWORKS).map(|(value, (_, network))| {
            Metric::new("windlass_client_network_reports_total", value).label("network", network)
        });
        let sums = [
            Metric::new("windlass_client_reports_total", &self.reports),
            ignored("unwatched", &self.unwatched),
            ignored("too_soon", &self.too_soon),
            Metric::new("windlass_client_anchors_excess_total", &self.excess),
            Metric::new("windlass_client_anchors_used_total", &self.used),
            Metric::new("windlass_client_anchors_late_total", &self.late),
            Metric::new("windlass_client_anchors_lost_total", &self.lost),
            Metric::new("windlass_client_anchors_duplicate_total", &self.duplicate),
            Metric::new("windlass_client_anchors_former_epoch_total", &self.former_epoch),
        ];
        sums.into_iter().chain(by_network).collect()
    }
}
