//! The conditions of a link, and when they change.

use std::time::Duration;

use windlass_types::Bitrate;

/// The conditions of one direction of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// What the bottleneck transmits, headers included; zero: nothing for now.
    pub rate: Bitrate,
    /// Length of the queue before the bottleneck, in time at the bottleneck's rate. Datagrams that find it full are
    /// lost.
    pub queue: Duration,
    /// Time from the bottleneck to the receiver.
    pub delay: Duration,
    /// Maximum time beyond `delay`, evenly distributed; datagrams do not overtake each other.
    pub jitter: Duration,
    /// Share of the datagrams that are lost beyond the bottleneck, 0 to 1.
    pub loss: f64,
    /// How many datagrams are lost one after the other, in the mean (1: each by itself).
    pub burst: f64,
}

impl Default for Conditions {
    /// A path that nobody notices: 1 Gbit/s, 1 ms.
    fn default() -> Conditions {
        Conditions {
            rate: Bitrate::bps(1_000_000_000),
            queue: Duration::from_millis(100),
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            loss: 0.0,
            burst: 1.0,
        }
    }
}

impl Conditions {
    /// Number of bytes that the queue holds: at least a few full datagrams, as interfaces have.
    pub fn queue_bytes(&self) -> u64 {
        let bytes = self.rate.as_bps() as f64 / 8.0 * self.queue.as_secs_f64();
        (bytes as u64).max(6000)
    }
}

/// A link's conditions over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The times since the link began at which conditions begin, in order, with the conditions. The first is zero.
    steps: Vec<(Duration, Conditions)>,
    /// The time after which the course begins anew; `None`: never.
    period: Option<Duration>,
}

impl Course {
    /// The course of a link that never changes.
    pub fn steady(conditions: Conditions) -> Course {
        Course { steps: vec![(Duration::ZERO, conditions)], period: None }
    }

    /// A course that begins with `first`, and has each of `later` from its time on.
    pub fn changing(
        first: Conditions,
        later: impl IntoIterator<Item = (Duration, Conditions)>,
    ) -> Course {
        let mut steps = vec![(Duration::ZERO, first)];
        steps.extend(later);
        steps.sort_by_key(|(at, _)| *at);
        Course { steps, period: None }
    }

    /// A course that begins anew after each `period`.
    #[must_use]
    pub fn repeated(self, period: Duration) -> Course {
        Course { period: (!period.is_zero()).then_some(period), ..self }
    }

    /// A course that holds the first conditions for `by`, and then begins. One that repeats does so from this
    /// beginning on.
    #[must_use]
    pub fn delayed(mut self, by: Duration) -> Course {
        if !by.is_zero() {
            for (at, _) in self.steps.iter_mut().skip(1) {
                *at += by;
            }
            self.period = self.period.map(|period| period + by);
        }
        self
    }

    /// The conditions at a time `since` the link's beginning.
    pub fn at(&self, since: Duration) -> Conditions {
        let (into, _) = self.place(since);
        let step = self.steps.partition_point(|(at, _)| *at <= into);
        self.steps[step.max(1) - 1].1
    }

    /// The next time after `since` at which the conditions change.
    pub fn next_change(&self, since: Duration) -> Option<Duration> {
        let (into, begun) = self.place(since);
        let step = self.steps.partition_point(|(at, _)| *at <= into);
        match (self.steps.get(step), self.period) {
            (Some((at, _)), Some(period)) if *at >= period => Some(begun + period),
            (Some((at, _)), _) => Some(begun + *at),
            (None, Some(period)) => Some(begun + period),
            (None, None) => None,
        }
    }

    /// The times within `length` at which the rate changes by more than a tenth, with the rate from then on.
    pub fn rate_steps(&self, length: Duration) -> Vec<(Duration, Bitrate)> {
        let (mut found, mut at) = (Vec::new(), Duration::ZERO);
        let mut rate = self.at(at).rate;
        while let Some(next) = self.next_change(at).filter(|next| *next < length) {
            let now = self.at(next).rate;
            if now.as_bps().abs_diff(rate.as_bps()) * 10 > rate.as_bps() {
                found.push((next, now));
            }
            (at, rate) = (next, now);
        }
        found
    }

    /// How many bytes the bottleneck could have carried between two times.
    pub fn capacity_bytes(&self, from: Duration, to: Duration) -> f64 {
        let (mut bytes, mut at) = (0.0, from);
        while at < to {
            let next = self.next_change(at).map_or(to, |next| next.min(to));
            bytes += self.at(at).rate.as_bps() as f64 / 8.0 * next.saturating_sub(at).as_secs_f64();
            at = next;
        }
        bytes
    }

    /// How far into the period a time is, and when that period began.
    fn place(&self, since: Duration) -> (Duration, Duration) {
        let Some(period) = self.period else { return (since, Duration::ZERO) };
        let into = Duration::from_nanos((since.as_nanos() % period.as_nanos()) as u64);
        (into, since.saturating_sub(into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn rate(bps: u64) -> Conditions {
        Conditions { rate: Bitrate::bps(bps), ..Conditions::default() }
    }

    #[test]
    fn conditions_hold_until_the_next_ones() {
        let course = Course::changing(rate(1000), [(S(10), rate(500)), (S(20), rate(2000))]);
        assert_eq!(course.at(S(9)).rate, Bitrate::bps(1000));
        assert_eq!(course.at(S(10)).rate, Bitrate::bps(500));
        assert_eq!(course.at(S(99)).rate, Bitrate::bps(2000));
        assert_eq!(course.next_change(S(10)), Some(S(20)));
        assert_eq!(course.next_change(S(20)), None);
        assert_eq!(
            course.rate_steps(S(60)),
            [(S(10), Bitrate::bps(500)), (S(20), Bitrate::bps(2000))]
        );
    }

    #[test]
    fn a_course_can_begin_later() {
        let course = Course::changing(rate(1000), [(S(10), rate(500))]).delayed(S(5));
        assert_eq!(course.at(S(14)).rate, Bitrate::bps(1000));
        assert_eq!(course.at(S(15)).rate, Bitrate::bps(500));
    }

    #[test]
    fn a_period_begins_anew() {
        let course = Course::changing(rate(8000), [(S(3), rate(4000))]).repeated(S(5));
        assert_eq!(course.at(S(7)).rate, Bitrate::bps(8000));
        assert_eq!(course.at(S(8)).rate, Bitrate::bps(4000));
        assert_eq!(course.next_change(S(8)), Some(S(10)));
        assert!((course.capacity_bytes(S(0), S(10)) - 8000.0).abs() < 1e-6);
        assert!((course.capacity_bytes(S(2), S(6)) - 1000.0 - 1000.0 - 1000.0).abs() < 1e-6);
    }
}
