//! Rate control: the quantiser step whose code fills a budget.
//!
//! Beyond a floor that any picture costs, the logarithm of a code's length falls almost linearly with that of its
//! step. So a first guess from the detail's strength and a few secant steps suffice. A bracket keeps the search safe
//! where they do not.

use std::ops::RangeInclusive;

use super::AnchorCodecError;
use crate::detail::{Detail, ONE};

/// Minimum share of the budget that a code must fill for the search to end.
const MIN_FILL: f64 = 0.95;
/// Share of the budget that the next code aims at.
const AIM: f64 = 0.98;
/// Maximum number of codes that are tried: many more than the property tests ever need.
const MAX_TRIES: usize = 24;

/// How a codec's step and the length of its code go together, fitted to clips (`lab/notes/anchor-codecs.md`): ln step =
/// ln (mean detail) + `offset` − `power` · ln (bytes beyond the floor per sample).
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    /// Length of a code of an empty picture, in bytes.
    pub(super) floor: f64,
    pub(super) offset: f64,
    pub(super) power: f64,
}

/// How much detail there is to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    /// Number of samples of the detail.
    pub samples: usize,
    /// Sum of the samples' magnitudes, in sixteenths of a grey level.
    pub magnitudes: u64,
}

impl From<&Detail> for Strength {
    fn from(detail: &Detail) -> Self {
        let magnitudes = detail.samples().iter().map(|d| u64::from(d.unsigned_abs())).sum();
        Strength { samples: detail.samples().len(), magnitudes }
    }
}

/// A tried step and the length of its code, as logarithms.
type Tried = (f64, f64);

/// The longest code of at most `budget` bytes among those tried. The search ends once a code fills 95 % of the
/// budget. `code` makes a code with a step in grey levels, within `steps`.
pub(super) fn encode_within(
    strength: Strength,
    budget: usize,
    model: Model,
    steps: RangeInclusive<f32>,
    mut code: impl FnMut(f32) -> Result<Vec<u8>, AnchorCodecError>,
) -> Result<Vec<u8>, AnchorCodecError> {
    let (finest, coarsest) = (f64::from(*steps.start()).ln(), f64::from(*steps.end()).ln());
    let area = strength.samples as f64;
    let beyond = |length: f64| (length - model.floor).max(1.0).ln();
    let aim = beyond(budget as f64 * AIM);
    let mut best: Option<Vec<u8>> = None;
    // The nearest steps known to give too long and short enough codes.
    let (mut long, mut short): (Option<Tried>, Option<Tried>) = (None, None);
    let mean = (strength.magnitudes as f64 / area / f64::from(ONE)).max(0.01);
    let mut at = mean.ln() + model.offset - model.power * (aim - area.ln());
    at = at.clamp(finest, coarsest);
    for tries in 0..MAX_TRIES {
        let bytes = code(at.exp() as f32)?;
        let length = bytes.len();
        let tried = (at, beyond(length as f64));
        if length <= budget {
            let enough = length as f64 >= budget as f64 * MIN_FILL || at <= finest;
            if best.as_ref().is_none_or(|b| b.len() < length) {
                best = Some(bytes);
            }
            short = Some(tried);
            if enough {
                break;
            }
        } else {
            if at >= coarsest {
                return Err(AnchorCodecError::Budget { budget });
            }
            long = Some(tried);
        }
        at = match (long, short) {
            (Some(a), Some(b)) if b.0 - a.0 < 1e-4 => break,
            // Every third time the middle, against a curve that bends.
            (Some(a), Some(b)) if tries % 3 == 2 => f64::midpoint(a.0, b.0),
            (Some(a), Some(b)) => {
                let share = (a.1 - aim) / (a.1 - b.1).max(1e-9);
                a.0 + (b.0 - a.0) * share.clamp(0.1, 0.9)
            }
            // Away from what is known, by the usual slope and more each time.
            _ => at + (tried.1 - aim) * model.power * (1.0 + 0.5 * tries as f64),
        };
        at = at.clamp(finest, coarsest);
    }
    best.ok_or(AnchorCodecError::Budget { budget })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model { floor: 100.0, offset: 0.0, power: 0.8 };

    #[test]
    fn budgets_are_met_in_few_tries_on_a_usual_curve() {
        let detail = Detail::from_samples(64, 64, vec![32; 4096]).expect("the count is right");
        for slope in [0.6, 1.0, 1.6] {
            for budget in [300, 2000, 15_000, 90_000] {
                let mut tries = 0;
                let code = encode_within((&detail).into(), budget, MODEL, 0.01..=1e6, |step| {
                    tries += 1;
                    Ok(vec![0; (200.0 + 60_000.0 * f64::from(step).powf(-slope)) as usize])
                });
                let length = code.expect("the coarsest fits").len();
                assert!(length <= budget && length * 100 >= budget * 95, "{length} of {budget}");
                assert!(tries <= 9, "{tries} for {budget}, slope {slope}");
            }
        }
    }

    #[test]
    fn a_curve_of_stairs_ends_with_the_best_that_fits() {
        let detail = Detail::zero(8, 8);
        let stairs = |step: f32| Ok(vec![0; if step > 3.0 { 100 } else { 1000 }]);
        let code =
            encode_within((&detail).into(), 500, MODEL, 1.0..=255.0, stairs).map(|c| c.len());
        assert_eq!(code, Ok(100));
        let none = encode_within((&detail).into(), 50, MODEL, 1.0..=255.0, stairs);
        assert_eq!(none, Err(AnchorCodecError::Budget { budget: 50 }));
        let finest =
            encode_within((&detail).into(), 5000, MODEL, 1.0..=255.0, stairs).map(|c| c.len());
        assert_eq!(finest, Ok(1000));
    }
}
