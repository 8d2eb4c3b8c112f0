//! What SFUs that share a room tell each other. How it gets there is not their core's business.
//!
//! Each sends what its own participants publish, once, to every other that has asked for the room ([`Relayed::Begin`]), and never what it was sent
//! itself: so a track comes one way to each, and its anchors are made where it is published. What a subscriber wants goes back the same way.

use std::sync::Arc;
use std::time::Duration;

use windlass_types::{Anchor, Layer, Refusal};

use crate::api::{Kind, ParticipantId, TrackId};

/// One SFU of several; another after each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// What comes by the ways to other nodes, in its order.
#[derive(Debug, Clone)]
pub(crate) enum FromNode {
    /// There is a way to a node now, or none any more.
    Linked(NodeId, bool),
    /// It says something of a room.
    Said(NodeId, Arc<str>, Relayed),
}

/// Something of a room. Tracks are numbered by the SFU at which they are published.
#[derive(Debug, Clone)]
pub enum Relayed {
    /// The sender has participants in the room, who want what others publish there.
    Begin,
    /// It has none any more.
    End,
    /// Somebody joined at the sender, or was there already.
    Joined {
        /// Who.
        participant: ParticipantId,
    },
    /// And left.
    Left {
        /// Who.
        participant: ParticipantId,
    },
    /// Somebody at the sender publishes this.
    Track(RelayedTrack),
    /// And does not any more.
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
    /// What anchors are made of a track.
    Made {
        /// Which.
        track: TrackId,
        /// What there is of them.
        made: Made,
    },
    /// An anchor.
    Anchor(Box<RelayedAnchor>),
    /// A subscriber cannot show a layer before a key frame.
    KeyFrame {
        /// Whose.
        track: TrackId,
        /// Which.
        layer: Layer,
    },
    /// Which layers are of use; at the beginning all.
    Layers {
        /// Whose.
        track: TrackId,
        /// `q`, `h`, `f`.
        wanted: [bool; 3],
    },
    /// The layer of which anchors are wanted; at the beginning none.
    Enhance {
        /// Whose.
        track: TrackId,
        /// Which.
        layer: Option<Layer>,
    },
    /// Somebody has none of the anchors that others are added to.
    WholeAnchor {
        /// Whose.
        track: TrackId,
    },
}

impl Relayed {
    /// Whether it may be lost: what follows makes up for it.
    pub fn is_media(&self) -> bool {
        matches!(self, Relayed::Packet(_) | Relayed::Anchor(_))
    }
}

/// A track that is published at the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedTrack {
    /// Its number there.
    pub track: TrackId,
    /// Who publishes it.
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
    /// Of which track.
    pub track: TrackId,
    /// Of which layer; `None` of audio.
    pub layer: Option<Layer>,
    /// Its extended sequence number.
    pub seq: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its marker.
    pub marker: bool,
    /// How loud it is, in dBov, and whether that is a voice; of audio, where its publisher says so.
    pub level: Option<i8>,
    /// See `level`.
    pub voice: Option<bool>,
    /// The payload type that its blocks have, where it is Opus with redundancy.
    pub blocks: Option<u8>,
    /// The payload.
    pub payload: Arc<[u8]>,
}

/// What there is of a track's anchors at its publisher's SFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Made {
    /// Whether there is an enhancer that works.
    pub able: bool,
    /// The layer of which they are made now.
    pub layer: Option<Layer>,
    /// Width of their pictures over that of the layer's.
    pub scale: u16,
    /// How much longer than the operator's budget they may take, as they wait for frames to come.
    pub holds: Duration,
    /// Why none are made.
    pub refused: Option<Refusal>,
}

/// An anchor for the subscribers of another SFU.
#[derive(Debug, Clone)]
pub struct RelayedAnchor {
    /// Of which track.
    pub track: TrackId,
    /// Its stream is the sender's.
    pub anchor: Anchor,
    /// The layer that its frame is of.
    pub layer: Layer,
    /// The layer of which anchors are made now.
    pub tapped: Layer,
}

/// Takes what is for another SFU, with its room, from any of the SFU's threads. Must not block; what it has no room for it counts itself.
pub type RelaySink = Arc<dyn Fn(NodeId, &Arc<str>, Relayed) + Send + Sync>;
