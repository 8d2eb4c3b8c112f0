//! Which frame of one encoding shows what a frame of another one shows: they are of the same camera.
//!
//! Every encoding has RTP timestamps of its own. In each, a frame has the camera's capture time at 90 kHz plus a
//! constant, so two encodings differ by one constant, their *shift*. Sender reports say at which wall-clock time
//! which timestamp was due, rounded to milliseconds; that tells the shift well enough to know which frames belong
//! together, and these tell it to the tick (measured: `client-web/src/worker/regions/frame-clock.ts`). A shift counts once two pairs of frames have agreed about it.
//! When frames no longer meet by it, or sender reports contradict it (the camera was exchanged, an encoder began anew),
//! it is found again.

use std::collections::VecDeque;
use std::time::SystemTime;

use windlass_types::Layer;

/// What a sender report says: a wall-clock time of the sender, and the RTP timestamp that was due then.
pub type Report = (SystemTime, u32);

/// Frames whose timestamps are remembered: 2 s at 30 per second.
const REMEMBERED: usize = 64;
/// How far what sender reports tell may be off, in ticks of 90 kHz: 8 ms, half the distance of frames at 60 per second.
const TOLERANCE: u32 = 720;
/// How far apart the two timestamps of one frame may lie by their shift: a camera's do not differ by a tick, but those of other
/// sources (a canvas) come from clocks that each sender smooths for itself, and one frame a second smooths slowly. Seen: more than 3 ms,
/// in half of all connections. At 60 frames a second the next frame is twice as far.
const JITTER: u32 = TOLERANCE;
/// After so many frames without a counterpart a shift is looked for anew.
const MISSES: u32 = 8;
const CLOCK: f64 = 90_000.0;

#[derive(Debug, Default)]
struct Lane {
    report: Option<Report>,
    frames: VecDeque<u32>,
}

impl Lane {
    /// The frame nearest to a timestamp, within so many ticks.
    fn nearest(&self, timestamp: u32, within: u32) -> Option<u32> {
        let nearest = self.frames.iter().copied().min_by_key(|&f| distance(f, timestamp))?;
        (distance(nearest, timestamp) <= within).then_some(nearest)
    }
}

/// What to add to a timestamp of one timeline for that of another.
#[derive(Debug, Clone, Copy)]
struct Shift {
    ticks: u32,
    /// Another pair of frames has agreed.
    certain: bool,
    /// The frame that it was first seen by.
    seen_by: u32,
    misses: u32,
}

/// The timelines of one track: see the module.
#[derive(Debug, Default)]
pub struct Alignment {
    lanes: [Lane; 3],
    shifts: [[Option<Shift>; 3]; 3],
}

impl Alignment {
    /// A packet of a frame came; `report` is what its sender last said.
    pub fn saw(&mut self, of: Layer, timestamp: u32, report: Option<Report>) {
        let lane = &mut self.lanes[of as usize];
        if report.is_some() {
            lane.report = report;
        }
        // Most packets are of the newest frame.
        if lane.frames.iter().rev().any(|&frame| frame == timestamp) {
            return;
        }
        if lane.frames.len() == REMEMBERED {
            lane.frames.pop_front();
        }
        lane.frames.push_back(timestamp);
    }

    /// The timestamp that the camera frame of `timestamp` has in the layer `to`; `None` while that is not known to
    /// the tick. The layer may lack the frame all the same.
    pub fn map(&mut self, from: Layer, timestamp: u32, to: Layer) -> Option<u32> {
        let told = self.told(from, to);
        let lane = &self.lanes[to as usize];
        let shift = &mut self.shifts[from as usize][to as usize];
        if let Some(known) = shift {
            let place = timestamp.wrapping_add(known.ticks);
            let met = lane.nearest(place, JITTER);
            known.misses = if met.is_some() { 0 } else { known.misses + 1 };
            if met.is_some() && known.seen_by != timestamp {
                known.certain = true;
            }
            let contradicted = told.is_some_and(|told| distance(told, known.ticks) > 2 * TOLERANCE);
            if known.misses < MISSES && !contradicted && (known.certain || met.is_some()) {
                return known.certain.then_some(met.unwrap_or(place));
            }
            *shift = None;
        }
        if let Some(nearest) = lane.nearest(timestamp.wrapping_add(told?), TOLERANCE) {
            let ticks = nearest.wrapping_sub(timestamp);
            *shift = Some(Shift { ticks, certain: false, seen_by: timestamp, misses: 0 });
        }
        None
    }

    /// The shift by sender reports alone.
    fn told(&self, from: Layer, to: Layer) -> Option<u32> {
        let (from_time, from_rtp) = self.lanes[from as usize].report?;
        let (to_time, to_rtp) = self.lanes[to as usize].report?;
        let later = match from_time.duration_since(to_time) {
            Ok(later) => later.as_secs_f64(),
            Err(earlier) => -earlier.duration().as_secs_f64(),
        };
        // Wraps as timestamps do; reports that are hours apart tell nothing but a number.
        let ticks = (later * CLOCK).round() as i64 as u32;
        Some(to_rtp.wrapping_add(ticks).wrapping_sub(from_rtp))
    }
}

