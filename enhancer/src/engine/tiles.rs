//! Super-resolution of some tiles of a picture only.
//!
//! Runs of tiles side by side are inferred together, each with as many samples around as the network
//! looks at, so that every sample comes out as it would from the whole picture.

use windlass_hybrid::anchor::tiles::{TILE, TileMap};
use windlass_hybrid::detail::ONE;
use windlass_hybrid::{Detail, resample::Samples};

use super::{Engine, InferError, Luma, Residual};

/// Share of tiles from which on the whole picture is inferred: the samples around cost as much as is saved.
const NEARLY_ALL: f64 = 0.8;

/// The detail of the chosen tiles at full size, 0 elsewhere, and how many low samples went through the
/// network for it.
pub fn infer_tiles(
    engine: &mut dyn Engine,
    low: Samples<'_>,
    tiles: &TileMap,
    residual: &mut Residual,
) -> Result<(Detail, usize), InferError> {
    let (scale, reach) = (engine.scale(), engine.reach());
    let mut detail = Detail::zero(scale * low.width, scale * low.height);
    if tiles.count() as f64 >= NEARLY_ALL * (tiles.columns() * tiles.rows()) as f64 {
        engine.infer(Luma::new(low.data, low.width, low.height, low.stride)?, residual)?;
        copy(residual, (0, 0), (0, 0), (low.width, low.height), scale, &mut detail);
        return Ok((detail, low.width * low.height));
    }
    let mut work = 0;
    for row in 0..tiles.rows() {
        let mut column = 0;
        while column < tiles.columns() {
            if !tiles.contains(column, row) {
                column += 1;
                continue;
            }
            let first = column;
            while tiles.contains(column, row) {
                column += 1;
            }
            let (left, top) = (first * TILE, row * TILE);
            let (right, bottom) = ((column * TILE).min(low.width), (top + TILE).min(low.height));
            let (x, y) = (left.saturating_sub(reach), top.saturating_sub(reach));
            let width = (right + reach).min(low.width) - x;
            let height = (bottom + reach).min(low.height) - y;
            let from = &low.data[y * low.stride + x..];
            engine.infer(Luma::new(from, width, height, low.stride)?, residual)?;
            work += width * height;
            let (inner, size) = ((left - x, top - y), (right - left, bottom - top));
            copy(residual, inner, (left, top), size, scale, &mut detail);
        }
    }
    Ok((detail, work))
}

/// Copies an area (low samples) of a residual to its place.
fn copy(
    residual: &Residual,
    (from_x, from_y): (usize, usize),
    (x, y): (usize, usize),
    (width, height): (usize, usize),
    scale: usize,
    detail: &mut Detail,
) {
    for line in 0..scale * height {
        let from = &residual.data[(scale * from_y + line) * residual.width + scale * from_x..];
        let to = &mut detail.row_mut(scale * y + line)[scale * x..][..scale * width];
        for (d, r) in to.iter_mut().zip(from) {
            *d = (r.clamp(-255.0, 255.0) * f32::from(ONE)).round() as i16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{CpuEngine, embedded_model};
    use windlass_hybrid::Plane;

    #[test]
    fn tiles_come_out_as_from_the_whole_picture() {
        let samples = (0..200 * 150).map(|i| ((i * 7919 + i / 200 * 31) % 251) as u8).collect();
        let low = Plane::from_samples(200, 150, samples).expect("the count");
        let mut engine = CpuEngine::new(embedded_model().expect("built in"));
        let mut residual = Residual::default();
        let full = TileMap::full(200, 150);
        let (whole, work) =
            infer_tiles(&mut engine, (&low).into(), &full, &mut residual).expect("a size");
        assert_eq!(work, 200 * 150);
        let mut some = TileMap::empty(200, 150);
        for (column, row) in [(0, 0), (1, 0), (3, 1), (2, 2)] {
            some.set(column, row);
        }
        let (part, work) =
            infer_tiles(&mut engine, (&low).into(), &some, &mut residual).expect("a size");
        assert!(work < 200 * 150 * 6 / 10, "{work}");
        assert_eq!(some.gather(&part, 2), some.gather(&whole, 2));
    }
}
