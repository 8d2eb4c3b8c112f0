//! Conformance of backends: a network by its definition, in f64, and checks of an engine against it.
//!
//! ```
//! use std::sync::Arc;
//! use windlass_sr::{CpuEngine, Simd, conformance};
//!
//! let case = &conformance::Case::all()[0];
//! let model = Arc::new(case.model());
//! let mut engine = CpuEngine::with_simd(model, Simd::single()).expect("the CPU has it");
//! assert!(conformance::check(&mut engine, case)? < 1e-5);
//! # Ok::<(), conformance::Violation>(())
//! ```

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_types::Size;
use windlass_vp9::simd::Isa;

use crate::{Architecture, Conv, Engine, InferError, Input, Luma, Model, Residual, SwapError};

/// How an engine broke the contract.
#[derive(Debug, Error)]
pub enum Violation {
    /// The engine refused a picture that it must take.
    #[error("the engine refused a picture: {0}")]
    Refused(#[from] InferError),
    /// The engine refused weights of its own architecture, or accepted weights of another.
    #[error("the engine swaps weights wrongly: {0}")]
    Swap(&'static str),
    /// The residual has another size than the HR picture.
    #[error("the residual of {low_width}x{low_height} is {width}x{height} with {samples} samples")]
    Size {
        /// Width of the LR picture.
        low_width: usize,
        /// Height of the LR picture.
        low_height: usize,
        /// Width that the residual says it has.
        width: usize,
        /// Height that the residual says it has.
        height: usize,
        /// Number of samples that the residual has.
        samples: usize,
    },
    /// A sample is not a number.
    #[error("a sample of the residual is not a number")]
    NotANumber,
    /// A picture gave another result although only something changed that must not matter. The text names it: a batch,
    /// a stride, former weights.
    #[error("{0} gives another residual")]
    Changed(&'static str),
}

impl From<SwapError> for Violation {
    fn from(_: SwapError) -> Self {
        Violation::Swap("weights of the engine's own architecture were refused")
    }
}

/// A network and the pictures that it is tried on.
#[derive(Debug, Clone)]
pub struct Case {
    /// The network.
    pub architecture: Architecture,
    /// Sizes of LR pictures.
    pub sizes: Vec<Size>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.architecture.fmt(f)
    }
}

impl Case {
    /// Every kind of network, scale and width, at odd and tiny sizes.
    pub fn all() -> Vec<Case> {
        let size = |(width, height)| Size::new(width, height);
        let tiny = [(1, 1), (2, 1), (1, 7), (3, 2), (13, 11)].map(size);
        let more = [(1, 1), (17, 9), (49, 5), (5, 37)].map(size);
        let case = |architecture, sizes: &[_]| Case { architecture, sizes: sizes.to_vec() };
        vec![
            case(Architecture::chain(2, 16, 5), &[&tiny[..], &more].concat()),
            case(Architecture::chain(3, 16, 5), &tiny),
            case(Architecture::chain(4, 16, 5), &tiny),
            case(Architecture::chain(2, 8, 2), &tiny),
            case(Architecture::chain(3, 24, 4), &tiny),
            case(Architecture::chain(2, 32, 6), &[&more[..], &[Size::new(67, 23)]].concat()),
            case(Architecture::chain(4, 48, 3), &tiny),
            case(Architecture::chain(2, 64, 3), &tiny),
            case(Architecture::blocks(2, 8, 1), &tiny),
            case(Architecture::blocks(2, 16, 3), &more),
            case(Architecture::blocks(3, 32, 8), &more),
            case(Architecture::blocks(4, 48, 2), &tiny),
            case(Architecture::chain(2, 16, 5).with_twin(), &more),
            case(Architecture::chain(3, 16, 4).with_twin(), &tiny),
            case(Architecture::blocks(2, 32, 2).with_twin(), &tiny),
            case(Architecture::blocks(3, 32, 3).with_twin(), &more),
            case(Architecture::blocks(4, 24, 1).with_twin(), &tiny),
        ]
    }

    /// Pseudo-random weights of the network.
    ///
    /// # Panics
    ///
    /// Panics if no backend runs the architecture.
    pub fn model(&self) -> Model {
        Model::random(self.architecture, 7).expect("an architecture that backends run")
    }
}

/// Pictures with edges, ramps and noise.
pub(super) struct Pictures {
    low: Vec<u8>,
    twin: Vec<u8>,
    size: Size,
    scale: usize,
    has_twin: bool,
}

impl Pictures {
    pub(super) fn new(architecture: &Architecture, size: Size, seed: u32) -> Self {
        let scale = architecture.scale;
        let count = size.pixels() as usize;
        let mut state = seed | 1;
        let mut next = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 24) as usize;
            if (n / 5).is_multiple_of(3) {
                noise as u8
            } else {
                (40 + 9 * n % 160 + noise / 8) as u8
            }
        };
        Pictures {
            low: (0..count).map(&mut next).collect(),
            twin: (0..count * scale * scale).map(&mut next).collect(),
            size,
            scale,
            has_twin: architecture.has_twin(),
        }
    }

