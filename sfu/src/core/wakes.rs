//! Lists of the connections that have work to do, so that the core does not poll all of them. Listed are connections
//! that were *touched*, as they may have something to send, and a timer for each of the others. The core and its peers
//! share a list and a heap; the lock is never held over a call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::api::ParticipantId;

#[derive(Debug, Default)]
struct Lists {
    touched: Vec<ParticipantId>,
    due: BinaryHeap<Reverse<(Instant, ParticipantId)>>,
}

/// The work of all peers of a core.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakes(Arc<Mutex<Lists>>);

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next peer has work: `now` if one was touched.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let lists = self.lock();
        if !lists.touched.is_empty() {
            return Some(now);
        }
        lists.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the peers that were touched; one may be listed twice.
    pub(crate) fn take_touched(&self) -> Vec<ParticipantId> {
        std::mem::take(&mut self.lock().touched)
    }

    /// Takes the timers that are due, each with its peer. The peer may have set another time since: see
    /// [`Wake::is_due`].
    pub(crate) fn take_due(&self, now: Instant) -> Vec<(Instant, ParticipantId)> {
        let (mut lists, mut due) = (self.lock(), Vec::new());
        while lists.due.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            due.extend(lists.due.pop().map(|Reverse(entry)| entry));
        }
        due
    }
}

/// One peer's entry in these lists.
#[derive(Debug)]
pub(crate) struct Wake {
    id: ParticipantId,
    wakes: Wakes,
    touched: bool,
    due: Instant,
    /// The earliest of the peer's entries in the heap.
    listed: Option<Instant>,
}

impl Wake {
    /// The entry of a peer without work.
    pub(crate) fn new(id: ParticipantId, wakes: Wakes, now: Instant) -> Wake {
        Wake { id, wakes, touched: false, due: now, listed: None }
    }

    /// Marks that the peer may have something to send.
    pub(crate) fn touch(&mut self) {
        if !self.touched {
            self.touched = true;
            self.wakes.lock().touched.push(self.id);
        }
    }

    /// Whether the peer was touched since [`Wake::clear_touched`].
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Marks that the peer has nothing to send any more.
    pub(crate) fn clear_touched(&mut self) {
        self.touched = false;
    }

    /// When the peer's timer is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Sets the peer's timer, in place of the last one.
    pub(crate) fn set_due(&mut self, due: Instant) {
        self.due = due;
        if self.listed.is_none_or(|listed| due < listed) {
            self.listed = Some(due);
            self.wakes.lock().due.push(Reverse((due, self.id)));
        }
    }

    /// Whether the peer is due when `entry` comes up in the heap. If its timer was set to a later time, it is listed
    /// again.
    pub(crate) fn is_due(&mut self, entry: Instant, now: Instant) -> bool {
        if self.listed != Some(entry) {
            return false;
        }
        self.listed = None;
        if self.due > now {
            self.set_due(self.due);
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_is_touched_is_told_once_until_everything_was_sent() {
        let (now, wakes) = (Instant::now(), Wakes::default());
        let mut wake = Wake::new(ParticipantId(7), wakes.clone(), now);
        wake.touch();
        wake.touch();
        assert_eq!(wakes.next(now), Some(now));
        assert_eq!(wakes.take_touched(), [ParticipantId(7)]);
        wake.touch();
        assert!(wakes.take_touched().is_empty() && wake.is_touched());
        wake.clear_touched();
        wake.touch();
        assert_eq!(wakes.take_touched().len(), 1);
    }

    #[test]
    fn a_later_time_takes_the_place_of_an_earlier_one() {
        let (now, wakes) = (Instant::now(), Wakes::default());
        let mut wake = Wake::new(ParticipantId(7), wakes.clone(), now);
        wake.set_due(now + MS);
        wake.set_due(now + 5 * MS);
        let (entry, _) = wakes.take_due(now + MS)[0];
        assert!(!wake.is_due(entry, now + MS));
        assert_eq!(wakes.next(now), Some(now + 5 * MS));
        let (entry, _) = wakes.take_due(now + 5 * MS)[0];
        assert!(wake.is_due(entry, now + 5 * MS));
        assert_eq!(wakes.next(now), None);
    }

    proptest! {
        /// Whatever times it gives, a peer is found due at the last of them, no earlier, and the heap does not grow.
        #[test]
        fn nobody_is_forgotten(steps in prop::collection::vec((0..20u32, 0..4u32), 1..200)) {
            let (mut now, wakes) = (Instant::now(), Wakes::default());
            let mut wake = Wake::new(ParticipantId(1), wakes.clone(), now);
            let mut given = now;
            wake.set_due(given);
            for (ahead, pass) in steps {
                now += pass * MS;
                let mut found = false;
                for (entry, _) in wakes.take_due(now) {
                    found |= wake.is_due(entry, now);
                }
                prop_assert_eq!(found, given <= now);
                if found || ahead % 3 == 0 {
                    given = now + ahead.max(1) * MS;
                    wake.set_due(given);
                }
                prop_assert!(wakes.lock().due.len() <= 20);
            }
        }
    }
}
