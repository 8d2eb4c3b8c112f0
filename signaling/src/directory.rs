//! Participants, tracks and settings of all rooms, with names and identities. The SFU knows numbers only.
//!
//! Sockets, WHIP and WHEP all report to the directory, so that the admin API and webhooks cover all participants alike.
//! An identity is in a room once: a second participant with it takes the place of the first, which is commanded to
//! leave. Commands are a state, not a queue: only the latest counts.

mod news;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_protocol::{Attributes, TrackKind};
use windlass_sfu::{JoinError, ParticipantId, TrackId};
use windlass_types::{AnchorPolicy, Rung, Size};

use crate::access::Grants;
use crate::admission::{Refused, Slot};
use crate::session::action::{Commands, End, EnterError, ParticipantInfo};
use crate::webhooks::{EventType, Webhooks};

/// Maximum number of rooms that are kept by their settings.
const MAX_KEPT_ROOMS: usize = 1000;

/// Tracks of a participant, by its last offer and the answer.
#[derive(Debug, Default)]
pub(crate) struct Agreed {
    pub(crate) published: Vec<Published>,
    pub(crate) subscribed: BTreeSet<TrackId>,
}

/// A track that a participant publishes.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) track: TrackId,
    pub(crate) kind: TrackKind,
    /// Name that the client gives the track.
    pub(crate) name: String,
}

/// Participants, tracks and settings of all rooms. The directory has an entry for each participant, and for each room
/// that has participants or is kept.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    inner: Mutex<Inner>,
    /// Queue of webhooks, which get the directory's events in order.
    webhooks: Webhooks,
}

#[derive(Debug, Default)]
struct Inner {
    participants: HashMap<ParticipantId, Entry>,
    /// Participants of shared rooms on other servers, with room, name and identity.
    remote: HashMap<ParticipantId, (String, ParticipantInfo)>,
    /// The rooms that have participants here, by the room's name in the SFU.
    rooms: BTreeMap<String, Room>,
    /// The participant of each identity, by room and identity.
    identities: HashMap<(String, String), ParticipantId>,
}

#[derive(Debug, Default)]
struct Room {
    members: BTreeSet<ParticipantId>,
    /// Slot of admission control of the client that began the room, while the room has participants.
    slot: Option<Slot>,
    /// Whether webhooks got the room's `room_started` event.
    started: bool,
    settings: RoomSettings,
}

/// An operator's settings of a room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoomSettings {
    /// Maximum number of participants, below the server's own bound.
    pub max_participants: Option<usize>,
    /// Policy by which anchors are chosen.
    pub policy: Option<AnchorPolicy>,
    /// Whether the room exists without participants.
    pub kept: bool,
}

#[derive(Debug)]
struct Entry {
    state: Present,
    commands: watch::Sender<Commands>,
    /// Slot of admission control that counts the participant.
    _slot: Option<Slot>,
    /// Whether the participant has arrived on the server to which it was sent. It also stays here until all others of
    /// its room have arrived.
    arrived: bool,
}

/// State of a participant.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    pub id: ParticipantId,
    pub info: ParticipantInfo,
    pub room: String,
    /// Grants of the participant.
    pub grants: Grants,
    /// Time at which the participant joined, in seconds since 1970.
    pub since: u64,
    /// Whether the SFU has let it in.
    pub inside: bool,
    /// Tracks that the participant publishes.
    pub tracks: BTreeMap<TrackId, OwnTrack>,
    /// Rungs that the participant receives.
    pub rungs: BTreeMap<TrackId, GivenRung>,
}

/// A published track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnTrack {
    pub kind: TrackKind,
    pub name: String,
    /// Whether the publisher or an operator muted the track.
    pub muted: bool,
    /// Whether an operator muted the track.
    pub held: bool,
}

/// The rung that a subscriber receives of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenRung {
    pub rung: Rung,
    /// Size of the layer.
    pub size: Size,
}

/// A room with its participants.
#[derive(Debug, Clone)]
pub(crate) struct RoomState {
    pub settings: RoomSettings,
    pub present: Vec<Present>,
}

