//! What the anchors of a track really take, by where they come from.
//!
//! Bytes are counted as anchors come and averaged over some seconds, as there may be one in four seconds. While none can come, since nobody
//! holds a rung with anchors, what is believed goes back to what is assumed: other times, other anchors.

use windlass_types::AnchorSource;

/// A mean reaches over so many seconds.
const SPAN_S: f64 = 8.0;
/// Stills take a tenth to two fifths of the quarter layer's bits (`lab/notes/what-a-viewer-sees.md`): a fifth of 150 kbit/s.
const CAPTURED_ASSUMED_BPS: f64 = 30_000.0;
/// An enhanced anchor a second takes 9 to 24 kbit/s of a face (`lab/notes/enhanced-anchors.md`).
const ENHANCED_ASSUMED_BPS: f64 = 20_000.0;
/// More than this a rung does not need: where anchors would take more, pacing thins them out.
const NEEDED_BPS: u64 = 120_000;

/// What anchors are expected to take of a subscriber's link, in bits per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnchorCosts {
    /// Those of the publisher's own pixels.
    pub captured_bps: u64,
    /// By how many octaves these are larger than the layer's.
    pub captured_octaves: u8,
    /// Those that super-resolution makes.
    pub enhanced_bps: u64,
}

impl AnchorCosts {
    /// All of them.
    pub fn bps(self) -> u64 {
        (self.captured_bps + self.enhanced_bps).min(NEEDED_BPS)
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

    fn second(&mut self, seconds: f64, made: bool) {
        let bytes = std::mem::take(&mut self.bytes) as f64;
        let now = if made { bytes * 8.0 / seconds } else { self.assumed_bps };
        self.bps += (now - self.bps) * (1.0 - (-seconds / SPAN_S).exp());
    }
}

/// The meters of one track.
#[derive(Debug)]
pub struct Costs {
    captured: Meter,
    enhanced: Meter,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            captured: Meter::new(CAPTURED_ASSUMED_BPS),
            enhanced: Meter::new(ENHANCED_ASSUMED_BPS),
        }
    }
}

impl Costs {
    /// Counts an anchor.
    pub fn count(&mut self, source: AnchorSource, bytes: usize) {
        let meter = match source {
            AnchorSource::Captured => &mut self.captured,
            AnchorSource::Enhanced => &mut self.enhanced,
        };
        meter.bytes += bytes as u64;
    }

    /// So many seconds have passed, in which anchors could be `made`, or captured.
    pub fn second(&mut self, seconds: f64, made: bool, captured: bool) {
        self.captured.second(seconds, made && captured);
        self.enhanced.second(seconds, made);
    }

    /// What is to be expected where the publisher's own pixels can be had, larger than the layer by so many octaves; 0: they cannot.
    pub fn expected(&self, captured_octaves: u8) -> AnchorCosts {
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

    fn after(seconds: usize, bytes: impl Fn(usize) -> usize) -> Costs {
        let mut costs = Costs::default();
        for second in 0..seconds {
            costs.count(AnchorSource::Captured, bytes(second));
            costs.second(1.0, true, true);
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
            costs.second(1.0, false, false);
        }
        let (now, first) = (costs.expected(2).bps(), Costs::default().expected(2).bps());
        assert!(now.abs_diff(first) < 1000, "{now} for {first}");
    }

    #[test]
    fn where_the_publishers_pixels_cannot_be_had_they_cost_nothing() {
        assert_eq!(Costs::default().expected(0).captured_bps, 0);
    }

    #[test]
    fn costly_anchors_are_thinned_out_rather_than_given_up() {
        assert_eq!(after(60, |_| 600_000).expected(2).bps(), NEEDED_BPS);
    }
}