    pub(super) fn input(&self) -> Result<Input<'_>, InferError> {
        let (width, height) = (self.size.width.into(), self.size.height.into());
        let twin = || Luma::packed(&self.twin, self.scale * width, self.scale * height);
        Ok(Input {
            low: Luma::packed(&self.low, width, height)?,
            twin: self.has_twin.then(twin).transpose()?,
        })
    }
}

/// Runs an engine that was made for [`Case::model`] through all sizes, one by one, as a batch, with a stride, again and
/// with other weights. The result is the maximum error of any size: the root mean square of the difference to
/// [`fn@reference`], over that of the reference itself, as
/// [`relative_error`] has it.
///
/// # Errors
///
/// Fails if the engine refuses a picture or weights of its architecture, gives a residual of another size or one with a
/// value that is not finite, gives one picture different residuals, or takes weights of another architecture.
pub fn check(engine: &mut dyn Engine, case: &Case) -> Result<f64, Violation> {
    let (first, architecture) = (Arc::new(case.model()), case.architecture);
    let mut worst: f64 = 0.0;
    for (n, &size) in case.sizes.iter().enumerate() {
        let pictures = Pictures::new(&architecture, size, 11 + n as u32);
        let got = infer(engine, pictures.input()?)?;
        let expected = reference(&first, &pictures.input()?);
        worst = worst.max(relative_error(&got.data, &expected)?);

        let other = Pictures::new(&architecture, size, 1_000 + n as u32);
        let alone = infer(engine, other.input()?)?;
        let mut batch = vec![poisoned(), Residual::default(), poisoned()];
        let inputs = [pictures.input()?, other.input()?, pictures.input()?];
        engine.infer_batch(&inputs, &mut batch)?;
        if batch[0] != got || batch[1] != alone || batch[2] != got {
            return Err(Violation::Changed("a batch"));
        }

        let (width, height) = (usize::from(size.width), usize::from(size.height));
        let stride = width + 5;
        let padded: Vec<u8> =
            pictures.low.chunks(width).flat_map(|r| [r, &[99; 5]].concat()).collect();
        let strided =
            Input { low: Luma::new(&padded, width, height, stride)?, ..pictures.input()? };
        if infer(engine, strided)? != got {
            return Err(Violation::Changed("a stride"));
        }

        let second =
            Arc::new(Model::random(architecture, 8).map_err(|_| Violation::Swap("no weights"))?);
        engine.swap(&second)?;
        let swapped = infer(engine, pictures.input()?)?;
        let expected = reference(&second, &pictures.input()?);
        worst = worst.max(relative_error(&swapped.data, &expected)?);
        engine.swap(&first)?;
        if infer(engine, pictures.input()?)? != got {
            return Err(Violation::Changed("having had other weights"));
        }
    }
    let wider = Architecture { channels: architecture.channels ^ 8, ..architecture };
    if let Ok(wider) = Model::random(wider, 1)
        && engine.swap(&Arc::new(wider)).is_ok()
    {
        return Err(Violation::Swap("weights of another architecture were taken"));
    }
    Ok(worst)
}

