//! Job completion times of an accelerator, learned from finished jobs: a linear model per network, and the time to load
//! one.
//!
//! Source: PrefillOnly §5.3.3 (*continuous JCT calibration*: a small linear model of what is not in the cache; here the
//! cache is the network that the device has loaded). The paper profiles beforehand; here every finished job is a
//! sample, and old samples fade.
//!
//! Time of a job = fixed + per pixel × LR pixels of the whole batch, + loading, where another network was resident.

use std::time::Duration;

use crate::networks::NetworkCost;

/// Decay of a sample's weight per further sample.
const KEEP: f64 = 0.97;
/// Minimum spread of the sizes, as a share of their mean, from which the fixed part is fitted.
const MIN_SPREAD: f64 = 0.05;
/// Maximum ratio of a sample to the expectation; beyond, it is clamped: a thread that lost its core measures nonsense.
const MAX_SURPRISE: f64 = 4.0;
/// Factor on the expected time of a network each time that it makes a job be dropped.
const DOUBT: f64 = 0.95;
/// Minimum weight of a new sample of the loading time (EWMA).
const LOAD_WEIGHT: f64 = 0.2;
/// Maximum expected time of a job, in seconds.
const MAX_SECONDS: f64 = 3_600.0;

/// Model of the job times of an accelerator, for every network.
#[derive(Debug, Clone)]
pub struct JobTimes {
    lines: Vec<Line>,
    /// Expected time to load each network, where it was loaded before.
    loads: Vec<Load>,
    /// Expected time to load a network, by the loads of all: for those that were not loaded before.
    load: Load,
}

/// Time to load a network.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    seconds: f64,
    samples: u32,
}

impl Load {
    /// Adds a measured loading time, in seconds. The first samples have more weight; the former expectation has that of
    /// one sample.
    fn observe(&mut self, seconds: f64) {
        let weight = (1.0 / (f64::from(self.samples) + 2.0)).max(LOAD_WEIGHT);
        self.seconds += weight * (seconds - self.seconds);
        self.samples = self.samples.saturating_add(1);
    }
}

/// Linear fit of seconds over pixels, by sums in which old samples fade.
#[derive(Debug, Clone, Copy)]
struct Line {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// Seconds per pixel before the first sample.
    first_guess: f64,
}

impl Line {
    fn predict(&self, pixels: f64) -> f64 {
        if self.weight <= 0.0 || self.x <= 0.0 {
            return self.first_guess * pixels;
        }
        let (mean_x, mean_y) = (self.x / self.weight, self.y / self.weight);
        let variance = self.xx / self.weight - mean_x * mean_x;
        let proportional = mean_y / mean_x * pixels;
        if variance < (MIN_SPREAD * mean_x).powi(2) {
            return proportional;
        }
        let slope = (self.xy / self.weight - mean_x * mean_y) / variance;
        let fixed = mean_y - slope * mean_x;
        // Noise can tilt the line so that large jobs, or none, would take less than nothing.
        if slope <= 0.0 || fixed < 0.0 { proportional } else { fixed + slope * pixels }
    }

    fn doubt(&mut self) {
        self.y *= DOUBT;
        self.xy *= DOUBT;
        self.first_guess *= DOUBT;
    }

    fn observe(&mut self, pixels: f64, seconds: f64) {
        for sum in [&mut self.weight, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy] {
            *sum *= KEEP;
        }
        self.weight += 1.0;
        self.x += pixels;
        self.y += seconds;
        self.xx += pixels * pixels;
        self.xy += pixels * seconds;
    }
}

impl JobTimes {
    /// Creates a model before any job ran: `networks` take as long as calibrated, and loading takes no time.
    pub fn new(networks: &[NetworkCost]) -> Self {
        let line = |network: &NetworkCost| {
            let first_guess = network.per_pixel.as_secs_f64();
            Line { weight: 0.0, x: 0.0, y: 0.0, xx: 0.0, xy: 0.0, first_guess }
        };
        JobTimes {
            lines: networks.iter().map(line).collect(),
            loads: vec![Load::default(); networks.len()],
            load: Load::default(),
        }
    }

    /// Expected time of a batch of `pixels` LR pixels in all. `resident` says whether the device has the network
    /// loaded. A network that does not exist takes an hour.
    pub fn predict(&self, network: usize, pixels: u64, resident: bool) -> Duration {
        let Some(line) = self.lines.get(network) else {
            return Duration::from_secs_f64(MAX_SECONDS);
        };
        let load = if resident { 0.0 } else { self.load_s(network) };
        Duration::from_secs_f64((line.predict(pixels as f64) + load).clamp(0.0, MAX_SECONDS))
    }

    /// Expected time to load a network, in seconds: its own mean, or the mean of all networks if it was never loaded.
    fn load_s(&self, network: usize) -> f64 {
        self.loads.get(network).filter(|load| load.samples > 0).unwrap_or(&self.load).seconds
    }

    /// Lowers the expected time of a network because a job was given up for it. A network that is never tried is never
    /// measured: without this, none would run again after some slow jobs.
    pub fn doubt(&mut self, network: usize) {
        if let Some(line) = self.lines.get_mut(network) {
            line.doubt();
        }
    }

