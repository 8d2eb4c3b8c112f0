//! The words that the SFU and its callers share: identities, offers, events, errors.

use std::sync::Arc;

use tokio::sync::mpsc;
use windlass_types::{Layer, Refusal, Rung, StreamId, TapInput};

pub use crate::core::RegionRequest;
pub use windlass_types::{Kind, LayerKnobs, ParseIdError, ParticipantId, TrackId};

/// How to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinOptions {
    /// Whose the participant is, by an opaque number: equal for those of one identity, or of one address where there are none. What is
    /// scarce is shared among owners; 0: its own.
    pub owner: u64,
    /// The room holds this participant alone, who may subscribe to its own tracks.
    pub loopback: bool,
    /// Whether the participant can decode anchors; else it is given plain rungs only.
    pub decodes_anchors: bool,
    /// What the participant may do at first.
    pub may: May,
}

impl Default for JoinOptions {
    fn default() -> Self {
        JoinOptions { owner: 0, loopback: false, decodes_anchors: true, may: May::default() }
    }
}

/// What a participant may do; by default everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct May {
    /// Send tracks.
    pub publish: bool,
    /// Receive tracks.
    pub subscribe: bool,
    /// Be given enhanced rungs.
    pub enhance: bool,
}

impl Default for May {
    fn default() -> Self {
        May { publish: true, subscribe: true, enhance: true }
    }
}

/// What a participant finds when it joins, and where it hears what happens then.
#[derive(Debug)]
pub struct Joined {
    /// Who is there already.
    pub participants: Vec<ParticipantId>,
    /// What they publish.
    pub tracks: Vec<TrackInfo>,
    /// Everything after this moment. Dropping the receiver makes the participant leave.
    pub events: mpsc::Receiver<SfuEvent>,
}

/// A published track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackInfo {
    /// Its identity.
    pub track: TrackId,
    /// Who publishes it.
    pub participant: ParticipantId,
    /// What it carries.
    pub kind: Kind,
    /// The publisher's name for it ("camera"), at most [`Publish::NAME_MAX`] bytes.
    pub name: String,
    /// Whether the publisher has muted it.
    pub muted: bool,
    /// The id that its anchor messages carry; video only.
    pub stream: Option<StreamId>,
}

/// An offer of the client: the complete list of what it publishes and subscribes to from now on.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// The SDP.
    pub sdp: String,
    /// Every m-line that carries a track of the client. A mid that is missing here is no longer published.
    pub publish: Vec<Publish>,
    /// Every m-line that shall carry somebody's track. A mid that is missing here is no longer subscribed.
    pub subscribe: Vec<Subscribe>,
}

/// One m-line that the client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Its `a=mid`.
    pub mid: String,
    /// What it carries.
    pub kind: Kind,
    /// The client's name for it.
    pub name: String,
}

impl Publish {
    /// The longest name in bytes; a longer one is refused.
    pub const NAME_MAX: usize = windlass_types::relay::MAX_TRACK_NAME;
}

/// One m-line that the client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// Its `a=mid`.
    pub mid: String,
    /// The track that it shall carry.
    pub track: TrackId,
    /// The best rung that the client wants of it; without, what it wanted before, or the best of a new track.
    pub max: Option<Rung>,
}

/// The answer to an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The SDP, candidates included (there is no trickling).
    pub sdp: String,
    /// The participant's own tracks: each published mid with the identity that others know it by.
    pub tracks: Vec<(String, TrackId)>,
}

/// Why nobody was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The room has as many participants as the limits allow, or is somebody's loopback room.
    #[error("the room is full")]
    RoomFull,
    /// The server has as many rooms or participants as the limits allow.
    #[error("the server is full")]
    ServerFull,
    /// The identity is in use.
    #[error("the participant has joined already")]
    AlreadyJoined,
    /// There is no such room, and no new ones begin, because the server is going to stop.
    #[error("the server takes no new rooms: it is shutting down")]
    Draining,
    /// The SFU has stopped.
    #[error("the server is shutting down")]
    Closed,
}

