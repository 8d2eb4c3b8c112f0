//! Published tracks: their state, and what subscribers want of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::Mid;
use windlass_types::{Layer, Refusal, Rung, Size, StreamId, TapInput};

use super::alignment::Alignment;
use super::allocation::AnchorLimits;
use super::anchor_costs::{AnchorCostMeter, AnchorCosts};
use super::dynacast::Dynacast;
use super::keyframes::KeyFrameRequests;
use super::layers::Layers;
use super::publisher_params::PublisherParams;
use super::recent::Recent;
use super::relay::{NodeDemand, RemotePublisher};
use super::tap::Tap;
use super::tapping::TapHistory;
use super::view::View;
use super::{Core, Output};
use crate::api::{Kind, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::relay::NodeId;

/// The quarter layer of a 720p camera, as most are.
const USUAL_QUARTER: Size = Size::new(320, 180);

/// A published track.
pub(super) struct Track {
    pub(super) info: TrackInfo,
    pub(super) mid: Mid,
    pub(super) room: Arc<str>,
    /// Its publisher's side, if it is published on another node.
    pub(super) remote: Option<RemotePublisher>,
    /// What other nodes want of it, if it is published here.
    pub(super) nodes: BTreeMap<NodeId, NodeDemand>,
    pub(super) subscribers: Vec<ParticipantId>,
    pub(super) layers: Layers,
    /// Size of each layer, from its last key frame.
    pub(super) sizes: [Option<Size>; 3],
    pub(super) dynacast: Dynacast,
    /// What the publisher was asked to send.
    pub(super) params: PublisherParams,
    /// The largest layer that its publisher sends where the uplink carries it, if it says that.
    pub(super) largest: Option<Layer>,
    /// The layer as which a single encoding counts, by the size of its last key frame.
    pub(super) single: Option<Layer>,
    pub(super) recent: Recent,
    pub(super) keyframes: KeyFrameRequests,
    /// Tap of the low layer.
    pub(super) tap: Option<Tap>,
    /// Tap of a higher layer, for captured anchors.
    pub(super) capture: Option<Tap>,
    pub(super) tap_history: TapHistory,
    /// Maps timestamps between the layers.
    pub(super) alignment: Alignment,
    /// Whether its publisher answers requests for stills.
    pub(super) stills: bool,
    /// Whether the enhancer was told that it may request stills.
    pub(super) regions: bool,
    pub(super) anchor_costs: AnchorCostMeter,
    /// Why the enhancer makes no anchors of the track.
    pub(super) refused: Option<Refusal>,
}

impl Track {
    /// The largest layer that can be enhanced: at most the half layer, and with at most `max_pixels` where its size is known.
    pub(super) fn max_enhanced_layer(&self, max_pixels: u32) -> Option<Layer> {
        let too_large = self.sizes.map(|size| size.is_some_and(|size| size.pixels() > max_pixels));
        match too_large {
            [false, false, _] => Some(Layer::H),
            [false, true, _] => self.sizes[0].map(|_| Layer::Q),
            [true, ..] => None,
        }
    }

    /// Size of each layer. Unknown ones are derived from a known one, or are the usual ones.
    pub(super) fn likely_sizes(&self) -> [Size; 3] {
        let known = Layer::ALL.into_iter().find_map(|l| Some((l, self.sizes[l as usize]?)));
        let (of, size) = known.unwrap_or((Layer::Q, USUAL_QUARTER));
        Layer::ALL.map(|layer| {
            let side =
                |side: u16| (u32::from(side) * (1 << layer as u32) / (1 << of as u32)) as u16;
            self.sizes[layer as usize].unwrap_or(Size::new(side(size.width), side(size.height)))
        })
    }

    /// Expected bitrates of each layer's anchors; `None`: a layer without anchors.
    pub(super) fn expected_anchor_costs(
        &self,
        now: Instant,
        limits: AnchorLimits,
    ) -> [Option<AnchorCosts>; 3] {
        let max = self.max_enhanced_layer(limits.max_pixels);
        let sent = Layer::ALL.map(|layer| self.layers.rate(layer, now).is_some());
        Layer::ALL.map(|layer| {
            let larger = Layer::ALL.into_iter().filter(|&l| l > layer);
            let source = larger.rev().find(|&l| self.stills || limits.captured && sent[l as usize]);
            let octaves = source.map_or(0, |l| l as u8 - layer as u8).min(limits.max_octaves);
            let enhanced = Rung::plus(layer).is_some() && max >= Some(layer);
            enhanced.then(|| self.anchor_costs.expected(octaves))
        })
    }

    /// Whether the publisher's own pixels can become anchors now.
    pub(super) fn has_captured_source(&self) -> bool {
        self.capture.is_some() || self.regions || self.remote.is_some()
    }

    /// Latency budget from a frame's arrival to its anchor's use: the configured one, plus the time for which the policy holds frames.
    pub(super) fn budget(&self, configured: Duration) -> Duration {
        let holds = match &self.remote {
            Some(remote) => remote.anchor_state.holds,
            None => self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.policy.holds()),
        };
        configured + holds
    }
}

