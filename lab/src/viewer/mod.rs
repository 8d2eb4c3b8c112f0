//! Measures a viewer behind an access link, in the same way in simulated time (`bench links`) and on real sockets
//! (`loadtest`).

mod following;
mod part;
mod watcher;

pub(crate) use following::{Following, LONG_WAIT, TENTH, Tenth};
pub(crate) use part::Part;
pub(crate) use watcher::Watcher;

/// Bytes of a video packet besides its payload: IP, UDP, RTP with the extensions that the SFU writes, and the tag of
/// SRTP.
pub(crate) const HEADERS: u64 = 28 + 12 + 28 + 16;
