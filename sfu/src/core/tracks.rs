//! Published tracks: what is known of them, what subscribers want of them, and their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::Mid;
use windlass_types::{Layer, LayerKnobs, PublisherKnobs, Refusal, Rung, StreamId, TapInput};

use super::alignment::Alignment;
use super::costs::{AnchorCosts, Costs};
use super::dynacast::Dynacast;
use super::enhance::unbounded;
use super::keyframes::KeyFrames;
use super::ladder::Watched;
use super::layers::Layers;
use super::recent::Recent;
use super::relay::{Afar, Wishes};
use super::tap::{Tap, exceeds};
use super::view::View;
use super::{Core, Output};
use crate::api::{Kind, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::relay::NodeId;

/// A published track and who receives it.
pub(super) struct Track {
    pub(super) info: TrackInfo,
    pub(super) mid: Mid,
    pub(super) room: Arc<str>,
    /// Its publisher's node, where that is another.
    pub(super) afar: Option<Afar>,
    /// Other nodes that have it, where it is published here.
    pub(super) nodes: BTreeMap<NodeId, Wishes>,
    pub(super) subscribers: Vec<ParticipantId>,
    pub(super) layers: Layers,
    /// Sizes of the layers' pictures, as their key frames say.
    pub(super) sizes: [Option<(u16, u16)>; 3],
    pub(super) dynacast: Dynacast,
    /// What the publisher was told last of its smallest layer.
    pub(super) smallest: LayerKnobs,
    /// What a publisher's only encoding is taken for, once its size is known.
    pub(super) single: Option<Layer>,
    pub(super) recent: Recent,
    pub(super) keyframes: KeyFrames,
    pub(super) tap: Option<Tap>,
    /// Which layer is tapped, or would be, and since when.
    pub(super) tapped_since: Option<(Layer, Instant)>,
    /// How large the tapped layer is watched.
    pub(super) watched: Watched,
    /// By how much the enhancer enlarges a tapped layer.
    pub(super) scaled: Option<(Layer, u16)>,
    /// Whose frames belong together.
    pub(super) alignment: Alignment,
    /// The layer above the tapped one, while both are there.
    pub(super) capture: Option<Tap>,
    /// What the controller wants its publisher to send; `None` before it has said anything.
    pub(super) adapted: Option<PublisherKnobs>,
    /// Whether the quarter layer has been told to send next to nothing, as nobody holds it.
    pub(super) standby: bool,
    /// Whether its publisher gives stills, where somebody has a use for them.
    pub(super) stills: bool,
    /// Whether the enhancer was told that it may ask for regions.
    pub(super) regions: bool,
    /// The first epoch that no former tap has used.
    pub(super) next_epoch: u16,
    pub(super) costs: Costs,
    /// Why the enhancer makes no anchors of it.
    pub(super) refused: Option<Refusal>,
}

impl Track {
    /// The largest layer that can be enhanced, as far as sizes are known: none of more than so many pixels.
    pub(super) fn most_enhanced(&self, most_pixels: u32) -> Option<Layer> {
        let too_large = self.sizes.map(|size| size.is_some_and(|size| exceeds(size, most_pixels)));
        match too_large {
            [false, false, _] => Some(Layer::H),
            [false, true, _] => self.sizes[0].map(|_| Layer::Q),
            [true, ..] => None,
        }
    }

    /// Sizes of the layers' pictures; of those that no key frame has said yet, halves and doubles of one that is known, or the usual ones.
    pub(super) fn likely_sizes(&self) -> [(u16, u16); 3] {
        let known = Layer::ALL.into_iter().find_map(|l| Some((l, self.sizes[l as usize]?)));
        let (of, (width, height)) = known.unwrap_or((Layer::Q, (320, 180)));
        Layer::ALL.map(|layer| {
            let side =
                |side: u16| (u32::from(side) * (1 << layer as u32) / (1 << of as u32)) as u16;
            self.sizes[layer as usize].unwrap_or((side(width), side(height)))
        })
    }

    /// What anchors of each layer are expected to take; `None`: none are made of it. `captured`: pictures of a larger layer are made anchors;
    /// `most_octaves`: anchors are no larger than that.
    pub(super) fn anchor_costs(
        &self,
        now: Instant,
        most_pixels: u32,
        captured: bool,
        most_octaves: u8,
    ) -> [Option<AnchorCosts>; 3] {
        let most = self.most_enhanced(most_pixels);
        let sent = Layer::ALL.map(|layer| self.layers.rate(layer, now).is_some());
        Layer::ALL.map(|layer| {
            let larger = Layer::ALL.into_iter().filter(|&l| l > layer);
            let given = larger.rev().find(|&l| self.stills || captured && sent[l as usize]);
            let octaves = given.map_or(0, |l| l as u8 - layer as u8).min(most_octaves);
            let enhanced = Rung::plus(layer).is_some() && most >= Some(layer);
            enhanced.then(|| self.costs.expected(octaves))
        })
    }

    /// Whether the publisher's own pixels may become anchors now.
    pub(super) fn gives_pixels(&self) -> bool {
        self.capture.is_some() || self.regions || self.afar.is_some()
    }

    /// From a frame's arrival to its anchor's last use: the operator's, and as much more as its policy holds frames.
    pub(super) fn budget(&self, operator: Duration) -> Duration {
        let holds = match &self.afar {
            Some(afar) => afar.made.holds,
            None => self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.policy.holds()),
        };
        operator + holds
    }
}

