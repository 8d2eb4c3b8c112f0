//! Inference time that may be spent: earned by the clock, spent by chosen frames, settled by what they really cost.

use std::time::Duration;

use crate::config::SchedulerConfig;

/// Maximum overrun that is paid back, as the time in which it is earned. A thread that lost its core for minutes must
/// not stop streams for as long.
const MAX_DEBT: Duration = Duration::from_secs(2);
/// Ticks that come late earn at most this many intervals.
const MAX_INTERVALS_EARNED: u32 = 4;

/// Account of the inference time of all devices, in seconds.
#[derive(Debug, Default)]
pub(crate) struct Compute {
    /// Inference time that may still be spent, in seconds; below zero after an overrun.
    credit_s: f64,
    /// Expected cost of chosen frames that have not finished.
    outstanding_s: f64,
    last_tick: Option<Duration>,
}

impl Compute {
    /// Time since the last tick; none before the first.
    pub(crate) fn since_last_tick(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_tick.unwrap_or(now))
    }

    /// Adds the compute of the time since the last tick. What is saved up is bounded by `intervals` intervals (the
    /// shortest of any stream's policy) and the costliest candidate. So a picture that needs more than one interval is
    /// served in the end, and idle time is not spent in a burst.
    pub(crate) fn earn(
        &mut self,
        now: Duration,
        config: &SchedulerConfig,
        intervals: u32,
        costliest_s: f64,
    ) {
        let interval = config.interval;
        let elapsed = self.last_tick.map_or(interval, |last| now.saturating_sub(last));
        self.last_tick = Some(now);
        let max = config.capacity_s(interval.saturating_mul(intervals)) + costliest_s;
        let earned = config.capacity_s(elapsed.min(interval.saturating_mul(MAX_INTERVALS_EARNED)));
        let max_debt = config.capacity_s(MAX_DEBT);
        self.credit_s = (self.credit_s.max(-max_debt) + earned).min(max);
    }

    /// Whether a cost fits into what may be spent. Without any compute nothing does, even if it costs nothing.
    pub(crate) fn affords(&self, cost_s: f64) -> bool {
        cost_s <= self.credit_s && self.credit_s > 0.0
    }

    /// Books a chosen frame with its expected cost, in seconds.
    pub(crate) fn spend(&mut self, cost_s: f64) {
        self.credit_s -= cost_s;
        self.outstanding_s += cost_s;
    }

    /// A chosen frame is done: the difference to the expected cost goes back to, or comes out of, what may be spent.
    pub(crate) fn settle(&mut self, expected: Duration, took: Duration) {
        let expected = expected.as_secs_f64();
        self.outstanding_s = (self.outstanding_s - expected).max(0.0);
        self.credit_s += expected - took.as_secs_f64();
    }

    /// Seconds until chosen work is done, shared by all devices.
    pub(crate) fn backlog_s(&self, devices: u32) -> f64 {
        self.outstanding_s / f64::from(devices.max(1))
    }

    /// Whether all chosen work is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding_s <= 0.0
    }

    #[cfg(test)]
    pub(crate) fn credit_s(&self) -> f64 {
        self.credit_s
    }

    #[cfg(test)]
    pub(crate) fn outstanding_s(&self) -> f64 {
        self.outstanding_s
    }

    /// Work that was chosen before and is not done yet, in seconds.
    #[cfg(test)]
    pub(crate) fn set_outstanding(&mut self, seconds: f64) {
        self.outstanding_s = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(66);

    #[test]
    fn idle_time_is_saved_for_one_interval_and_the_costliest_frame() {
        let (mut compute, config) = (Compute::default(), SchedulerConfig::default());
        (1..10).for_each(|n| compute.earn(TICK * n, &config, 1, 0.01));
        assert!(compute.affords(0.0759) && !compute.affords(0.0761));
    }

    #[test]
    fn an_overrun_is_paid_back_within_two_seconds() {
        let (mut compute, config) = (Compute::default(), SchedulerConfig::default());
        compute.earn(TICK, &config, 1, 0.0);
        compute.spend(0.01);
        assert!((compute.backlog_s(2) - 0.005).abs() < 1e-9 && !compute.is_idle());
        compute.settle(Duration::from_millis(10), Duration::from_secs(900));
        assert!(compute.is_idle() && !compute.affords(0.0));
        let ticks = (2..100).find(|&n| {
            compute.earn(TICK * n, &config, 1, 0.0);
            compute.affords(0.001)
        });
        assert!((30..33).contains(&ticks.unwrap_or_default()), "{ticks:?}");
    }

    #[test]
    fn without_compute_nothing_is_affordable() {
        let config = SchedulerConfig { compute_cap: 0.0, ..SchedulerConfig::default() };
        let mut compute = Compute::default();
        compute.earn(TICK, &config, 1, 0.0);
        assert!(!compute.affords(0.0));
    }
}
