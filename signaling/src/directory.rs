//! Who is in which room, by name and identity, and what is there. The SFU knows numbers only.
//!
//! Every way in (socket, WHIP, WHEP) tells the directory what comes of it, so that the admin API and webhooks see all
//! participants alike. One identity has one seat in a room: whoever enters with it takes the seat over, and the former
//! holder is ordered to leave. Orders are a state, not a queue: the latest is all that counts.

mod news;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_protocol::TrackKind;
use windlass_sfu::{JoinError, ParticipantId, TrackId};
use windlass_types::{AnchorPolicy, Rung};

use crate::access::Grants;
use crate::door::{self, Refused};
use crate::session::{End, EnterError, Orders, Person};
use crate::webhooks::{Webhooks, What};

/// Most rooms that have settings of their own.
const CONFIGURED_ROOMS: usize = 1000;

/// Who is where. Holds one entry for each participant, and one for each room with somebody in it or with settings.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    inner: Mutex<Inner>,
    /// Told of what happens, in the order in which it does.
    webhooks: Webhooks,
}

#[derive(Debug, Default)]
struct Inner {
    people: HashMap<ParticipantId, Entry>,
    /// Those of rooms of this server who are on others, with the room.
    afar: HashMap<ParticipantId, (String, Person)>,
    /// By the SFU's name.
    rooms: BTreeMap<String, Room>,
    /// By room and identity.
    seats: HashMap<(String, String), ParticipantId>,
}

#[derive(Debug, Default)]
struct Room {
    members: BTreeSet<ParticipantId>,
    /// Of whoever began it, until nobody is in it.
    begun: Option<door::Seat>,
    /// Whether its beginning was told.
    started: bool,
    settings: RoomSettings,
}

/// What an operator has said of one room; by default nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoomSettings {
    /// Participants at a time, below the server's own bound.
    pub max_participants: Option<usize>,
    /// How anchors are chosen.
    pub policy: Option<AnchorPolicy>,
    /// Whether the room is there without anybody in it.
    pub kept: bool,
}

#[derive(Debug)]
struct Entry {
    seen: Present,
    orders: watch::Sender<Orders>,
    /// What it is counted for at the door.
    _seat: Option<door::Seat>,
    /// It is on the server that it was sent to, and here for the others only.
    arrived: bool,
}

/// A participant as an operator sees it.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    pub id: ParticipantId,
    pub person: Person,
    pub room: String,
    /// What its token, or an open room, lets it do.
    pub grants: Grants,
    /// Seconds since 1970.
    pub since: u64,
    /// Whether it is in the room; until then it is entering.
    pub inside: bool,
    /// What it publishes.
    pub tracks: BTreeMap<TrackId, OwnTrack>,
    /// What it is given.
    pub rungs: BTreeMap<TrackId, Given>,
}

/// A published track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnTrack {
    pub kind: TrackKind,
    pub name: String,
    /// By its owner or an operator.
    pub muted: bool,
    /// By an operator.
    pub held: bool,
}

/// The rung that somebody is given of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub rung: Rung,
    /// Of the layer, in pixels.
    pub size: (u16, u16),
}

/// A room as an operator sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub settings: RoomSettings,
    pub present: Vec<Present>,
}

/// What somebody who enters takes of what there is for all.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    /// As a participant.
    pub own: Option<door::Seat>,
    /// As the room's first.
    pub room: Option<door::Seat>,
}

/// What came of entering a room.
#[derive(Debug)]
pub(crate) struct Seat {
    /// What the participant is ordered to do from now on.
    pub orders: watch::Receiver<Orders>,
    /// Whose seat it was until now: it has been told and must leave.
    pub former: Option<ParticipantId>,
}

impl Directory {
    /// An empty one.
    pub(crate) fn new(webhooks: Webhooks) -> Self {
        Directory { inner: Mutex::default(), webhooks }
    }

