//! libvpx's VP9, for measurements and tests: encoders as a call and the papers run them, and the decoder that
//! ours is held against.
//!
//! `unsafe` is in `codec` and `decoder` alone: the FFI to libvpx.
//!
//! ```
//! use windlass_vp9::Picture;
//! use windlass_vpx::{Decoder, Encoder, EncoderConfig};
//!
//! let (width, height) = (320, 180);
//! let config = EncoderConfig { width, height, fps: 30.0, kbps: 150, screen: false, cpu_used: None };
//! let frame = Encoder::new(config)?.encode(&Picture::grey(width, height))?;
//! let shown = Decoder::new()?.decode(&frame, |picture| assert_eq!(picture.size(), (width, height)))?;
//! assert_eq!(shown, 1);
//! # Ok::<(), windlass_vpx::VpxError>(())
//! ```

mod codec;
mod decoder;
mod encoder;

pub use codec::{Codec, Control, Deadline, Image, settings};
pub use decoder::{Decoder, Shown};
pub use encoder::{Encoder, EncoderConfig, FrameUse, ReencodeConfig, SequenceConfig};

/// Why libvpx gave no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VpxError {
    /// A side is out of range.
    #[error("cannot encode {width}x{height}: both sides must be 16 to 8192 pixels")]
    Size {
        /// The width that was asked for.
        width: usize,
        /// The height that was asked for.
        height: usize,
    },
    /// The picture has another size than the encoder.
    #[error("a picture of {width}x{height} for an encoder of {expected_width}x{expected_height}")]
    WrongPicture {
        /// The picture's width.
        width: usize,
        /// The picture's height.
        height: usize,
        /// The encoder's width.
        expected_width: usize,
        /// The encoder's height.
        expected_height: usize,
    },
    /// libvpx refused a call.
    #[error("libvpx refuses to {what}: {message}")]
    Refused {
        /// What libvpx was asked to do.
        what: &'static str,
        /// libvpx's own words.
        message: String,
    },
    /// libvpx gave no data for a picture.
    #[error("libvpx gave no data for a picture")]
    NoData,
}

/// Mean bitrate of encoded frames, in kbit/s.
pub fn kbps(bytes: usize, frames: usize, fps: f64) -> f64 {
    if frames == 0 { 0.0 } else { bytes as f64 * 8.0 * fps / frames as f64 / 1000.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_rate_is_bits_over_the_shown_time() {
        assert!((kbps(3000, 30, 30.0) - 24.0).abs() < 1e-9);
    }
}
