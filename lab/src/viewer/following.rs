//! Measures how soon the traffic on a link follows its rate.
//!
//! After a rise: the time until a second's traffic is 85 % of the rate. After a fall: until no more than a twentieth of
//! a second's datagrams wait 100 ms before the bottleneck. Changes of less than a tenth are none, and rates that last
//! for less than two seconds are not to be followed. A step that has not been followed when it is asked counts as long
//! as it has lasted, from five seconds on.

use std::collections::VecDeque;
use std::time::Duration;

use windlass_netem::Course;
use windlass_types::Bitrate;

/// The unit in which traffic is counted: a tenth of a second.
pub(crate) const TENTH: Duration = Duration::from_millis(100);
/// The wait before the bottleneck from which on a datagram counts as queued.
pub(crate) const LONG_WAIT: Duration = Duration::from_millis(100);
/// Number of tenths over which a rate or a share is taken: a second.
const SPAN: usize = 10;
/// Share of its rate that a link must carry to count as used.
const USED: f64 = 0.85;
/// One of this many datagrams may wait long.
const LATE_SHARE: u64 = 20;
/// Minimum time between two changes of the rate for the first to count as a step.
const LASTING: Duration = Duration::from_secs(2);
/// Minimum age of a step that was not followed, in seconds, for it to count.
const PENDING: f64 = 5.0;
/// Maximum number of steps that are watched at a time. When there are more, the oldest counts as it stands.
const STEPS_MAX: usize = 16;

/// The traffic of a link in a tenth of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tenth {
    /// Bytes of datagrams that arrived, headers included.
    pub bytes: u64,
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Datagrams that waited longer than [`LONG_WAIT`].
    pub long: u64,
}

/// A step of the rate that has not been followed yet.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The tenth in which the step came, counted from the beginning.
    at: u64,
    /// Bytes that a second must carry for the step to be followed; `None` where the rate fell.
    wanted: Option<f64>,
    /// Whether the step is the link's beginning.
    first: bool,
}

/// Measures how soon traffic follows the steps of a link's rate.
#[derive(Debug)]
pub(crate) struct Following {
    course: Course,
    rate: Bitrate,
    /// Number of tenths so far.
    tenths: u64,
    last: VecDeque<Tenth>,
    steps: VecDeque<Step>,
    first_s: Option<f64>,
    longest_s: Option<f64>,
}

impl Following {
    /// A measurement of a link that begins now.
    pub(crate) fn new(course: Course) -> Following {
        let rate = course.at(Duration::ZERO).rate;
        let first = Step { at: 0, wanted: Some(wanted(rate)), first: true };
        Following {
            course,
            rate,
            tenths: 0,
            last: VecDeque::with_capacity(SPAN),
            steps: VecDeque::from([first]),
            first_s: None,
            longest_s: None,
        }
    }

    /// Takes the next tenth of a second.
    pub(crate) fn tenth(&mut self, tenth: Tenth) {
        self.step();
        self.tenths += 1;
        if self.last.len() == SPAN {
            self.last.pop_front();
        }
        self.last.push_back(tenth);
        let Some(begin) = self.tenths.checked_sub(SPAN as u64) else { return };
        let sum = |of: fn(&Tenth) -> u64| self.last.iter().map(of).sum::<u64>();
        let (bytes, calm) =
            (sum(|t| t.bytes) as f64, sum(|t| t.long) * LATE_SHARE <= sum(|t| t.datagrams));
        let followed = |step: &Step| step.at <= begin && step.wanted.map_or(calm, |w| bytes >= w);
        let (done, open): (VecDeque<_>, _) = self.steps.iter().copied().partition(followed);
        self.steps = open;
        for step in done {
            self.count(step, begin);
        }
    }

    /// Seconds from the beginning until 85 % of the first rate was carried.
    pub(crate) fn first_s(&self) -> f64 {
        let open = self.steps.iter().any(|step| step.first);
        let so_far = if open { self.tenths as f64 / SPAN as f64 } else { 0.0 };
        self.first_s.unwrap_or(so_far)
    }

