//! Which of the SFU's threads has which room, and who is where.
//!
//! A room is one thread's from its first participant to its last. A new one goes where the fewest streams would be carried if
//! everybody in each room received everybody else; rooms are not moved later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::vitals::Vitals;
use crate::api::ParticipantId;

/// Shared by all who talk to the threads, and by these.
#[derive(Debug)]
pub(super) struct Places {
    state: Mutex<State>,
    vitals: Arc<Vitals>,
}

#[derive(Debug)]
struct State {
    rooms: HashMap<String, Room>,
    participants: HashMap<ParticipantId, Place>,
    /// By thread.
    loads: Vec<Load>,
}

#[derive(Debug)]
struct Room {
    thread: usize,
    participants: u64,
}

#[derive(Debug)]
struct Place {
    thread: usize,
    room: String,
}

/// What a thread has; less is compared field by field.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// Pairs of a sender and a receiver.
    streams: u64,
    participants: u64,
}

impl Load {
    /// A room of this many begins, or ends.
    fn of(participants: u64) -> Load {
        Load { streams: participants * participants.saturating_sub(1), participants }
    }

    fn change(&mut self, from: u64, to: u64) {
        let (from, to) = (Load::of(from), Load::of(to));
        self.streams = self.streams + to.streams - from.streams;
        self.participants = self.participants + to.participants - from.participants;
    }
}

impl Places {
    /// Nobody anywhere.
    pub(super) fn new(threads: usize, vitals: Arc<Vitals>) -> Places {
        let state = Mutex::new(State {
            rooms: HashMap::new(),
            participants: HashMap::new(),
            loads: vec![Load::default(); threads],
        });
        Places { state, vitals }
    }

    /// The thread at which a participant joins a room, to be taken by [`Joining::begun`]. Whoever is somewhere already joins
    /// there, to be refused.
    pub(super) fn join(&self, room: &str, id: ParticipantId) -> Joining<'_> {
        let (thread, is_new) = self.place(room, id);
        Joining { places: self, id, thread, is_new }
    }

    /// The thread, and whether the place is a new one.
    fn place(&self, room: &str, id: ParticipantId) -> (usize, bool) {
        let State { rooms, participants, loads } = &mut *self.lock();
        if let Some(place) = participants.get(&id) {
            return (place.thread, false);
        }
        if rooms.get(room).is_some_and(|room| self.vitals.has_ended(room.thread)) {
            rooms.remove(room);
        }
        let entry = rooms.entry(room.to_owned()).or_insert_with(|| {
            // None goes to a thread that has ended or says nothing, while there is another.
            let load = |&(thread, load): &(usize, &Load)| (self.vitals.of(thread).is_some(), *load);
            let least = loads.iter().enumerate().min_by_key(load);
            Room { thread: least.map_or(0, |(thread, _)| thread), participants: 0 }
        });
        let thread = entry.thread;
        loads[thread].change(entry.participants, entry.participants + 1);
        entry.participants += 1;
        participants.insert(id, Place { thread, room: room.to_owned() });
        (thread, true)
    }

    /// The thread that has a room, if one has.
    pub(super) fn of_room(&self, room: &str) -> Option<usize> {
        self.lock().rooms.get(room).map(|room| room.thread)
    }

    /// The participant has gone, or was not let in.
    pub(super) fn leave(&self, id: ParticipantId) {
        let State { rooms, participants, loads } = &mut *self.lock();
        let Some(place) = participants.remove(&id) else { return };
        // Its room may be at another thread by now, where its own has ended.
        let room = rooms.get_mut(&place.room).filter(|room| room.thread == place.thread);
        let Some(room) = room else { return };
        loads[place.thread].change(room.participants, room.participants - 1);
        room.participants -= 1;
        if room.participants == 0 {
            rooms.remove(&place.room);
        }
    }

    /// Where a participant is; the first thread, which says that it is not there, where it is nowhere.
    pub(super) fn of(&self, id: ParticipantId) -> usize {
        self.lock().participants.get(&id).map_or(0, |place| place.thread)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for a participant whose thread has not been told yet. Dropped, it is given back: whoever asked may not have waited
/// until there was room in the thread's queue.
pub(super) struct Joining<'a> {
    places: &'a Places,
    id: ParticipantId,
    thread: usize,
    is_new: bool,
}

