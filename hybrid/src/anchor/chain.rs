//! Anchors that are predicted from earlier ones: which of them can be decoded, in whatever order they come.
//!
//! - A key anchor is always decoded, unless it is older than what was decoded last of the same run;
//! - one predicted from the last decoded anchor, or from the last key anchor, is decoded;
//! - one predicted from an anchor that is missing, or of another run, is [`StreamError::NeedsKey`], and changes
//!   nothing: the anchor it misses may still come, and so may one that is predicted from the key anchor;
//! - duplicates and anchors older than the last decoded one are [`StreamError::Outdated`];
//! - damaged ones are refused; if the damage is found in the VP9 frame, a key anchor must come.
//!
//! Sequence numbers wrap. A sender may begin anew within an epoch, as when its decoding was interrupted.
//! Memory is that of a VP9 decoder whose pictures are at most as large as the one picture asked for.

use super::codec::AnchorCodecError;
use super::stream::{Gain, Prediction, StreamHeader};
use crate::vp9::{DecodedFrame, Decoder, FrameKind, SizeLimit};

/// Why an anchor of a stream gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The payload is not what the encoder writes.
    #[error("the anchor's payload is malformed")]
    Malformed,
    /// The VP9 frame has another size than the stream.
    #[error("the anchor's payload has another size than its stream")]
    WrongSize,
    /// The anchor that it is predicted from is missing: a key anchor must be asked for.
    #[error("a key anchor must come first")]
    NeedsKey,
    /// It repeats an anchor, or is older than the last one decoded.
    #[error("the anchor is older than the last one decoded")]
    Outdated,
}

impl From<StreamError> for AnchorCodecError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::WrongSize => Self::WrongSize,
            StreamError::NeedsKey => Self::NeedsKey,
            StreamError::Malformed | StreamError::Outdated => Self::Malformed,
        }
    }
}

/// What a decoder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    run: u16,
    key: u16,
    last: u16,
    gain: Gain,
}

/// Decodes the VP9 frames of one stream: see the module's text.
#[derive(Debug)]
pub(super) struct Chain {
    decoder: Decoder,
    held: Option<Held>,
    size: (usize, usize),
}

impl Chain {
    /// A decoder of pictures of this size that waits for a key anchor.
    pub fn new(width: u16, height: u16) -> Self {
        let (w, h) = (u32::from(width), u32::from(height));
        let limit = SizeLimit { area: u64::from(w) * u64::from(h), side: w.max(h) };
        let size = (width.into(), height.into());
        Self { decoder: Decoder::with_limit(limit), held: None, size }
    }

    /// Width and height of its pictures.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Whether only a key anchor can be decoded.
    pub fn needs_key(&self) -> bool {
        self.held.is_none()
    }

    /// Forgets everything; a key anchor must come next.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.held = None;
    }

    /// Decodes the VP9 frame behind a header.
    pub fn decode(
        &mut self,
        header: StreamHeader,
        frame: &[u8],
    ) -> Result<DecodedFrame, StreamError> {
        let of_run = self.held.filter(|held| held.run == header.run);
        if of_run.is_some_and(|held| !is_newer(header.sequence, held.last)) {
            return Err(StreamError::Outdated);
        }
        let held = match (header.prediction, of_run) {
            (Prediction::Key, _) => Held {
                run: header.run,
                key: header.sequence,
                last: header.sequence,
                gain: header.gain,
            },
            (Prediction::FromKey, Some(held)) if held.key == header.refers_to => held,
            (Prediction::FromLast, Some(held)) if held.last == header.refers_to => held,
            _ => return Err(StreamError::NeedsKey),
        };
        if held.gain != header.gain {
            return Err(StreamError::Malformed);
        }
        let result = take(&mut self.decoder, header.prediction, self.size, frame);
        if result.is_ok() {
            self.held = Some(Held { last: header.sequence, ..held });
        } else {
            self.reset();
        }
        result
    }
}

/// The one frame of a chunk, which must be shown, of this size, and coded as its header says.
fn take(
    decoder: &mut Decoder,
    prediction: Prediction,
    size: (usize, usize),
    frame: &[u8],
) -> Result<DecodedFrame, StreamError> {
    let frames = decoder.decode(frame).map_err(|_| StreamError::Malformed)?;
    let [frame] = frames else { return Err(StreamError::Malformed) };
    let kind = match prediction {
        Prediction::Key => FrameKind::Key,
        Prediction::FromKey | Prediction::FromLast => FrameKind::Inter,
    };
    if frame.info.kind != kind || !frame.info.shown {
        return Err(StreamError::Malformed);
    }
    if (frame.picture.width(), frame.picture.height()) != size {
        return Err(StreamError::WrongSize);
    }
    Ok(frame.clone())
}

/// Whether `sequence` comes after `last`, wrap-around included.
pub(super) fn is_newer(sequence: u16, last: u16) -> bool {
    sequence.wrapping_sub(last).cast_signed() > 0
}
