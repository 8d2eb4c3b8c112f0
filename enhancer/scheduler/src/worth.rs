//! Whether a stream's enhanced anchors are worth making.
//!
//! In: the worth of each measured anchor, in dB of what viewers see, as a mean over the time that it is shown
//! ([`estimate`]). Out: whether the stream is held back. A stream whose anchors are worth less than [`MIN_DB`] makes
//! only a probe in [`PROBE_EVERY`]. A probe is sent only if it is worth [`RESUME_DB`]; then the stream goes on. The
//! publisher's own pictures are not held back.
//!
//! Pure: time is an argument.
//!
//! ```
//! use std::time::Duration;
//! use windlass_scheduler::worth::{PROBE_EVERY, Worth};
//!
//! let (mut worth, mut now) = (Worth::default(), Duration::ZERO);
//! while !worth.holds_back() {
//!     now += Duration::from_secs(1);
//!     worth.measured(0.02, now);
//! }
//! assert!(!worth.is_probe_due(now) && worth.is_probe_due(now + PROBE_EVERY));
//! ```

pub mod estimate;

use std::time::Duration;

pub use estimate::{Belief, Change, Old, Truth};

/// Mean worth in dB below which a stream makes no more anchors: the same bits gain more in the video itself.
pub const MIN_DB: f64 = 0.05;
/// Worth of a probe in dB from which on it is sent, and the stream makes anchors again.
pub const RESUME_DB: f64 = 0.08;
/// Time between two probes of a stream that is held back.
pub const PROBE_EVERY: Duration = Duration::from_secs(10);
/// Minimum measurements before a stream is held back: the first may be of a dark picture.
const FIRST: u32 = 4;
/// Weight of a new measurement in the mean (EWMA).
const NEW: f64 = 0.25;

/// Record of what one stream's enhanced anchors are worth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Worth {
    mean: Option<f64>,
    /// Measurements since the stream began, or last went on.
    measured: u32,
    held: bool,
    /// Time of the last probe, or of the moment at which the stream was held back.
    probed: Duration,
}

impl Worth {
    /// Adds the measured worth of an anchor or a probe, in dB.
    pub fn measured(&mut self, db: f64, now: Duration) {
        if !db.is_finite() {
            return;
        }
        if self.held {
            // What was before the pause says nothing of now.
            self.mean = Some(db);
            if db >= RESUME_DB {
                (self.held, self.measured) = (false, 0);
            }
            return;
        }
        let mean = self.mean.map_or(db, |mean| mean + NEW * (db - mean));
        self.mean = Some(mean);
        self.measured += 1;
        if self.measured >= FIRST && mean < MIN_DB {
            (self.held, self.probed) = (true, now);
        }
    }

    /// Whether no anchors are to be made but probes.
    pub fn holds_back(&self) -> bool {
        self.held
    }

    /// Whether a stream that is held back is to make a probe.
    pub fn is_probe_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.probed) >= PROBE_EVERY
    }

    /// Notes that a probe is made.
    pub fn probes(&mut self, now: Duration) {
        self.probed = now;
    }

    /// Mean worth of the stream's anchors lately, in dB; `None` before the first measurement.
    pub fn db(&self) -> Option<f64> {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A stream whose anchors have been worth nothing until it was held back, and when that was.
    fn held() -> (Worth, Duration) {
        let mut worth = Worth::default();
        let last = (1..100).find(|&second| {
            worth.measured(0.0, at(second));
            worth.holds_back()
        });
        (worth, at(last.expect("it is held back")))
    }

    #[test]
    fn a_stream_is_held_back_after_some_anchors_that_are_worth_nothing() {
        let (worth, when) = held();
        assert_eq!(when, at(FIRST.into()), "not by the first alone");
        assert_eq!(worth.db(), Some(0.0));
    }

    #[test]
    fn a_stream_whose_anchors_are_worth_something_goes_on() {
        let mut worth = Worth::default();
        for second in 0..100 {
            worth.measured(0.12, at(second));
        }
        assert!(!worth.holds_back());
    }

    #[test]
    fn one_bad_anchor_among_good_ones_changes_nothing() {
        let mut worth = Worth::default();
        for second in 0..100 {
            worth.measured(if second % 10 == 9 { -0.2 } else { 0.4 }, at(second));
            assert!(!worth.holds_back());
        }
    }

    #[test]
    fn a_probe_comes_now_and_then() {
        let (mut worth, when) = held();
        assert!(!worth.is_probe_due(when + PROBE_EVERY / 2));
        let next = when + PROBE_EVERY;
        assert!(worth.is_probe_due(next));
        worth.probes(next);
        assert!(!worth.is_probe_due(next + PROBE_EVERY / 2));
        assert!(worth.is_probe_due(next + PROBE_EVERY));
    }

    #[test]
    fn a_probe_that_is_worth_more_than_what_holds_a_stream_back_lets_it_go_on() {
        let (mut worth, when) = held();
        worth.measured(f64::midpoint(MIN_DB, RESUME_DB), when);
        assert!(worth.holds_back(), "it would soon be held back again");
        worth.measured(RESUME_DB, when);
        assert!(!worth.holds_back());
        for _ in 1..FIRST {
            worth.measured(0.0, when);
            assert!(!worth.holds_back(), "it has its time again");
        }
        worth.measured(0.0, when);
        assert!(worth.holds_back());
    }

    #[test]
    fn what_is_no_number_is_not_counted() {
        let mut worth = Worth::default();
        for second in 0..100 {
            worth.measured(f64::NAN, at(second));
        }
        assert_eq!(worth, Worth::default());
    }
}
