//! Super-resolution: from LR luma to the detail that Lanczos lacks.
//!
//! In: one 8-bit luma plane, any size from 1×1 to [`MAX_SIDE`]. Out: a [`Residual`] at HR size in
//! grey levels (0–255 scale): `HR luma = round(Lanczos3(LR) + residual)`, clamped.
//! An [`Engine`] owns its working memory and is used by one thread; weights are shared.
//!
//! ```
//! use windlass_enhancer::engine::{CpuEngine, Engine, Luma, Residual, embedded_model};
//!
//! let mut engine = CpuEngine::new(embedded_model()?);
//! let lr = vec![128; 32 * 18];
//! let mut residual = Residual::default();
//! engine.infer(Luma::packed(&lr, 32, 18)?, &mut residual)?;
//! assert_eq!((residual.width, residual.height), (64, 36));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod architecture;
mod choice;
pub mod conformance;
mod cpu;
pub mod cuda;
mod faithful;
mod gate;
mod kernel;
mod last_layer;
mod model;
mod network_choice;
mod number;
mod packed;
mod simd;
mod tiles;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use windlass_hybrid::detail::{Detail, ONE};
use windlass_vp9::Samples;

pub use architecture::{
    Architecture, ArchitectureError, CHANNEL_STEP, Inputs, Kind, MAX_CHANNELS, MAX_CONVS,
};
pub use choice::EngineChoice;
pub use cpu::CpuEngine;
pub use cuda::{CudaEngine, CudaError};
#[cfg(test)]
pub(crate) use last_layer::tests as last_layer_tests;
pub use last_layer::{LastLayer, Learned};
pub use model::{
    Conv, Model, ModelError, by_four_model, embedded_model, fused_m_model, fused_model,
};
pub use network_choice::{NamedModel, NetworkChoice, NetworkError};
pub use simd::Simd;
pub use tiles::{infer_tiles, infer_tiles_fused};

/// Maximum width or height of an LR picture.
pub const MAX_SIDE: usize = 4_096;
/// Maximum width or height of any plane: of an HR picture at the maximum scale.
const MAX_HIGH_SIDE: usize = 4 * MAX_SIDE;

/// Why a picture was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InferError {
    /// A side is zero or too great: beyond [`MAX_SIDE`] for an LR picture.
    #[error("a picture of {width}x{height} is empty or too large")]
    Size {
        /// Width given.
        width: usize,
        /// Height given.
        height: usize,
    },
    /// The samples do not cover the picture.
    #[error("{given} samples are too few: {needed} needed")]
    TooShort {
        /// Samples given.
        given: usize,
        /// Samples that width, height and stride ask for.
        needed: usize,
    },
    /// A twin's picture is missing, not wanted, or not of the HR size.
    #[error("the network's inputs are {0:?}, which the given pictures are not")]
    Twin(Inputs),
    /// Pictures of a batch differ in size, or there is not one residual for each.
    #[error("the pictures of a batch are not alike, or not as many as their residuals")]
    Batch,
    /// The device failed, and nothing else could take its place.
    #[error("{0}")]
    Device(String),
    /// The device has no room for this now; it may have later, or for less.
    #[error("{0}")]
    DeviceFull(String),
}

/// Why weights were not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SwapError {
    /// Only weights of the same architecture can be swapped.
    #[error("the engine runs {engine}, the weights are of {model}")]
    Architecture {
        /// What the engine was made for.
        engine: Architecture,
        /// What was given.
        model: Architecture,
    },
    /// The device failed.
    #[error("{0}")]
    Device(String),
    /// The device has no room for them now.
    #[error("{0}")]
    DeviceFull(String),
}

impl SwapError {
    /// Refuses weights of another architecture.
    pub fn check(engine: Architecture, model: &Model) -> Result<(), SwapError> {
        let model = model.architecture();
        if engine == model { Ok(()) } else { Err(SwapError::Architecture { engine, model }) }
    }
}

/// A borrowed 8-bit luma plane.
#[derive(Debug, Clone, Copy)]
pub struct Luma<'a> {
    data: &'a [u8],
    width: usize,
    height: usize,
    stride: usize,
}

