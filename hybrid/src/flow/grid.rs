//! The patches of a level: where they lie, and the result of the search for each.

use super::FlowVector;
use super::patch::{CELLS, SIDE};
use super::pyramid::Level;

/// The result of the search for a patch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    /// Vector from the patch to its place in the reference, in 1/[`UNIT`](super::UNIT) sample.
    pub vector: FlowVector,
    /// Whether the vector differs from that of the last search, or the last search has none.
    pub moved: bool,
    /// The vector's weight in each of the patch's cells; set at the finest level alone.
    pub weights: [u16; CELLS * CELLS],
}

/// The patches of a level, row by row. Patches at the right and lower edges reach beyond the picture.
#[derive(Debug, Clone, Default)]
pub(super) struct Grid {
    columns: usize,
    rows: usize,
    /// Distance from one patch to the next, in samples.
    stride: usize,
    found: Vec<Found>,
}

impl Grid {
    /// Lays patches over a level, and reuses the memory of the grid.
    pub(super) fn lay(&mut self, level: &Level, stride: usize) {
        let count = |size: usize| size.saturating_sub(SIDE).div_ceil(stride) + 1;
        (self.columns, self.rows, self.stride) =
            (count(level.width()), count(level.height()), stride);
        self.found.clear();
        self.found.resize(self.columns * self.rows, Found::default());
    }

    /// Number of patches in a row.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows of patches.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Distance from one patch to the next, in samples.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// The patch of a place in the grid.
    pub(super) fn at(&self, column: usize, row: usize) -> &Found {
        &self.found[row * self.columns + column]
    }

    /// The patch of a place in the grid, to be changed.
    pub(super) fn at_mut(&mut self, column: usize, row: usize) -> &mut Found {
        &mut self.found[row * self.columns + column]
    }

    /// The patch whose centre is nearest to a sample.
    pub(super) fn nearest(&self, x: usize, y: usize) -> &Found {
        let at = |v: usize, count: usize| {
            ((v + self.stride / 2).saturating_sub(SIDE / 2) / self.stride).min(count - 1)
        };
        self.at(at(x, self.columns), at(y, self.rows))
    }
}
