//! Places rooms on media threads.
//!
//! A room stays on one thread from its first participant to its last. A new room goes to the thread with the fewest
//! streams, if each participant received all others of its room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::watchdog::Watchdog;
use crate::api::ParticipantId;

/// The rooms and participants of all threads, shared by callers and threads.
#[derive(Debug)]
pub(super) struct RoomThreads {
    state: Mutex<State>,
    watchdog: Arc<Watchdog>,
}

#[derive(Debug)]
struct State {
    rooms: HashMap<String, Room>,
    participants: HashMap<ParticipantId, Place>,
    /// Load of each media thread, by its number.
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

/// Load of a thread. Two loads are compared by `streams` first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// Pairs of a sender and a receiver.
    streams: u64,
    participants: u64,
}

impl Load {
    /// Load of one room with this number of participants.
    fn of(participants: u64) -> Load {
        Load { streams: participants * participants.saturating_sub(1), participants }
    }

    fn change(&mut self, from: u64, to: u64) {
        let (from, to) = (Load::of(from), Load::of(to));
        self.streams = self.streams + to.streams - from.streams;
        self.participants = self.participants + to.participants - from.participants;
    }
}

impl RoomThreads {
    /// Threads without rooms.
    pub(super) fn new(threads: usize, watchdog: Arc<Watchdog>) -> RoomThreads {
        let state = Mutex::new(State {
            rooms: HashMap::new(),
            participants: HashMap::new(),
            loads: vec![Load::default(); threads],
        });
        RoomThreads { state, watchdog }
    }

    /// Reserves a place for a participant that joins a room. One that is in a room already gets the same thread, which
    /// refuses it.
    pub(super) fn join(&self, room: &str, id: ParticipantId) -> Reservation<'_> {
        let (thread, is_new) = self.place(room, id);
        Reservation { room_threads: self, id, thread, is_new }
    }

    /// The thread of the participant, and whether the participant is new.
    fn place(&self, room: &str, id: ParticipantId) -> (usize, bool) {
        let State { rooms, participants, loads } = &mut *self.lock();
        if let Some(place) = participants.get(&id) {
            return (place.thread, false);
        }
        if rooms.get(room).is_some_and(|room| self.watchdog.has_ended(room.thread)) {
            rooms.remove(room);
        }
        let entry = rooms.entry(room.to_owned()).or_insert_with(|| {
            // A thread with a fault gets a room only if all have one.
            let load = |&(thread, load): &(usize, &Load)| {
                (self.watchdog.fault_of(thread).is_some(), *load)
            };
            let min = loads.iter().enumerate().min_by_key(load);
            Room { thread: min.map_or(0, |(thread, _)| thread), participants: 0 }
        });
        let thread = entry.thread;
        loads[thread].change(entry.participants, entry.participants + 1);
        entry.participants += 1;
        participants.insert(id, Place { thread, room: room.to_owned() });
        (thread, true)
    }

    /// The thread of a room.
    pub(super) fn thread_of_room(&self, room: &str) -> Option<usize> {
        self.lock().rooms.get(room).map(|room| room.thread)
    }

    /// Removes a participant that has left or was refused.
    pub(super) fn leave(&self, id: ParticipantId) {
        let State { rooms, participants, loads } = &mut *self.lock();
        let Some(place) = participants.remove(&id) else { return };
        // After the end of its thread the room may be on another thread.
        let room = rooms.get_mut(&place.room).filter(|room| room.thread == place.thread);
        let Some(room) = room else { return };
        loads[place.thread].change(room.participants, room.participants - 1);
        room.participants -= 1;
        if room.participants == 0 {
            rooms.remove(&place.room);
        }
    }

    /// The thread of a participant; for an unknown one the first thread, which refuses its commands.
    pub(super) fn thread_of(&self, id: ParticipantId) -> usize {
        self.lock().participants.get(&id).map_or(0, |place| place.thread)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for a participant whose thread has not received the join yet. Dropping it releases the place: the caller may
/// give up waiting for room in the thread's queue.
pub(super) struct Reservation<'a> {
    room_threads: &'a RoomThreads,
    id: ParticipantId,
    thread: usize,
    is_new: bool,
}

