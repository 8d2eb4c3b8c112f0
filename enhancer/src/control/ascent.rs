//! Gradient ascent within bounds.
//!
//! Source: OneAdapt §4.1.2, equation 4.2: `k += α·(ΔQ/Δk − λ·Δr/Δk)`, with knobs normalised to 0…1 so that more is more
//! resources (§4.1.5). Differences are central. The paper takes one step an interval with a fixed α; here the
//! objective is a model that costs microseconds, so steps are taken until none helps, each halved until it
//! does, and the way gone in one interval is bounded instead.

/// Parameters of the gradient ascent over knobs that are normalised to 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ascent {
    /// Δk: distance by which a knob is moved to measure the gradient.
    pub probe: f64,
    /// Maximum move of a knob in one interval.
    pub reach: f64,
    /// Maximum number of steps in one interval.
    pub steps: u32,
}

impl Default for Ascent {
    fn default() -> Self {
        Ascent { probe: 0.04, reach: 0.25, steps: 24 }
    }
}

impl Ascent {
    /// Climbs from `from`, whose knobs must lie in 0…1, by at most [`reach`](Self::reach) per knob. If the objective is
    /// not a number, nothing moves.
    pub fn climb<const N: usize>(
        &self,
        from: [f64; N],
        objective: impl Fn(&[f64; N]) -> f64,
    ) -> [f64; N] {
        let inside = |i: usize, value: f64| {
            let (min, max) = (from[i] - self.reach, from[i] + self.reach);
            value.clamp(min.max(0.0), max.min(1.0))
        };
        let mut at = from;
        let mut best = objective(&at);
        let mut length = self.reach;
        for _ in 0..self.steps {
            let gradient = self.gradient(&at, &objective);
            let steepest = gradient.iter().fold(0.0, |max: f64, g| max.max(g.abs()));
            if !(steepest.is_finite() && steepest > 0.0 && best.is_finite()) || length < 1e-3 {
                break;
            }
            let next: [f64; N] =
                std::array::from_fn(|i| inside(i, at[i] + length * gradient[i] / steepest));
            let value = objective(&next);
            if value > best {
                (at, best) = (next, value);
            } else {
                length /= 2.0;
            }
        }
        at
    }

    /// Slope of the objective along every knob, by finite differences within 0…1.
    pub fn gradient<const N: usize>(
        &self,
        at: &[f64; N],
        objective: impl Fn(&[f64; N]) -> f64,
    ) -> [f64; N] {
        std::array::from_fn(|i| {
            let moved = |by: f64| {
                let mut knobs = *at;
                knobs[i] = (knobs[i] + by).clamp(0.0, 1.0);
                (knobs[i], objective(&knobs))
            };
            let ((low, below), (high, above)) = (moved(-self.probe), moved(self.probe));
            let slope = (above - below) / (high - low);
            if slope.is_finite() { slope } else { 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A concave surface with its top at `top`.
    fn hill(top: [f64; 3]) -> impl Fn(&[f64; 3]) -> f64 {
        move |at| (0..3).map(|i| -[30.0, 5.0, 80.0][i] * (at[i] - top[i]).powi(2)).sum()
    }

    #[test]
    fn the_gradient_of_a_parabola_is_its_derivative() {
        let gradient = Ascent::default().gradient(&[0.5, 0.5, 0.5], hill([0.7, 0.5, 0.4]));
        assert!((gradient[0] - 12.0).abs() < 1e-9 && gradient[1].abs() < 1e-9);
        assert!((gradient[2] + 16.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_moves_where_the_objective_is_not_a_number() {
        let ascent = Ascent::default();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let [one, two] = ascent.climb([0.2, 0.9], |_| value);
            assert!((one - 0.2).abs() < 1e-12 && (two - 0.9).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn five_intervals_reach_the_top_from_anywhere(
            from in prop::array::uniform3(0.0..1.0f64),
            top in prop::array::uniform3(0.0..1.0f64),
        ) {
            let ascent = Ascent::default();
            let mut at = from;
            for _ in 0..5 {
                let next = ascent.climb(at, hill(top));
                for i in 0..3 {
                    prop_assert!((next[i] - at[i]).abs() <= ascent.reach + 1e-12);
                    prop_assert!((0.0..=1.0).contains(&next[i]));
                }
                prop_assert!(hill(top)(&next) >= hill(top)(&at));
                at = next;
            }
            prop_assert!(hill(top)(&at) > -0.3, "{at:?} is not {top:?}");
        }
    }
}
