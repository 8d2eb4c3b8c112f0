//! The metrics of signalling and of the SFU.

use std::sync::Arc;

use windlass_sfu::Counters;

use crate::metric::{Family, Metric};

/// The metrics of signalling and of the SFU, except the SFU's plain counters, which have their own descriptions.
const FAMILIES: &[Family] = &[
    Family::gauge("windlass_sfu_healthy", "Whether all media threads live, as /healthz says."),
    Family::gauge("windlass_sfu_rooms", "Rooms now."),
    Family::gauge("windlass_sfu_participants", "Participants now."),
    Family::gauge("windlass_sfu_connected", "Participants whose media connection is up now."),
    Family::gauge("windlass_sfu_tracks", "Published tracks now."),
    Family::gauge("windlass_sfu_subscriptions", "Subscriptions to tracks now."),
    Family::gauge("windlass_sfu_taps", "Low layers that are copied to the enhancer now."),
    Family::gauge(
        "windlass_sfu_viewers",
        "Subscriptions to video that are sent now, by how their pictures are made, and why.",
    )
    .by(&["way", "reason"]),
    Family::gauge(
        "windlass_sfu_tcp_connections_open",
        "TCP connections of clients that send no UDP, now.",
    ),
    Family::histogram(
        "windlass_sfu_forwarding_seconds",
        "Time from a packet's arrival in the kernel to the call that sends it on, pacing included.",
    ),
    Family::histogram(
        "windlass_sfu_anchor_age_seconds",
        "Time from the arrival of an anchor's frame at the server to the anchor's sending, once for each subscriber.",
    ),
    Family::histogram(
        "windlass_sfu_connect_seconds",
        "Time from a participant's first offer to its media connection.",
    ),
    Family::gauge(
        "windlass_draining",
        "Whether the server takes no new rooms because it is going to stop.",
    ),
    Family::gauge("windlass_signaling_sockets_open", "Signalling sockets that are open now."),
    Family::counter("windlass_signaling_sockets_total", "Signalling sockets that were opened."),
    Family::counter(
        "windlass_signaling_connections_refused_total",
        "Connections closed because there were too many that are not WebSockets, by reason.",
    )
    .by(&["reason"]),
    Family::counter(
        "windlass_signaling_sockets_refused_total",
        "Signalling sockets that were refused, by reason.",
    )
    .by(&["reason"]),
    Family::counter(
        "windlass_signaling_sockets_flooded_total",
        "Signalling sockets closed because they received far too much data.",
    ),
    Family::histogram(
        "windlass_signaling_join_seconds",
        "Time from a client's message `join` to its answer: a place in the room or its lobby, another server, or a refusal.",
    ),
    Family::counter(
        "windlass_signaling_joins_limited_total",
        "Joins refused because their address joins too often.",
    ),
    Family::counter(
        "windlass_signaling_joins_over_share_total",
        "Joins refused because their address or identity had a quarter of all rooms or participants.",
    ),
    Family::counter(
        "windlass_signaling_joins_unauthorized_total",
        "Joins refused because they had no valid access token.",
    ),
    Family::counter(
        "windlass_signaling_joins_barred_total",
        "Joins refused because of a ban, a revoked token, or a locked room.",
    ),
    Family::counter(
        "windlass_signaling_replaced_total",
        "Participants replaced by a newer join of the same identity.",
    ),
    Family::gauge(
        "windlass_signaling_addresses",
        "Addresses and identities with something open or recent joins.",
    ),
    Family::counter("windlass_signaling_messages_in_total", "Messages from clients."),
    Family::counter("windlass_signaling_messages_out_total", "Messages to clients."),
    Family::counter("windlass_signaling_errors_total", "Error messages to clients."),
    Family::counter("windlass_signaling_rate_limited_total", "Errors `rate_limited` to clients."),
    Family::gauge(
        "windlass_signaling_rules",
        "Bans, locks, revocations and other rules of moderators and operators that hold.",
    ),
    Family::gauge(
        "windlass_signaling_waiting",
        "Participants in lobbies, on all servers of the cluster.",
    ),
    Family::counter(
        "windlass_signaling_rules_refused_total",
        "Rules and lobby places that were refused because there were too many.",
    ),
    Family::counter(
        "windlass_signaling_admin_refused_total",
        "Requests to the admin API that were refused.",
    ),
    Family::gauge("windlass_webhooks_waiting", "Events that wait for their delivery now."),
    Family::counter("windlass_webhooks_delivered_total", "Events that were delivered."),
    Family::counter(
        "windlass_webhooks_failed_attempts_total",
        "Attempts to deliver an event that failed.",
    ),
    Family::counter(
        "windlass_webhooks_given_up_total",
        "Events given up after the last attempt.",
    ),
    Family::counter(
        "windlass_webhooks_dropped_total",
        "Events dropped because too many waited.",
    ),
    Family::counter("windlass_client_reports_total", "Reports of clients about their pictures."),
    Family::counter(
        "windlass_client_reports_ignored_total",
        "Reports that were ignored: of tracks that their sender does not watch, or too soon after the last.",
    )
    .by(&["reason"]),
    Family::counter(
        "windlass_client_network_reports_total",
        "Reports of clients, one a second for each track, by the network that ran on every frame.",
    )
    .by(&["network"]),
    Family::counter(
        "windlass_client_anchors_excess_total",
        "Anchors that clients report beyond those sent to them. No other metric counts these.",
    ),
    Family::counter(
        "windlass_client_anchors_used_total",
        "Anchors that clients used, as they report.",
    ),
    Family::counter(
        "windlass_client_anchors_late_total",
        "Used anchors that came after a later frame was shown, as clients report. Most do: an anchor takes about 100 ms.",
    ),
    Family::counter(
        "windlass_client_anchors_lost_total",
        "Anchors that arrived and could not be used, as clients report: malformed, of another size, or too old.",
    ),
    Family::counter(
        "windlass_client_anchors_duplicate_total",
        "Anchors that added nothing to their frame, as clients report.",
    ),
    Family::counter(
        "windlass_client_anchors_former_epoch_total",
        "Anchors of a former layer or size, as clients report.",
    ),
    Family::gauge(
        "windlass_tls_certificate_not_after_timestamp_seconds",
        "Time at which the certificate in use expires, in seconds since 1970.",
    )
    .with("`tls`"),
    Family::counter("windlass_tls_handshakes_total", "TLS handshakes, by outcome.")
        .by(&["outcome"])
        .with("`tls`"),
];

/// The families of all metrics of signalling and of the SFU.
pub fn families() -> Vec<Family> {
    let counters = Counters::help().into_iter().map(|(name, help)| Family::counter(name, help));
    FAMILIES.iter().copied().chain(counters).collect()
}

/// Source of the metrics on `/metrics`.
#[derive(Clone)]
pub struct MetricSource {
    /// The table of all metrics: [`families()`], and the program's own.
    pub families: fn() -> Vec<Family>,
    /// Reads the program's own figures.
    pub read: Arc<dyn Fn() -> Vec<Metric> + Send + Sync>,
}

impl Default for MetricSource {
    /// A source without figures of the program's own.
    fn default() -> MetricSource {
        MetricSource { families, read: Arc::new(Vec::new) }
    }
}