impl Reservation<'_> {
    /// The thread to join on.
    pub(super) fn thread(&self) -> usize {
        self.thread
    }

    /// Keeps the place until the participant leaves. To be called when the thread has received the join.
    pub(super) fn confirm(mut self) {
        self.is_new = false;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_new {
            self.room_threads.leave(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::watchdog::ThreadGuard;
    use super::*;

    fn new_room_threads(threads: usize) -> RoomThreads {
        RoomThreads::new(threads, Arc::new(Watchdog::new(threads)))
    }

    const fn p(n: u64) -> ParticipantId {
        ParticipantId(n)
    }

    #[test]
    fn a_room_is_one_threads_until_nobody_is_there() {
        let room_threads = new_room_threads(2);
        assert_eq!([1, 2].map(|n| room_threads.place("a", p(n)).0), [0, 0]);
        assert_eq!(room_threads.place("b", p(3)).0, 1);
        room_threads.leave(p(1));
        assert_eq!(room_threads.place("a", p(4)).0, 0);
        for id in [p(2), p(4)] {
            room_threads.leave(id);
        }
        assert_eq!(room_threads.place("b", p(5)).0, 1, "where it is, whatever others have to do");
        assert_eq!((room_threads.thread_of(p(5)), room_threads.thread_of(p(9))), (1, 0));
    }

    #[test]
    fn a_new_room_never_goes_to_a_thread_that_has_ended_nor_does_one_that_was_there() {
        let watchdog = Arc::new(Watchdog::new(2));
        let room_threads = RoomThreads::new(2, watchdog.clone());
        assert_eq!(room_threads.place("a", p(1)).0, 0);
        assert_eq!(room_threads.place("b", p(2)).0, 1);
        drop(ThreadGuard::new(watchdog, 0));
        for n in 3..9 {
            assert_eq!(room_threads.place(&n.to_string(), p(n)).0, 1);
        }
        assert_eq!(room_threads.place("a", p(9)).0, 1, "its room begins anew");
        assert_eq!(room_threads.thread_of(p(1)), 0, "who was there is still where it was");
        room_threads.leave(p(1));
        assert_eq!(
            room_threads.thread_of_room("a"),
            Some(1),
            "and its going is no business of the new room's"
        );
    }

    #[test]
    fn a_new_room_goes_where_the_fewest_streams_are() {
        let room_threads = new_room_threads(2);
        // One call of three has more of them than two calls of two.
        (0..3).for_each(|n| assert_eq!(room_threads.place("three", p(n)).0, 0));
        (3..7).for_each(|n| assert_eq!(room_threads.place(&format!("two {}", n / 2), p(n)).0, 1));
        assert_eq!(room_threads.place("next", p(9)).0, 1);
    }

    #[test]
    fn a_place_that_was_not_taken_is_given_back_unless_it_is_somebodys() {
        let room_threads = new_room_threads(2);
        drop(room_threads.join("a", p(1)));
        assert!(room_threads.lock().rooms.is_empty());
        room_threads.join("a", p(1)).confirm();
        drop(room_threads.join("b", p(1)));
        assert_eq!(room_threads.lock().participants.len(), 1);
    }

    #[test]
    fn whoever_is_there_already_joins_where_it_is_and_counts_once() {
        let room_threads = new_room_threads(2);
        assert_eq!(room_threads.place("a", p(1)).0, 0);
        assert_eq!(room_threads.place("b", p(1)).0, 0);
        room_threads.leave(p(1));
        room_threads.leave(p(1));
        let state = room_threads.lock();
        assert!(state.rooms.is_empty() && state.participants.is_empty());
        assert_eq!(state.loads, [Load::default(); 2]);
    }

    proptest! {
        #[test]
        fn nothing_is_left_when_all_have_gone(
            steps in prop::collection::vec((0..20u64, 0..5usize, any::<bool>()), 0..200),
        ) {
            let room_threads = new_room_threads(3);
            for (id, room, joins) in steps {
                if joins {
                    room_threads.place(&room.to_string(), p(id));
                } else {
                    room_threads.leave(p(id));
                }
            }
            for room in room_threads.lock().rooms.values() {
                prop_assert!(room.participants > 0);
            }
            (0..20).for_each(|id| room_threads.leave(p(id)));
            let state = room_threads.lock();
            prop_assert!(state.rooms.is_empty() && state.participants.is_empty());
            prop_assert_eq!(&state.loads, &vec![Load::default(); 3]);
        }
    }
}
