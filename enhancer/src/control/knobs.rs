//! What the controller sets.

use windlass_media::{DetailKnobs, Layer};

/// Everything that is adapted of one publisher; maps one to one onto the server's `knobs` message, and the last two
/// onto the scheduler's anchor fraction and the anchors' coding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knobs {
    /// The low layer: the one layer that the publisher sends; the others are not active.
    pub layer: Layer,
    /// Its frames per second.
    pub fps: f64,
    /// Its bit rate in kbit/s.
    pub low_kbps: f64,
    /// The detail stream; `None` pauses it.
    pub detail: Option<DetailKnobs>,
    /// Most enhanced anchors by frame of the low layer, 0 to 1.
    pub anchor_fraction: f64,
    /// Most bytes of an enhanced anchor.
    pub anchor_bytes: u32,
}

impl Knobs {
    /// What they take of the publisher's uplink, in kbit/s.
    pub fn uplink_kbps(&self) -> f64 {
        self.low_kbps + self.detail.map_or(0.0, |detail| detail.kbps)
    }

    /// Bytes of each frame of the detail stream; 0 without one.
    pub fn detail_bytes(&self) -> f64 {
        self.detail.map_or(0.0, |detail| detail.kbps * 125.0 / detail.fps.max(1e-3))
    }
}

/// The linear size of full pictures over those of a layer.
pub fn divisor(layer: Layer) -> usize {
    match layer {
        Layer::Q => 4,
        Layer::H => 2,
        Layer::F => 1,
    }
}
