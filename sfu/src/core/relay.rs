//! Rooms that are on other SFUs too: what local participants publish goes there, and what theirs publish comes from there.
//!
//! A track of another SFU is a [`Track`] like others, but for its publisher's side, which is a node: key frames, layers and anchors are asked of that.
//!
//! Source: decision 014.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::{Mid, Pt};
use windlass_types::{EnhancerRequest, Layer};

use super::forward::Sound;
use super::rewriter::{PacketIn, Source};
use super::tap::Tap;
use super::{Core, Output, Track, enhance};
use crate::api::{Kind, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::relay::{Made, NodeId, Relayed, RelayedAnchor, RelayedPacket, RelayedTrack};

/// Nodes that a room may be on beside this one, at the most.
const MOST_NODES: usize = 31;

/// Which other nodes there are, and what is shared with them.
#[derive(Debug, Default)]
pub(super) struct Relays {
    /// Those to which there is a way.
    linked: BTreeSet<NodeId>,
    /// The other nodes of rooms that are on several.
    shared: HashMap<Arc<str>, Vec<NodeId>>,
    /// Nodes that want what local participants of a room publish.
    audiences: HashMap<Arc<str>, BTreeSet<NodeId>>,
    /// Those that want it before it is known to be shared with them.
    early: HashMap<Arc<str>, BTreeSet<NodeId>>,
    /// Others' tracks by their numbers there.
    tracks: HashMap<(NodeId, TrackId), TrackId>,
}

/// The publisher's side of another node's track.
#[derive(Debug)]
pub(super) struct Afar {
    node: NodeId,
    /// Its number there.
    track: TrackId,
    pub(super) made: Made,
    /// What was last asked for.
    layers: [bool; 3],
    enhance: Option<Layer>,
}

/// What another node wants of a local track.
#[derive(Debug)]
pub(super) struct Wishes {
    layers: [bool; 3],
    enhance: Option<Layer>,
    /// What it was last told.
    told: Option<Made>,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes { layers: [true; 3], enhance: None, told: None }
    }
}

impl Core {
    /// A room is on these other nodes too, or on none.
    pub fn share(&mut self, now: Instant, room: &str, nodes: &[NodeId]) {
        self.due = now;
        let known = self.relays.shared.get(room).cloned().unwrap_or_default();
        let there = self.rooms.get(room).is_some_and(|room| !room.loopback);
        let room: Arc<str> = room.into();
        for &node in nodes.iter().filter(|node| there && !known.contains(node)) {
            self.tell_node(node, &room, Relayed::Begin);
        }
        let gone: Vec<_> = known.iter().copied().filter(|node| !nodes.contains(node)).collect();
        for node in gone {
            // Only whoever has the room has said that it began.
            if there {
                self.tell_node(node, &room, Relayed::End);
            }
            self.end_for(node, &room);
            self.forget_afar(&room, node);
        }
        if nodes.is_empty() {
            self.relays.shared.remove(&room);
        } else {
            self.relays.shared.insert(room.clone(), nodes.to_vec());
        }
        let early = self.relays.early.remove(&room).unwrap_or_default();
        for node in early.into_iter().filter(|node| nodes.contains(node)) {
            self.begin_for(node, &room);
        }
    }

    /// A node wants nothing of a room any more, or may not have it.
    fn end_for(&mut self, node: NodeId, room: &str) {
        for asked in [&mut self.relays.audiences, &mut self.relays.early] {
            if let Some(nodes) = asked.get_mut(room) {
                nodes.remove(&node);
                if nodes.is_empty() {
                    asked.remove(room);
                }
            }
        }
        for track in self.tracks.values_mut().filter(|track| &*track.room == room) {
            track.nodes.remove(&node);
        }
    }

    /// There is a way to a node now, or none any more: then it and its participants are gone.
    pub fn linked(&mut self, now: Instant, node: NodeId, up: bool) {
        self.due = now;
        if up == self.relays.linked.contains(&node) {
            return;
        }
        if up {
            self.relays.linked.insert(node);
            let shared = self.relays.shared.iter().filter(|(_, nodes)| nodes.contains(&node));
            let there: Vec<_> = shared.map(|(room, _)| room.clone()).collect();
            for room in there {
                if self.rooms.get(&*room).is_some_and(|room| !room.loopback) {
                    self.tell_node(node, &room, Relayed::Begin);
                }
            }
            return;
        }
        self.relays.linked.remove(&node);
        for track in self.tracks.values_mut() {
            track.nodes.remove(&node);
        }
        for asked in [&mut self.relays.audiences, &mut self.relays.early] {
            asked.retain(|_, nodes| {
                nodes.remove(&node);
                !nodes.is_empty()
            });
        }
        let rooms: Vec<Arc<str>> = self.rooms.keys().map(|room| room.as_str().into()).collect();
        for room in rooms {
            self.forget_afar(&room, node);
        }
    }

