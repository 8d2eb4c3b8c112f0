//! Codec 4: pictures as the publisher's browser coded them, of which the decoder takes the detail itself.
//!
//! Source: issue 5, *Captured anchors*; seed 001 (DDS), low stream and high-quality regions. Nothing is transcoded
//! on the way. A payload is the header of the [anchor stream](super::stream) with gain 1, then one VP9 frame:
//!
//! - Without tiles it is the next frame of the *detail stream*, as large as HR, predicted from nothing or from the
//!   frame before it ([`Prediction::FromLast`]; it may use whatever references VP9 has kept of the frames since the
//!   last key frame). [`PictureDecoder`] takes these; what it decodes in which order is said in
//!   [`chain`](super::chain). Sequence numbers count the frames that the publisher sent, so that a loss shows. They,
//!   and not epochs, say what can be decoded: the stream goes on when the low layer is another.
//! - With a tile map it is a key frame of the mosaic of those [tiles](super::tiles), and rests on nothing:
//!   [`RegionDecoder`].
//!
//! Its detail is what its luma has over the upsampled low layer, weighed by how coarsely it was coded; the quantisers
//! of its blocks say that.

use std::sync::Arc;

use super::chain::{Chain, StreamError, take};
use super::stream::{Gain, Prediction, StreamHeader};
use crate::vp9::{Block, DecodedFrame, Decoder, FrameBuffer, Reference, SizeLimit, ac_step};

/// Codec id of coded pictures in the message header.
pub const VP9_PICTURES: u8 = 4;

/// Side of the squares that quantisers are remembered by.
const UNIT: usize = 8;

/// A decoded picture, and how coarsely each part of it was coded.
#[derive(Debug, Clone, Default)]
pub struct CodedPicture {
    picture: Arc<FrameBuffer>,
    /// By square of 8 × 8 samples: the quantiser's step in 1/8 grey level.
    steps: Vec<i16>,
}

impl CodedPicture {
    /// The picture.
    pub fn picture(&self) -> &FrameBuffer {
        &self.picture
    }

    /// Width and height in luma samples.
    pub fn size(&self) -> (usize, usize) {
        (self.picture.width(), self.picture.height())
    }

    /// The step that the luma around a sample was quantised with, in 1/8 grey level; 0 outside.
    pub fn step(&self, x: usize, y: usize) -> i16 {
        let at = y / UNIT * self.picture.width().div_ceil(UNIT) + x / UNIT;
        self.steps.get(at).copied().unwrap_or(0)
    }
}

/// Decodes the detail stream of one publisher: see the module's text.
#[derive(Debug)]
pub struct PictureDecoder {
    chain: Chain,
    shown: CodedPicture,
    before: Vec<i16>,
}

impl PictureDecoder {
    /// A decoder of pictures of this size that waits for a key frame.
    pub fn new(width: u16, height: u16) -> Self {
        let (shown, before) = (CodedPicture::default(), Vec::new());
        Self { chain: Chain::new(width, height), shown, before }
    }

    /// Width and height of its pictures.
    pub fn size(&self) -> (usize, usize) {
        self.chain.size()
    }

    /// Whether only a key frame can be decoded.
    pub fn needs_key(&self) -> bool {
        self.chain.needs_key()
    }

    /// The picture decoded last, if there is one that others can be predicted from.
    pub fn shown(&self) -> Option<&CodedPicture> {
        (!self.chain.needs_key()).then_some(&self.shown)
    }

    /// Decodes the frame of a payload.
    pub fn decode(&mut self, payload: &[u8]) -> Result<&CodedPicture, StreamError> {
        let (header, frame) = parse(payload)?;
        let frame = self.chain.decode(header, frame)?;
        std::mem::swap(&mut self.shown.steps, &mut self.before);
        self.shown.remember(frame, &self.before);
        Ok(&self.shown)
    }
}

/// Decodes regions, each by itself.
#[derive(Debug, Default)]
pub struct RegionDecoder {
    decoder: Decoder,
    shown: CodedPicture,
}

