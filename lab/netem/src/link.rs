//! One direction of a path, as an emulated link.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use windlass_types::Bitrate;

use crate::course::{Conditions, Course};

/// Length of the IP and UDP headers of a datagram, in bytes, which the rate carries too.
const HEADERS: u64 = 28;

/// What became of a datagram that was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The datagram will arrive, or be lost beyond the bottleneck.
    Sent,
    /// The queue before the bottleneck was full.
    Overflowed,
}

/// Counters of a link since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Datagrams that were put in.
    pub sent: u64,
    /// Datagrams of `sent` that found the queue full.
    pub overflowed: u64,
    /// Datagrams of `sent` that were lost beyond the bottleneck.
    pub lost: u64,
    /// Datagrams of `sent` that were taken out at the far end.
    pub arrived: u64,
    /// Bytes that the bottleneck carried, headers included.
    pub carried_bytes: u64,
}

struct Waiting<T> {
    came: Instant,
    bytes: u64,
    datagram: T,
}

/// One direction of a path; `T` is what it carries.
///
/// ```
/// use std::time::{Duration, Instant};
/// use windlass_netem::{Conditions, Course, Link};
/// use windlass_types::Bitrate;
///
/// // 1 Mbit/s and 20 ms: 1,222 bytes and 28 of headers take 10 ms to send, and arrive 20 ms later.
/// let (rate, delay) = (Bitrate::bps(1_000_000), Duration::from_millis(20));
/// let course = Course::steady(Conditions { rate, delay, ..Conditions::default() });
/// let began = Instant::now();
/// let mut link = Link::new(course, 1, began);
/// link.push(began, 1222, "datagram");
///
/// assert_eq!(link.poll(began + Duration::from_millis(29)), None);
/// let arrived = link.poll(began + Duration::from_millis(30));
/// assert_eq!(arrived.map(|(datagram, _)| datagram), Some("datagram"));
/// ```
pub struct Link<T> {
    course: Course,
    began: Instant,
    dice: StdRng,
    /// The datagrams before the bottleneck; `waiting_bytes` is the sum of their bytes.
    waiting: VecDeque<Waiting<T>>,
    waiting_bytes: u64,
    /// When the bottleneck is done with the datagram that it sends now.
    free: Instant,
    /// The datagrams beyond the bottleneck, in order: when each arrives, and how long it had waited for the
    /// bottleneck.
    flying: VecDeque<(Instant, Duration, T)>,
    last_arrival: Instant,
    /// Whether a burst of losses goes on.
    losing: bool,
    stats: LinkStats,
}

impl<T> Link<T> {
    /// A link that begins at `now`.
    pub fn new(course: Course, seed: u64, now: Instant) -> Link<T> {
        Link {
            course,
            began: now,
            dice: StdRng::seed_from_u64(seed),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free: now,
            flying: VecDeque::new(),
            last_arrival: now,
            losing: false,
            stats: LinkStats::default(),
        }
    }

