//! A published track: its state, and what it costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::media::Mid;
use windlass_types::message::ReassembledAnchor;
use windlass_types::{
    Anchor, AnchorSource, Bitrate, EnhancerRequest, Epoch, Layer, PublisherUplink, Refusal, Rung,
    Size, StageTimes, StreamId, VideoCodec,
};

use super::allocation::anchor_costs::{AnchorCostMeter, AnchorCosts, AnchorLimits};
use super::output::Output;
use super::publisher::backup::Backup;
use super::publisher::key_frames::KeyFrameRequests;
use super::publisher::layers::{Layers, SDK_MAX, ThinnedShares};
use super::publisher::params::{LayerParams, PublisherParams};
use super::publisher::stills::Stills;
use super::record::track::{Recordings, TrackRecording};
use super::relay::track::{Making, NodeDemands, RemotePublisher};
use super::rendition::track::Rendition;
use super::subscriber::recent::Recent;
use super::tap::Tap;
use super::tap::tapped_layers::Taps;
use crate::api::{ParticipantId, SfuEvent, TrackInfo, UplinkReport};

/// A published track.
pub(crate) struct Track {
    pub(crate) info: TrackInfo,
    pub(crate) mid: Mid,
    pub(crate) room: Arc<str>,
    /// The publisher's side of the track, if the track is published on another node.
    pub(crate) remote: Option<RemotePublisher>,
    /// What other nodes want of the track, if the track is published here.
    pub(crate) nodes: NodeDemands,
    pub(crate) subscribers: Vec<ParticipantId>,
    pub(crate) layers: Layers,
    /// Parameters that the publisher was given.
    pub(crate) params: PublisherParams,
    /// The largest layer that the publisher sends where its uplink carries it; `None` if the publisher does not say.
    pub(crate) largest: Option<Layer>,
    pub(crate) recent: Recent,
    pub(crate) keyframes: KeyFrameRequests,
    pub(crate) taps: Taps,
    /// What recorder and renderer get of the track.
    pub(crate) recordings: Recordings,
    pub(crate) stills: Stills,
    pub(crate) anchor_costs: AnchorCostMeter,
    /// Why the enhancer makes no anchors of the track.
    pub(crate) refused: Option<Refusal>,
    /// The same video in another codec.
    pub(crate) backup: Backup,
    /// The enhanced picture of the video, coded here.
    pub(crate) rendition: Rendition,
}

impl Track {
    /// A track without packets and subscribers.
    pub(crate) fn new(info: TrackInfo, mid: Mid, room: Arc<str>) -> Track {
        Track {
            mid,
            remote: None,
            nodes: NodeDemands::new(info.track, room.clone()),
            subscribers: Vec::new(),
            layers: Layers::default(),
            params: PublisherParams::default(),
            largest: None,
            recent: Recent::default(),
            keyframes: KeyFrameRequests::default(),
            taps: Taps::default(),
            recordings: Recordings::default(),
            stills: Stills::default(),
            anchor_costs: AnchorCostMeter::default(),
            refused: None,
            backup: Backup::default(),
            rendition: Rendition::default(),
            info,
            room,
        }
    }

    /// Whether the track is announced to others: backups and renditions are not.
    pub(crate) fn is_announced(&self) -> bool {
        !self.backup.is_one() && !self.rendition.is_one()
    }

    /// Why the enhancer cannot read the track; `None` if it can.
    pub(crate) fn unreadable(&self) -> Option<Refusal> {
        let other = self.layers.codec().is_some_and(|codec| codec != VideoCodec::Vp9);
        let encrypted = self.info.encrypted.then_some(Refusal::Encrypted);
        encrypted.or((other || self.layers.has_spatial()).then_some(Refusal::Codec))
    }

    /// Whether there can be anchors. `enhancer`: there is one here. Of a track that it cannot read there are the
    /// publisher's stills alone, which need none.
    pub(crate) fn has_anchors(&self, enhancer: bool) -> bool {
        match &self.remote {
            Some(remote) => remote.anchor_state().available,
            None if self.unreadable().is_some() => self.stills.answers(),
            None => enhancer,
        }
    }

