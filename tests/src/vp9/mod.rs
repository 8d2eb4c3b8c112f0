//! Conformance of VP9 decoders: streams, oracles and the comparison.
//!
//! Source: VP9 bitstream specification v0.7 (section 2: a decoder is conformant when its output
//! equals the decoding process's, sample for sample), and libvpx, whose output that is in practice.
//!
//! A *stream* is a list of chunks (frames or superframes), made by libvpx's encoder from synthetic
//! pictures ([`Encoding`]), by changing headers of such streams ([`splice`]), from random bits under
//! a sound header ([`noise`]), or read from an IVF file. [`compare`] decodes it with libvpx and any
//! [`FrameDecoder`] and tells the first sample that differs. [`Coverage`] counts which tools of the
//! format a set of streams contains.
//!
//! Pictures are 8-bit I420 cropped to the frame's size; one chunk gives at most one picture, the
//! last shown one, as libvpx does.

pub mod compare;
pub mod corpus;
pub mod coverage;
pub mod decoders;
mod encoder;
mod header_writer;
mod libvpx;
pub mod noise;
mod picture;
mod probe;
mod source;
pub mod splice;

pub use coverage::Coverage;
pub use encoder::{Action, Encoding, Layers, RateControl, Stream};
pub use libvpx::Libvpx;
pub use picture::{Difference, I420};
pub use source::{Scene, Source};

/// A VP9 decoder as the comparison sees it.
pub trait FrameDecoder {
    /// What reports call it.
    fn name(&self) -> &'static str;

    /// Decodes a chunk: a frame or a superframe. Gives the pictures to display, at most one.
    ///
    /// # Errors
    ///
    /// Fails if the decoder refuses the chunk.
    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String>;
}

impl<D: FrameDecoder + ?Sized> FrameDecoder for &mut D {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
        (**self).decode(chunk)
    }
}
