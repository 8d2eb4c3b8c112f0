//! libvpx's VP9 encoder, which the enhancer has.

pub use windlass_vpx::{Encoder, EncoderConfig, FrameUse, kbps};
