//! libvpx's VP9 encoder.

pub use windlass_vpx::{Encoder, EncoderConfig, FrameUse, kbps};