    /// The shares of each layer's bitrate up to its temporal layers. What AV1 and H.264 say of them is encrypted with
    /// the frame.
    pub(crate) fn thinned(&self) -> [ThinnedShares; 3] {
        let hidden = matches!(self.layers.codec(), Some(VideoCodec::Av1 | VideoCodec::H264));
        if self.info.encrypted && hidden { Default::default() } else { self.layers.thinned() }
    }

    /// The stream, while the enhancer gets it.
    pub(crate) fn enhanced_stream(&self) -> Option<StreamId> {
        self.info.stream.filter(|_| self.taps.is_read())
    }

    /// Expected bitrates of each layer's anchors, where there can be any; `None`: a layer without anchors.
    pub(crate) fn expected_anchor_costs(
        &self,
        now: Instant,
        limits: AnchorLimits,
    ) -> [Option<AnchorCosts>; 3] {
        let max = self.layers.max_enhanced(limits.max_pixels);
        let sent = Layer::ALL.map(|layer| self.layers.rate(layer, now).is_some());
        let unreadable = self.unreadable().is_some();
        let stills = self.stills.answers() || unreadable;
        Layer::ALL.map(|layer| {
            let larger = Layer::ALL.into_iter().filter(|&l| l > layer);
            let source = larger.rev().find(|&l| stills || limits.captured && sent[l as usize]);
            let octaves = source.map_or(0, |l| l as u8 - layer as u8).min(limits.max_octaves);
            let enhanced = Rung::plus(layer).is_some() && max >= Some(layer);
            let costs = enhanced.then(|| self.anchor_costs.expected(octaves))?;
            let enhanced = if unreadable { Bitrate::ZERO } else { costs.enhanced };
            Some(AnchorCosts { enhanced, ..costs })
        })
    }

    /// Whether the publisher's own pixels can become anchors now.
    pub(crate) fn has_captured_source(&self) -> bool {
        self.taps.captures() || self.stills.usable() || self.remote.is_some()
    }

    /// Latency budget from a frame's arrival to its anchor's use: the configured one, plus the time for which the
    /// policy holds frames.
    pub(crate) fn budget(&self, configured: Duration) -> Duration {
        configured + self.remote.as_ref().map_or(self.holds(), |remote| remote.anchor_state().holds)
    }

    /// Time for which the policy of the track's tap holds frames.
    fn holds(&self) -> Duration {
        self.taps.low().map_or(Duration::ZERO, |tap| tap.terms().policy.holds())
    }

    /// The layer whose anchors are made now, here or at the publisher's node.
    pub(crate) fn tapped(&self) -> Option<Layer> {
        match &self.remote {
            Some(remote) => remote.anchor_state().layer,
            None => self.taps.layer(),
        }
    }

    /// Scale of the tapped layer's anchors; `default` until the enhancer has reported it.
    pub(crate) fn scale(&self, default: u16) -> u16 {
        self.taps.scale_of(self.tapped(), default)
    }

    /// Why there are no anchors although a layer is tapped.
    pub(crate) fn refusal(&self, max_pixels: u32, enhancement: bool) -> Option<Refusal> {
        let none = self.layers.max_enhanced(max_pixels).is_none();
        let too_large = none || self.taps.low().is_some_and(Tap::is_too_large);
        let refused = self.tapped().and(self.refused);
        let unreadable = self.unreadable().filter(|_| !self.has_anchors(enhancement));
        // Stills of what no enhancer reads need none, so there is a reason also where there is no enhancer.
        let expected = enhancement || self.unreadable().is_some();
        let never = unreadable.or(self.layers.refusal()).filter(|_| expected);
        never.or(refused).or((too_large && expected).then_some(Refusal::Size))
    }

