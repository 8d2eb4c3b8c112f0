//! Algorithm 1 of NeuroScaler (Appendix A): how much residual an anchor would clear.
//!
//! In: the frames of one stream's interval in decoding order, and the residual accumulated before
//! them, in bytes. Out: one gain per frame: `(k − i) × Res[i]`, where `Res` is the accumulated
//! residual and `k` the next frame that resets it: a key frame, or a frame ranked before this one.
//! Past the interval, the residual is taken to reset after a fixed horizon.
//!
//! The paper ranks each tier apart; here the golden tier is ranked first and its ranks reset
//! the residual for the normal tier, because that is the order in which they are served.
//! Key frames do not accumulate residual, so all of them have the gain 0 and are equal.

use crate::candidate::{Candidate, Tier};
use crate::frames::accumulate;

/// Estimates the gain of each frame. The working memory is reused from tick to tick.
#[derive(Debug, Default, Clone)]
pub struct GainEstimator {
    residual: Vec<u64>,
    /// Whether a frame resets the residual: a key frame or one that has its rank.
    resets: Vec<bool>,
    gains: Vec<u64>,
}

impl GainEstimator {
    /// Gives all frames the gain of the last one. So the stream keeps its rank among others, without a choice among its
    /// frames.
    pub fn alike(&mut self, frames: &[Candidate], carried: u64, horizon: u32) -> &[u64] {
        let residual = frames.iter().fold(carried, accumulate);
        self.gains.clear();
        self.gains.resize(frames.len(), residual.saturating_mul(horizon.max(1).into()));
        &self.gains
    }

    /// The gain of each of `frames`.
    pub fn estimate(&mut self, frames: &[Candidate], carried: u64, horizon: u32) -> &[u64] {
        self.residual.clear();
        let mut accumulated = carried;
        self.residual.extend(frames.iter().map(|f| {
            accumulated = accumulate(accumulated, f);
            accumulated
        }));
        self.resets.clear();
        self.resets.extend(frames.iter().map(|f| f.tier == Tier::Key));
        self.gains.clear();
        self.gains.resize(frames.len(), 0);
        for tier in [Tier::Golden, Tier::Normal] {
            while let Some((best, gain)) = self.best_of(frames, tier, horizon) {
                self.gains[best] = gain;
                self.resets[best] = true;
                self.clear_residual(best);
            }
        }
        &self.gains
    }

    /// The frame of a tier, not yet ranked, that clears most; the earliest among equals.
    fn best_of(&self, frames: &[Candidate], tier: Tier, horizon: u32) -> Option<(usize, u64)> {
        let mut next_reset = frames.len() + horizon as usize;
        let mut best: Option<(usize, u64)> = None;
        for i in (0..frames.len()).rev() {
            if self.resets[i] {
                next_reset = i;
            } else if frames[i].tier == tier {
                let gain = self.residual[i].saturating_mul((next_reset - i) as u64);
                if best.is_none_or(|(_, max)| gain >= max) {
                    best = Some((i, gain));
                }
            }
        }
        best
    }

    /// Takes the residual of a ranked frame off the frames that it would serve.
    fn clear_residual(&mut self, ranked: usize) {
        let cleared = self.residual[ranked];
        self.residual[ranked] = 0;
        for i in ranked + 1..self.residual.len() {
            if self.resets[i] {
                break;
            }
            self.residual[i] -= cleared;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use windlass_types::{Size, StreamId};

    use super::*;

    fn frame(tier: Tier, bytes: u32) -> Candidate {
        Candidate {
            id: 0,
            stream: StreamId(0),
            tier,
            bytes,
            size: Size::new(16, 16),
            arrival: Duration::ZERO,
            per_mille: 1000,
            scale: 2,
            max_scale: 2,
        }
    }

    #[test]
    fn the_first_rank_is_the_frame_that_clears_most() {
        // Accumulated 10, 110, 120 with nothing after the interval: 10×3, 110×2, 120×1.
        let frames = [10, 100, 10].map(|b| frame(Tier::Normal, b));
        let mut estimator = GainEstimator::default();
        // Then 10×1 (up to the ranked frame) and 10×1 (what is left of 120).
        assert_eq!(estimator.estimate(&frames, 0, 0), [10, 220, 10]);
    }

    #[test]
    fn residual_from_before_the_interval_counts() {
        let frames = [frame(Tier::Normal, 10)];
        assert_eq!(GainEstimator::default().estimate(&frames, 90, 4), [500]);
    }

    #[test]
    fn a_key_frame_resets_the_residual() {
        let frames = [frame(Tier::Normal, 50), frame(Tier::Key, 900), frame(Tier::Normal, 7)];
        assert_eq!(GainEstimator::default().estimate(&frames, 0, 0), [50, 0, 7]);
    }

    #[test]
    fn golden_frames_are_ranked_before_normal_ones() {
        let frames = [frame(Tier::Normal, 50), frame(Tier::Golden, 10), frame(Tier::Normal, 5)];
        // Golden: 60×2; then the normal ones: 50×1 before it, 5×1 after it.
        assert_eq!(GainEstimator::default().estimate(&frames, 0, 0), [50, 120, 5]);
    }

    /// Equation (1) term by term: what the residuals sum to without and with the anchor.
    fn reduction(residual: &[u64], resets: &[bool], i: usize) -> u64 {
        let end = (i + 1..residual.len()).find(|&j| resets[j]).unwrap_or(residual.len());
        (i..end).map(|j| residual[j] - (residual[j] - residual[i])).sum()
    }

    proptest! {
        #[test]
        fn the_best_gain_is_the_greatest_reduction(
            bytes in prop::collection::vec(1u32..5_000, 1..24),
            key in prop::option::of(0usize..24),
        ) {
            let mut frames: Vec<_> = bytes.iter().map(|&b| frame(Tier::Normal, b)).collect();
            if let Some(f) = key.and_then(|k| frames.get_mut(k)) {
                f.tier = Tier::Key;
            }
            let resets: Vec<bool> = frames.iter().map(|f| f.tier == Tier::Key).collect();
            let mut sum = 0;
            let residual: Vec<u64> = frames.iter().map(|f| {
                sum = accumulate(sum, f);
                sum
            }).collect();
            let expected = (0..frames.len())
                .filter(|&i| !resets[i])
                .map(|i| reduction(&residual, &resets, i))
                .max()
                .unwrap_or(0);
            let mut estimator = GainEstimator::default();
            let gains = estimator.estimate(&frames, 0, 0);
            prop_assert_eq!(gains.iter().copied().max().unwrap_or(0), expected);
        }
    }
}
