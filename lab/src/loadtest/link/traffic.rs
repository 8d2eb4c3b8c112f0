//! What goes through a connection: frames that are sent, packets and messages that come.

use std::time::Instant;

use bytes::Bytes;

use crate::viewer::Part;

/// A frame to be sent.
pub(in crate::loadtest) struct Outgoing {
    /// When the frame was taken.
    pub at: Instant,
    /// RTP timestamp of the frame.
    pub timestamp: u32,
    /// Sequence number of the first packet.
    pub first: u64,
    /// The payloads of the packets, in their order.
    pub payloads: Vec<Vec<u8>>,
}

/// A packet of video that came for the first time.
pub(in crate::loadtest) struct Arrival {
    /// The section of the session description that the packet belongs to.
    pub mid: String,
    /// Extended sequence number.
    pub seq: u64,
    /// RTP timestamp of the packet's frame.
    pub timestamp: u32,
    /// The packet's place in its frame; `None` of padding.
    pub part: Option<Part>,
    /// The packet's payload; padding has none.
    pub payload: Bytes,
}

/// Something that happened to a connection.
pub(in crate::loadtest) enum LinkEvent {
    /// The server asks for a key frame of what the client sends.
    KeyFrameWanted,
    /// A packet of video came.
    Arrived(Arrival),
    /// A message came by the server's data channel.
    Message(Bytes),
}
