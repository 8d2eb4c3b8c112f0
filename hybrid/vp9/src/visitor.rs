//! Looking on while a frame is decoded.

use crate::frame_buffer::PictureRows;
use crate::info::Block;

/// Is called for every block in the one pass over a frame. `()` does nothing and costs nothing.
pub trait Visitor {
    /// Whether [`Visitor::residual`] is wanted; without it residuals are added as they are made.
    const RESIDUAL: bool = false;

    /// The residual of one transform block, before it is added to the prediction. Empty ones are
    /// left out. `x` and `y` are in samples of the plane (0 luma, 1 and 2 chroma); the block may
    /// reach beyond the picture's edge; `residual` has `side * side` values row by row.
    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        let _ = (plane, x, y, side, residual);
    }

    /// A block after its residuals, while it is in the cache. In `picture`, its row of superblocks
    /// and the one above are not yet through the loop filter.
    fn block(&mut self, block: &Block, picture: &PictureRows<'_>) {
        let _ = (block, picture);
    }
}

impl Visitor for () {}
