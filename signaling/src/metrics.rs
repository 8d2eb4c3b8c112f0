//! `GET /metrics`: Prometheus text of what the SFU, signalling and the enhancer count.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use windlass_sfu::SfuStats;

use crate::{Shared, Tls};

/// Whether a metric only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start; its name ends in `_total`.
    Counter,
    /// A figure of now.
    Gauge,
}

/// One figure for `/metrics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name after `windlass_`, with its unit at the end.
    pub name: String,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// What tells it from others of its name, such as `stage="decode"`; may be empty.
    pub labels: String,
    /// The figure.
    pub value: f64,
}

impl Metric {
    /// A total since the start; `_total` is added to the name.
    pub fn counter(name: &str, value: u64) -> Self {
        Metric {
            name: format!("{name}_total"),
            kind: MetricKind::Counter,
            labels: String::new(),
            value: value as f64,
        }
    }

    /// A figure of now.
    pub fn gauge(name: &str, value: f64) -> Self {
        Metric { name: name.to_owned(), kind: MetricKind::Gauge, labels: String::new(), value }
    }

    /// The same figure with labels. Figures of one name must follow each other.
    #[must_use]
    pub fn labelled(mut self, labels: String) -> Self {
        self.labels = labels;
        self
    }
}

/// Tell what has been counted, as Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, description = "All figures", body = String, content_type = "text/plain")))]
pub(crate) async fn handler(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let mut metrics = match shared.services.sfu.stats().await {
        Ok(stats) => sfu_metrics(&stats),
        Err(_) => Vec::new(),
    };
    metrics.extend(signaling_metrics(&shared));
    metrics.extend(shared.config.tls.iter().flat_map(Tls::metrics));
    metrics.extend((shared.services.enhancer_metrics)());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], render(&metrics))
}

fn sfu_metrics(stats: &SfuStats) -> Vec<Metric> {
    let gauges = [
        ("sfu_rooms", stats.rooms),
        ("sfu_participants", stats.participants),
        ("sfu_connected", stats.connected),
        ("sfu_tracks", stats.tracks),
        ("sfu_subscriptions", stats.subscriptions),
        ("sfu_taps", stats.taps),
    ];
    let gauges = gauges.into_iter().map(|(name, value)| Metric::gauge(name, value as f64));
    let counters = stats.counters.iter().map(|(n, v)| Metric::counter(&format!("sfu_{n}"), v));
    gauges.chain(forwarding(&stats.forwarding)).chain(counters).collect()
}

/// From a packet's arrival to its sending, of the last seconds.
fn forwarding(p: &windlass_sfu::Percentiles) -> impl Iterator<Item = Metric> + use<> {
    [("0.5", p.p50), ("0.95", p.p95), ("0.99", p.p99)].into_iter().map(|(quantile, took)| {
        Metric::gauge("sfu_forwarding_seconds", took.as_secs_f64())
            .labelled(format!("quantile=\"{quantile}\""))
    })
}

fn signaling_metrics(shared: &Shared) -> Vec<Metric> {
    let open = shared.config.sockets.saturating_sub(shared.room_for_sockets.available_permits());
    let c = &shared.counters;
    let counter = |name, value: &AtomicU64| Metric::counter(name, value.load(Ordering::Relaxed));
    vec![
        Metric::gauge("draining", f64::from(u8::from(shared.draining.load(Ordering::Relaxed)))),
        Metric::gauge("signaling_sockets_open", open as f64),
        counter("signaling_sockets", &c.sockets),
        counter("signaling_sockets_refused", &c.sockets_refused),
        counter("signaling_messages_in", &c.messages_in),
        counter("signaling_messages_out", &c.messages_out),
        counter("signaling_errors", &c.errors),
        counter("signaling_joins_unauthorized", &c.joins_unauthorized),
        counter("signaling_replaced", &c.replaced),
        counter("signaling_admin_refused", &c.admin_refused),
        Metric::gauge("webhooks_waiting", shared.webhooks.waiting() as f64),
        counter("webhooks_delivered", &shared.webhooks.counts.delivered),
        counter("webhooks_failed_attempts", &shared.webhooks.counts.failed),
        counter("webhooks_given_up", &shared.webhooks.counts.given_up),
        counter("webhooks_dropped", &shared.webhooks.counts.dropped),
        counter("client_reports", &c.reports),
        counter("client_anchors_used", &c.anchors_used),
        counter("client_anchors_late", &c.anchors_late),
        counter("client_anchors_lost", &c.anchors_lost),
        counter("client_anchors_duplicate", &c.anchors_duplicate),
        counter("client_anchors_former_epoch", &c.anchors_former_epoch),
        counter("client_anchors_needing_whole", &c.anchors_needing_whole),
    ]
}

fn render(metrics: &[Metric]) -> String {
    let mut text = String::new();
    let mut last = "";
    for Metric { name, kind, labels, value } in metrics {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a string cannot fail.
        if name != last {
            let _ = writeln!(text, "# TYPE windlass_{name} {kind}");
        }
        let _ = match labels.as_str() {
            "" => writeln!(text, "windlass_{name} {value}"),
            labels => writeln!(text, "windlass_{name}{{{labels}}} {value}"),
        };
        last = name;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_prometheus_text() {
        let metrics = [
            Metric::counter("sfu_rtp_in", 12),
            Metric::gauge("load_ratio", 0.5).labelled(r#"stage="a""#.into()),
            Metric::gauge("load_ratio", 1.0).labelled(r#"stage="b""#.into()),
        ];
        assert_eq!(
            render(&metrics),
            "# TYPE windlass_sfu_rtp_in_total counter\nwindlass_sfu_rtp_in_total 12\n\
             # TYPE windlass_load_ratio gauge\nwindlass_load_ratio{stage=\"a\"} 0.5\n\
             windlass_load_ratio{stage=\"b\"} 1\n"
        );
    }
}
