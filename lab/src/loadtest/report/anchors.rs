//! Anchors at the subscribers, and how many missed the latency budget.

use serde::Serialize;

use super::span::{Span, share};
use crate::loadtest::given_up::given_up;

/// Anchors at all subscribers together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct AnchorDelivery {
    /// Complete anchors that arrived.
    pub anchors: u64,
    /// Captured anchors among them: of the publisher's own pixels.
    pub anchors_captured: u64,
    /// Anchors a second.
    pub anchors_per_s: f64,
    /// Anchors over the frames that arrived on an enhanced rung.
    pub anchor_fraction: Option<f64>,
    /// Bitrate of anchors, kbit/s.
    pub anchor_kbps: f64,
    /// Anchors with missing or malformed messages.
    pub anchors_broken: u64,
    /// Median delay from a frame to its anchor, both complete at the subscriber, ms.
    pub anchor_p50_ms: Option<f64>,
    /// 95th percentile of the delay from a frame to its anchor, ms.
    pub anchor_p95_ms: Option<f64>,
    /// 99th percentile of the delay from a frame to its anchor, ms.
    pub anchor_p99_ms: Option<f64>,
    /// Longest delay from a frame to its anchor, ms.
    pub anchor_max_ms: Option<f64>,
    /// Median age of an anchor when the server sends it, counted from its frame's arrival at the server, ms.
    pub age_p50_ms: Option<f64>,
    /// 95th percentile of the age of an anchor when the server sends it, ms.
    pub age_p95_ms: Option<f64>,
    /// 99th percentile of the age of an anchor when the server sends it, ms.
    pub age_p99_ms: Option<f64>,
    /// Anchors that arrived after the budget.
    pub anchors_late: u64,
    /// Anchors that the server chose and dropped because of the budget, once for each subscriber.
    pub anchors_given_up: u64,
    /// Late and dropped anchors over all chosen anchors, 0 to 1.
    pub budget_miss_rate: Option<f64>,
}

impl AnchorDelivery {
    /// Computes the figures; `subscribers` is their number in a room: each goes without an anchor that the enhancer
    /// dropped.
    pub(super) fn of(span: &Span<'_>, subscribers: usize) -> AnchorDelivery {
        let (now, before) = (span.now, span.before);
        let anchors = now.anchors.whole - before.anchors.whole;
        let given_up = given_up(|counter| span.grown(counter), subscribers);
        let late = now.anchors.late - before.anchors.late;
        let (lags, ages) = (
            now.anchors.lag.since(&before.anchors.lag),
            now.anchors.age.since(&before.anchors.age),
        );
        let frames_enhanced = now.received.frames_enhanced - before.received.frames_enhanced;
        AnchorDelivery {
            anchors,
            anchors_captured: now.anchors.captured - before.anchors.captured,
            anchors_per_s: share(anchors as f64, span.seconds).unwrap_or_default(),
            anchor_fraction: share(anchors as f64, frames_enhanced as f64),
            anchor_kbps: span.kbps(now.anchors.bytes - before.anchors.bytes),
            anchors_broken: now.anchors.broken - before.anchors.broken,
            anchor_p50_ms: lags.percentile(50.0),
            anchor_p95_ms: lags.percentile(95.0),
            anchor_p99_ms: lags.percentile(99.0),
            anchor_max_ms: lags.percentile(100.0),
            age_p50_ms: ages.percentile(50.0),
            age_p95_ms: ages.percentile(95.0),
            age_p99_ms: ages.percentile(99.0),
            anchors_late: late,
            anchors_given_up: given_up as u64,
            budget_miss_rate: share(late as f64 + given_up, ages.count() as f64 + given_up),
        }
    }
}
