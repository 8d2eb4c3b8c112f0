//! Chooses the inferred frames that the baseline `nemo` sends: those that would change most of what viewers see.
//!
//! Source: NEMO as NeuroScaler §2 describes it: inference on every frame, then the frames of greatest gain. NEMO
//! looks at a whole video beforehand. Here frames to come are assumed to gain as the last ones did. A frame is sent
//! if its gain is among the greatest `fraction` of the last [`REMEMBERED`], and the fraction allows another.

use std::collections::VecDeque;

/// Number of frames whose gains a gain is compared with.
const REMEMBERED: usize = 64;

/// Decides which inferred frames of one stream are sent.
#[derive(Debug, Clone)]
pub(super) struct BestOf {
    gains: VecDeque<f64>,
    /// Number of anchors that the fraction allows now; at most one is saved.
    allowance: f64,
}

impl Default for BestOf {
    fn default() -> Self {
        BestOf { gains: VecDeque::with_capacity(REMEMBERED), allowance: 1.0 }
    }
}

impl BestOf {
    /// Whether the next frame is sent, whose anchor has this gain, when at most `fraction` of all frames may be.
    /// `frames`: how many have come since the last one asked for, with this one.
    pub(super) fn passes(&mut self, gain: f64, fraction: f64, frames: u64) -> bool {
        let gain = if gain.is_finite() { gain } else { 0.0 };
        let fraction = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        let better = self.gains.iter().filter(|&&other| other > gain).count() as f64;
        // Where fewer frames are inferred than come, more of them can be sent.
        let share = (fraction * frames as f64).min(1.0);
        let among = better <= share * self.gains.len() as f64;
        if self.gains.len() == REMEMBERED {
            self.gains.pop_front();
        }
        self.gains.push_back(gain);
        let passes = among && self.allowance >= 1.0 && fraction > 0.0;
        self.allowance = (self.allowance + share - f64::from(u8::from(passes))).min(2.0);
        passes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_frames_of_greatest_gain_pass() {
        let mut gate = BestOf::default();
        let gain = |n: usize| if n % 20 == 7 { 5.0 } else { (n % 20) as f64 / 20.0 };
        let passed: Vec<usize> = (0..400).filter(|&n| gate.passes(gain(n), 0.05, 1)).collect();
        let late: Vec<usize> = passed.iter().copied().filter(|&n| n > 100).collect();
        assert!(late.len() >= 14 && late.iter().all(|n| n % 20 == 7), "{passed:?}");
    }

    proptest! {
        #[test]
        fn no_more_pass_than_the_fraction_allows(
            gains in proptest::collection::vec(proptest::num::f64::ANY, 1..300), fraction in 0.0f64..1.0,
        ) {
            let mut gate = BestOf::default();
            let passed = gains.iter().filter(|&&gain| gate.passes(gain, fraction, 1)).count();
            prop_assert!(passed as f64 <= 1.0 + fraction * gains.len() as f64);
        }
    }
}
