//! What the controller sets.

use windlass_types::{Bitrate, Layer};

/// Everything that is adapted of one publisher; maps one to one onto the server's `knobs` message, and the last two
/// onto the scheduler's anchor fraction and the anchors' coding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knobs {
    /// The low layer: the one layer that the publisher sends; the others are not active.
    pub layer: Layer,
    /// Frames per second of the low layer.
    pub fps: f64,
    /// Its bitrate.
    pub bitrate: Bitrate,
    /// Maximum enhanced anchors by frame of the low layer, 0 to 1.
    pub anchor_fraction: f64,
    /// Maximum bytes of an enhanced anchor.
    pub anchor_bytes: u32,
}

/// The linear size of full pictures over those of a layer.
pub fn divisor(layer: Layer) -> usize {
    match layer {
        Layer::Q => 4,
        Layer::H => 2,
        Layer::F => 1,
    }
}
