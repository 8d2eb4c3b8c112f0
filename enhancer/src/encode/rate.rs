//! Finding the step size at which an anchor takes its budget, in as few encodes as may be.
//!
//! Step sizes are a real number on libvpx's quantiser scale: what lies between two quantisers, and
//! beyond the coarsest, is done by [damping](Step) what changes. The bytes of a picture fall almost
//! exponentially with it, so the secant of their logarithm is followed inside a shrinking bracket.

/// A step size on libvpx's scale of quantisers, 0 to [`Step::COARSEST`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Step(pub f64);

impl Step {
    /// At this step nothing changes.
    pub const COARSEST: Step = Step(72.0);
    /// No finer step is of use: the samples themselves are rounded.
    pub const FINEST: Step = Step(2.0);
    const LAST_QUANTISER: f64 = 63.0;

    /// The quantiser, and the share of every change that is coded, as of 256.
    pub fn split(self) -> (u8, i32) {
        let at = self.0.clamp(Self::FINEST.0, Self::COARSEST.0);
        let quantiser = at.floor().min(Self::LAST_QUANTISER);
        let rest = at - quantiser;
        let share = if quantiser < Self::LAST_QUANTISER {
            // From one quantiser to the next bytes fall by as much as if changes were damped by
            // this, measured on clips; finer quantisers lie further apart.
            let finer = (quantiser + 2.0) / (quantiser + 1.0);
            let growth = (finer * finer).max(DAMPING);
            growth.powf(-rest)
        } else {
            1.0 - rest / (Self::COARSEST.0 - Self::LAST_QUANTISER)
        };
        (quantiser as u8, (share * 256.0).round() as i32)
    }
}

/// Damping that costs as much as the next quantiser.
const DAMPING: f64 = 1.11;
/// Share of the budget that is aimed at: the middle of what is wanted, a little to the safe side.
const AIM: f64 = 0.973;
/// Least share that is good enough.
const ENOUGH: f64 = 0.95;
/// Change of the logarithm of bytes from one quantiser to the next, before any was seen.
const SLOPE: f64 = -0.09;
/// Slopes beyond these are noise: libvpx does not code the same picture alike twice.
const SLOPES: (f64, f64) = (-0.25, -0.04);
/// Steps nearer than this tell nothing of the slope.
const APART: f64 = 0.8;

/// What earlier anchors tell about the next.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Model {
    /// The step that the last one took, its bytes, and the slope seen there.
    last: Option<(Step, f64, f64)>,
}

impl Model {
    /// The step to try first for a budget.
    fn first(&self, budget: f64, otherwise: Step) -> Step {
        let Some((step, bytes, slope)) = self.last else { return otherwise };
        Step(step.0 + ((AIM * budget).ln() - bytes.ln()) / slope)
    }

    /// Takes over what a search found.
    pub fn learn(&mut self, search: &Search) {
        if let Some((step, bytes)) = search.last {
            self.last = Some((step, bytes.max(1.0), search.slope));
        }
    }
}

/// The search for one anchor.
#[derive(Debug, Clone)]
pub struct Search {
    budget: f64,
    next: Step,
    /// The coarsest step that was too large, with its bytes.
    above: Option<(f64, f64)>,
    /// The finest step that fitted, with its bytes.
    fits: Option<(f64, f64)>,
    last: Option<(Step, f64)>,
    slope: f64,
    encodes: u32,
}

/// What to do after an encode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Take what was just encoded.
    Take,
    /// Encode again with this step.
    Try(Step),
}

impl Search {
    /// Encodes after which the best that fits is taken, if it is not far off.
    pub const MOST: u32 = 8;
    /// Encodes after which anything that fits is taken.
    const MOST_OF_ALL: u32 = 14;
    /// Encodes after which the coarsest step decides, whatever the sizes did.
    const PATIENCE: u32 = 20;
    /// Share of the budget that is far off.
    const FAR_OFF: f64 = 0.85;

    /// A search for `budget` bytes; begins at `otherwise` where the model knows nothing.
    pub fn new(budget: usize, model: &Model, otherwise: Step) -> Self {
        let budget = budget.max(1) as f64;
        let first = model.first(budget, otherwise);
        Self {
            budget,
            next: Step(first.0.clamp(Step::FINEST.0, Step::COARSEST.0)),
            above: None,
            fits: None,
            last: None,
            slope: model.last.map_or(SLOPE, |(_, _, slope)| slope),
            encodes: 0,
        }
    }

    /// The step to begin with.
    pub fn first(&self) -> Step {
        self.next
    }

