//! Limits the packets that one client publishes: each goes to all subscribers of its track, which takes the time of the
//! media thread that other rooms are on too.

use std::time::{Duration, Instant};

use crate::core::gcra::Gcra;

/// Packets a second, of all tracks of a client. Video of 4K takes 2,000.
const PER_SECOND: u32 = 3000;
/// Packets that may come at once, as the time in which they are earned: a key frame of each layer, and what a busy link
/// has held back.
const BURST: Duration = Duration::from_secs(1);

/// The packets that one client has published lately.
#[derive(Debug, Default)]
pub(crate) struct PacketLimit(Gcra);

impl PacketLimit {
    /// Whether one more packet may be forwarded.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let admitted = self.0.conforms(now, BURST);
        if admitted {
            self.0.add(now, Duration::from_secs(1) / PER_SECOND);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let (mut limit, now) = (PacketLimit::default(), Instant::now());
        let admitted = (0..10_000).filter(|_| limit.admit(now)).count();
        assert!((2999..=3002).contains(&admitted), "{admitted}");
        let later = now + Duration::from_millis(100);
        let admitted = (0..10_000).filter(|_| limit.admit(later)).count();
        assert!((299..=301).contains(&admitted), "{admitted}");
    }
}
