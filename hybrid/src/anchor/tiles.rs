//! Tiles: the parts of a picture that an anchor gives, each a superblock of the low layer.
//!
//! Source: seed 001 (DDS) sends regions, seed 000 whole frames; here an anchor is a set of tiles, so
//! that a still background is not sent again. A tile is [`TILE`] × [`TILE`] low samples, those at the
//! right and lower edges less. For coding, the chosen tiles are packed row by row into a *mosaic*
//! of whole tiles, as wide as there are tiles to fill a row of the picture.
//!
//! On the wire a map is its bits alone, row by row, the lowest bit of a byte first; the picture's
//! size tells how many there are.

use crate::detail::Detail;

/// Side of a tile in low luma samples: a VP9 superblock.
pub const TILE: usize = 64;

/// Which tiles of a picture an anchor gives.
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

    /// Adds a tile; one outside the picture is ignored.
    pub fn set(&mut self, column: usize, row: usize) {
        if column < self.columns && row < self.rows {
            self.chosen[row * self.columns + column] = true;
        }
    }

    /// Whether a tile is chosen.
    pub fn contains(&self, column: usize, row: usize) -> bool {
        column < self.columns && row < self.rows && self.chosen[row * self.columns + column]
    }

    /// Number of chosen tiles.
    pub fn count(&self) -> usize {
        self.chosen.iter().filter(|&&c| c).count()
    }

    /// Whether all are chosen.
    pub fn is_full(&self) -> bool {
        self.chosen.iter().all(|&c| c)
    }

    /// The tiles of this map that are not in another of the same picture.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.merged(other, |a, b| a && !b)
    }

    /// The tiles of both maps, which are of the same picture.
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

    /// Bytes of a map on the wire.
    pub fn wire_bytes(lr_width: usize, lr_height: usize) -> usize {
        (lr_width.div_ceil(TILE) * lr_height.div_ceil(TILE)).div_ceil(8)
    }

    /// The bits, row by row.
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

    /// Packs the chosen tiles of an HR plane; what lies beyond the picture's edge is 0.
    pub fn gather(&self, picture: &Detail, scale: usize) -> Detail {
        let (width, height) = self.mosaic(scale);
        let mut mosaic = Detail::zero(width, height);
        let size = (picture.width(), picture.height());
        self.spans(size, width, scale, |at, (x, y), columns| {
            mosaic.samples_mut()[at..at + columns].copy_from_slice(&picture.row(y)[x..x + columns]);
        });
        mosaic
    }

    /// Puts the tiles of a mosaic where they belong and leaves the others alone. A mosaic of another
    /// size than [`mosaic`](Self::mosaic) says is left out whole: returns whether it fitted.
    pub fn scatter(&self, mosaic: &Detail, scale: usize, picture: &mut Detail) -> bool {
        let (width, height) = self.mosaic(scale);
        if (mosaic.width(), mosaic.height()) != (width, height) {
            return false;
        }
        let size = (picture.width(), picture.height());
        let target = picture.samples_mut();
        self.spans(size, width, scale, |at, (x, y), columns| {
            target[y * size.0 + x..][..columns]
                .copy_from_slice(&mosaic.samples()[at..at + columns]);
        });
        true
    }

    /// The chosen tiles with their upper left corners in the coded picture, in HR samples: in the mosaic, or where they
    /// are if all are chosen.
    pub(crate) fn places(
        &self,
        scale: usize,
    ) -> impl Iterator<Item = ((usize, usize), (usize, usize))> + '_ {
        let (side, across) = (TILE * scale, self.count().min(self.columns).max(1));
        self.iter().enumerate().map(move |(i, tile)| (tile, (i % across * side, i / across * side)))
    }

    /// Every row of every chosen tile: where it starts in the mosaic, where in the picture, and how
    /// many samples of it lie inside.
    fn spans(
        &self,
        (width, height): (usize, usize),
        mosaic_width: usize,
        scale: usize,
        mut visit: impl FnMut(usize, (usize, usize), usize),
    ) {
        let side = TILE * scale;
        let across = (mosaic_width / side).max(1);
        for (i, (column, row)) in self.iter().enumerate() {
            let (x, y) = (column * side, row * side);
            let columns = side.min(width.saturating_sub(x));
            for line in 0..side.min(height.saturating_sub(y)) {
                let at = (i / across * side + line) * mosaic_width + i % across * side;
                visit(at, (x, y + line), columns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn textured(width: usize, height: usize) -> Detail {
        let samples = (0..width * height).map(|i| (i * 31 % 4001) as i16 - 2000).collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    proptest! {
        #[test]
        fn tiles_come_back_to_their_place_and_the_rest_is_left_alone(
            (w, h) in (1usize..200, 1usize..150), scale in 2usize..5, bits: u64,
        ) {
            let mut map = TileMap::empty(w, h);
            for i in 0..map.columns() * map.rows() {
                if bits >> (i % 64) & 1 == 1 {
                    map.set(i % map.columns(), i / map.columns());
                }
            }
            let picture = textured(w * scale, h * scale);
            let mosaic = map.gather(&picture, scale);
            let mut back = Detail::zero(w * scale, h * scale);
            prop_assert!(map.scatter(&mosaic, scale, &mut back));
            for y in 0..h * scale {
                for x in 0..w * scale {
                    let chosen = map.contains(x / (TILE * scale), y / (TILE * scale));
                    prop_assert_eq!(back.row(y)[x], if chosen { picture.row(y)[x] } else { 0 });
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

    #[test]
    fn a_mosaic_of_another_size_changes_nothing() {
        let mut picture = textured(256, 128);
        let before = picture.clone();
        assert!(!TileMap::full(128, 64).scatter(&Detail::zero(128, 128), 2, &mut picture));
        assert_eq!(picture, before);
    }
}
