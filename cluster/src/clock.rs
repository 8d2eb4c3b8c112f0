//! Times of one machine on the clock of another. Messages carry spans (the age of a frame), and each side computes with
//! its own clock.
//!
//! Pure: every time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::Epoch;

/// Number of frames of a stream whose arrival is remembered: some seconds.
const MAX_ARRIVALS: usize = 512;
/// Weight of a new measurement in the smoothed round trip.
const SMOOTHING: f64 = 0.25;
/// Upper bound of spans in messages of others.
const MAX_SPAN: Duration = Duration::from_secs(60);

/// The smoothed round trip of a stream, from its pings.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip(Option<f64>);

impl RoundTrip {
    /// Takes a measurement.
    pub fn measured(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.0 = Some(self.0.map_or(took, |known| known + SMOOTHING * (took - known)));
    }

    /// The smoothed round trip; zero before the first measurement.
    pub fn get(self) -> Duration {
        Duration::from_secs_f64(self.0.unwrap_or_default())
    }
}

/// Times of a frame in a message.
#[derive(Debug, Clone, Copy)]
pub struct FrameAge {
    /// Time from the frame's arrival at the SFU to the sending of the message.
    pub age: Duration,
    /// Maximum age of the frame when its anchor is back at the SFU.
    pub within: Duration,
}

/// The arrival of a frame for the worker's scheduler, which hands the anchor over at most `deadline` later.
///
/// Chosen so that `arrival + deadline` is when the anchor must leave for the SFU. A frame that is too late must still
/// be decoded: its arrival is so long ago that no anchor is made of it.
pub fn arrival(
    now: Instant,
    FrameAge { age, within }: FrameAge,
    round_trip: Duration,
    deadline: Duration,
) -> Instant {
    let passed = age.saturating_add(round_trip);
    // The worker's own deadline may be longer or shorter than what the SFU allows.
    let ready = now + within.min(MAX_SPAN);
    let back = passed.min(MAX_SPAN).saturating_add(deadline.min(MAX_SPAN));
    ready.checked_sub(back).unwrap_or(now)
}

/// Arrival times of a stream's frames at the SFU.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(VecDeque<(Epoch, u32, Instant)>);

impl Arrivals {
    /// Remembers a frame that was sent to the worker.
    pub fn sent(&mut self, epoch: Epoch, rtp_timestamp: u32, arrival: Instant) {
        if self.0.len() >= MAX_ARRIVALS {
            self.0.pop_front();
        }
        self.0.push_back((epoch, rtp_timestamp, arrival));
    }

    /// When the frame of an anchor arrived; `None`: unknown, or too long ago.
    pub fn of(&self, epoch: Epoch, rtp_timestamp: u32) -> Option<Instant> {
        let newest_first = self.0.iter().rev();
        newest_first.clone().find(|f| (f.0, f.1) == (epoch, rtp_timestamp)).map(|f| f.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn on_one_machine_a_frame_arrived_when_it_did() {
        let came = Instant::now();
        let now = came + 5 * MS;
        assert_eq!(
            arrival(now, FrameAge { age: 5 * MS, within: 140 * MS }, Duration::ZERO, 140 * MS),
            came
        );
    }

    #[test]
    fn the_way_there_and_back_comes_off_what_is_left() {
        let now = Instant::now() + Duration::from_secs(100);
        let at = arrival(now, FrameAge { age: 5 * MS, within: 140 * MS }, 30 * MS, 140 * MS);
        assert_eq!(at + 35 * MS, now);
        // A worker that allows itself 200 ms has the anchor ready at the same time.
        let other = arrival(now, FrameAge { age: 5 * MS, within: 140 * MS }, 30 * MS, 200 * MS);
        assert_eq!(at + 140 * MS, other + 200 * MS);
    }

    #[test]
    fn spans_that_make_no_sense_do_no_harm() {
        let now = Instant::now();
        for (age, within) in
            [(Duration::MAX, MS), (MS, Duration::MAX), (Duration::MAX, Duration::MAX)]
        {
            let at = arrival(now, FrameAge { age, within }, Duration::MAX, Duration::MAX);
            assert!(at <= now + 2 * MAX_SPAN);
        }
    }

    #[test]
    fn the_round_trip_follows_its_measurements() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.get(), Duration::ZERO);
        trip.measured(40 * MS);
        assert_eq!(trip.get(), 40 * MS);
        (0..30).for_each(|_| trip.measured(10 * MS));
        assert!(trip.get() < 11 * MS && trip.get() > 9 * MS);
    }

    #[test]
    fn frames_are_known_by_epoch_and_timestamp_and_not_for_ever() {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        arrivals.sent(Epoch(1), 7, now);
        arrivals.sent(Epoch(2), 7, now + MS);
        assert_eq!(arrivals.of(Epoch(1), 7), Some(now));
        assert_eq!(arrivals.of(Epoch(2), 7), Some(now + MS));
        assert_eq!(arrivals.of(Epoch(2), 8), None);
        (0..MAX_ARRIVALS as u32).for_each(|n| arrivals.sent(Epoch(3), n, now));
        assert_eq!(arrivals.of(Epoch(2), 7), None);
    }
}
