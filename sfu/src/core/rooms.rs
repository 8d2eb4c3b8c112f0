//! Rooms: who comes in, who goes, and what the others hear of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use windlass_types::Owner;

use super::peer::Peer;
use super::speakers::Speakers;
use super::{Core, Output};
use crate::api::{Ended, JoinError, JoinOptions, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::relay::{NodeId, Relayed};

/// Where participants see each other.
pub(super) struct Room {
    pub(super) members: Vec<ParticipantId>,
    /// Those on other nodes.
    pub(super) afar: BTreeMap<ParticipantId, NodeId>,
    pub(super) loopback: bool,
    pub(super) speakers: Speakers,
}

/// A number that stands for a thing and says nothing else of it.
fn opaque<T: Hash + ?Sized>(thing: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

impl Core {
    /// Lets a participant in; returns who and what is there already.
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
            afar: BTreeMap::new(),
            loopback: options.loopback,
            speakers: Speakers::default(),
        });
        let members = entry.members.clone();
        let present: Vec<_> = members.iter().chain(entry.afar.keys()).copied().collect();
        entry.members.push(id);
        // Later ones are told when the speaker changes.
        let speaks = entry.speakers.speaker();
        self.outputs
            .extend(speaks.map(|participant| Output::Event(id, SfuEvent::Speaker { participant })));
        let decodes = options.decodes_anchors;
        self.counters.joins += 1;
        self.counters.joins_without_codec += u64::from(!decodes || !options.may.enhance);
        let must = now + self.config.connect;
        let mut peer = Peer::new(id, room, decodes, self.wakes.clone(), (now, must));
        let publisher = if options.owner == 0 { id.0 } else { options.owner };
        // Rooms of their own are one for each owner.
        let room_of = if options.loopback { opaque(&publisher) } else { opaque(room) };
        peer.owner = Owner { room: room_of, publisher };
        peer.may = options.may;
        self.peers.insert(id, peer);
        let tracks = self.tracks.values().filter(|t| present.contains(&t.info.participant));
        let tracks = tracks.map(|t| t.info.clone()).collect();
        for &member in &members {
            self.outputs
                .push_back(Output::Event(member, SfuEvent::ParticipantJoined { participant: id }));
        }
        if !options.loopback {
            self.tell_nodes(room, &Relayed::Joined { participant: id });
            if members.is_empty() {
                self.begin_room(room);
            }
        }
        self.due = now;
        Ok((present, tracks))
    }

    /// Takes the places of a participant, and of its room if that begins.
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
        if !self.shard.take_participant(limits.participants) {
            return Err(JoinError::ServerFull);
        }
        let most = limits.participants_per_room;
        let refusal = match self.rooms.get(room) {
            None if self.draining => Some(JoinError::Draining),
            None => {
                let taken = self.shard.take_room(options.loopback, limits.rooms);
                (!taken).then_some(JoinError::ServerFull)
            }
            Some(r) if r.loopback || options.loopback => Some(JoinError::RoomFull),
            Some(r) => (r.members.len() >= most).then_some(JoinError::RoomFull),
        };
        if let Some(error) = refusal {
            self.shard.give_participant();
            return Err(error);
        }
        Ok(())
    }

    /// Takes no new rooms from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Removes a participant that wants to go.
    pub fn leave(&mut self, now: Instant, id: ParticipantId) {
        self.end(now, id, Ended::Left);
    }

    /// Removes a participant, its tracks and its subscriptions. It hears why.
    pub(super) fn end(&mut self, now: Instant, id: ParticipantId, why: Ended) {
        let Some(mut peer) = self.peers.remove(&id) else { return };
        self.shard.give_participant();
        self.counters.leaves += 1;
        self.counters.anchors_dropped_left += peer.pacer.waiting();
        // What is still to be said (DTLS close) is said if it is ready; nothing waits for it.
        peer.close(now, &mut self.outputs);
        for ufrag in &peer.ufrags {
            self.ufrags.remove(ufrag);
            self.shard.forgot(ufrag);
        }
        for address in &peer.addresses {
            self.addresses.remove(address);
            self.shard.went(address);
        }
        // By what is there, not by what the peer knows of: a fault may have come in between.
        let own = self.tracks.iter().filter(|(_, track)| track.info.participant == id);
        for track in own.map(|(&track, _)| track).collect::<Vec<TrackId>>() {
            self.remove_track(track);
        }
        for track in self.tracks.values_mut() {
            track.subscribers.retain(|&s| s != id);
        }
        if let Some(room) = self.rooms.get_mut(&peer.room) {
            room.members.retain(|&m| m != id);
            room.speakers.forget(id);
            for &member in &room.members {
                self.outputs.push_back(Output::Event(
                    member,
                    SfuEvent::ParticipantLeft { participant: id },
                ));
            }
            let loopback = room.loopback;
            if room.members.is_empty() {
                let afar: Vec<_> = std::mem::take(&mut room.afar).into_keys().collect();
                self.rooms.remove(&peer.room);
                self.shard.give_room(loopback);
                self.end_room(&peer.room, &afar);
            }
            if !loopback {
                self.tell_nodes(&peer.room, &Relayed::Left { participant: id });
            }
        }
        self.outputs.push_back(Output::Event(id, SfuEvent::Disconnected(why)));
        self.next_allocation = now;
        self.due = now;
    }

    /// Removes those whose client has gone without a word. (A browser that lives sends every few seconds.)
    pub(super) fn remove_idle(&mut self, now: Instant) {
        let idle = self.config.idle;
        let silent = |heard| now.saturating_duration_since(heard) > idle;
        let is_idle = |p: &&Peer| p.connected && p.heard.is_some_and(silent);
        let gone: Vec<_> = self.peers.values().filter(is_idle).map(|p| p.id).collect();
        for id in gone {
            self.counters.peers_timed_out += 1;
            self.end(now, id, Ended::Lost);
        }
    }

    /// Removes those who have not offered in time, or whose connection has not come up.
    pub(super) fn remove_unconnected(&mut self, now: Instant) {
        let late: Vec<_> =
            self.peers.values().filter(|p| !p.connected && p.must <= now).map(|p| p.id).collect();
        for id in late {
            self.counters.peers_unconnected += 1;
            self.end(now, id, Ended::NeverConnected);
        }
    }

    /// Tells everybody who may subscribe to the participant's tracks.
    pub(super) fn tell_audience(&mut self, publisher: ParticipantId, event: &SfuEvent) {
        let of = |r: &Room| r.members.contains(&publisher) || r.afar.contains_key(&publisher);
        let Some((name, room)) = self.rooms.iter().find(|(_, room)| of(room)) else { return };
        for &member in room.members.iter().filter(|&&m| m != publisher || room.loopback) {
            self.outputs.push_back(Output::Event(member, event.clone()));
        }
        if room.members.contains(&publisher) && !room.loopback {
            let name = name.clone();
            self.tell_nodes_of_track(&name, event);
        }
    }
}