    /// Notes who comes into the room that the SFU calls `room`, unless that has as many as its settings allow, or there are no
    /// `seats` for it, asked for with whether the room begins.
    pub(crate) fn enter(
        &self,
        id: ParticipantId,
        room: &str,
        person: Person,
        grants: Grants,
        now: u64,
        seats: impl FnOnce(bool) -> Result<Seats, Refused>,
    ) -> Result<Seat, EnterError> {
        let (orders, ordered) = watch::channel(Orders::default());
        let mut inner = self.inner.lock();
        let seat = person.identity.clone().map(|identity| (room.to_owned(), identity));
        let former = seat.as_ref().and_then(|seat| inner.seats.get(seat)).copied();
        if let Some(known) = inner.rooms.get(room) {
            let others = known.members.len() - usize::from(former.is_some());
            if known.settings.max_participants.is_some_and(|most| others >= most) {
                return Err(JoinError::RoomFull.into());
            }
        }
        let begins = inner.rooms.get(room).is_none_or(|known| known.members.is_empty());
        let seats = seats(begins)?;
        let known = inner.rooms.entry(room.to_owned()).or_default();
        known.members.insert(id);
        if begins {
            known.begun = seats.room;
        }
        if let Some(former) = former.and_then(|former| inner.remove(former, &self.webhooks)) {
            former.orders.send_modify(|orders| orders.end = Some(End::Replaced));
        }
        if let Some(seat) = seat {
            inner.seats.insert(seat, id);
        }
        let seen = Present {
            id,
            person,
            room: room.to_owned(),
            grants,
            since: now,
            inside: false,
            tracks: BTreeMap::new(),
            rungs: BTreeMap::new(),
        };
        inner.people.insert(id, Entry { seen, orders, _seat: seats.own, arrived: false });
        Ok(Seat { orders: ordered, former })
    }

    /// Whoever was entering is inside.
    pub(crate) fn entered(&self, id: ParticipantId) {
        let mut inner = self.inner.lock();
        let Inner { people, rooms, .. } = &mut *inner;
        // Its seat may have been taken meanwhile.
        let Some(entry) = people.get_mut(&id) else { return };
        entry.seen.inside = true;
        if let Some(room) = rooms.get_mut(&entry.seen.room).filter(|room| !room.started) {
            room.started = true;
            news::room(&self.webhooks, What::RoomStarted, &entry.seen.room);
        }
        news::participant(&self.webhooks, What::ParticipantJoined, &entry.seen);
    }

    /// Forgets who has left, or did not get in.
    pub(crate) fn leave(&self, id: ParticipantId) {
        self.inner.lock().remove(id, &self.webhooks);
    }

    /// Who that is; one who has just gone is "Someone".
    pub(crate) fn get(&self, id: ParticipantId) -> Person {
        let inner = self.inner.lock();
        let here = inner.people.get(&id).map(|entry| &entry.seen.person);
        here.or_else(|| inner.afar.get(&id).map(|(_, person)| person))
            .cloned()
            .unwrap_or_else(Person::someone)
    }

    /// Notes the complete list of what somebody publishes, and of the tracks that it subscribes to, from now on.
    pub(crate) fn negotiated(
        &self,
        id: ParticipantId,
        published: Vec<(TrackId, TrackKind, String)>,
        subscribed: &BTreeSet<TrackId>,
    ) {
        let mut inner = self.inner.lock();
        let Some(Entry { seen, .. }) = inner.people.get_mut(&id) else { return };
        seen.rungs.retain(|track, _| subscribed.contains(track));
        let mut former = std::mem::take(&mut seen.tracks);
        let mut fresh = Vec::new();
        for (track, kind, name) in published {
            let own = former.remove(&track).unwrap_or_else(|| {
                fresh.push(track);
                OwnTrack { kind, name, muted: false, held: false }
            });
            seen.tracks.insert(track, own);
        }
        for (track, own) in &former {
            news::track(&self.webhooks, What::TrackUnpublished, seen, *track, own);
        }
        for track in fresh {
            let own = &seen.tracks[&track];
            news::track(&self.webhooks, What::TrackPublished, seen, track, own);
        }
    }

    /// A track of somebody's own is muted from now on, or no longer.
    pub(crate) fn muted(&self, id: ParticipantId, track: TrackId, muted: bool) {
        let mut inner = self.inner.lock();
        let entry = inner.people.get_mut(&id);
        if let Some(own) = entry.and_then(|entry| entry.seen.tracks.get_mut(&track)) {
            own.muted = muted;
        }
    }

    /// Somebody is given another rung; `None`: the track is gone.
    pub(crate) fn given(&self, id: ParticipantId, track: TrackId, given: Option<Given>) {
        let mut inner = self.inner.lock();
        let Some(Entry { seen, .. }) = inner.people.get_mut(&id) else { return };
        match given {
            Some(given) => seen.rungs.insert(track, given),
            None => seen.rungs.remove(&track),
        };
    }

