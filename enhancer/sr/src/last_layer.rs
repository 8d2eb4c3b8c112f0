//! Fine-tunes the last layer of a network with a publisher's own pixels during a call.
//!
//! Source: NeuroScaler §2 (content-aware networks; here without a training farm), LiveNAS (online learning from patches
//! of the publisher). The layers before it compute features, and the last layer is linear in them. So the weights with
//! the least error on the pictures so far are those of a ridge regression about the generic weights. This needs no
//! steps and no learning rate. Its sums also give the exact error of any weights on the pictures of a validation set.
//!
//! In: pictures with a known HR luma (a decoded larger layer, the camera's own tiles) and an engine. Out: weights of
//! the same architecture ([`Engine::swap`]), or none if they do not help on the validation set. Pictures that are worse
//! than the network's own output make the network worse (`lab/notes/networks.md`): the caller must leave them out.
//!
//! Features are read through the engine itself, with weights whose last layer outputs some of them. Every backend can
//! do that.

use std::sync::Arc;

use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_vp9::simd::Isa;

use crate::model::Conv;
use crate::{Engine, InferError, Input, Luma, Model, Residual};

/// Interval of the low samples that are used, in each direction. Each picture uses others.
const STEP: usize = 2;
/// Interval of the blocks that are held back, the same ones in all pictures. Weights are tried on content that they
/// were not learned from, even if it stands still for minutes.
const HOLD_EVERY: usize = 4;
/// Side of a block that is held back or learned from, in low samples.
const BLOCK: usize = 16;
/// Minimum share of the squared error on held-back samples that new weights must remove.
const MIN_GAIN: f64 = 0.01;
/// Strengths of the ridge regression's pull to the generic weights that are tried, as shares of each feature's own
/// energy.
const RIDGES: [f64; 6] = [0.0003, 0.003, 0.03, 0.1, 0.3, 1.0];
/// Gate input with which the sigmoid is zero.
const SHUT: f32 = -100.0;

/// Learns a network's last layer from pictures of one publisher, in sums that keep no picture.
pub struct LastLayer {
    generic: Arc<Model>,
    /// Networks whose last layer passes features on, each a few channels.
    selectors: Vec<Arc<Model>>,
    learned: Moments,
    held: Moments,
    pictures: u64,
    features: Vec<Residual>,
    answer: Residual,
    base: Vec<i16>,
    scratch: Scratch,
}

/// A network whose last layer was learned from one publisher's pictures.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The network with its new last layer.
    pub model: Arc<Model>,
    /// Gain over the generic network on samples that were held back, in dB.
    pub held_back_db: f64,
}

impl Learned {
    /// Gain over the generic network on another picture, in dB. Below zero the content has changed, and the generic
    /// weights should be used again. `engine` has the generic weights afterwards.
    ///
    /// # Errors
    ///
    /// Fails if `wanted` is not of the HR size, or the engine fails.
    pub fn gain_db(
        &self,
        engine: &mut dyn Engine,
        generic: &Arc<Model>,
        input: &Input<'_>,
        wanted: Luma<'_>,
    ) -> Result<f64, InferError> {
        let (width, height) = (wanted.width(), wanted.height());
        let scale = generic.architecture().scale;
        if (width, height) != (scale * input.low.width(), scale * input.low.height()) {
            return Err(InferError::Size { width, height });
        }
        let (mut base, mut residual) = (vec![0; width * height], Residual::default());
        let rows = 0..input.low.height();
        lanczos(
            Isa::detect(),
            input.low.samples(),
            scale,
            rows,
            &mut base,
            &mut Scratch::default(),
        );
        let mut left = [0.0; 2];
        for (left, model) in left.iter_mut().zip([&self.model, generic]) {
            run(engine, model, input, &mut residual)?;
            let samples = base.iter().zip(&residual.data);
            let wanted = (0..height).flat_map(|y| wanted.row(y));
            *left = samples
                .zip(wanted)
                .map(|((&b, r), &w)| {
                    f64::from((f32::from(b) / 16.0 + r).clamp(0.0, 255.0) - f32::from(w)).powi(2)
                })
                .sum::<f64>();
        }
        Ok(10.0 * (left[1].max(1e-9) / left[0].max(1e-9)).log10())
    }
}

/// Sums over samples: of products of features, of features and errors, and of squared errors.
#[derive(Debug, Clone)]
struct Moments {
    size: usize,
    outputs: usize,
    /// Sums of products of two features: the upper triangle, row by row.
    products: Vec<f64>,
    /// Sums of products of each feature with the error of each output, by feature.
    errors: Vec<f64>,
    squares: f64,
}

