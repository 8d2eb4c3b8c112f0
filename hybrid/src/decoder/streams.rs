//! The decoder that anchors of a VP9 stream need: each is predicted from one before.

use super::AnchorOutcome;
use crate::anchor::ReassembledAnchor;
use crate::anchor::chain::StreamError;
use crate::anchor::payload;
use crate::anchor::stream::{StreamDecoder, VP9_STREAM};
use crate::detail::Detail;

/// See the module's text.
#[derive(Default)]
pub(super) struct Streams {
    /// With its epoch.
    stream: Option<(u16, StreamDecoder)>,
}

impl Streams {
    /// Decodes what later anchors are predicted from, for low pictures of the `current` size: the detail of an anchor
    /// of the stream. Other anchors rest on nothing.
    pub fn advance(
        &mut self,
        anchor: &ReassembledAnchor,
        current: Option<(usize, usize)>,
    ) -> Result<Option<Detail>, AnchorOutcome> {
        let header = &anchor.header;
        if header.codec != VP9_STREAM {
            return Ok(None);
        }
        let size = (usize::from(header.width), usize::from(header.height));
        let scale = current.and_then(|low| header.scale_over(low));
        let scale = scale.ok_or(AnchorOutcome::WrongSize)?;
        let Ok((_, coded)) = payload::unpack(anchor, scale) else {
            return Err(AnchorOutcome::Malformed);
        };
        let stream = match &mut self.stream {
            Some((epoch, stream)) if *epoch == header.epoch && stream.size() == size => stream,
            none => {
                let stream = StreamDecoder::new(header.width, header.height);
                &mut none.insert((header.epoch, stream)).1
            }
        };
        stream.decode(coded).cloned().map(Some).map_err(outcome)
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