    /// Puts a datagram with `bytes` of payload in.
    pub fn push(&mut self, now: Instant, bytes: usize, datagram: T) -> Fate {
        self.transmit(now);
        self.stats.sent += 1;
        let bytes = bytes as u64 + HEADERS;
        let room = self.conditions(now).queue_bytes();
        // While the rate is zero the queue keeps its former size.
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > room {
            self.stats.overflowed += 1;
            return Fate::Overflowed;
        }
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { came: now, bytes, datagram });
        self.transmit(now);
        Fate::Sent
    }

    /// Takes the next datagram that has arrived by `now`, and how long it had waited until the bottleneck was done
    /// with it.
    pub fn poll(&mut self, now: Instant) -> Option<(T, Duration)> {
        self.transmit(now);
        if self.flying.front()?.0 > now {
            return None;
        }
        let (_, waited, datagram) = self.flying.pop_front()?;
        self.stats.arrived += 1;
        Some((datagram, waited))
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty.
    pub fn timeout(&self) -> Option<Instant> {
        let arrival = self.flying.front().map(|f| f.0);
        let transmission = self.waiting.front().map(|_| {
            let since = self.free.saturating_duration_since(self.began);
            if self.course.at(since).rate > Bitrate::ZERO {
                return self.free;
            }
            let change = self.course.next_change(since);
            change.map_or(self.free + Duration::from_secs(1), |change| self.began + change)
        });
        match (arrival, transmission) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The conditions of the link at `now`.
    pub fn conditions(&self, now: Instant) -> Conditions {
        self.course.at(now.saturating_duration_since(self.began))
    }

    /// The counters since the link began.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Number of datagrams on their way.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.flying.len()
    }

    /// Whether no datagram is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets the bottleneck send until `now`.
    fn transmit(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front() {
            let mut at = self.free.max(first.came);
            let mut bits = first.bytes as f64 * 8.0;
            // A datagram goes out at the rates of the spans that it falls into.
            loop {
                let since = at.saturating_duration_since(self.began);
                let rate = self.course.at(since).rate.as_bps() as f64;
                let change = self.course.next_change(since).map(|change| self.began + change);
                let done = (rate > 0.0).then(|| at + Duration::from_secs_f64(bits / rate));
                match (done, change) {
                    (Some(done), change) if change.is_none_or(|change| done <= change) => {
                        at = done;
                        break;
                    }
                    (_, Some(change)) if change <= now => {
                        bits -= rate * change.saturating_duration_since(at).as_secs_f64();
                        at = change;
                    }
                    _ => return,
                }
            }
            if at > now {
                return;
            }
            self.free = at;
            let Some(Waiting { came, bytes, datagram }) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= bytes;
            self.stats.carried_bytes += bytes;
            self.fly(at, at.saturating_duration_since(came), datagram);
        }
    }

    fn fly(&mut self, sent: Instant, waited: Duration, datagram: T) {
        let conditions = self.course.at(sent.saturating_duration_since(self.began));
        let (loss, jitter) = (self.dice.random::<f64>(), self.dice.random::<f64>());
        // Two states (Gilbert): losses end with 1 ÷ burst, and begin so that their share is `loss`.
        let ends = 1.0 / conditions.burst.max(1.0);
        let share = conditions.loss.clamp(0.0, 0.99);
        self.losing = if self.losing && share > 0.0 {
            loss >= ends
        } else {
            loss < share * ends / (1.0 - share)
        };
        if self.losing {
            self.stats.lost += 1;
            return;
        }
        let arrival = sent + conditions.delay + conditions.jitter.mul_f64(jitter);
        self.last_arrival = self.last_arrival.max(arrival);
        self.flying.push_back((self.last_arrival, waited, datagram));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn conditions() -> Conditions {
        Conditions {
            rate: Bitrate::bps(1_000_000),
            queue: MS(200),
            delay: MS(20),
            ..Conditions::default()
        }
    }

    /// Sends a datagram of 972 bytes (1000 with headers, 8 ms at 1 Mbit/s) each `every`, and says when each arrived.
    fn run(course: Course, count: usize, every: Duration) -> (Vec<(usize, Duration)>, LinkStats) {
        let start = Instant::now();
        let mut link = Link::new(course, 7, start);
        let (mut arrived, mut now, mut next) = (Vec::new(), start, 0);
        while next < count || !link.is_empty() {
            while next < count && start + every * next as u32 <= now {
                link.push(now, 972, next);
                next += 1;
            }
            while let Some((n, _)) = link.poll(now) {
                arrived.push((n, now - start));
            }
            now += MS(1);
        }
        (arrived, link.stats())
    }

    #[test]
    fn a_datagram_takes_its_time_on_the_wire_and_the_delay() {
        let (arrived, _) = run(Course::steady(conditions()), 1, MS(1));
        assert_eq!(arrived, [(0, MS(28))]);
    }

    #[test]
    fn the_rate_is_kept_and_the_queue_is_bounded() {
        let (arrived, stats) = run(Course::steady(conditions()), 1000, MS(4));
        let span = arrived.last().expect("some").1.saturating_sub(arrived[0].1);
        assert_eq!(span.as_millis(), 8 * (arrived.len() as u128 - 1));
        assert!((470..530).contains(&stats.overflowed), "{stats:?}");
        let longest =
            arrived.iter().map(|(n, at)| at.saturating_sub(MS(4) * *n as u32)).max().expect("some");
        assert!(longest <= MS(200 + 8 + 20 + 8), "{longest:?}");
    }

    #[test]
    fn a_link_that_stands_still_goes_on_where_it_was() {
        let still = Conditions { rate: Bitrate::ZERO, ..conditions() };
        let course = Course::changing(still, [(MS(500), conditions())]);
        let (arrived, _) = run(course, 3, MS(1));
        assert_eq!(arrived, [(0, MS(528)), (1, MS(536)), (2, MS(544))]);
    }

    #[test]
    fn a_change_of_rate_counts_from_its_moment() {
        let slow = Conditions { rate: Bitrate::bps(100_000), ..conditions() };
        let course = Course::changing(slow, [(MS(40), conditions())]);
        // Half of it at 100 kbit/s, half at 1 Mbit/s.
        assert_eq!(run(course, 1, MS(1)).0, [(0, MS(40 + 4 + 20))]);
    }

    #[test]
    fn losses_have_their_share_and_come_in_bursts() {
        for burst in [1.0, 4.0] {
            let lossy =
                Conditions { rate: Bitrate::bps(1_000_000_000), loss: 0.05, burst, ..conditions() };
            let (arrived, stats) = run(Course::steady(lossy), 20_000, MS(1));
            assert!((700..1300).contains(&stats.lost), "{stats:?}");
            let gaps: Vec<_> =
                arrived.windows(2).map(|w| w[1].0 - w[0].0 - 1).filter(|g| *g > 0).collect();
            let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
            assert!((mean - burst).abs() < 0.25 * burst, "{mean}");
        }
    }

    proptest! {
        #[test]
        fn everything_arrives_in_order_or_is_counted(
            seed: u64, rate in 1_000u64..10_000_000, jitter in 0u64..50, loss in 0.0..0.9f64,
            burst in 1.0..10.0f64, sizes in prop::collection::vec((0usize..1500, 0u64..20), 1..300),
        ) {
            let start = Instant::now();
            let all = Conditions { rate: Bitrate::bps(rate), jitter: MS(jitter), loss, burst, ..conditions() };
            let mut link = Link::new(Course::steady(all), seed, start);
            let (mut now, mut last) = (start, None);
            for (n, (bytes, after)) in sizes.iter().enumerate() {
                now += MS(*after);
                link.push(now, *bytes, n);
            }
            while let Some(due) = link.timeout() {
                now = now.max(due) + Duration::from_micros(1);
                while let Some((n, _)) = link.poll(now) {
                    prop_assert!(last.is_none_or(|last| n > last));
                    last = Some(n);
                }
            }
            let stats = link.stats();
            prop_assert_eq!(stats.sent, stats.arrived + stats.lost + stats.overflowed);
        }
    }
}
