//! What an inference costs, learnt from what it did cost.
//!
//! One moving average (EWMA) per LR picture size, in seconds; a size not seen yet is predicted
//! from the average cost of a pixel. Bounded: the sizes used least recently go.

use std::time::Duration;

/// How much a new measurement counts.
const WEIGHT: f64 = 0.2;
/// Most sizes remembered: layers of many cameras, not arbitrary ones.
const MAX_SIZES: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Size {
    width: u32,
    height: u32,
    seconds: f64,
}

/// Expected inference time by picture size.
#[derive(Debug, Clone)]
pub struct CostModel {
    /// Most recently measured last.
    sizes: Vec<Size>,
    seconds_per_pixel: f64,
}

impl CostModel {
    /// A model that knows only an expected time per LR pixel.
    pub fn new(per_pixel: Duration) -> Self {
        CostModel { sizes: Vec::new(), seconds_per_pixel: per_pixel.as_secs_f64() }
    }

    /// Expected time for an LR picture of this size.
    pub fn predict(&self, width: u32, height: u32) -> Duration {
        let known = self.sizes.iter().find(|s| (s.width, s.height) == (width, height));
        let seconds = known.map_or(self.seconds_per_pixel * pixels(width, height), |s| s.seconds);
        // Bounded by an hour: sizes come from foreign streams.
        Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0))
    }

    /// Learns from one inference.
    pub fn observe(&mut self, width: u32, height: u32, took: Duration) {
        let seconds = took.as_secs_f64();
        let area = pixels(width, height);
        if area > 0.0 {
            blend(&mut self.seconds_per_pixel, seconds / area);
        }
        let known = self.sizes.iter().position(|s| (s.width, s.height) == (width, height));
        let mut size = match known {
            Some(at) => self.sizes.remove(at),
            None => Size { width, height, seconds },
        };
        blend(&mut size.seconds, seconds);
        if self.sizes.len() == MAX_SIZES {
            self.sizes.remove(0);
        }
        self.sizes.push(size);
    }
}

fn blend(average: &mut f64, new: f64) {
    *average += WEIGHT * (new - *average);
}

fn pixels(width: u32, height: u32) -> f64 {
    f64::from(width) * f64::from(height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_not_seen_is_predicted_from_its_pixels() {
        let model = CostModel::new(Duration::from_nanos(100));
        assert_eq!(model.predict(100, 100), Duration::from_millis(1));
    }

    #[test]
    fn measurements_of_a_size_replace_the_guess_and_then_converge() {
        let mut model = CostModel::new(Duration::from_nanos(100));
        model.observe(100, 100, Duration::from_millis(5));
        assert_eq!(model.predict(100, 100), Duration::from_millis(5));
        for _ in 0..50 {
            model.observe(100, 100, Duration::from_millis(9));
        }
        let predicted = model.predict(100, 100).as_secs_f64();
        assert!((predicted - 0.009).abs() < 1e-4, "{predicted}");
    }

    #[test]
    fn sizes_are_bounded_and_the_ones_in_use_stay() {
        let mut model = CostModel::new(Duration::from_nanos(100));
        for n in 0..1_000 {
            model.observe(n, 1, Duration::from_millis(3));
            model.observe(320, 180, Duration::from_millis(7));
        }
        assert!(model.sizes.len() <= MAX_SIZES);
        assert_eq!(model.predict(320, 180), Duration::from_millis(7));
    }
}
