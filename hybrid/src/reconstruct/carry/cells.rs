//! The cells by which a picture is carried, and the number of references for each.

use super::warp::Area;
use windlass_vp9::PlaneSize;

/// Side of a cell, in low samples: each cell has one share.
pub(crate) const SIDE: usize = 4;
/// Maximum number of references that a picture is made from: the last ones before it.
pub(crate) const LAYERS: usize = 2;

/// The place of a cell in its picture, in cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub column: usize,
    pub row: usize,
}

impl Cell {
    /// The cell of this number, row by row, in a picture with `columns` columns of cells.
    pub(crate) fn numbered(number: usize, columns: usize) -> Self {
        Self { column: number % columns, row: number / columns }
    }

    /// The number of the cell, row by row, in a picture of so many columns of cells.
    pub(crate) fn number(self, columns: usize) -> usize {
        self.row * columns + self.column
    }

    /// The area of the cell in low samples, in a low picture of this size.
    pub(crate) fn area(self, low: PlaneSize) -> Area {
        let (x, y) = (self.column * SIDE, self.row * SIDE);
        Area { x, y, width: SIDE.min(low.width - x), height: SIDE.min(low.height - y) }
    }
}

/// The place of a sample in its low picture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowPlace {
    pub x: usize,
    pub y: usize,
}

impl LowPlace {
    /// The cell of the sample.
    pub(crate) fn cell(self) -> Cell {
        Cell { column: self.x / SIDE, row: self.y / SIDE }
    }
}