    /// Takes what a node says of a room.
    pub fn relayed(&mut self, now: Instant, node: NodeId, room: &str, message: Relayed) {
        match message {
            Relayed::Begin => self.begin_for(node, room),
            Relayed::End => self.end_for(node, room),
            Relayed::Joined { participant } => self.joined_afar(node, room, participant),
            Relayed::Left { participant } => self.left_afar(node, room, participant),
            Relayed::Track(track) => self.track_afar(node, room, track),
            Relayed::TrackRemoved { track } => {
                if let Some(track) = self.relays.tracks.get(&(node, track)) {
                    self.remove_track(*track);
                }
            }
            Relayed::TrackMuted { track, muted } => {
                if let Some(&track) = self.relays.tracks.get(&(node, track)) {
                    self.mute(now, track, muted);
                }
            }
            Relayed::Packet(packet) => return self.packet_afar(now, node, packet),
            Relayed::Anchor(anchor) => self.anchor_afar(now, node, *anchor),
            Relayed::Made { track, made } => {
                let track = self.relays.tracks.get(&(node, track));
                if let Some(track) = track.and_then(|track| self.tracks.get_mut(track))
                    && let Some(afar) = &mut track.afar
                {
                    afar.made = made;
                    track.refused = made.refused;
                    track.scaled = made.layer.map(|layer| (layer, made.scale));
                    self.next_allocation = now;
                }
            }
            Relayed::KeyFrame { track, layer } => {
                let sent = |t: &&mut Track| t.layers.rate(layer, now).is_some();
                if let Some(track) = self.wished(node, track).filter(sent) {
                    track.keyframes.want(None, layer);
                }
            }
            Relayed::Layers { track, wanted } => {
                if let Some(wishes) = self.wished(node, track).and_then(|t| t.nodes.get_mut(&node))
                {
                    wishes.layers = wanted;
                    self.next_allocation = now;
                }
            }
            Relayed::Enhance { track, layer } => {
                if let Some(wishes) = self.wished(node, track).and_then(|t| t.nodes.get_mut(&node))
                {
                    wishes.enhance = layer;
                    self.next_allocation = now;
                }
            }
            Relayed::WholeAnchor { track } => {
                if let Some(track) = self.wished(node, track) {
                    let asked = track.ask_whole(now);
                    self.outputs.extend(asked);
                }
            }
        }
        self.due = now;
    }

    /// Numbers of others' tracks, at their own nodes.
    #[cfg(test)]
    pub(super) fn relayed_tracks(&self) -> impl Iterator<Item = TrackId> {
        self.relays.tracks.keys().map(|(_, track)| *track)
    }

    /// A local track that a node has been told of.
    fn wished(&mut self, node: NodeId, track: TrackId) -> Option<&mut Track> {
        self.tracks.get_mut(&track).filter(|track| track.nodes.contains_key(&node))
    }

    fn tell_node(&mut self, node: NodeId, room: &Arc<str>, message: Relayed) {
        if self.relays.linked.contains(&node) {
            self.outputs.push_back(Output::Relay(node, room.clone(), message));
        }
    }

    /// Tells the nodes that want to know what happens here in a room.
    pub(super) fn tell_nodes(&mut self, room: &str, message: &Relayed) {
        let Some((room, nodes)) = self.relays.audiences.get_key_value(room) else { return };
        for &node in nodes {
            self.outputs.push_back(Output::Relay(node, room.clone(), message.clone()));
        }
    }

