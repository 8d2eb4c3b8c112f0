//! A VP9 decoder that gives pictures, and the bitstream's data of every block, in one pass.
//!
//! Source: VP9 bitstream and decoding process specification v0.7 (each file names its sections).
//! Where libvpx deviates from the specification, this decoder follows libvpx, and a comment marks the place.
//!
//! - [`Decoder`]: chunks in (a frame or a superframe from the depacketiser), pictures out, including
//!   hidden ones, bit-exact with libvpx, each with its [`FrameInfo`].
//! - [`Visitor`]: sees every block and, on demand, its residual before it is added.
//!
//! No I/O, clocks or threads; builds for wasm32 without imports.
//! Pictures and infos are `Arc`s from pools; after a start nothing is allocated.
//!
//! Refused with a typed [`DecodeError`]: profiles 1 to 3, pictures beyond the [`SizeLimit`] (before
//! anything is allocated), missing references, truncated or malformed headers and tiles. After an
//! error the decoder has forgotten its references and waits for a key frame, or an intra-only frame
//! that resets every context; [`DecodeError::StaleReference`] alone leaves it running.
//!
//! | folder or file | does | sections |
//! | --- | --- | --- |
//! | `bit_reader`, `bool_decoder` | bits, arithmetic decoder | 9.1, 9.2 |
//! | `header/` | superframes, uncompressed and compressed header | 6.2, 6.3, 7.2, 7.3, Annex B |
//! | `probability/` | tables, trees, counts, adaptation | 8.4, 9.3, 10.3, 10.5 |
//! | `block/` | sizes, modes, contexts, vectors | 6.4, 6.5, 9.3.3 |
//! | `residual/` | scans, tokens, quantiser | 6.4.23 ff., 8.6, 10.1 |
//! | `predict/` | edges of intra, references of inter prediction | 8.5 |
//! | `loop_filter/` | which edges are filtered, how far | 8.8 |
//! | `kernels/` | inner loops: scalar, and SIMD that equals it | 8.5, 8.7, 8.8 |
//! | `frame`, `tile` | order of tiles and filtering; partitions and blocks | 6.4 |
//! | `decoder` | frames, references, contexts | 6.1, 8.10 |
//! | `frame_buffer`, `info`, `visitor` | what goes in and out | |
//! | `picture`, `samples` | pictures without padding, views of planes | |
//! | `simd/` | instruction sets, and the register type that kernels are written over | |

// A kernel's parts must land in the function that has the target features, and the arithmetic
// decoder's state in registers.
#![allow(clippy::inline_always)]

mod bit_reader;
mod block;
mod bool_decoder;
mod decoder;
mod frame;
mod frame_buffer;
mod header;
mod info;
pub mod kernels;
pub mod loop_filter;
mod picture;
mod predict;
mod probability;
#[cfg(test)]
mod random;
mod residual;
mod samples;
pub mod simd;
mod tile;
mod visitor;

pub use decoder::{Decoder, SizeLimit};
pub use frame_buffer::{FrameBuffer, PictureRows, PlaneBuffer, PlaneRows};
pub use info::{Block, FrameInfo, FrameKind, MotionVector, Part, PredictionMode, Reference};
pub use picture::{Picture, Plane, PlaneSize, psnr};
pub use residual::quantiser::ac_step;
pub use samples::Samples;
pub use visitor::Visitor;

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::sync::Arc;

/// Width of the largest picture, in luma samples. The bound is on the area, so that portrait is fine too.
pub const MAX_WIDTH: u32 = 4096;
/// Height of the largest picture, in luma samples, at [`MAX_WIDTH`].
pub const MAX_HEIGHT: u32 = 2304;

/// One decoded VP9 frame of a chunk.
#[derive(Debug, Clone)]
pub struct DecodedFrame {
    /// The picture. Hidden frames have one too.
    pub picture: Arc<FrameBuffer>,
    /// The data of the frame's headers and blocks.
    pub info: Arc<FrameInfo>,
}

/// Why a chunk could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The chunk, or a frame in it, has no bytes.
    #[error("the frame is empty")]
    Empty,
    /// The decoder has seen no key frame since it began or since its last error.
    #[error("the decoder needs a key frame first")]
    NeedKeyFrame,
    /// The uncompressed header is not one of VP9.
    #[error("the frame header is malformed")]
    Header,
    /// The profile is not 0.
    #[error("profile {0} is not supported")]
    Profile(u8),
    /// The picture is empty or larger than the bound.
    #[error("a picture of {width}x{height} is refused: it is empty or beyond the size limit")]
    Size {
        /// Width in the header.
        width: u32,
        /// Height in the header.
        height: u32,
    },
    /// The frame ends before its own header says it does.
    #[error("the frame is truncated")]
    Truncated,
    /// The compressed header is malformed.
    #[error("the compressed header is malformed")]
    CompressedHeader,
    /// A tile is malformed.
    #[error("a tile is malformed")]
    Tile,
    /// A reference slot that the frame needs is empty or of an impossible size.
    #[error("a reference frame is missing")]
    MissingReference,
    /// A reference is empty since recovery from an intra-only frame. After this error alone the decoder goes on:
    /// frames that do not need the reference can be decoded.
    #[error("a reference frame was lost before recovery")]
    StaleReference,
    /// An invariant of the decoder does not hold; its state was thrown away.
    #[error("the decoder failed internally")]
    Internal,
}
