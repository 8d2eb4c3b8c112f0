//! The payload formats of the video codecs, behind two functions.

pub(super) mod av1;
pub(super) mod dependency_descriptor;
pub(super) mod descriptor;
pub(super) mod h264;
pub(super) mod red;
pub(super) mod templates;
pub(super) mod vp8;
pub(super) mod vp9;

use windlass_types::key_frame::key_frame_size;
use windlass_types::{FrameLayers, Size, VideoCodec};

use self::descriptor::{Descriptor, Malformed};

/// Reads the start of a packet's payload. `frame`: what the publisher says of it beside the payload.
pub(crate) fn parse(
    codec: VideoCodec,
    frame: Option<FrameLayers>,
    payload: &[u8],
) -> Result<Descriptor, Malformed> {
    match codec {
        VideoCodec::Vp9 => vp9::parse(payload),
        VideoCodec::Vp8 => vp8::parse(payload),
        VideoCodec::H264 => h264::parse(payload),
        VideoCodec::Av1 => av1::parse(frame, payload),
    }
}

/// Size of the key frame that begins with this packet; `None` if it cannot be read. A frame that is encrypted end to
/// end cannot be; what is said outside of it may be older than the frame.
pub(crate) fn size(codec: VideoCodec, descriptor: &Descriptor, payload: &[u8]) -> Option<Size> {
    let data = payload.get(descriptor.len..)?;
    let own = match codec {
        VideoCodec::Vp9 => key_frame_size(data),
        VideoCodec::Vp8 => vp8::key_frame_size(data),
        VideoCodec::H264 => h264::key_frame_size(payload),
        // A sequence header has the size of the largest spatial layer.
        VideoCodec::Av1 if descriptor.layers.is_some() => None,
        VideoCodec::Av1 => av1::key_frame_size(payload),
    };
    own.or(descriptor.layers.and_then(|layers| layers.sizes[0]))
}