    /// Learns from a finished job.
    pub fn observe(&mut self, network: usize, pixels: u64, resident: bool, took: Duration) {
        let Some(line) = self.lines.get_mut(network).filter(|_| pixels > 0) else { return };
        let expected = line.predict(pixels as f64);
        let seconds = took.as_secs_f64().min(MAX_SECONDS);
        if resident {
            let max = if expected > 0.0 { MAX_SURPRISE * expected } else { MAX_SECONDS };
            line.observe(pixels as f64, seconds.min(max));
        } else {
            let (load, usual) = ((seconds - expected).max(0.0), self.load.seconds);
            self.load.observe(load);
            if let Some(own) = self.loads.get_mut(network) {
                if own.samples == 0 {
                    own.seconds = usual;
                }
                own.observe(load);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn model() -> JobTimes {
        JobTimes::new(&[NetworkCost { scale: 2, per_pixel: Duration::from_nanos(100) }])
    }

    fn ms(duration: Duration) -> f64 {
        1e3 * duration.as_secs_f64()
    }

    #[test]
    fn before_any_sample_the_calibration_counts() {
        assert_eq!(model().predict(0, 100_000, true), Duration::from_millis(10));
        assert_eq!(model().predict(0, 100_000, false), Duration::from_millis(10));
    }

    #[test]
    fn fixed_part_and_part_by_pixel_are_told_apart_by_sizes() {
        let mut model = model();
        for n in 0..40 {
            let pixels = if n % 2 == 0 { 10_000 } else { 100_000 };
            model.observe(0, pixels, true, Duration::from_nanos(3_000_000 + 50 * pixels));
        }
        assert!((ms(model.predict(0, 200_000, true)) - 13.0).abs() < 0.1);
        assert!((ms(model.predict(0, 10_000, true)) - 3.5).abs() < 0.1);
    }

    #[test]
    fn what_is_given_up_for_its_expected_time_is_expected_to_take_less_the_next_time() {
        let mut model = model();
        model.doubt(0);
        assert!((ms(model.predict(0, 100_000, true)) - 9.5).abs() < 0.1);
        for n in 1..40 {
            model.observe(0, n * 1_000, true, Duration::from_nanos(80_000_000 + 50_000 * n));
        }
        let slow = ms(model.predict(0, 10_000, true));
        (0..30).for_each(|_| model.doubt(0));
        let doubted = ms(model.predict(0, 10_000, true));
        assert!((0.2..0.23).contains(&(doubted / slow)), "{slow} {doubted}");
        model.doubt(7);
    }

    #[test]
    fn with_one_size_time_is_taken_for_proportional() {
        let mut model = model();
        (0..40).for_each(|_| model.observe(0, 10_000, true, Duration::from_millis(4)));
        assert!((ms(model.predict(0, 20_000, true)) - 8.0).abs() < 0.1);
    }

    #[test]
    fn what_loading_takes_is_learned_apart() {
        let mut model = model();
        for _ in 0..60 {
            model.observe(0, 10_000, true, Duration::from_millis(1));
            model.observe(0, 10_000, false, Duration::from_millis(6));
        }
        assert!((ms(model.predict(0, 10_000, false)) - 6.0).abs() < 0.1);
        assert!((ms(model.predict(0, 10_000, true)) - 1.0).abs() < 0.1);
    }

    #[test]
    fn networks_differ_in_what_it_takes_to_load_them() {
        let cost = NetworkCost { scale: 2, per_pixel: Duration::from_nanos(100) };
        let mut model = JobTimes::new(&[cost; 3]);
        for _ in 0..40 {
            model.observe(0, 10_000, false, Duration::from_millis(6));
            model.observe(1, 10_000, false, Duration::from_millis(51));
        }
        let loaded = |network| ms(model.predict(network, 10_000, false));
        assert!((loaded(0) - 6.0).abs() < 0.1 && (loaded(1) - 51.0).abs() < 0.1);
        assert!((20.0..40.0).contains(&loaded(2)), "that of others: {}", loaded(2));
    }

    #[test]
    fn a_device_that_becomes_slower_is_followed() {
        let mut model = model();
        (0..100).for_each(|_| model.observe(0, 10_000, true, Duration::from_millis(1)));
        (0..200).for_each(|_| model.observe(0, 10_000, true, Duration::from_millis(3)));
        assert!((ms(model.predict(0, 10_000, true)) - 3.0).abs() < 0.1);
    }

    proptest! {
        #[test]
        fn whatever_was_measured_the_prediction_is_a_time(
            samples in proptest::collection::vec((0usize..3, 0u64..u64::MAX, proptest::bool::ANY, 0u64..u64::MAX), 0..60),
            pixels in 0u64..u64::MAX,
        ) {
            let mut model = model();
            for (network, pixels, resident, nanos) in samples {
                model.observe(network, pixels, resident, Duration::from_nanos(nanos));
                prop_assert!(model.predict(0, pixels, resident) <= Duration::from_secs(3_600));
            }
            let alone = model.predict(0, pixels, true);
            prop_assert!(alone <= model.predict(0, pixels, false));
        }
    }
}
