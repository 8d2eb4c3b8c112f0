//! Where the detail of each part of a frame comes from: an anchor, and a vector into it.
//!
//! The papers carry HR pictures from frame to frame, so that every hop interpolates anew and blurs.
//! Here a frame carries a *field*: for each cell of 8 × 8 low samples the anchor that its detail
//! stems from, and the sum of the vectors on the way there ("composed motion"). The detail itself is
//! fetched once, from the anchor, when a frame is displayed. So a sharp anchor stays sharp
//! through a pan, hidden frames cost next to nothing, and a late anchor is caught up with by
//! tracing the fields of the frames since, not by rebuilding their pictures.

use crate::vp9::{FrameInfo, MotionVector};

/// Side of a cell in low samples.
pub(crate) const CELL: usize = 8;

/// Where the detail of one cell comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cell {
    /// The anchor, by the number of its [`Source`](super::source::Source); 0 for none.
    pub source: u32,
    /// From the cell to its place in the anchor, in 1/8 low sample.
    pub vector: MotionVector,
}

/// The cells of a frame, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Field {
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

/// What is known of the field of a reference.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Link<'a> {
    /// It is not there, or its picture has another size: no detail comes from it.
    Nothing,
    /// This is its field.
    Field(&'a Field),
    /// It has left the memory, but nothing has changed in it since the cells that refer to it were traced.
    Unchanged,
}

impl Field {
    /// Gives the field the size of a low picture, with no detail anywhere.
    pub fn reset(&mut self, lr_width: usize, lr_height: usize) {
        (self.width, self.height) = (lr_width, lr_height);
        self.cells.clear();
        self.cells.resize(lr_width.div_ceil(CELL) * lr_height.div_ceil(CELL), Cell::default());
    }

    /// Becomes a copy of another field, in the memory it has.
    pub fn copy_from(&mut self, other: &Self) {
        (self.width, self.height) = (other.width, other.height);
        self.cells.clone_from(&other.cells);
    }

    /// Size of the low picture.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Cells in a row.
    pub fn columns(&self) -> usize {
        self.width.div_ceil(CELL)
    }

    /// The cells, row by row.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cells, row by row, to be changed.
    pub fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// Whether any cell has detail.
    pub fn any(&self) -> bool {
        self.cells.iter().any(|c| c.source != 0)
    }

    /// The cell that a low sample lies in; beyond the edges the nearest.
    fn at(&self, x: i32, y: i32) -> Cell {
        let (column, row) = (
            x.clamp(0, self.width as i32 - 1) as usize / CELL,
            y.clamp(0, self.height as i32 - 1) as usize / CELL,
        );
        self.cells[row * self.columns() + column]
    }
}

/// Fills the field of a frame from those of its references (`Last`, `Golden`, `Altref`). `field` must have
/// the frame's size; cells that hang on a [`Link::Unchanged`] are left as they are.
pub(crate) fn trace(info: &FrameInfo, references: [Link<'_>; 3], field: &mut Field) {
    let (width, height) = field.size();
    let columns = field.columns();
    for block in &info.blocks {
        let (left, top) = (usize::from(block.x), usize::from(block.y));
        let right = (left + usize::from(block.width)).min(width);
        let bottom = (top + usize::from(block.height)).min(height);
        // Of a divided square the last quarter speaks for all.
        let predictions = block.predictions(3);
        for y in (top..bottom).step_by(CELL) {
            for x in (left..right).step_by(CELL) {
                let cell = &mut field.cells[y / CELL * columns + x / CELL];
                let mut found = Cell::default();
                for (reference, vector) in predictions.into_iter().flatten() {
                    match references[reference.index()] {
                        Link::Nothing => {}
                        Link::Unchanged => found = *cell,
                        Link::Field(from) => found = follow(from, x, y, vector),
                    }
                    if found.source != 0 {
                        break;
                    }
                }
                *cell = found;
            }
        }
    }
}

/// The cell that the centre of the one at (x, y) came from, with the vector added.
fn follow(from: &Field, x: usize, y: usize, vector: MotionVector) -> Cell {
    const HALF: i32 = CELL as i32 / 2;
    let whole = |v: i16| (i32::from(v) + 4) >> 3;
    let origin = from.at(x as i32 + HALF + whole(vector.x), y as i32 + HALF + whole(vector.y));
    let sum = |a: i16, b: i16| a.checked_add(b);
    match (sum(origin.vector.x, vector.x), sum(origin.vector.y, vector.y)) {
        (Some(x), Some(y)) if origin.source != 0 => {
            Cell { source: origin.source, vector: MotionVector { x, y } }
        }
        _ => Cell::default(),
    }
}
