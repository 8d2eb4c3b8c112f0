//! Participants join and leave; the others in their room are notified of them and of their tracks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use windlass_types::{Owner, Rung, TapInput};

use crate::api::{
    DisconnectReason, JoinError, JoinOptions, ParticipantId, Publish, SfuEvent, TrackId, TrackInfo,
};
use crate::core::peer::Peer;
use crate::core::record::track::TrackRecording;
use crate::core::subscriber::slot::Slot;
use crate::core::subscriber::view::View;
use crate::core::track::Track;
use crate::core::{Core, Output};
use crate::relay::Relayed;

/// A hash of `value`, for use as an id that does not reveal the value.
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
        let admitted = if self.peers.contains(id) {
            Err(JoinError::AlreadyJoined)
        } else {
            self.rooms.admit(room, options, &self.config.limits)
        };
        if let Err(error) = admitted {
            self.counters.joins_refused += 1;
            match error {
                JoinError::RoomFull => self.counters.joins_refused_room_full += 1,
                JoinError::ServerFull => self.counters.joins_refused_server_full += 1,
                JoinError::Draining => self.counters.joins_refused_draining += 1,
                _ => {}
            }
            return Err(error);
        }
        let entered = self.rooms.enter(room, id, options.loopback);
        self.outputs.extend(
            entered.speaker.map(|participant| Output::Event(id, SfuEvent::Speaker { participant })),
        );
        for (participant, quality) in self.known_qualities(room) {
            let event = SfuEvent::Quality { participant, quality };
            self.outputs.push_back(Output::Event(id, event));
        }
        let decodes = options.decodes_anchors;
        self.counters.joins += 1;
        self.counters.joins_without_codec += u64::from(!decodes || !options.permissions.enhance);
        let deadline = now + self.config.connect;
        let publisher = if options.owner == 0 { id.0 } else { options.owner };
        // All loopback rooms of one owner count as one room.
        let owner_room = if options.loopback { hash(&publisher) } else { hash(room) };
        self.peers.add(|wakes| {
            let mut peer = Peer::new(id, room, decodes, wakes, now, deadline);
            peer.owner = Owner { room: owner_room, publisher };
            peer.permissions = options.permissions;
            peer.link.media_only = options.media_only;
            peer
        });
        let infos = self.tracks.announced().map(|track| &track.info);
        let there = infos.filter(|info| entered.present.contains(&info.participant));
        let tracks = there.cloned().collect();
        for &member in &entered.members {
            self.outputs
                .push_back(Output::Event(member, SfuEvent::ParticipantJoined { participant: id }));
        }
        if !options.loopback {
            let joined = Relayed::Joined { participant: id };
            self.relays.send_to_audience(room, &joined, &mut self.outputs);
            if entered.members.is_empty() {
                self.relays.send_to_shared(room, &Relayed::Begin, &mut self.outputs);
            }
        }
        self.schedule.wake(now);
        Ok((entered.present, tracks))
    }

    /// Refuses new rooms from now on.
    pub fn drain(&mut self) {
        self.rooms.drain();
    }

    /// Removes a participant that leaves.
    pub fn leave(&mut self, now: Instant, id: ParticipantId) {
        self.end(now, id, DisconnectReason::Left);
    }

    /// Removes a participant with its tracks and subscriptions, and sends it the reason.
    pub(crate) fn end(&mut self, now: Instant, id: ParticipantId, reason: DisconnectReason) {
        let Some(mut peer) = self.peers.remove(id) else { return };
        self.rooms.release();
        self.counters.leaves += 1;
        self.counters.anchors_dropped_left += peer.anchors.pacer.waiting();
        // Sends the DTLS close if it is ready; nothing waits for it.
        peer.close(now, &mut self.outputs);
        for ufrag in peer.link.paths.ufrags() {
            self.routes.remove_ufrag(ufrag);
        }
        for address in peer.link.paths.addresses() {
            self.routes.remove_address(address);
        }
        // By the core's tracks, not the peer's list: after a fault the list may be incomplete.
        for track in self.tracks.of_publisher(id) {
            self.remove_track(track);
        }
        for track in self.tracks.iter_mut() {
            track.subscribers.retain(|&s| s != id);
        }
        self.leave_renditions(id);
        if let Some(left) = self.rooms.leave(&peer.room, id, &mut self.outputs) {
            if let Some(remote) = left.ended {
                self.end_room(&peer.room, &remote);
            }
            if !left.loopback {
                let message = Relayed::Left { participant: id };
                self.relays.send_to_audience(&peer.room, &message, &mut self.outputs);
            }
        }
        self.outputs.push_back(Output::Event(id, SfuEvent::Disconnected(reason)));
        self.schedule.allocate_now(now);
    }

    /// Removes participants whose client has sent nothing for the configured time. (Browsers send every few seconds.)
    pub(crate) fn remove_idle(&mut self, now: Instant) {
        let idle = self.config.idle;
        let silent = |last_heard| now.saturating_duration_since(last_heard) > idle;
        let is_idle = |p: &&Peer| p.link.connected && p.link.last_heard.is_some_and(silent);
        let gone: Vec<_> = self.peers.iter().filter(is_idle).map(|p| p.id).collect();
        for id in gone {
            self.counters.peers_timed_out += 1;
            self.end(now, id, DisconnectReason::Lost);
        }
    }

    /// Removes participants without an offer or a connection by their deadline.
    pub(crate) fn remove_unconnected(&mut self, now: Instant) {
        let late: Vec<_> = self
            .peers
            .iter()
            .filter(|p| !p.link.connected && p.link.connect_deadline <= now)
            .map(|p| (p.id, p.link.refused.as_ref().map(ToString::to_string)))
            .collect();
        for (id, refused) in late {
            self.counters.peers_unconnected += 1;
            if let Some(error) = refused {
                tracing::warn!(participant = %id, error, "no connection came up, and packets of the client were refused: if its handshake was, its certificate may be of a kind that the server does not take (docs/interop.md)");
            }
            self.end(now, id, DisconnectReason::NeverConnected);
        }
    }

    /// Sends an event of a publisher's track to all that may subscribe to it, on this node and others.
    pub(crate) fn notify_audience(&mut self, publisher: ParticipantId, event: &SfuEvent) {
        let Some((_, room)) = self.rooms.of(publisher) else { return };
        let audience = room.audience(publisher);
        self.outputs.extend(audience.map(|member| Output::Event(member, event.clone())));
        self.notify_nodes(publisher, event);
    }

    /// Sends an event of a publisher's track to other nodes, if the publisher is on this one.
    fn notify_nodes(&mut self, publisher: ParticipantId, event: &SfuEvent) {
        let Some((name, room)) = self.rooms.of(publisher) else { return };
        if room.members.contains(&publisher) && !room.loopback {
            let name = name.to_owned();
            self.relay_track_event(&name, event);
        }
    }

    /// Adds a track, and notifies the room: the other members, and in a loopback room its publisher.
    pub(crate) fn add_track(&mut self, participant: ParticipantId, publish: &Publish) -> TrackId {
        let room = self.peers.get(participant).map_or("", |peer| peer.room.as_str());
        let track = self.tracks.add(participant, publish, room.into());
        self.record_track(track);
        if let Some(info) = self.tracks.get(track).map(|track| track.info.clone()) {
            self.notify_audience(participant, &SfuEvent::TrackAdded(info));
        }
        track
    }

    /// Adds a backup of a track, and notifies other nodes of the room.
    pub(crate) fn add_backup(&mut self, of: TrackId, publish: &Publish) -> Option<TrackId> {
        let id = self.tracks.add_backup(of, publish)?;
        let info = self.tracks.get(id)?.info.clone();
        self.notify_nodes(info.participant, &SfuEvent::TrackAdded(info.clone()));
        Some(id)
    }

    /// Removes a track with its backup and rendition, and notifies the room.
    pub(crate) fn remove_track(&mut self, track: TrackId) {
        let of = self.tracks.get(track);
        let parts = of.map(|track| [track.backup.id, track.rendition.id]).unwrap_or_default();
        for part in parts.into_iter().flatten() {
            self.remove_track(part);
        }
        let Some(t) = self.tracks.remove(track) else { return };
        if let Some(remote) = &t.remote {
            self.relays.remove_track(remote.node, remote.track);
        }
        if let Some(stream) = t.enhanced_stream() {
            self.outputs.push_back(Output::Tap(TapInput::Stop { stream }));
        }
        self.outputs.extend(t.recordings.recorder.iter().map(TrackRecording::end));
        if t.rendition.is_one() {
            self.on_rendition_removed(&t);
        }
        for subscriber in t.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            peer.slots_of(track).for_each(|slot| slot.set_track(None));
            peer.slots.iter_mut().filter(|s| s.source == Some(track)).for_each(Slot::end_backup);
        }
        let (publisher, removed) = (t.info.participant, SfuEvent::TrackRemoved { track });
        if t.rendition.is_one() {
            return;
        }
        if t.backup.is_one() {
            self.notify_nodes(publisher, &removed);
        } else {
            self.notify_audience(publisher, &removed);
        }
    }

    /// Sets the maximum rung that a subscriber wants of a track.
    pub fn set_max_rung(&mut self, now: Instant, id: ParticipantId, track: TrackId, max: Rung) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.slots_of(track).for_each(|slot| slot.subscription.max = max);
        self.schedule.allocate_now(now);
    }

    /// Sets how a subscriber shows a track, which gives the track's weight and sufficient layer.
    pub fn set_view(&mut self, now: Instant, id: ParticipantId, track: TrackId, view: View) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.slots_of(track).for_each(|slot| slot.subscription.view = Some(view));
        self.schedule.allocate_now(now);
    }

    /// Mutes or unmutes a participant's own track.
    pub fn set_muted(&mut self, now: Instant, id: ParticipantId, track: TrackId, muted: bool) {
        if self.tracks.get(track).is_some_and(|t| t.info.participant == id && t.remote.is_none()) {
            self.mute(now, track, muted);
        }
    }

    /// Mutes or unmutes a track with its backup and rendition, and notifies the room.
    pub(crate) fn mute(&mut self, now: Instant, track: TrackId, muted: bool) {
        let of = self.tracks.get(track);
        let (backup, rendition) = of.map(|t| (t.backup.id, t.rendition.id)).unwrap_or_default();
        for part in [backup, rendition].into_iter().flatten() {
            if let Some(part) = self.tracks.get_mut(part) {
                part.info.muted = muted;
            }
        }
        let other = |t: &&mut Track| t.info.muted != muted && t.is_announced();
        let Some(t) = self.tracks.get_mut(track).filter(other) else { return };
        let id = t.info.participant;
        t.info.muted = muted;
        t.taps.await_key();
        t.recordings.iter_mut().for_each(TrackRecording::await_key);
        self.interrupt_subscribers(Some(track));
        self.interrupt_subscribers(rendition);
        self.notify_audience(id, &SfuEvent::TrackMuted { track, muted });
        self.schedule.allocate_now(now);
    }

    /// Ends the streams of a track's subscribers: the next packet begins others.
    fn interrupt_subscribers(&mut self, track: Option<TrackId>) {
        let Some(track) = track.and_then(|track| self.tracks.get(track)) else { return };
        for &subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            peer.slots_of(track.info.track).for_each(Slot::interrupt);
        }
    }
}
