//! Lessons that wait until there is time for them.
//!
//! The newest of each stream is kept. Whoever was taught longest ago comes first: where there is too little time for all,
//! everyone learns more slowly.

/// Bounded lessons by stream.
#[derive(Debug)]
pub(crate) struct Waiting<K, L> {
    lessons: Vec<(K, L)>,
    most: usize,
}

impl<K: PartialEq, L> Waiting<K, L> {
    /// None, and at most so many.
    pub fn new(most: usize) -> Self {
        Waiting { lessons: Vec::new(), most }
    }

    /// Takes a lesson; false when another had to give way for it, or it found no room.
    pub fn put(&mut self, of: K, lesson: L) -> bool {
        if let Some((_, known)) = self.lessons.iter_mut().find(|(key, _)| *key == of) {
            *known = lesson;
            return false;
        }
        let room = self.lessons.len() < self.most;
        if room {
            self.lessons.push((of, lesson));
        }
        room
    }

    /// The lesson for which `taught` is least.
    pub fn take<T: Ord>(&mut self, taught: impl Fn(&L) -> T) -> Option<L> {
        let least = self.lessons.iter().enumerate().min_by_key(|(_, (_, lesson))| taught(lesson));
        let (n, _) = least?;
        Some(self.lessons.remove(n).1)
    }

    /// Lets go of all but those for which `wanted` holds.
    pub fn retain(&mut self, wanted: impl Fn(&L) -> bool) {
        self.lessons.retain(|(_, lesson)| wanted(lesson));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_stream_is_kept_and_those_beyond_the_bound_are_refused() {
        let mut waiting = Waiting::new(2);
        assert!(waiting.put('a', 1));
        assert!(waiting.put('b', 2));
        assert!(!waiting.put('a', 3), "the older gave way");
        assert!(!waiting.put('c', 4), "no room");
        assert_eq!(waiting.take(|lesson| -lesson), Some(3));
        assert_eq!(waiting.take(|lesson| -lesson), Some(2));
        assert!(waiting.is_empty() && waiting.take(|lesson| *lesson).is_none());
    }

    #[test]
    fn everyone_has_a_turn_where_time_suffices_for_every_other() {
        let (mut waiting, mut taught) = (Waiting::new(8), [0; 3]);
        for round in 1..=30 {
            for stream in 0..3 {
                waiting.put(stream, stream);
            }
            let stream = waiting.take(|&stream| taught[stream]).expect("three wait");
            taught[stream] = round;
        }
        assert!(taught.iter().all(|&last| last > 27), "{taught:?}");
    }
}