    /// Takes the bytes that the step asked for gave.
    pub fn tell(&mut self, bytes: usize) -> Verdict {
        let (at, bytes) = (self.next.0, bytes as f64);
        self.encodes += 1;
        if let Some((before, was)) = self.last
            && (at - before.0).abs() > APART
        {
            let slope = (bytes.max(1.0) / was.max(1.0)).ln() / (at - before.0);
            self.slope = slope.clamp(SLOPES.0, SLOPES.1);
        }
        self.last = Some((self.next, bytes));
        let fits = bytes <= self.budget;
        if fits && (bytes >= ENOUGH * self.budget || at <= Step::FINEST.0) {
            return Verdict::Take;
        }
        let best = self.fits.is_none_or(|(_, b)| bytes >= b);
        if fits && best {
            self.fits = Some((at, bytes));
        } else if !fits && self.above.is_none_or(|(a, _)| at >= a) {
            self.above = Some((at, bytes));
        }
        if if fits { self.encodes > self.most() } else { at >= Step::COARSEST.0 } {
            return Verdict::Take;
        }
        self.next = Step(self.after(at, bytes).clamp(Step::FINEST.0, Step::COARSEST.0));
        if self.encodes >= Self::PATIENCE {
            self.next = Step::COARSEST;
        }
        if self.next.0.to_bits() == at.to_bits() {
            self.next = Step((at + 0.5).min(Step::COARSEST.0));
        }
        Verdict::Try(self.next)
    }

    fn most(&self) -> u32 {
        let near = self.fits.is_some_and(|(_, bytes)| bytes >= Self::FAR_OFF * self.budget);
        if near { Self::MOST } else { Self::MOST_OF_ALL }
    }

    fn after(&self, at: f64, bytes: f64) -> f64 {
        let aim = (AIM * self.budget).ln();
        match (self.above, self.fits) {
            // The best that fitted, once more; should it not fit again, coarser and coarser.
            (_, Some((high, _))) if self.encodes >= self.most() => {
                high + 0.5 * f64::from(self.encodes - self.most())
            }
            // Noise can make a coarser step take more; then the bracket says nothing.
            (Some((low, more)), Some((high, less))) if low + 0.02 < high => {
                let (more, less) = (more.ln(), less.max(1.0).ln());
                let part = if more > less { (more - aim) / (more - less) } else { 0.5 };
                low + (high - low) * part.clamp(0.1, 0.9)
            }
            (Some((low, _)), Some((high, _))) => low.max(high) + 0.2,
            _ => at + (aim - bytes.max(1.0).ln()) / self.slope,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(budget: usize, model: &mut Model, bytes: impl Fn(f64) -> f64) -> (usize, u32) {
        let mut search = Search::new(budget, model, Step(40.0));
        let mut step = search.first();
        for n in 1.. {
            let size = bytes(step.0) as usize;
            match search.tell(size) {
                Verdict::Take => {
                    model.learn(&search);
                    return (size, n);
                }
                Verdict::Try(next) => step = next,
            }
        }
        unreachable!("the search ends")
    }

    #[test]
    fn steps_between_quantisers_damp_and_the_last_one_stops_everything() {
        assert_eq!(Step(30.0).split(), (30, 256));
        let (quantiser, share) = Step(30.5).split();
        assert!(quantiser == 30 && (235..256).contains(&share));
        assert_eq!(Step(72.0).split(), (63, 0));
        assert_eq!(Step(63.0).split(), (63, 256));
    }

    #[test]
    fn the_second_anchor_of_a_kind_needs_fewer_encodes() {
        let mut model = Model::default();
        let curve = |q: f64| 90_000.0 * (-0.07 * q).exp();
        let (first, second) = (run(5000, &mut model, curve), run(6000, &mut model, curve));
        assert!(second.1 <= first.1.min(2), "{first:?} {second:?}");
    }

    #[test]
    fn what_cannot_take_its_budget_is_coded_as_finely_as_can_be() {
        assert_eq!(run(5000, &mut Model::default(), |_| 300.0).0, 300);
    }

    proptest! {
        #[test]
        fn smooth_curves_land_in_the_window(
            top in 5_000f64..2e6, slope in 0.03f64..0.15, share in 0.05f64..0.8,
        ) {
            let curve = |q: f64| top * (-slope * q).exp();
            let (least, most) = (curve(63.0), curve(3.0));
            let budget = (least * (most / least).powf(share)) as usize;
            prop_assume!(budget > 500);
            let (size, encodes) = run(budget, &mut Model::default(), curve);
            prop_assert!(size <= budget && size as f64 >= 0.95 * budget as f64 - 1.0);
            prop_assert!(encodes <= Search::MOST);
        }

        #[test]
        fn any_sizes_end_the_search(sizes in proptest::collection::vec(0usize..100_000, 200), budget in 0usize..50_000) {
            let mut search = Search::new(budget, &Model::default(), Step(40.0));
            let mut encodes = 0;
            for size in sizes {
                encodes += 1;
                if search.tell(size) == Verdict::Take {
                    break;
                }
            }
            prop_assert!(encodes <= Search::PATIENCE + 1);
        }
    }
}
