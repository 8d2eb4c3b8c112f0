//! Decides whether a network keeps its result in a narrower type of number than it was trained in.
//!
//! The built-in networks do. Other networks may have numbers that half precision cannot represent, or sums beyond its
//! range; they run in single precision. Each model is tested once, on a small picture of edges, ramps and noise.

use crate::simd::Simd;
use crate::{Input, Luma, Model, Residual};

/// Maximum difference of a result that counts as the same, as a share of the result (root mean square). For the
/// residuals of our networks it is far below a tenth of a grey level.
const SHARE: f32 = 0.02;
/// Width and height of the picture on which a network is tried, in low samples.
const SIZE: (usize, usize) = (24, 12);

impl Simd {
    /// The fastest instruction set and type of number for a model. It is in single precision if a narrower type would
    /// change the result.
    pub(super) fn best_for(model: &Model) -> Simd {
        let (best, single) = (Simd::available().pop().unwrap_or(Simd::Scalar), Simd::single());
        let kept = best.number() == single.number()
            || model.is_kept(|model| {
                let kept = same(model, best, single);
                if !kept {
                    tracing::info!(
                        number = best.number(),
                        "the network would lose: it runs in single precision"
                    );
                }
                kept
            });
        if kept { best } else { single }
    }
}

/// Whether two forms give the same result for a picture.
fn same(model: &Model, a: Simd, b: Simd) -> bool {
    let (width, height) = SIZE;
    let (architecture, mut state) = (model.architecture(), 7u32);
    let mut samples = |count: usize| -> Vec<u8> {
        let sample = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match n / 7 % 4 {
                0 => (state >> 24) as u8,
                1 => 255 * u8::from(n.is_multiple_of(3)),
                2 => 255,
                _ => (n * 5 % 256) as u8,
            }
        };
        (0..count).map(sample).collect()
    };
    let low = samples(width * height);
    let scale = architecture.scale;
    let twin = architecture.has_twin().then(|| samples(scale * scale * width * height));
    let run = |simd: Simd| {
        let twin = twin.as_ref().map(|twin| Luma::packed(twin, scale * width, scale * height));
        let input =
            Input { low: Luma::packed(&low, width, height).ok()?, twin: twin.transpose().ok()? };
        let mut out = Residual::default();
        out.resize(scale * width, scale * height);
        simd.network(model).infer(model, &input, &mut out);
        Some(out)
    };
    let (Some(a), Some(b)) = (run(a), run(b)) else { return false };
    let squares = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    let difference = squares(&mut a.data.iter().zip(&b.data).map(|(a, b)| a - b));
    difference <= SHARE * SHARE * squares(&mut b.data.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::scaled;
    use crate::{Architecture, CpuEngine, Engine, embedded_model, fused_m_model, fused_model};

    #[test]
    fn the_networks_of_this_build_keep_their_results_in_the_fastest_form() {
        for model in [embedded_model(), fused_model(), fused_m_model()] {
            let best = Simd::best_for(&model.expect("it is built in"));
            assert_eq!(Some(best), Simd::available().pop());
        }
    }

    #[test]
    fn a_network_beyond_half_precision_runs_in_single_also_after_a_swap() {
        let plain = Model::random(Architecture::blocks(2, 32, 2), 3).expect("an architecture");
        let (plain, wild) = (scaled(&plain, 1.0), scaled(&plain, 300.0));
        let mut engine = CpuEngine::new(plain.clone());
        let best = engine.backend();
        engine.swap(&wild).expect("the same architecture");
        assert_eq!(engine.backend(), Simd::single().name());
        assert_eq!(CpuEngine::new(wild).backend(), Simd::single().name());
        engine.swap(&plain).expect("the same architecture");
        assert_eq!(engine.backend(), best);
    }
}
