//! `GET /metrics`: what the SFU, signalling and the program around them count.

mod page;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use windlass_sfu::SfuStats;

pub use self::page::metrics_page;
use crate::families::MetricSource;
use crate::metric::Metric;
use crate::rights::RightsStats;
use crate::shared::Shared;
use crate::tls::Tls;

/// Metrics as Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, description = "All figures", body = String, content_type = "text/plain")))]
pub(crate) async fn handler(
    State(shared): State<Arc<Shared>>,
    request: HeaderMap,
) -> impl IntoResponse {
    let sfu = &shared.services.sfu;
    // Without media threads there are still the other figures.
    let stats = shared.stats.get(sfu).await;
    let mut metrics = stats.map_or_else(|_| Vec::new(), |stats| sfu_metrics(&stats));
    metrics.push(Metric::new("windlass_sfu_healthy", sfu.thread_fault().is_none()));
    metrics.extend(signaling_metrics(&shared));
    metrics.extend(shared.config.tls.iter().flat_map(Tls::metrics));
    let MetricSource { families, read } = &shared.services.metrics;
    metrics.extend(read());
    metrics_page(&request, families(), metrics)
}

fn sfu_metrics(stats: &SfuStats) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::new("windlass_sfu_rooms", stats.rooms),
        Metric::new("windlass_sfu_participants", stats.participants),
        Metric::new("windlass_sfu_connected", stats.connected),
        Metric::new("windlass_sfu_tracks", stats.tracks),
        Metric::new("windlass_sfu_subscriptions", stats.subscriptions),
        Metric::new("windlass_sfu_taps", stats.taps),
        Metric::new("windlass_sfu_tcp_connections_open", stats.tcp_open),
        Metric::new("windlass_sfu_forwarding_seconds", stats.forwarding),
        Metric::new("windlass_sfu_anchor_age_seconds", stats.counters.anchor_ages),
        Metric::new("windlass_sfu_connect_seconds", stats.counters.connects),
    ];
    metrics.extend(stats.ways.iter().map(|(way, reason, count)| {
        Metric::new("windlass_sfu_viewers", count)
            .label("way", way.name())
            .label("reason", reason.name())
    }));
    metrics.extend(stats.counters.iter().map(|(name, value)| Metric::new(name, value)));
    metrics
}

fn signaling_metrics(shared: &Shared) -> Vec<Metric> {
    let c = &shared.counters;
    let RightsStats { rules, waiting, full, refused } = shared.rights.stats();
    let mut metrics = vec![
        Metric::new("windlass_draining", shared.draining.load(Ordering::Relaxed)),
        Metric::new("windlass_signaling_sockets_open", shared.admission.open()),
        Metric::new("windlass_signaling_sockets_total", &c.sockets),
        Metric::new("windlass_signaling_connections_refused_total", &c.connections_refused_full)
            .label("reason", "full"),
        Metric::new("windlass_signaling_connections_refused_total", &c.connections_refused_address)
            .label("reason", "address"),
        Metric::new("windlass_signaling_sockets_refused_total", &c.sockets_refused_full)
            .label("reason", "full"),
        Metric::new("windlass_signaling_sockets_refused_total", &c.sockets_refused_address)
            .label("reason", "address"),
        Metric::new("windlass_signaling_sockets_flooded_total", &c.sockets_flooded),
        Metric::new("windlass_signaling_join_seconds", c.joins.read()),
        Metric::new("windlass_signaling_joins_limited_total", &c.joins_limited),
        Metric::new("windlass_signaling_joins_over_share_total", &c.joins_over_share),
        Metric::new("windlass_signaling_addresses", shared.admission.addresses()),
        Metric::new("windlass_signaling_messages_in_total", &c.messages_in),
        Metric::new("windlass_signaling_messages_out_total", &c.messages_out),
        Metric::new("windlass_signaling_errors_total", &c.errors),
        Metric::new("windlass_signaling_rate_limited_total", &c.rate_limited),
        Metric::new("windlass_signaling_joins_unauthorized_total", &c.joins_unauthorized),
        Metric::new("windlass_signaling_replaced_total", &c.replaced),
        Metric::new("windlass_signaling_rules", rules),
        Metric::new("windlass_signaling_waiting", waiting),
        Metric::new("windlass_signaling_rules_refused_total", full),
        Metric::new("windlass_signaling_joins_barred_total", refused),
        Metric::new("windlass_signaling_admin_refused_total", &c.admin_refused),
        Metric::new("windlass_webhooks_waiting", shared.webhooks.waiting()),
        Metric::new("windlass_webhooks_delivered_total", &shared.webhooks.counts.delivered),
        Metric::new("windlass_webhooks_failed_attempts_total", &shared.webhooks.counts.failed),
        Metric::new("windlass_webhooks_given_up_total", &shared.webhooks.counts.given_up),
        Metric::new("windlass_webhooks_dropped_total", &shared.webhooks.counts.dropped),
    ];
    metrics.extend(c.reported.metrics());
    metrics
}