/// Slots of admission control that an entering participant takes.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// The slot that counts the participant.
    pub own: Option<Slot>,
    /// The slot that counts the room, if the participant begins it.
    pub room: Option<Slot>,
}

/// A participant that was added to the directory.
#[derive(Debug)]
pub(crate) struct Registered {
    /// Commands of operators and other participants.
    pub commands: watch::Receiver<Commands>,
    /// The participant that this one replaces, and which was commanded to leave. It has the same identity, or it is the
    /// same client before its connection was lost.
    pub former: Option<ParticipantId>,
}

impl Directory {
    /// A directory without participants.
    pub(crate) fn new(webhooks: Webhooks) -> Self {
        Directory { inner: Mutex::default(), webhooks }
    }

    /// Adds a participant to a room, unless the room is full by its settings or `slots` (called with whether the room
    /// begins) are refused.
    pub(crate) fn enter(
        &self,
        id: ParticipantId,
        room: &str,
        mut info: ParticipantInfo,
        grants: Grants,
        now: u64,
        slots: impl FnOnce(bool) -> Result<Slots, Refused>,
    ) -> Result<Registered, EnterError> {
        let (commands, ordered) = watch::channel(Commands::default());
        let mut inner = self.inner.lock();
        let seat = info.identity.clone().map(|identity| (room.to_owned(), identity));
        let former = seat.as_ref().and_then(|seat| inner.identities.get(seat)).copied();
        let former = former.or_else(|| inner.member(room, info.was.as_deref()));
        // A participant is replaced once: a second one with the same ticket replaces the first one here.
        let rival = info.was.as_deref().and_then(|was| inner.successor(room, was));
        let here = rival.filter(|rival| inner.participants.contains_key(rival));
        if rival.is_some() && here.is_none() {
            info.was = None;
        }
        let former = former.or(here);
        if let Some(known) = inner.rooms.get(room) {
            let others = known.members.len() - usize::from(former.is_some());
            if known.settings.max_participants.is_some_and(|max| others >= max) {
                return Err(JoinError::RoomFull.into());
            }
        }
        let begins = inner.rooms.get(room).is_none_or(|known| known.members.is_empty());
        let slots = slots(begins)?;
        let known = inner.rooms.entry(room.to_owned()).or_default();
        known.members.insert(id);
        if begins {
            known.slot = slots.room;
        }
        if let Some(former) = former.and_then(|former| inner.remove(former, &self.webhooks)) {
            former.commands.send_modify(|commands| commands.end = Some(End::Replaced));
        }
        if let Some(seat) = seat {
            inner.identities.insert(seat, id);
        }
        let state = Present {
            id,
            info,
            room: room.to_owned(),
            grants,
            since: now,
            inside: false,
            tracks: BTreeMap::new(),
            rungs: BTreeMap::new(),
        };
        inner.participants.insert(id, Entry { state, commands, _slot: slots.own, arrived: false });
        Ok(Registered { commands: ordered, former })
    }

    /// Notes that the SFU has let a participant in.
    pub(crate) fn entered(&self, id: ParticipantId) {
        let mut inner = self.inner.lock();
        let Inner { participants, rooms, .. } = &mut *inner;
        // It may have been replaced meanwhile.
        let Some(entry) = participants.get_mut(&id) else { return };
        entry.state.inside = true;
        if let Some(room) = rooms.get_mut(&entry.state.room).filter(|room| !room.started) {
            room.started = true;
            news::room(&self.webhooks, EventType::RoomStarted, &entry.state.room);
        }
        news::participant(&self.webhooks, EventType::ParticipantJoined, &entry.state);
    }

    /// Removes a participant that has left, or was not let in.
    pub(crate) fn leave(&self, id: ParticipantId) {
        self.inner.lock().remove(id, &self.webhooks);
    }

    /// Name and identity of a participant; of one that has left: "Someone".
    pub(crate) fn get(&self, id: ParticipantId) -> ParticipantInfo {
        self.find(id).unwrap_or_else(ParticipantInfo::someone)
    }

    /// Name and identity of a participant; `None`: it has left.
    pub(crate) fn find(&self, id: ParticipantId) -> Option<ParticipantInfo> {
        let inner = self.inner.lock();
        let here = inner.participants.get(&id).map(|entry| &entry.state.info);
        here.or_else(|| inner.remote.get(&id).map(|(_, info)| info)).cloned()
    }

