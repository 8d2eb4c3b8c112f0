//! What a viewer behind an access link has of it, measured alike in simulated time (`bench links`) and on real sockets
//! (`loadtest`).

mod following;
mod watcher;

pub(crate) use following::{Following, LONG_WAIT, TENTH, Tenth};
pub(crate) use watcher::Watcher;

/// IP, UDP, RTP with the extensions that the SFU writes, and the tag of SRTP: bytes of a packet of video beside its
/// payload.
pub(crate) const HEADERS: u64 = 28 + 12 + 28 + 16;