    /// Every room, by the SFU's name.
    pub(crate) fn rooms(&self) -> Vec<(String, Seen)> {
        let inner = self.inner.lock();
        inner.rooms.iter().map(|(name, room)| (name.clone(), inner.see(room))).collect()
    }

    /// One room.
    pub(crate) fn room(&self, name: &str) -> Option<Seen> {
        let inner = self.inner.lock();
        inner.rooms.get(name).map(|room| inner.see(room))
    }

    /// Sets what holds for a room from now on. False where too many rooms have settings.
    pub(crate) fn configure(&self, name: &str, settings: RoomSettings) -> bool {
        let mut inner = self.inner.lock();
        let kept = inner.rooms.iter().filter(|(room, r)| r.settings.kept && *room != name).count();
        if settings.kept && kept >= CONFIGURED_ROOMS {
            return false;
        }
        inner.rooms.entry(name.to_owned()).or_default().settings = settings;
        inner.forget_if_empty(name);
        true
    }

    /// Whether somebody of that id is in a room on this server.
    pub(crate) fn has(&self, room: &str, id: &str) -> bool {
        let inner = self.inner.lock();
        inner.rooms.get(room).is_some_and(|room| room.members.iter().any(|m| m.to_string() == id))
    }

    /// How many participants a room has on this server.
    pub(crate) fn people(&self, room: &str) -> usize {
        self.inner.lock().rooms.get(room).map_or(0, |room| room.members.len())
    }

    /// Who that is on this server, and since when; nobody who is on another.
    pub(crate) fn local(&self, id: ParticipantId) -> Option<(Person, u64)> {
        let inner = self.inner.lock();
        inner.people.get(&id).map(|entry| (entry.seen.person.clone(), entry.seen.since))
    }

    /// The same of whoever is on this server, with the SFU's name of the room.
    pub(crate) fn in_room(&self, id: ParticipantId) -> Option<(ParticipantId, String, Person)> {
        let inner = self.inner.lock();
        let Present { room, person, .. } = &inner.people.get(&id)?.seen;
        Some((id, room.clone(), person.clone()))
    }

    /// Somebody is in a room on another server, since then. Whoever had the same identity here before is ordered to leave.
    pub(crate) fn came_afar(&self, id: ParticipantId, room: &str, person: Person, since: u64) {
        let mut inner = self.inner.lock();
        let seat = person.identity.clone().map(|identity| (room.to_owned(), identity));
        let was = person.was.clone();
        inner.afar.insert(id, (room.to_owned(), person));
        let former = seat.and_then(|seat| inner.seats.get(&seat).copied());
        // Whoever was sent there leaves by itself, once nobody here needs it.
        if let Some(entry) = former.and_then(|former| inner.people.get(&former))
            && (entry.seen.since, entry.seen.id) < (since, id)
            && !(entry.goes() && was == Some(entry.seen.id.to_string()))
        {
            entry.orders.send_modify(|orders| orders.end = Some(End::Replaced));
        }
    }

    /// Whether somebody of a room is on another server.
    pub(crate) fn is_afar(&self, room: &str, id: ParticipantId) -> bool {
        self.inner.lock().afar.get(&id).is_some_and(|(of, _)| of == room)
    }

    /// What somebody may do has changed.
    pub(crate) fn set_grants(&self, id: ParticipantId, grants: &Grants) {
        if let Some(entry) = self.inner.lock().people.get_mut(&id) {
            entry.seen.grants.clone_from(grants);
        }
    }

    /// And is not any more.
    pub(crate) fn left_afar(&self, id: ParticipantId) {
        self.inner.lock().afar.remove(&id);
    }

    /// The rooms that have participants, and how many these are.
    pub(crate) fn occupied(&self) -> Vec<(String, usize)> {
        let inner = self.inner.lock();
        let occupied = inner.rooms.iter().filter(|(_, room)| !room.members.is_empty());
        occupied.map(|(name, room)| (name.clone(), room.members.len())).collect()
    }