/// Ticks between two timestamps, whichever comes first.
fn distance(a: u32, b: u32) -> u32 {
    (a.wrapping_sub(b) as i32).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const LOW: Layer = Layer::Q;
    const HIGH: Layer = Layer::H;

    /// A camera whose two encodings begin their timestamps anywhere.
    struct Sender {
        low: u32,
        high: u32,
        /// Errors of the reports, in ticks.
        error: (i32, i32),
    }

    impl Sender {
        /// The timestamps of the frame captured at a tick.
        fn frame(&self, tick: u32) -> (u32, u32) {
            (self.low.wrapping_add(tick), self.high.wrapping_add(tick))
        }

        fn reports(&self, tick: u32) -> (Report, Report) {
            let at = |ms: u32, error: i32, begin: u32| {
                let time =
                    SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + u64::from(ms));
                (time, begin.wrapping_add(ms * 90).wrapping_add_signed(error))
            };
            let ms = tick / 90;
            (at(ms, self.error.0, self.low), at(ms + 300, self.error.1, self.high))
        }

        /// Lets both encodings' frame be seen and maps the higher one's.
        fn pass(&self, alignment: &mut Alignment, tick: u32) -> Option<u32> {
            let ((low, high), reports) = (self.frame(tick), self.reports(tick));
            alignment.saw(LOW, low, Some(reports.0));
            alignment.saw(HIGH, high, Some(reports.1));
            alignment.map(HIGH, high, Layer::Q)
        }
    }

    proptest! {
        #[test]
        fn frames_meet_to_the_tick_whatever_reports_round(
            low: u32, high: u32, error in (-180i32..=180, -180i32..=180), gap in 1500u32..9000,
        ) {
            let (sender, mut alignment) = (Sender { low, high, error }, Alignment::default());
            for n in 0..200 {
                let mapped = sender.pass(&mut alignment, n * gap);
                prop_assert_eq!(mapped, (n > 0).then_some(sender.frame(n * gap).0));
            }
        }

        #[test]
        fn no_input_panics(
            calls in proptest::collection::vec((0usize..3, any::<u32>(), any::<Option<(u32, u32)>>(), 0usize..3), 0..60),
        ) {
            let mut alignment = Alignment::default();
            for (of, timestamp, report, to) in calls {
                let report = report
                    .map(|(s, rtp)| (SystemTime::UNIX_EPOCH + Duration::from_secs(s.into()), rtp));
                alignment.saw(Layer::ALL[of], timestamp, report);
                alignment.map(Layer::ALL[of], timestamp, Layer::ALL[to]);
            }
        }
    }

    #[test]
    fn frames_of_a_source_whose_clocks_waver_meet() {
        let (sender, mut alignment) = (SENDER, Alignment::default());
        let mut met = 0;
        for n in 0..60 {
            let tick = n * 3000;
            let ((low, high), reports) = (sender.frame(tick), sender.reports(tick));
            alignment.saw(LOW, low, Some(reports.0));
            // 5 ms early, then 5 ms late.
            let wavering = high.wrapping_add_signed(if n % 2 == 0 { -225 } else { 225 });
            alignment.saw(HIGH, wavering, Some(reports.1));
            met += usize::from(alignment.map(HIGH, wavering, Layer::Q) == Some(low));
        }
        assert!(met >= 58, "{met} of 60");
    }

    const SENDER: Sender = Sender { low: 7, high: u32::MAX - 40_000, error: (90, -90) };

    #[test]
    fn without_sender_reports_nothing_is_known() {
        let mut alignment = Alignment::default();
        for n in 0..20 {
            let (low, high) = SENDER.frame(n * 3000);
            alignment.saw(LOW, low, None);
            alignment.saw(HIGH, high, None);
            assert_eq!(alignment.map(HIGH, high, Layer::Q), None);
        }
    }

    #[test]
    fn a_frame_that_the_layer_lacks_still_has_its_place() {
        let mut alignment = Alignment::default();
        for n in 0..3 {
            SENDER.pass(&mut alignment, n * 3000);
        }
        let (low, high) = SENDER.frame(9000);
        alignment.saw(HIGH, high, None);
        assert_eq!(alignment.map(HIGH, high, Layer::Q), Some(low));
    }

    #[test]
    fn a_timeline_that_begins_anew_is_followed() {
        let mut alignment = Alignment::default();
        for n in 0..3 {
            SENDER.pass(&mut alignment, n * 3000);
        }
        let other = Sender { low: SENDER.low, high: 5_000_000, error: (0, 0) };
        let later: Vec<_> = (3..20)
            .map(|n| other.pass(&mut alignment, n * 3000) == Some(other.frame(n * 3000).0))
            .collect();
        assert!(later[2..].iter().all(|&right| right), "{later:?}");
    }

    #[test]
    fn a_millisecond_of_jitter_is_no_other_frame() {
        let mut alignment = Alignment::default();
        for n in 0..40u32 {
            let ((low, high), reports) = (SENDER.frame(n * 3000), SENDER.reports(n * 3000));
            let high = high.wrapping_add_signed([0, 90, -90, 90][n as usize % 4]);
            alignment.saw(LOW, low, Some(reports.0));
            alignment.saw(HIGH, high, Some(reports.1));
            assert_eq!(alignment.map(HIGH, high, Layer::Q), (n > 0).then_some(low), "frame {n}");
        }
    }

    #[test]
    fn a_shift_seen_once_is_not_believed() {
        let mut alignment = Alignment::default();
        assert_eq!(SENDER.pass(&mut alignment, 0), None);
        // The same frame again proves nothing.
        assert_eq!(SENDER.pass(&mut alignment, 0), None);
        assert!(SENDER.pass(&mut alignment, 3000).is_some());
    }
}
