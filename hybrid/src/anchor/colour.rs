//! The colour of an anchor's frame: what its chroma has beyond the bicubic picture of the low one.
//!
//! It travels behind the luma's detail in the same payload, as a second codestream of [HTJ2K](super::codec): one image,
//! of the U of the chosen [tiles](windlass_types::tiles) and below it their V, each half as wide and high as the
//! luma's. Only the publisher's own pixels have colour; networks make luma alone. Cells that the code says nothing of
//! keep the low picture's colour.

use super::codec::{AnchorCodecError, Htj2k};
use crate::detail::{Detail, ONE};
use crate::reconstruct::carry::cells::SIDE;
use crate::resample::{Scratch, bicubic};
use windlass_types::Size;
use windlass_types::message::HTJ2K;
use windlass_types::tiles::{Mosaic, TILE, TileMap};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, PlaneSize, Samples};

/// Minimum change that counts as encoded, in 1/16 grey level: a smaller one is the rest of wavelets from cells
/// beside.
const MIN_CHANGE: u16 = ONE.unsigned_abs();

/// Size of the image that holds the colour of some tiles, for HR chroma planes of this size.
fn image_size(tiles: &TileMap, chroma: PlaneSize, scale: usize) -> PlaneSize {
    if tiles.is_full() {
        return PlaneSize::new(chroma.width, 2 * chroma.height);
    }
    let Mosaic { width, height } = tiles.mosaic(scale);
    PlaneSize::new(width / 2, height)
}

/// A row of a chosen tile of one plane.
struct Row {
    /// Where it starts in the image.
    image_x: usize,
    image_y: usize,
    /// Where it starts in the plane.
    x: usize,
    y: usize,
    /// Number of its samples.
    columns: usize,
}

/// Every row of every chosen tile of one plane.
fn rows(tiles: &TileMap, chroma: PlaneSize, scale: usize, mut visit: impl FnMut(Row)) {
    let side = TILE * scale / 2;
    for tile in tiles.places(scale) {
        let (x, y) = (tile.column * side, tile.row * side);
        let columns = side.min(chroma.width.saturating_sub(x));
        for line in 0..side.min(chroma.height.saturating_sub(y)) {
            let (image_x, image_y) = (tile.x / 2, tile.y / 2 + line);
            visit(Row { image_x, image_y, x, y: y + line, columns });
        }
    }
}

