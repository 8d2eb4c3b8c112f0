//! The cells by which a picture is carried, and the number of references for each.

use super::warp::Area;

/// Side of a cell, in low samples: each cell has one share.
pub(crate) const SIDE: usize = 4;
/// Maximum number of references that a picture is made from: the last ones before it.
pub(crate) const LAYERS: usize = 2;

/// The area of a cell in low samples.
pub(crate) fn area((column, row): (usize, usize), (width, height): (usize, usize)) -> Area {
    let (x, y) = (column * SIDE, row * SIDE);
    Area { x, y, width: SIDE.min(width - x), height: SIDE.min(height - y) }
}
