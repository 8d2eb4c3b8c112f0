//! Queue of jobs for a GPU: pictures to infer, or detail to encode. First come, first served; jobs of the same kind go
//! in one launch.
//!
//! The order of pictures is decided earlier, by the accelerators' queue (`scheduler/queue`). A launch takes only the
//! pictures that finish within [`MAX_LAUNCH`], so that the batch does not make a picture miss its deadline.

use std::collections::VecDeque;
use std::time::Duration;

/// Maximum expected time of a launch of several pictures.
const MAX_LAUNCH: Duration = Duration::from_millis(20);

/// A queue whose entries are done together if they are of one kind.
#[derive(Debug)]
pub(super) struct Waiting<K, T> {
    /// Maximum number of waiting entries; more are refused.
    room: usize,
    line: VecDeque<(K, usize, T)>,
    /// Last measured time per entry of each kind, the kinds not seen for longest first.
    took: Vec<(K, Duration)>,
}

/// Maximum number of kinds whose time is remembered.
const MAX_KINDS: usize = 64;

impl<K: PartialEq + Clone, T> Waiting<K, T> {
    /// A queue for at most `room` entries.
    pub(super) fn new(room: usize) -> Self {
        Waiting { room, line: VecDeque::new(), took: Vec::new() }
    }

    /// Appends entries of one kind, of which at most `max` are to be done together. Gives them back if there is no
    /// room.
    pub(super) fn push(&mut self, kind: &K, max: usize, all: Vec<T>) -> Result<(), Vec<T>> {
        if self.line.len() + all.len() > self.room {
            return Err(all);
        }
        self.line.extend(all.into_iter().map(|one| (kind.clone(), max.max(1), one)));
        Ok(())
    }

    /// Takes the next entries, all of one kind; empty if nothing waits.
    pub(super) fn take(&mut self) -> Vec<T> {
        self.take_of(|_| true)
    }

    /// Takes the next entries, all of one kind that satisfies `mine`; empty if none waits.
    pub(super) fn take_of(&mut self, mine: impl Fn(&K) -> bool) -> Vec<T> {
        let front = self.line.iter().find(|(kind, _, _)| mine(kind));
        let front = front.map(|(kind, max, _)| (kind.clone(), *max));
        let Some((kind, mut max)) = front else { return Vec::new() };
        if let Some((_, took)) = self.took.iter().find(|(of, _)| *of == kind) {
            let within = MAX_LAUNCH.as_nanos() / took.as_nanos().max(1);
            max = max.min(usize::try_from(within).unwrap_or(usize::MAX)).max(1);
        }
        let mut taken = Vec::new();
        let mut rest = VecDeque::with_capacity(self.line.len());
        for (of, own, one) in self.line.drain(..) {
            if of == kind && taken.len() < max.min(own) {
                taken.push(one);
            } else {
                rest.push_back((of, own, one));
            }
        }
        self.line = rest;
        taken
    }

    /// Records the time that each of some entries took that were done together.
    pub(super) fn note(&mut self, kind: &K, took: Duration) {
        self.took.retain(|(of, _)| of != kind);
        if self.took.len() >= MAX_KINDS {
            self.took.remove(0);
        }
        self.took.push((kind.clone(), took));
    }

    /// Number of waiting entries.
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// Removes all waiting entries of kinds that satisfy `of`.
    pub(super) fn drain_of(&mut self, of: impl Fn(&K) -> bool) -> Vec<T> {
        let (gone, rest) = self.line.drain(..).partition::<VecDeque<_>, _>(|(kind, _, _)| of(kind));
        self.line = rest;
        gone.into_iter().map(|(_, _, one)| one).collect()
    }

    /// Removes all waiting entries.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.line.drain(..).map(|(_, _, one)| one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1_024;

    fn waiting(kinds: &str, max: usize) -> Waiting<char, usize> {
        let mut waiting = Waiting::new(ROOM);
        for (n, kind) in kinds.chars().enumerate() {
            waiting.push(&kind, max, vec![n]).expect("there is room");
        }
        waiting
    }

    #[test]
    fn what_is_of_the_firsts_kind_goes_along_and_the_rest_keeps_its_order() {
        let mut waiting = waiting("abacb", 16);
        assert_eq!(waiting.take(), [0, 2]);
        assert_eq!(waiting.take(), [1, 4]);
        assert_eq!(waiting.take(), [3]);
        assert!(waiting.take().is_empty());
    }

    #[test]
    fn no_more_go_along_than_any_of_them_allows() {
        assert_eq!(waiting("aaaaa", 2).take(), [0, 1]);
        let mut waiting = waiting("aa", 16);
        waiting.push(&'a', 1, vec![7]).expect("there is room");
        assert_eq!(waiting.take(), [0, 1], "the third would be one of three");
        assert_eq!(waiting.take(), [7]);
    }

    #[test]
    fn slow_ones_go_in_smaller_numbers_so_that_all_are_in_time() {
        let mut waiting = waiting("aaaaaab", 16);
        waiting.note(&'a', Duration::from_millis(6));
        assert_eq!(waiting.take(), [0, 1, 2]);
        waiting.note(&'a', Duration::from_secs(1));
        assert_eq!(waiting.take(), [3]);
        waiting.note(&'a', Duration::ZERO);
        assert_eq!(waiting.take(), [4, 5]);
    }

    #[test]
    fn what_is_not_for_one_is_left_for_others() {
        let mut waiting = waiting("abacb", 16);
        assert_eq!(waiting.take_of(|kind| *kind != 'a'), [1, 4]);
        assert_eq!(waiting.drain_of(|kind| *kind == 'a'), [0, 2]);
        assert!(waiting.take_of(|kind| *kind == 'b').is_empty());
        assert_eq!(waiting.take(), [3]);
    }

    #[test]
    fn jobs_beyond_the_bound_are_given_back() {
        let mut waiting = Waiting::new(ROOM);
        let all: Vec<usize> = (0..ROOM).collect();
        assert!(waiting.push(&'a', 16, all).is_ok());
        assert_eq!(waiting.push(&'a', 16, vec![1, 2]), Err(vec![1, 2]));
        assert_eq!(waiting.len(), ROOM);
        assert_eq!(waiting.drain().count(), ROOM);
        assert!(waiting.push(&'a', 16, vec![1]).is_ok());
    }

    #[test]
    fn few_kinds_are_remembered() {
        let mut waiting: Waiting<usize, ()> = Waiting::new(ROOM);
        (0..1_000).for_each(|kind| waiting.note(&kind, Duration::from_millis(1)));
        assert_eq!(waiting.took.len(), MAX_KINDS);
    }
}