impl Moments {
    fn new(size: usize, outputs: usize) -> Self {
        let (products, errors) = (vec![0.0; size * size], vec![0.0; size * outputs]);
        Moments { size, outputs, products, errors, squares: 0.0 }
    }

    fn add(&mut self, features: &[f64], errors: &[f64]) {
        for (i, &feature) in features.iter().enumerate() {
            // ReLU leaves many at zero.
            if feature == 0.0 {
                continue;
            }
            let row = &mut self.products[i * self.size + i..(i + 1) * self.size];
            for (sum, other) in row.iter_mut().zip(&features[i..]) {
                *sum += feature * other;
            }
            let row = &mut self.errors[i * self.outputs..][..self.outputs];
            for (sum, error) in row.iter_mut().zip(errors) {
                *sum += feature * error;
            }
        }
        self.squares += errors.iter().map(|e| e * e).sum::<f64>();
    }

    fn scale(&mut self, by: f64) {
        self.products.iter_mut().chain(&mut self.errors).for_each(|sum| *sum *= by);
        self.squares *= by;
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        self.products[i.min(j) * self.size + i.max(j)]
    }

    /// Solves for the change of weights that leaves the least squared error, with `ridge` as the pull to no change. The
    /// result has one value for each output, by feature.
    fn solve(&self, ridge: f64) -> Option<Vec<f64>> {
        let (n, outputs) = (self.size, self.outputs);
        let mean = (0..n).map(|i| self.product(i, i)).sum::<f64>() / n as f64;
        if mean <= 0.0 {
            return None;
        }
        // Cholesky: L·Lᵀ, of which the lower triangle is kept.
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let pull = if i == j { ridge * (self.product(i, i) + 0.01 * mean) } else { 0.0 };
                let known: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let left = self.product(i, j) + pull - known;
                lower[i * n + j] = if i == j {
                    if left.is_nan() || left <= 0.0 {
                        return None;
                    }
                    left.sqrt()
                } else {
                    left / lower[j * n + j]
                };
            }
        }
        let mut change = self.errors.clone();
        for output in 0..outputs {
            for i in 0..n {
                let known: f64 =
                    (0..i).map(|k| lower[i * n + k] * change[k * outputs + output]).sum();
                change[i * outputs + output] =
                    (change[i * outputs + output] - known) / lower[i * n + i];
            }
            for i in (0..n).rev() {
                let known: f64 =
                    (i + 1..n).map(|k| lower[k * n + i] * change[k * outputs + output]).sum();
                change[i * outputs + output] =
                    (change[i * outputs + output] - known) / lower[i * n + i];
            }
        }
        Some(change)
    }

    /// Squared error that a change of weights would leave.
    fn left_by(&self, change: &[f64]) -> f64 {
        let (n, outputs) = (self.size, self.outputs);
        let mut left = self.squares;
        for output in 0..outputs {
            let of = |i: usize| change[i * outputs + output];
            for i in 0..n {
                let mixed: f64 = (0..n).map(|j| self.product(i, j) * of(j)).sum();
                left += of(i) * (mixed - 2.0 * self.errors[i * outputs + output]);
            }
        }
        left
    }
}

impl LastLayer {
    /// Creates a learner without samples.
    pub fn new(generic: Arc<Model>) -> Self {
        let architecture = generic.architecture();
        let outputs = architecture.scale * architecture.scale;
        let size = 9 * architecture.channels + 1;
        let selectors = (0..architecture.channels).step_by(outputs).map(|first| {
            let channels = first..(first + outputs).min(architecture.channels);
            Arc::new(with_last(&generic, selector(&generic, channels)))
        });
        LastLayer {
            selectors: selectors.collect(),
            learned: Moments::new(size, outputs),
            held: Moments::new(size, outputs),
            pictures: 0,
            features: Vec::new(),
            answer: Residual::default(),
            base: Vec::new(),
            scratch: Scratch::default(),
            generic,
        }
    }

    /// Learns from a picture whose HR luma is `wanted`. `engine` must have the generic network's architecture, and has
    /// the generic weights afterwards.
    ///
    /// # Errors
    ///
    /// Fails if `wanted` is not of the HR size, or the engine fails.
    pub fn see(
        &mut self,
        engine: &mut dyn Engine,
        input: &Input<'_>,
        wanted: Luma<'_>,
    ) -> Result<(), InferError> {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = self.generic.architecture().scale;
        if (wanted.width(), wanted.height()) != (scale * width, scale * height) {
            let (width, height) = (wanted.width(), wanted.height());
            return Err(InferError::Size { width, height });
        }
        self.features.resize_with(self.selectors.len(), Residual::default);
        for (selector, features) in self.selectors.iter().zip(&mut self.features) {
            run(engine, selector, input, features)?;
        }
        run(engine, &self.generic, input, &mut self.answer)?;
        self.base.resize(scale * width * scale * height, 0);
        let low = input.low.samples();
        lanczos(Isa::detect(), low, scale, 0..height, &mut self.base, &mut self.scratch);
        self.take(width, height, wanted);
        self.pictures += 1;
        Ok(())
    }

