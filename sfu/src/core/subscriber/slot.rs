//! One m-line on which a participant receives: the track that it carries, its rung, and its outgoing stream.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::format::PayloadParams;
use str0m::media::{Mid, Pt};
use str0m::rtp::Ssrc;
use windlass_types::{Layer, Refusal, Rung, VideoCodec};

use super::audio::AudioTimeline;
use super::rewriter::Rewriter;
use super::subscription::Subscription;
use crate::api::{TrackId, TrackKind, TrackStats};
use crate::core::connection::in_flight::InFlight;
use crate::core::connection::stack;

/// An m-line on which the participant receives. It lives as long as the m-line, whatever track it carries.
pub(crate) struct Slot {
    /// `a=mid` of the m-line.
    pub mid: Mid,
    /// Negotiated media.
    pub kind: TrackKind,
    /// The track that the slot carries.
    pub track: Option<TrackId>,
    /// The track whose packets the slot is sent: its own, or that one's backup.
    pub source: Option<TrackId>,
    /// The subscription to the track.
    pub subscription: Subscription,
    /// Timeline of a video stream.
    pub video: Rewriter,
    /// Timeline of an audio stream.
    pub(crate) audio: AudioTimeline,
    /// Maximum RTX share that the stack has; `None`: not set yet.
    pub(crate) rtx_share: Option<f32>,
    /// Whether the slot's packets bypass the stack's pacer.
    pub(crate) unpaced: bool,
    /// Whether the client needs a key frame for lost frames, which waits until the downlink is not congested.
    pub key_frame_pending: bool,
    /// Payload type of the slot's packets, with its codec of video, once looked up.
    pub(crate) pt: Option<(Option<VideoCodec>, Pt)>,
    /// SSRC of the slot's packets.
    pub(crate) ssrc: Option<Ssrc>,
    /// The slot's packets in the stack's pacer.
    pub(crate) in_flight: InFlight,
}

impl Slot {
    /// A slot without a track; its timelines begin at `timestamp`.
    pub(crate) fn new(mid: Mid, kind: TrackKind, timestamp: u32, now: Instant) -> Slot {
        Slot {
            mid,
            kind,
            track: None,
            source: None,
            subscription: Subscription::default(),
            video: Rewriter::new(timestamp),
            audio: AudioTimeline::new(timestamp),
            rtx_share: None,
            unpaced: false,
            key_frame_pending: false,
            pt: None,
            ssrc: None,
            in_flight: InFlight::new(now),
        }
    }

    /// Makes the slot carry another track, or none, from now on.
    pub(crate) fn set_track(&mut self, track: Option<TrackId>) {
        if self.track != track {
            self.track = track;
            self.source = track;
            self.subscription = Subscription::default();
            self.interrupt();
        }
    }

    /// Whether the client decodes a codec of video; `None`: it is not known yet, so it does.
    pub(crate) fn decodes(&mut self, rtc: &Rtc, codec: Option<VideoCodec>) -> bool {
        codec.is_none_or(|codec| self.payload_type(rtc, Some(codec)).is_some())
    }

    /// The backup of the slot's track has ended.
    pub(crate) fn end_backup(&mut self) {
        self.source = self.track;
        self.subscription.rung = None;
        self.interrupt();
    }

    /// Whether the client is sent the track's backup.
    pub(crate) fn has_backup(&self) -> bool {
        self.source != self.track
    }

    /// Payload type of packets of a video codec, or of audio; `None` if the client does not take them.
    pub(crate) fn payload_type(&mut self, rtc: &Rtc, codec: Option<VideoCodec>) -> Option<Pt> {
        let known = self.pt.filter(|(of, _)| *of == codec);
        self.pt = known.or_else(|| Some((codec, payload_type(rtc, self.mid, codec)?)));
        self.pt.map(|(_, pt)| pt)
    }

    /// Sets the highest temporal layer that is sent, where the publisher sends several; `None`: all are.
    pub(crate) fn set_max_temporal(&mut self, layer: Option<u8>) {
        self.subscription.max_temporal = layer;
        self.video.set_max_temporal(layer);
    }

    /// Ends the current stream: the next packet begins another one.
    pub(crate) fn interrupt(&mut self) {
        self.video.set_target(None);
        self.audio.interrupt();
    }

    /// Ends a second, which took `span`; returns the subscription's statistics.
    pub(crate) fn end_second(&mut self, span: Duration) -> Option<TrackStats> {
        let refused = self.subscription.undecodable || self.has_backup();
        let refused = refused.then_some(Refusal::Codec);
        let track = self.track?;
        Some(self.subscription.sent.end_second(track, span, refused))
    }

    /// The track and rung that the client receives now: the forwarded layer, with anchors if it has the tapped layer of
    /// an enhanced rung. `anchors`: the client can receive anchors.
    pub(crate) fn effective_rung(
        &self,
        tapped: Option<Layer>,
        anchors: bool,
    ) -> Option<(TrackId, Rung)> {
        let current = self.video.current()?;
        let layer = self.subscription.spatial.layer(current.layer, self.video.max_spatial());
        let plus = self.subscription.rung.filter(|r| r.enhanced() && r.layer() == layer);
        let plus = plus.filter(|_| anchors && tapped == Some(layer));
        Some((self.track?, plus.unwrap_or(Rung::plain(layer))))
    }
}

/// The client's first payload type of a video codec, or of audio, on an m-line.
pub(crate) fn payload_type(rtc: &Rtc, mid: Mid, codec: Option<VideoCodec>) -> Option<Pt> {
    let media = rtc.media(mid)?;
    let params = rtc.codec_config().params();
    let fits = |p: &PayloadParams, pt| p.pt() == pt && stack::video_codec(p.spec().codec) == codec;
    media.remote_pts().iter().copied().find(|&pt| params.iter().any(|p| fits(p, pt)))
}
