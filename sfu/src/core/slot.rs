//! One m-line on which a participant receives: the track that it carries, its rung, and its outgoing stream.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::format::PayloadParams;
use str0m::media::{Mid, Pt};
use str0m::rtp::Ssrc;
use windlass_types::{Bitrate, Layer, Refusal, Rung, Size, VideoCodec, Way, WayReason};

use super::allocator::Demand;
use super::audio::AudioTimeline;
use super::in_flight::InFlight;
use super::reports::ReportQuota;
use super::rewriter::Rewriter;
use super::stack;
use super::view::View;
use super::viewer_network::ViewerNetwork;
use crate::api::{Kind, TrackId, TrackStats};

/// The last announcement of a subscription to the client ([`SfuEvent::RungChanged`](crate::SfuEvent::RungChanged)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnnouncedRung {
    /// The rung.
    pub rung: Rung,
    /// Epoch of the subscriber's timeline.
    pub epoch: u16,
    /// Size of the layer.
    pub size: Size,
    /// Scale of the anchors: width of an anchor's frame over that of the layer.
    pub scale: u16,
}

/// An m-line on which the participant receives. It lives as long as the m-line, whatever track it carries.
pub(super) struct Slot {
    /// `a=mid` of the m-line.
    pub mid: Mid,
    /// Negotiated media.
    pub kind: Kind,
    /// The track that the slot carries.
    pub track: Option<TrackId>,
    /// The track whose packets the slot is sent: its own, or that one's backup.
    pub source: Option<TrackId>,
    /// Maximum rung that the client wants.
    pub max: Rung,
    /// How the client shows the track, if it has sent that.
    pub view: Option<View>,
    /// The demand that the last allocation went by; `None` where the track is hidden or muted.
    pub demand: Option<Demand>,
    /// The allocated rung.
    pub rung: Option<Rung>,
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
    /// Timeline of a video stream.
    pub video: Rewriter,
    /// Timeline of an audio stream.
    pub(super) audio: AudioTimeline,
    /// Maximum RTX share that the stack has; `None`: not set yet.
    pub(super) rtx_share: Option<f32>,
    /// Whether the slot's packets bypass the stack's pacer.
    pub(super) unpaced: bool,
    /// Whether the client needs a key frame for lost frames, which waits until the downlink is not congested.
    pub key_frame_pending: bool,
    /// Payload type of the slot's packets, with its codec of video, once looked up.
    pub(super) pt: Option<(Option<VideoCodec>, Pt)>,
    /// SSRC of the slot's packets.
    pub(super) ssrc: Option<Ssrc>,
    /// The slot's packets in the stack's pacer.
    pub(super) in_flight: InFlight,
    /// Totals of the subscription.
    pub sent: Sent,
}

/// What one subscription was sent, in this second and in all.
#[derive(Default, Clone, Copy)]
pub(super) struct Sent {
    /// Bytes of RTP payload in this second.
    pub(super) media_bytes: u64,
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

impl Slot {
    /// A slot without a track; its timelines begin at `timestamp`.
    pub(super) fn new(mid: Mid, kind: Kind, timestamp: u32, now: Instant) -> Slot {
        Slot {
            mid,
            kind,
            track: None,
            source: None,
            max: Rung::F,
            view: None,
            demand: None,
            rung: None,
            undecodable: false,
            paused: false,
            announced: None,
            network: ViewerNetwork::default(),
            way: None,
            video: Rewriter::new(timestamp),
            audio: AudioTimeline::new(timestamp),
            rtx_share: None,
            unpaced: false,
            key_frame_pending: false,
            pt: None,
            ssrc: None,
            in_flight: InFlight::new(now),
            sent: Sent::default(),
        }
    }