    /// Adds the samples in the buffers to the sums.
    fn take(&mut self, width: usize, height: usize, wanted: Luma<'_>) {
        let architecture = self.generic.architecture();
        let (scale, channels) = (architecture.scale, architecture.channels);
        let high_width = scale * width;
        let mut features = vec![0.0; self.learned.size];
        let mut errors = vec![0.0; self.learned.outputs];
        // Others in each picture, all in time.
        let start = self.pictures as usize * 5;
        for y in (start / STEP % STEP..height).step_by(STEP) {
            for x in (start % STEP..width).step_by(STEP) {
                for (channel, features) in features.chunks_exact_mut(9).enumerate() {
                    let plane = &self.features[channel / (scale * scale)].data;
                    let place = channel % (scale * scale);
                    for (tap, feature) in features.iter_mut().enumerate() {
                        let (x, y) = (x + tap % 3, y + tap / 3);
                        let inside = (1..=width).contains(&x) && (1..=height).contains(&y);
                        *feature = if inside {
                            let row = scale * (y - 1) + place / scale;
                            f64::from(plane[row * high_width + scale * (x - 1) + place % scale])
                        } else {
                            0.0
                        };
                    }
                }
                features[9 * channels] = 1.0;
                for (output, error) in errors.iter_mut().enumerate() {
                    let row = scale * y + output / scale;
                    let at = scale * x + output % scale;
                    let made = f32::from(self.base[row * high_width + at]) * (1.0 / 16.0)
                        + self.answer.data[row * high_width + at];
                    *error = f64::from(f32::from(wanted.row(row)[at]) - made);
                }
                let held = (x / BLOCK + 2 * (y / BLOCK)) % HOLD_EVERY == HOLD_EVERY - 1;
                let moments = if held { &mut self.held } else { &mut self.learned };
                moments.add(&features, &errors);
            }
        }
    }

    /// Frees the working memory, some planes of HR size. The sums stay.
    pub fn release(&mut self) {
        (self.features, self.base) = (Vec::new(), Vec::new());
        (self.answer, self.scratch) = (Residual::default(), Scratch::default());
    }

    /// Multiplies the sums by `keep`, so that earlier pictures count less: people and light change.
    pub fn forget(&mut self, keep: f64) {
        self.learned.scale(keep);
        self.held.scale(keep);
    }

    /// Weights that are better on held-back samples by at least `MIN_GAIN`; `None` if there are none.
    pub fn learned(&self) -> Option<Learned> {
        let before = self.held.squares;
        let tried = RIDGES.iter().filter_map(|&ridge| {
            let change = self.learned.solve(ridge)?;
            let left = self.held.left_by(&change);
            (left.is_finite() && left < before * (1.0 - MIN_GAIN)).then_some((left, change))
        });
        let (left, change) = tried.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let held_back_db = 10.0 * (before / left.max(1e-9)).log10();
        let mut last = self.generic.convs().last()?.clone();
        let (outputs, taps) = (self.learned.outputs, self.learned.size - 1);
        for output in 0..outputs {
            for (tap, weight) in last.weights[output * taps..][..taps].iter_mut().enumerate() {
                *weight += change[tap * outputs + output] as f32;
            }
            last.bias[output] += change[taps * outputs + output] as f32;
        }
        let finite = last.weights.iter().chain(&last.bias).all(|w| w.is_finite());
        finite.then(|| Learned { model: Arc::new(with_last(&self.generic, last)), held_back_db })
    }
}

/// Infers a picture with the given weights, which the engine keeps.
fn run(
    engine: &mut dyn Engine,
    model: &Arc<Model>,
    input: &Input<'_>,
    out: &mut Residual,
) -> Result<(), InferError> {
    engine.swap(model).map_err(|error| InferError::Device(error.to_string()))?;
    engine.infer_batch(&[*input], std::slice::from_mut(out))
}

/// Creates a last layer that outputs some channels of its input, and shuts all gates.
fn selector(model: &Model, channels: std::ops::Range<usize>) -> Conv {
    let architecture = model.architecture();
    let (outputs, inputs) = architecture.shape(architecture.convs - 1);
    let mut conv = Conv { weights: vec![0.0; outputs * inputs * 9], bias: vec![0.0; outputs] };
    for (output, channel) in channels.enumerate() {
        conv.weights[(output * inputs + channel) * 9 + 4] = 1.0;
    }
    conv.bias[architecture.scale * architecture.scale..].fill(SHUT);
    conv
}

