//! How the SFU's core exchanges [`windlass_types::relay`]'s messages with the servers that share its rooms. What carries them is not the core's concern.

use std::sync::Arc;

pub use windlass_types::NodeId;
pub use windlass_types::relay::{Made, Relayed, RelayedAnchor, RelayedPacket, RelayedTrack};

/// What comes by the ways to other nodes, in its order.
#[derive(Debug, Clone)]
pub(crate) enum FromNode {
    /// There is a way to a node now, or none any more.
    Linked(NodeId, bool),
    /// It says something of a room.
    Said(NodeId, Arc<str>, Relayed),
}

/// Takes what is for another SFU, with its room, from any of the SFU's threads. Must not block; what it has no room for it counts itself.
pub type RelaySink = Arc<dyn Fn(NodeId, &Arc<str>, Relayed) + Send + Sync>;
