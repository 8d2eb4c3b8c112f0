//! What an anchor is worth, from what it changes in what viewers see.
//!
//! Let `e` be what is wrong with the picture that viewers see without enhanced anchors, `d` what the network would
//! change in it. With the publisher's own picture, [`Truth`], both are known. Otherwise only `d` is known, and `right`
//! estimates how much of it is right: the mean of `d · e` over that of `d²`, from earlier pictures of the same stream,
//! or a default. Then the square error falls by `(2 right − 1) d²` on the anchor's own frame. On a later frame viewers
//! see the carried change `c`, and the network's output for that frame replaces the truth, with a `right'` that is
//! somewhat larger than `right`. There the error falls by `2 right' (c · d) − c²`, and at most by as much as on the
//! anchor's own frame.

//
// Measured by `lab/examples/anchor_worth.rs`: five people, 80 to 300 kbit/s, networks `fused-xs-x2` and `fused-m-x2`,
// an anchor a second; the mean over an anchor's time is met within 0.03 dB (rms) where the source was seen, within
// 0.04 dB where it was not.

/// Usual share of a network's change that is right. Streams measure 0.4 to 1.1 (`lab/examples/anchor_worth.rs`).
pub const USUAL_RIGHT: f64 = 0.85;
/// Usual mean square error of what the network makes of a face, in square grey levels.
pub const USUAL_ERROR: f64 = 5.0;
/// Usual worth of an anchor at the end of its time, as a share of its worth at its frame.
pub const USUAL_LASTS: f64 = 0.2;
/// Ratio of the right share of carried detail to that of new detail: what is carried is what both frames agree on.
const CARRIED: f64 = 1.3;
/// Weight of the last frame's gain in the mean over the time that an anchor is shown; the first frame has the rest. It
/// is high because most of the gain is lost by encoding and in the first frames.
const LAST: f64 = 0.85;
/// Weight of a new measurement (EWMA).
const NEW: f64 = 0.25;

/// Changes that anchors make to a frame, as mean squares in grey levels over the whole picture.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    /// Mean square of the change by the network's picture of this frame.
    pub new: f64,
    /// Changes by the earlier anchors; `None` if viewers have none.
    pub old: Option<Old>,
}

/// Changes that the earlier anchors make to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Old {
    /// Mean square of the change.
    pub square: f64,
    /// Mean product of the change with what the network's picture of the frame would change.
    pub product: f64,
}

/// A picture of which the truth is known: mean squares in grey levels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Truth {
    /// Error of what viewers see without enhanced anchors.
    pub seen: f64,
    /// Error of the network's picture.
    pub made: f64,
    /// Mean square difference between the network's picture and what viewers see.
    pub change: f64,
}

/// How much of a network's change is right on one stream, as learned so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Belief {
    right: f64,
    /// Mean square error of what viewers see; `None` before it was measured.
    error: Option<f64>,
    lasts: f64,
}

impl Default for Belief {
    fn default() -> Self {
        Belief { right: USUAL_RIGHT, error: None, lasts: USUAL_LASTS }
    }
}

impl Belief {
    /// Learns from a frame for which the publisher's own picture is known.
    pub fn learn(&mut self, truth: &Truth) {
        if !truth.change.is_normal() || !(truth.seen - truth.made).is_finite() {
            return;
        }
        let right = (0.5 + 0.5 * (truth.seen - truth.made) / truth.change).clamp(-1.0, 1.5);
        match &mut self.error {
            Some(error) => {
                *error += NEW * (truth.seen - *error);
                self.right += NEW * (right - self.right);
            }
            none => {
                *none = Some(truth.seen);
                self.right = right;
            }
        }
    }

    /// Gain of an anchor on its own frame, in dB. `new` is [`Change::new`].
    pub fn own_db(&self, new: f64) -> f64 {
        let gain = self.gain(new);
        db(self.error(gain), gain)
    }

    /// Mean gain of an anchor over the time that it is shown, in dB.
    pub fn mean_db(&mut self, change: &Change) -> f64 {
        let gain = self.gain(change.new);
        let error = self.error(gain);
        let own = db(error, gain);
        let last = match change.old {
            Some(Old { square, product }) => {
                let carried = 2.0 * CARRIED * self.right * product - square;
                let last = db(error, carried.min(gain.max(0.0)));
                if own > 0.0 {
                    self.lasts += NEW * ((last / own).clamp(-1.0, 1.0) - self.lasts);
                }
                last
            }
            None => own * if own > 0.0 { self.lasts } else { 1.0 },
        };
        own + LAST * (last - own)
    }

    fn gain(&self, new: f64) -> f64 {
        (2.0 * self.right - 1.0) * new
    }

    /// Mean square error of what viewers see without an anchor that lowers it by `gain`.
    fn error(&self, gain: f64) -> f64 {
        self.error.unwrap_or(USUAL_ERROR + gain.max(0.0)).max(1e-3)
    }
}

/// Gain in dB of lowering a square error of `error` by `gain`.
fn db(error: f64, gain: f64) -> f64 {
    // A gain that is only estimated never removes more than nine tenths of the error.
    -10.0 * (1.0 - (gain / error).min(0.9)).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_pictures_whose_truth_is_known_the_own_frames_gain_is_exact() {
        let mut belief = Belief::default();
        belief.learn(&Truth { seen: 10.0, made: 8.0, change: 3.0 });
        assert!((belief.own_db(3.0) - 10.0 * (10.0f64 / 8.0).log10()).abs() < 1e-9);
    }

    #[test]
    fn a_network_that_harms_is_worth_less_than_nothing() {
        let mut belief = Belief::default();
        assert!(belief.own_db(4.0) > 0.0, "believed until it is known");
        belief.learn(&Truth { seen: 10.0, made: 14.0, change: 4.0 });
        assert!(belief.own_db(4.0) < -1.0);
        assert!(belief.mean_db(&Change { new: 4.0, old: None }) < -1.0);
    }

    #[test]
    fn what_has_changed_since_is_worth_less_than_what_stays() {
        let mut belief = Belief::default();
        let mean = |belief: &mut Belief, product: f64| {
            belief.mean_db(&Change { new: 2.0, old: Some(Old { square: 2.0, product }) })
        };
        let stays = mean(&mut belief, 2.0);
        assert!((stays - belief.own_db(2.0)).abs() < 1e-9, "all of it is still right");
        let half = mean(&mut belief, 1.0);
        let nothing = mean(&mut belief, 0.0);
        assert!(stays > half && half > nothing && nothing < 0.0, "{stays} {half} {nothing}");
    }

    #[test]
    fn a_probe_is_taken_to_last_as_anchors_did_before() {
        let mut lasting = Belief::default();
        for _ in 0..20 {
            lasting.mean_db(&Change { new: 2.0, old: Some(Old { square: 2.0, product: 2.0 }) });
        }
        let probe = Change { new: 2.0, old: None };
        assert!(lasting.mean_db(&probe) > 1.2 * Belief::default().mean_db(&probe));
    }

    #[test]
    fn what_changes_nothing_is_worth_nothing_and_teaches_nothing() {
        let mut belief = Belief::default();
        belief.learn(&Truth { seen: 4.0, made: 4.0, change: 0.0 });
        belief.learn(&Truth { seen: f64::NAN, made: 4.0, change: 1.0 });
        assert_eq!(belief, Belief::default());
        assert!(belief.mean_db(&Change::default()).abs() < 1e-9);
    }
}
