//! libvpx's VP9 encoder, which the enhancer has.

pub use windlass_enhancer::encode::vpx::{Encoder, EncoderConfig, FrameUse, kbps};
