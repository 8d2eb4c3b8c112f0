//! Who is in which room, by name and identity. The SFU knows numbers only.
//!
//! One identity has one seat in a room: whoever enters with it takes the seat over, and the former holder is ordered to
//! leave. Orders are a state, not a queue: the latest is all that counts.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_sfu::ParticipantId;

use crate::session::{End, Orders, Person};

/// Who is where. Holds one entry for each participant.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    people: HashMap<ParticipantId, Entry>,
    /// By room and identity.
    seats: HashMap<(String, String), ParticipantId>,
}

#[derive(Debug)]
struct Entry {
    person: Person,
    room: String,
    orders: watch::Sender<Orders>,
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
    /// Notes who comes into the room that the SFU calls `room`.
    pub(crate) fn enter(&self, id: ParticipantId, room: &str, person: Person) -> Seat {
        let (orders, ordered) = watch::channel(Orders::default());
        let mut inner = self.inner.lock();
        let seat = person.identity.clone().map(|identity| (room.to_owned(), identity));
        let former = seat.and_then(|seat| inner.seats.insert(seat, id));
        if let Some(former) = former.and_then(|former| inner.people.remove(&former)) {
            former.orders.send_modify(|orders| orders.end = Some(End::Replaced));
        }
        inner.people.insert(id, Entry { person, room: room.to_owned(), orders });
        Seat { orders: ordered, former }
    }

    /// Forgets who has left, or did not get in.
    pub(crate) fn leave(&self, id: ParticipantId) {
        let mut inner = self.inner.lock();
        let Some(Entry { person, room, .. }) = inner.people.remove(&id) else { return };
        if let Some(identity) = person.identity {
            inner.seats.remove(&(room, identity));
        }
    }

    /// Who that is; one who has just gone is "Someone".
    pub(crate) fn get(&self, id: ParticipantId) -> Person {
        let inner = self.inner.lock();
        inner.people.get(&id).map_or_else(Person::someone, |entry| entry.person.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ana() -> Person {
        Person { name: "Ana".into(), identity: Some("ana".into()) }
    }

    #[test]
    fn an_identity_that_comes_again_takes_the_seat_of_the_first() {
        let directory = Directory::default();
        let (one, two, three) = (ParticipantId(1), ParticipantId(2), ParticipantId(3));
        let first = directory.enter(one, "tea", ana());
        assert_eq!(first.former, None);
        assert_eq!(directory.enter(two, "coffee", ana()).former, None);
        assert_eq!(directory.enter(three, "tea", ana()).former, Some(one));
        assert_eq!(first.orders.borrow().end, Some(End::Replaced));
        // The first one's leaving takes nothing from the second.
        directory.leave(one);
        assert_eq!(directory.get(three), ana());
        assert_eq!(directory.enter(one, "tea", ana()).former, Some(three));
    }

    #[test]
    fn people_without_identity_replace_nobody() {
        let directory = Directory::default();
        let guest = Person { name: "Ana".into(), identity: None };
        let first = directory.enter(ParticipantId(1), "tea", guest.clone());
        assert_eq!(directory.enter(ParticipantId(2), "tea", guest).former, None);
        assert_eq!(first.orders.borrow().end, None);
        directory.leave(ParticipantId(1));
        assert_eq!(directory.get(ParticipantId(1)), Person::someone());
    }
}
