//! Anchors: the HR detail of frames or [tiles], coded ([`codec`]) and cut into messages ([`message`]).

pub mod codec;
pub mod colour;
#[cfg(test)]
pub(crate) mod fixture;
pub mod message;
pub mod payload;
pub mod prior;
pub mod tiles;

pub use message::{AnchorHeader, AnchorMessageError, AnchorOrigin, ReassembledAnchor, Reassembler};
