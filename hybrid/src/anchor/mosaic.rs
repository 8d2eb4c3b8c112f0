//! The detail of the chosen tiles of a picture, packed into a mosaic, and back.

use windlass_types::tiles::{Mosaic, TILE, TileMap};
use windlass_vp9::PlaneSize;

use crate::detail::Detail;

/// Packs the chosen tiles of an HR plane; what lies beyond the picture's edge is 0.
pub fn gather(tiles: &TileMap, picture: &Detail, scale: usize) -> Detail {
    let Mosaic { width, height } = tiles.mosaic(scale);
    let mut mosaic = Detail::zero(width, height);
    spans(tiles, picture.size(), width, scale, |Span { at, x, y, columns }| {
        mosaic.samples_mut()[at..at + columns].copy_from_slice(&picture.row(y)[x..x + columns]);
    });
    mosaic
}

/// Puts the tiles of a mosaic where they belong and leaves the others alone. A mosaic of another
/// size than [`TileMap::mosaic`] says is left out whole: returns whether it fitted.
pub fn scatter(tiles: &TileMap, mosaic: &Detail, scale: usize, picture: &mut Detail) -> bool {
    let Mosaic { width, height } = tiles.mosaic(scale);
    if mosaic.size() != PlaneSize::new(width, height) {
        return false;
    }
    let size = picture.size();
    let target = picture.samples_mut();
    spans(tiles, size, width, scale, |Span { at, x, y, columns }| {
        target[y * size.width + x..][..columns]
            .copy_from_slice(&mosaic.samples()[at..at + columns]);
    });
    true
}

/// A row of a chosen tile.
struct Span {
    /// Where it starts in the mosaic.
    at: usize,
    /// Where it starts in the picture.
    x: usize,
    y: usize,
    /// Number of its samples that lie inside the picture.
    columns: usize,
}

/// Every row of every chosen tile.
fn spans(
    tiles: &TileMap,
    picture: PlaneSize,
    mosaic_width: usize,
    scale: usize,
    mut visit: impl FnMut(Span),
) {
    let side = TILE * scale;
    let across = (mosaic_width / side).max(1);
    for (i, (column, row)) in tiles.iter().enumerate() {
        let (x, y) = (column * side, row * side);
        let columns = side.min(picture.width.saturating_sub(x));
        for line in 0..side.min(picture.height.saturating_sub(y)) {
            let at = (i / across * side + line) * mosaic_width + i % across * side;
            visit(Span { at, x, y: y + line, columns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windlass_types::Size;

    fn textured(width: usize, height: usize) -> Detail {
        let samples = (0..width * height).map(|i| (i * 31 % 4001) as i16 - 2000).collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    proptest! {
        #[test]
        fn tiles_come_back_to_their_place_and_the_rest_is_left_alone(
            (w, h) in (1usize..200, 1usize..150), scale in 2usize..5, bits: u64,
        ) {
            let mut map = TileMap::empty(Size::saturating(w, h));
            for i in 0..map.columns() * map.rows() {
                if bits >> (i % 64) & 1 == 1 {
                    map.set(i % map.columns(), i / map.columns());
                }
            }
            let picture = textured(w * scale, h * scale);
            let mosaic = gather(&map, &picture, scale);
            let mut back = Detail::zero(w * scale, h * scale);
            prop_assert!(scatter(&map, &mosaic, scale, &mut back));
            for y in 0..h * scale {
                for x in 0..w * scale {
                    let chosen = map.contains(x / (TILE * scale), y / (TILE * scale));
                    prop_assert_eq!(back.row(y)[x], if chosen { picture.row(y)[x] } else { 0 });
                }
            }
        }
    }

    #[test]
    fn a_mosaic_of_another_size_changes_nothing() {
        let mut picture = textured(256, 128);
        let before = picture.clone();
        let tiles = TileMap::full(Size::new(128, 64));
        assert!(!scatter(&tiles, &Detail::zero(128, 128), 2, &mut picture));
        assert_eq!(picture, before);
    }
}
