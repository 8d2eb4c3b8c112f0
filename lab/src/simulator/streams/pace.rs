//! Speed of each device relative to the expected times of jobs.
//!
//! NeuroScaler §5.2 places anchors over equal servers. On unequal devices the expected time is that of a mean device:
//! [`JobTimes`] learns times divided by the device's pace. A slow device must not take a job that it cannot finish in
//! time while another device could.
//!
//! [`JobTimes`]: windlass_scheduler::job_time::JobTimes

use std::time::Duration;

/// Weight of a finished job in a device's pace (EWMA).
const WEIGHT: f64 = 0.1;
/// Minimum and maximum of a pace.
const BELIEVED: (f64, f64) = (1e-3, 1e3);

/// Pace of each device: its job time over that of a mean device. Above 1 is slower.
#[derive(Debug, Clone)]
pub(super) struct Paces(Vec<f64>);

impl Paces {
    /// Creates paces of 1 for all devices.
    pub(super) fn new(devices: usize) -> Paces {
        Paces(vec![1.0; devices])
    }

    /// Time on this device of a job that takes `expected` on a mean one.
    pub(super) fn on(&self, device: usize, expected: Duration) -> Duration {
        scaled(expected, self.0.get(device).copied().unwrap_or(1.0))
    }

    /// Time of such a job on the fastest device for which `there` is true.
    pub(super) fn at_best(&self, expected: Duration, there: impl Fn(usize) -> bool) -> Duration {
        let some = self.0.iter().enumerate().filter(|&(device, _)| there(device));
        let best = some.map(|(_, &pace)| pace).fold(f64::INFINITY, f64::min);
        scaled(expected, if best.is_finite() { best } else { 1.0 })
    }

    /// Learns that a job expected to take `expected` on a mean device took `took` on this one. Returns its time on a
    /// mean device.
    pub(super) fn observe(
        &mut self,
        device: usize,
        expected: Duration,
        took: Duration,
    ) -> Duration {
        let Some(pace) = self.0.get_mut(device) else { return took };
        if !expected.is_zero() {
            let seen = took.as_secs_f64() / expected.as_secs_f64();
            *pace = (*pace + WEIGHT * (seen - *pace)).clamp(BELIEVED.0, BELIEVED.1);
        }
        scaled(took, 1.0 / *pace)
    }
}

fn scaled(time: Duration, by: f64) -> Duration {
    Duration::from_secs_f64((time.as_secs_f64() * by).clamp(0.0, 3_600.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn each_device_is_known_by_what_it_took() {
        let mut paces = Paces::new(2);
        for _ in 0..60 {
            paces.observe(0, 10 * MS, 5 * MS);
            paces.observe(1, 10 * MS, 40 * MS);
        }
        let took = |device| 1e3 * paces.on(device, 10 * MS).as_secs_f64();
        assert!((took(0) - 5.0).abs() < 0.1 && (took(1) - 40.0).abs() < 0.2);
        assert!((1e3 * paces.at_best(10 * MS, |_| true).as_secs_f64() - 5.0).abs() < 0.1);
        assert!((1e3 * paces.at_best(10 * MS, |d| d == 1).as_secs_f64() - 40.0).abs() < 0.2);
    }

    proptest! {
        #[test]
        fn whatever_was_measured_a_time_comes_of_it(
            samples in proptest::collection::vec((0usize..3, 0u64..u64::MAX, 0u64..u64::MAX), 0..40),
        ) {
            let mut paces = Paces::new(2);
            for (device, expected, took) in samples {
                let mean = paces.observe(device, Duration::from_nanos(expected), Duration::from_nanos(took));
                prop_assert!(mean <= Duration::from_hours(1) || device == 2);
            }
            prop_assert!(paces.on(0, MS) <= Duration::from_secs(2));
        }
    }
}
