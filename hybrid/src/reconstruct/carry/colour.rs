//! The colour of anchored frames: only pictures of the publisher's own have any.

use super::plan::{SIDE, area};
use crate::anchor::pictures::CodedPicture;
use crate::anchor::tiles::{TILE, TileMap};
use crate::picture::Plane;

/// HR chroma of some cells.
#[derive(Debug, Clone)]
pub(crate) struct Colour {
    pub planes: [Plane; 2],
    /// By cell of [`SIDE`] low samples: whether it is known.
    pub known: Vec<bool>,
}

impl Colour {
    /// That of no cell of a low picture.
    pub fn none((width, height): (usize, usize), scale: usize) -> Self {
        let (columns, rows) = ((width * scale).div_ceil(2), (height * scale).div_ceil(2));
        let plane = || Plane::filled(columns, rows, 128);
        let known = vec![false; width.div_ceil(SIDE) * height.div_ceil(SIDE)];
        Self { planes: [plane(), plane()], known }
    }

    /// Whether it is of such a picture.
    pub fn is_of(&self, (width, height): (usize, usize), scale: usize) -> bool {
        let plane = &self.planes[0];
        (plane.width(), plane.height())
            == ((width * scale).div_ceil(2), (height * scale).div_ceil(2))
            && self.known.len() == width.div_ceil(SIDE) * height.div_ceil(SIDE)
    }

    /// Becomes that of a picture of some tiles, or of their mosaic. It must be of the same size.
    ///
    /// # Panics
    ///
    /// Where the picture is smaller than the tiles ask for.
    pub fn fill(&mut self, coded: &CodedPicture, tiles: &TileMap, low_width: usize, scale: usize) {
        let (across, side) = (self.planes[0].width(), TILE * scale / 2);
        let [_, u, v] = coded.picture().planes();
        for ((column, row), (from_x, from_y)) in tiles.places(scale) {
            let (x, y) = (column * side, row * side);
            for (from, to) in [u, v].into_iter().zip(&mut self.planes) {
                let (wide, high) = (side.min(across - x), side.min(to.height() - y));
                for line in 0..high {
                    let from = &from.row(from_y / 2 + line)[from_x / 2..][..wide];
                    to.samples_mut()[(y + line) * across + x..][..wide].copy_from_slice(from);
                }
            }
        }
        let columns = low_width.div_ceil(SIDE);
        for (i, known) in self.known.iter_mut().enumerate() {
            *known = tiles.contains(i % columns * SIDE / TILE, i / columns * SIDE / TILE);
        }
    }

    /// Takes a cell of another.
    pub fn take(&mut self, other: &Self, cell: usize, size: (usize, usize), scale: usize) {
        self.known[cell] = other.known[cell];
        let columns = size.0.div_ceil(SIDE);
        let area = area((cell % columns, cell / columns), size).chroma(scale);
        for (from, to) in other.planes.iter().zip(&mut self.planes) {
            let width = from.width();
            for y in area.y..(area.y + area.height).min(from.height()) {
                let span = y * width + area.x..y * width + (area.x + area.width).min(width);
                to.samples_mut()[span.clone()].copy_from_slice(&from.samples()[span]);
            }
        }
    }
}
