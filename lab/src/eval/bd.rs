//! Bjøntegaard's measures: how much bitrate a method saves at equal quality, and how much better
//! it is at equal bitrate.
//!
//! Source: Bjøntegaard, VCEG-M33, with monotone piecewise cubics (Fritsch and Carlson's, as in
//! PCHIP) instead of one polynomial, so that curves with bends do not overshoot. Rates count by
//! their logarithm. In: points of bitrate and quality. Out: percent (negative: saved), or quality
//! in the metric's own unit (positive: better), over the range that both curves have.

use serde::Serialize;

/// A bitrate and the quality at it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Bitrate, in kbit/s.
    pub kbps: f64,
    /// Quality in the metric's unit: more is better.
    pub quality: f64,
}

/// A method against the reference by one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// The clip's file name, or `mean`.
    pub clip: String,
    /// The method.
    pub method: String,
    /// How the method's anchors were made; `best` for the best of all at each rate, empty without anchors.
    pub anchors: String,
    /// The row's key that was compared.
    pub metric: &'static str,
    /// The method that this one is compared with.
    pub reference: String,
    /// Mean difference of bitrate at equal quality in percent; `None` where no quality is reached by both.
    pub bd_rate_percent: Option<f64>,
    /// Mean difference of quality at equal bitrate; `None` where no rate is had by both.
    pub bd_quality: Option<f64>,
}

/// The points that no other one beats in both rate and quality, by rising rate and quality.
pub(super) fn front(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.kbps.total_cmp(&b.kbps).then(b.quality.total_cmp(&a.quality)));
    let mut front: Vec<Point> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|best| point.quality > best.quality) {
            front.push(point);
        }
    }
    front
}

