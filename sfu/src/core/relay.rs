//! Rooms on several SFUs (decision 014): local tracks are relayed to other nodes, and tracks of other nodes come from there.
//!
//! A track of another node is a [`Track`] like others. Only its publisher's side differs: key frames, layers and anchors are requested
//! from the node.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::{Mid, Pt};
use windlass_types::{EnhancerRequest, Layer};

use super::enhance::OutgoingAnchor;
use super::forward::AudioInfo;
use super::gcra::Gcra;
use super::rewriter::{PacketIn, Source};
use super::tap::Tap;
use super::{Core, Output, Track};
use crate::api::{Delivery, Kind, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::relay::{
    AnchorState, NodeId, Relayed, RelayedAnchor, RelayedData, RelayedPacket, RelayedTrack,
};

/// Maximum of other nodes that a room may be on.
const MAX_NODES: usize = 31;

/// The other nodes, and the rooms that are shared with them.
#[derive(Debug, Default)]
pub(super) struct Relays {
    /// Nodes with a link.
    linked: BTreeSet<NodeId>,
    /// The other nodes of each shared room.
    shared: HashMap<Arc<str>, Vec<NodeId>>,
    /// Nodes that want the local tracks of each room.
    audiences: HashMap<Arc<str>, BTreeSet<NodeId>>,
    /// Nodes that want them before the room is shared with them.
    pending_audiences: HashMap<Arc<str>, BTreeSet<NodeId>>,
    /// Local ids of remote tracks, by node and id there.
    tracks: HashMap<(NodeId, TrackId), TrackId>,
    /// What is used of the limit of data messages to other nodes.
    pub(super) data_used: Gcra,
}

/// The publisher's side of a track of another node.
#[derive(Debug)]
pub(super) struct RemotePublisher {
    node: NodeId,
    /// The track's id there.
    track: TrackId,
    /// Anchors that the node makes of the track.
    pub(super) anchor_state: AnchorState,
    /// The layers last requested.
    layers: [bool; 3],
    /// The layer whose enhancement was last requested.
    enhance: Option<Layer>,
}

/// What another node wants of a local track.
#[derive(Debug)]
pub(super) struct NodeDemand {
    layers: [bool; 3],
    enhance: Option<Layer>,
    /// The anchor state last sent.
    sent_state: Option<AnchorState>,
}

impl Default for NodeDemand {
    fn default() -> NodeDemand {
        NodeDemand { layers: [true; 3], enhance: None, sent_state: None }
    }
}

impl Core {
    /// Sets the other nodes that a room is on.
    pub fn share(&mut self, now: Instant, room: &str, nodes: &[NodeId]) {
        self.schedule.wake(now);
        let known = self.relays.shared.get(room).cloned().unwrap_or_default();
        let there = self.rooms.get(room).is_some_and(|room| !room.loopback);
        let room: Arc<str> = room.into();
        for &node in nodes.iter().filter(|node| there && !known.contains(node)) {
            self.send_to_node(node, &room, Relayed::Begin);
        }
        let gone: Vec<_> = known.iter().copied().filter(|node| !nodes.contains(node)).collect();
        for node in gone {
            // Only a node with members in the room has sent `Begin`.
            if there {
                self.send_to_node(node, &room, Relayed::End);
            }
            self.end_relay(node, &room);
            self.remove_remote_members(&room, node);
        }
        if nodes.is_empty() {
            self.relays.shared.remove(&room);
        } else {
            self.relays.shared.insert(room.clone(), nodes.to_vec());
        }
        let pending = self.relays.pending_audiences.remove(&room).unwrap_or_default();
        for node in pending.into_iter().filter(|node| nodes.contains(node)) {
            self.begin_relay(node, &room);
        }
    }

    /// Stops relaying a room's local tracks to a node.
    fn end_relay(&mut self, node: NodeId, room: &str) {
        for audiences in [&mut self.relays.audiences, &mut self.relays.pending_audiences] {
            if let Some(nodes) = audiences.get_mut(room) {
                nodes.remove(&node);
                if nodes.is_empty() {
                    audiences.remove(room);
                }
            }
        }
        for track in self.tracks.values_mut().filter(|track| &*track.room == room) {
            track.nodes.remove(&node);
        }
    }

    /// Sets whether there is a link to a node. Without one its participants are removed.
    pub fn set_link(&mut self, now: Instant, node: NodeId, up: bool) {
        self.schedule.wake(now);
        if up == self.relays.linked.contains(&node) {
            return;
        }
        if up {
            self.relays.linked.insert(node);
            let shared = self.relays.shared.iter().filter(|(_, nodes)| nodes.contains(&node));
            let shared: Vec<_> = shared.map(|(room, _)| room.clone()).collect();
            for room in shared {
                if self.rooms.get(&*room).is_some_and(|room| !room.loopback) {
                    self.send_to_node(node, &room, Relayed::Begin);
                }
            }
            return;
        }
        self.relays.linked.remove(&node);
        for track in self.tracks.values_mut() {
            track.nodes.remove(&node);
        }
        for audiences in [&mut self.relays.audiences, &mut self.relays.pending_audiences] {
            audiences.retain(|_, nodes| {
                nodes.remove(&node);
                !nodes.is_empty()
            });
        }
        let rooms: Vec<Arc<str>> = self.rooms.keys().map(|room| room.as_str().into()).collect();
        for room in rooms {
            self.remove_remote_members(&room, node);
        }
    }

    /// Takes a message of a node about a room.
    pub fn on_relayed(&mut self, now: Instant, node: NodeId, room: &str, message: Relayed) {
        match message {
            Relayed::Begin => self.begin_relay(node, room),
            Relayed::End => self.end_relay(node, room),
            Relayed::Joined { participant } => self.on_remote_joined(node, room, participant),
            Relayed::Changed { participant } => {
                if self.is_remote_member(node, room, participant) {
                    self.tell_changed(room, participant);
                }
            }
            Relayed::Quality { participant, quality } => {
                self.on_remote_quality(node, room, participant, quality);
            }
            Relayed::Data(data) => self.deliver_remote(node, room, data),
            Relayed::Left { participant } => self.on_remote_left(node, room, participant),
            Relayed::Track(track) => self.add_remote_track(node, room, track),
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
            Relayed::Packet(packet) => return self.forward_remote_packet(now, node, packet),
            Relayed::Anchor(anchor) => self.forward_remote_anchor(now, node, *anchor),
            Relayed::AnchorState { track, state } => {
                let track = self.relays.tracks.get(&(node, track));
                if let Some(track) = track.and_then(|track| self.tracks.get_mut(track))
                    && let Some(remote) = &mut track.remote
                {
                    remote.anchor_state = state;
                    track.refused = state.refused;
                    track.tap_history.enhanced = state.layer.map(|layer| (layer, state.scale));
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::KeyFrame { track, layer } => {
                let sent = |t: &&mut Track| t.layers.rate(layer, now).is_some();
                if let Some(track) = self.relayed_track(node, track).filter(sent) {
                    track.keyframes.request(None, layer);
                }
            }
            Relayed::Layers { track, wanted } => {
                if let Some(demand) =
                    self.relayed_track(node, track).and_then(|t| t.nodes.get_mut(&node))
                {
                    demand.layers = wanted;
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::Enhance { track, layer } => {
                if let Some(demand) =
                    self.relayed_track(node, track).and_then(|t| t.nodes.get_mut(&node))
                {
                    demand.enhance = layer;
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::WholeAnchor { track } => {
                if let Some(track) = self.relayed_track(node, track) {
                    let request = track.request_whole_anchor(now);
                    self.outputs.extend(request);
                }
            }
        }
        self.schedule.wake(now);
    }

    /// Ids of remote tracks, at their own nodes.
    #[cfg(test)]
    pub(super) fn relayed_tracks(&self) -> impl Iterator<Item = TrackId> {
        self.relays.tracks.keys().map(|(_, track)| *track)
    }

    /// A local track that is relayed to a node.
    fn relayed_track(&mut self, node: NodeId, track: TrackId) -> Option<&mut Track> {
        self.tracks.get_mut(&track).filter(|track| track.nodes.contains_key(&node))
    }

    fn send_to_node(&mut self, node: NodeId, room: &Arc<str>, message: Relayed) {
        if self.relays.linked.contains(&node) {
            self.outputs.push_back(Output::Relay(node, room.clone(), message));
        }
    }

    /// Sends a message to the nodes that want a room's local tracks.
    pub(super) fn send_to_audience(&mut self, room: &str, message: &Relayed) {
        let Some((room, nodes)) = self.relays.audiences.get_key_value(room) else { return };
        for &node in nodes {
            self.outputs.push_back(Output::Relay(node, room.clone(), message.clone()));
        }
    }

    /// Relays an event of a local track.
    pub(super) fn relay_track_event(&mut self, room: &str, event: &SfuEvent) {
        let message = match event {
            SfuEvent::TrackAdded(info) => {
                let nodes = self.relays.audiences.get(room).into_iter().flatten();
                if let Some(track) = self.tracks.get_mut(&info.track) {
                    track.nodes = nodes.map(|&node| (node, NodeDemand::default())).collect();
                }
                Relayed::Track(relayed_track(info))
            }
            SfuEvent::TrackRemoved { track } => Relayed::TrackRemoved { track: *track },
            SfuEvent::TrackMuted { track, muted } => {
                Relayed::TrackMuted { track: *track, muted: *muted }
            }
            _ => return,
        };
        self.send_to_audience(room, &message);
    }

    /// To be called when the first local participant has joined a room.
    pub(super) fn begin_room(&mut self, room: &str) {
        self.send_to_shared(room, &Relayed::Begin);
    }

    /// Sends a message to all other nodes of a room.
    fn send_to_shared(&mut self, room: &str, message: &Relayed) {
        let Some((room, nodes)) = self.relays.shared.get_key_value(room) else { return };
        for &node in nodes.iter().filter(|node| self.relays.linked.contains(node)) {
            self.outputs.push_back(Output::Relay(node, room.clone(), message.clone()));
        }
    }

    /// To be called when the last local participant has left a room; `remote` are its remote members.
    pub(super) fn end_room(&mut self, room: &str, remote: &[ParticipantId]) {
        let gone = self.tracks.values().map(|track| &track.info);
        let gone = gone.filter(|info| remote.contains(&info.participant)).map(|info| info.track);
        for track in gone.collect::<Vec<_>>() {
            self.remove_track(track);
        }
        self.send_to_shared(room, &Relayed::End);
    }

    fn begin_relay(&mut self, node: NodeId, room: &str) {
        if !self.relays.linked.contains(&node) || self.rooms.get(room).is_some_and(|r| r.loopback) {
            return;
        }
        let shared = self.relays.shared.get(room).is_some_and(|nodes| nodes.contains(&node));
        let Relays { audiences, pending_audiences, .. } = &mut self.relays;
        let audiences = if shared { audiences } else { pending_audiences };
        if audiences.len() >= self.config.limits.rooms && !audiences.contains_key(room) {
            self.counters.relay_refused += 1;
            return;
        }
        let name: Arc<str> = room.into();
        audiences.entry(name.clone()).or_default().insert(node);
        if !shared {
            return;
        }
        let members = self.rooms.get(room).map(|room| room.members.clone()).unwrap_or_default();
        for &participant in &members {
            self.send_to_node(node, &name, Relayed::Joined { participant });
            if let Some(quality) = self.quality_of(participant) {
                self.send_to_node(node, &name, Relayed::Quality { participant, quality });
            }
        }
        let mut tracks = Vec::new();
        for track in self.tracks.values_mut() {
            if members.contains(&track.info.participant) {
                track.nodes.insert(node, NodeDemand::default());
                tracks.push(relayed_track(&track.info));
            }
        }
        for track in tracks {
            self.send_to_node(node, &name, Relayed::Track(track));
        }
    }

    fn on_remote_joined(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        let known = self.peers.contains_key(&participant);
        let max = self.config.limits.participants;
        let Some(there) = self.rooms.get_mut(room).filter(|room| !room.loopback) else { return };
        if known || there.remote_members.len() >= max {
            self.counters.relay_refused += 1;
            return;
        }
        if there.remote_members.insert(participant, node).is_none() {
            let event = |&m: &_| Output::Event(m, SfuEvent::ParticipantJoined { participant });
            self.outputs.extend(there.members.iter().map(event));
        }
    }

    /// Whether a participant of a room is at that node.
    pub(super) fn is_remote_member(&self, node: NodeId, room: &str, id: ParticipantId) -> bool {
        self.rooms.get(room).is_some_and(|room| room.remote_members.get(&id) == Some(&node))
    }

    /// Gives a data message of another node to the participants here that get it.
    fn deliver_remote(&mut self, node: NodeId, room: &str, data: RelayedData) {
        let RelayedData { from, seq, to, message } = data;
        if self.is_remote_member(node, room, from) {
            self.deliver(room, to.as_deref(), &Delivery::new(from, seq, message));
        } else {
            self.counters.relay_unknown += u64::from(self.rooms.contains_key(room));
        }
    }

    fn on_remote_left(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        if !self.is_remote_member(node, room, participant) {
            return;
        }
        let tracks: Vec<_> = self.tracks.values().map(|track| &track.info).collect();
        let own = tracks.into_iter().filter(|info| info.participant == participant);
        for track in own.map(|info| info.track).collect::<Vec<_>>() {
            self.remove_track(track);
        }
        let Some(there) = self.rooms.get_mut(room) else { return };
        there.remote_members.remove(&participant);
        there.remote_qualities.remove(&participant);
        there.speakers.remove(participant);
        let event = |&m: &_| Output::Event(m, SfuEvent::ParticipantLeft { participant });
        self.outputs.extend(there.members.iter().map(event));
    }

    /// Removes a node's participants from a room.
    fn remove_remote_members(&mut self, room: &str, node: NodeId) {
        let Some(there) = self.rooms.get(room) else { return };
        let gone: Vec<_> =
            there.remote_members.iter().filter(|(_, of)| **of == node).map(|(&id, _)| id).collect();
        for participant in gone {
            self.on_remote_left(node, room, participant);
        }
    }

    fn add_remote_track(&mut self, node: NodeId, room: &str, relayed: RelayedTrack) {
        let RelayedTrack { track, participant, kind, name, muted } = relayed;
        let is_there = self.is_remote_member(node, room, participant);
        let known = self.relays.tracks.contains_key(&(node, track));
        let others =
            self.tracks.values().filter(|t| t.remote.is_some() && &*t.room == room).count();
        let max = self.config.limits.tracks_per_room.saturating_mul(MAX_NODES);
        if !is_there || known || others >= max {
            self.counters.relay_refused += u64::from(!known);
            return;
        }
        let anchor_state = AnchorState::default();
        let remote =
            RemotePublisher { node, track, anchor_state, layers: [true; 3], enhance: None };
        let id = self.insert_track(participant, Mid::from("remote"), kind, &name, room.into());
        self.relays.tracks.insert((node, track), id);
        if let Some(own) = self.tracks.get_mut(&id) {
            own.info.muted = muted;
            own.remote = Some(remote);
            let added = SfuEvent::TrackAdded(own.info.clone());
            self.notify_audience(participant, &added);
        }
    }

    fn forward_remote_packet(&mut self, now: Instant, node: NodeId, packet: RelayedPacket) {
        self.counters.relay_packets_in += 1;
        let known = self.relays.tracks.get(&(node, packet.track));
        let known = known.and_then(|&id| Some((id, self.tracks.get(&id)?)));
        let Some((id, kind)) = known.map(|(id, track)| (id, track.info.kind)) else {
            self.counters.relay_unknown += 1;
            return;
        };
        let RelayedPacket { layer, seq, timestamp, marker, level, voice, blocks, payload, .. } =
            packet;
        let packet = PacketIn {
            seq,
            timestamp,
            arrival: now,
            handover_delay: Duration::ZERO,
            marker,
            stale: false,
        };
        match (kind, layer) {
            (Kind::Video, Some(layer)) => self.forward_video(id, layer, packet, None, &payload),
            (Kind::Audio, None) => {
                let audio_info = AudioInfo { level, voice, blocks: blocks.map(Pt::from) };
                self.forward_audio(id, packet, &payload, audio_info);
            }
            _ => self.counters.relay_unknown += 1,
        }
    }

    fn forward_remote_anchor(&mut self, now: Instant, node: NodeId, relayed: RelayedAnchor) {
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
        track.anchor_costs.count(anchor.source, anchor.payload.len());
        let source = Source { track: track.info.track, layer };
        self.send_anchor(now, &OutgoingAnchor { anchor: &anchor, source, tapped });
    }
}

impl Track {
    /// Requests anchors of another layer, or none, from the publisher's node.
    pub(super) fn request_remote_enhancement(&mut self, wanted: Option<Layer>) -> Option<Output> {
        let remote = self.remote.as_mut().filter(|remote| remote.enhance != wanted)?;
        remote.enhance = wanted;
        let message = Relayed::Enhance { track: remote.track, layer: wanted };
        Some(Output::Relay(remote.node, self.room.clone(), message))
    }

    /// Requests or stops layers of the publisher's node.
    pub(super) fn request_remote_layers(&mut self, changes: &[(Layer, bool)]) -> Option<Output> {
        let remote = self.remote.as_mut()?;
        for &(layer, active) in changes {
            remote.layers[layer as usize] = active;
        }
        let message = Relayed::Layers { track: remote.track, wanted: remote.layers };
        Some(Output::Relay(remote.node, self.room.clone(), message))
    }

    /// Requests a key frame from the publisher's node.
    pub(super) fn request_remote_key_frame(&self, layer: Layer) -> Option<Output> {
        let remote = self.remote.as_ref()?;
        let message = Relayed::KeyFrame { track: remote.track, layer };
        Some(Output::Relay(remote.node, self.room.clone(), message))
    }

    /// Requests a whole anchor, at a limited rate: one serves all subscribers.
    pub(super) fn request_whole_anchor(&mut self, now: Instant) -> Option<Output> {
        if let Some(remote) = &self.remote {
            let message = Relayed::WholeAnchor { track: remote.track };
            return Some(Output::Relay(remote.node, self.room.clone(), message));
        }
        let tap = self.tap.as_mut()?;
        tap.admit_whole_request(now)
            .then(|| Output::Tap(EnhancerRequest::WholeAnchor.of(tap.stream())))
    }

    /// Requests a whole anchor for a subscriber that begins to receive anchors. Not limited, as these are few.
    pub(super) fn request_initial_anchor(&self) -> Option<Output> {
        if let Some(remote) = &self.remote {
            let message = Relayed::WholeAnchor { track: remote.track };
            return Some(Output::Relay(remote.node, self.room.clone(), message));
        }
        let stream = self.tap.as_ref()?.stream();
        Some(Output::Tap(EnhancerRequest::WholeAnchor.of(stream)))
    }

    /// The layer whose anchors are made now, here or at the publisher's node.
    pub(super) fn tapped(&self) -> Option<Layer> {
        match &self.remote {
            Some(remote) => remote.anchor_state.layer,
            None => self.tap.as_ref().map(Tap::layer),
        }
    }

    /// The layers whose anchors other nodes want, one for each node.
    pub(super) fn enhanced_for_nodes(&self) -> impl Iterator<Item = Layer> {
        self.nodes.values().filter_map(|demand| demand.enhance)
    }

    /// Whether another node wants a layer.
    pub(super) fn needed_by_nodes(&self, layer: Layer) -> bool {
        self.nodes.values().any(|demand| demand.layers[layer as usize])
    }

    /// Sends the anchor state to other nodes, if it has changed. `available`: there is an enhancer.
    pub(super) fn send_anchor_state(&mut self, available: bool, default_scale: u16) -> Vec<Output> {
        if self.nodes.is_empty() {
            return Vec::new();
        }
        let scale = self.scale(default_scale);
        let holds = self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.policy.holds());
        let layer = self.tapped();
        let state = AnchorState { available, layer, scale, holds, refused: self.refused };
        let (track, room) = (self.info.track, &self.room);
        let nodes = self.nodes.iter_mut().filter(|(_, demand)| demand.sent_state != Some(state));
        nodes
            .map(|(&node, demand)| {
                demand.sent_state = Some(state);
                Output::Relay(node, room.clone(), Relayed::AnchorState { track, state })
            })
            .collect()
    }

    /// A packet for the nodes that want its layer; `layer` is `None` for audio.
    pub(super) fn relay(
        &self,
        layer: Option<Layer>,
        packet: &PacketIn,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
    ) -> Vec<Output> {
        let wants = |demand: &NodeDemand| layer.is_none_or(|layer| demand.layers[layer as usize]);
        let nodes = self.nodes.iter().filter(|(_, demand)| wants(demand));
        nodes
            .map(|(&node, _)| {
                let message = Relayed::Packet(RelayedPacket {
                    track: self.info.track,
                    layer,
                    seq: packet.seq,
                    timestamp: packet.timestamp,
                    marker: packet.marker,
                    level: audio_info.level,
                    voice: audio_info.voice,
                    blocks: audio_info.blocks.map(|pt| *pt),
                    payload: payload.clone(),
                });
                Output::Relay(node, self.room.clone(), message)
            })
            .collect()
    }

    /// An anchor for the nodes that want anchors.
    pub(super) fn relay_anchor(&self, outgoing: &OutgoingAnchor<'_>) -> Vec<Output> {
        let OutgoingAnchor { anchor, source, tapped } = *outgoing;
        let nodes = self.nodes.iter().filter(|(_, demand)| demand.enhance.is_some());
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

impl RemotePublisher {
    /// Node and id of the track.
    pub(super) fn key(&self) -> (NodeId, TrackId) {
        (self.node, self.track)
    }
}

impl Relays {
    /// The nodes that want a room's local tracks.
    pub(super) fn audience(&self, room: &str) -> impl Iterator<Item = NodeId> {
        self.audiences.get(room).into_iter().flatten().copied()
    }

    /// Removes a track of another node.
    pub(super) fn remove_track(&mut self, key: (NodeId, TrackId)) {
        self.tracks.remove(&key);
    }
}

fn relayed_track(info: &TrackInfo) -> RelayedTrack {
    RelayedTrack {
        track: info.track,
        participant: info.participant,
        kind: info.kind,
        name: info.name.clone(),
        muted: info.muted,
    }
}
