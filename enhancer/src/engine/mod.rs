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

mod cpu;
mod kernel;
mod model;
mod tiles;

use thiserror::Error;
use windlass_hybrid::detail::{Detail, ONE};

pub use cpu::{CpuEngine, Simd};
pub use model::{Model, ModelError, embedded_model};
pub use tiles::infer_tiles;

/// Greatest width or height of an LR picture.
pub const MAX_SIDE: usize = 4_096;

/// Why a picture was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InferError {
    /// A side is zero or beyond [`MAX_SIDE`].
    #[error("a picture of {width}x{height} is outside 1x1 to {MAX_SIDE}x{MAX_SIDE}")]
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
        let sane = 1..=MAX_SIDE;
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

    /// The samples of row `y`, which must be below the height.
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.stride..][..self.width]
    }
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
    /// The residual in the fixed point of the anchor codec; `None` if the samples do not fill the
    /// picture. Beyond ±255 grey levels there is nothing to say.
    pub fn to_detail(&self) -> Option<Detail> {
        let one = f32::from(ONE);
        let samples = self.data.iter().map(|r| (r.clamp(-255.0, 255.0) * one).round() as i16);
        Detail::from_samples(self.width, self.height, samples.collect())
    }
}

/// A backend that runs the network. One per worker thread.
pub trait Engine: Send {
    /// What runs it, for logs and reports (`cpu-avx512`, …).
    fn backend(&self) -> &'static str;

    /// HR side / LR side.
    fn scale(&self) -> usize;

    /// Low samples around one that its high samples depend on, in each direction.
    fn reach(&self) -> usize;

    /// Super-resolves one picture; `out` is resized to fit.
    fn infer(&mut self, lr: Luma<'_>, out: &mut Residual) -> Result<(), InferError>;
}