/// Creates a residual with values that an engine must overwrite.
fn poisoned() -> Residual {
    Residual { width: 3, height: 2, data: vec![f32::NAN; 6] }
}

fn infer(engine: &mut dyn Engine, input: Input<'_>) -> Result<Residual, Violation> {
    let (low_width, low_height) = (input.low.width(), input.low.height());
    let (width, height) = (engine.scale() * low_width, engine.scale() * low_height);
    let mut out = Residual { width: 1, height: 1, data: vec![f32::NAN; width * height] };
    engine.infer_batch(&[input], std::slice::from_mut(&mut out))?;
    if (out.width, out.height, out.data.len()) == (width, height, width * height) {
        return Ok(out);
    }
    let (width, height, samples) = (out.width, out.height, out.data.len());
    Err(Violation::Size { low_width, low_height, width, height, samples })
}

/// Root mean square of the differences over that of the expected values, or over one grey level if that is more.
/// Backends may give residuals in steps, which are coarse beside a residual near zero.
///
/// # Errors
///
/// Fails if a value of `got` is not finite.
pub fn relative_error(got: &[f32], expected: &[f64]) -> Result<f64, Violation> {
    if got.iter().any(|v| !v.is_finite()) {
        return Err(Violation::NotANumber);
    }
    let difference: f64 = got.iter().zip(expected).map(|(g, e)| (f64::from(*g) - e).powi(2)).sum();
    let all: f64 = expected.iter().map(|e| e * e).sum();
    Ok((difference / all.max(expected.len() as f64)).sqrt())
}

/// Computes the residual as the definition of [`Architecture`] reads, in f64.
pub fn reference(model: &Model, input: &Input<'_>) -> Vec<f64> {
    let architecture = model.architecture();
    let scale = architecture.scale;
    let (width, height) = (input.low.width(), input.low.height());
    let unit = |v: u8| f64::from(v) / 255.0 - 0.5;
    let low = (0..height).flat_map(|y| input.low.row(y)).map(|&v| unit(v)).collect();
    let mut planes: Vec<Vec<f64>> = vec![low];
    if let Some(twin) = &input.twin {
        for channel in 0..scale * scale {
            let (dy, dx) = (channel / scale, channel % scale);
            let rows = (0..height).map(|y| twin.row(scale * y + dy));
            let plane = rows.flat_map(|row| row.iter().skip(dx).step_by(scale)).map(|&v| unit(v));
            planes.push(plane.collect());
        }
    }
    let last = architecture.convs - 1;
    let convs = |n: usize, x: &[Vec<f64>]| convolve(&model.convs()[n], x, width);
    let relu = |mut x: Vec<Vec<f64>>| {
        x.iter_mut().flatten().for_each(|v| *v = v.max(0.0));
        x
    };
    let add = |mut x: Vec<Vec<f64>>, y: &[Vec<f64>]| {
        x.iter_mut().flatten().zip(y.iter().flatten()).for_each(|(v, w)| *v += w);
        x
    };
    planes = match architecture.kind {
        crate::Kind::Chain => {
            for n in 0..last {
                planes = relu(convs(n, &planes));
            }
            convs(last, &planes)
        }
        crate::Kind::Blocks => {
            let head = convs(0, &planes);
            let mut features = head.clone();
            for n in (1..last).step_by(2) {
                features = add(convs(n + 1, &relu(convs(n, &features))), &features);
            }
            convs(last, &add(features, &head))
        }
    };
    let mut base = vec![0; scale * width * scale * height];
    let (isa, samples) = (Isa::detect(), input.low.samples());
    lanczos(isa, samples, scale, 0..height, &mut base, &mut Scratch::default());
    let mut out = vec![0.0; base.len()];
    for (y, row) in out.chunks_exact_mut(scale * width).enumerate() {
        for (x, value) in row.iter_mut().enumerate() {
            let (channel, at) = (scale * (y % scale) + x % scale, y / scale * width + x / scale);
            *value = planes[channel][at];
            if let Some(twin) = &input.twin {
                let gate = 1.0 / (1.0 + (-planes[scale * scale + channel][at]).exp());
                let base = f64::from(base[y * scale * width + x]) / 16.0;
                *value += gate * (f64::from(twin.row(y)[x]) - base);
            }
        }
    }
    out
}

