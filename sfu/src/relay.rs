//! Messages between SFUs that share a room. The caller transports them.
//!
//! Each SFU sends the tracks of its own participants, once, to every other SFU that has requested the room ([`Relayed::Begin`]). It never
//! relays the tracks of another SFU: so each track has one way, and its anchors are made where it is published. Requests of subscribers
//! go back the same way.

use std::sync::Arc;
use std::time::Duration;

use windlass_types::{Anchor, Layer, Refusal};

use crate::api::{Kind, ParticipantId, TrackId};

/// Id of an SFU; a new one after each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// What comes from other nodes, in order.
#[derive(Debug, Clone)]
pub(crate) enum FromNode {
    /// The link to a node is up or down.
    Link(NodeId, bool),
    /// A message about a room.
    Message(NodeId, Arc<str>, Relayed),
}

/// A message about a room. Track ids are those of the SFU where the track is published.
#[derive(Debug, Clone)]
pub enum Relayed {
    /// The sender has participants in the room, and requests the receiver's tracks.
    Begin,
    /// The sender has no participants in the room any more.
    End,
    /// A participant of the sender is in the room.
    Joined {
        /// Which participant.
        participant: ParticipantId,
    },
    /// A participant of the sender has left the room.
    Left {
        /// Which participant.
        participant: ParticipantId,
    },
    /// A participant of the sender publishes a track.
    Track(RelayedTrack),
    /// A track has ended.
    TrackRemoved {
        /// What.
        track: TrackId,
    },
    /// A publisher muted or unmuted a track.
    TrackMuted {
        /// Which.
        track: TrackId,
        /// Its new state.
        muted: bool,
    },
    /// A packet of a track.
    Packet(RelayedPacket),
    /// The anchors of a track at its publisher's SFU.
    AnchorState {
        /// Which track.
        track: TrackId,
        /// Their state.
        state: AnchorState,
    },
    /// An anchor.
    Anchor(Box<RelayedAnchor>),
    /// Requests a key frame of a layer.
    KeyFrame {
        /// Which track.
        track: TrackId,
        /// Which layer.
        layer: Layer,
    },
    /// Requests layers; at first all of them.
    Layers {
        /// Which track.
        track: TrackId,
        /// `q`, `h`, `f`.
        wanted: [bool; 3],
    },
    /// Requests the anchors of one layer; at first none.
    Enhance {
        /// Which track.
        track: TrackId,
        /// Which layer.
        layer: Option<Layer>,
    },
    /// Requests a whole anchor, for a subscriber without earlier anchors.
    WholeAnchor {
        /// Which track.
        track: TrackId,
    },
}

impl Relayed {
    /// Whether the message is media, which may be dropped.
    pub fn is_media(&self) -> bool {
        matches!(self, Relayed::Packet(_) | Relayed::Anchor(_))
    }
}

/// A track that is published at the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedTrack {
    /// Its id there.
    pub track: TrackId,
    /// Its publisher.
    pub participant: ParticipantId,
    /// What it carries.
    pub kind: Kind,
    /// The publisher's name for it.
    pub name: String,
    /// Whether it is muted.
    pub muted: bool,
}

/// A packet of a track, as its publisher sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayedPacket {
    /// Its track.
    pub track: TrackId,
    /// Its layer; `None` for audio.
    pub layer: Option<Layer>,
    /// Its extended sequence number.
    pub seq: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its marker.
    pub marker: bool,
    /// Audio level in dBov (RFC 6464), if the publisher sends it.
    pub level: Option<i8>,
    /// Voice activity (RFC 6464), if the publisher sends it.
    pub voice: Option<bool>,
    /// Payload type of its blocks, if it is Opus with redundancy (RED).
    pub blocks: Option<u8>,
    /// The payload.
    pub payload: Arc<[u8]>,
}

/// State of a track's anchors at its publisher's SFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnchorState {
    /// Whether an enhancer is available.
    pub available: bool,
    /// The layer whose anchors are made now.
    pub layer: Option<Layer>,
    /// Scale: width of the anchors' frames over that of the layer.
    pub scale: u16,
    /// Time for which the policy holds frames, in addition to the latency budget.
    pub holds: Duration,
    /// Why no anchors are made.
    pub refused: Option<Refusal>,
}

/// An anchor for the subscribers of another SFU.
#[derive(Debug, Clone)]
pub struct RelayedAnchor {
    /// Its track.
    pub track: TrackId,
    /// The anchor; its stream id is the sender's.
    pub anchor: Anchor,
    /// Layer of its frame.
    pub layer: Layer,
    /// The layer that is tapped now.
    pub tapped: Layer,
}

/// Sends a message about a room to another SFU. Called on any of the SFU's threads; must not block, and counts what it drops.
pub type RelaySink = Arc<dyn Fn(NodeId, &Arc<str>, Relayed) + Send + Sync>;
