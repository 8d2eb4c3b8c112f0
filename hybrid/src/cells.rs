//! The cells of a low picture that filters work on.

use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::Samples;

/// Side of a cell, in samples of the low picture: 8 × 8 cells make a [tile](windlass_types::tiles).
pub const CELL: usize = 8;

/// Some or all cells of a low picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells<'a> {
    /// All cells of the picture.
    All,
    /// The cells with `true` in this mask, which has one flag for each cell, row by row.
    Only(&'a [bool]),
}

impl<'a> Cells<'a> {
    /// The cells of some tiles. `mask` is memory for the flags.
    pub fn of_tiles(
        tiles: &TileMap,
        width: usize,
        height: usize,
        mask: &'a mut Vec<bool>,
    ) -> Cells<'a> {
        if tiles.is_full() {
            return Cells::All;
        }
        mask.clear();
        for y in (0..height).step_by(CELL) {
            mask.extend((0..width).step_by(CELL).map(|x| tiles.contains(x / TILE, y / TILE)));
        }
        Cells::Only(mask)
    }

    /// Panics where the mask is not one of this picture.
    pub(crate) fn check(self, low: Samples<'_>) {
        if let Cells::Only(mask) = self {
            let count = low.width.div_ceil(CELL) * low.height.div_ceil(CELL);
            assert_eq!(mask.len(), count, "one flag for each cell");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_types::Size;

    #[test]
    fn a_tile_covers_its_cells_and_no_others() {
        let mut tiles = TileMap::empty(Size::new(100, 70));
        tiles.set(1, 0);
        let mut mask = vec![true; 3];
        let cells = Cells::of_tiles(&tiles, 100, 70, &mut mask);
        let wanted: Vec<bool> = (0..13 * 9).map(|i| i % 13 >= 8 && i / 13 < 8).collect();
        assert_eq!(cells, Cells::Only(&wanted));
    }

    #[test]
    fn all_tiles_cover_all_cells() {
        let tiles = TileMap::full(Size::new(100, 70));
        assert_eq!(Cells::of_tiles(&tiles, 100, 70, &mut Vec::new()), Cells::All);
    }
}
