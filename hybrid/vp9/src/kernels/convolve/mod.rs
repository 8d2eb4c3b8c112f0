//! Motion compensation of one block: whole samples, sixteenths by eight-tap filters, and
//! references of another size.
//!
//! Source: VP9 bitstream specification v0.7 §8.5.2.3 and §8.5.2.4. A block is filtered along its
//! rows first, rounded and clipped to bytes, then along its columns; a direction without fraction
//! is left out, which is the same as its filter `128` alone. The second reference of a compound
//! block is averaged into what the first one left.
//!
//! # Why 16 bits are enough
//!
//! A filter's sum of products does not always fit 16 bits. Its taps 0, 1, 4, 5 and its taps 2, 3,
//! 6, 7 each do, in every order of their terms, with 64 for rounding to spare (a test walks all
//! filters). So the SIMD forms sum these two groups apart and add them once with saturation, which
//! only happens beyond what clips to 255 anyway.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller
#![allow(clippy::needless_pass_by_value)] // a prediction consumes its block

mod filters;
mod scalar;
#[cfg_attr(target_arch = "x86_64", allow(dead_code))] // much of it runs only in tests there
mod simd;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

pub use filters::SUBPEL_FILTERS;

use super::span;
use crate::simd::{Isa, Set};

/// Maximum side of a block, in samples.
pub const MAX_SIDE: usize = 64;
/// Maximum step of a scaled reference, in 1/16 sample: a reference five times as large.
pub const MAX_STEP: usize = 80;

/// Number of the bilinear filter, whose outer factors are all zero.
const BILINEAR: u8 = 3;
/// Number of samples before the whole position that a filter reads.
const BEFORE: usize = 3;
/// Number of samples after the whole position that a filter reads.
const AFTER: usize = 4;
/// Number of bytes that SIMD forms may read beyond the last sample that counts.
const SLACK: usize = 8;
/// Maximum number of rows that the vertical filters of an unscaled block read.
const ROWS: usize = MAX_SIDE + BEFORE + AFTER;
/// Maximum number of rows that the vertical filters of a scaled block read.
const SCALED_ROWS: usize = ((15 + (MAX_SIDE - 1) * MAX_STEP) >> 4) + 1 + BEFORE + AFTER;

type Filter = [i16; 8];

/// The samples that a block is predicted from.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The plane, or the part of it that holds the block with its surroundings.
    pub samples: &'a [u8],
    /// Index in `samples` of the block's first sample at its whole position.
    pub offset: usize,
    /// Distance from row to row in `samples`.
    pub stride: usize,
}

impl Reference<'_> {
    /// Panics unless the samples around `columns` × `rows` from the offset are there. Returns how many more there
    /// are.
    #[inline]
    fn check(&self, columns: usize, rows: usize, around_x: bool, around_y: bool) -> usize {
        let (left, right) = if around_x { (BEFORE, AFTER) } else { (0, 0) };
        let (above, below) = if around_y { (BEFORE, AFTER) } else { (0, 0) };
        let before = span(above + 1, self.stride, left);
        assert!(self.offset >= before, "the reference begins too late");
        let end = self.offset.saturating_add(span(rows + below, self.stride, columns + right));
        assert!(end <= self.samples.len(), "the reference ends too early");
        self.samples.len() - end
    }
}

/// The block of a picture that is predicted.
#[derive(Debug)]
pub struct Block<'a> {
    /// The picture's samples, from the first one of the block on.
    pub dst: &'a mut [u8],
    /// Distance from row to row in `dst`.
    pub stride: usize,
    /// Number of columns: 4, 8, 16, 32 or 64.
    pub width: usize,
    /// Number of rows: a multiple of 4 up to 64.
    pub height: usize,
    /// Whether the result is the mean, rounded up, of `dst` and the prediction.
    pub average: bool,
}

impl Block<'_> {
    #[inline]
    fn check(&self) {
        let &Self { width, height, .. } = self;
        assert!(matches!(width, 4 | 8 | 16 | 32 | 64), "width {width}");
        assert!(height % 4 == 0 && (4..=MAX_SIDE).contains(&height), "height {height}");
        assert!(self.stride >= width, "rows overlap");
        assert!(self.dst.len() >= span(height, self.stride, width), "the destination is short");
    }
}

/// The filters of a block in both directions: none where the fraction is zero.
#[derive(Clone, Copy)]
struct Filters {
    across: Option<&'static Filter>,
    down: Option<&'static Filter>,
    /// Whether only taps 3 and 4 are not zero.
    two_taps: bool,
}

