//! The picture that references make of a frame, before the frame's own anchor.

use super::colour::Colour;
use windlass_vp9::Plane;

/// The picture that the references before a frame make of it.
pub(crate) struct CarriedPicture {
    pub luma: Plane,
    /// The chroma, where a reference has any.
    pub colour: Option<Colour>,
    /// For each cell of [`SIDE`](super::cells::SIDE): whether it shows captured pixels that fit.
    pub captured: Vec<bool>,
}
