//! The network of one stream, and how soon its scale may grow again.

use std::time::Duration;

/// Time after a change of scale before the stream's scale may grow again, because viewers see each change. It doubles
/// with each time that the scale could not be sustained.
const SETTLE: Duration = Duration::from_secs(10);
/// Maximum doublings of [`SETTLE`].
const MAX_DOUBLINGS: u32 = 5;
/// Time at a larger scale without a fall after which earlier falls are forgotten. A fall is a forced step to a smaller
/// scale.
const FORGIVEN: Duration = Duration::from_secs(60);

/// The network that a stream was assigned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// Index of the network in [`SchedulerConfig::networks`](crate::SchedulerConfig::networks).
    pub network: usize,
    /// Whether the network must not run because it cannot be sustained. Its scale is still used for the publisher's own
    /// pictures.
    pub too_dear: bool,
}

/// One stream's network.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamNetwork {
    assigned: Assigned,
    /// When the scale last changed; `None` if it never did.
    rescaled: Option<Duration>,
    /// Number of recent times that the scale had to become smaller because it could not be sustained.
    falls: u32,
}

impl StreamNetwork {
    /// The network's index.
    pub(crate) fn index(&self) -> usize {
        self.assigned.network
    }

    /// Whether the network may run; else only its scale is of use.
    pub(crate) fn is_sustained(&self) -> bool {
        !self.assigned.too_dear
    }

    /// Whether the last change of scale is long enough ago.
    pub(crate) fn may_grow(&self, now: Duration) -> bool {
        let wait = SETTLE * (1 << self.falls.min(MAX_DOUBLINGS));
        self.rescaled.is_none_or(|then| now.saturating_sub(then) >= wait)
    }

    /// Assigns a network, which may be the same as before. `scales` are those of all networks.
    pub(crate) fn set(
        &mut self,
        assigned: Assigned,
        scales: &[usize],
        max_scale: usize,
        now: Duration,
    ) {
        let (old, new) = (scales.get(self.assigned.network), scales.get(assigned.network));
        if new != old {
            let forced = new < old && old.is_some_and(|&old| old <= max_scale);
            self.falls += u32::from(forced);
            self.rescaled = Some(now);
        } else if new > scales.first()
            && self.rescaled.is_some_and(|then| now.saturating_sub(then) >= FORGIVEN)
        {
            self.falls = 0;
        }
        self.assigned = assigned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fall_doubles_the_wait_and_a_quiet_minute_forgives() {
        let mut stream = StreamNetwork::default();
        let set = |stream: &mut StreamNetwork, network, second| {
            let assigned = Assigned { network, too_dear: false };
            stream.set(assigned, &[2, 4], 4, Duration::from_secs(second));
        };
        let grows_at = |stream: &StreamNetwork| {
            (0..400).find(|&second| stream.may_grow(Duration::from_secs(second)))
        };
        set(&mut stream, 1, 5);
        assert_eq!(grows_at(&stream), Some(15));
        set(&mut stream, 0, 20);
        assert_eq!(grows_at(&stream), Some(40));
        set(&mut stream, 1, 50);
        set(&mut stream, 0, 51);
        assert_eq!(grows_at(&stream), Some(91));
        set(&mut stream, 1, 100);
        set(&mut stream, 1, 160);
        assert_eq!(grows_at(&stream), Some(110));
    }
}
