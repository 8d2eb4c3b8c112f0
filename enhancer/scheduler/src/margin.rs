//! How long before its deadline a chosen frame is expected to be done.
//!
//! Expected times are means, and a shared CPU makes some jobs wait. With a full queue, all chosen frames would be due
//! at their deadline, and half of them late. The margin follows a quantile by stochastic approximation: it grows by
//! `STEP × (1 − LATE)` with each late frame and shrinks by `STEP × LATE` with each frame in time, and so rests where a
//! share of `LATE` is late. This is not from a paper: papers assume that profiled times are exact.

use std::time::Duration;

/// Target share of chosen frames that are late.
const LATE: f64 = 0.005;
/// Step of the stochastic approximation, in seconds.
const STEP: f64 = 0.004;
/// Maximum margin, as a share of the deadline.
const MAX_SHARE: f64 = 0.4;
/// Factor on the margin each time that only the margin keeps a lone frame from being tried.
const DOUBT: f64 = 0.97;

/// Time before the deadline at which a chosen frame is expected to be done, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Margin(f64);

impl Margin {
    /// Margin for a deadline, in seconds: at most [`MAX_SHARE`] of it.
    pub(crate) fn of(self, deadline: Duration) -> f64 {
        self.0.min(MAX_SHARE * deadline.as_secs_f64())
    }

    /// Learns whether a chosen frame was given up because it was late; `deadline` is the shortest of any.
    pub(crate) fn learn(&mut self, late: bool, deadline: Duration) {
        let change = if late { 1.0 - LATE } else { -LATE };
        let max = MAX_SHARE * deadline.as_secs_f64();
        self.0 = (self.0 + STEP * change).min(max).max(0.0);
    }

    /// Shrinks a margin that alone keeps a frame from being chosen: else it would never be measured.
    pub(crate) fn doubt(&mut self) {
        self.0 *= DOUBT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(140);

    #[test]
    fn the_margin_settles_where_one_of_two_hundred_is_late() {
        // Jobs are done up to 40 ms after they were expected to be, all of these alike often.
        let mut margin = Margin::default();
        let (mut late, mut seed) = (0, 1u64);
        for n in 0..400_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let delay = 0.040 * ((seed >> 33) as f64 / f64::from(1u32 << 31));
            let is_late = delay > margin.of(DEADLINE);
            late += i32::from(is_late && n >= 200_000);
            margin.learn(is_late, DEADLINE);
        }
        assert!((800..1_200).contains(&late), "{late} of 200,000");
        assert!((0.036..0.044).contains(&margin.of(DEADLINE)));
    }

    #[test]
    fn the_margin_is_bounded_and_zero_where_nothing_is_late() {
        let mut margin = Margin::default();
        margin.learn(false, DEADLINE);
        assert!(margin.of(DEADLINE) <= 0.0);
        (0..1_000).for_each(|_| margin.learn(true, DEADLINE));
        assert!((margin.of(DEADLINE) - 0.056).abs() < 1e-9);
        (0..10_000).for_each(|_| margin.learn(false, DEADLINE));
        assert!(margin.of(DEADLINE) <= 0.0);
        (0..9).for_each(|_| margin.learn(true, Duration::MAX));
        assert!(margin.of(Duration::MAX) < 0.04);
    }
}
