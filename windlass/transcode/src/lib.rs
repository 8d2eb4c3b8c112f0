//! VP9 and anchors to AV1: pictures are rebuilt as a viewer's browser does it, and encoded once.
//!
//! - [`FileTranscoder`] makes the pictures of an enhanced file, once its recording has ended. Nobody waits for it. So
//!   each anchor is there with its frame, and the larger frame network runs on every picture. All pictures get one size
//!   ([`file_picture_size`]), whatever layers there are. The quality is one that keeps what the anchors gave.
//! - [`CallTranscoder`] makes those of a rendition, while a call runs: in payloads for RTP, at one bitrate.
//!
//! Both rebuild by [`HybridDecoder`](windlass_hybrid::HybridDecoder), and encode by rav1e.
//!
//! No I/O, clocks or threads, but those of the encoder. All input may be damaged: a frame that cannot be decoded has
//! no picture, and an anchor that does not fit is left out.

mod av1_rtp;
mod call;
mod encoder;
mod file;
mod pictures;
mod resize;
mod size;

pub use call::{CallConfig, CallError, CallPicture, CallTranscoder, Effort, Work};
pub use encoder::{EncodeError, Packet};
pub use file::{FileCounts, FileTranscoder};
pub use size::{file_picture_size, max_call_pixels};
pub use windlass_network::Tier;
