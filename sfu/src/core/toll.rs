//! What a connection's input costs its media thread, and who has had too much of it.
//!
//! Input is bounded where it is known what it can make the stack do; this is for what is not known. Whoever takes more than its share
//! of the thread has what it sends dropped until the rest has caught up, and one that goes on so is removed: others' media
//! waits for it meanwhile. Charged is the time that the stack takes with what a client has sent, and nothing that is done with it
//! afterwards: a publisher does not pay for those who watch it. Nor does it pay for what others send in its name, from an address that is not theirs:
//! only what has been decrypted is charged.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::used::Used;

/// The part of a thread's time that one connection may take: a twentieth. Three layers of full HD take a hundredth.
const SHARE: u32 = 20;
/// What it may take at once: a connection's begin, or many packets that have waited.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The most that one datagram is charged: what takes longer is seldom the stack's doing. A processor that is taken from a virtual
/// machine counts as its work.
const EACH: Duration = Duration::from_millis(20);
/// Seconds in a row in which it had more than that, and is removed.
const SECONDS: u32 = 5;

thread_local! {
    static PROVED: Cell<bool> = const { Cell::new(false) };
}

/// Something has been decrypted.
pub fn prove() {
    PROVED.set(true);
}

/// Whether something has been since this was asked last.
pub fn proved() -> bool {
    PROVED.take()
}

/// What one connection has taken.
#[derive(Debug, Default)]
pub struct Toll {
    /// By the time in which its share suffices for it.
    taken: Used,
    /// Whether something was dropped in this second; and in how many before it.
    dropped: bool,
    seconds: u32,
}

impl Toll {
    /// Whether something that comes now may be taken in.
    pub fn admit(&mut self, now: Instant) -> bool {
        let admitted = self.taken.is_within(now, AT_ONCE * SHARE);
        self.dropped |= !admitted;
        admitted
    }

    /// It took so much time.
    pub fn charge(&mut self, now: Instant, took: Duration) {
        self.taken.add(now, took.min(EACH) * SHARE);
    }

    /// A second has passed; whether it had too much in too many.
    pub fn second(&mut self) -> bool {
        self.seconds = if std::mem::take(&mut self.dropped) { self.seconds + 1 } else { 0 };
        self.seconds >= SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Datagrams that each take so long, so many a second: how many are taken in, and when their connection is to be removed.
    fn sends(rate: u32, takes: Duration, seconds: u32) -> (u32, Option<u32>) {
        let (mut toll, mut taken) = (Toll::default(), 0);
        let began = Instant::now();
        for second in 0..seconds {
            for n in 0..rate {
                let now = began + SECOND * second + SECOND / rate * n;
                if toll.admit(now) {
                    toll.charge(now, takes);
                    taken += 1;
                }
            }
            if toll.second() {
                return (taken, Some(second + 1));
            }
        }
        (taken, None)
    }

    #[test]
    fn who_takes_the_thread_has_a_twentieth_of_it_and_is_removed() {
        let (taken, removed) = sends(400, Duration::from_millis(5), 60);
        assert_eq!(removed, Some(5));
        assert!((50..=63).contains(&taken), "{taken} times 5 ms in 5 s");
    }

    #[test]
    fn publishers_of_full_hd_are_not_held_up() {
        // Three cameras of three layers each, on a machine that is slow.
        assert_eq!(sends(1500, Duration::from_micros(30), 60), (90_000, None));
    }

    #[test]
    fn one_long_pause_costs_nothing_and_many_cost_little() {
        let mut toll = Toll::default();
        let now = Instant::now();
        toll.charge(now, SECOND);
        toll.charge(now, SECOND);
        assert!(toll.admit(now));
        toll.charge(now, SECOND);
        assert!(!toll.admit(now));
        assert!(toll.admit(now + SECOND / 4), "a fifth of a second's share is the 10 ms too many");
        assert!(!toll.second());
        for second in 1..60 {
            assert!(toll.admit(now + second * SECOND) && !toll.second());
        }
    }

    #[test]
    fn datagrams_that_take_long_are_bounded_too() {
        let (taken, removed) = sends(100, Duration::from_millis(100), 60);
        assert_eq!(removed, Some(5));
        assert!(taken <= 3 + 13, "{taken}");
    }

    #[test]
    fn who_pauses_between_floods_is_bounded_but_stays() {
        let mut toll = Toll::default();
        for _ in 0..20 {
            for _ in 0..4 {
                toll.dropped = true;
                assert!(!toll.second());
            }
            assert!(!toll.second());
        }
    }
}