    /// Tells them what the others of the room hear of a local participant's track.
    pub(super) fn tell_nodes_of_track(&mut self, room: &str, event: &SfuEvent) {
        let message = match event {
            SfuEvent::TrackAdded(info) => {
                let nodes = self.relays.audiences.get(room).into_iter().flatten();
                if let Some(track) = self.tracks.get_mut(&info.track) {
                    track.nodes = nodes.map(|&node| (node, Wishes::default())).collect();
                }
                Relayed::Track(of_info(info))
            }
            SfuEvent::TrackRemoved { track } => Relayed::TrackRemoved { track: *track },
            SfuEvent::TrackMuted { track, muted } => {
                Relayed::TrackMuted { track: *track, muted: *muted }
            }
            _ => return,
        };
        self.tell_nodes(room, &message);
    }

    /// The first local participant of a room is there.
    pub(super) fn begin_room(&mut self, room: &str) {
        self.tell_sharers(room, &Relayed::Begin);
    }

    /// Tells all other nodes of a room.
    fn tell_sharers(&mut self, room: &str, message: &Relayed) {
        let Some((room, nodes)) = self.relays.shared.get_key_value(room) else { return };
        for &node in nodes.iter().filter(|node| self.relays.linked.contains(node)) {
            self.outputs.push_back(Output::Relay(node, room.clone(), message.clone()));
        }
    }

    /// The last one has gone.
    pub(super) fn end_room(&mut self, room: &str, afar: &[ParticipantId]) {
        let gone = self.tracks.values().map(|track| &track.info);
        let gone = gone.filter(|info| afar.contains(&info.participant)).map(|info| info.track);
        for track in gone.collect::<Vec<_>>() {
            self.remove_track(track);
        }
        self.tell_sharers(room, &Relayed::End);
    }

    fn begin_for(&mut self, node: NodeId, room: &str) {
        if !self.relays.linked.contains(&node) || self.rooms.get(room).is_some_and(|r| r.loopback) {
            return;
        }
        let shared = self.relays.shared.get(room).is_some_and(|nodes| nodes.contains(&node));
        let Relays { audiences, early, .. } = &mut self.relays;
        let asked = if shared { audiences } else { early };
        if asked.len() >= self.config.limits.rooms && !asked.contains_key(room) {
            self.counters.relay_refused += 1;
            return;
        }
        let name: Arc<str> = room.into();
        asked.entry(name.clone()).or_default().insert(node);
        if !shared {
            return;
        }
        let members = self.rooms.get(room).map(|room| room.members.clone()).unwrap_or_default();
        for &participant in &members {
            self.tell_node(node, &name, Relayed::Joined { participant });
        }
        let mut tracks = Vec::new();
        for track in self.tracks.values_mut() {
            if members.contains(&track.info.participant) {
                track.nodes.insert(node, Wishes::default());
                tracks.push(of_info(&track.info));
            }
        }
        for track in tracks {
            self.tell_node(node, &name, Relayed::Track(track));
        }
    }

    fn joined_afar(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        let known = self.peers.contains_key(&participant);
        let most = self.config.limits.participants;
        let Some(there) = self.rooms.get_mut(room).filter(|room| !room.loopback) else { return };
        if known || there.afar.len() >= most {
            self.counters.relay_refused += 1;
            return;
        }
        if there.afar.insert(participant, node).is_none() {
            let told = |&m: &_| Output::Event(m, SfuEvent::ParticipantJoined { participant });
            self.outputs.extend(there.members.iter().map(told));
        }
    }

    fn left_afar(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        let Some(there) = self.rooms.get(room) else { return };
        if there.afar.get(&participant) != Some(&node) {
            return;
        }
        let tracks: Vec<_> = self.tracks.values().map(|track| &track.info).collect();
        let own = tracks.into_iter().filter(|info| info.participant == participant);
        for track in own.map(|info| info.track).collect::<Vec<_>>() {
            self.remove_track(track);
        }
        let Some(there) = self.rooms.get_mut(room) else { return };
        there.afar.remove(&participant);
        there.speakers.forget(participant);
        let told = |&m: &_| Output::Event(m, SfuEvent::ParticipantLeft { participant });
        self.outputs.extend(there.members.iter().map(told));
    }

    /// What a node has in a room is there no more.
    fn forget_afar(&mut self, room: &str, node: NodeId) {
        let Some(there) = self.rooms.get(room) else { return };
        let gone: Vec<_> =
            there.afar.iter().filter(|(_, of)| **of == node).map(|(&id, _)| id).collect();
        for participant in gone {
            self.left_afar(node, room, participant);
        }
    }

