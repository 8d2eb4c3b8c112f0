//! Rooms on several SFUs (decision 014): local tracks are relayed to other nodes, and tracks of other nodes come from
//! there.
//!
//! A track of another node is a [`Track`] like others. Only its publisher's side differs
//! ([`RemotePublisher`]): key frames, layers and anchors are requested from the node.

pub(super) mod nodes;
pub(super) mod track;

use std::sync::Arc;
use std::time::Instant;

use str0m::media::Pt;

use self::nodes::Begun;
use self::track::RemotePublisher;
use crate::api::{Delivery, ParticipantId, Publish, SfuEvent, TrackId, TrackKind};
use crate::core::Core;
use crate::core::subscriber::anchor_channel::OutgoingAnchor;
use crate::core::subscriber::audio::AudioInfo;
use crate::core::subscriber::rewriter::{PacketIn, Source};
use crate::core::track::Track;
use crate::relay::{
    AnchorState, NodeId, Relayed, RelayedAnchor, RelayedData, RelayedPacket, RelayedTrack,
};

/// Maximum number of other nodes that a room may be on.
const MAX_NODES: usize = 31;

impl Core {
    /// Sets the other nodes that a room is on.
    pub fn share(&mut self, now: Instant, room: &str, nodes: &[NodeId]) {
        self.schedule.wake(now);
        let change = self.relays.change(room, nodes);
        let there = self.rooms.shareable(room).is_some();
        let room: Arc<str> = room.into();
        for node in change.new.into_iter().filter(|_| there) {
            self.relays.send(node, &room, Relayed::Begin, &mut self.outputs);
        }
        for node in change.gone {
            // Only a node with members in the room has sent `Begin`.
            if there {
                self.relays.send(node, &room, Relayed::End, &mut self.outputs);
            }
            self.end_relay(node, &room);
            self.remove_remote_members(&room, node);
        }
        for node in self.relays.set_nodes(&room, nodes) {
            self.begin_relay(node, &room);
        }
    }

    /// Stops relaying a room's local tracks to a node.
    fn end_relay(&mut self, node: NodeId, room: &str) {
        self.relays.end(node, room);
        for track in self.tracks.iter_mut().filter(|track| &*track.room == room) {
            track.nodes.remove(node);
        }
    }

    /// Sets whether there is a link to a node. Without one its participants are removed.
    pub fn set_link(&mut self, now: Instant, node: NodeId, up: bool) {
        self.schedule.wake(now);
        if !self.relays.set_link(node, up) {
            return;
        }
        if up {
            for room in self.relays.shared_with(node) {
                if self.rooms.shareable(&room).is_some() {
                    self.relays.send(node, &room, Relayed::Begin, &mut self.outputs);
                }
            }
            return;
        }
        for track in self.tracks.iter_mut() {
            track.nodes.remove(node);
        }
        let rooms: Vec<String> = self.rooms.names().cloned().collect();
        for room in rooms {
            self.remove_remote_members(&room, node);
        }
    }

