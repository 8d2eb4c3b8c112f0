//! The edges of intra prediction (specification §8.5.1): which samples there are, and the values for missing ones.

use crate::frame_buffer::PlaneRows;
use crate::info::PredictionMode;
use crate::kernels::intra::{Edges, IntraMode, predict_intra};
use crate::simd::Isa;

/// The sample value for a missing row above: `(1 << 7) - 1`.
const NO_ABOVE: u8 = 127;
/// The sample value for a missing column to the left: `(1 << 7) + 1`.
const NO_LEFT: u8 = 129;

/// The place of a transform block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntraEdges {
    /// Left edge in the plane's samples.
    pub(crate) x: usize,
    /// Upper edge in the plane's samples.
    pub(crate) y: usize,
    pub(crate) side: usize,
    pub(crate) have_left: bool,
    pub(crate) have_above: bool,
    /// Whether the block goes on to the right of this transform block.
    pub(crate) have_right: bool,
    /// Number of the plane's samples up to whole 8×8 luma units (`maxX + 1`, `maxY + 1`).
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Predicts one transform block from the samples around it.
#[inline]
pub(crate) fn predict(isa: Isa, mode: PredictionMode, at: &IntraEdges, plane: &mut PlaneRows<'_>) {
    let stride = plane.stride();
    let &IntraEdges { x, y, side, .. } = at;
    // From the row above on, where there is one.
    let top = y - usize::from(at.have_above);
    let samples = plane.after_mut(x - usize::from(at.have_left), top);
    let start = (y - top) * stride + usize::from(at.have_left);
    let mode = IntraMode::ALL[(mode as usize).min(9)];

    let mut above = [NO_ABOVE; 80];
    let above = &mut above[..=2 * side];
    if at.have_above {
        let row = &samples[start - stride..];
        let wanted = if at.have_right && side == 4 { 2 * side } else { side };
        let there = wanted.min(at.columns.saturating_sub(x)).max(1);
        above[1..=there].copy_from_slice(&row[..there]);
        let last = above[there];
        above[there + 1..].fill(last);
        above[0] = if at.have_left { samples[start - stride - 1] } else { NO_LEFT };
    }
    let mut left = [NO_LEFT; 32];
    let left = &mut left[..side];
    if at.have_left {
        let there = side.min(at.rows.saturating_sub(y)).max(1);
        let column = samples[start - 1..].iter().step_by(stride);
        for (to, &from) in left[..there].iter_mut().zip(column) {
            *to = from;
        }
        let last = left[there - 1];
        left[there..].fill(last);
    }
    let edges = Edges { above, left, have_left: at.have_left, have_above: at.have_above };
    predict_intra(isa, mode, side, edges, &mut samples[start..], stride);
}
