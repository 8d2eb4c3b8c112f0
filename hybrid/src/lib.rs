//! The hybrid codec that server and browser share: anchors, HR reconstruction.
//!
//! Source: NeuroScaler §6.1 (hybrid decoding), design.md *Reconstruction*. A low VP9 layer is
//! decoded bit-exactly ([`windlass_vp9`]), its pictures are enlarged by Lanczos ([`resample`]) and learned filters, and
//! the pictures of sparse anchors ([`anchor`]) are carried to the frames after them by dense
//! flow ([`flow`], [`reconstruct`]). [`HybridDecoder`] puts it together.
//!
//! No I/O, clocks, threads of its own, or async; builds for wasm32 without imports. All arithmetic
//! is in integers and the same on every machine, so that a server's twin and a browser agree bit
//! for bit. Every input may come from the network: it is refused with a typed error or counted,
//! and all memory is bounded.
//!
//! ```
//! use windlass_hybrid::{HybridConfig, HybridDecoder};
//!
//! let mut decoder = HybridDecoder::new(HybridConfig::default());
//! // Not a VP9 frame: refused, and the decoder goes on waiting for a key frame.
//! assert!(decoder.push_frame(0, &[0; 16]).is_err());
//! assert!(decoder.hr().is_none());
//! ```

// `by_isa!` gives kernels two vector types; some need one.
#![allow(clippy::extra_unused_type_parameters)]

pub mod anchor;
pub mod cells;
mod cut;
mod decay;
pub mod decoder;
pub mod detail;
mod enlarge;
pub mod flow;
mod history;
mod lines;
pub mod reconstruct;
pub mod resample;
pub mod still;

pub use decay::DecaySum;
pub use decoder::{
    AnchorOutcome, FrameOutcome, HybridConfig, HybridDecoder, HybridStats, KeptCells,
};
pub use detail::Detail;
pub use enlarge::enlarge;
pub use reconstruct::carry::effort::Effort;

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