/// A copy of `model` whose last layer is `last`, which has the shape of the former one.
fn with_last(model: &Model, last: Conv) -> Model {
    let mut convs = model.convs().to_vec();
    convs.pop();
    convs.push(last);
    Model::from_convs(model.architecture(), convs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{LOW, changed, made, pictures};
    use crate::{Architecture, CpuEngine};

    /// Shows pictures of which the truth is what `truth` makes of them.
    fn taught(generic: &Arc<Model>, truth: &Arc<Model>, count: usize) -> LastLayer {
        let (mut lessons, mut engine) =
            (LastLayer::new(generic.clone()), CpuEngine::new(generic.clone()));
        let mut teacher = CpuEngine::new(truth.clone());
        let architecture = generic.architecture();
        for n in 0..count {
            let (low, twin) = pictures(n, architecture.scale);
            let low = Luma::packed(&low, LOW.0, LOW.1).unwrap();
            let high = (architecture.scale * LOW.0, architecture.scale * LOW.1);
            let twin =
                architecture.has_twin().then(|| Luma::packed(&twin, high.0, high.1).unwrap());
            let input = Input { low, twin };
            let wanted = made(&mut teacher, &input);
            lessons
                .see(&mut engine, &input, Luma::packed(&wanted, high.0, high.1).unwrap())
                .unwrap();
            lessons.release();
        }
        lessons
    }

    #[test]
    fn a_last_layer_is_found_from_pictures_of_it() {
        for architecture in [
            Architecture::chain(2, 8, 3),
            Architecture::chain(2, 16, 3).with_twin(),
            Architecture::chain(3, 8, 2).with_twin(),
            Architecture::blocks(2, 8, 1),
        ] {
            let generic = Arc::new(Model::random(architecture, 3).unwrap());
            let learned = taught(&generic, &changed(&generic), 12)
                .learned()
                .expect("there is something to learn");
            assert!(learned.held_back_db > 6.0, "{architecture}: {} dB", learned.held_back_db);
            assert_eq!(learned.model.architecture(), architecture);
        }
    }

    #[test]
    fn nothing_is_learned_where_the_generic_network_is_right() {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        assert!(
            taught(&generic, &generic, 8).learned().is_none(),
            "rounding alone is nothing to learn"
        );
        assert!(LastLayer::new(generic.clone()).learned().is_none());
    }

    #[test]
    fn what_helps_only_on_what_was_learned_from_is_not_taken() {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        let mut lessons = taught(&generic, &changed(&generic), 6);
        // What was held back wants the opposite.
        lessons.held.errors.iter_mut().for_each(|sum| *sum = -*sum);
        assert!(lessons.learned().is_none());
    }

    #[test]
    fn the_engine_has_the_generic_weights_afterwards_and_misfits_are_refused() {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        let mut engine = CpuEngine::new(generic.clone());
        let (low, high) = pictures(0, 2);
        let input = Input { low: Luma::packed(&low, LOW.0, LOW.1).unwrap(), twin: None };
        let before = made(&mut engine, &input);
        let mut lessons = LastLayer::new(generic);
        let wanted = Luma::packed(&high, 2 * LOW.0, 2 * LOW.1).unwrap();
        lessons.see(&mut engine, &input, wanted).unwrap();
        assert_eq!(made(&mut engine, &input), before);
        let small = Luma::packed(&high, LOW.0, LOW.1).unwrap();
        assert!(matches!(lessons.see(&mut engine, &input, small), Err(InferError::Size { .. })));
        lessons.forget(0.0);
        assert!(lessons.learned().is_none());
    }

    #[test]
    fn what_was_learned_is_seen_to_help_on_its_own_content_and_not_on_another() {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        let truth = changed(&generic);
        let learned = taught(&generic, &truth, 6).learned().expect("there is something to learn");
        let (low, _) = pictures(40, 2);
        let input = Input { low: Luma::packed(&low, LOW.0, LOW.1).unwrap(), twin: None };
        let mut engine = CpuEngine::new(generic.clone());
        let own = made(&mut CpuEngine::new(truth), &input);
        let other = made(&mut engine, &input);
        let mut gain = |wanted: &[u8]| {
            let wanted = Luma::packed(wanted, 2 * LOW.0, 2 * LOW.1).unwrap();
            learned.gain_db(&mut engine, &generic, &input, wanted).unwrap()
        };
        assert!(gain(&own) > 3.0);
        assert!(gain(&other) < 0.0);
    }
}
