//! Motion compensation of one block: whole samples, sixteenths by eight-tap filters, and
//! references of another size.
//!
//! Source: VP9 bitstream specification v0.7 §8.5.2.3 and §8.5.2.4. A block is filtered along its
//! rows first, rounded and clipped to bytes, then along its columns; a direction without fraction
//! is left out, which is the same as its filter `128` alone. The second reference of a compound
//! block is averaged into what the first one left.

mod filters;
mod scalar;

pub use filters::SUBPEL_FILTERS;

use super::Isa;

/// Greatest side of a block in samples.
pub const MAX_SIDE: usize = 64;
/// Greatest step of a scaled reference, in sixteenths of a sample (five times as large).
pub const MAX_STEP: u32 = 80;

/// Samples before the whole position that a filter reads.
const BEFORE: usize = 3;
/// Samples from the whole position on that a filter reads besides the first.
const AFTER: usize = 4;

/// Where the samples come from.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The plane, or the part of it that holds the block with its surroundings.
    pub samples: &'a [u8],
    /// Index in `samples` of the block's first sample at its whole position.
    pub offset: usize,
    /// Distance of two rows in `samples`.
    pub stride: usize,
}

impl Reference<'_> {
    /// Panics unless the samples around `columns` times `rows` from the offset are there.
    fn check(&self, columns: usize, rows: usize, around_x: bool, around_y: bool) {
        let (left, right) = if around_x { (BEFORE, AFTER) } else { (0, 0) };
        let (above, below) = if around_y { (BEFORE, AFTER) } else { (0, 0) };
        assert!(self.offset >= above * self.stride + left, "the reference begins too late");
        let end = self.offset + (rows - 1 + below) * self.stride + columns + right;
        assert!(end <= self.samples.len(), "the reference ends too early");
    }
}

/// What becomes of the samples, checked.
struct Block<'a> {
    dst: &'a mut [u8],
    stride: usize,
    width: usize,
    height: usize,
    average: bool,
}

fn check_block(dst: &[u8], dst_stride: usize, width: usize, height: usize) {
    assert!(matches!(width, 4 | 8 | 16 | 32 | 64), "width {width}");
    assert!((1..=MAX_SIDE).contains(&height), "height {height}");
    assert!(dst.len() >= (height - 1) * dst_stride + width, "the destination is too short");
}

/// Predicts a block from a reference of the picture's own size.
///
/// `filter` is 0 regular, 1 smooth, 2 sharp, 3 bilinear; `fx` and `fy` are the sixteenths
/// (0..=15) beyond the whole position. `width` is 4, 8, 16, 32 or 64, `height` at most 64. With
/// `average` the result is the mean, rounded up, of `dst` and the prediction. Where a fraction is
/// not zero, the reference must have 3 samples before and 4 after the block in that direction.
#[allow(clippy::too_many_arguments)] // each names one thing of the bitstream
pub fn predict(
    isa: Isa,
    filter: u8,
    fx: u8,
    fy: u8,
    reference: Reference<'_>,
    dst: &mut [u8],
    dst_stride: usize,
    width: usize,
    height: usize,
    average: bool,
) {
    check_block(dst, dst_stride, width, height);
    let filters = &SUBPEL_FILTERS[usize::from(filter)];
    let (fx, fy) = (usize::from(fx), usize::from(fy));
    assert!(fx < 16 && fy < 16, "fractions are sixteenths");
    reference.check(width, height, fx != 0, fy != 0);
    let block = Block { dst, stride: dst_stride, width, height, average };
    let _ = isa; // one form so far
    scalar::predict(&filters[fx], &filters[fy], fx != 0, fy != 0, reference, block);
}

/// Predicts a block from a reference of another size.
///
/// As [`predict`], but sample `x` of a row lies `fx + x * step_x` sixteenths after the offset, row
/// `y` lies `fy + y * step_y` sixteenths below it; steps are 1..=[`MAX_STEP`] (16 is the own size,
/// 32 a reference twice as large). The reference must always have 3 samples before the block's
/// first and 4 after its last whole position in both directions.
#[allow(clippy::too_many_arguments)] // each names one thing of the bitstream
pub fn predict_scaled(
    isa: Isa,
    filter: u8,
    fx: u8,
    fy: u8,
    step_x: u32,
    step_y: u32,
    reference: Reference<'_>,
    dst: &mut [u8],
    dst_stride: usize,
    width: usize,
    height: usize,
    average: bool,
) {
    check_block(dst, dst_stride, width, height);
    assert!(fx < 16 && fy < 16, "fractions are sixteenths");
    assert!((1..=MAX_STEP).contains(&step_x) && (1..=MAX_STEP).contains(&step_y), "steps");
    let steps = Steps {
        fx: usize::from(fx),
        fy: usize::from(fy),
        step_x: step_x as usize,
        step_y: step_y as usize,
    };
    reference.check(steps.columns(width), steps.rows(height), true, true);
    let filters = &SUBPEL_FILTERS[usize::from(filter)];
    let block = Block { dst, stride: dst_stride, width, height, average };
    let _ = isa; // one form so far
    scalar::predict_scaled(filters, steps, reference, block);
}

/// Positions in a scaled reference, in sixteenths of a sample.
#[derive(Clone, Copy)]
struct Steps {
    fx: usize,
    fy: usize,
    step_x: usize,
    step_y: usize,
}

impl Steps {
    /// Whole positions that `width` samples span.
    fn columns(self, width: usize) -> usize {
        ((self.fx + (width - 1) * self.step_x) >> 4) + 1
    }
    /// Whole positions that `height` rows span.
    fn rows(self, height: usize) -> usize {
        ((self.fy + (height - 1) * self.step_y) >> 4) + 1
    }
}