/// The points of the front that no mixture of two others beats: the upper hull over the logarithm of the rate. It is
/// what one gets who may choose among several ways. On fronts of a few points, one point that costs much and gives
/// little would lower a curve that is better without it.
pub(super) fn hull(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for point in front(points) {
        while let [.., a, b] = hull[..] {
            let slope = |p: Point, q: Point| (q.quality - p.quality) / (q.kbps / p.kbps).log10();
            if slope(a, b) > slope(b, point) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Mean difference in bitrate of `test` to `reference`, in percent; `None` where their qualities do not overlap. Each
/// needs at least two points that no other one beats; four or more are usual.
pub(super) fn bd_rate(reference: &[Point], test: &[Point]) -> Option<f64> {
    let inverse = |points| Curve::new(front(points).iter().map(|p| (p.quality, p.kbps.log10())));
    let difference = mean_difference(&inverse(reference)?, &inverse(test)?)?;
    Some((10f64.powf(difference) - 1.0) * 100.0)
}

/// Mean difference in quality of `test` to `reference`; `None` where their rates do not overlap.
pub(super) fn bd_quality(reference: &[Point], test: &[Point]) -> Option<f64> {
    let direct = |points| Curve::new(front(points).iter().map(|p| (p.kbps.log10(), p.quality)));
    mean_difference(&direct(reference)?, &direct(test)?)
}

fn mean_difference(reference: &Curve, test: &Curve) -> Option<f64> {
    let low = reference.low().max(test.low());
    let high = reference.high().min(test.high());
    (high > low).then(|| (test.integral(low, high) - reference.integral(low, high)) / (high - low))
}

/// A monotone piecewise cubic through points with rising x.
struct Curve {
    x: Vec<f64>,
    y: Vec<f64>,
    slopes: Vec<f64>,
}

impl Curve {
    fn new(points: impl Iterator<Item = (f64, f64)>) -> Option<Curve> {
        let (x, y): (Vec<f64>, Vec<f64>) =
            points.filter(|(x, y)| x.is_finite() && y.is_finite()).unzip();
        if x.len() < 2 {
            return None;
        }
        let slopes = slopes(&x, &y);
        Some(Curve { x, y, slopes })
    }

    fn low(&self) -> f64 {
        self.x[0]
    }

    fn high(&self) -> f64 {
        self.x[self.x.len() - 1]
    }

    /// The value at `x` in the span from point `i` to the next.
    fn at(&self, i: usize, x: f64) -> f64 {
        let h = self.x[i + 1] - self.x[i];
        let t = (x - self.x[i]) / h;
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * self.y[i]
            + (t3 - 2.0 * t2 + t) * h * self.slopes[i]
            + (3.0 * t2 - 2.0 * t3) * self.y[i + 1]
            + (t3 - t2) * h * self.slopes[i + 1]
    }

    fn integral(&self, low: f64, high: f64) -> f64 {
        (0..self.x.len() - 1)
            .map(|i| {
                let (a, b) = (self.x[i].max(low), self.x[i + 1].min(high));
                if b <= a {
                    return 0.0;
                }
                // Simpson's rule is exact for cubics.
                (b - a) / 6.0
                    * (self.at(i, a) + 4.0 * self.at(i, f64::midpoint(a, b)) + self.at(i, b))
            })
            .sum()
    }
}

/// Fritsch and Carlson's slopes: weighted harmonic means inside, three-point ends that keep the shape.
fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let d: Vec<f64> = y.windows(2).zip(&h).map(|(w, h)| (w[1] - w[0]) / h).collect();
    if n == 2 {
        return vec![d[0]; 2];
    }
    let end = |h0: f64, h1: f64, d0: f64, d1: f64| {
        let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
        if slope * d0 <= 0.0 {
            0.0
        } else if d0 * d1 <= 0.0 && slope.abs() > 3.0 * d0.abs() {
            3.0 * d0
        } else {
            slope
        }
    };
    let mut slopes = vec![0.0; n];
    slopes[0] = end(h[0], h[1], d[0], d[1]);
    slopes[n - 1] = end(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
    for i in 1..n - 1 {
        if d[i - 1] * d[i] > 0.0 {
            let (before, after) = (2.0 * h[i] + h[i - 1], h[i] + 2.0 * h[i - 1]);
            slopes[i] = (before + after) / (before / d[i - 1] + after / d[i]);
        }
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rates: [f64; 4], qualities: [f64; 4]) -> Vec<Point> {
        rates.iter().zip(qualities).map(|(&kbps, quality)| Point { kbps, quality }).collect()
    }

    const RATES: [f64; 4] = [686.76, 309.58, 157.11, 85.95];
    const QUALITIES: [f64; 4] = [40.28, 37.18, 34.24, 31.42];

    #[test]
    fn the_same_quality_at_nine_tenths_of_the_rate_saves_ten_percent() {
        let reference = points(RATES, QUALITIES);
        let test = points(RATES.map(|r| 0.9 * r), QUALITIES);
        assert!((bd_rate(&reference, &test).unwrap() + 10.0).abs() < 1e-9);
        assert!(bd_rate(&reference, &reference).unwrap().abs() < 1e-12);
    }

    #[test]
    fn half_a_decibel_everywhere_is_half_a_decibel() {
        let reference = points(RATES, QUALITIES);
        let test = points(RATES, QUALITIES.map(|q| q + 0.5));
        assert!((bd_quality(&reference, &test).unwrap() - 0.5).abs() < 1e-9);
        assert!(bd_rate(&reference, &test).unwrap() < -5.0);
    }

    #[test]
    fn known_curves_give_known_differences() {
        let reference = points(RATES, QUALITIES);
        let test = points([893.34, 407.8, 204.93, 112.75], [40.39, 37.21, 34.17, 31.24]);
        // By an independent implementation of PCHIP in double precision (numpy).
        assert!((bd_rate(&reference, &test).unwrap() - BD_RATE).abs() < 1e-3);
        assert!((bd_quality(&reference, &test).unwrap() - BD_QUALITY).abs() < 1e-4);
    }

    const BD_RATE: f64 = 31.379_878;
    const BD_QUALITY: f64 = -1.183_472;

    #[test]
    fn curves_without_common_range_have_no_difference() {
        let low = points(RATES, QUALITIES);
        let high = points(RATES, QUALITIES.map(|q| q + 20.0));
        assert_eq!(bd_rate(&low, &high), None);
        assert!(bd_quality(&low, &high).is_some());
        assert_eq!(bd_rate(&low, &low[..1]), None);
    }

    #[test]
    fn a_point_below_the_line_between_two_others_is_not_on_the_hull() {
        let all = points([100.0, 200.0, 400.0, 250.0], [30.0, 33.0, 36.0, 33.1]);
        // The line from (100, 30) over (200, 33) to (400, 36) is straight in log rate.
        let kept: Vec<_> = hull(&all).iter().map(|p| (p.kbps, p.quality)).collect();
        assert_eq!(kept.first().zip(kept.last()), Some((&(100.0, 30.0), &(400.0, 36.0))));
        assert!(!kept.contains(&(250.0, 33.1)));
        let mut bent = all.clone();
        bent[1].quality = 34.0;
        assert_eq!(hull(&bent).len(), 3);
    }

    #[test]
    fn points_that_cost_more_and_give_less_are_not_on_the_front() {
        let all = points([100.0, 200.0, 300.0, 100.0], [30.0, 29.0, 33.0, 31.0]);
        let kept: Vec<_> = front(&all).iter().map(|p| (p.kbps, p.quality)).collect();
        assert_eq!(kept, [(100.0, 31.0), (300.0, 33.0)]);
    }
}