    /// The publisher's uplink bandwidth for the enhancer's controller, while there is a tap of the low layer alone.
    pub(crate) fn uplink(&self, now: Instant, report: UplinkReport) -> Option<Output> {
        let valid = report.bitrate > Bitrate::ZERO && report.fps.is_finite() && report.fps > 0.0;
        let (layer, stream) = self.taps.layer().zip(self.enhanced_stream())?;
        if !valid || self.taps.captures() {
            return None;
        }
        let others = Layer::ALL.into_iter().filter(|&l| l != layer);
        let others: Bitrate = others.filter_map(|l| self.layers.rate(l, now)).sum();
        let bitrate = report.bitrate.saturating_sub(others).min(SDK_MAX[layer as usize]);
        let uplink = PublisherUplink { layer, report: UplinkReport { bitrate, ..report } };
        Some(Output::Request(stream, EnhancerRequest::Uplink(uplink)))
    }

    /// A publisher's answer to a request for a still, as an anchor; `None` if the answer has not the size of anchors.
    /// `scale` is the anchors' scale until the enhancer has reported one.
    pub(crate) fn still(
        &self,
        now: Instant,
        answer: ReassembledAnchor,
        scale: u16,
    ) -> Option<Anchor> {
        let (low, stream) = self.tapped_size().zip(self.info.stream)?;
        let header = answer.header;
        if low.scaled(self.scale(scale)) != header.size {
            return None;
        }
        Some(Anchor {
            stream,
            epoch: Epoch(0),
            rtp_timestamp: header.rtp_timestamp,
            arrival: now,
            source: AnchorSource::Captured,
            codec: header.codec,
            tiled: header.tiled,
            size: header.size,
            beyond_prior: header.beyond_prior,
            payload: Bytes::from(answer.payload),
            times: StageTimes::default(),
        })
    }

    /// Size of the tapped layer; `None` while it is unknown.
    pub(crate) fn tapped_size(&self) -> Option<Size> {
        let tap = self.taps.low()?;
        if self.taps.is_read() { tap.size() } else { self.layers.sizes()[tap.layer() as usize] }
    }

    /// Asks the publisher for layers with these parameters.
    pub(crate) fn ask(&self, layers: LayerParams) -> Output {
        let event = SfuEvent::Knobs { track: self.info.track, layers };
        Output::Event(self.info.participant, event)
    }

    /// Requests a key anchor, at a limited rate: one serves all subscribers.
    pub(crate) fn request_key_anchor(&mut self, now: Instant) -> Option<Output> {
        if let Some(remote) = &self.remote {
            return Some(remote.request_key_anchor());
        }
        self.enhanced_stream()?;
        let tap = self.taps.low_mut()?;
        tap.admit_key_anchor_request(now)
            .then(|| Output::Request(tap.stream(), EnhancerRequest::KeyAnchor))
    }

    /// Requests a key anchor for a subscriber that begins to receive anchors. These requests have no rate limit, as
    /// they are few.
    pub(crate) fn request_initial_anchor(&self) -> Option<Output> {
        if let Some(remote) = &self.remote {
            return Some(remote.request_key_anchor());
        }
        let stream = self.enhanced_stream()?;
        Some(Output::Request(stream, EnhancerRequest::KeyAnchor))
    }

    /// Sends the anchor state to other nodes, if it has changed. `enhancer`: there is one.
    pub(crate) fn send_anchor_state(&mut self, enhancer: bool, default_scale: u16) -> Vec<Output> {
        let making = Making {
            available: self.has_anchors(enhancer),
            layer: self.tapped(),
            scale: self.scale(default_scale),
            holds: self.holds(),
            refused: self.refused,
        };
        self.nodes.send_anchor_state(making)
    }

    /// When the track's taps, recording or key frame requests are due.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let recordings = self.recordings.iter().filter_map(TrackRecording::timeout);
        let others = [self.keyframes.timeout(now), self.taps.timeout()];
        others.into_iter().flatten().chain(recordings).min()
    }
}
