//! Tiles: the parts of a picture that an anchor gives, each a superblock of the low layer.
//!
//! Source: DDS sends regions, NeuroScaler whole frames. Here an anchor is a set of tiles, so that a still background
//! is not sent again. A tile is [`TILE`] × [`TILE`] low samples, at the right and lower edges less. For encoding, the
//! chosen tiles are packed row by row into a *mosaic* of whole tiles. It is as wide as the chosen tiles allow, up to
//! a row of the picture.
//!
//! On the wire a map is its bits alone, row by row, the lowest bit of a byte first. The picture's size tells how many
//! bits there are.

use crate::Size;

/// Side of a tile in low luma samples: a VP9 superblock.
pub const TILE: usize = 64;

/// Which tiles of a picture an anchor gives.
///
/// ```
/// use windlass_types::Size;
/// use windlass_types::tiles::TileMap;
///
/// // A low picture of 320 × 180 samples has 5 × 3 tiles.
/// let low = Size::new(320, 180);
/// let mut tiles = TileMap::empty(low);
/// tiles.set(4, 2);
/// assert_eq!((tiles.columns(), tiles.rows(), tiles.count()), (5, 3, 1));
/// assert_eq!(tiles.to_bytes(), [0, 0b0100_0000]);
/// assert_eq!(TileMap::parse(low, &tiles.to_bytes()), Some(tiles));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileMap {
    columns: usize,
    rows: usize,
    chosen: Vec<bool>,
}

impl TileMap {
    /// No tile of a low picture of this size.
    pub fn empty(low: Size) -> Self {
        let [columns, rows] = [low.width, low.height].map(|side| usize::from(side).div_ceil(TILE));
        Self { columns, rows, chosen: vec![false; columns * rows] }
    }

    /// Every tile of a low picture of this size.
    pub fn full(low: Size) -> Self {
        let mut map = Self::empty(low);
        map.chosen.fill(true);
        map
    }

    /// Tiles in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of tiles.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a tile to the map; a tile outside the picture is ignored.
    pub fn set(&mut self, column: usize, row: usize) {
        if column < self.columns && row < self.rows {
            self.chosen[row * self.columns + column] = true;
        }
    }

    /// Whether the map has this tile.
    pub fn contains(&self, column: usize, row: usize) -> bool {
        column < self.columns && row < self.rows && self.chosen[row * self.columns + column]
    }

    /// Number of tiles in the map.
    pub fn count(&self) -> usize {
        self.chosen.iter().filter(|&&c| c).count()
    }

    /// Whether the map has all tiles of the picture.
    pub fn is_full(&self) -> bool {
        self.chosen.iter().all(|&c| c)
    }

    /// The tiles of this map that another map of the same picture does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.merged(other, |a, b| a && !b)
    }

    /// The tiles of this map and of another map of the same picture.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        self.merged(other, |a, b| a || b)
    }

    fn merged(&self, other: &Self, both: impl Fn(bool, bool) -> bool) -> Self {
        let chosen = self.chosen.iter().zip(&other.chosen).map(|(&a, &b)| both(a, b)).collect();
        Self { chosen, ..*self }
    }

    /// The chosen tiles as (column, row), row by row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let columns = self.columns;
        self.chosen
            .iter()
            .enumerate()
            .filter(|(_, c)| **c)
            .map(move |(i, _)| (i % columns, i / columns))
    }

    /// Length of a map on the wire, in bytes, for a low picture of this size.
    pub fn wire_bytes(low: Size) -> usize {
        let [columns, rows] = [low.width, low.height].map(|side| usize::from(side).div_ceil(TILE));
        (columns * rows).div_ceil(8)
    }

    /// The map on the wire: a bit for each tile, row by row, the lowest bit of a byte first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.chosen
            .chunks(8)
            .map(|bits| bits.iter().enumerate().fold(0, |byte, (i, &c)| byte | u8::from(c) << i))
            .collect()
    }

    /// Reads a map; `None` where bytes are missing or too many, bits beyond the last tile are set,
    /// or no tile is chosen.
    pub fn parse(low: Size, bytes: &[u8]) -> Option<Self> {
        let mut map = Self::empty(low);
        if bytes.len() != map.chosen.len().div_ceil(8) {
            return None;
        }
        for (i, chosen) in map.chosen.iter_mut().enumerate() {
            *chosen = bytes[i / 8] >> (i % 8) & 1 == 1;
        }
        (map.count() > 0 && map.to_bytes() == bytes).then_some(map)
    }

    /// The mosaic of the chosen tiles.
    pub fn mosaic(&self, scale: usize) -> Mosaic {
        let columns = self.count().min(self.columns);
        let rows = self.count().div_ceil(columns.max(1));
        Mosaic { width: columns * TILE * scale, height: rows * TILE * scale }
    }

    /// The chosen tiles with their places in the encoded picture. If all tiles are chosen, that is the whole picture,
    /// else the mosaic.
    pub fn places(&self, scale: usize) -> impl Iterator<Item = TilePlace> + '_ {
        let (side, across) = (TILE * scale, self.count().min(self.columns).max(1));
        self.iter().enumerate().map(move |(i, (column, row))| TilePlace {
            column,
            row,
            x: i % across * side,
            y: i / across * side,
        })
    }
}

/// Size of a mosaic, in HR samples. The mosaic of a large picture may exceed what [`Size`] can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mosaic {
    /// Number of samples in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

/// A chosen tile, and the upper left corner of its samples in the encoded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TilePlace {
    /// Column of the tile in the low picture, counted in tiles.
    pub column: usize,
    /// Row of the tile in the low picture, counted in tiles.
    pub row: usize,
    /// Column of the corner, in HR samples.
    pub x: usize,
    /// Row of the corner, in HR samples.
    pub y: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn maps_are_read_as_they_were_written((w, h) in (1u16..200, 1u16..150), bits: u64) {
            let low = Size::new(w, h);
            let mut map = TileMap::empty(low);
            for i in 0..map.columns() * map.rows() {
                if bits >> (i % 64) & 1 == 1 {
                    map.set(i % map.columns(), i / map.columns());
                }
            }
            let bytes = map.to_bytes();
            prop_assert_eq!(bytes.len(), TileMap::wire_bytes(low));
            let parsed = TileMap::parse(low, &bytes);
            prop_assert_eq!(parsed, (map.count() > 0).then_some(map));
        }
    }

    #[test]
    fn maps_of_another_size_or_with_stray_bits_are_refused() {
        let low = Size::new(640, 360);
        assert!(TileMap::parse(low, &[0xff; 7]).is_none());
        assert!(TileMap::parse(low, &[0xff; 8]).is_none());
        let mut bits = [0xff; 8];
        bits[7] = 0x0f;
        assert_eq!(TileMap::parse(low, &bits), Some(TileMap::full(low)));
        assert!(TileMap::parse(low, &[0; 8]).is_none());
    }
}
