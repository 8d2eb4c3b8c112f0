//! The decoders that anchors of VP9 need: of a stream of detail, of one of pictures, and of regions.

use super::AnchorOutcome;
use crate::anchor::chain::StreamError;
use crate::anchor::codec::AnchorCodecError;
use crate::anchor::payload;
use crate::anchor::pictures::{CodedPicture, PictureDecoder, RegionDecoder, VP9_PICTURES};
use crate::anchor::stream::{StreamDecoder, VP9_STREAM};
use crate::anchor::tiles::TileMap;
use crate::anchor::{AnchorHeader, ReassembledAnchor};
use crate::detail::Detail;

/// See the module's text.
#[derive(Default)]
pub(super) struct Streams {
    /// With its epoch.
    detail: Option<(u16, StreamDecoder)>,
    pictures: Option<PictureDecoder>,
    regions: RegionDecoder,
}

impl Streams {
    /// Decodes what later anchors are predicted from, for low pictures of the `current` size: the detail of an anchor
    /// of the detail stream. A picture is kept until it is [asked for](Self::picture); other anchors rest on nothing.
    pub fn advance(
        &mut self,
        anchor: &ReassembledAnchor,
        current: Option<(usize, usize)>,
    ) -> Result<Option<Detail>, AnchorOutcome> {
        let header = &anchor.header;
        let pictures = header.codec == VP9_PICTURES;
        if pictures && header.beyond_prior {
            return Err(AnchorOutcome::Malformed);
        }
        let streamed = header.codec == VP9_STREAM || pictures && !header.tiled;
        if !streamed {
            return Ok(None);
        }
        let size = (usize::from(header.width), usize::from(header.height));
        let scale = current.and_then(|low| header.scale_over(low));
        let scale = scale.ok_or(AnchorOutcome::WrongSize)?;
        let Ok((_, coded)) = payload::unpack(anchor, scale) else {
            return Err(AnchorOutcome::Malformed);
        };
        if pictures {
            let fits = self.pictures.as_ref().is_some_and(|stream| stream.size() == size);
            let stream = match &mut self.pictures {
                Some(stream) if fits => stream,
                none => none.insert(PictureDecoder::new(header.width, header.height)),
            };
            return stream.decode(coded).map(|_| None).map_err(outcome);
        }
        let stream = match &mut self.detail {
            Some((epoch, stream)) if *epoch == header.epoch && stream.size() == size => stream,
            none => {
                let stream = StreamDecoder::new(header.width, header.height);
                &mut none.insert((header.epoch, stream)).1
            }
        };
        stream.decode(coded).cloned().map(Some).map_err(outcome)
    }

    /// The picture of an anchor of pictures: of some tiles decoded now, else the one that
    /// [`advance`](Self::advance) has decoded.
    pub fn picture(
        &mut self,
        header: &AnchorHeader,
        tiles: &TileMap,
        coded: &[u8],
        scale: usize,
    ) -> Result<&CodedPicture, AnchorCodecError> {
        if header.tiled {
            let whole = (header.width.into(), header.height.into());
            let size = if tiles.is_full() { whole } else { tiles.mosaic(scale) };
            return Ok(self.regions.decode(coded, size)?);
        }
        let decoded = self.pictures.as_ref().and_then(PictureDecoder::shown);
        decoded.ok_or(AnchorCodecError::NeedsKey)
    }
}

fn outcome(error: StreamError) -> AnchorOutcome {
    match error {
        StreamError::Malformed => AnchorOutcome::Malformed,
        StreamError::WrongSize => AnchorOutcome::WrongSize,
        StreamError::NeedsKey => AnchorOutcome::NeedsKey,
        StreamError::Outdated => AnchorOutcome::Duplicate,
    }
}