impl<'a> Luma<'a> {
    /// A plane whose rows begin `stride` samples apart.
    pub fn new(
        data: &'a [u8],
        width: usize,
        height: usize,
        stride: usize,
    ) -> Result<Self, InferError> {
        let sane = 1..=MAX_HIGH_SIDE;
        if !sane.contains(&width) || !sane.contains(&height) || stride < width {
            return Err(InferError::Size { width, height });
        }
        let needed = stride.saturating_mul(height - 1).saturating_add(width);
        if data.len() < needed {
            return Err(InferError::TooShort { given: data.len(), needed });
        }
        Ok(Luma { data, width, height, stride })
    }

    /// A plane without gaps between its rows.
    pub fn packed(data: &'a [u8], width: usize, height: usize) -> Result<Self, InferError> {
        Luma::new(data, width, height, width)
    }

    /// Width in samples.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The plane as the codec takes it.
    pub fn samples(&self) -> Samples<'a> {
        let Luma { data, width, height, stride } = *self;
        Samples { data, stride, width, height }
    }

    /// The samples of row `y`, which must be below the height.
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.stride..][..self.width]
    }
}

/// What a network looks at to enhance one picture.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The LR picture.
    pub low: Luma<'a>,
    /// What the viewer's decoder would show without the anchor, at HR size; for networks that look at it.
    pub twin: Option<Luma<'a>>,
}

/// What to add to the Lanczos-upsampled luma, in grey levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Residual {
    /// Width of the HR picture.
    pub width: usize,
    /// Height of the HR picture.
    pub height: usize,
    /// Row by row, without gaps.
    pub data: Vec<f32>,
}

impl Residual {
    /// Makes it of that size; samples that it keeps have no meaning.
    pub fn resize(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.data.resize(width * height, 0.0);
    }

    /// The residual in the fixed point of the anchor codec; `None` if the samples do not fill the
    /// picture. Beyond ±255 grey levels there is nothing to say.
    pub fn to_detail(&self) -> Option<Detail> {
        let one = f32::from(ONE);
        let samples = self.data.iter().map(|r| (r.clamp(-255.0, 255.0) * one).round() as i16);
        Detail::from_samples(self.width, self.height, samples.collect())
    }
}

/// A backend that runs a network. One per worker thread; what it needs is allocated at its first picture of a size, and
/// used again.
pub trait Engine: Send {
    /// What runs it, for logs and reports (`cpu-avx512`, …).
    fn backend(&self) -> &'static str;

    /// Whether it runs on the CPU, beside decoders and coders.
    fn on_processor(&self) -> bool {
        true
    }

    /// How many pictures are under way at the same pace, however many engines ask: the number of accelerators that engines
    /// share. `None`: each engine works by itself.
    fn accelerators(&self) -> Option<usize> {
        None
    }

    /// What inference took of an accelerator's time since this was last asked, without what others had of it. `None`: what it took by
    /// the clock.
    fn take_time(&mut self) -> Option<Duration> {
        None
    }

    /// The network that it was made for.
    fn architecture(&self) -> Architecture;