/// Computes a convolution with zero padding, plane by plane.
fn convolve(conv: &Conv, inputs: &[Vec<f64>], width: usize) -> Vec<Vec<f64>> {
    let height = inputs[0].len() / width;
    let outputs = conv.weights.chunks_exact(9 * inputs.len()).zip(&conv.bias);
    let planes = outputs.map(|(kernels, bias)| {
        let mut plane = vec![f64::from(*bias); width * height];
        for (input, kernel) in inputs.iter().zip(kernels.chunks_exact(9)) {
            for (tap, w) in kernel.iter().enumerate() {
                for (at, sum) in plane.iter_mut().enumerate() {
                    let (sy, sx) = (at / width + tap / 3, at % width + tap % 3);
                    if (1..=height).contains(&sy) && (1..=width).contains(&sx) {
                        *sum += f64::from(*w) * input[(sy - 1) * width + sx - 1];
                    }
                }
            }
        }
        plane
    });
    planes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine that answers with the reference, spoilt.
    struct Spoilt {
        model: Arc<Model>,
        spoil: fn(&mut Residual),
    }

    impl Engine for Spoilt {
        fn backend(&self) -> &'static str {
            "spoilt"
        }

        fn architecture(&self) -> Architecture {
            self.model.architecture()
        }

        fn infer_batch(
            &mut self,
            inputs: &[Input<'_>],
            out: &mut [Residual],
        ) -> Result<(), InferError> {
            for (input, out) in inputs.iter().zip(out) {
                let scale = self.scale();
                out.resize(scale * input.low.width(), scale * input.low.height());
                let samples = reference(&self.model, input);
                out.data.iter_mut().zip(samples).for_each(|(o, s)| *o = s as f32);
                (self.spoil)(out);
            }
            Ok(())
        }

        fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
            SwapError::check(self.architecture(), model)?;
            self.model = model.clone();
            Ok(())
        }
    }

    fn check_spoilt(spoil: fn(&mut Residual)) -> Result<f64, Violation> {
        let architecture = Architecture::chain(2, 8, 2).with_twin();
        let case = Case { architecture, sizes: vec![Size::new(3, 2), Size::new(1, 1)] };
        check(&mut Spoilt { model: Arc::new(case.model()), spoil }, &case)
    }

    #[test]
    fn the_reference_itself_conforms_and_what_differs_from_it_does_not() {
        assert!(check_spoilt(|_| ()).unwrap() < 1e-6);
        assert!(check_spoilt(|out| out.data[0] += 1.0).unwrap() > 1e-3);
        assert!(matches!(check_spoilt(|out| out.data[0] = f32::NAN), Err(Violation::NotANumber)));
        assert!(matches!(check_spoilt(|out| out.width += 1), Err(Violation::Size { .. })));
    }

    #[test]
    fn a_convolution_with_one_weight_moves_the_picture() {
        // The reference is what all else rests on: one tap, by hand. Tap 3 is the left neighbour.
        let mut conv = Conv { weights: vec![0.0; 9], bias: vec![0.5] };
        conv.weights[3] = 1.0;
        let inputs = vec![vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]];
        assert_eq!(convolve(&conv, &inputs, 3)[0], [0.5, 1.5, 2.5, 0.5, 4.5, 5.5]);
    }
}
