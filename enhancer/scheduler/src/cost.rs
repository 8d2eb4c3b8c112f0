//! Learns the cost of an inference from measurements.
//!
//! One moving average (EWMA) per LR picture size, in seconds. A new size is predicted from the average cost of a pixel.
//! The model is bounded: it forgets the sizes that were used least recently.
//!
//! A preempted thread gives outliers, so that one measurement is clamped to a few times the estimate. An estimate that
//! is too high to be tried decays until an inference of this size is tried again ([`CostModel::doubt`]).

use std::time::Duration;

use windlass_types::Size;

/// Weight of a new measurement (EWMA).
const WEIGHT: f64 = 0.2;
/// Maximum ratio of a measurement to the estimate; a larger measurement is clamped.
const MAX_SURPRISE: f64 = 4.0;
/// Factor on an estimate each time that it prevents an inference.
const DOUBT: f64 = 0.97;
/// Minimum of an estimate that decays, as a share of the first guess.
const MIN_DOUBTED: f64 = 0.25;
/// Maximum expected time of an inference, in seconds.
const MAX_SECONDS: f64 = 3_600.0;
/// Maximum number of picture sizes whose times are remembered.
const MAX_SIZES: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Measured {
    size: Size,
    seconds: f64,
}

/// Expected inference time by picture size.
#[derive(Debug, Clone)]
pub struct CostModel {
    /// Measured sizes, the most recently measured last.
    sizes: Vec<Measured>,
    seconds_per_pixel: f64,
    /// Assumed seconds per pixel before anything was measured in calls.
    first_guess: f64,
}

impl CostModel {
    /// A model that knows only an expected time per LR pixel.
    pub fn new(per_pixel: Duration) -> Self {
        let seconds_per_pixel = per_pixel.as_secs_f64();
        CostModel { sizes: Vec::new(), seconds_per_pixel, first_guess: seconds_per_pixel }
    }

    /// Expected time for an LR picture of this size.
    pub fn predict(&self, size: Size) -> Duration {
        let known = self.sizes.iter().find(|known| known.size == size);
        let seconds = known.map_or(self.seconds_per_pixel * pixels(size), |known| known.seconds);
        Duration::from_secs_f64(seconds.clamp(0.0, MAX_SECONDS))
    }

    /// Learns from one inference.
    pub fn observe(&mut self, size: Size, took: Duration) {
        let seconds = took.as_secs_f64().min(MAX_SECONDS);
        let mut measured = self.take(size);
        let area = pixels(size);
        if area > 0.0 {
            blend(&mut self.seconds_per_pixel, seconds / area);
        }
        blend(&mut measured.seconds, seconds);
        self.sizes.push(measured);
    }

    /// Believes a little less that this size costs so much, because nothing was measured: the
    /// expectation itself kept it from being tried.
    pub fn doubt(&mut self, size: Size) {
        let mut measured = self.take(size);
        let min = MIN_DOUBTED * self.first_guess * pixels(size);
        measured.seconds = (measured.seconds * DOUBT).max(min.min(measured.seconds));
        self.sizes.push(measured);
    }

    /// Takes a size out, to be put back as the latest; a new one starts with the guess.
    fn take(&mut self, size: Size) -> Measured {
        let known = self.sizes.iter().position(|known| known.size == size);
        if let Some(at) = known {
            return self.sizes.remove(at);
        }
        if self.sizes.len() == MAX_SIZES {
            self.sizes.remove(0);
        }
        Measured { size, seconds: self.seconds_per_pixel * pixels(size) }
    }
}

fn blend(average: &mut f64, new: f64) {
    let new = if *average > 0.0 { new.min(MAX_SURPRISE * *average) } else { new };
    *average += WEIGHT * (new - *average);
}

fn pixels(size: Size) -> f64 {
    f64::from(size.pixels())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: Size = Size::new(100, 100);

    #[test]
    fn a_size_not_seen_is_predicted_from_its_pixels() {
        let model = CostModel::new(Duration::from_nanos(100));
        assert_eq!(model.predict(SQUARE), Duration::from_millis(1));
    }

    #[test]
    fn measurements_of_a_size_converge() {
        let mut model = CostModel::new(Duration::from_nanos(100));
        for millis in [9, 2] {
            for _ in 0..50 {
                model.observe(SQUARE, Duration::from_millis(millis));
            }
            let predicted = model.predict(SQUARE).as_secs_f64() * 1e3;
            assert!((predicted - millis as f64).abs() < 0.1, "{predicted}");
        }
    }

    #[test]
    fn one_measurement_out_of_all_proportion_changes_little() {
        let mut model = CostModel::new(Duration::from_micros(1));
        model.observe(SQUARE, Duration::from_secs(9));
        assert!(model.predict(SQUARE) < Duration::from_millis(17));
    }

    #[test]
    fn an_expectation_that_keeps_a_size_from_being_tried_is_doubted() {
        let mut model = CostModel::new(Duration::from_micros(20));
        assert_eq!(model.predict(SQUARE), Duration::from_millis(200));
        for _ in 0..30 {
            model.doubt(SQUARE);
        }
        assert!(model.predict(SQUARE) < Duration::from_millis(100));
    }

    #[test]
    fn doubt_ends_at_a_part_of_the_first_guess() {
        let mut model = CostModel::new(Duration::from_micros(20));
        for _ in 0..1_000 {
            model.doubt(SQUARE);
        }
        assert_eq!(model.predict(SQUARE), Duration::from_millis(50));
        for _ in 0..200 {
            model.observe(SQUARE, Duration::from_millis(8));
        }
        let measured = model.predict(SQUARE);
        model.doubt(SQUARE);
        assert_eq!(model.predict(SQUARE), measured, "less than that was measured");
    }

    #[test]
    fn sizes_are_bounded_and_the_ones_in_use_stay() {
        let mut model = CostModel::new(Duration::from_nanos(100));
        for n in 0..1_000 {
            model.observe(Size::new(n, 1), Duration::from_millis(3));
            model.observe(Size::new(320, 180), Duration::from_millis(7));
        }
        assert!(model.sizes.len() <= MAX_SIZES);
        let predicted = model.predict(Size::new(320, 180)).as_secs_f64();
        assert!((predicted - 0.007).abs() < 1e-4, "{predicted}");
    }
}
