//! The contents of an anchor: its payload decoded, at the scale that is shown.

use windlass_types::message::ReassembledAnchor;
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use super::AnchorOutcome;
use crate::anchor::codec::AnchorCodecError;
use crate::anchor::colour::{decode as decode_colour, split};
use crate::anchor::payload;
use crate::anchor::prior::Prior;
use crate::cells::Cells;
use crate::detail::Detail;
use crate::history::Entry;
use crate::reconstruct::carry::colour::Colour;
use crate::reconstruct::carry::reference::References;
use crate::resample::{Shrink, shrink_detail};

/// A decoded anchor.
pub(super) struct AnchorContents {
    pub source: AnchorSource,
    /// The tiles that add something to the frame.
    pub tiles: TileMap,
    /// The luma detail in these tiles.
    pub detail: Detail,
    /// The HR chroma, where a captured anchor has any.
    pub colour: Option<Colour>,
}

/// Decodes anchors, and keeps memory and filters from one to the next.
pub(super) struct AnchorReader {
    isa: Isa,
    /// The built-in filters at the scale of the last anchor that was encoded beyond them.
    prior: Option<Prior>,
}

impl AnchorReader {
    pub(super) fn new(isa: Isa) -> Self {
        Self { isa, prior: None }
    }

    /// Decodes the anchor of a frame to detail at `scale`, which may be smaller than the anchor's. `references` lend
    /// memory for the colour.
    pub(super) fn read(
        &mut self,
        anchor: &ReassembledAnchor,
        frame: &Entry,
        scale: usize,
        references: &mut References,
    ) -> Result<AnchorContents, AnchorOutcome> {
        let header = &anchor.header;
        let low = frame.size();
        let made = header.scale_over(Size::saturating(low.width, low.height));
        let made = made.ok_or(AnchorOutcome::WrongSize)?;
        // An anchor may serve viewers of larger pictures too.
        let shrink = Shrink::new(made, scale);
        if made != scale && shrink.is_none() {
            return Err(AnchorOutcome::WrongSize);
        }
        let unpacked = payload::unpack(anchor, made);
        let (coded_tiles, coded) = unpacked.map_err(|_| AnchorOutcome::Malformed)?;
        let tiles = frame.new_tiles(&coded_tiles, header.source);
        if tiles.count() == 0 {
            return Err(AnchorOutcome::Duplicate);
        }
        let (coded, coded_colour) = split(header.codec, coded);
        let mut colour = None;
        if let (AnchorSource::Captured, Some(code)) = (header.source, coded_colour) {
            let decoded = decode_colour(code, frame.low.samples(), &coded_tiles, made);
            let decoded = decoded.map_err(|_| AnchorOutcome::Malformed)?;
            let show = |colour: &mut Colour| colour.show(decoded);
            colour = Some(references.colour(low, made, scale, show));
        }
        let detail = payload::decode_image(header, &coded_tiles, coded, made);
        let mut detail = detail.map_err(|error| match error {
            AnchorCodecError::WrongSize => AnchorOutcome::WrongSize,
            _ => AnchorOutcome::Malformed,
        })?;
        let low = Samples::from(&frame.low.planes()[0]);
        let mut mask = Vec::new();
        let cells = Cells::of_tiles(&tiles, low.width, low.height, &mut mask);
        if header.beyond_prior {
            let prior = match &mut self.prior {
                Some(prior) if prior.scale() == made => prior,
                other => other.insert(Prior::new(self.isa, made)),
            };
            prior.put_back(low, &mut detail, cells);
        }
        if let Some(shrink) = shrink {
            detail = shrink_detail(self.isa, low, &detail, shrink, cells);
        }
        Ok(AnchorContents { source: header.source, tiles, detail, colour })
    }
}