    /// Sets a participant's attributes, and its name if that changes.
    pub(crate) fn set_attributes(
        &self,
        id: ParticipantId,
        name: Option<String>,
        attributes: Attributes,
    ) {
        if let Some(Entry { state, .. }) = self.inner.lock().participants.get_mut(&id) {
            state.info.attributes = attributes;
            if let Some(name) = name {
                state.info.name = name;
            }
        }
    }

    /// Sets all tracks that a participant publishes and subscribes to.
    pub(crate) fn negotiated(&self, id: ParticipantId, agreed: Agreed) {
        let Agreed { published, subscribed } = agreed;
        let mut inner = self.inner.lock();
        let Some(Entry { state, .. }) = inner.participants.get_mut(&id) else { return };
        state.rungs.retain(|track, _| subscribed.contains(track));
        let mut former = std::mem::take(&mut state.tracks);
        let mut fresh = Vec::new();
        for Published { track, kind, name } in published {
            let own = former.remove(&track).unwrap_or_else(|| {
                fresh.push(track);
                OwnTrack { kind, name, muted: false, held: false }
            });
            state.tracks.insert(track, own);
        }
        for (track, own) in &former {
            news::track(&self.webhooks, EventType::TrackUnpublished, state, *track, own);
        }
        for track in fresh {
            let own = &state.tracks[&track];
            news::track(&self.webhooks, EventType::TrackPublished, state, track, own);
        }
    }

    /// Sets whether a published track is muted.
    pub(crate) fn muted(&self, id: ParticipantId, track: TrackId, muted: bool) {
        let mut inner = self.inner.lock();
        let entry = inner.participants.get_mut(&id);
        if let Some(own) = entry.and_then(|entry| entry.state.tracks.get_mut(&track)) {
            own.muted = muted;
        }
    }

    /// Sets the rung that a participant receives; `None`: the track is gone.
    pub(crate) fn set_rung(&self, id: ParticipantId, track: TrackId, rung: Option<GivenRung>) {
        let mut inner = self.inner.lock();
        let Some(Entry { state, .. }) = inner.participants.get_mut(&id) else { return };
        match rung {
            Some(rung) => state.rungs.insert(track, rung),
            None => state.rungs.remove(&track),
        };
    }

    /// All rooms by name.
    pub(crate) fn rooms(&self) -> Vec<(String, RoomState)> {
        let inner = self.inner.lock();
        inner.rooms.iter().map(|(name, room)| (name.clone(), inner.state_of(room))).collect()
    }

    /// A room.
    pub(crate) fn room(&self, name: &str) -> Option<RoomState> {
        let inner = self.inner.lock();
        inner.rooms.get(name).map(|room| inner.state_of(room))
    }

    /// Sets an operator's settings of a room. `false`: too many rooms are kept.
    pub(crate) fn configure(&self, name: &str, settings: RoomSettings) -> bool {
        let mut inner = self.inner.lock();
        let kept = inner.rooms.iter().filter(|(room, r)| r.settings.kept && *room != name).count();
        if settings.kept && kept >= MAX_KEPT_ROOMS {
            return false;
        }
        inner.rooms.entry(name.to_owned()).or_default().settings = settings;
        inner.forget_if_empty(name);
        true
    }

    /// Whether a room has the participant with that id on this server.
    pub(crate) fn has(&self, room: &str, id: &str) -> bool {
        let inner = self.inner.lock();
        inner.rooms.get(room).is_some_and(|room| room.members.iter().any(|m| m.to_string() == id))
    }

    /// Number of participants of a room on this server.
    pub(crate) fn count(&self, room: &str) -> usize {
        self.inner.lock().rooms.get(room).map_or(0, |room| room.members.len())
    }

    /// Name and identity of a participant on this server, and the time at which it joined, in seconds since 1970.
    pub(crate) fn local(&self, id: ParticipantId) -> Option<(ParticipantInfo, u64)> {
        let inner = self.inner.lock();
        inner.participants.get(&id).map(|entry| (entry.state.info.clone(), entry.state.since))
    }

