//! Limits the time that one connection's input takes of its media thread.
//!
//! `rtcp` and `sctp_filter` bound the costs that are known; this limit is for the rest. A connection over its share has
//! its input dropped until the share has caught up. One that stays over it is removed, as all other media on the thread
//! waits for it.
//!
//! Charged is the time that the stack takes for a client's input, not the forwarding that follows: a publisher does not
//! pay for its subscribers. Only input that was decrypted is charged, as source addresses can be forged.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::core::gcra::Gcra;

/// Maximum share of a thread's time that one connection may take, as its inverse: a twentieth. Three simulcast layers
/// of full HD take a hundredth.
const SHARE: u32 = 20;
/// Thread time that a connection may take at once: for its DTLS handshake, or for packets that have waited.
const BURST: Duration = Duration::from_millis(50);
/// Largest charge for one datagram. A longer time is seldom the stack's: on a virtual machine, stolen CPU time counts
/// too.
const MAX_CHARGE: Duration = Duration::from_millis(20);
/// Consecutive seconds over the share after which the connection is removed.
const MAX_SECONDS: u32 = 5;

thread_local! {
    /// Whether the packet that the stack has just been given was authenticated.
    static AUTHENTICATED: Cell<bool> = const { Cell::new(false) };
}

/// Records that input was decrypted on this thread.
pub(crate) fn set_authenticated() {
    AUTHENTICATED.set(true);
}

/// Whether input was decrypted on this thread since the last call.
pub(crate) fn take_authenticated() -> bool {
    AUTHENTICATED.take()
}

/// The limit of one connection.
#[derive(Debug, Default)]
pub(crate) struct CpuLimit {
    used: Gcra,
    /// Whether input was dropped in this second.
    dropped: bool,
    /// Consecutive seconds before this one in which input was dropped.
    seconds: u32,
}

impl CpuLimit {
    /// Whether input may be taken now.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let admitted = self.used.conforms(now, BURST * SHARE);
        self.dropped |= !admitted;
        admitted
    }

    /// Charges the time that input took.
    pub(crate) fn charge(&mut self, now: Instant, took: Duration) {
        self.used.add(now, took.min(MAX_CHARGE) * SHARE);
    }

    /// Ends a second; returns whether the connection is to be removed.
    pub(crate) fn end_second(&mut self) -> bool {
        self.seconds = if std::mem::take(&mut self.dropped) { self.seconds + 1 } else { 0 };
        self.seconds >= MAX_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Sends `rate` datagrams a second that take `takes` each. Returns how many are admitted, and in which second the
    /// connection is to be removed.
    fn sends(rate: u32, takes: Duration, seconds: u32) -> (u32, Option<u32>) {
        let (mut limit, mut taken) = (CpuLimit::default(), 0);
        let began = Instant::now();
        for second in 0..seconds {
            for n in 0..rate {
                let now = began + SECOND * second + SECOND / rate * n;
                if limit.admit(now) {
                    limit.charge(now, takes);
                    taken += 1;
                }
            }
            if limit.end_second() {
                return (taken, Some(second + 1));
            }
        }
        (taken, None)
    }

    #[test]
    fn a_connection_over_its_share_gets_a_twentieth_and_is_removed() {
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
        let mut limit = CpuLimit::default();
        let now = Instant::now();
        limit.charge(now, SECOND);
        limit.charge(now, SECOND);
        assert!(limit.admit(now));
        limit.charge(now, SECOND);
        assert!(!limit.admit(now));
        assert!(limit.admit(now + SECOND / 4), "a fifth of a second's share is the 10 ms too many");
        assert!(!limit.end_second());
        for second in 1..60 {
            assert!(limit.admit(now + second * SECOND) && !limit.end_second());
        }
    }

    #[test]
    fn datagrams_that_take_long_are_bounded_too() {
        let (taken, removed) = sends(100, Duration::from_millis(100), 60);
        assert_eq!(removed, Some(5));
        assert!(taken <= 3 + 13, "{taken}");
    }

    #[test]
    fn a_connection_that_pauses_between_floods_is_bounded_but_stays() {
        let mut limit = CpuLimit::default();
        for _ in 0..20 {
            for _ in 0..4 {
                limit.dropped = true;
                assert!(!limit.end_second());
            }
            assert!(!limit.end_second());
        }
    }
}
