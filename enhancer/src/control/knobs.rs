//! The knobs that the controller sets.

use windlass_types::{Bitrate, Layer};

/// All settings of one publisher that are adapted. They map one to one onto the server's `knobs` message; the last two
/// set the scheduler's anchor fraction and the bytes of anchors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knobs {
    /// Layer that the publisher sends as the low layer. The other layers are not active.
    pub layer: Layer,
    /// Frames per second of the low layer.
    pub fps: f64,
    /// Bitrate of the low layer.
    pub bitrate: Bitrate,
    /// Maximum enhanced anchors per frame of the low layer, 0 to 1.
    pub anchor_fraction: f64,
    /// Maximum bytes of an enhanced anchor.
    pub anchor_bytes: u32,
}

/// Width of full pictures over the width of a layer's pictures.
pub fn divisor(layer: Layer) -> usize {
    match layer {
        Layer::Q => 4,
        Layer::H => 2,
        Layer::F => 1,
    }
}
