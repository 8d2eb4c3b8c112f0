//! Finds the frames of two simulcast layers that show the same camera frame.
//!
//! Each layer has its own RTP timestamps: the capture time at 90 kHz plus a constant. So the timestamps of two layers
//! differ by a constant *shift*. Sender reports (RFC 3550 §6.4.1) map timestamps to wall-clock time, rounded to
//! milliseconds. That is enough to pair frames, and a pair yields the shift to the tick (measured in
//! `client-web/src/worker/regions/frame-clock.ts`). A shift is certain once a second pair confirms it. It is measured
//! again when frames miss it, or when sender reports contradict it: the camera was exchanged, or an encoder restarted.

use std::collections::VecDeque;

use windlass_types::Layer;
use windlass_types::recording::SenderReport;

/// Number of frames of each layer whose timestamps are kept: 2 s at 30 frames a second.
const MAX_FRAMES: usize = 64;
/// Error of a shift from sender reports, in ticks of 90 kHz: 8 ms, half a frame interval at 60 frames a second.
const TOLERANCE: u32 = 720;
/// Error of a measured shift for one frame, in ticks. A camera has none. Other sources (a canvas) have clocks that each
/// sender smooths by itself: more than 3 ms in half of all connections. The next frame at 60 frames a second is twice
/// as far.
const MAX_JITTER: u32 = TOLERANCE;
/// Number of consecutive frames without a counterpart after which a shift is measured again.
const MAX_MISSES: u32 = 8;
/// RTP clock rate of video, in Hz.
const CLOCK_HZ: f64 = 90_000.0;

#[derive(Debug, Default)]
struct Timeline {
    report: Option<SenderReport>,
    frames: VecDeque<u32>,
}

impl Timeline {
    /// The frame with the timestamp nearest to `timestamp`, at most `within` ticks away.
    fn nearest(&self, timestamp: u32, within: u32) -> Option<u32> {
        let nearest = self.frames.iter().copied().min_by_key(|&f| distance(f, timestamp))?;
        (distance(nearest, timestamp) <= within).then_some(nearest)
    }
}

/// The difference between the timestamps of two layers.
#[derive(Debug, Clone, Copy)]
struct Shift {
    ticks: u32,
    /// Whether a second pair of frames has confirmed the shift.
    certain: bool,
    /// Timestamp of the first pair.
    first_frame: u32,
    misses: u32,
}

/// The layers of one track.
#[derive(Debug, Default)]
pub(crate) struct Alignment {
    timelines: [Timeline; 3],
    shifts: [[Option<Shift>; 3]; 3],
}

impl Alignment {
    /// Takes a packet's timestamp, and the last sender report of its layer.
    pub(crate) fn on_packet(&mut self, of: Layer, timestamp: u32, report: Option<SenderReport>) {
        let timeline = &mut self.timelines[of as usize];
        if report.is_some() {
            timeline.report = report;
        }
        // Newest first: most packets are of the newest frame.
        if timeline.frames.iter().rev().any(|&frame| frame == timestamp) {
            return;
        }
        if timeline.frames.len() == MAX_FRAMES {
            timeline.frames.pop_front();
        }
        timeline.frames.push_back(timestamp);
    }

    /// The timestamp in layer `to` of the camera frame with `timestamp` in layer `from`; `None` while the shift is not
    /// certain. Layer `to` may lack the frame.
    pub(crate) fn map(&mut self, from: Layer, timestamp: u32, to: Layer) -> Option<u32> {
        let reported = self.reported_shift(from, to);
        let timeline = &self.timelines[to as usize];
        let shift = &mut self.shifts[from as usize][to as usize];
        if let Some(known) = shift {
            let place = timestamp.wrapping_add(known.ticks);
            let met = timeline.nearest(place, MAX_JITTER);
            known.misses = if met.is_some() { 0 } else { known.misses + 1 };
            if met.is_some() && known.first_frame != timestamp {
                known.certain = true;
            }
            let contradicted =
                reported.is_some_and(|ticks| distance(ticks, known.ticks) > 2 * TOLERANCE);
            if known.misses < MAX_MISSES && !contradicted && (known.certain || met.is_some()) {
                return known.certain.then_some(met.unwrap_or(place));
            }
            *shift = None;
        }
        if let Some(nearest) = timeline.nearest(timestamp.wrapping_add(reported?), TOLERANCE) {
            let ticks = nearest.wrapping_sub(timestamp);
            *shift = Some(Shift { ticks, certain: false, first_frame: timestamp, misses: 0 });
        }
        None
    }

    /// The shift between two layers by their sender reports, exact to [`TOLERANCE`].
    fn reported_shift(&self, from: Layer, to: Layer) -> Option<u32> {
        let SenderReport { time: from_time, rtp: from_rtp } =
            self.timelines[from as usize].report?;
        let SenderReport { time: to_time, rtp: to_rtp } = self.timelines[to as usize].report?;
        let later = match from_time.duration_since(to_time) {
            Ok(later) => later.as_secs_f64(),
            Err(earlier) => -earlier.duration().as_secs_f64(),
        };
        // Wraps as timestamps do. Of reports that are hours apart the result is meaningless, but no error.
        let ticks = (later * CLOCK_HZ).round() as i64 as u32;
        Some(to_rtp.wrapping_add(ticks).wrapping_sub(from_rtp))
    }
}

/// Ticks between two timestamps, in either order.
fn distance(a: u32, b: u32) -> u32 {
    (a.wrapping_sub(b) as i32).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

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

        fn reports(&self, tick: u32) -> (SenderReport, SenderReport) {
            let at = |ms: u32, error: i32, begin: u32| {
                let time =
                    SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + u64::from(ms));
                let rtp = begin.wrapping_add(ms * 90).wrapping_add_signed(error);
                SenderReport { time, rtp }
            };
            let ms = tick / 90;
            (at(ms, self.error.0, self.low), at(ms + 300, self.error.1, self.high))
        }

        /// Lets both encodings' frame be seen and maps the higher one's.
        fn pass(&self, alignment: &mut Alignment, tick: u32) -> Option<u32> {
            let ((low, high), reports) = (self.frame(tick), self.reports(tick));
            alignment.on_packet(LOW, low, Some(reports.0));
            alignment.on_packet(HIGH, high, Some(reports.1));
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
                let time = |s: u32| SystemTime::UNIX_EPOCH + Duration::from_secs(s.into());
                let report = report.map(|(s, rtp)| SenderReport { time: time(s), rtp });
                alignment.on_packet(Layer::ALL[of], timestamp, report);
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
            alignment.on_packet(LOW, low, Some(reports.0));
            // 5 ms early, then 5 ms late.
            let wavering = high.wrapping_add_signed(if n % 2 == 0 { -225 } else { 225 });
            alignment.on_packet(HIGH, wavering, Some(reports.1));
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
            alignment.on_packet(LOW, low, None);
            alignment.on_packet(HIGH, high, None);
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
        alignment.on_packet(HIGH, high, None);
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
            alignment.on_packet(LOW, low, Some(reports.0));
            alignment.on_packet(HIGH, high, Some(reports.1));
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