/// Why an offer was refused. The connection stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Nobody of that identity has joined.
    #[error("the participant has not joined")]
    NotJoined,
    /// The SDP is malformed or cannot be answered.
    #[error("the session description cannot be used: {0}")]
    BadSdp(String),
    /// An m-line that is to carry a track has no codec in common: VP9 profile 0 or Opus.
    #[error("no common codec on m-line {mid}")]
    NoCodec {
        /// The m-line.
        mid: String,
    },
    /// A track of the subscribe list does not exist, or may not be subscribed to by this participant.
    #[error("unknown track {track}")]
    UnknownTrack {
        /// The track.
        track: TrackId,
    },
    /// A mid of one of the lists is not in the SDP, is listed twice, or has another kind or direction there.
    #[error("m-line {mid} does not fit its list entry")]
    BadMid {
        /// The m-line.
        mid: String,
    },
    /// A payload type stands for two codecs, in one offer or in two of one connection, or is listed twice.
    #[error(
        "payload type {pt} has two meanings: give each codec of all sections a number of its own, and keep it"
    )]
    PayloadType {
        /// The payload type.
        pt: u8,
    },
    /// A section has more lines of one attribute than anybody needs.
    #[error("a section has more than {most} lines `a={name}`")]
    TooManyLines {
        /// The attribute's name, or what it begins with.
        name: String,
        /// How many it may have.
        most: usize,
    },
    /// A track is in the subscribe list twice.
    #[error("track {track} is subscribed to twice: list it once")]
    SubscribedTwice {
        /// The track.
        track: TrackId,
    },
    /// The room has as many tracks as the limits allow.
    #[error("the room has as many tracks as it may")]
    TooManyTracks,
    /// The participant may not do that (any more).
    #[error("the participant may not {0}")]
    NotAllowed(&'static str),
    /// More tracks, m-lines or bytes than the limits allow.
    #[error("the offer is over the limits")]
    TooLarge,
    /// Something panicked at it: the participant is removed.
    #[error("a fault of the server ended the connection")]
    Fault,
    /// The SFU has stopped.
    #[error("the server is shutting down")]
    Closed,
}

/// The SFU has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the SFU has stopped")]
pub struct SfuClosed;

/// Why the SFU did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The UDP socket could not be had.
    #[error("cannot use UDP {addr}: {source}")]
    Socket {
        /// The address asked for.
        addr: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// TCP could not be listened for.
    #[error("cannot use TCP {addr}: {source}")]
    Tcp {
        /// The address asked for.
        addr: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The thread could not be started.
    #[error("cannot start the SFU's thread: {0}")]
    Thread(std::io::Error),
}

/// What a participant is told.
#[derive(Debug, Clone, PartialEq)]
pub enum SfuEvent {
    /// Somebody joined the room.
    ParticipantJoined {
        /// Who.
        participant: ParticipantId,
    },
    /// Somebody left the room; its tracks were removed before.
    ParticipantLeft {
        /// Who.
        participant: ParticipantId,
    },
    /// A track can be subscribed to. Not sent for one's own tracks, except in a loopback room.
    TrackAdded(TrackInfo),
    /// A track is gone; the m-lines that carried it are silent.
    TrackRemoved {
        /// Which.
        track: TrackId,
    },
    /// A publisher muted or unmuted a track.
    TrackMuted {
        /// Which.
        track: TrackId,
        /// Its new state.
        muted: bool,
    },
    /// The participant's own subscription now receives this rung.
    RungChanged {
        /// Which track.
        track: TrackId,
        /// What it gets.
        rung: Rung,
        /// The epoch in this subscriber's anchor messages.
        epoch: u16,
        /// Width of the layer in pixels.
        width: u16,
        /// Height of the layer in pixels.
        height: u16,
        /// Width of the rung's pictures over that, where it is enhanced.
        scale: u16,
    },
    /// Nothing more comes of a subscribed track, for want of bandwidth, or it goes on.
    Paused {
        /// Which track.
        track: TrackId,
        /// Whether it is paused.
        paused: bool,
    },
    /// Somebody else in the room speaks now.
    Speaker {
        /// Who.
        participant: ParticipantId,
    },
    /// What the participant is asked to send of its own track.
    Knobs {
        /// Its track.
        track: TrackId,
        /// Its layers; those that are not named stay as they are.
        layers: Vec<(Layer, LayerKnobs)>,
    },
    /// The participant is asked for tiles of the next frame of its own track.
    Regions {
        /// Its track.
        track: TrackId,
        /// Which tiles, and in how many bytes.
        request: RegionRequest,
    },
    /// Once a second: what the participant's subscriptions received.
    TrackStats(Vec<TrackStats>),
    /// The participant has been removed. The last event.
    Disconnected(Ended),
}

/// Why a participant was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It left, or the SFU stopped.
    Left,
    /// Its connection was lost, or failed.
    Lost,
    /// It has not offered in time, or its connection has not come up.
    NeverConnected,
    /// It opened more data channels than it may.
    TooManyChannels,
    /// What it sent took more of the media thread than it may, for seconds.
    Flood,
    /// A fault of ours, which ended this connection alone.
    Fault,
}

