//! At which ticks a stream is decided: each, or one in several for policies that hold frames longer.

use windlass_types::StreamId;

/// Counts ticks, and the intervals of the streams that were asked for at the last one.
#[derive(Debug)]
pub(crate) struct Cadence {
    tick: u64,
    /// Ticks between two decisions: the minimum and the maximum over all streams.
    shortest: u64,
    longest: u64,
}

impl Default for Cadence {
    fn default() -> Self {
        Cadence { tick: 0, shortest: u64::MAX, longest: 0 }
    }
}

impl Cadence {
    /// Begins the next tick.
    pub(crate) fn advance(&mut self) {
        *self = Cadence { tick: self.tick.wrapping_add(1), ..Cadence::default() };
    }

    /// Whether a stream that decides every `every` ticks is decided at this one. Streams of neighbouring numbers are
    /// decided at different ones.
    pub(crate) fn is_due(&mut self, StreamId(stream): StreamId, every: u64) -> bool {
        (self.shortest, self.longest) = (self.shortest.min(every), self.longest.max(every));
        self.tick.wrapping_add(u64::from(stream)).is_multiple_of(every)
    }

    /// Ticks between two decisions of the most frequent stream.
    pub(crate) fn shortest(&self) -> u32 {
        u32::try_from(self.shortest.min(self.longest).max(1)).unwrap_or(u32::MAX)
    }

    /// Whether streams of different intervals share the compute.
    pub(crate) fn is_mixed(&self) -> bool {
        self.shortest < self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_long_interval_are_decided_at_different_ticks() {
        let mut cadence = Cadence::default();
        let mut due = [0; 10];
        for _ in 0..10 {
            cadence.advance();
            let streams = (0..10).filter(|&stream| cadence.is_due(StreamId(stream), 10)).count();
            assert_eq!(streams, 1);
            (0..10).for_each(|n| due[n] += u32::from(cadence.is_due(StreamId(n as u32), 10)));
        }
        assert_eq!(due, [1; 10]);
    }

    #[test]
    fn the_shortest_interval_is_that_of_the_last_tick() {
        let mut cadence = Cadence::default();
        assert_eq!((cadence.shortest(), cadence.is_mixed()), (1, false));
        cadence.advance();
        cadence.is_due(StreamId(0), 10);
        assert_eq!((cadence.shortest(), cadence.is_mixed()), (10, false));
        cadence.is_due(StreamId(1), 2);
        assert_eq!((cadence.shortest(), cadence.is_mixed()), (2, true));
        cadence.advance();
        assert_eq!((cadence.shortest(), cadence.is_mixed()), (1, false));
    }
}
