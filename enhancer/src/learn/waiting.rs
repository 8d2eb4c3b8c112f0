//! Samples that wait for the trainer.
//!
//! The newest sample of each stream is kept. The stream that was trained longest ago comes first. With too little time,
//! all streams learn more slowly.

/// Queue with one sample for each stream, and a bound on streams.
#[derive(Debug)]
pub(crate) struct Waiting<K, L> {
    samples: Vec<(K, L)>,
    max: usize,
}

impl<K: PartialEq, L> Waiting<K, L> {
    /// Creates an empty queue for at most `max` streams.
    pub(crate) fn new(max: usize) -> Self {
        Waiting { samples: Vec::new(), max }
    }

    /// Adds a sample. Returns false if it replaced another, or found no room.
    pub(crate) fn put(&mut self, of: K, sample: L) -> bool {
        if let Some((_, known)) = self.samples.iter_mut().find(|(key, _)| *key == of) {
            *known = sample;
            return false;
        }
        let room = self.samples.len() < self.max;
        if room {
            self.samples.push((of, sample));
        }
        room
    }

    /// Takes the sample with the smallest `trained`.
    pub(crate) fn take<T: Ord>(&mut self, trained: impl Fn(&L) -> T) -> Option<L> {
        let min = self.samples.iter().enumerate().min_by_key(|(_, (_, sample))| trained(sample));
        let (n, _) = min?;
        Some(self.samples.remove(n).1)
    }

    /// Keeps the samples for which `wanted` holds.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&L) -> bool) {
        self.samples.retain(|(_, sample)| wanted(sample));
    }

    /// Whether no sample waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.samples.is_empty()
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
        assert_eq!(waiting.take(|sample| -sample), Some(3));
        assert_eq!(waiting.take(|sample| -sample), Some(2));
        assert!(waiting.is_empty() && waiting.take(|sample| *sample).is_none());
    }

    #[test]
    fn everyone_has_a_turn_where_time_suffices_for_every_other() {
        let (mut waiting, mut trained) = (Waiting::new(8), [0; 3]);
        for round in 1..=30 {
            for stream in 0..3 {
                waiting.put(stream, stream);
            }
            let stream = waiting.take(|&stream| trained[stream]).expect("three wait");
            trained[stream] = round;
        }
        assert!(trained.iter().all(|&last| last > 27), "{trained:?}");
    }
}
