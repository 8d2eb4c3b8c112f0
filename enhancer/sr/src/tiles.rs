//! Super-resolution of some tiles of a picture only, and the energy of each tile.
//!
//! Adjacent tiles of a row are inferred together, with a border as wide as the network's receptive field. So every
//! sample equals that of the whole picture. Accelerators get the whole picture, because parts of many sizes could not
//! share one launch.

use windlass_hybrid::Detail;
use windlass_hybrid::detail::ONE;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::Samples;

use crate::{Engine, InferError, Input, Luma, Residual};

/// Share of tiles from which on the whole picture is inferred: the margins would then cost what the other tiles save.
const NEARLY_ALL: f64 = 0.8;

/// Infers the detail of the chosen tiles, at full size and 0 elsewhere. Also returns how many low samples went through
/// the network.
///
/// # Errors
///
/// Fails if the engine refuses the picture or fails ([`Engine::infer_batch`]).
pub fn infer_tiles(
    engine: &mut dyn Engine,
    low: Samples<'_>,
    tiles: &TileMap,
    residual: &mut Residual,
) -> Result<(Detail, usize), InferError> {
    infer_some(engine, low, None, tiles, residual)
}

/// Infers the detail of the chosen tiles as [`infer_tiles`] does, by a network that also takes the twin's HR picture.
///
/// # Errors
///
/// Fails if `twin` is not of the HR size, or the engine refuses the picture or fails ([`Engine::infer_batch`]).
pub fn infer_tiles_fused(
    engine: &mut dyn Engine,
    low: Samples<'_>,
    twin: Samples<'_>,
    tiles: &TileMap,
    residual: &mut Residual,
) -> Result<(Detail, usize), InferError> {
    infer_some(engine, low, Some(twin), tiles, residual)
}

fn infer_some(
    engine: &mut dyn Engine,
    low: Samples<'_>,
    twin: Option<Samples<'_>>,
    tiles: &TileMap,
    residual: &mut Residual,
) -> Result<(Detail, usize), InferError> {
    let (scale, reach) = (engine.scale(), engine.reach());
    let accelerated = !engine.on_cpu();
    let high = (scale * low.width, scale * low.height);
    if twin.is_some_and(|twin| (twin.width, twin.height) != high) {
        return Err(InferError::Twin(engine.architecture().inputs));
    }
    let mut infer = |x, y, width, height, residual: &mut Residual| {
        let low = part(low, x, y, width, height)?;
        let twin = twin.map(|t| part(t, scale * x, scale * y, scale * width, scale * height));
        let input = Input { low, twin: twin.transpose()? };
        engine.infer_batch(&[input], std::slice::from_mut(residual))
    };
    let mut detail = Detail::zero(high.0, high.1);
    if tiles.count() as f64 >= NEARLY_ALL * (tiles.columns() * tiles.rows()) as f64 {
        infer(0, 0, low.width, low.height, residual)?;
        let area = Area { x: 0, y: 0, width: low.width, height: low.height };
        copy(residual, 0, 0, area, scale, &mut detail);
        return Ok((detail, low.width * low.height));
    }
    let mut work = 0;
    if accelerated {
        infer(0, 0, low.width, low.height, residual)?;
        work = low.width * low.height;
    }
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
            let area = Area { x: left, y: top, width: right - left, height: bottom - top };
            if accelerated {
                copy(residual, left, top, area, scale, &mut detail);
                continue;
            }
            let (x, y) = (left.saturating_sub(reach), top.saturating_sub(reach));
            let width = (right + reach).min(low.width) - x;
            let height = (bottom + reach).min(low.height) - y;
            infer(x, y, width, height, residual)?;
            work += width * height;
            copy(residual, left - x, top - y, area, scale, &mut detail);
        }
    }
    Ok((detail, work))
}

/// Copies a rectangle out of a plane.
fn part(
    plane: Samples<'_>,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
) -> Result<Luma<'_>, InferError> {
    let from = y * plane.stride + x;
    let given = plane.data.len();
    let Some(data) = plane.data.get(from..) else {
        return Err(InferError::TooShort { given, needed: from + width });
    };
    Luma::new(data, width, height, plane.stride)
}

/// A rectangle of a picture, in low samples.
#[derive(Clone, Copy)]
struct Area {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// Copies an area from its place in a residual, in low samples, to that in the picture.
fn copy(
    residual: &Residual,
    from_x: usize,
    from_y: usize,
    area: Area,
    scale: usize,
    detail: &mut Detail,
) {
    let Area { x, y, width, height } = area;
    for line in 0..scale * height {
        let from = &residual.data[(scale * from_y + line) * residual.width + scale * from_x..];
        let to = &mut detail.row_mut(scale * y + line)[scale * x..][..scale * width];
        for (d, r) in to.iter_mut().zip(from) {
            *d = (r.clamp(-255.0, 255.0) * f32::from(ONE)).round() as i16;
        }
    }
}

/// The energy of a tile of a detail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyOfTile {
    /// Column of the tile, counted in tiles.
    pub column: usize,
    /// Row of the tile, counted in tiles.
    pub row: usize,
    /// Mean energy in square grey levels per sample.
    pub energy: f64,
}