/// What a publisher's browser says of its uplink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UplinkReport {
    /// What it carries, in kbit/s, by its congestion control.
    pub kbps: f64,
    /// Width and height of the camera's pictures.
    pub size: (u32, u32),
    /// The camera's frames per second.
    pub fps: f64,
}

/// What became of a subscription's anchors since its subscriber's last report, as it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnchorReport {
    /// Used.
    pub used: u32,
    /// Of these, those that came after their frame was shown.
    pub late: u32,
    /// Came in part, or could not be used.
    pub lost: u32,
    /// Gave nothing that their frame had not.
    pub duplicate: u32,
    /// Came after one of a newer epoch.
    pub former_epoch: u32,
}

impl AnchorReport {
    /// The sum of its figures.
    pub(crate) fn all(&self) -> u64 {
        let AnchorReport { used, late, lost, duplicate, former_epoch } = *self;
        [used, late, lost, duplicate, former_epoch].into_iter().map(u64::from).sum()
    }
}

/// A report that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenReport {
    /// What of it can be true.
    pub counted: AnchorReport,
    /// By how much it says more.
    pub excess: u64,
}

/// Why a report is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It is about a track that its sender does not watch.
    #[error("no such subscription: report on tracks that are subscribed to")]
    NotWatched,
    /// It comes too soon after the last.
    #[error("more than one report a second: wait a second between two")]
    TooSoon,
    /// The SFU has stopped.
    #[error("the SFU has stopped: join again")]
    Closed,
}

/// What one subscription received in the last second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackStats {
    /// Which track.
    pub track: TrackId,
    /// RTP payload of the video (or audio), in kbit/s.
    pub video_kbps: f64,
    /// Anchor messages, in kbit/s.
    pub anchor_kbps: f64,
    /// Anchors sent, per second.
    pub anchors_per_s: f64,
    /// Anchors sent since the subscription began.
    pub anchors_sent: u64,
    /// Anchors dropped since the subscription began: late, over the bandwidth, or without a place in this timeline.
    pub anchors_dropped: u64,
    /// Why the enhancer makes none, where one of the track's enhanced rungs is held or would be.
    pub refused: Option<Refusal>,
}

/// Takes what the taps produce, each one's in decoding order, from any of the SFU's threads. Must not block; `false` means full: the SFU counts the loss,
/// and the stream continues with a [`TapInput::Gap`] and a key frame once there is room.
pub type TapSink = Arc<dyn Fn(TapInput) -> bool + Send + Sync>;
