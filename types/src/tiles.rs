//! Tiles: the parts of a picture that an anchor gives, each a superblock of the low layer.
//!
//! Source: DDS sends regions, NeuroScaler whole frames. Here an anchor is a set of tiles, so that a still background
//! is not sent again. A tile is [`TILE`] × [`TILE`] low samples, at the right and lower edges less. For encoding, the
//! chosen tiles are packed row by row into a *mosaic* of whole tiles. It is as wide as the chosen tiles allow, up to
//! a row of the picture.
//!
//! On the wire a map is its bits alone, row by row, the lowest bit of a byte first. The picture's size tells how many
//! bits there are.

/// Side of a tile in low luma samples: a VP9 superblock.
pub const TILE: usize = 64;

/// Which tiles of a picture an anchor gives.
///
/// ```
/// use windlass_types::tiles::TileMap;
///
/// // A low picture of 320 × 180 samples has 5 × 3 tiles.
/// let mut tiles = TileMap::empty(320, 180);
/// tiles.set(4, 2);
/// assert_eq!((tiles.columns(), tiles.rows(), tiles.count()), (5, 3, 1));
/// assert_eq!(tiles.to_bytes(), [0, 0b0100_0000]);
/// assert_eq!(TileMap::parse(320, 180, &tiles.to_bytes()), Some(tiles));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileMap {
    columns: usize,
    rows: usize,
    chosen: Vec<bool>,
}

impl TileMap {
    /// No tile of a low picture of this size.
    pub fn empty(lr_width: usize, lr_height: usize) -> Self {
        let (columns, rows) = (lr_width.div_ceil(TILE), lr_height.div_ceil(TILE));
        Self { columns, rows, chosen: vec![false; columns * rows] }
    }

    /// Every tile of a low picture of this size.
    pub fn full(lr_width: usize, lr_height: usize) -> Self {
        let mut map = Self::empty(lr_width, lr_height);
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
    pub fn wire_bytes(lr_width: usize, lr_height: usize) -> usize {
        (lr_width.div_ceil(TILE) * lr_height.div_ceil(TILE)).div_ceil(8)
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
    pub fn parse(lr_width: usize, lr_height: usize, bytes: &[u8]) -> Option<Self> {
        let mut map = Self::empty(lr_width, lr_height);
        if bytes.len() != map.chosen.len().div_ceil(8) {
            return None;
        }
        for (i, chosen) in map.chosen.iter_mut().enumerate() {
            *chosen = bytes[i / 8] >> (i % 8) & 1 == 1;
        }
        (map.count() > 0 && map.to_bytes() == bytes).then_some(map)
    }

    /// Width and height of the mosaic of the chosen tiles, in HR samples.
    pub fn mosaic(&self, scale: usize) -> (usize, usize) {
        let columns = self.count().min(self.columns);
        (columns * TILE * scale, self.count().div_ceil(columns.max(1)) * TILE * scale)
    }

    /// The chosen tiles with their upper left corners in the encoded picture, in HR samples. If all tiles are chosen,
    /// the corners are those in the whole picture, else those in the mosaic.
    pub fn places(
        &self,
        scale: usize,
    ) -> impl Iterator<Item = ((usize, usize), (usize, usize))> + '_ {
        let (side, across) = (TILE * scale, self.count().min(self.columns).max(1));
        self.iter().enumerate().map(move |(i, tile)| (tile, (i % across * side, i / across * side)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn maps_are_read_as_they_were_written((w, h) in (1usize..200, 1usize..150), bits: u64) {
            let mut map = TileMap::empty(w, h);
            for i in 0..map.columns() * map.rows() {
                if bits >> (i % 64) & 1 == 1 {
                    map.set(i % map.columns(), i / map.columns());
                }
            }
            let bytes = map.to_bytes();
            prop_assert_eq!(bytes.len(), TileMap::wire_bytes(w, h));
            let parsed = TileMap::parse(w, h, &bytes);
            prop_assert_eq!(parsed, (map.count() > 0).then_some(map));
        }
    }

    #[test]
    fn maps_of_another_size_or_with_stray_bits_are_refused() {
        assert!(TileMap::parse(640, 360, &[0xff; 7]).is_none());
        assert!(TileMap::parse(640, 360, &[0xff; 8]).is_none());
        let mut bits = [0xff; 8];
        bits[7] = 0x0f;
        assert_eq!(TileMap::parse(640, 360, &bits), Some(TileMap::full(640, 360)));
        assert!(TileMap::parse(640, 360, &[0; 8]).is_none());
    }
}
