//! Coding anchors: the [stream](StreamEncoder) that predicts each from earlier ones, by [libvpx](vpx).

mod key_throttle;
mod rate;
mod stream;
pub mod vpx;

pub use key_throttle::KeyThrottle;
pub use stream::{EncodedAnchor, StreamConfig, StreamEncodeError, StreamEncoder};
pub use windlass_hybrid::anchor::stream::{Gain, Prediction};
