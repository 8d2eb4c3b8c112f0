//! Subscribers' emulated links. Without `--links` every value is null.

use serde::Serialize;

use super::span::{Span, share};

/// Use of the emulated downlinks, all together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Links {
    /// Capacity of all downlinks, kbit/s.
    pub link_kbps: Option<f64>,
    /// Share of the capacity that video (headers included) and anchors used, 0 to 1.
    pub link_used: Option<f64>,
    /// Share of the capacity that was carried, with padding, probes and retransmissions, 0 to 1.
    pub link_carried: Option<f64>,
    /// Share of the datagrams that were dropped at a full queue, 0 to 1.
    pub link_full: Option<f64>,
    /// Median delay at the bottleneck, queue and transmission, ms.
    pub wait_p50_ms: Option<f64>,
    /// 95th percentile of the delay at the bottleneck, ms.
    pub wait_p95_ms: Option<f64>,
    /// 99th percentile of the delay at the bottleneck, ms.
    pub wait_p99_ms: Option<f64>,
    /// Longest time from a link's beginning until 85 % of its rate was carried, s.
    pub first_s: Option<f64>,
    /// Longest time until traffic followed a change of a link's rate ([`Following`](crate::viewer::Following)), s.
    pub converged_s: Option<f64>,
}

impl Links {
    pub(super) fn of(span: &Span<'_>) -> Links {
        let (now, before) =
            (&span.now.subscriptions.downlinks, &span.before.subscriptions.downlinks);
        let capacity_bytes = (now.capacity_bytes - before.capacity_bytes) as f64;
        let media_bytes = span.now.received.media_bytes - span.before.received.media_bytes;
        let carried_bytes = (now.carried_bytes - before.carried_bytes) as f64;
        let overflowed = (now.overflowed - before.overflowed) as f64;
        let waits = now.waits.since(&before.waits);
        let kbps = share(capacity_bytes * 8.0 / 1000.0, span.seconds);
        Links {
            link_kbps: kbps.filter(|kbps| *kbps > 0.0),
            link_used: share(media_bytes as f64, capacity_bytes),
            link_carried: share(carried_bytes, capacity_bytes),
            link_full: share(overflowed, (now.datagrams - before.datagrams) as f64),
            wait_p50_ms: waits.percentile(50.0),
            wait_p95_ms: waits.percentile(95.0),
            wait_p99_ms: waits.percentile(99.0),
            first_s: now.first_s,
            converged_s: now.converged_s,
        }
    }
}
