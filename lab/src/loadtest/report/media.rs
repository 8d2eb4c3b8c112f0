//! Video as publishers sent it and as subscribers received it.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_types::Rung;

use super::span::{Span, share};

/// Traffic of all publishers together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Traffic {
    /// RTP packets sent.
    pub sent: u64,
    /// Frames sent; a picture is one frame in each layer.
    pub frames_sent: u64,
    /// Pictures sent.
    pub pictures_sent: u64,
    /// Pictures that were not sent because the load generator was late.
    pub pictures_skipped: u64,
    /// Bitrate of the packets' payloads, kbit/s.
    pub sent_kbps: f64,
    /// Key frame requests (PLI, FIR) that publishers received.
    pub key_requests: u64,
}

impl Traffic {
    pub(super) fn of(span: &Span<'_>) -> Traffic {
        let (now, before) = (span.now, span.before);
        Traffic {
            sent: now.sent.packets - before.sent.packets,
            frames_sent: now.sent.frames - before.sent.frames,
            pictures_sent: now.sent.pictures - before.sent.pictures,
            pictures_skipped: now.sent.pictures_skipped - before.sent.pictures_skipped,
            sent_kbps: span.kbps(now.sent.bytes - before.sent.bytes),
            key_requests: now.sent.key_requests - before.sent.key_requests,
        }
    }
}

/// Video at the subscribers. Rates are means over all subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Reception {
    /// Frames that arrived with all of their packets.
    pub frames: u64,
    /// Complete frames a second and subscription.
    pub received_fps: Option<f64>,
    /// Decodable frames a second and subscription: complete, as are all frames that they reference.
    pub shown_fps: Option<f64>,
    /// Freezes a minute and subscription, as Chromium counts them; a paused subscription does not freeze.
    pub freezes: Option<f64>,
    /// Share of the time that subscriptions were frozen, 0 to 1.
    pub frozen: Option<f64>,
    /// Longest interval between two shown frames of a subscription, ms; includes the time before the measurement.
    pub gap_max_ms: f64,
    /// Share of the complete frames by the rung that the server had announced, 0 to 1.
    pub rungs: BTreeMap<Rung, f64>,
    /// Changes of rung a minute and subscription.
    pub rung_changes: Option<f64>,
    /// RTP packets that never arrived.
    pub lost: u64,
    /// Lost packets over expected packets, 0 to 1.
    pub loss_rate: Option<f64>,
    /// Bitrate of video at all subscribers together, kbit/s.
    pub video_kbps: f64,
    /// Key frame requests that subscribers sent.
    pub key_requests_made: u64,
    /// RTP packets that subscribers received, padding left out.
    pub forwarded: u64,
}

impl Reception {
    pub(super) fn of(span: &Span<'_>) -> Reception {
        let (now, before) = (span.now, span.before);
        let frames = now.received.frames - before.received.frames;
        let rungs = now.received.frames_by_rung.iter().filter_map(|(&rung, &n)| {
            let n = n - before.received.frames_by_rung.get(&rung).copied().unwrap_or_default();
            (n > 0).then(|| (rung, n as f64 / frames as f64))
        });
        let lost = now.received.lost.saturating_sub(before.received.lost);
        Reception {
            frames,
            received_fps: span.per_second(frames),
            shown_fps: span.per_second(now.display.shown - before.display.shown),
            freezes: span.per_minute((now.display.freezes - before.display.freezes) as f64),
            frozen: span.per_minute((now.display.frozen_ms - before.display.frozen_ms) / 60_000.0),
            gap_max_ms: now.display.gap_max_ms,
            rungs: rungs.collect(),
            rung_changes: span.per_minute(
                (now.subscriptions.rung_changes - before.subscriptions.rung_changes) as f64,
            ),
            lost,
            loss_rate: share(
                lost as f64,
                (now.received.expected - before.received.expected) as f64,
            ),
            video_kbps: span.kbps(now.received.bytes - before.received.bytes),
            key_requests_made: now.received.key_requests - before.received.key_requests,
            forwarded: now.received.packets - before.received.packets,
        }
    }
}