    fn track_afar(&mut self, node: NodeId, room: &str, told: RelayedTrack) {
        let RelayedTrack { track, participant, kind, name, muted } = told;
        let there = self.rooms.get(room);
        let is_there = there.is_some_and(|room| room.afar.get(&participant) == Some(&node));
        let known = self.relays.tracks.contains_key(&(node, track));
        let others = self.tracks.values().filter(|t| t.afar.is_some() && &*t.room == room).count();
        let most = self.config.limits.tracks_per_room.saturating_mul(MOST_NODES);
        if !is_there || known || others >= most {
            self.counters.relay_refused += u64::from(!known);
            return;
        }
        let made = Made::default();
        let afar = Afar { node, track, made, layers: [true; 3], enhance: None };
        let id = self.insert_track(participant, Mid::from("afar"), kind, &name, room.into());
        self.relays.tracks.insert((node, track), id);
        if let Some(own) = self.tracks.get_mut(&id) {
            own.info.muted = muted;
            own.afar = Some(afar);
            let added = SfuEvent::TrackAdded(own.info.clone());
            self.tell_audience(participant, &added);
        }
    }

    fn packet_afar(&mut self, now: Instant, node: NodeId, packet: RelayedPacket) {
        self.counters.relay_packets_in += 1;
        let known = self.relays.tracks.get(&(node, packet.track));
        let known = known.and_then(|&id| Some((id, self.tracks.get(&id)?)));
        let Some((id, kind)) = known.map(|(id, track)| (id, track.info.kind)) else {
            self.counters.relay_unknown += 1;
            return;
        };
        let RelayedPacket { layer, seq, timestamp, marker, level, voice, blocks, payload, .. } =
            packet;
        let packet =
            PacketIn { seq, timestamp, arrival: now, late: Duration::ZERO, marker, stale: false };
        match (kind, layer) {
            (Kind::Video, Some(layer)) => self.forward_video(id, layer, packet, None, &payload),
            (Kind::Audio, None) => {
                let sound = Sound { level, voice, blocks: blocks.map(Pt::from) };
                self.forward_audio(id, packet, &payload, sound);
            }
            _ => self.counters.relay_unknown += 1,
        }
    }

    fn anchor_afar(&mut self, now: Instant, node: NodeId, relayed: RelayedAnchor) {
        self.counters.anchors_in += 1;
        let known = self.relays.tracks.get(&(node, relayed.track));
        let track = known.and_then(|track| self.tracks.get_mut(track));
        let Some((track, stream)) = track.and_then(|t| t.info.stream.map(|stream| (t, stream)))
        else {
            self.counters.relay_unknown += 1;
            return;
        };
        let RelayedAnchor { mut anchor, layer, tapped, .. } = relayed;
        anchor.stream = stream;
        track.costs.count(anchor.source, anchor.payload.len());
        let id = track.info.track;
        let source = Source { track: id, layer };
        let parcel = enhance::Parcel { anchor: &anchor, source, tapped };
        self.give_all(now, id, &parcel);
    }
}

impl Track {
    /// Tells the publisher's node which layer anchors are wanted of, if that is another.
    pub(super) fn enhance_afar(&mut self, wanted: Option<Layer>) -> Option<Output> {
        let afar = self.afar.as_mut().filter(|afar| afar.enhance != wanted)?;
        afar.enhance = wanted;
        let message = Relayed::Enhance { track: afar.track, layer: wanted };
        Some(Output::Relay(afar.node, self.room.clone(), message))
    }

    /// Tells it which layers are of use.
    pub(super) fn layers_afar(&mut self, told: &[(Layer, bool)]) -> Option<Output> {
        let afar = self.afar.as_mut()?;
        for &(layer, active) in told {
            afar.layers[layer as usize] = active;
        }
        let message = Relayed::Layers { track: afar.track, wanted: afar.layers };
        Some(Output::Relay(afar.node, self.room.clone(), message))
    }

    /// Asks it for a key frame of a layer, where it is another node.
    pub(super) fn key_frame_afar(&self, layer: Layer) -> Option<Output> {
        let afar = self.afar.as_ref()?;
        let message = Relayed::KeyFrame { track: afar.track, layer };
        Some(Output::Relay(afar.node, self.room.clone(), message))
    }

