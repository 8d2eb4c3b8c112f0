//! What passes between an SFU and the renderer of its renditions: the enhanced pictures of tracks, coded once more for
//! players that cannot rebuild them.
//!
//! A rendered track comes as it comes to a recorder. Its packets go back as those of another node's track do.

use crate::TrackId;
use crate::recording::RecordInput;
use crate::relay::RelayedPacket;

/// A step of a rendered track.
#[derive(Debug, Clone)]
pub enum RenderInput {
    /// The track's beginning and end, its frames, and its anchors.
    Media(RecordInput),
    /// A player needs a key frame of this track's rendition.
    KeyFrame(TrackId),
}

impl RenderInput {
    /// The track that the step is about.
    pub fn track(&self) -> TrackId {
        match self {
            RenderInput::Media(input) => input.track(),
            RenderInput::KeyFrame(track) => *track,
        }
    }
}

/// An answer of the renderer.
#[derive(Debug, Clone)]
pub enum Rendered {
    /// An RTP packet of a rendition. Its track is the rendered one, and its layer [`Layer::F`](crate::Layer::F): a
    /// rendition has one layer.
    Packet(RelayedPacket),
    /// The renderer needs a key frame of the rendered track.
    KeyFrame(TrackId),
}

impl Rendered {
    /// The rendered track.
    pub fn track(&self) -> TrackId {
        match self {
            Rendered::Packet(packet) => packet.track,
            Rendered::KeyFrame(track) => *track,
        }
    }
}