/// Predicts a block from a reference of the picture's own size.
///
/// `filter` is 0 regular, 1 smooth, 2 sharp, 3 bilinear; `fx` and `fy` are the sixteenths
/// (0..=15) beyond the whole position. Where a fraction is not zero, the reference must have 3
/// samples before and 4 after the block in that direction.
#[inline]
pub fn predict(isa: Isa, filter: u8, fx: u8, fy: u8, reference: Reference<'_>, block: Block<'_>) {
    block.check();
    let set = &SUBPEL_FILTERS[usize::from(filter)];
    let of = |f: u8| if f == 0 { None } else { Some(&set[usize::from(f)]) };
    let filters = Filters { across: of(fx), down: of(fy), two_taps: filter == BILINEAR };
    let more = reference.check(block.width, block.height, fx != 0, fy != 0);
    if fx != 0 && more < SLACK && isa != Isa::SCALAR {
        return at_the_end(isa, filters, reference, block);
    }
    dispatch(isa, filters, reference, block);
}

#[inline]
fn dispatch(isa: Isa, filters: Filters, reference: Reference<'_>, block: Block<'_>) {
    match isa.set() {
        Set::Scalar => scalar::predict(filters, reference, block),
        // SAFETY: the set says that the instructions are there; the callers have checked block and
        // reference, and that `SLACK` bytes may be read beyond it where a row is filtered.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { x86::predict(filters, reference, block) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Set::Neon => unsafe {
            simd::predict::<crate::simd::vector::neon::N128>(filters, reference, block);
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Set::Simd128 => unsafe {
            simd::predict::<crate::simd::vector::wasm::W128>(filters, reference, block);
        },
    }
}

/// Predicts a block at the end of the memory, from a copy of the reference with room behind it.
#[cold]
#[inline(never)]
fn at_the_end(isa: Isa, filters: Filters, reference: Reference<'_>, block: Block<'_>) {
    /// Distance from row to row of the copy, in samples: the largest block, and what filters read around it.
    const STRIDE: usize = MAX_SIDE + 16;
    let mut copy = [0; ROWS * STRIDE];
    let (before, around) = if filters.down.is_some() { (BEFORE, BEFORE + AFTER) } else { (0, 0) };
    let first = reference.offset - before * reference.stride - BEFORE;
    let columns = block.width + BEFORE + AFTER;
    for (y, to) in copy.chunks_exact_mut(STRIDE).take(block.height + around).enumerate() {
        to[..columns]
            .copy_from_slice(&reference.samples[first + y * reference.stride..][..columns]);
    }
    let offset = before * STRIDE + BEFORE;
    dispatch(isa, filters, Reference { samples: &copy, offset, stride: STRIDE }, block);
}

/// Predicts a block from a reference of another size.
///
/// Predicts as [`predict`] does, but from the positions of `steps`. The reference must always have 3
/// samples before the block's first and 4 after its last whole position in both directions.
pub fn predict_scaled(
    isa: Isa,
    filter: u8,
    steps: Steps,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    block.check();
    steps.check();
    reference.check(steps.columns(block.width), steps.rows(block.height), true, true);
    let filters = &SUBPEL_FILTERS[usize::from(filter)];
    match isa.set() {
        Set::Scalar => scalar::predict_scaled(filters, steps, reference, block),
        // SAFETY: the set says that the instructions are there; block and reference are checked.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { x86::predict_scaled(filters, steps, reference, block) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Set::Neon => unsafe {
            simd::predict_scaled::<crate::simd::vector::neon::N128>(
                filters, steps, reference, block,
            );
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Set::Simd128 => unsafe {
            simd::predict_scaled::<crate::simd::vector::wasm::W128>(
                filters, steps, reference, block,
            );
        },
    }
}

/// Positions in a scaled reference, in sixteenths of a sample.
///
/// Sample `x` of a row lies `fx + x * step_x` after the offset, row `y` lies `fy + y * step_y` below it.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Fraction of the first column beyond the whole position: 0..=15.
    pub fx: usize,
    /// Fraction of the first row beyond the whole position: 0..=15.
    pub fy: usize,
    /// Step from column to column: 1..=[`MAX_STEP`]. 16 is the own size, 32 a reference twice as large.
    pub step_x: usize,
    /// Step from row to row, as `step_x`.
    pub step_y: usize,
}

impl Steps {
    fn check(self) {
        assert!(self.fx < 16 && self.fy < 16, "fractions are sixteenths");
        let steps = 1..=MAX_STEP;
        assert!(steps.contains(&self.step_x) && steps.contains(&self.step_y), "steps");
    }
    /// Number of whole positions that `width` samples span.
    fn columns(self, width: usize) -> usize {
        ((self.fx + (width - 1) * self.step_x) >> 4) + 1
    }
    /// Number of whole positions that `height` rows span.
    fn rows(self, height: usize) -> usize {
        ((self.fy + (height - 1) * self.step_y) >> 4) + 1
    }
}
