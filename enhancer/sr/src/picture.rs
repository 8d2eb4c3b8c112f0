//! What goes into a network and what comes out of it: luma planes and residuals.

use thiserror::Error;
use windlass_hybrid::detail::{Detail, ONE};
use windlass_vp9::Samples;

use crate::Inputs;

/// Maximum width or height of an LR picture.
pub const MAX_SIDE: usize = 4_096;
/// Maximum width or height of any plane: that of an HR picture at the maximum scale.
const MAX_HIGH_SIDE: usize = 4 * MAX_SIDE;

/// Why a picture was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InferError {
    /// A side is zero or too large: beyond [`MAX_SIDE`] for an LR picture.
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
        /// Number of samples given.
        given: usize,
        /// Samples that width, height and stride ask for.
        needed: usize,
    },
    /// The twin's picture is missing, not wanted, or not of the HR size.
    #[error(
        "the pictures do not match the network's inputs ({0:?}): the twin's picture is missing, not wanted or of another size"
    )]
    Twin(Inputs),
    /// The pictures of a batch differ in size, or do not have one residual each.
    #[error("the pictures of a batch differ in size, or do not have one residual each")]
    Batch,
    /// The device failed, and nothing else could take its place.
    #[error("{0}")]
    Device(String),
    /// The device has no room for the pictures now. It may have room later, or for fewer.
    #[error("{0}")]
    DeviceFull(String),
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
    ///
    /// # Errors
    ///
    /// Fails if a side is 0 or too large, the stride is less than the width, or `data` has too few samples.
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
    ///
    /// # Errors
    ///
    /// Fails if a side is 0 or too large, or `data` has too few samples.
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

/// The pictures that a network takes to enhance one LR picture.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The LR picture.
    pub low: Luma<'a>,
    /// HR luma that the viewer's decoder would show without the anchor, for networks that take it.
    pub twin: Option<Luma<'a>>,
}

/// Difference to add to the Lanczos-upsampled luma, in grey levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Residual {
    /// Width of the HR picture.
    pub width: usize,
    /// Height of the HR picture.
    pub height: usize,
    /// Samples row by row, without gaps.
    pub data: Vec<f32>,
}

impl Residual {
    /// Changes the size of the residual, in HR samples; the samples that stay have no meaning.
    pub fn resize(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.data.resize(width * height, 0.0);
    }

    /// The residual in the fixed point of the anchor codec, clamped to ±255 grey levels; `None` if the samples do not
    /// fill the picture. The laboratory, which runs networks without tiles, needs it; the server has
    /// [`infer_tiles`](crate::infer_tiles).
    pub fn to_detail(&self) -> Option<Detail> {
        let one = f32::from(ONE);
        let samples = self.data.iter().map(|r| (r.clamp(-255.0, 255.0) * one).round() as i16);
        Detail::from_samples(self.width, self.height, samples.collect())
    }
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
}