    /// Room, name and identity of a participant on this server.
    pub(crate) fn room_of(&self, id: ParticipantId) -> Option<(String, ParticipantInfo)> {
        let inner = self.inner.lock();
        let Present { room, info, .. } = &inner.participants.get(&id)?.state;
        Some((room.clone(), info.clone()))
    }

    /// Notes that a participant is in a shared room on another server, and since when. An earlier participant here with
    /// the same identity is commanded to leave.
    pub(crate) fn remote_joined(
        &self,
        id: ParticipantId,
        room: &str,
        info: ParticipantInfo,
        since: u64,
    ) {
        let mut inner = self.inner.lock();
        let seat = info.identity.clone().map(|identity| (room.to_owned(), identity));
        let was = info.was.clone();
        inner.remote.insert(id, (room.to_owned(), info));
        let itself = inner.member(room, was.as_deref());
        let former = itself.or_else(|| inner.identities.get(&seat?).copied());
        // A participant that was sent there leaves by itself, when the others here do not need it any more.
        if let Some(entry) = former.and_then(|former| inner.participants.get(&former))
            && (itself.is_some() || (entry.state.since, entry.state.id) < (since, id))
            && !(entry.is_moving() && itself.is_some())
        {
            entry.commands.send_modify(|commands| commands.end = Some(End::Replaced));
        }
    }

    /// Takes another name or other attributes of a participant on another server.
    pub(crate) fn remote_changed(&self, id: ParticipantId, name: String, attributes: Attributes) {
        if let Some((_, info)) = self.inner.lock().remote.get_mut(&id) {
            (info.name, info.attributes) = (name, attributes);
        }
    }

    /// Whether a room has that participant on another server.
    pub(crate) fn is_remote(&self, room: &str, id: ParticipantId) -> bool {
        self.inner.lock().remote.get(&id).is_some_and(|(of, _)| of == room)
    }

    /// Sets a participant's rights.
    pub(crate) fn set_grants(&self, id: ParticipantId, grants: &Grants) {
        if let Some(entry) = self.inner.lock().participants.get_mut(&id) {
            entry.state.grants.clone_from(grants);
        }
    }

    /// Notes that a participant on another server has left.
    pub(crate) fn remote_left(&self, id: ParticipantId) {
        self.inner.lock().remote.remove(&id);
    }

    /// Rooms with participants on this server, and the number of these.
    pub(crate) fn occupied(&self) -> Vec<(String, usize)> {
        let inner = self.inner.lock();
        let occupied = inner.rooms.iter().filter(|(_, room)| !room.members.is_empty());
        occupied.map(|(name, room)| (name.clone(), room.members.len())).collect()
    }

    /// Commands all participants of a room to move to another server. Returns whether that is new to any of them.
    pub(crate) fn send_away(&self, room: &str, url: &str, must: bool) -> bool {
        let mut inner = self.inner.lock();
        let Inner { participants, rooms, .. } = &mut *inner;
        let end = Some(End::Moved { url: url.to_owned(), must });
        let mut any_new = false;
        for id in rooms.get(room).into_iter().flat_map(|room| &room.members) {
            let Some(entry) = participants.get_mut(id) else { continue };
            let fresh = entry.commands.send_if_modified(|commands| {
                let fresh = commands.end != end && commands.end != Some(End::AllMoved);
                if fresh {
                    commands.end.clone_from(&end);
                }
                fresh
            });
            entry.arrived &= !fresh;
            any_new |= fresh;
        }
        any_new
    }

    /// Notes that a participant has arrived on the server to which it was sent. Once all of its room have arrived, all
    /// may leave.
    pub(crate) fn arrived(&self, id: ParticipantId) {
        let mut inner = self.inner.lock();
        let Some(entry) = inner.participants.get_mut(&id).filter(|entry| entry.is_moving()) else {
            return;
        };
        entry.arrived = true;
        let room = entry.state.room.clone();
        inner.close_if_moved(&room);
    }

