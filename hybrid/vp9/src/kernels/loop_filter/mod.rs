//! Deblocking of one plane of one superblock, one direction of edges at a time.
//!
//! Source: VP9 specification 8.8.3 (filter size), 8.8.4 (adaptive strength), 8.8.5 (sample
//! filters). Which edges to filter is decided by [`crate::loop_filter`]; here they come as
//! [`EdgeMasks`], one bit for 8 samples of edge. The scalar form defines the result.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

use super::span;
use crate::simd::{Isa, Set};

mod scalar;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod simd;
#[cfg(test)]
mod tests;

/// Edges of one direction, in units of 8 samples.
///
/// Edges lie on *lines* 8 samples apart: columns for vertical edges, rows for horizontal ones.
/// Bit `8 * line + place` stands for the 8 samples from `8 * place` on along that line. A bit is
/// set in at most one of the first three masks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeMasks {
    /// Edges of transforms of 16x16 and more: up to 7 samples change on either side.
    pub wide: u64,
    /// Edges of 8x8 transforms: up to 3 samples change.
    pub medium: u64,
    /// Edges of 4x4 transforms: up to 2 samples change.
    pub narrow: u64,
    /// Edges of 4x4 transforms that lie 4 samples after the line.
    pub inner: u64,
}

/// The direction of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Edges between left and right: the first pass.
    Vertical,
    /// Edges between above and below: the second pass.
    Horizontal,
}

/// The filter's level at each place of each line: byte `place` of element `line`.
pub type Levels = [u64; 8];

/// The limits of the filter for each level (specification 8.8.4).
#[derive(Debug, Clone)]
pub struct Limits {
    /// The limits of each level: byte 0 is limit, byte 1 blimit, byte 2 thresh.
    packed: [u32; 64],
}

/// The limits of one level.
#[derive(Clone, Copy)]
struct Limit {
    step: u8,
    blimit: u8,
    thresh: u8,
}

impl Limits {
    /// The limits of a frame with this sharpness, 0 to 7.
    pub fn new(sharpness: u8) -> Self {
        let sharpness = sharpness.min(7);
        let shift = u8::from(sharpness > 0) + u8::from(sharpness > 4);
        let most = if sharpness > 0 { 9 - sharpness } else { 63 };
        Self {
            packed: std::array::from_fn(|level| {
                let level = level as u8;
                let limit = (level >> shift).clamp(1, most);
                u32::from_le_bytes([limit, 2 * (level + 2) + limit, level >> 4, 0])
            }),
        }
    }

    /// The limits of one level, packed; levels beyond 63 are read by their low 6 bits.
    #[inline(always)]
    fn packed(&self, level: u8) -> u32 {
        self.packed[usize::from(level & 63)]
    }

    #[inline(always)]
    fn get(&self, level: u8) -> Limit {
        let [step, blimit, thresh, _] = self.packed(level).to_le_bytes();
        Limit { step, blimit, thresh }
    }
}

/// The part of a plane that a superblock covers.
pub struct Area<'a> {
    /// Samples of the plane.
    pub samples: &'a mut [u8],
    /// Index of the area's first sample in `samples`.
    pub offset: usize,
    /// Distance from row to row, in samples.
    pub stride: usize,
    /// Side of the area in units of 8 samples: 8 for luma, 4 for chroma. The slice must hold all samples of the area,
    /// also those outside the picture.
    pub units: usize,
}

/// Filters all edges of one direction, line by line.
///
/// # Panics
///
/// When the area, or the 8 samples before an edge on line 0, leave the slice.
pub fn filter_edges(
    isa: Isa,
    direction: Direction,
    masks: &EdgeMasks,
    levels: &Levels,
    limits: &Limits,
    area: &mut Area,
) {
    let side = area.units * 8;
    assert!(area.units == 8 || area.units == 4);
    let end = area.offset.saturating_add(span(side, area.stride, side));
    assert!(area.stride >= side && end <= area.samples.len());
    let mut inside = 0x0101_0101_0101_0101 * (0xff >> (8 - area.units));
    if area.units == 4 {
        inside &= 0xffff_ffff;
    }
    let masks = EdgeMasks {
        wide: masks.wide & inside,
        medium: masks.medium & inside,
        narrow: masks.narrow & inside,
        inner: masks.inner & inside,
    };
    if (masks.wide | masks.medium | masks.narrow) & 0xff != 0 {
        let before = if direction == Direction::Vertical { 8 } else { 8 * area.stride };
        assert!(area.offset >= before, "offset is too small for edges on line 0");
    }
    let edges = Edges { direction, masks: &masks, levels, limits };
    match isa.set() {
        Set::Scalar => scalar::filter_edges(direction, &masks, levels, limits, area),
        // SAFETY: the set is present; the area and what lies before line 0 were checked above.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { avx2(edges, simd::Plane::of(area)) },
        // SAFETY: likewise.
        #[cfg(target_arch = "aarch64")]
        Set::Neon => unsafe { neon(edges, simd::Plane::of(area)) },
        // SAFETY: likewise.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Set::Simd128 => unsafe { simd128(edges, simd::Plane::of(area)) },
    }
}

/// Edges of an area, and how they are filtered.
#[derive(Clone, Copy)]
struct Edges<'a> {
    direction: Direction,
    masks: &'a EdgeMasks,
    levels: &'a Levels,
    limits: &'a Limits,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(edges: Edges, plane: simd::Plane) {
    use crate::simd::vector::x86::{X128, X256};
    let Edges { direction, masks, levels, limits } = edges;
    // SAFETY: the caller's checks are those of the form.
    unsafe { simd::filter_edges::<X256, X128>(direction, masks, levels, limits, plane) }
}

#[cfg(target_arch = "aarch64")]
unsafe fn neon(edges: Edges, plane: simd::Plane) {
    use crate::simd::vector::neon::N128;
    let Edges { direction, masks, levels, limits } = edges;
    // SAFETY: the caller's checks are those of the form.
    unsafe { simd::filter_edges::<N128, N128>(direction, masks, levels, limits, plane) }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
unsafe fn simd128(edges: Edges, plane: simd::Plane) {
    use crate::simd::vector::wasm::W128;
    let Edges { direction, masks, levels, limits } = edges;
    // SAFETY: the caller's checks are those of the form.
    unsafe { simd::filter_edges::<W128, W128>(direction, masks, levels, limits, plane) }
}

/// Filters one sample of an edge by the scalar form, for tests of the masks. Sizes are 0 (narrow) to 2 (wide).
#[cfg(test)]
pub(crate) fn oracle(
    samples: &mut [u8],
    at: usize,
    step: usize,
    size: usize,
    limits: &Limits,
    level: u8,
) {
    let size = [scalar::Size::Narrow, scalar::Size::Medium, scalar::Size::Wide][size];
    scalar::filter_sample(samples, at, step, size, limits.get(level));
}