impl RegionDecoder {
    /// Decodes the mosaic of a payload, which must be of this size.
    pub fn decode(
        &mut self,
        payload: &[u8],
        (width, height): (usize, usize),
    ) -> Result<&CodedPicture, StreamError> {
        let (header, frame) = parse(payload)?;
        if header.prediction != Prediction::Key {
            return Err(StreamError::Malformed);
        }
        let side = u32::try_from(width.max(height)).unwrap_or(u32::MAX);
        self.decoder.limit(SizeLimit { area: width as u64 * height as u64, side });
        // Whatever was there before, a key frame does not need it.
        let frame = take(&mut self.decoder, header.prediction, (width, height), frame)?;
        self.shown.remember(frame, &[]);
        Ok(&self.shown)
    }
}

/// The header and the VP9 frame of a payload.
fn parse(payload: &[u8]) -> Result<(StreamHeader, &[u8]), StreamError> {
    let (header, frame) = StreamHeader::parse(payload).ok_or(StreamError::Malformed)?;
    let ours = header.gain == Gain::ONE && header.prediction != Prediction::FromKey;
    if ours { Ok((header, frame)) } else { Err(StreamError::Malformed) }
}

impl CodedPicture {
    /// Becomes a frame. Blocks without a residual keep the steps of what they are copied from, in `before`.
    fn remember(&mut self, frame: DecodedFrame, before: &[i16]) {
        let DecodedFrame { picture, info } = frame;
        let (width, height) = (picture.width(), picture.height());
        let (columns, rows) = (width.div_ceil(UNIT), height.div_ceil(UNIT));
        self.steps.clear();
        self.steps.resize(columns * rows, 0);
        let before = if before.len() == self.steps.len() { before } else { &[] };
        for block in &info.blocks {
            let own = ac_step(block.quantiser);
            let (left, top) = (usize::from(block.x) / UNIT, usize::from(block.y) / UNIT);
            let right = (left + usize::from(block.width) / UNIT).min(columns);
            let bottom = (top + usize::from(block.height) / UNIT).min(rows);
            for y in top..bottom {
                for x in left..right {
                    let was = moved(block, (x, y), (columns, rows), before);
                    self.steps[y * columns + x] = was.map_or(own, |was| was.min(own));
                }
            }
        }
        self.picture = picture;
    }
}

/// The step at the place that a copied square comes from, where that is known.
fn moved(
    block: &Block,
    (x, y): (usize, usize),
    (columns, rows): (usize, usize),
    before: &[i16],
) -> Option<i16> {
    if !block.skip || before.is_empty() {
        return None;
    }
    let [Some((Reference::Last, vector)), None] = block.predictions(3) else { return None };
    let place = |at: usize, v: i16, end: usize| {
        let centre = (at * UNIT + UNIT / 2) as i32 + (i32::from(v) >> 3);
        (centre.max(0) as usize / UNIT).min(end - 1)
    };
    before.get(place(y, vector.y, rows) * columns + place(x, vector.x, columns)).copied()
}

#[cfg(test)]
pub(crate) mod fixture {
    /// See `enhancer/examples/anchor_pictures.rs`.
    const PARTS: &[u8] = include_bytes!("../../tests/fixtures/anchor_pictures.bin");

