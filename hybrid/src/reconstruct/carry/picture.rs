//! What references make of a frame before its own anchor.

use super::colour::Colour;
use windlass_vp9::Plane;

/// The picture of a frame that the references before it make.
pub(crate) struct CarriedPicture {
    pub luma: Plane,
    /// The chroma, where a reference has any.
    pub colour: Option<Colour>,
    /// By cell of [`SIDE`](super::cells::SIDE): whether it shows captured pixels that fit.
    pub captured: Vec<bool>,
}
