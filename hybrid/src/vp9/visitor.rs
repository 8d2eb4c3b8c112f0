//! Looking on while a frame is decoded.

use super::frame_buffer::PictureRows;
use super::info::Block;

/// Is told of every block in the one pass over a frame. `()` looks at nothing and costs nothing.
pub trait Visitor: Send {
    /// Whether [`Visitor::residual`] is wanted; without it residuals are added as they are made.
    const RESIDUAL: bool = false;

    /// The residual of one transform block, before it is added to the prediction. Empty ones are
    /// not told. `x` and `y` are in samples of the plane (0 luma, 1 and 2 chroma); the block may
    /// reach beyond the picture's edge; `residual` has `side * side` values row by row.
    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        let _ = (plane, x, y, side, residual);
    }

    /// A block after its residuals, while it is in the cache. `picture` has the block's rows and
    /// those above it from the last row of superblocks on, decoded but for the loop filter; `None`
    /// where only the info is parsed.
    fn block(&mut self, block: &Block, picture: Option<&PictureRows<'_>>) {
        let _ = (block, picture);
    }
}

impl Visitor for () {}
