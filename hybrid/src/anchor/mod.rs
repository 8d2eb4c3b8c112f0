//! Anchors: the HR detail of frames or [tiles], coded ([`codec`]) and cut into messages ([`message`]).

pub(crate) mod chain;
pub mod codec;
pub mod colour;
pub mod message;
pub mod payload;
pub mod pictures;
pub mod prior;
pub mod stream;
pub mod tiles;

pub use message::{AnchorHeader, AnchorMessageError, AnchorOrigin, ReassembledAnchor, Reassembler};
