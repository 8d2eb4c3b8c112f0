//! Figures of subscribers' emulated downlinks: what they could carry and did, how long datagrams waited, and how soon
//! changes of their rates were followed.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windlass_netem::{Course, LinkStats};

use crate::latencies::Latencies;
use crate::viewer::{Following, LONG_WAIT, TENTH, Tenth};

/// Length of the IP and UDP headers in bytes, which links carry too.
const HEADERS: u64 = 28;

/// Totals of all emulated downlinks. All of them only grow.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Downlinks {
    /// Number of bytes that the links could have carried.
    pub capacity_bytes: u64,
    /// Number of bytes in datagrams that arrived, with headers, padding, probes and repairs.
    pub carried_bytes: u64,
    /// Number of datagrams that were put in.
    pub datagrams: u64,
    /// Number of datagrams that were dropped at a full queue.
    pub overflowed: u64,
    /// Waits before the bottleneck, with the transmission.
    pub waits: Latencies,
    /// Longest time from a link's beginning until 85 % of its rate was carried, in seconds.
    pub first_s: Option<f64>,
    /// Longest time until traffic followed a change of a link's rate, in seconds.
    pub converged_s: Option<f64>,
}

impl Downlinks {
    /// Adds the totals of other downlinks.
    pub(super) fn add(&mut self, other: &Downlinks) {
        self.capacity_bytes += other.capacity_bytes;
        self.carried_bytes += other.carried_bytes;
        self.datagrams += other.datagrams;
        self.overflowed += other.overflowed;
        self.waits.add(&other.waits);
        self.first_s = longest(self.first_s, other.first_s);
        self.converged_s = longest(self.converged_s, other.converged_s);
    }
}

fn longest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// One emulated downlink.
pub(super) struct Downlink {
    course: Course,
    began: Instant,
    following: Following,
    tenth: Tenth,
    /// Number of whole tenths of a second that were counted.
    tenths: u32,
    waited: Vec<Duration>,
    /// Number of bytes that came since the totals were brought up to date.
    bytes: u64,
    /// The time up to which the totals are, and the figures that they contain.
    told: Duration,
    told_stats: LinkStats,
}

impl Downlink {
    /// A link that begins at `now`.
    pub(super) fn new(course: Course, now: Instant) -> Downlink {
        Downlink {
            following: Following::new(course.clone()),
            course,
            began: now,
            tenth: Tenth::default(),
            tenths: 0,
            waited: Vec::new(),
            bytes: 0,
            told: Duration::ZERO,
            told_stats: LinkStats::default(),
        }
    }

    /// Counts a datagram with `bytes` of payload, which came through after waiting for `waited`.
    pub(super) fn arrived(&mut self, now: Instant, bytes: usize, waited: Duration) {
        self.advance(now);
        let bytes = bytes as u64 + HEADERS;
        self.bytes += bytes;
        self.tenth.bytes += bytes;
        self.tenth.datagrams += 1;
        self.tenth.long += u64::from(waited > LONG_WAIT);
        self.waited.push(waited);
    }

    /// Brings the totals up to date; `stats` are the link's own.
    pub(super) fn tell(&mut self, now: Instant, stats: LinkStats, totals: &mut Downlinks) {
        self.advance(now);
        let since = now.saturating_duration_since(self.began);
        totals.capacity_bytes += self.course.capacity_bytes(self.told, since) as u64;
        totals.carried_bytes += std::mem::take(&mut self.bytes);
        totals.datagrams += stats.sent - self.told_stats.sent;
        totals.overflowed += stats.overflowed - self.told_stats.overflowed;
        for waited in self.waited.drain(..) {
            totals.waits.record(waited.as_secs_f64() * 1000.0);
        }
        totals.first_s = longest(totals.first_s, Some(self.following.first_s()));
        totals.converged_s = longest(totals.converged_s, self.following.longest_s());
        (self.told, self.told_stats) = (since, stats);
    }

    /// Counts the tenths of a second that are over.
    fn advance(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.began);
        while TENTH * (self.tenths + 1) <= since {
            self.following.tenth(std::mem::take(&mut self.tenth));
            self.tenths += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_netem::Profile;

    use super::*;

    #[test]
    fn what_a_link_carried_is_told_beside_what_it_could() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut link = Downlink::new(Profile::StepUp.down(1), start);
        let mut totals = Downlinks::default();
        link.arrived(ms(50), 972, Duration::from_millis(20));
        link.arrived(ms(150), 972, Duration::from_millis(120));
        let stats = LinkStats { sent: 3, overflowed: 1, ..LinkStats::default() };
        link.tell(ms(1000), stats, &mut totals);
        assert_eq!((totals.capacity_bytes, totals.carried_bytes), (75_000, 2_000));
        assert_eq!((totals.datagrams, totals.overflowed, totals.waits.count()), (3, 1, 2));
        assert_eq!((totals.first_s, totals.converged_s), (Some(1.0), None));
        link.tell(ms(2000), stats, &mut totals);
        assert_eq!((totals.capacity_bytes, totals.carried_bytes), (150_000, 2_000));
        assert_eq!(totals.datagrams, 3, "told once");
    }

    #[test]
    fn the_slowest_of_all_links_decides() {
        let mut totals = Downlinks { first_s: Some(1.0), ..Downlinks::default() };
        totals.add(&Downlinks {
            first_s: Some(3.0),
            converged_s: Some(2.0),
            ..Downlinks::default()
        });
        assert_eq!((totals.first_s, totals.converged_s), (Some(3.0), Some(2.0)));
    }
}
