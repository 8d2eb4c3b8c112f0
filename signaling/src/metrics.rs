//! `GET /metrics`: Prometheus text of what the SFU, signalling and the enhancer count.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use windlass_sfu::{Counters, SfuStats};

use crate::health::ANSWER_TIMEOUT;
use crate::metric::{Metric, MetricKind};
use crate::rights::RightsStats;
use crate::shared::Shared;
use crate::tls::Tls;

/// Metrics as Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, description = "All figures", body = String, content_type = "text/plain")))]
pub(crate) async fn handler(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let sfu = &shared.services.sfu;
    // Without media threads there are still the other figures.
    let mut metrics = match tokio::time::timeout(ANSWER_TIMEOUT, sfu.stats()).await {
        Ok(Ok(stats)) => sfu_metrics(&stats),
        _ => Vec::new(),
    };
    let healthy = Metric::gauge("sfu_healthy", f64::from(u8::from(sfu.thread_fault().is_none())));
    metrics.push(healthy.help("Whether all media threads live, as /healthz says."));
    metrics.extend(signaling_metrics(&shared));
    metrics.extend(shared.config.tls.iter().flat_map(Tls::metrics));
    metrics.extend((shared.services.enhancer_metrics)());
    metrics_page(metrics)
}

/// An HTTP answer with metrics as Prometheus text.
pub fn metrics_page(mut metrics: Vec<Metric>) -> impl IntoResponse {
    // Metrics of one name must be consecutive.
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
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
        ("sfu_tcp_connections_open", stats.tcp_open),
    ];
    let gauges = gauges.into_iter().map(|(name, value)| Metric::gauge(name, value as f64));
    let help: BTreeMap<_, _> = Counters::help().into_iter().collect();
    let counters = stats.counters.iter().map(|(name, value)| {
        // Prometheus counts in seconds.
        let metric = match name.strip_suffix("_ms") {
            Some(name) => {
                let metric = Metric::counter(&format!("sfu_{name}_seconds"), 0);
                Metric { value: value as f64 / 1000.0, ..metric }
            }
            None => Metric::counter(&format!("sfu_{name}"), value),
        };
        metric.help(help.get(name).copied().unwrap_or_default())
    });
    let ways = stats.ways.iter().map(|(way, reason, count)| {
        let labels = format!("way=\"{}\",reason=\"{}\"", way.name(), reason.name());
        Metric::gauge("sfu_viewers", count as f64).labelled(labels)
    });
    gauges.chain(ways).chain(forwarding(&stats.forwarding)).chain(counters).collect()
}

/// From a packet's arrival to its sending, of the last seconds.
fn forwarding(p: &windlass_sfu::Percentiles) -> impl Iterator<Item = Metric> + use<> {
    [("0.5", p.p50), ("0.95", p.p95), ("0.99", p.p99)].into_iter().map(|(quantile, took)| {
        Metric::summary("sfu_forwarding_seconds", took.as_secs_f64())
            .labelled(format!("quantile=\"{quantile}\""))
    })
}

fn signaling_metrics(shared: &Shared) -> Vec<Metric> {
    let open = shared.admission.open();
    let c = &shared.counters;
    let RightsStats { rules, waiting, full, refused } = shared.rights.stats();
    let counter = |name, value: &AtomicU64| Metric::counter(name, value.load(Ordering::Relaxed));
    let mut metrics = vec![
        Metric::gauge("draining", f64::from(u8::from(shared.draining.load(Ordering::Relaxed)))),
        Metric::gauge("signaling_sockets_open", open as f64),
        counter("signaling_sockets", &c.sockets),
        counter("signaling_connections_refused", &c.connections_refused_full)
            .labelled("reason=\"full\"".to_owned()),
        counter("signaling_connections_refused", &c.connections_refused_address)
            .labelled("reason=\"address\"".to_owned()),
        counter("signaling_sockets_refused", &c.sockets_refused_full)
            .labelled("reason=\"full\"".to_owned()),
        counter("signaling_sockets_refused", &c.sockets_refused_address)
            .labelled("reason=\"address\"".to_owned()),
        counter("signaling_sockets_flooded", &c.sockets_flooded),
        counter("signaling_joins_limited", &c.joins_limited),
        counter("signaling_joins_over_share", &c.joins_over_share),
        Metric::gauge("signaling_addresses", shared.admission.addresses() as f64),
        counter("signaling_messages_in", &c.messages_in),
        counter("signaling_messages_out", &c.messages_out),
        counter("signaling_errors", &c.errors),
        counter("signaling_rate_limited", &c.rate_limited),
        counter("signaling_joins_unauthorized", &c.joins_unauthorized),
        counter("signaling_replaced", &c.replaced),
        Metric::gauge("signaling_rules", rules as f64),
        Metric::gauge("signaling_waiting", waiting as f64),
        Metric::counter("signaling_rules_refused", full),
        Metric::counter("signaling_joins_barred", refused),
        counter("signaling_admin_refused", &c.admin_refused),
        Metric::gauge("webhooks_waiting", shared.webhooks.waiting() as f64),
        counter("webhooks_delivered", &shared.webhooks.counts.delivered),
        counter("webhooks_failed_attempts", &shared.webhooks.counts.failed),
        counter("webhooks_given_up", &shared.webhooks.counts.given_up),
        counter("webhooks_dropped", &shared.webhooks.counts.dropped),
    ];
    metrics.extend(c.reported.metrics());
    metrics
}

