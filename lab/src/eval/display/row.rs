//! One configuration of one clip, and its quality at the size shown.

use serde::Serialize;

use super::ours::StillsFrom;
use super::quality::Quality;

/// The side that made a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    /// Plain VP9, enlarged.
    Plain,
    /// The product's decoder.
    Windlass,
}

/// How the shown picture was made of the decoded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShownBy {
    /// The decoded picture as it is: it has the shown size.
    Itself,
    /// Bicubic interpolation.
    Bicubic,
    /// Lanczos and an unsharp mask.
    Sharpened,
    /// The hybrid decoder, without stills.
    Filters,
    /// The hybrid decoder, with stills.
    Stills,
}

/// One configuration of one clip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The clip's name.
    pub clip: String,
    /// The side that made the pictures.
    pub side: Side,
    /// The size that was encoded.
    pub size: String,
    /// The layer of that size: `q` or `h`; empty for others.
    pub layer: &'static str,
    /// How the pictures were enlarged.
    pub shown_by: ShownBy,
    /// Where the stills come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stills_from: Option<StillsFrom>,
    /// Bitrate of the video, in kbit/s.
    pub video_kbps: f64,
    /// Bitrate of the stills, in kbit/s.
    pub still_kbps: f64,
    /// Bitrate of video and stills, in kbit/s.
    pub total_kbps: f64,
    /// Number of stills that reached the picture.
    pub stills: usize,
    /// The quality of the shown pictures.
    #[serde(flatten)]
    pub quality: Quality,
}