    /// Frames of the low layer, payloads of the detail stream for every second of them, and a region of the last.
    pub fn parts() -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<u8>) {
        let (mut rest, mut out) = (PARTS, Vec::new());
        while let Some((size, tail)) = rest.split_first_chunk::<2>() {
            let (part, next) = tail.split_at(usize::from(u16::from_be_bytes(*size)));
            out.push(part.to_vec());
            rest = next;
        }
        let region = out.pop().expect("the last part");
        let pictures = out.split_off(8);
        (out, pictures, region)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::fixture::parts;
    use super::*;

    fn decoder() -> PictureDecoder {
        PictureDecoder::new(192, 128)
    }

    /// The mosaic of the fixture's region: behind its map of one byte.
    fn region() -> Vec<u8> {
        parts().2[1..].to_vec()
    }

    #[test]
    fn pictures_are_decoded_in_order_and_tell_their_quantisers() {
        let mut d = decoder();
        for payload in parts().1 {
            let coded = d.decode(&payload).expect("our own");
            assert_eq!(coded.size(), (192, 128));
            assert!((4..200).contains(&coded.step(0, 0)) && coded.step(191, 127) > 0);
            assert_eq!(coded.step(0, 128), 0);
        }
    }

    #[test]
    fn after_a_loss_nothing_comes_until_a_key_frame() {
        let pictures = parts().1;
        let mut d = decoder();
        assert_eq!(d.decode(&pictures[1]).err(), Some(StreamError::NeedsKey));
        assert!(d.decode(&pictures[0]).is_ok() && d.shown().is_some());
        assert_eq!(d.decode(&pictures[2]).err(), Some(StreamError::NeedsKey));
        assert_eq!(d.decode(&pictures[0]).err(), Some(StreamError::Outdated));
        assert!(d.decode(&pictures[1]).is_ok(), "it was only late");
        let mut anew = pictures[0].clone();
        anew[7] ^= 1;
        assert!(d.decode(&anew).is_ok(), "another run begins with a key frame");
    }

    #[test]
    fn other_gains_predictions_and_kinds_are_refused() {
        let pictures = parts().1;
        let mut d = decoder();
        let mut gained = pictures[0].clone();
        gained[1] = 1;
        assert_eq!(d.decode(&gained).err(), Some(StreamError::Malformed));
        assert!(d.decode(&pictures[0]).is_ok());
        let mut from_key = pictures[1].clone();
        from_key[0] = from_key[0] & 0xf0 | 1;
        assert_eq!(d.decode(&from_key).err(), Some(StreamError::Malformed));
        // The header says key, the frame does not.
        let head = &pictures[0][..super::super::stream::HEADER_BYTES];
        let mut posing = [head, &pictures[1][head.len()..]].concat();
        (posing[3], posing[5]) = (9, 9);
        assert_eq!(d.decode(&posing).err(), Some(StreamError::Malformed));
        assert!(d.needs_key() && d.shown().is_none());
        assert_eq!(
            PictureDecoder::new(96, 64).decode(&pictures[0]).err(),
            Some(StreamError::Malformed)
        );
        assert_eq!(
            PictureDecoder::new(256, 128).decode(&pictures[0]).err(),
            Some(StreamError::WrongSize)
        );
    }

    #[test]
    fn a_region_is_a_key_frame_of_the_size_asked_for() {
        let mut d = RegionDecoder::default();
        let region = region();
        assert_eq!(d.decode(&region, (128, 128)).map(CodedPicture::size), Ok((128, 128)));
        assert!(d.decode(&region, (256, 128)).is_err());
        assert!(d.decode(&region, (64, 64)).is_err());
        assert_eq!(d.decode(&parts().1[1], (192, 128)).err(), Some(StreamError::Malformed));
        assert!(d.decode(&region, (128, 128)).is_ok());
    }

    proptest! {
        #[test]
        fn damage_never_panics_and_a_key_frame_mends_it(
            edits in proptest::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<u8>()), 0..24),
            order in proptest::collection::vec(0usize..4, 0..8),
        ) {
            let mut damaged = parts().1;
            for (n, at, value) in edits {
                *at.get_mut(&mut damaged[n]) = value;
            }
            let (mut d, mut regions) = (decoder(), RegionDecoder::default());
            for n in order {
                if let Ok(coded) = d.decode(&damaged[n]) {
                    prop_assert_eq!(coded.size(), (192, 128));
                }
                let _ = regions.decode(&damaged[n], (192, 128));
            }
            // Of a run that damage has not made up: of a known one it might be outdated.
            let mut key = parts().1[0].clone();
            let runs: Vec<_> = damaged.iter().map(|payload| payload[6]).collect();
            key[6] = (99..=u8::MAX).find(|run| !runs.contains(run)).unwrap_or_default();
            prop_assert!(d.decode(&key).is_ok());
            prop_assert!(regions.decode(&region(), (128, 128)).is_ok());
        }
    }
}
