//! A stream's frames between two decisions, and the residual that they carry.

use crate::candidate::{Candidate, Tier};
use crate::rank::Ranked;

/// Maximum frames that a policy may hold of a stream.
const MAX_HELD: usize = 64;

/// Frames of one stream that are not decided yet.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The interval's frames in decoding order.
    waiting: Vec<Candidate>,
    /// Residual accumulated since the last key frame or anchor before them, in bytes.
    residual: u64,
    /// The best frame of the last tick, where compute was spent before any of the stream's frames had its turn.
    kept: Option<Ranked>,
}

impl Frames {
    /// Adds a frame. Gives back the oldest where there are more than `per_interval` for each of `intervals` intervals.
    pub(crate) fn push(
        &mut self,
        frame: Candidate,
        per_interval: usize,
        intervals: usize,
    ) -> Option<Candidate> {
        let per_interval = per_interval.max(1);
        let max = per_interval.saturating_mul(intervals).min(MAX_HELD).max(per_interval);
        let evicted = (self.waiting.len() >= max).then(|| self.waiting.remove(0));
        if let Some(oldest) = &evicted {
            self.residual = accumulate(self.residual, oldest);
        }
        self.waiting.push(frame);
        evicted
    }

    /// The interval's frames in decoding order.
    pub(crate) fn waiting(&self) -> &[Candidate] {
        &self.waiting
    }

    /// Residual before the first waiting frame, in bytes.
    pub(crate) fn residual(&self) -> u64 {
        self.residual
    }

    /// Whether a frame waits for a later tick.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.waiting.iter().any(|frame| frame.id == id)
            || self.kept.is_some_and(|kept| kept.candidate.id == id)
    }

    /// Keeps a frame for the next tick; `false` where another was kept before it.
    pub(crate) fn keep(&mut self, frame: &Ranked) -> bool {
        let keeps = self.kept.is_none();
        self.kept.get_or_insert(*frame);
        keeps
    }

    /// Takes the frame that the last tick kept.
    pub(crate) fn take_kept(&mut self) -> Option<Ranked> {
        self.kept.take()
    }

    /// Whether a frame is kept for the next tick.
    pub(crate) fn has_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Notes that a frame became an anchor: it clears the residual as a key frame does.
    pub(crate) fn mark_chosen(&mut self, id: u64) {
        if let Some(frame) = self.waiting.iter_mut().find(|frame| frame.id == id) {
            frame.tier = Tier::Key;
        }
    }

    /// Ends the interval: all waiting frames are decided, and only their residual is carried on.
    pub(crate) fn close(&mut self) {
        for frame in self.waiting.drain(..) {
            self.residual = accumulate(self.residual, &frame);
        }
    }
}

/// The residual after a frame: a key frame, or one that became an anchor, clears it.
pub(crate) fn accumulate(carried: u64, frame: &Candidate) -> u64 {
    if frame.tier == Tier::Key { 0 } else { carried.saturating_add(u64::from(frame.bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    fn frame(id: u64) -> Candidate {
        candidate(id, 1, Tier::Normal, 10, std::time::Duration::ZERO)
    }

    #[test]
    fn the_oldest_goes_and_leaves_its_residual() {
        let mut frames = Frames::default();
        let evicted = (0..10).filter_map(|id| frames.push(frame(id), 4, 1)).count();
        assert_eq!((evicted, frames.waiting().len(), frames.residual()), (6, 4, 60));
        assert!(!frames.holds(5) && frames.holds(6));
    }

    #[test]
    fn an_anchor_clears_the_residual_of_frames_up_to_it() {
        let mut frames = Frames::default();
        for id in 0..4 {
            frames.push(frame(id), 4, 1);
        }
        frames.mark_chosen(1);
        frames.close();
        assert_eq!((frames.residual(), frames.waiting().len()), (20, 0));
    }
}
