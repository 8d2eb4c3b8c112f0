//! A visitor that sees blocks and residuals while a frame is decoded.

use crate::frame_buffer::PictureRows;
use crate::info::Block;

/// Is called for every block, in the one pass over a frame. `()` is a visitor that does nothing and costs nothing.
pub trait Visitor {
    /// Whether [`Visitor::residual`] is called; without it residuals are added as they are made.
    const RESIDUAL: bool = false;

    /// Takes the residual of one transform block before it is added to the prediction. Empty residuals are left out.
    /// `x` and `y` are in samples of the plane (0 luma, 1 and 2 chroma); the block may reach beyond the picture's
    /// edge. `residual` has `side * side` values row by row.
    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        let _ = (plane, x, y, side, residual);
    }

    /// Takes a block after its residuals, while it is in the cache. In `picture`, the block's row of superblocks and
    /// the one above have not been through the loop filter yet.
    fn block(&mut self, block: &Block, picture: &PictureRows<'_>) {
        let _ = (block, picture);
    }
}

impl Visitor for () {}
