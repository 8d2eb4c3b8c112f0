//! VP9 decoding with the block information that reconstruction needs.
//!
//! Source: VP9 bitstream specification v0.7; seed 000 §4 (motion vectors and residuals of the
//! low layer drive the high one). [`Decoder`] drives the modules of `vp9dec`, which are exposed
//! for its own tests, so that vectors and references of every block come out with the picture.
//!
//! Input: one complete VP9 frame or superframe, as it comes off the depacketiser. Output: the
//! pictures it holds, hidden ones too, bit-exact with libvpx, each with its [`FrameInfo`].
//!
//! Refused with a typed [`DecodeError`]: profiles 1 to 3, pictures beyond [`MAX_WIDTH`] ×
//! [`MAX_HEIGHT`] in area, missing references, broken tiles. After any error the decoder waits
//! for a key frame. A panic inside `vp9dec` is caught where panics unwind and reported as
//! [`DecodeError::Internal`]; in WebAssembly it is a trap, after which the host must make a new
//! module instance.

mod bit_reader;
mod block;
mod bool_decoder;
mod decoder;
mod frame_buffer;
mod header;
mod info;
#[allow(unsafe_code)]
pub mod kernels;
pub mod loop_filter;
mod predict;
mod probability;
mod residual;
mod threads;
mod tile;
mod visitor;

pub use decoder::{Decoder, Parser, SizeLimit};
pub use frame_buffer::{FrameBuffer, PictureRows, PlaneBuffer, PlaneRows};
pub use info::{Block, FrameInfo, FrameKind, MotionVector, Part, PredictionMode, Reference};
pub use threads::{Join, OneThread};
pub use visitor::Visitor;

use std::sync::Arc;

/// Widest picture whose area is the bound (the bound is on the area, so portrait is fine).
pub const MAX_WIDTH: u32 = 4096;
/// Height belonging to [`MAX_WIDTH`].
pub const MAX_HEIGHT: u32 = 2304;

/// One VP9 frame out of a chunk.
#[derive(Debug, Clone)]
pub struct DecodedFrame {
    /// The picture. Hidden frames have one too.
    pub picture: Arc<FrameBuffer>,
    /// What the bitstream says about it.
    pub info: Arc<FrameInfo>,
}

/// Why a chunk could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The chunk, or a frame in it, has no bytes.
    #[error("the frame is empty")]
    Empty,
    /// The decoder has seen no key frame since it began or since its last error.
    #[error("a key frame must come first")]
    NeedKeyFrame,
    /// The uncompressed header is not one of VP9.
    #[error("the frame header is malformed")]
    Header,
    /// A profile other than 0.
    #[error("profile {0} is not supported")]
    Profile(u8),
    /// The picture is empty or larger than the bound.
    #[error("a picture of {width}x{height} is refused")]
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
    /// A reference is empty since recovery from an intra-only frame. The one error after which the
    /// decoder goes on: frames that do without this one can be decoded.
    #[error("a reference frame was lost before recovery")]
    StaleReference,
    /// An invariant of the decoder does not hold; its state was thrown away.
    #[error("the decoder failed internally")]
    Internal,
}
