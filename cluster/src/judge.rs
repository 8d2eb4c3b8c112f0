//! Whether a worker still answers: pings go out at equal times, and one that is not answered in time condemns it, whatever its connection
//! says. Source: decision 011.
//!
//! Pure: every time is an argument.

use std::time::{Duration, Instant};

use crate::clock::RoundTrip;

/// Between two pings.
pub const PING_EVERY: Duration = Duration::from_millis(100);
/// A worker that has not answered a ping for so long hangs, or its link is cut. Four pings: a lost packet that is sent again does not count.
pub const SILENT: Duration = Duration::from_millis(400);

/// The pings of one stream.
#[derive(Debug)]
pub struct Judge {
    /// Of the last ping that was sent.
    number: u64,
    /// Those that were not answered, the oldest first.
    open: Vec<(u64, Instant)>,
    /// When the worker was last known to live.
    heard: Instant,
    round_trip: RoundTrip,
}

impl Judge {
    /// A stream that begins now has as long to answer as any.
    pub fn new(now: Instant) -> Self {
        Judge { number: 0, open: Vec::new(), heard: now, round_trip: RoundTrip::default() }
    }

    /// A ping is sent: its number.
    pub fn ping(&mut self, now: Instant) -> u64 {
        self.number += 1;
        // Answers that never come must not pile up.
        if self.open.len() >= 16 {
            self.open.remove(0);
        }
        self.open.push((self.number, now));
        self.number
    }

    /// An answer has come. Numbers that were never sent, or answered before, say nothing.
    pub fn pong(&mut self, number: u64, now: Instant) {
        let Some(at) = self.open.iter().position(|ping| ping.0 == number) else { return };
        let sent = self.open[at].1;
        // Those before it will not be answered any more: the stream keeps its order.
        self.open.drain(..=at);
        self.heard = now;
        self.round_trip.measured(now.saturating_duration_since(sent));
    }

    /// How long a message takes there and back.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.get()
    }

    /// Whether it has been silent for too long.
    pub fn is_silent(&self, now: Instant) -> bool {
        !self.open.is_empty() && now.saturating_duration_since(self.heard) >= SILENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_lives_and_who_does_not_is_silent() {
        let start = Instant::now();
        let mut judge = Judge::new(start);
        let mut now = start;
        for _ in 0..50 {
            let number = judge.ping(now);
            judge.pong(number, now + Duration::from_millis(20));
            now += PING_EVERY;
            assert!(!judge.is_silent(now));
        }
        assert_eq!(judge.round_trip(), Duration::from_millis(20));
        let last = now;
        while !judge.is_silent(now) {
            judge.ping(now);
            now += PING_EVERY;
        }
        assert!(now - last <= SILENT + PING_EVERY, "{:?}", now - last);
    }

    #[test]
    fn answers_to_what_was_never_asked_say_nothing() {
        let start = Instant::now();
        let mut judge = Judge::new(start);
        let number = judge.ping(start);
        judge.pong(number + 7, start + SILENT);
        assert!(judge.is_silent(start + SILENT));
        judge.pong(number, start + SILENT);
        assert!(!judge.is_silent(start + SILENT));
        judge.pong(number, start + 9 * SILENT);
        assert_eq!(judge.round_trip(), SILENT, "the second answer to the same ping");
    }

    #[test]
    fn a_late_answer_is_an_answer_and_the_ones_before_it_are_not_waited_for() {
        let start = Instant::now();
        let mut judge = Judge::new(start);
        let first = judge.ping(start);
        let second = judge.ping(start + PING_EVERY);
        judge.pong(second, start + 2 * PING_EVERY);
        assert_eq!(judge.round_trip(), PING_EVERY);
        judge.pong(first, start + 3 * PING_EVERY);
        assert_eq!(judge.round_trip(), PING_EVERY);
    }
}
