//! The messages that SFUs send each other when they share a room.
//!
//! Each SFU sends what its own participants publish, once, to every other SFU that has asked for the room
//! ([`Relayed::Begin`]). It never forwards what it received from another SFU: so a track has one path to each SFU, and
//! its anchors are made where it is published. What subscribers want goes back the same way.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Anchor, ConnectionQuality, DataMessage, FrameLayers, Layer, ParticipantId, Refusal, TrackId,
    TrackKind, VideoCodec,
};

/// Maximum length of a track's name, in bytes.
pub const MAX_TRACK_NAME: usize = 128;

/// A message about a room. Track numbers are those of the SFU where the track is published.
#[derive(Debug, Clone)]
pub enum Relayed {
    /// The sender has participants in the room, who want what others publish there.
    Begin,
    /// The sender has no participants in the room any more.
    End,
    /// A participant joined at the sender, or was there before.
    Joined {
        /// The participant.
        participant: ParticipantId,
    },
    /// The name or the attributes of a participant at the sender have changed.
    Changed {
        /// The participant.
        participant: ParticipantId,
    },
    /// The quality of a participant's connection to the sender has changed.
    Quality {
        /// The participant.
        participant: ParticipantId,
        /// The quality of the connection now.
        quality: ConnectionQuality,
    },
    /// A participant at the sender has a message for participants at the receiver.
    Data(RelayedData),
    /// A participant left at the sender.
    Left {
        /// The participant.
        participant: ParticipantId,
    },
    /// A track is published at the sender.
    Track(RelayedTrack),
    /// A track is no longer published.
    TrackRemoved {
        /// The track.
        track: TrackId,
    },
    /// A publisher muted or unmuted a track.
    TrackMuted {
        /// The track that is muted or unmuted.
        track: TrackId,
        /// Whether the track is muted now.
        muted: bool,
    },
    /// A packet of a track.
    Packet(RelayedPacket),
    /// The state of a track's enhancement changed.
    AnchorState {
        /// The track whose anchors have another state.
        track: TrackId,
        /// The new state.
        state: AnchorState,
    },
    /// An anchor.
    Anchor(Box<RelayedAnchor>),
    /// A subscriber needs a key frame of a layer.
    KeyFrame {
        /// The track.
        track: TrackId,
        /// The layer of the track.
        layer: Layer,
    },
    /// Which layers the sender needs; initially all.
    Layers {
        /// The track.
        track: TrackId,
        /// Whether the sender needs `q`, `h` and `f`, in this order.
        wanted: [bool; 3],
    },
    /// The layer of which the sender wants anchors; initially none.
    Enhance {
        /// The track.
        track: TrackId,
        /// The layer to enhance; `None`: none any more.
        layer: Option<Layer>,
    },
    /// A subscriber needs a key anchor.
    KeyAnchor {
        /// The track.
        track: TrackId,
    },
    /// Which codecs would serve the sender's subscribers who cannot decode a track.
    BackupWanted {
        /// The track.
        track: TrackId,
        /// The codecs, what serves most of them first; none: all subscribers decode the track.
        codecs: Vec<VideoCodec>,
    },
}

impl Relayed {
    /// Whether the message may be dropped: media, which later packets replace, and data that is not reliable.
    pub fn may_drop(&self) -> bool {
        match self {
            Relayed::Packet(_) | Relayed::Anchor(_) => true,
            Relayed::Data(data) => !data.message.reliable,
            _ => false,
        }
    }
}

/// A data message for participants of another SFU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedData {
    /// The participant who sent the message, by the number that its own SFU gave.
    pub from: ParticipantId,
    /// The message's number among the sender's messages.
    pub seq: u32,
    /// The receivers; `None`: all of the room at the receiving SFU.
    pub to: Option<Vec<ParticipantId>>,
    /// The message.
    pub message: Arc<DataMessage>,
}

/// A track that is published at the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedTrack {
    /// The number that the sender gave the track.
    pub track: TrackId,
    /// The track's publisher.
    pub participant: ParticipantId,
    /// Whether the track is audio or video.
    pub kind: TrackKind,
    /// The publisher's name for the track.
    pub name: String,
    /// Whether the track is muted.
    pub muted: bool,
    /// Whether its frames are encrypted end to end.
    pub encrypted: bool,
    /// The track whose video this one has in another codec, for those who cannot decode that one's.
    pub backup_of: Option<TrackId>,
}

/// A packet of a track, as its publisher sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayedPacket {
    /// The track.
    pub track: TrackId,
    /// The layer; `None` for audio.
    pub layer: Option<Layer>,
    /// The packet's extended sequence number.
    pub seq: u64,
    /// The packet's RTP timestamp.
    pub timestamp: u32,
    /// The packet's RTP marker bit.
    pub marker: bool,
    /// Audio level in dBov (RFC 6464), where the publisher sends it.
    pub level: Option<i8>,
    /// Voice activity (RFC 6464), where the publisher sends it.
    pub voice: Option<bool>,
    /// Payload type of the blocks, if the packet is Opus with redundancy (RFC 2198).
    pub blocks: Option<u8>,
    /// The codec of video; of no meaning for audio.
    pub codec: VideoCodec,
    /// The layers of the frame, where the publisher says them beside the payload.
    pub frame: Option<FrameLayers>,
    /// The payload.
    pub payload: Arc<[u8]>,
}

/// The state of a track's enhancement at its publisher's SFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnchorState {
    /// Whether an enhancer is available.
    pub available: bool,
    /// The layer of which anchors are made now.
    pub layer: Option<Layer>,
    /// Width of the anchors, divided by the width of the layer.
    pub scale: u16,
    /// Time beyond the operator's budget that anchors may take, since they wait for later frames.
    pub holds: Duration,
    /// Why no anchors are made.
    pub refused: Option<Refusal>,
}

/// An anchor for the subscribers of another SFU.
#[derive(Debug, Clone)]
pub struct RelayedAnchor {
    /// The track.
    pub track: TrackId,
    /// The anchor; its stream number is the sender's.
    pub anchor: Anchor,
    /// The layer of the anchor's frame.
    pub layer: Layer,
    /// The layer of which anchors are made now.
    pub tapped: Layer,
}
