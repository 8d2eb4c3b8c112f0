//! JPEG 2000 Part 15 (HTJ2K) for one component, in safe Rust (but for the choice of wider registers) that gives the
//! same samples everywhere.
//!
//! Sources: ITU-T T.800 (transforms, tag trees, packets, markers) and T.814 (the block coder); the
//! streams are those of OpenJPEG and OpenJPH, which `tests/conformance.rs` holds both ends against.
//!
//! Written are bare codestreams (`.j2c`): one tile, one quality layer, blocks of 64×64 with a cleanup
//! pass alone; the 9/7 transform with a quantiser step, or the 5/3 without loss. Samples are `i16`,
//! signed or not, of up to 16 or 15 bits. The step is in sample units and continuous: it is the step
//! of an orthonormal transform, so that the error of a coarse step is the same in all bands.
//!
//! Read is every stream of one component, tile and layer with its origin at 0: any depth of the
//! transforms, size of blocks and precincts, quantisation style, tile-parts, SOP and EPH. Refused by
//! name ([`Error::Unsupported`]): several components, tiles or layers, refinement passes, PCRL and
//! CPRL with several precincts, per-component overrides, packed packet headers, Part 1 blocks.
//!
//! ```
//! use windlass_htj2k::{Encoder, Format, Limits, decode};
//!
//! let format = Format { width: 40, height: 30, bits: 13, signed: true };
//! let samples: Vec<i16> = (0..1200).map(|i| (i % 40 * 20 - 400) as i16).collect();
//! let encoder = Encoder::new(&samples, format, 5)?;
//! let (coarse, fine) = (encoder.encode(64.0), encoder.encode(4.0));
//! assert!(coarse.len() < fine.len());
//! let back = decode(&fine, Limits { max_side: 8192, max_area: 1 << 20 })?;
//! assert_eq!(back.format, format);
//! assert!(back.samples.iter().zip(&samples).all(|(a, b)| (a - b).abs() < 8));
//! # Ok::<(), windlass_htj2k::Error>(())
//! ```

#![deny(unsafe_code)]

mod bands;
mod bits;
mod block;
mod decode;
mod encode;
mod headers;
mod layout;
mod tag_tree;
mod wavelet;
mod wide;

pub use block::codes::encoder_codes;
pub use decode::{decode, length};
pub use encode::{Encoder, encode_lossless};
pub use layout::{BLOCK, Block, Layout, MAX_LEVELS, Quantiser};

/// Why a picture could not be encoded or a stream not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The picture is empty, has another number of samples than its size says, or a depth out of range.
    #[error(
        "the picture is empty, has too many or too few samples, or has a depth that cannot be encoded"
    )]
    Format,
    /// The picture is larger than the caller allows.
    #[error("a picture of {width}x{height} is refused: it is larger than the caller allows")]
    TooLarge {
        /// Width in samples.
        width: u32,
        /// Height in samples.
        height: u32,
    },
    /// The stream ends early.
    #[error("the stream ends within {0}")]
    Truncated(&'static str),
    /// The stream breaks the standard.
    #[error("the stream is malformed in {0}")]
    Malformed(&'static str),
    /// The stream uses a part of the standard that this crate leaves out.
    #[error("the stream uses {0}, which is not supported")]
    Unsupported(&'static str),
}

/// The size of a picture, and the kind of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Width in samples.
    pub width: u32,
    /// Height in samples.
    pub height: u32,
    /// Number of bits of a sample, with the sign: 1 to 16, without a sign up to 15.
    pub bits: u8,
    /// Whether samples have a sign.
    pub signed: bool,
}

impl Format {
    /// The number of samples.
    pub fn area(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Whether pictures of this format can be encoded.
    pub fn is_legal(&self) -> bool {
        let max = if self.signed { 16 } else { 15 };
        self.width > 0 && self.height > 0 && (1..=max).contains(&self.bits)
    }

    /// The least and the greatest sample value.
    pub fn range(&self) -> (i32, i32) {
        if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1 << self.bits) - 1)
        }
    }

    /// The level that is subtracted from samples before the transform.
    pub fn level(&self) -> i32 {
        if self.signed { 0 } else { 1 << (self.bits - 1) }
    }
}

/// A decoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The picture's format.
    pub format: Format,
    /// The samples, row by row.
    pub samples: Vec<i16>,
}

/// The maximum size of a picture to decode. Decoding takes about twelve bytes of memory for each sample, and the
/// stream's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum width and height, in samples.
    pub max_side: u32,
    /// Maximum number of samples.
    pub max_area: u32,
}