/// Mean energy of some tiles of a detail, tile by tile, row by row. A tile to which
/// super-resolution adds much has much to learn. If two details differ much, one has what the other lacks.
pub fn energy_by_tile<'a>(
    detail: &'a Detail,
    tiles: &'a TileMap,
    scale: usize,
) -> impl Iterator<Item = EnergyOfTile> + 'a {
    let side = TILE * scale;
    tiles.iter().map(move |(column, row)| {
        let (x, y) = (column * side, row * side);
        let columns = x.min(detail.width())..(x + side).min(detail.width());
        let rows = y.min(detail.height())..(y + side).min(detail.height());
        let area = (columns.len() * rows.len()).max(1);
        let sum: i64 = rows
            .flat_map(|y| &detail.row(y)[columns.clone()])
            .map(|&d| i64::from(d) * i64::from(d))
            .sum();
        let unit = f64::from(ONE) * f64::from(ONE);
        EnergyOfTile { column, row, energy: sum as f64 / unit / area as f64 }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Architecture, CpuEngine, Model, embedded_model};
    use windlass_hybrid::anchor::mosaic::gather;
    use windlass_types::Size;
    use windlass_vp9::Plane;

    fn plane(width: usize, height: usize) -> Plane {
        let samples = (0..width * height).map(|i| ((i * 7919 + i / width * 31) % 251) as u8);
        Plane::from_samples(width, height, samples.collect()).expect("the count")
    }

    fn some_tiles() -> TileMap {
        let mut some = TileMap::empty(Size::new(200, 150));
        for (column, row) in [(0, 0), (1, 0), (3, 1), (2, 2)] {
            some.set(column, row);
        }
        some
    }

    #[test]
    fn tiles_come_out_as_from_the_whole_picture() {
        let low = plane(200, 150);
        let mut engine = CpuEngine::new(embedded_model().expect("built in"));
        let mut residual = Residual::default();
        let full = TileMap::full(Size::new(200, 150));
        let (whole, work) =
            infer_tiles(&mut engine, (&low).into(), &full, &mut residual).expect("a size");
        assert_eq!(work, 200 * 150);
        let some = some_tiles();
        let (part, work) =
            infer_tiles(&mut engine, (&low).into(), &some, &mut residual).expect("a size");
        assert!(work < 200 * 150 * 6 / 10, "{work}");
        assert_eq!(gather(&some, &part, 2), gather(&some, &whole, 2));
    }

    #[test]
    fn tiles_of_other_scales_blocks_and_twins_come_out_as_from_the_whole_picture() {
        let (low, full, some) = (plane(200, 150), TileMap::full(Size::new(200, 150)), some_tiles());
        for architecture in [
            Architecture::blocks(3, 8, 2),
            Architecture::chain(4, 8, 2).with_twin(),
            Architecture::blocks(2, 8, 1).with_twin(),
        ] {
            let scale = architecture.scale;
            let twin = plane(scale * 200, scale * 150);
            let twin = architecture.has_twin().then(|| Samples::from(&twin));
            let model = Model::random(architecture, 3).expect("it runs");
            let mut engine = CpuEngine::new(Arc::new(model));
            let mut residual = Residual::default();
            let mut infer = |tiles| {
                infer_some(&mut engine, (&low).into(), twin, tiles, &mut residual).expect("a size")
            };
            let (whole, part) = (infer(&full).0, infer(&some).0);
            assert_eq!(gather(&some, &part, scale), gather(&some, &whole, scale), "{architecture}");
            assert!(part.samples().iter().any(|&s| s != 0), "{architecture}");
        }
    }

    #[test]
    fn a_twin_of_another_size_is_refused() {
        let (low, twin) = (plane(64, 64), plane(128, 127));
        let model = Model::random(Architecture::chain(2, 8, 2).with_twin(), 3).expect("it runs");
        let mut engine = CpuEngine::new(Arc::new(model));
        let (low, twin) = ((&low).into(), (&twin).into());
        let tiles = TileMap::full(Size::new(64, 64));
        let refused = infer_tiles_fused(&mut engine, low, twin, &tiles, &mut Residual::default());
        assert!(matches!(refused, Err(InferError::Twin(_))));
    }
}