/// Help texts of signalling's metrics and the SFU's gauges.
const HELP: &[(&str, &str)] = &[
    ("sfu_rooms", "Rooms now."),
    ("sfu_participants", "Participants now."),
    ("sfu_connected", "Participants whose media connection is up now."),
    ("sfu_tracks", "Published tracks now."),
    ("sfu_subscriptions", "Subscriptions to tracks now."),
    ("sfu_taps", "Low layers that are copied to the enhancer now."),
    (
        "sfu_viewers",
        "Subscriptions to video that are sent now, by how their pictures are made, and why.",
    ),
    ("sfu_tcp_connections_open", "TCP connections of clients that send no UDP, now."),
    ("sfu_forwarding_seconds", "From a packet's arrival to its sending on, of the last seconds."),
    ("draining", "Whether the server takes no new rooms because it is going to stop."),
    ("signaling_sockets_open", "Signalling sockets that are open now."),
    ("signaling_addresses", "Addresses and identities with something open or recent joins."),
    ("signaling_sockets_total", "Signalling sockets that were opened."),
    (
        "signaling_connections_refused_total",
        "Connections closed because there were too many that are no sockets, by reason.",
    ),
    ("signaling_sockets_refused_total", "Signalling sockets that were refused, by reason."),
    ("signaling_sockets_flooded_total", "Signalling sockets closed because far too much came."),
    ("signaling_joins_limited_total", "Joins refused because their address joins too often."),
    (
        "signaling_joins_over_share_total",
        "Joins refused because their address or identity had a quarter of all rooms or participants.",
    ),
    ("signaling_messages_in_total", "Messages from clients."),
    ("signaling_messages_out_total", "Messages to clients."),
    ("signaling_errors_total", "Error messages to clients."),
    ("signaling_rate_limited_total", "Errors `rate_limited` to clients."),
    ("signaling_joins_unauthorized_total", "Joins refused for want of a valid access token."),
    (
        "signaling_rules",
        "Bans, locks, revocations and other rules of moderators and operators that hold.",
    ),
    ("signaling_waiting", "Participants in lobbies, on all servers of the cluster."),
    (
        "signaling_rules_refused_total",
        "Rules and lobby places that were refused because there were too many.",
    ),
    (
        "signaling_joins_barred_total",
        "Joins refused because of a ban, a revoked token, or a locked room.",
    ),
    ("signaling_replaced_total", "Participants replaced by a newer join of the same identity."),
    ("signaling_admin_refused_total", "Requests to the admin API that were refused."),
    ("webhooks_waiting", "Events that wait for their delivery now."),
    ("webhooks_delivered_total", "Events that were delivered."),
    ("webhooks_failed_attempts_total", "Attempts to deliver an event that failed."),
    ("webhooks_given_up_total", "Events given up after the last attempt."),
    ("webhooks_dropped_total", "Events dropped because too many waited."),
    ("client_reports_total", "Reports of clients about their pictures."),
    (
        "client_reports_ignored_total",
        "Reports that were ignored: of tracks that their sender does not watch, or too soon after the last.",
    ),
    (
        "client_anchors_excess_total",
        "By how much reports of clients say more than they were sent; it is not counted elsewhere.",
    ),
    (
        "client_network_reports_total",
        "Reports of clients, one a second for each track, by the network that ran on every frame.",
    ),
    ("client_anchors_used_total", "Anchors that clients used, as they report."),
    (
        "client_anchors_late_total",
        "Anchors that reached clients after their frame, as they report.",
    ),
    ("client_anchors_lost_total", "Anchors that did not reach clients whole, as they report."),
    ("client_anchors_duplicate_total", "Anchors that reached clients twice, as they report."),
    ("client_anchors_former_epoch_total", "Anchors of a former layer or size, as clients report."),
    (
        "tls_certificate_not_after_timestamp_seconds",
        "When the certificate in use ends, in seconds since 1970.",
    ),
    ("tls_handshakes_total", "TLS handshakes, by what they came to."),
];

fn known_help(name: &str) -> &'static str {
    HELP.iter().find(|(of, _)| *of == name).map_or("", |(_, help)| help)
}

fn render(metrics: &[Metric]) -> String {
    let mut text = String::new();
    let mut last = "";
    for Metric { name, kind, labels, value, help } in metrics {
        // Names of the process are the same in every program.
        let prefix = if name.starts_with("process_") { "" } else { "windlass_" };
        let help = if help.is_empty() { known_help(name) } else { help };
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Summary => "summary",
        };
        // Writing to a string cannot fail.
        if name != last {
            if !help.is_empty() {
                let _ = writeln!(text, "# HELP {prefix}{name} {}", help.replace(['\\', '\n'], " "));
            }
            let _ = writeln!(text, "# TYPE {prefix}{name} {kind}");
        }
        let _ = match labels.as_str() {
            "" => writeln!(text, "{prefix}{name} {value}"),
            labels => writeln!(text, "{prefix}{name}{{{labels}}} {value}"),
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
            Metric::counter("sfu_rtp_in", 12).help("Packets."),
            Metric::gauge("load_ratio", 0.5).labelled(r#"stage="a""#.into()),
            Metric::gauge("load_ratio", 1.0).labelled(r#"stage="b""#.into()),
        ];
        assert_eq!(
            render(&metrics),
            "# HELP windlass_sfu_rtp_in_total Packets.\n\
             # TYPE windlass_sfu_rtp_in_total counter\nwindlass_sfu_rtp_in_total 12\n\
             # TYPE windlass_load_ratio gauge\nwindlass_load_ratio{stage=\"a\"} 0.5\n\
             windlass_load_ratio{stage=\"b\"} 1\n"
        );
    }
}
