//! The hybrid codec that server and browser share: VP9 block info, anchors, HR reconstruction.

pub mod anchor;
pub mod decoder;
pub mod detail;
pub mod picture;
pub mod reconstruct;
pub mod resample;
pub mod vp9;

pub use decoder::{AnchorOutcome, FrameOutcome, HybridConfig, HybridDecoder, HybridStats};
pub use detail::Detail;
pub use picture::{Picture, Plane};