    /// Orders everybody of a room to another server. Whether that is news to anybody.
    pub(crate) fn send_away(&self, room: &str, url: &str, must: bool) -> bool {
        let mut inner = self.inner.lock();
        let Inner { people, rooms, .. } = &mut *inner;
        let end = Some(End::Moved { url: url.to_owned(), must });
        let mut told = false;
        for id in rooms.get(room).into_iter().flat_map(|room| &room.members) {
            let Some(entry) = people.get_mut(id) else { continue };
            let fresh = entry.orders.send_if_modified(|orders| {
                let fresh = orders.end != end && orders.end != Some(End::AllMoved);
                if fresh {
                    orders.end.clone_from(&end);
                }
                fresh
            });
            entry.arrived &= !fresh;
            told |= fresh;
        }
        told
    }

    /// Somebody is on the server that it was sent to. Once all of its room are, nobody needs another here.
    pub(crate) fn arrived(&self, id: ParticipantId) {
        let mut inner = self.inner.lock();
        let Some(entry) = inner.people.get_mut(&id).filter(|entry| entry.goes()) else { return };
        entry.arrived = true;
        let room = entry.seen.room.clone();
        inner.close_if_moved(&room);
    }

    /// Orders somebody out of a room; the others of it stay. False where nobody of that id is there.
    pub(crate) fn remove(&self, room: &str, id: ParticipantId) -> bool {
        let inner = self.inner.lock();
        let Some(entry) = inner.people.get(&id).filter(|entry| entry.seen.room == room) else {
            return false;
        };
        entry.orders.send_modify(|orders| orders.end = Some(End::Removed));
        true
    }

    /// Orders that a track of a room stays muted, or not any more. `None` where there is none.
    pub(crate) fn hold(&self, room: &str, track: TrackId, held: bool) -> Option<OwnTrack> {
        let mut inner = self.inner.lock();
        let members = inner.rooms.get(room)?.members.clone();
        let owner = members.into_iter().find(|id| {
            inner.people.get(id).is_some_and(|entry| entry.seen.tracks.contains_key(&track))
        })?;
        let Entry { seen, orders, .. } = inner.people.get_mut(&owner)?;
        let tracks = &seen.tracks;
        orders.send_modify(|orders| {
            orders.held.retain(|held| tracks.contains_key(held));
            if held {
                orders.held.insert(track)
            } else {
                orders.held.remove(&track)
            };
        });
        let own = seen.tracks.get_mut(&track)?;
        own.held = held;
        // What its owner wants after that is told by `muted`.
        own.muted |= held;
        Some(own.clone())
    }
}

impl Entry {
    /// Whether it was sent to another server.
    fn goes(&self) -> bool {
        matches!(self.orders.borrow().end, Some(End::Moved { .. } | End::AllMoved))
    }
}

impl Inner {
    /// Lets go of all of a room, once they are on another server.
    fn close_if_moved(&self, room: &str) {
        let members = || {
            let ids = self.rooms.get(room).into_iter().flat_map(|room| &room.members);
            ids.filter_map(|id| self.people.get(id))
        };
        if members().all(|entry| entry.arrived) {
            for entry in members() {
                entry.orders.send_modify(|orders| orders.end = Some(End::AllMoved));
            }
        }
    }

    fn see(&self, room: &Room) -> Seen {
        let present = room.members.iter().filter_map(|id| self.people.get(id));
        let present = present.filter(|entry| entry.seen.inside).map(|entry| entry.seen.clone());
        Seen { settings: room.settings.clone(), present: present.collect() }
    }

    fn remove(&mut self, id: ParticipantId, webhooks: &Webhooks) -> Option<Entry> {
        let entry = self.people.remove(&id)?;
        if entry.seen.inside {
            for (track, own) in &entry.seen.tracks {
                news::track(webhooks, What::TrackUnpublished, &entry.seen, *track, own);
            }
            news::participant(webhooks, What::ParticipantLeft, &entry.seen);
        }
        let Present { room, person, .. } = &entry.seen;
        if let Some(identity) = &person.identity {
            self.seats.remove(&(room.clone(), identity.clone()));
        }
        if let Some(known) = self.rooms.get_mut(room) {
            known.members.remove(&id);
            if known.members.is_empty() {
                known.begun = None;
            }
            if known.members.is_empty() && std::mem::take(&mut known.started) {
                news::room(webhooks, What::RoomFinished, room);
            }
        }
        self.close_if_moved(&entry.seen.room);
        self.forget_if_empty(&entry.seen.room);
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