impl Joining<'_> {
    /// Where to join.
    pub(super) fn thread(&self) -> usize {
        self.thread
    }

    /// The thread knows, and says when the place is free again.
    pub(super) fn begun(mut self) {
        self.is_new = false;
    }
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if self.is_new {
            self.places.leave(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vitals::Life;
    use super::*;

    fn places(threads: usize) -> Places {
        Places::new(threads, Arc::new(Vitals::new(threads)))
    }

    const fn p(n: u64) -> ParticipantId {
        ParticipantId(n)
    }

    #[test]
    fn a_room_is_one_threads_until_nobody_is_there() {
        let places = places(2);
        assert_eq!([1, 2].map(|n| places.place("a", p(n)).0), [0, 0]);
        assert_eq!(places.place("b", p(3)).0, 1);
        places.leave(p(1));
        assert_eq!(places.place("a", p(4)).0, 0);
        for id in [p(2), p(4)] {
            places.leave(id);
        }
        assert_eq!(places.place("b", p(5)).0, 1, "where it is, whatever others have to do");
        assert_eq!((places.of(p(5)), places.of(p(9))), (1, 0));
    }

    #[test]
    fn a_new_room_never_goes_to_a_thread_that_has_ended_nor_does_one_that_was_there() {
        let vitals = Arc::new(Vitals::new(2));
        let places = Places::new(2, vitals.clone());
        assert_eq!(places.place("a", p(1)).0, 0);
        assert_eq!(places.place("b", p(2)).0, 1);
        drop(Life::of(vitals, 0));
        for n in 3..9 {
            assert_eq!(places.place(&n.to_string(), p(n)).0, 1);
        }
        assert_eq!(places.place("a", p(9)).0, 1, "its room begins anew");
        assert_eq!(places.of(p(1)), 0, "who was there is still where it was");
        places.leave(p(1));
        assert_eq!(places.of_room("a"), Some(1), "and its going is no business of the new room's");
    }

    #[test]
    fn a_new_room_goes_where_the_fewest_streams_are() {
        let places = places(2);
        // One call of three has more of them than two calls of two.
        (0..3).for_each(|n| assert_eq!(places.place("three", p(n)).0, 0));
        (3..7).for_each(|n| assert_eq!(places.place(&format!("two {}", n / 2), p(n)).0, 1));
        assert_eq!(places.place("next", p(9)).0, 1);
    }

    #[test]
    fn a_place_that_was_not_taken_is_given_back_unless_it_is_somebodys() {
        let places = places(2);
        drop(places.join("a", p(1)));
        assert!(places.lock().rooms.is_empty());
        places.join("a", p(1)).begun();
        drop(places.join("b", p(1)));
        assert_eq!(places.lock().participants.len(), 1);
    }

    #[test]
    fn whoever_is_there_already_joins_where_it_is_and_counts_once() {
        let places = places(2);
        assert_eq!(places.place("a", p(1)).0, 0);
        assert_eq!(places.place("b", p(1)).0, 0);
        places.leave(p(1));
        places.leave(p(1));
        let state = places.lock();
        assert!(state.rooms.is_empty() && state.participants.is_empty());
        assert_eq!(state.loads, [Load::default(); 2]);
    }

    proptest! {
        #[test]
        fn nothing_is_left_when_all_have_gone(
            steps in prop::collection::vec((0..20u64, 0..5usize, any::<bool>()), 0..200),
        ) {
            let places = places(3);
            for (id, room, joins) in steps {
                if joins {
                    places.place(&room.to_string(), p(id));
                } else {
                    places.leave(p(id));
                }
            }
            for room in places.lock().rooms.values() {
                prop_assert!(room.participants > 0);
            }
            (0..20).for_each(|id| places.leave(p(id)));
            let state = places.lock();
            prop_assert!(state.rooms.is_empty() && state.participants.is_empty());
            prop_assert_eq!(&state.loads, &vec![Load::default(); 3]);
        }
    }
}
