//! How the SFU's core exchanges [`windlass_types::relay`]'s messages with the servers that share its rooms. The caller
//! transports them.

use std::sync::Arc;

pub use windlass_types::NodeId;
pub use windlass_types::relay::{
    AnchorState, Relayed, RelayedAnchor, RelayedData, RelayedPacket, RelayedTrack,
};
use windlass_types::rendition::RendererAnswer;

/// A message that comes from other nodes, or from the renderer. Messages of one node come in order.
#[derive(Debug, Clone)]
pub(crate) enum FromNode {
    /// The link to a node is up or down.
    Link(NodeId, bool),
    /// A message about a room.
    Message(NodeId, Arc<str>, Relayed),
    /// An answer of this server's renderer.
    Renderer(RendererAnswer),
}

/// Sends a message about a room to another SFU. Called on any of the SFU's threads; must not block, and counts what it
/// drops.
pub type RelaySink = Arc<dyn Fn(NodeId, &Arc<str>, Relayed) + Send + Sync>;
