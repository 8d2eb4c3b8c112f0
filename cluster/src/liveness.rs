//! Whether a worker still answers. Pings are sent at equal intervals; a worker that leaves one unanswered for too long
//! has failed, whatever the state of its connection. Source: decision 011.
//!
//! Pure: every time is an argument.

use std::time::{Duration, Instant};

use crate::clock::RoundTrip;

/// Interval between two pings.
pub const PING_INTERVAL: Duration = Duration::from_millis(100);
/// Time without an answer after which a worker has failed: four pings, so that a retransmitted packet is no failure.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(400);
/// Number of unanswered pings without which no worker has failed, whatever the time: this machine may have stood still.
const MIN_UNANSWERED: usize = 3;
/// Maximum number of unanswered pings that are remembered.
const MAX_OPEN: usize = 16;

/// The pings of one stream.
#[derive(Debug)]
pub struct Liveness {
    /// Number of the last ping.
    number: u64,
    /// Unanswered pings with the time at which they were sent, the oldest first.
    open: Vec<(u64, Instant)>,
    /// Time of the last answer, or of the beginning.
    answered: Instant,
    round_trip: RoundTrip,
}

impl Liveness {
    /// The pings of a stream that begins at `now`.
    pub fn new(now: Instant) -> Self {
        Liveness { number: 0, open: Vec::new(), answered: now, round_trip: RoundTrip::default() }
    }

    /// Notes that a ping is sent. Returns its number.
    pub fn ping(&mut self, now: Instant) -> u64 {
        self.number += 1;
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push((self.number, now));
        self.number
    }

    /// Takes the answer to a ping. Unknown numbers are ignored.
    pub fn pong(&mut self, number: u64, now: Instant) {
        let Some(at) = self.open.iter().position(|ping| ping.0 == number) else { return };
        let sent = self.open[at].1;
        // Streams keep their order: earlier pings will not be answered any more.
        self.open.drain(..=at);
        self.answered = now;
        self.round_trip.measured(now.saturating_duration_since(sent));
    }

    /// Smoothed round trip of a message to the worker and back.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.get()
    }

    /// Whether the worker has failed.
    pub fn has_timed_out(&self, now: Instant) -> bool {
        self.open.len() >= MIN_UNANSWERED
            && now.saturating_duration_since(self.answered) >= ANSWER_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_lives_and_who_does_not_has_timed_out() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        let mut now = start;
        for _ in 0..50 {
            let number = liveness.ping(now);
            liveness.pong(number, now + Duration::from_millis(20));
            now += PING_INTERVAL;
            assert!(!liveness.has_timed_out(now));
        }
        assert_eq!(liveness.round_trip(), Duration::from_millis(20));
        let last = now;
        while !liveness.has_timed_out(now) {
            liveness.ping(now);
            now += PING_INTERVAL;
        }
        assert!(now - last <= ANSWER_TIMEOUT + PING_INTERVAL, "{:?}", now - last);
    }

    #[test]
    fn answers_to_what_was_never_asked_say_nothing() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        let mut number = 0;
        for _ in 0..MIN_UNANSWERED {
            number = liveness.ping(start);
        }
        liveness.pong(number + 7, start + ANSWER_TIMEOUT);
        assert!(liveness.has_timed_out(start + ANSWER_TIMEOUT));
        liveness.pong(number, start + ANSWER_TIMEOUT);
        assert!(!liveness.has_timed_out(start + ANSWER_TIMEOUT));
        liveness.pong(number, start + 9 * ANSWER_TIMEOUT);
        assert_eq!(liveness.round_trip(), ANSWER_TIMEOUT, "the second answer to the same ping");
    }

    #[test]
    fn who_was_not_asked_while_this_machine_stood_still_has_not_failed() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        liveness.ping(start);
        let after = start + 20 * ANSWER_TIMEOUT;
        assert!(!liveness.has_timed_out(after));
        for n in 0..2 {
            liveness.ping(after + n * PING_INTERVAL);
        }
        assert!(liveness.has_timed_out(after + 2 * PING_INTERVAL), "but then");
    }

    #[test]
    fn a_late_answer_is_an_answer_and_the_ones_before_it_are_not_waited_for() {
        let start = Instant::now();
        let mut liveness = Liveness::new(start);
        let first = liveness.ping(start);
        let second = liveness.ping(start + PING_INTERVAL);
        liveness.pong(second, start + 2 * PING_INTERVAL);
        assert_eq!(liveness.round_trip(), PING_INTERVAL);
        liveness.pong(first, start + 3 * PING_INTERVAL);
        assert_eq!(liveness.round_trip(), PING_INTERVAL);
    }
}
