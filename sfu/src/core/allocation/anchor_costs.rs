//! Measured bitrates of a track's anchors, by their source.
//!
//! Bytes are averaged over [`TIME_CONSTANT`], as there may be one anchor in four seconds. While no subscriber holds a
//! rung with anchors, the mean returns to its assumed value: later anchors may be of another scene.

use std::time::Duration;

use windlass_types::{AnchorSource, Bitrate};

/// Time constant of the mean bitrate of anchors.
const TIME_CONSTANT: Duration = Duration::from_secs(8);
/// Assumed bitrate of captured anchors: a fifth of a quarter layer of 150 kbit/s. Measured were a tenth to two fifths
/// (`lab/notes/what-a-viewer-sees.md`).
const ASSUMED_CAPTURED: Bitrate = Bitrate::bps(30_000);
/// Assumed bitrate of enhanced anchors. One a second of a face takes 9 to 24 kbit/s (`lab/notes/enhanced-anchors.md`).
const ASSUMED_ENHANCED: Bitrate = Bitrate::bps(20_000);
/// Largest bitrate that a rung reserves for anchors: pacing drops some of those that take more.
const MAX: Bitrate = Bitrate::bps(120_000);

/// Limits of the anchors that there can be on this server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnchorLimits {
    /// Whether an enhancer is available.
    pub(crate) available: bool,
    /// Maximum pixels of an enhanced layer.
    pub(crate) max_pixels: u32,
    /// Whether higher layers become captured anchors.
    pub(crate) captured: bool,
    /// Largest scale of captured anchors, as octaves: 1 for 2 ×, 2 for 4 ×.
    pub(crate) max_octaves: u8,
}

/// Expected bitrate of a rung's anchors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnchorCosts {
    /// Bitrate of captured anchors.
    pub captured: Bitrate,
    /// Number of octaves by which captured anchors are larger than the layer.
    pub captured_octaves: u8,
    /// Bitrate of enhanced anchors.
    pub enhanced: Bitrate,
}

impl AnchorCosts {
    /// The sum of both bitrates, at most [`MAX`]: a rung reserves no more.
    pub(crate) fn sum(self) -> Bitrate {
        (self.captured + self.enhanced).min(MAX)
    }
}

#[derive(Debug, Clone, Copy)]
struct Meter {
    bytes: u64,
    /// Current mean bitrate, in bit/s.
    bps: f64,
    /// Assumed bitrate to which the mean returns, in bit/s.
    assumed_bps: f64,
}

impl Meter {
    fn new(assumed: Bitrate) -> Meter {
        let assumed_bps = assumed.as_bps() as f64;
        Meter { bytes: 0, bps: assumed_bps, assumed_bps }
    }

    fn mean(&self) -> Bitrate {
        Bitrate::bps(self.bps as u64)
    }

    fn update(&mut self, span: Duration, active: bool) {
        let seconds = span.as_secs_f64();
        let bytes = std::mem::take(&mut self.bytes) as f64;
        let now = if active { bytes * 8.0 / seconds } else { self.assumed_bps };
        self.bps += (now - self.bps) * (1.0 - (-seconds / TIME_CONSTANT.as_secs_f64()).exp());
    }
}

/// The meters of one track.
#[derive(Debug)]
pub(crate) struct AnchorCostMeter {
    captured: Meter,
    enhanced: Meter,
}

impl Default for AnchorCostMeter {
    fn default() -> AnchorCostMeter {
        AnchorCostMeter {
            captured: Meter::new(ASSUMED_CAPTURED),
            enhanced: Meter::new(ASSUMED_ENHANCED),
        }
    }
}

impl AnchorCostMeter {
    /// Counts an anchor.
    pub(crate) fn count(&mut self, source: AnchorSource, bytes: usize) {
        let meter = match source {
            AnchorSource::Captured => &mut self.captured,
            AnchorSource::Enhanced => &mut self.enhanced,
        };
        meter.bytes += bytes as u64;
    }

    /// Updates the means after a `span` in which anchors were made (`enhanced`), and the publisher's pixels were there
    /// (`captured`).
    pub(crate) fn update(&mut self, span: Duration, enhanced: bool, captured: bool) {
        self.captured.update(span, enhanced && captured);
        self.enhanced.update(span, enhanced);
    }

    /// Expected bitrates where captured anchors are `captured_octaves` larger than the layer; 0: there are no captured
    /// anchors.
    pub(crate) fn expected(&self, captured_octaves: u8) -> AnchorCosts {
        AnchorCosts {
            captured: if captured_octaves > 0 { self.captured.mean() } else { Bitrate::ZERO },
            captured_octaves,
            enhanced: self.enhanced.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: usize, bytes: impl Fn(usize) -> usize) -> AnchorCostMeter {
        let mut costs = AnchorCostMeter::default();
        for second in 0..seconds {
            costs.count(AnchorSource::Captured, bytes(second));
            costs.update(Duration::from_secs(1), true, true);
        }
        costs
    }

    #[test]
    fn a_still_in_four_seconds_costs_a_quarter_of_one_each_second() {
        let costs = after(60, |second| if second % 4 == 0 { 8000 } else { 0 }).expected(2);
        assert!((12_000..20_000).contains(&costs.captured.as_bps()), "{costs:?}");
        assert!(costs.enhanced < Bitrate::bps(100), "none was made: {costs:?}");
    }

    #[test]
    fn before_anything_is_measured_and_long_after_it_the_assumption_holds() {
        let mut costs = after(60, |_| 0);
        assert!(costs.expected(2).sum() < Bitrate::bps(100));
        for _ in 0..60 {
            costs.update(Duration::from_secs(1), false, false);
        }
        let sum = |costs: &AnchorCostMeter| costs.expected(2).sum().as_bps();
        let (now, first) = (sum(&costs), sum(&AnchorCostMeter::default()));
        assert!(now.abs_diff(first) < 1000, "{now} for {first}");
    }

    #[test]
    fn where_the_publishers_pixels_cannot_be_had_they_cost_nothing() {
        assert_eq!(AnchorCostMeter::default().expected(0).captured, Bitrate::ZERO);
    }

    #[test]
    fn costly_anchors_are_thinned_out_rather_than_given_up() {
        assert_eq!(after(60, |_| 600_000).expected(2).sum(), MAX);
    }
}