    /// Commands a participant to leave a room. Returns `false` if it is not there.
    pub(crate) fn remove(&self, room: &str, id: ParticipantId) -> bool {
        let inner = self.inner.lock();
        let Some(entry) = inner.participants.get(&id).filter(|entry| entry.state.room == room)
        else {
            return false;
        };
        entry.commands.send_modify(|commands| commands.end = Some(End::Removed));
        true
    }

    /// Commands that a track stays muted, or no longer. Returns `None` if there is no such track.
    pub(crate) fn hold(&self, room: &str, track: TrackId, held: bool) -> Option<OwnTrack> {
        let mut inner = self.inner.lock();
        let members = inner.rooms.get(room)?.members.clone();
        let owner = members.into_iter().find(|id| {
            inner.participants.get(id).is_some_and(|entry| entry.state.tracks.contains_key(&track))
        })?;
        let Entry { state, commands, .. } = inner.participants.get_mut(&owner)?;
        let tracks = &state.tracks;
        commands.send_modify(|commands| {
            commands.held.retain(|held| tracks.contains_key(held));
            if held {
                commands.held.insert(track)
            } else {
                commands.held.remove(&track)
            };
        });
        let own = state.tracks.get_mut(&track)?;
        own.held = held;
        // The publisher's own choice comes by `muted`.
        own.muted |= held;
        Some(own.clone())
    }
}

impl Entry {
    /// Whether the participant was commanded to move to another server.
    fn is_moving(&self) -> bool {
        matches!(self.commands.borrow().end, Some(End::Moved { .. } | End::AllMoved))
    }
}

impl Inner {
    /// Lets all participants of a room leave, once all have arrived on another server.
    fn close_if_moved(&self, room: &str) {
        let members = || {
            let ids = self.rooms.get(room).into_iter().flat_map(|room| &room.members);
            ids.filter_map(|id| self.participants.get(id))
        };
        if members().all(|entry| entry.arrived) {
            for entry in members() {
                entry.commands.send_modify(|commands| commands.end = Some(End::AllMoved));
            }
        }
    }

    /// The participant with that id, if it is in the room on this server.
    fn member(&self, room: &str, id: Option<&str>) -> Option<ParticipantId> {
        let id = id?.parse().ok()?;
        self.rooms.get(room)?.members.contains(&id).then_some(id)
    }

    /// The participant that has come in place of one with the id `was` on another server: here, or else on another
    /// server.
    fn successor(&self, room: &str, was: &str) -> Option<ParticipantId> {
        let is = |info: &ParticipantInfo| info.was.as_deref() == Some(was);
        let members = self.rooms.get(room).into_iter().flat_map(|room| &room.members);
        let here = members
            .copied()
            .find(|id| self.participants.get(id).is_some_and(|entry| is(&entry.state.info)));
        let there = || self.remote.iter().find(|(_, (of, info))| of == room && is(info));
        here.or_else(|| there().map(|(id, _)| *id))
    }

    fn state_of(&self, room: &Room) -> RoomState {
        let present = room.members.iter().filter_map(|id| self.participants.get(id));
        let present = present.filter(|entry| entry.state.inside).map(|entry| entry.state.clone());
        RoomState { settings: room.settings.clone(), present: present.collect() }
    }

    fn remove(&mut self, id: ParticipantId, webhooks: &Webhooks) -> Option<Entry> {
        let entry = self.participants.remove(&id)?;
        if entry.state.inside {
            for (track, own) in &entry.state.tracks {
                news::track(webhooks, EventType::TrackUnpublished, &entry.state, *track, own);
            }
            news::participant(webhooks, EventType::ParticipantLeft, &entry.state);
        }
        let Present { room, info, .. } = &entry.state;
        if let Some(identity) = &info.identity {
            self.identities.remove(&(room.clone(), identity.clone()));
        }
        if let Some(known) = self.rooms.get_mut(room) {
            known.members.remove(&id);
            if known.members.is_empty() {
                known.slot = None;
            }
            if known.members.is_empty() && std::mem::take(&mut known.started) {
                news::room(webhooks, EventType::RoomFinished, room);
            }
        }
        self.close_if_moved(&entry.state.room);
        self.forget_if_empty(&entry.state.room);
        Some(entry)
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.rooms.get(name).is_some_and(|r| r.members.is_empty() && !r.settings.kept) {
            self.rooms.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
