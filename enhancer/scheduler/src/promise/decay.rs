//! How a picture gets worse with the frames since its anchor: `lost(s) = first × s ^ power`.
//!
//! ARISE §4.3 finds a line (power 1) for trackers of objects and depth. Rebuilt video loses most in the first frames
//! after an anchor: 1.4, 1.7, 2.2, 2.4 to 3.0 and 2.8 to 3.0 square grey levels after 2, 4, 8, 15 and 30 frames on two
//! clips, a power of [`REBUILT`] (`lab/notes/scheduler.md`). So a line through the loss at one distance is far too
//! optimistic at shorter ones. With more anchors it would become steeper, and so request even more.

/// Exponent of the decay of rebuilt video: a fit to the losses above (`lab/notes/scheduler.md`).
pub const REBUILT: f64 = 0.27;

/// Loss of a rebuilt picture `s` frames after its anchor: `first × s ^ power`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    /// Loss after one frame, in any unit of quality.
    pub first: f64,
    /// Exponent; 1 for a line.
    pub power: f64,
}

impl Decay {
    /// Creates a decay in a line, which loses `slope` with each frame.
    pub fn line(slope: f64) -> Decay {
        Decay { first: slope, power: 1.0 }
    }

    /// Creates the decay of rebuilt video that was measured as `slope` per frame over `frames` frames (`d ÷ L`).
    pub fn rebuilt(slope: f64, frames: f64) -> Decay {
        let frames = if frames.is_finite() { frames.clamp(1.0, 1e4) } else { 1.0 };
        Decay { first: slope * frames.powf(1.0 - REBUILT), power: REBUILT }
    }

    /// Creates the decay of rebuilt video that loses `first` after one frame.
    pub fn of_rebuilt(first: f64) -> Decay {
        Decay { first, power: REBUILT }
    }

    fn first(&self) -> f64 {
        if self.first.is_finite() { self.first.clamp(0.0, 1e12) } else { 0.0 }
    }

    fn power(&self) -> f64 {
        if self.power.is_finite() { self.power.clamp(0.0, 4.0) } else { 1.0 }
    }

    /// Sum of the losses of all frames shown while the staleness grows from `from` to `to`, in frames. Each frame
    /// counts with the staleness at its middle.
    pub fn over(&self, from: f64, to: f64) -> f64 {
        let more = self.power() + 1.0;
        let upto = |frames: f64| (frames - 0.5).max(0.0).powf(more) / more;
        self.first() * (upto(to) - upto(from)).max(0.0)
    }

    /// Mean loss of frames whose anchors are `apart` frames apart and available after `late` frames.
    pub fn mean(&self, late: f64, apart: f64) -> f64 {
        self.over(late, late + apart) / apart
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_loses_as_the_paper_says() {
        // Staleness 3, 4, 5, 6: 4.5 in the mean.
        assert!((Decay::line(0.1).mean(3.0, 4.0) - 0.45).abs() < 1e-12);
    }

    #[test]
    fn what_was_seen_at_one_distance_is_what_is_lost_there() {
        let decay = Decay::rebuilt(0.1, 30.0);
        assert!((decay.first * 30f64.powf(REBUILT) - 3.0).abs() < 1e-9);
        let near = Decay::rebuilt(decay.first * 2f64.powf(REBUILT) / 2.0, 2.0);
        assert!((near.first - decay.first).abs() < 1e-9, "{near:?} {decay:?}");
    }

    proptest! {
        #[test]
        fn later_and_rarer_anchors_never_lose_less(
            first in 0.0f64..10.0, power in 0.0f64..2.0, late in 0.0f64..20.0, apart in 1.0f64..100.0, more in 0.0f64..50.0,
        ) {
            let decay = Decay { first, power };
            let base = decay.mean(late, apart);
            prop_assert!(decay.mean(late, apart + more) >= base - 1e-9);
            prop_assert!(decay.mean(late + more, apart) >= base - 1e-9);
        }

        #[test]
        fn absurd_reports_give_a_number(first in proptest::num::f64::ANY, power in proptest::num::f64::ANY, frames in proptest::num::f64::ANY) {
            let (odd, rebuilt) = (Decay { first, power }, Decay::rebuilt(first, frames));
            prop_assert!(!odd.mean(3.0, 20.0).is_nan() && !rebuilt.mean(3.0, 20.0).is_nan());
        }
    }
}
