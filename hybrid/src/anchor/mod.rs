//! Anchors: the HR detail of single frames, coded ([`codec`]) and cut into messages ([`message`]).

pub mod codec;
pub mod message;

pub use message::{AnchorHeader, AnchorMessageError, AnchorOrigin, ReassembledAnchor, Reassembler};
