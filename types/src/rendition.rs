//! What passes between an SFU and its renderer, which makes renditions: the enhanced pictures of tracks, encoded once
//! for players that cannot rebuild them.
//!
//! A track comes as it comes to a recorder. Packets of its rendition go back as those of another node's track do. Each
//! rendition has an id of its own, so that late packets of a former one are known.

use crate::TrackId;
use crate::recording::RecordInput;
use crate::relay::RelayedPacket;

/// A step of a track that has a rendition.
#[derive(Debug, Clone)]
pub enum RendererInput {
    /// A rendition begins.
    Begin {
        /// The track.
        track: TrackId,
        /// The rendition of the track.
        rendition: TrackId,
    },
    /// The track's frames, anchors and end.
    Media(RecordInput),
    /// A player needs a key frame of this track's rendition.
    KeyFrame(TrackId),
}

impl RendererInput {
    /// The track that the step is about.
    pub fn track(&self) -> TrackId {
        match self {
            RendererInput::Media(input) => input.track(),
            RendererInput::Begin { track, .. } | RendererInput::KeyFrame(track) => *track,
        }
    }
}

/// An answer of the renderer.
#[derive(Debug, Clone)]
pub enum RendererAnswer {
    /// An RTP packet of a rendition, which is its track. Its layer is [`Layer::F`](crate::Layer::F): there is one.
    Packet(RelayedPacket),
    /// The renderer needs a key frame of the track of this rendition.
    KeyFrame(TrackId),
    /// The renderer cannot make this rendition any more.
    Failed(TrackId),
}

impl RendererAnswer {
    /// The rendition that the answer is about.
    pub fn rendition(&self) -> TrackId {
        match self {
            RendererAnswer::Packet(packet) => packet.track,
            RendererAnswer::KeyFrame(rendition) | RendererAnswer::Failed(rendition) => *rendition,
        }
    }
}
