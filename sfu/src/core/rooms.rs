//! Rooms: participants join and leave, and the other members are notified.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use windlass_types::{ConnectionQuality, Owner};

use super::gcra::Gcra;
use super::peer::Peer;
use super::speakers::Speakers;
use super::{Core, Output};
use crate::api::{
    DisconnectReason, JoinError, JoinOptions, ParticipantId, SfuEvent, TrackId, TrackInfo,
};
use crate::relay::{NodeId, Relayed};

/// A room, with the members that see each other's tracks.
pub(super) struct Room {
    pub(super) members: Vec<ParticipantId>,
    /// Members on other nodes.
    pub(super) remote_members: BTreeMap<ParticipantId, NodeId>,
    /// The qualities of their connections, as far as they are known.
    pub(super) remote_qualities: BTreeMap<ParticipantId, ConnectionQuality>,
    pub(super) loopback: bool,
    pub(super) speakers: Speakers,
    /// What is used of the limit of data messages.
    pub(super) data_used: Gcra,
}

/// A hash, as an id that does not reveal the value.
fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Core {
    /// Adds a participant to a room; returns the members and tracks that are there.
    ///
    /// # Errors
    ///
    /// Fails if the id is in use, the room or the server is full, or the room is new and the SFU takes no new rooms.
    pub fn join(
        &mut self,
        now: Instant,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<(Vec<ParticipantId>, Vec<TrackInfo>), JoinError> {
        if let Err(error) = self.reserve(room, id, options) {
            self.counters.joins_refused += 1;
            match error {
                JoinError::RoomFull => self.counters.joins_refused_room_full += 1,
                JoinError::ServerFull => self.counters.joins_refused_server_full += 1,
                JoinError::Draining => self.counters.joins_refused_draining += 1,
                _ => {}
            }
            return Err(error);
        }
        let entry = self.rooms.entry(room.to_owned());
        let entry = entry.or_insert_with(|| Room {
            members: Vec::new(),
            remote_members: BTreeMap::new(),
            remote_qualities: BTreeMap::new(),
            loopback: options.loopback,
            speakers: Speakers::default(),
            data_used: Gcra::default(),
        });
        let members = entry.members.clone();
        let present: Vec<_> = members.iter().chain(entry.remote_members.keys()).copied().collect();
        entry.members.push(id);
        // Changes of the speaker are notified later.
        let speaks = entry.speakers.speaker();
        self.outputs
            .extend(speaks.map(|participant| Output::Event(id, SfuEvent::Speaker { participant })));
        for (participant, quality) in self.known_qualities(room) {
            let event = SfuEvent::Quality { participant, quality };
            self.outputs.push_back(Output::Event(id, event));
        }
        let decodes = options.decodes_anchors;
        self.counters.joins += 1;
        self.counters.joins_without_codec += u64::from(!decodes || !options.permissions.enhance);
        let deadline = now + self.config.connect;
        let mut peer = Peer::new(id, room, decodes, self.wakes.clone(), now, deadline);
        let publisher = if options.owner == 0 { id.0 } else { options.owner };
        // All loopback rooms of one owner count as one room.
        let owner_room = if options.loopback { hash(&publisher) } else { hash(room) };
        peer.owner = Owner { room: owner_room, publisher };
        peer.permissions = options.permissions;
        peer.takes_data = options.takes_data;
        self.peers.insert(id, peer);
        let tracks = self.tracks.values().filter(|t| present.contains(&t.info.participant));
        let tracks = tracks.map(|t| t.info.clone()).collect();
        for &member in &members {
            self.outputs
                .push_back(Output::Event(member, SfuEvent::ParticipantJoined { participant: id }));
        }
        if !options.loopback {
            self.send_to_audience(room, &Relayed::Joined { participant: id });
            if members.is_empty() {
                self.begin_room(room);
            }
        }
        self.schedule.wake(now);
        Ok((present, tracks))
    }

    /// Counts one more participant, and its room if that is new.
    fn reserve(
        &self,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<(), JoinError> {
        let limits = &self.config.limits;
        if self.peers.contains_key(&id) {
            return Err(JoinError::AlreadyJoined);
        }
        if !self.shard.acquire_participant(limits.participants) {
            return Err(JoinError::ServerFull);
        }
        let max = limits.participants_per_room;
        let refusal = match self.rooms.get(room) {
            None if self.draining => Some(JoinError::Draining),
            None => {
                let acquired = self.shard.acquire_room(options.loopback, limits.rooms);
                (!acquired).then_some(JoinError::ServerFull)
            }
            Some(r) if r.loopback || options.loopback => Some(JoinError::RoomFull),
            Some(r) => (r.members.len() >= max).then_some(JoinError::RoomFull),
        };
        if let Some(error) = refusal {
            self.shard.release_participant();
            return Err(error);
        }
        Ok(())
    }

    /// Refuses new rooms from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Removes a participant that leaves.
    pub fn leave(&mut self, now: Instant, id: ParticipantId) {
        self.end(now, id, DisconnectReason::Left);
    }

    /// Removes a participant with its tracks and subscriptions, and sends it the reason.
    pub(super) fn end(&mut self, now: Instant, id: ParticipantId, reason: DisconnectReason) {
        let Some(mut peer) = self.peers.remove(&id) else { return };
        self.shard.release_participant();
        self.counters.leaves += 1;
        self.counters.anchors_dropped_left += peer.anchors.pacer.waiting();
        // Sends the DTLS close if it is ready; nothing waits for it.
        peer.close(now, &mut self.outputs);
        for ufrag in peer.paths.ufrags() {
            self.routes.remove_ufrag(ufrag);
        }
        for address in peer.paths.addresses() {
            self.routes.remove_address(address);
        }
        // By the core's tracks, not the peer's list: after a fault the list may be incomplete.
        let own = self.tracks.iter().filter(|(_, track)| track.info.participant == id);
        for track in own.map(|(&track, _)| track).collect::<Vec<TrackId>>() {
            self.remove_track(track);
        }
        for track in self.tracks.values_mut() {
            track.subscribers.retain(|&s| s != id);
        }
        if let Some(room) = self.rooms.get_mut(&peer.room) {
            room.members.retain(|&m| m != id);
            room.speakers.remove(id);
            for &member in &room.members {
                self.outputs.push_back(Output::Event(
                    member,
                    SfuEvent::ParticipantLeft { participant: id },
                ));
            }
            let loopback = room.loopback;
            if room.members.is_empty() {
                let remote: Vec<_> = std::mem::take(&mut room.remote_members).into_keys().collect();
                self.rooms.remove(&peer.room);
                self.shard.release_room(loopback);
                self.end_room(&peer.room, &remote);
            }
            if !loopback {
                self.send_to_audience(&peer.room, &Relayed::Left { participant: id });
            }
        }
        self.outputs.push_back(Output::Event(id, SfuEvent::Disconnected(reason)));
        self.schedule.allocate_now(now);
    }

    /// Removes participants whose client has sent nothing for the configured time. (Browsers send every few seconds.)
    pub(super) fn remove_idle(&mut self, now: Instant) {
        let idle = self.config.idle;
        let silent = |last_heard| now.saturating_duration_since(last_heard) > idle;
        let is_idle = |p: &&Peer| p.connected && p.last_heard.is_some_and(silent);
        let gone: Vec<_> = self.peers.values().filter(is_idle).map(|p| p.id).collect();
        for id in gone {
            self.counters.peers_timed_out += 1;
            self.end(now, id, DisconnectReason::Lost);
        }
    }

    /// Removes participants without an offer or a connection by their deadline.
    pub(super) fn remove_unconnected(&mut self, now: Instant) {
        let late: Vec<_> = self
            .peers
            .values()
            .filter(|p| !p.connected && p.connect_deadline <= now)
            .map(|p| p.id)
            .collect();
        for id in late {
            self.counters.peers_unconnected += 1;
            self.end(now, id, DisconnectReason::NeverConnected);
        }
    }

    /// Sends an event of a publisher's track to all that may subscribe to it, on this node and others.
    pub(super) fn notify_audience(&mut self, publisher: ParticipantId, event: &SfuEvent) {
        let of =
            |r: &Room| r.members.contains(&publisher) || r.remote_members.contains_key(&publisher);
        let Some((name, room)) = self.rooms.iter().find(|(_, room)| of(room)) else { return };
        for &member in room.members.iter().filter(|&&m| m != publisher || room.loopback) {
            self.outputs.push_back(Output::Event(member, event.clone()));
        }
        if room.members.contains(&publisher) && !room.loopback {
            let name = name.clone();
            self.relay_track_event(&name, event);
        }
    }
}
