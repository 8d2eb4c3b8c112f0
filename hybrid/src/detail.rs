//! Luma detail: what an HR picture has beyond its upsampled low layer, in 1/16 grey level.

use windlass_vp9::PlaneSize;

/// One grey level in the fixed point of [`Detail`].
pub const ONE: i16 = 16;

/// A plane of signed samples in 1/16 grey level. As detail it is `HR_Y − Lanczos(LR_Y)`; the same
/// type carries every unclamped luma intermediate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detail {
    width: usize,
    height: usize,
    data: Vec<i16>,
}

impl Detail {
    /// No detail anywhere.
    pub fn zero(width: usize, height: usize) -> Self {
        Self { width, height, data: vec![0; width * height] }
    }

    /// A plane over row-major samples; `None` when their number is not `width * height`.
    pub fn from_samples(width: usize, height: usize, data: Vec<i16>) -> Option<Self> {
        (data.len() == width.checked_mul(height)?).then_some(Self { width, height, data })
    }

    /// Width and height in HR samples.
    pub fn size(&self) -> PlaneSize {
        PlaneSize { width: self.width, height: self.height }
    }

    /// Width in HR samples.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in HR samples.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All samples, row by row.
    pub fn samples(&self) -> &[i16] {
        &self.data
    }

    /// All samples, row by row, to be changed.
    pub fn samples_mut(&mut self) -> &mut [i16] {
        &mut self.data
    }

    /// The samples of row `y`.
    pub fn row(&self, y: usize) -> &[i16] {
        &self.data[y * self.width..][..self.width]
    }

    /// The samples of row `y`, to be changed.
    pub fn row_mut(&mut self, y: usize) -> &mut [i16] {
        &mut self.data[y * self.width..][..self.width]
    }
}
