//! The payload of an anchor: which tiles it gives, and their image.
//!
//! A key anchor is the image alone, of the detail at HR size. An anchor of [tiles](windlass_types::tiles) is their map
//! and the image of their mosaic; the header says which it is. Behind the image there may be one of its
//! [colour](super::colour).

use super::codec::{self, AnchorCodecError};
use super::mosaic::{gather, scatter};
use crate::detail::Detail;
use windlass_types::Size;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::tiles::{Mosaic, TileMap};

/// The detail as the codec gets it: all of it, or the mosaic of the chosen tiles.
pub fn image(detail: Detail, tiles: &TileMap, scale: usize) -> Detail {
    if tiles.is_full() { detail } else { gather(tiles, &detail, scale) }
}

/// The payload of an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The tile map, where there is one, and the code.
    pub payload: Vec<u8>,
    /// Whether the payload begins with a tile map: the header must say so.
    pub tiled: bool,
}

/// The payload of an encoded [`image`].
pub fn pack(tiles: &TileMap, coded: Vec<u8>) -> Packed {
    let tiled = !tiles.is_full();
    let payload = if tiled { [tiles.to_bytes(), coded].concat() } else { coded };
    Packed { payload, tiled }
}

/// The tiles that an anchor gives, and the code of its image.
///
/// # Errors
///
/// Fails if the HR size is no multiple of `scale`, or the payload does not begin with the tile map that its header
/// announces.
pub fn unpack(
    anchor: &ReassembledAnchor,
    scale: usize,
) -> Result<(TileMap, &[u8]), AnchorCodecError> {
    let Size { width: hr_width, height: hr_height } = anchor.header.size;
    let (width, height) = (usize::from(hr_width) / scale, usize::from(hr_height) / scale);
    if (width * scale, height * scale) != (hr_width.into(), hr_height.into()) {
        return Err(AnchorCodecError::WrongSize);
    }
    let low = Size::saturating(width, height);
    if !anchor.header.tiled {
        return Ok((TileMap::full(low), &anchor.payload));
    }
    let map = anchor.payload.split_at_checked(TileMap::wire_bytes(low));
    let (map, coded) = map.ok_or(AnchorCodecError::Malformed)?;
    let tiles = TileMap::parse(low, map).ok_or(AnchorCodecError::Malformed)?;
    Ok((tiles, coded))
}

/// Decodes the detail of an anchor at HR size; it is 0 outside the anchor's tiles.
///
/// # Errors
///
/// Fails if the payload cannot be unpacked, or its code cannot be decoded.
pub fn decode(
    anchor: &ReassembledAnchor,
    scale: usize,
) -> Result<(Detail, TileMap), AnchorCodecError> {
    let (tiles, coded) = unpack(anchor, scale)?;
    Ok((decode_image(&anchor.header, &tiles, coded, scale)?, tiles))
}

/// Decodes the detail at HR size from a code and its tiles, as [`unpack`] returns them.
///
/// # Errors
///
/// Fails if the codec is not known, or the code is malformed or not that of an image of these tiles.
pub fn decode_image(
    header: &AnchorHeader,
    tiles: &TileMap,
    coded: &[u8],
    scale: usize,
) -> Result<Detail, AnchorCodecError> {
    let size = header.size;
    if tiles.is_full() {
        return codec::decode(header.codec, coded, size);
    }
    let Mosaic { width, height } = tiles.mosaic(scale);
    let mosaic = codec::decode(header.codec, coded, Size::saturating(width, height))?;
    let mut detail = Detail::zero(size.width.into(), size.height.into());
    if scatter(tiles, &mosaic, scale, &mut detail) {
        Ok(detail)
    } else {
        Err(AnchorCodecError::WrongSize)
    }
}
