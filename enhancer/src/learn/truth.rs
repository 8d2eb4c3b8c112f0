//! Measures what a network is worth on a picture whose original is known.

use std::sync::Arc;

use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_sr::{Engine, InferError, Input, Luma, Model, Residual};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

use windlass_scheduler::worth::Truth;

/// Compares three pictures with the publisher's own: what viewers see without enhanced anchors, and what the network
/// makes of it with the weights in use. `engine` has the generic weights afterwards. `None` if there is nothing to
/// compare, or sizes do not fit.
pub(crate) fn truth_of(
    engine: &mut dyn Engine,
    used: &Arc<Model>,
    generic: &Arc<Model>,
    view: Option<&Input<'_>>,
    seen: &Plane,
    wanted: Luma<'_>,
) -> Result<Option<Truth>, InferError> {
    let Some(view) = view else { return Ok(None) };
    let scale = generic.architecture().scale;
    let low = view.low.samples();
    let (width, height) = (scale * low.width, scale * low.height);
    let fits = |size: (usize, usize)| size == (width, height);
    if !fits((seen.width(), seen.height())) || !fits((wanted.width(), wanted.height())) {
        return Ok(None);
    }
    let failed = |error: windlass_sr::SwapError| InferError::Device(error.to_string());
    let mut residual = Residual::default();
    engine.swap(used).map_err(failed)?;
    let made = engine.infer_batch(&[*view], std::slice::from_mut(&mut residual));
    engine.swap(generic).map_err(failed)?;
    made?;
    let mut base = vec![0; width * height];
    lanczos(Isa::detect(), low, scale, 0..low.height, &mut base, &mut Scratch::default());
    let mut sums = [0.0; 3];
    for y in 0..height {
        let row = y * width..(y + 1) * width;
        let made = base[row.clone()].iter().zip(&residual.data[row]);
        for (((&base, &residual), &seen), &wanted) in made.zip(seen.row(y)).zip(wanted.row(y)) {
            let made = (f32::from(base) / 16.0 + residual).clamp(0.0, 255.0);
            let (seen, wanted) = (f32::from(seen), f32::from(wanted));
            sums[0] += f64::from(seen - wanted).powi(2);
            sums[1] += f64::from(made - wanted).powi(2);
            sums[2] += f64::from(made - seen).powi(2);
        }
    }
    let [seen, made, change] = sums.map(|sum| sum / (width * height) as f64);
    Ok(Some(Truth { seen, made, change }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_scheduler::worth::Belief;
    use windlass_sr::fixtures::{LOW, made, pictures};
    use windlass_sr::{Architecture, CpuEngine};

    #[test]
    fn a_network_that_makes_the_truth_is_right_and_one_that_makes_something_else_is_not() {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        let (low, _) = pictures(1, 2);
        let view = Input { low: Luma::packed(&low, LOW.0, LOW.1).unwrap(), twin: None };
        let high = (2 * LOW.0, 2 * LOW.1);
        let mut engine = CpuEngine::new(generic.clone());
        let enhanced = made(&mut engine, &view);
        let seen = Plane::from_samples(high.0, high.1, vec![90; high.0 * high.1]).unwrap();
        let mut db = |wanted: &[u8]| {
            let wanted = Luma::packed(wanted, high.0, high.1).unwrap();
            let view = Some(&view);
            let truth = truth_of(&mut engine, &generic, &generic, view, &seen, wanted);
            let truth = truth.unwrap().unwrap();
            let mut belief = Belief::default();
            belief.learn(&truth);
            belief.own_db(truth.change)
        };
        assert!(db(&enhanced) > 9.0, "all that is wrong goes");
        assert!(db(seen.samples()) < 0.0, "nothing was wrong");
    }
}