    /// Super-resolves pictures of one size, in order; each of `out` is resized to fit.
    fn infer_batch(&mut self, inputs: &[Input<'_>], out: &mut [Residual])
    -> Result<(), InferError>;

    /// Super-resolves a picture and leaves it on the accelerator, for
    /// [`SharedCoder`](cuda::coder::SharedCoder); nothing where it cannot stay there, and
    /// [`infer_batch`](Self::infer_batch) is to be asked.
    fn hold(&mut self, input: Input<'_>) -> Result<Option<cuda::ResidentPicture>, InferError> {
        let _ = input;
        Ok(None)
    }

    /// Takes other weights of the same architecture, in the time of a pointer's change or an upload.
    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError>;

    /// HR side / LR side.
    fn scale(&self) -> usize {
        self.architecture().scale
    }

    /// Low samples around one that its high samples depend on, in each direction.
    fn reach(&self) -> usize {
        self.architecture().reach()
    }

    /// What a low sample costs, in multiplications with addition.
    fn macs(&self) -> u64 {
        self.architecture().macs()
    }

    /// Super-resolves one picture by a network that looks at nothing else.
    fn infer(&mut self, low: Luma<'_>, out: &mut Residual) -> Result<(), InferError> {
        self.infer_batch(&[Input { low, twin: None }], std::slice::from_mut(out))
    }

    /// Super-resolves one picture by a network that looks at the twin's, too.
    fn infer_fused(
        &mut self,
        low: Luma<'_>,
        twin: Luma<'_>,
        out: &mut Residual,
    ) -> Result<(), InferError> {
        self.infer_batch(&[Input { low, twin: Some(twin) }], std::slice::from_mut(out))
    }
}

/// `$XDG_CACHE_HOME/windlass/KIND`, or below `~/.cache`: what is made once for a machine and kept.
fn cache_folder(kind: &str) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(base.join("windlass").join(kind))
}

/// Refuses what the contract of [`Engine::infer_batch`] does not allow.
fn check(
    architecture: &Architecture,
    inputs: &[Input<'_>],
    out: &[Residual],
) -> Result<(), InferError> {
    let size = |luma: &Luma<'_>| (luma.width(), luma.height());
    let Some(first) = inputs.first().map(|input| size(&input.low)) else {
        return if out.is_empty() { Ok(()) } else { Err(InferError::Batch) };
    };
    let (width, height) = first;
    if width > MAX_SIDE || height > MAX_SIDE {
        return Err(InferError::Size { width, height });
    }
    if inputs.len() != out.len() || inputs.iter().any(|input| size(&input.low) != first) {
        return Err(InferError::Batch);
    }
    let scale = architecture.scale;
    let high = architecture.has_twin().then_some((scale * width, scale * height));
    if inputs.iter().any(|input| input.twin.as_ref().map(size) != high) {
        return Err(InferError::Twin(architecture.inputs));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_without_area_or_samples_are_refused() {
        assert!(matches!(Luma::packed(&[], 0, 4), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[], 4, 0), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[0; 15], 4, 4), Err(InferError::TooShort { .. })));
        assert!(matches!(Luma::new(&[0; 64], 8, 8, 7), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[0; 64], usize::MAX, 2), Err(InferError::Size { .. })));
    }

    #[test]
    fn batches_and_twins_that_do_not_fit_are_refused() {
        let samples = vec![0; 16_400];
        let luma = |width, height| Luma::packed(&samples, width, height).unwrap();
        let plain = Architecture::chain(2, 8, 2);
        let alone = |low| Input { low, twin: None };
        let (small, other) = (alone(luma(4, 4)), alone(luma(4, 5)));
        let out = [Residual::default(), Residual::default()];
        assert_eq!(check(&plain, &[small, small], &out), Ok(()));
        assert_eq!(check(&plain, &[], &[]), Ok(()));
        assert_eq!(check(&plain, &[small, other], &out), Err(InferError::Batch));
        assert_eq!(check(&plain, &[small], &out), Err(InferError::Batch));
        assert_eq!(check(&plain, &[], &out), Err(InferError::Batch));
        let wide = alone(luma(4_097, 4));
        assert!(matches!(check(&plain, &[wide], &out[..1]), Err(InferError::Size { .. })));
        let both = Input { low: luma(4, 4), twin: Some(luma(8, 8)) };
        assert_eq!(check(&plain, &[both], &out[..1]), Err(InferError::Twin(Inputs::Luma)));
        let fused = plain.with_twin();
        assert_eq!(check(&fused, &[both], &out[..1]), Ok(()));
        let wrong = Err(InferError::Twin(Inputs::LumaAndTwin));
        assert_eq!(check(&fused, &[small], &out[..1]), wrong);
        let both = Input { low: luma(4, 4), twin: Some(luma(8, 7)) };
        assert_eq!(check(&fused, &[both], &out[..1]), wrong);
    }
}
