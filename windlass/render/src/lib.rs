//! The enhanced pictures of a recording: the low layer as it came and its anchors go in, AV1 comes out.
//!
//! [`HybridDecoder`](windlass_hybrid::HybridDecoder) rebuilds each picture, as a viewer's browser does. Nobody waits
//! for it, so that each anchor is there with its frame, and the larger frame network runs on every picture. All
//! pictures of a file get one size ([`output_size`]), whatever layers it has. Each is coded once, at a quality that
//! keeps what the anchors gave.
//!
//! A rendition ([`Rendition`]) is the same while a call runs, in AV1 for RTP.
//!
//! No I/O, clocks or threads, but those of the encoder. All input may be damaged: a frame that cannot be decoded has
//! no picture, and an anchor that does not fit is left out.

mod av1_rtp;
mod call;
mod encoder;
mod pictures;
mod rendering;
mod resize;
mod size;

pub use call::{Effort, RenderedPicture, Rendition, RenditionConfig, RenditionError, Work};
pub use encoder::{EncodeError, Packet};
pub use rendering::{Counts, Rendering};
pub use size::{max_call_pixels, output_size};
pub use windlass_network::Tier;