impl Core {
    /// Adds a track, and notifies the room: the other members, and in a loopback room its publisher.
    pub(super) fn add_track(
        &mut self,
        participant: ParticipantId,
        mid: Mid,
        kind: Kind,
        name: &str,
    ) -> TrackId {
        let room = self.peers.get(&participant).map_or("", |peer| peer.room.as_str());
        let track = self.insert_track(participant, mid, kind, name, room.into());
        if let Some(info) = self.tracks.get(&track).map(|track| track.info.clone()) {
            self.notify_audience(participant, &SfuEvent::TrackAdded(info));
        }
        track
    }

    /// Adds a track without a notification.
    pub(super) fn insert_track(
        &mut self,
        participant: ParticipantId,
        mid: Mid,
        kind: Kind,
        name: &str,
        room: Arc<str>,
    ) -> TrackId {
        let id = self.next_track;
        self.next_track = self.shard.next_id(id);
        let track = TrackId(id);
        let stream = (kind == Kind::Video).then_some(StreamId(id as u32));
        let info =
            TrackInfo { track, participant, kind, name: name.to_owned(), muted: false, stream };
        if let Some(stream) = stream {
            self.streams.insert(stream, track);
        }
        self.tracks.insert(
            track,
            Track {
                info,
                mid,
                room,
                remote: None,
                nodes: BTreeMap::new(),
                subscribers: Vec::new(),
                layers: Layers::default(),
                sizes: [None; 3],
                dynacast: Dynacast::default(),
                params: PublisherParams::default(),
                largest: None,
                single: None,
                recent: Recent::default(),
                keyframes: KeyFrameRequests::default(),
                tap: None,
                tap_history: TapHistory::default(),
                refused: None,
                alignment: Alignment::default(),
                capture: None,
                stills: false,
                regions: false,
                anchor_costs: AnchorCostMeter::default(),
            },
        );
        track
    }

    /// Removes a track, and notifies the room.
    pub(super) fn remove_track(&mut self, track: TrackId) {
        let Some(t) = self.tracks.remove(&track) else { return };
        if let Some(remote) = &t.remote {
            self.relays.remove_track(remote.key());
        }
        if let Some(stream) = t.info.stream {
            self.streams.remove(&stream);
            if t.tap.is_some() {
                self.outputs.push_back(Output::Tap(TapInput::Stop { stream }));
            }
        }
        for subscriber in t.subscribers {
            let Some(peer) = self.peers.get_mut(&subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
                slot.set_track(None);
            }
        }
        self.notify_audience(t.info.participant, &SfuEvent::TrackRemoved { track });
    }

    /// Sets the maximum rung that a subscriber wants of a track.
    pub fn set_max_rung(&mut self, now: Instant, id: ParticipantId, track: TrackId, max: Rung) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.max = max;
        }
        self.schedule.allocate_now(now);
    }

    /// Sets how a subscriber shows a track, which gives the track's weight and sufficient layer.
    pub fn set_view(&mut self, now: Instant, id: ParticipantId, track: TrackId, view: View) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.view = Some(view);
        }
        self.schedule.allocate_now(now);
    }

    /// Mutes or unmutes a participant's own track.
    pub fn set_muted(&mut self, now: Instant, id: ParticipantId, track: TrackId, muted: bool) {
        if self.tracks.get(&track).is_some_and(|t| t.info.participant == id && t.remote.is_none()) {
            self.mute(now, track, muted);
        }
    }

    /// Mutes or unmutes a track, and notifies the room.
    pub(super) fn mute(&mut self, now: Instant, track: TrackId, muted: bool) {
        let Some(t) = self.tracks.get_mut(&track).filter(|t| t.info.muted != muted) else { return };
        let id = t.info.participant;
        t.info.muted = muted;
        if let Some(tap) = &mut t.tap {
            tap.await_key();
        }
        if let Some(capture) = &mut t.capture {
            capture.await_key();
        }
        for subscriber in t.subscribers.clone() {
            let Some(peer) = self.peers.get_mut(&subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
                slot.interrupt();
            }
        }
        self.notify_audience(id, &SfuEvent::TrackMuted { track, muted });
        self.schedule.allocate_now(now);
    }
}