    /// Takes a message of a node about a room.
    pub fn on_relayed(&mut self, now: Instant, node: NodeId, room: &str, message: Relayed) {
        match message {
            Relayed::Begin => self.begin_relay(node, &room.into()),
            Relayed::End => self.end_relay(node, room),
            Relayed::Joined { participant } => self.on_remote_joined(node, room, participant),
            Relayed::Changed { participant } => {
                if self.is_remote_member(node, room, participant) {
                    self.notify_changed(room, participant);
                }
            }
            Relayed::Quality { participant, quality } => {
                self.on_remote_quality(node, room, participant, quality);
            }
            Relayed::Data(data) => self.deliver_remote(node, room, data),
            Relayed::Left { participant } => self.on_remote_left(node, room, participant),
            Relayed::Track(track) => self.add_remote_track(node, room, track),
            Relayed::TrackRemoved { track } => {
                if let Some(track) = self.relays.track(node, track) {
                    self.remove_track(track);
                }
            }
            Relayed::TrackMuted { track, muted } => {
                if let Some(track) = self.relays.track(node, track) {
                    self.mute(now, track, muted);
                }
            }
            Relayed::Packet(packet) => return self.forward_remote_packet(now, node, &packet),
            Relayed::Anchor(anchor) => self.forward_remote_anchor(now, node, *anchor),
            Relayed::AnchorState { track, state } => self.on_anchor_state(now, node, track, state),
            Relayed::KeyFrame { track, layer } => {
                let sent = |t: &&mut Track| t.layers.rate(layer, now).is_some();
                if let Some(track) = self.relayed_track(node, track).filter(sent) {
                    track.keyframes.request(None, layer);
                }
            }
            Relayed::Layers { track, wanted } => {
                let track = self.relayed_track(node, track);
                if track.is_some_and(|track| track.nodes.set_layers(node, wanted)) {
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::Enhance { track, layer } => {
                let track = self.relayed_track(node, track);
                if track.is_some_and(|track| track.nodes.set_enhanced(node, layer)) {
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::BackupWanted { track, codecs } => {
                let track = self.relayed_track(node, track);
                if track.is_some_and(|track| track.nodes.set_undecodable(node, codecs)) {
                    self.schedule.request_allocation(now);
                }
            }
            Relayed::KeyAnchor { track } => {
                if let Some(track) = self.relayed_track(node, track) {
                    let request = track.request_key_anchor(now);
                    self.outputs.extend(request);
                }
            }
        }
        self.schedule.wake(now);
    }

    /// Takes the state of the anchors that a node makes of its track.
    fn on_anchor_state(&mut self, now: Instant, node: NodeId, track: TrackId, state: AnchorState) {
        let track = self.relays.track(node, track);
        let Some(track) = track.and_then(|track| self.tracks.get_mut(track)) else { return };
        let Some(remote) = &mut track.remote else { return };
        remote.set_anchor_state(state);
        track.refused = state.refused;
        track.taps.set_enhanced(state.layer.map(|layer| (layer, state.scale)));
        self.schedule.request_allocation(now);
    }

    /// Ids of remote tracks, at their own nodes.
    #[cfg(test)]
    pub(crate) fn relayed_tracks(&self) -> impl Iterator<Item = TrackId> {
        self.relays.remote_ids()
    }

    /// A local track that is relayed to a node.
    fn relayed_track(&mut self, node: NodeId, track: TrackId) -> Option<&mut Track> {
        self.tracks.get_mut(track).filter(|track| track.nodes.contains(node))
    }

    /// Relays an event of a local track.
    pub(crate) fn relay_track_event(&mut self, room: &str, event: &SfuEvent) {
        let message = match event {
            SfuEvent::TrackAdded(info) => {
                let Some(track) = self.tracks.get_mut(info.track) else { return };
                track.nodes.set(self.relays.audience(room));
                Relayed::Track(relayed_track(track))
            }
            SfuEvent::TrackRemoved { track } => Relayed::TrackRemoved { track: *track },
            SfuEvent::TrackMuted { track, muted } => {
                Relayed::TrackMuted { track: *track, muted: *muted }
            }
            _ => return,
        };
        self.relays.send_to_audience(room, &message, &mut self.outputs);
    }

    /// Ends a room here. To be called when its last local participant has left; `remote` are its remote members.
    pub(crate) fn end_room(&mut self, room: &str, remote: &[ParticipantId]) {
        let gone = self.tracks.iter().map(|track| &track.info);
        let gone = gone.filter(|info| remote.contains(&info.participant)).map(|info| info.track);
        for track in gone.collect::<Vec<_>>() {
            self.remove_track(track);
        }
        self.relays.send_to_shared(room, &Relayed::End, &mut self.outputs);
    }

    fn begin_relay(&mut self, node: NodeId, room: &Arc<str>) {
        if self.rooms.get(room).is_some_and(|room| room.loopback) {
            return;
        }
        match self.relays.begin(node, room, self.config.limits.rooms) {
            Begun::Now => {}
            Begun::Later | Begun::NotLinked => return,
            Begun::Refused => return self.counters.relay_refused += 1,
        }
        let members = self.rooms.get(room).map_or(&[][..], |room| &room.members);
        for &participant in members {
            self.relays.send(node, room, Relayed::Joined { participant }, &mut self.outputs);
            if let Some(quality) = self.quality_of(participant) {
                let message = Relayed::Quality { participant, quality };
                self.relays.send(node, room, message, &mut self.outputs);
            }
        }
        for track in self.tracks.iter_mut() {
            if members.contains(&track.info.participant) && !track.rendition.is_one() {
                track.nodes.add(node);
                let message = Relayed::Track(relayed_track(track));
                self.relays.send(node, room, message, &mut self.outputs);
            }
        }
    }

    fn on_remote_joined(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        let known = self.peers.contains(participant);
        let max = self.config.limits.participants;
        let Some(there) = self.rooms.get_mut(room).filter(|room| !room.loopback) else { return };
        if known || there.remote_members.len() >= max {
            self.counters.relay_refused += 1;
            return;
        }
        if there.remote_members.insert(participant, node).is_none() {
            there.notify(&SfuEvent::ParticipantJoined { participant }, &mut self.outputs);
        }
    }

    /// Whether a participant of a room is at the node `node`.
    pub(crate) fn is_remote_member(&self, node: NodeId, room: &str, id: ParticipantId) -> bool {
        self.rooms.get(room).is_some_and(|room| room.has_remote(id, node))
    }

    /// Gives a data message of another node to the participants here that get it.
    fn deliver_remote(&mut self, node: NodeId, room: &str, data: RelayedData) {
        let RelayedData { from, seq, to, message } = data;
        if self.is_remote_member(node, room, from) {
            self.deliver(room, to.as_deref(), &Delivery::new(from, seq, message));
        } else {
            self.counters.relay_unknown += u64::from(self.rooms.get(room).is_some());
        }
    }

    fn on_remote_left(&mut self, node: NodeId, room: &str, participant: ParticipantId) {
        if !self.is_remote_member(node, room, participant) {
            return;
        }
        for track in self.tracks.of_publisher(participant) {
            self.remove_track(track);
        }
        let Some(there) = self.rooms.get_mut(room) else { return };
        there.remote_members.remove(&participant);
        there.remote_qualities.remove(&participant);
        there.speakers.remove(participant);
        there.notify(&SfuEvent::ParticipantLeft { participant }, &mut self.outputs);
    }

    /// Removes a node's participants from a room.
    fn remove_remote_members(&mut self, room: &str, node: NodeId) {
        let gone = self.rooms.get(room).map(|there| there.members_of(node));
        for participant in gone.unwrap_or_default() {
            self.on_remote_left(node, room, participant);
        }
    }

    fn add_remote_track(&mut self, node: NodeId, room: &str, relayed: RelayedTrack) {
        let RelayedTrack { track, participant, kind, name, muted, encrypted, backup_of } = relayed;
        let is_there = self.is_remote_member(node, room, participant);
        let known = self.relays.track(node, track).is_some();
        let others = self.tracks.iter().filter(|t| t.remote.is_some() && &*t.room == room);
        let others = others.filter(|track| !track.rendition.is_one()).count();
        let max = self.config.limits.tracks_per_room.saturating_mul(MAX_NODES);
        if !is_there || known || others >= max {
            self.counters.relay_refused += u64::from(!known);
            return;
        }
        let room: Arc<str> = room.into();
        let mid = "remote".to_owned();
        let publish = Publish { mid, kind, name, max: None, encrypted, backup_of: None };
        let id = match backup_of {
            None => self.tracks.add(participant, &publish, room.clone()),
            Some(of) => {
                let backup = self.remote_backup(node, participant, of, &publish);
                let Some(id) = backup else { return self.counters.relay_refused += 1 };
                id
            }
        };
        self.relays.add_track(node, track, id);
        if let Some(own) = self.tracks.get_mut(id) {
            own.info.muted = muted;
            own.remote = Some(RemotePublisher::new(node, track, room));
            if backup_of.is_none() {
                let added = SfuEvent::TrackAdded(own.info.clone());
                self.notify_audience(participant, &added);
            }
        }
    }

    /// Adds another node's backup of a track of the same participant.
    fn remote_backup(
        &mut self,
        node: NodeId,
        participant: ParticipantId,
        of: TrackId,
        publish: &Publish,
    ) -> Option<TrackId> {
        let of = self.relays.track(node, of)?;
        let same = self.tracks.get(of)?.info.participant == participant;
        same.then(|| self.tracks.add_backup(of, publish))?
    }

    fn forward_remote_packet(&mut self, now: Instant, node: NodeId, packet: &RelayedPacket) {
        self.counters.relay_packets_in += 1;
        let known = self.relays.track(node, packet.track);
        let known = known.and_then(|id| Some((id, self.tracks.get(id)?.info.kind)));
        let Some((id, kind)) = known else {
            self.counters.relay_unknown += 1;
            return;
        };
        let RelayedPacket { layer, level, voice, blocks, payload, .. } = packet;
        let packet = PacketIn::relayed(packet, now);
        match (kind, *layer) {
            (TrackKind::Video, Some(layer)) => self.forward_video(id, layer, packet, None, payload),
            (TrackKind::Audio, None) => {
                let blocks = blocks.map(Pt::from);
                let audio_info = AudioInfo { level: *level, voice: *voice, blocks };
                self.forward_audio(id, packet, None, payload, audio_info);
            }
            _ => self.counters.relay_unknown += 1,
        }
    }

    fn forward_remote_anchor(&mut self, now: Instant, node: NodeId, relayed: RelayedAnchor) {
        self.counters.anchors_in += 1;
        let known = self.relays.track(node, relayed.track);
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

fn relayed_track(track: &Track) -> RelayedTrack {
    let info = &track.info;
    RelayedTrack {
        track: info.track,
        participant: info.participant,
        kind: info.kind,
        name: info.name.clone(),
        muted: info.muted,
        encrypted: info.encrypted,
        backup_of: track.backup.of,
    }
}