    /// Makes the slot carry another track, or none, from now on.
    pub(super) fn set_track(&mut self, track: Option<TrackId>) {
        if self.track != track {
            self.track = track;
            self.source = track;
            self.demand = None;
            self.rung = None;
            self.undecodable = false;
            self.view = None;
            self.paused = false;
            self.announced = None;
            self.network = ViewerNetwork::default();
            self.way = None;
            self.max = Rung::F;
            self.sent = Sent::default();
            self.interrupt();
        }
    }

    /// Whether the client decodes a codec of video; `None`: it is not known yet, so it does.
    pub(super) fn decodes(&mut self, rtc: &Rtc, codec: Option<VideoCodec>) -> bool {
        codec.is_none_or(|codec| self.payload_type(rtc, Some(codec)).is_some())
    }

    /// The backup of the slot's track has ended.
    pub(super) fn end_backup(&mut self) {
        self.source = self.track;
        self.rung = None;
        self.interrupt();
    }

    /// Whether the client is sent the track's backup.
    pub(super) fn has_backup(&self) -> bool {
        self.source != self.track
    }

    /// Payload type of packets of a video codec, or of audio; `None` if the client does not take them.
    pub(super) fn payload_type(&mut self, rtc: &Rtc, codec: Option<VideoCodec>) -> Option<Pt> {
        let known = self.pt.filter(|(of, _)| *of == codec);
        self.pt = known.or_else(|| Some((codec, payload_type(rtc, self.mid, codec)?)));
        self.pt.map(|(_, pt)| pt)
    }

    /// Ends the current stream: the next packet begins another one.
    pub(super) fn interrupt(&mut self) {
        self.video.set_target(None);
        self.audio.interrupt();
    }

    /// Counts an anchor that was sent.
    pub(super) fn on_anchor_sent(&mut self, bytes: usize) {
        self.sent.anchors += 1;
        self.sent.second_anchors += 1;
        self.sent.anchor_bytes += bytes as u64;
    }

    /// Ends a second, which took `span`; returns the subscription's statistics.
    pub(super) fn end_second(&mut self, span: Duration) -> Option<TrackStats> {
        let refused = self.undecodable || self.has_backup();
        let seconds = span.as_secs_f64();
        let rate = |bytes: u64| Bitrate::bps((bytes as f64 * 8.0 / seconds) as u64);
        let sent = &mut self.sent;
        sent.media = rate(sent.media_bytes);
        let stats = TrackStats {
            track: self.track?,
            media_bitrate: sent.media,
            anchor_bitrate: rate(sent.anchor_bytes),
            anchors_per_s: sent.second_anchors as f64 / seconds,
            anchors_sent: sent.anchors,
            anchors_dropped: sent.anchors_dropped,
            refused: refused.then_some(Refusal::Codec),
        };
        (sent.media_bytes, sent.anchor_bytes, sent.second_anchors) = (0, 0, 0);
        Some(stats)
    }

    /// The track and rung that the client receives now: the forwarded layer, with anchors if it has the tapped layer of
    /// an enhanced rung. `anchors`: the client can receive anchors.
    pub(super) fn effective_rung(
        &self,
        tapped: Option<Layer>,
        anchors: bool,
    ) -> Option<(TrackId, Rung)> {
        let current = self.video.current()?;
        let plus = self.rung.filter(|r| r.enhanced() && r.layer() == current.layer);
        let plus = plus.filter(|_| anchors && tapped == Some(current.layer));
        Some((self.track?, plus.unwrap_or(Rung::plain(current.layer))))
    }
}

/// The client's first payload type of a video codec, or of audio, on an m-line.
pub(super) fn payload_type(rtc: &Rtc, mid: Mid, codec: Option<VideoCodec>) -> Option<Pt> {
    let media = rtc.media(mid)?;
    let params = rtc.codec_config().params();
    let fits = |p: &PayloadParams, pt| p.pt() == pt && stack::video_codec(p.spec().codec) == codec;
    media.remote_pts().iter().copied().find(|&pt| params.iter().any(|p| fits(p, pt)))
}
