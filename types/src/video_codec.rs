//! Video codecs that are forwarded.

use serde::{Deserialize, Serialize};

/// A video codec that the SFU forwards. Anchors are made of VP9 alone.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum VideoCodec {
    /// VP9, profile 0.
    #[default]
    Vp9,
    /// VP8.
    Vp8,
    /// H.264, (constrained) baseline profile, in packetization mode 1.
    H264,
    /// AV1, main profile.
    Av1,
}

impl VideoCodec {
    /// All codecs, in the order in which they are preferred.
    pub const ALL: [VideoCodec; 4] =
        [VideoCodec::Vp9, VideoCodec::Vp8, VideoCodec::H264, VideoCodec::Av1];

    /// The codec's name in session descriptions (`a=rtpmap`).
    pub fn name(self) -> &'static str {
        match self {
            VideoCodec::Vp9 => "VP9",
            VideoCodec::Vp8 => "VP8",
            VideoCodec::H264 => "H264",
            VideoCodec::Av1 => "AV1",
        }
    }
}
