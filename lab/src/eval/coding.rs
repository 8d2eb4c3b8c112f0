//! Encodes the detail of an anchor: the one place of `eval` that knows the codec.

use std::fmt;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::anchor::codec::{AnchorCodecError, Htj2k};
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_hybrid::detail::Detail;
use windlass_types::message::ReassembledAnchor;
use windlass_types::tiles::TileMap;

/// The target that an anchor's code must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A quality from 1 to 100.
    Quality(u8),
    /// A maximum number of bytes for each anchor, filled as far as the codec can.
    Budget(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Quality(quality) => write!(f, "q{quality}"),
            Target::Budget(bytes) => write!(f, "{bytes}B"),
        }
    }
}

/// Encodes the payload of an anchor of some tiles, of pictures `scale` times as large as the low layer. If nothing
/// fits a budget, the anchor is encoded as coarsely as possible.
pub(super) fn code(
    target: Target,
    scale: usize,
    detail: Detail,
    colour: Option<&Detail>,
    tiles: &TileMap,
) -> Result<Packed> {
    let image = payload::image(detail, tiles, scale);
    let by_quality = |quality| match colour {
        Some(colour) => Htj2k::encode_in_colour(&image, colour, quality),
        None => Htj2k::encode(&image, quality),
    };
    let coded = match target {
        Target::Quality(quality) => by_quality(quality),
        Target::Budget(bytes) => match Htj2k::fill(&image, colour, bytes) {
            Err(AnchorCodecError::Budget { .. }) => by_quality(1),
            coded => coded,
        },
    };
    Ok(payload::pack(tiles, coded.context("coding an anchor")?))
}

/// Decodes the detail that an anchor carries.
pub(super) fn decode(anchor: &ReassembledAnchor, scale: usize) -> Result<Detail> {
    ensure!(!anchor.header.tiled, "an anchor of tiles is not a whole picture");
    let (detail, _) = payload::decode(anchor, scale).context("decoding an anchor of our own")?;
    Ok(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_types::Size;

    fn coded(target: Target) -> Vec<u8> {
        let samples = (0..64 * 48).map(|i: i32| ((i * 7919 % 509) - 254) as i16).collect();
        let detail = Detail::from_samples(64, 48, samples).unwrap();
        code(target, 2, detail, None, &TileMap::full(Size::new(32, 24))).unwrap().payload
    }

    #[test]
    fn a_budget_is_kept_and_one_that_nothing_fits_gets_the_coarsest_code() {
        let fine = coded(Target::Quality(80)).len();
        assert!(coded(Target::Budget(fine)).len() <= fine);
        assert_eq!(coded(Target::Budget(1)), coded(Target::Quality(1)));
    }
}
