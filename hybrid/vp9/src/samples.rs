//! A view of an 8-bit plane, whatever holds it.

use crate::frame_buffer::PlaneBuffer;
use crate::picture::{Plane, PlaneSize};

/// The samples of a plane: row `y` begins at `y * stride` of `data`.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    /// All rows, with whatever lies between them.
    pub data: &'a [u8],
    /// Distance from one row to the next, in samples.
    pub stride: usize,
    /// Number of samples in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl<'a> Samples<'a> {
    /// Width and height in samples.
    #[inline]
    pub fn size(&self) -> PlaneSize {
        PlaneSize { width: self.width, height: self.height }
    }

    /// The samples of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.stride..][..self.width]
    }
}

impl<'a> From<&'a Plane> for Samples<'a> {
    fn from(plane: &'a Plane) -> Self {
        let (width, height) = (plane.width(), plane.height());
        Self { data: plane.samples(), stride: plane.stride(), width, height }
    }
}

impl<'a> From<&'a PlaneBuffer> for Samples<'a> {
    fn from(plane: &'a PlaneBuffer) -> Self {
        let (width, height) = (plane.width(), plane.height());
        Self { data: plane.samples(), stride: plane.stride(), width, height }
    }
}