impl Core {
    /// Makes a track known to the others in the room, and in a loopback room to its publisher.
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
            self.tell_audience(participant, &SfuEvent::TrackAdded(info));
        }
        track
    }

    /// A track that nobody has been told of.
    pub(super) fn insert_track(
        &mut self,
        participant: ParticipantId,
        mid: Mid,
        kind: Kind,
        name: &str,
        room: Arc<str>,
    ) -> TrackId {
        let id = self.next_track;
        self.next_track = self.shard.next_number(id);
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
                afar: None,
                nodes: BTreeMap::new(),
                subscribers: Vec::new(),
                layers: Layers::default(),
                sizes: [None; 3],
                dynacast: Dynacast::default(),
                smallest: unbounded(Layer::Q).1,
                single: None,
                recent: Recent::default(),
                keyframes: KeyFrames::default(),
                tap: None,
                tapped_since: None,
                watched: Watched::default(),
                scaled: None,
                refused: None,
                alignment: Alignment::default(),
                capture: None,
                adapted: None,
                standby: false,
                stills: false,
                regions: false,
                next_epoch: 0,
                costs: Costs::default(),
            },
        );
        track
    }

    pub(super) fn remove_track(&mut self, track: TrackId) {
        let Some(t) = self.tracks.remove(&track) else { return };
        if let Some(afar) = &t.afar {
            self.relays.forget_track(afar.key());
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
                slot.carry(None);
            }
        }
        self.tell_audience(t.info.participant, &SfuEvent::TrackRemoved { track });
    }

    /// Sets the best rung that a subscriber wants of a track.
    pub fn set_max_rung(&mut self, now: Instant, id: ParticipantId, track: TrackId, max: Rung) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.max = max;
        }
        self.next_allocation = now;
        self.due = now;
    }

    /// A subscriber says how it shows a track: how much that matters beside others, and what is enough for it, follows.
    pub fn set_view(&mut self, now: Instant, id: ParticipantId, track: TrackId, view: View) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.view = Some(view);
        }
        self.next_allocation = now;
        self.due = now;
    }

    /// Mutes or unmutes a track of the participant's own.
    pub fn set_muted(&mut self, now: Instant, id: ParticipantId, track: TrackId, muted: bool) {
        if self.tracks.get(&track).is_some_and(|t| t.info.participant == id && t.afar.is_none()) {
            self.mute(now, track, muted);
        }
    }

    /// A track is muted from now on, or no longer.
    pub(super) fn mute(&mut self, now: Instant, track: TrackId, muted: bool) {
        let Some(t) = self.tracks.get_mut(&track).filter(|t| t.info.muted != muted) else { return };
        let id = t.info.participant;
        t.info.muted = muted;
        if let Some(tap) = &mut t.tap {
            tap.need_key();
        }
        if let Some(capture) = &mut t.capture {
            capture.need_key();
        }
        for subscriber in t.subscribers.clone() {
            let Some(peer) = self.peers.get_mut(&subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
                slot.interrupt();
            }
        }
        self.tell_audience(id, &SfuEvent::TrackMuted { track, muted });
        self.next_allocation = now;
        self.due = now;
    }
}
