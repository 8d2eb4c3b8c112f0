//! A subscription to a track: what the client wants and was told, what was allocated to it, and what it was sent.

use std::time::Duration;

use windlass_types::{Bitrate, Refusal, Rung, Size, Way, WayReason};

use super::anchor_reports::ReportQuota;
use super::view::View;
use super::viewer_network::ViewerNetwork;
use crate::api::{TrackId, TrackStats};
use crate::core::allocation::demand::Demand;
use crate::core::publisher::layers::Spatial;

/// The last announcement of a subscription to the client ([`SfuEvent::RungChanged`](crate::SfuEvent::RungChanged)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnnouncedRung {
    /// The rung.
    pub rung: Rung,
    /// Epoch of the subscriber's timeline.
    pub epoch: u16,
    /// Size of the layer.
    pub size: Size,
    /// Scale of the anchors: width of an anchor's frame over that of the layer.
    pub scale: u16,
    /// Number of spatial layers in which the publisher sends the track.
    pub spatial_layers: u8,
}

/// The state of a slot that ends with its track.
pub(crate) struct Subscription {
    /// Maximum rung that the client wants.
    pub max: Rung,
    /// How the client shows the track, if it has sent that.
    pub view: Option<View>,
    /// The demand that the last allocation went by; `None` where the track is hidden or muted.
    pub demand: Option<Demand>,
    /// The allocated rung.
    pub rung: Option<Rung>,
    /// Highest temporal layer of the rung that is sent; `None`: all.
    pub max_temporal: Option<u8>,
    /// The spatial layers in which the track comes.
    pub spatial: Spatial,
    /// Bandwidth for the track where it is the one that is never paused, and its smallest layer is sent.
    pub room: Option<Bitrate>,
    /// Whether the client can decode neither the track's codec nor that of its backup.
    pub undecodable: bool,
    /// Whether the client's last message says that the track is paused.
    pub paused: bool,
    /// The last announcement to the client.
    pub announced: Option<AnnouncedRung>,
    /// The network that the client runs on every frame.
    pub network: ViewerNetwork,
    /// How the client's picture is made and why, as last announced to the client.
    pub way: Option<(Way, WayReason)>,
    /// What it was sent.
    pub sent: Sent,
}

impl Default for Subscription {
    fn default() -> Subscription {
        Subscription {
            max: Rung::F,
            view: None,
            demand: None,
            rung: None,
            max_temporal: None,
            spatial: Spatial::default(),
            room: None,
            undecodable: false,
            paused: false,
            announced: None,
            network: ViewerNetwork::default(),
            way: None,
            sent: Sent::default(),
        }
    }
}

/// What one subscription was sent, in this second and in all.
#[derive(Default, Clone, Copy)]
pub(crate) struct Sent {
    /// Bytes of RTP payload in this second.
    pub(crate) media_bytes: u64,
    anchor_bytes: u64,
    second_anchors: u64,
    /// Anchors sent since the subscription began.
    pub anchors: u64,
    /// Anchors dropped since the subscription began.
    pub anchors_dropped: u64,
    /// Media bitrate of the last full second.
    pub media: Bitrate,
    /// Quota that bounds the subscriber's reports on anchors.
    pub report_quota: ReportQuota,
}

impl Sent {
    /// Counts an anchor that was sent.
    pub(crate) fn on_anchor(&mut self, bytes: usize) {
        self.anchors += 1;
        self.second_anchors += 1;
        self.anchor_bytes += bytes as u64;
    }

    /// Ends a second, which took `span`; returns the statistics of the subscription to `track`.
    pub(crate) fn end_second(
        &mut self,
        track: TrackId,
        span: Duration,
        refused: Option<Refusal>,
    ) -> TrackStats {
        let seconds = span.as_secs_f64();
        let rate = |bytes: u64| Bitrate::bps((bytes as f64 * 8.0 / seconds) as u64);
        self.media = rate(self.media_bytes);
        let stats = TrackStats {
            track,
            media_bitrate: self.media,
            anchor_bitrate: rate(self.anchor_bytes),
            anchors_per_s: self.second_anchors as f64 / seconds,
            anchors_sent: self.anchors,
            anchors_dropped: self.anchors_dropped,
            refused,
        };
        (self.media_bytes, self.anchor_bytes, self.second_anchors) = (0, 0, 0);
        stats
    }
}
