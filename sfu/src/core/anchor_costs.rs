//! Measured bitrates of a track's anchors, by their source.
//!
//! Bytes are averaged over [`TIME_CONSTANT_S`], as there may be one anchor in four seconds. While no subscriber holds a rung with
//! anchors, the mean returns to its assumed value: later anchors may be of another scene.

use windlass_types::AnchorSource;

/// Time constant of the mean, in seconds.
const TIME_CONSTANT_S: f64 = 8.0;
/// Assumed bitrate of captured anchors: a fifth of a quarter layer of 150 kbit/s. Measured were a tenth to two fifths
/// (`lab/notes/what-a-viewer-sees.md`).
const ASSUMED_CAPTURED_BPS: f64 = 30_000.0;
/// Assumed bitrate of enhanced anchors. One a second of a face takes 9 to 24 kbit/s (`lab/notes/enhanced-anchors.md`).
const ASSUMED_ENHANCED_BPS: f64 = 20_000.0;
/// Largest bitrate that a rung reserves for anchors: pacing drops some of those that take more.
const MAX_BPS: u64 = 120_000;

/// Expected bitrate of a rung's anchors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AnchorCosts {
    /// Bitrate of captured anchors, in bit/s.
    pub captured_bps: u64,
    /// How many octaves captured anchors are larger than the layer.
    pub captured_octaves: u8,
    /// Bitrate of enhanced anchors, in bit/s.
    pub enhanced_bps: u64,
}

impl AnchorCosts {
    /// Sum in bit/s.
    pub(super) fn bps(self) -> u64 {
        (self.captured_bps + self.enhanced_bps).min(MAX_BPS)
    }
}

#[derive(Debug, Clone, Copy)]
struct Meter {
    bytes: u64,
    bps: f64,
    assumed_bps: f64,
}

impl Meter {
    fn new(assumed_bps: f64) -> Meter {
        Meter { bytes: 0, bps: assumed_bps, assumed_bps }
    }

    fn update(&mut self, seconds: f64, active: bool) {
        let bytes = std::mem::take(&mut self.bytes) as f64;
        let now = if active { bytes * 8.0 / seconds } else { self.assumed_bps };
        self.bps += (now - self.bps) * (1.0 - (-seconds / TIME_CONSTANT_S).exp());
    }
}

/// The meters of one track.
#[derive(Debug)]
pub(super) struct AnchorCostMeter {
    captured: Meter,
    enhanced: Meter,
}

impl Default for AnchorCostMeter {
    fn default() -> AnchorCostMeter {
        AnchorCostMeter {
            captured: Meter::new(ASSUMED_CAPTURED_BPS),
            enhanced: Meter::new(ASSUMED_ENHANCED_BPS),
        }
    }
}

impl AnchorCostMeter {
    /// Counts an anchor.
    pub(super) fn count(&mut self, source: AnchorSource, bytes: usize) {
        let meter = match source {
            AnchorSource::Captured => &mut self.captured,
            AnchorSource::Enhanced => &mut self.enhanced,
        };
        meter.bytes += bytes as u64;
    }

    /// Updates the means after `seconds` in which anchors were made (`enhanced`), and the publisher's pixels were there (`captured`).
    pub(super) fn update(&mut self, seconds: f64, enhanced: bool, captured: bool) {
        self.captured.update(seconds, enhanced && captured);
        self.enhanced.update(seconds, enhanced);
    }

    /// Expected bitrates where captured anchors are `captured_octaves` larger than the layer; 0: there are none.
    pub(super) fn expected(&self, captured_octaves: u8) -> AnchorCosts {
        AnchorCosts {
            captured_bps: if captured_octaves > 0 { self.captured.bps as u64 } else { 0 },
            captured_octaves,
            enhanced_bps: self.enhanced.bps as u64,
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
            costs.update(1.0, true, true);
        }
        costs
    }

    #[test]
    fn a_still_in_four_seconds_costs_a_quarter_of_one_each_second() {
        let costs = after(60, |second| if second % 4 == 0 { 8000 } else { 0 }).expected(2);
        assert!((12_000..20_000).contains(&costs.captured_bps), "{costs:?}");
        assert!(costs.enhanced_bps < 100, "none was made: {costs:?}");
    }

    #[test]
    fn before_anything_is_measured_and_long_after_it_the_assumption_holds() {
        let mut costs = after(60, |_| 0);
        assert!(costs.expected(2).bps() < 100);
        for _ in 0..60 {
            costs.update(1.0, false, false);
        }
        let (now, first) = (costs.expected(2).bps(), AnchorCostMeter::default().expected(2).bps());
        assert!(now.abs_diff(first) < 1000, "{now} for {first}");
    }

    #[test]
    fn where_the_publishers_pixels_cannot_be_had_they_cost_nothing() {
        assert_eq!(AnchorCostMeter::default().expected(0).captured_bps, 0);
    }

    #[test]
    fn costly_anchors_are_thinned_out_rather_than_given_up() {
        assert_eq!(after(60, |_| 600_000).expected(2).bps(), MAX_BPS);
    }
}