    /// Asks for an anchor that rests on no other: one for all who ask, and not too often.
    pub(super) fn ask_whole(&mut self, now: Instant) -> Option<Output> {
        if let Some(afar) = &self.afar {
            let message = Relayed::WholeAnchor { track: afar.track };
            return Some(Output::Relay(afar.node, self.room.clone(), message));
        }
        let tap = self.tap.as_mut()?;
        tap.passes_whole(now).then(|| Output::Tap(EnhancerRequest::WholeAnchor.of(tap.stream())))
    }

    /// The same for one who begins to watch, of whom there are few.
    pub(super) fn begin_whole(&self) -> Option<Output> {
        if let Some(afar) = &self.afar {
            let message = Relayed::WholeAnchor { track: afar.track };
            return Some(Output::Relay(afar.node, self.room.clone(), message));
        }
        let stream = self.tap.as_ref()?.stream();
        Some(Output::Tap(EnhancerRequest::WholeAnchor.of(stream)))
    }

    /// The layer of which anchors are made now, here or at its publisher's node.
    pub(super) fn tapped(&self) -> Option<Layer> {
        match &self.afar {
            Some(afar) => afar.made.layer,
            None => self.tap.as_ref().map(Tap::layer),
        }
    }

    /// The layers that other nodes want anchors of, each node one.
    pub(super) fn enhanced_for_nodes(&self) -> impl Iterator<Item = Layer> {
        self.nodes.values().filter_map(|wishes| wishes.enhance)
    }

    /// Whether other nodes have a use for a layer.
    pub(super) fn needed_by_nodes(&self, layer: Layer) -> bool {
        self.nodes.values().any(|wishes| wishes.layers[layer as usize])
    }

    /// Tells nodes what anchors there are, where that has changed.
    pub(super) fn tell_made(&mut self, able: bool, scale: u16) -> Vec<Output> {
        if self.nodes.is_empty() {
            return Vec::new();
        }
        let scale = self.scale(scale);
        let holds = self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.policy.holds());
        let made = Made { able, layer: self.tapped(), scale, holds, refused: self.refused };
        let (track, room) = (self.info.track, &self.room);
        let untold = self.nodes.iter_mut().filter(|(_, wishes)| wishes.told != Some(made));
        untold
            .map(|(&node, wishes)| {
                wishes.told = Some(made);
                Output::Relay(node, room.clone(), Relayed::Made { track, made })
            })
            .collect()
    }

    /// A packet for the nodes that want it; of audio where there is no layer.
    pub(super) fn relay(
        &self,
        layer: Option<Layer>,
        packet: &PacketIn,
        payload: &Arc<[u8]>,
        sound: Sound,
    ) -> Vec<Output> {
        let wants = |wishes: &Wishes| layer.is_none_or(|layer| wishes.layers[layer as usize]);
        let nodes = self.nodes.iter().filter(|(_, wishes)| wants(wishes));
        nodes
            .map(|(&node, _)| {
                let message = Relayed::Packet(RelayedPacket {
                    track: self.info.track,
                    layer,
                    seq: packet.seq,
                    timestamp: packet.timestamp,
                    marker: packet.marker,
                    level: sound.level,
                    voice: sound.voice,
                    blocks: sound.blocks.map(|pt| *pt),
                    payload: payload.clone(),
                });
                Output::Relay(node, self.room.clone(), message)
            })
            .collect()
    }

    /// An anchor for the nodes that want it.
    pub(super) fn relay_anchor(&self, parcel: &enhance::Parcel<'_>) -> Vec<Output> {
        let enhance::Parcel { anchor, source, tapped } = *parcel;
        let nodes = self.nodes.iter().filter(|(_, wishes)| wishes.enhance.is_some());
        nodes
            .map(|(&node, _)| {
                let message = Relayed::Anchor(Box::new(RelayedAnchor {
                    track: self.info.track,
                    anchor: anchor.clone(),
                    layer: source.layer,
                    tapped,
                }));
                Output::Relay(node, self.room.clone(), message)
            })
            .collect()
    }
}

impl Afar {
    /// By which its node and this one know it.
    pub(super) fn key(&self) -> (NodeId, TrackId) {
        (self.node, self.track)
    }
}

impl Relays {
    /// Another node's track is gone.
    pub(super) fn forget_track(&mut self, key: (NodeId, TrackId)) {
        self.tracks.remove(&key);
    }
}

fn of_info(info: &TrackInfo) -> RelayedTrack {
    RelayedTrack {
        track: info.track,
        participant: info.participant,
        kind: info.kind,
        name: info.name.clone(),
        muted: info.muted,
    }
}