/// Bicubic HR chroma of a low picture.
pub(crate) fn upsampled([luma, u, v]: [Samples<'_>; 3], scale: usize) -> [Plane; 2] {
    let PlaneSize { width, height } = luma.size().scaled(scale).chroma();
    [u, v].map(|plane| {
        let mut high = Plane::filled(width, height, 128);
        let (isa, rows) = (Isa::detect(), 0..plane.height);
        bicubic(isa, plane, scale, rows, width, high.samples_mut(), &mut Scratch::default());
        high
    })
}

/// The image of the colour of some tiles of a frame, made of the frame's HR chroma.
///
/// # Panics
///
/// Panics if the planes are not half as large as `scale` times the low picture, rounded up.
pub fn image(
    high: [Samples<'_>; 2],
    low: [Samples<'_>; 3],
    tiles: &TileMap,
    scale: usize,
) -> Detail {
    let base = upsampled(low, scale);
    let size = base[0].size();
    let PlaneSize { width, height } = image_size(tiles, size, scale);
    let mut image = Detail::zero(width, height);
    for (n, (high, base)) in high.into_iter().zip(&base).enumerate() {
        assert_eq!(high.size(), size, "chroma of the HR picture");
        rows(tiles, size, scale, |Row { image_x, image_y, x, y, columns }| {
            let to = &mut image.row_mut(n * height / 2 + image_y)[image_x..][..columns];
            let pairs = high.row(y)[x..].iter().zip(&base.samples()[y * size.width + x..]);
            for (to, (&high, &base)) in to.iter_mut().zip(pairs) {
                *to = (i16::from(high) - i16::from(base)) * ONE;
            }
        });
    }
    image
}

/// The decoded HR chroma of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The chroma planes U and V.
    pub planes: [Plane; 2],
    /// For each cell of [`SIDE`] low samples, row by row: whether the code changes it.
    pub coded: Vec<bool>,
}

/// Decodes the HR chroma of a frame from a code of the colour of some tiles.
///
/// # Errors
///
/// Fails if the code is malformed, or not that of an image of these tiles.
pub fn decode(
    code: &[u8],
    low: [Samples<'_>; 3],
    tiles: &TileMap,
    scale: usize,
) -> Result<Decoded, AnchorCodecError> {
    let mut planes = upsampled(low, scale);
    let size = planes[0].size();
    let PlaneSize { width, height } = image_size(tiles, size, scale);
    let image = super::codec::decode(HTJ2K, code, Size::saturating(width, height))?;
    let (across, side) = (low[0].width.div_ceil(SIDE), SIDE * scale / 2);
    let mut coded = vec![false; across * low[0].height.div_ceil(SIDE)];
    for (n, plane) in planes.iter_mut().enumerate() {
        rows(tiles, size, scale, |Row { image_x, image_y, x, y, columns }| {
            let from = &image.row(n * height / 2 + image_y)[image_x..][..columns];
            let to = &mut plane.samples_mut()[y * size.width + x..][..columns];
            for (i, (to, &d)) in to.iter_mut().zip(from).enumerate() {
                let moved = i32::from(*to) * i32::from(ONE) + i32::from(d);
                *to = ((moved + i32::from(ONE) / 2) >> 4).clamp(0, 255) as u8;
                coded[y / side * across + (x + i) / side] |= d.unsigned_abs() >= MIN_CHANGE;
            }
        });
    }
    Ok(Decoded { planes, coded })
}

/// Splits a payload's code in two: the code of the luma's detail, and that of the colour where there is one.
pub fn split(codec: u8, coded: &[u8]) -> (&[u8], Option<&[u8]>) {
    let length = if codec == HTJ2K { Htj2k::length(coded) } else { None };
    match length.and_then(|length| coded.split_at_checked(length)) {
        Some((luma, colour)) if !colour.is_empty() => (luma, Some(colour)),
        _ => (coded, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::anchor::payload;
    use windlass_types::AnchorSource;
    use windlass_types::message::{AnchorHeader, ReassembledAnchor};
    use windlass_vp9::{FrameBuffer, psnr};

    const SIZE: Size = Size::new(150, 70);

    fn low() -> FrameBuffer {
        FrameBuffer::grey(SIZE.width.into(), SIZE.height.into())
    }

    fn chroma(scale: usize) -> [Plane; 2] {
        let PlaneSize { width, height } = low().size().scaled(scale).chroma();
        [3, 5].map(|n| {
            let samples =
                (0..width * height).map(|i| (118 + (i % width / 5 * n + i / width / 9) % 20) as u8);
            Plane::from_samples(width, height, samples.collect()).expect("the count is right")
        })
    }

    fn code(tiles: &TileMap, scale: usize) -> Vec<u8> {
        let [u, v] = chroma(scale);
        let image = image([(&u).into(), (&v).into()], low().samples(), tiles, scale);
        Htj2k::fill(&image, None, 40_000).expect("it fits")
    }

    #[test]
    fn chosen_tiles_have_their_colour_and_others_that_of_the_low_picture() {
        for scale in 2..=4 {
            let mut some = TileMap::empty(SIZE);
            some.set(1, 0);
            some.set(2, 1);
            for tiles in [some, TileMap::full(SIZE)] {
                let decoded =
                    decode(&code(&tiles, scale), low().samples(), &tiles, scale).expect("our own");
                let mut wanted = chroma(scale);
                let side = TILE * scale / 2;
                for plane in &mut wanted {
                    let width = plane.width();
                    for (i, v) in plane.samples_mut().iter_mut().enumerate() {
                        if !tiles.contains(i % width / side, i / width / side) {
                            *v = 128;
                        }
                    }
                }
                for (a, b) in decoded.planes.iter().zip(&wanted) {
                    assert!(psnr(a, b) > 45.0, "{} dB at {scale}", psnr(a, b));
                }
                let across = low().width().div_ceil(SIDE);
                let coded = |column: usize, row: usize| decoded.coded[row * across + column];
                assert_eq!((coded(2, 2), coded(18, 2)), (tiles.is_full(), true));
            }
        }
    }

    #[test]
    fn a_code_is_split_behind_its_first_stream() {
        let tiles = TileMap::full(SIZE);
        let colour = code(&tiles, 2);
        let luma = Htj2k::fill(&Detail::zero(300, 140), None, 900).expect("it fits");
        let both = [luma.clone(), colour.clone()].concat();
        assert_eq!(split(HTJ2K, &both), (&luma[..], Some(&colour[..])));
        assert_eq!(split(HTJ2K, &luma), (&luma[..], None));
        assert_eq!(split(1, &both), (&both[..], None));
        let header = AnchorHeader::new(HTJ2K, AnchorSource::Captured, 0, Size::new(300, 140));
        let anchor = ReassembledAnchor { header, payload: both };
        let detail = payload::decode(&anchor, 2).map(|(detail, _)| detail);
        assert_eq!(detail, Ok(Detail::zero(300, 140)), "old decoders leave colour alone");
    }

    proptest! {
        #[test]
        fn damage_never_panics(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            end: prop::sample::Index,
        ) {
            let tiles = TileMap::full(SIZE);
            let mut code = code(&tiles, 2);
            for (at, value) in edits {
                *at.get_mut(&mut code) = value;
            }
            code.truncate(end.index(code.len()) + 1);
            let _ = split(HTJ2K, &code);
            let _ = decode(&code, low().samples(), &tiles, 2);
        }
    }
}