    /// The longest time until a later step was followed, in seconds.
    pub(crate) fn longest_s(&self) -> Option<f64> {
        let lasted = |step: &Step| (self.tenths - step.at) as f64 / SPAN as f64;
        let open = self.steps.iter().filter(|s| !s.first).map(lasted).filter(|s| *s >= PENDING);
        open.chain(self.longest_s).reduce(f64::max)
    }

    /// Notes a step if the rate changes in the next tenth.
    fn step(&mut self) {
        let end = TENTH * u32::try_from(self.tenths + 1).unwrap_or(u32::MAX);
        let since = end.saturating_sub(Duration::from_nanos(1));
        let (before, now) = (self.rate, self.course.at(since).rate);
        self.rate = now;
        let lasts =
            self.course.next_change(since).is_none_or(|next| next.saturating_sub(since) >= LASTING);
        let change = now.as_bps().abs_diff(before.as_bps());
        if change * 10 <= before.as_bps() || !lasts {
            return;
        }
        if self.steps.len() == STEPS_MAX
            && let Some(oldest) = self.steps.pop_front()
        {
            self.count(oldest, self.tenths);
        }
        let wanted = (now > before).then(|| wanted(now));
        self.steps.push_back(Step { at: self.tenths, wanted, first: false });
    }

    fn count(&mut self, step: Step, followed: u64) {
        let took = (followed - step.at) as f64 / SPAN as f64;
        let of = if step.first { &mut self.first_s } else { &mut self.longest_s };
        *of = Some(of.map_or(took, |longest| longest.max(took)));
    }
}

fn wanted(rate: Bitrate) -> f64 {
    rate.as_bps() as f64 / 8.0 * USED
}

#[cfg(test)]
mod tests {
    use windlass_netem::{Conditions, Profile};

    use super::*;

    fn of(kbps: u64, long: u64) -> Tenth {
        Tenth { bytes: kbps * 100 / 8, datagrams: 20, long }
    }

    fn followed(course: Course, tenths: impl Fn(u64) -> Tenth) -> Following {
        let mut following = Following::new(course);
        (0..600).for_each(|n| following.tenth(tenths(n)));
        following
    }

    #[test]
    fn a_fall_is_followed_when_nobody_waits_long_and_a_rise_when_it_is_used() {
        let following = followed(Profile::StepDown.down(1), |n| match n {
            0..30 => of(500, 0),
            30..200 => of(2400, 0),
            200..218 => of(800, 9),
            218..425 => of(700, 0),
            _ => of(2200, 1),
        });
        assert!((following.first_s() - 2.9).abs() < 0.11, "{following:?}");
        // 1.8 s after the fall; 2.5 s after the rise, which is longer.
        assert!(following.longest_s().is_some_and(|s| (s - 2.5).abs() < 0.11), "{following:?}");
    }

    #[test]
    fn what_is_never_followed_counts_as_long_as_it_has_lasted() {
        let following = followed(Profile::StepDown.down(1), |_| of(100, 9));
        assert!((following.first_s() - 60.0).abs() < 1e-9, "{following:?}");
        assert_eq!(following.longest_s(), Some(40.0));
    }

    #[test]
    fn rates_that_do_not_last_and_small_changes_are_no_steps() {
        for course in [Profile::Lte.down(3), Profile::Dsl.down(1)] {
            assert_eq!(followed(course, |_| of(0, 20)).longest_s(), None);
        }
        let rate = |bps| Conditions { rate: Bitrate::bps(bps), ..Conditions::default() };
        let course = Course::changing(rate(1000), [(Duration::from_secs(9), rate(1090))]);
        assert_eq!(followed(course, |_| of(0, 20)).longest_s(), None);
    }

    #[test]
    fn many_steps_take_no_more_memory() {
        let mut following = Following::new(Profile::Bursty.down(1));
        (0..6000).for_each(|_| following.tenth(of(100, 20)));
        assert!(following.steps.len() <= STEPS_MAX, "{following:?}");
        assert!(following.longest_s() > Some(60.0), "{following:?}");
    }
}
