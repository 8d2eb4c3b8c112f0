//! Times of one machine on another: what is left of a frame's budget travels, and each side reads it on its own clock.
//!
//! Pure: every time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::Epoch;

/// Frames whose arrival is remembered: some seconds of a stream.
const REMEMBERED: usize = 512;
/// Share of a new measurement in the round trip that is reckoned with.
const NEW: f64 = 0.25;

/// The round trip of a stream, from its pings.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip(Option<f64>);

impl RoundTrip {
    /// A ping was answered after so long.
    pub fn measured(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.0 = Some(self.0.map_or(took, |known| known + NEW * (took - known)));
    }

    /// What is reckoned with; zero before the first answer.
    pub fn get(self) -> Duration {
        Duration::from_secs_f64(self.0.unwrap_or_default())
    }
}

/// When a frame reached the SFU, on the worker's clock, for a scheduler that hands its anchor over at most `deadline` after that:
/// so that this is when the SFU needs it, less its way back.
///
/// `age` is since its arrival when it was sent, `within` how old its anchor may be when the SFU has it. A frame that is late by
/// then still has to be decoded; its arrival is so long ago that no anchor is made of it.
pub fn arrival(
    now: Instant,
    (age, within): (Duration, Duration),
    round_trip: Duration,
    deadline: Duration,
) -> Instant {
    let passed = age.saturating_add(round_trip);
    // What the worker's own deadline is longer, or shorter, than what the SFU allows.
    let ready = now + within.min(MOST);
    let back = passed.min(MOST).saturating_add(deadline.min(MOST));
    ready.checked_sub(back).unwrap_or(now)
}

/// No span of a stream is longer: what others send may say anything.
const MOST: Duration = Duration::from_secs(60);

/// When the frames of a stream reached the SFU.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(VecDeque<(Epoch, u32, Instant)>);

impl Arrivals {
    /// A frame was sent to the worker.
    pub fn sent(&mut self, epoch: Epoch, rtp_timestamp: u32, arrival: Instant) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((epoch, rtp_timestamp, arrival));
    }

    /// When the frame of an anchor did; `None` if it was none of this stream's, or too long ago.
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
        assert_eq!(arrival(now, (5 * MS, 140 * MS), Duration::ZERO, 140 * MS), came);
    }

    #[test]
    fn the_way_there_and_back_comes_off_what_is_left() {
        let now = Instant::now() + Duration::from_secs(100);
        let at = arrival(now, (5 * MS, 140 * MS), 30 * MS, 140 * MS);
        assert_eq!(at + 35 * MS, now);
        // A worker that allows itself 200 ms has the anchor ready at the same time.
        let other = arrival(now, (5 * MS, 140 * MS), 30 * MS, 200 * MS);
        assert_eq!(at + 140 * MS, other + 200 * MS);
    }

    #[test]
    fn spans_that_make_no_sense_do_no_harm() {
        let now = Instant::now();
        for (age, within) in
            [(Duration::MAX, MS), (MS, Duration::MAX), (Duration::MAX, Duration::MAX)]
        {
            let at = arrival(now, (age, within), Duration::MAX, Duration::MAX);
            assert!(at <= now + 2 * MOST);
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
        (0..REMEMBERED as u32).for_each(|n| arrivals.sent(Epoch(3), n, now));
        assert_eq!(arrivals.of(Epoch(2), 7), None);
    }
}
