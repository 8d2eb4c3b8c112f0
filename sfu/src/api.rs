//! Types of the SFU's interface: ids, offers, events, errors.

use std::sync::Arc;

use tokio::sync::mpsc;
use windlass_types::recording::RecordInput;
use windlass_types::rendition::RendererInput;
use windlass_types::{
    Bitrate, ConnectionQuality, EnhancerRequest, FrameNetwork, Layer, LayerKnobs, NoNetwork,
    Refusal, Rung, Size, StreamId, TapInput, VideoCodec, Way, WayReason,
};

use crate::config::Limits;
pub use crate::delivery::Delivery;
use crate::relay::RelaySink;
pub use windlass_types::{
    DataContent, DataMessage, DecayReport, ParseIdError, ParticipantId, TrackId, TrackKind,
    UplinkReport,
};

/// Options of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinOptions {
    /// Opaque id of the participant's user: equal for one identity, or for one address without identities. Scarce
    /// resources are shared among owners. 0: the participant is its own owner.
    pub owner: u64,
    /// Whether the room is a loopback room: it has this participant alone, which may subscribe to its own tracks.
    pub loopback: bool,
    /// Whether the participant can decode anchors. If not, it gets plain rungs.
    pub decodes_anchors: bool,
    /// Whether the participant sends and plays media alone, as in a session of WHIP or WHEP. It gets no data messages,
    /// and its client, which may be of any maker, may have an RSA certificate.
    pub media_only: bool,
    /// Permissions of the participant when it joins.
    pub permissions: Permissions,
}

impl Default for JoinOptions {
    fn default() -> Self {
        JoinOptions {
            owner: 0,
            loopback: false,
            decodes_anchors: true,
            media_only: false,
            permissions: Permissions::default(),
        }
    }
}

/// Permissions of a participant; by default all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    /// Send tracks.
    pub publish: bool,
    /// Receive tracks.
    pub subscribe: bool,
    /// Receive enhanced rungs.
    pub enhance: bool,
}

impl Default for Permissions {
    fn default() -> Self {
        Permissions { publish: true, subscribe: true, enhance: true }
    }
}

/// State of the room that a participant joins, and its later events.
#[derive(Debug)]
pub struct Joined {
    /// The other members.
    pub participants: Vec<ParticipantId>,
    /// Tracks of the other members.
    pub tracks: Vec<TrackInfo>,
    /// Receiver of later events. Dropping the receiver removes the participant.
    pub events: mpsc::Receiver<SfuEvent>,
}

/// A published track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackInfo {
    /// Id of the track.
    pub track: TrackId,
    /// Publisher of the track.
    pub participant: ParticipantId,
    /// Whether the track is audio or video.
    pub kind: TrackKind,
    /// Name that the publisher gives the track ("camera"), at most [`Publish::MAX_NAME`] bytes.
    pub name: String,
    /// Whether the publisher has muted it.
    pub muted: bool,
    /// Whether its frames are encrypted end to end: the enhancer gets none of it, and it is not recorded.
    pub encrypted: bool,
    /// The id that its anchor messages carry; video only.
    pub stream: Option<StreamId>,
}

/// An offer of the client, with the complete list of what it publishes and subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The SDP.
    pub sdp: String,
    /// Every m-line with a track of the client. Tracks of other mids end.
    pub publish: Vec<Publish>,
    /// Every m-line with a subscription. Subscriptions of other mids end.
    pub subscribe: Vec<Subscribe>,
}

/// One m-line that the client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// `a=mid` of the m-line.
    pub mid: String,
    /// Whether the m-line sends audio or video.
    pub kind: TrackKind,
    /// The client's name for the track.
    pub name: String,
    /// The largest layer of a video that the client sends where its uplink carries it. `None`: unknown.
    pub max: Option<Layer>,
    /// Whether its frames are encrypted end to end. What a track began with holds until it ends.
    pub encrypted: bool,
    /// `a=mid` of an earlier entry, whose video this one sends in another codec. Such a backup is not announced: its
    /// packets go to subscribers that cannot decode the other's codec.
    pub backup_of: Option<String>,
}

impl Publish {
    /// Maximum length of a track's name, in bytes.
    pub const MAX_NAME: usize = windlass_types::relay::MAX_TRACK_NAME;
}

/// One m-line that the client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// `a=mid` of the m-line.
    pub mid: String,
    /// The subscribed track.
    pub track: TrackId,
    /// Maximum rung. `None`: as before, or unlimited for a new subscription.
    pub max: Option<Rung>,
}

/// The answer to an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The session description, with all candidates (there is no trickling).
    pub sdp: String,
    /// The participant's own tracks, as pairs of mid and id.
    pub tracks: Vec<(String, TrackId)>,
}

/// Why a participant cannot join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The room has the maximum number of participants, or is a loopback room.
    #[error("the room is full: it has its maximum number of participants, or is a loopback room")]
    RoomFull,
    /// The server has the maximum number of rooms or participants.
    #[error("the server is full: it has its maximum number of rooms or participants")]
    ServerFull,
    /// The id is in use.
    #[error("the participant has joined already")]
    AlreadyJoined,
    /// The room does not exist, and the server accepts no new rooms because it is going to stop.
    #[error("the server takes no new rooms: it is shutting down")]
    Draining,
    /// The SFU has stopped.
    #[error("the server is shutting down")]
    Closed,
}

/// Why a track is not rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RenditionError {
    /// No participant has this id.
    #[error("no enhanced picture for the player: its participant has not joined")]
    NotJoined,
    /// The participant may not get what is enhanced.
    #[error("no enhanced picture for the player: it lacks the grant `enhance` or `subscribe`")]
    NotAllowed,
    /// The server has no renderer.
    #[error(
        "no enhanced picture for the player: this server has no enhancer, or was built without the renderer"
    )]
    Off,
    /// The maximum number of renditions is reached, for the server or for one address or identity.
    #[error(
        "no enhanced picture for the player: the server has its maximum number of them, or a quarter of it for one \
         address or identity; try again later"
    )]
    Full,
    /// The track has no rendition: it is on another server, not VP9, encrypted end to end, or as large as a rendition.
    #[error(
        "the track has no enhanced picture: it is on another server, not VP9, encrypted end to end, or as large itself"
    )]
    Plain,
    /// The SFU has stopped.
    #[error("no enhanced picture for the player: the server is shutting down")]
    Closed,
}

/// Why an offer was refused. The connection stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// No participant has this id.
    #[error("the participant has not joined")]
    NotJoined,
    /// The SDP is malformed, or the server cannot answer it.
    #[error("the session description cannot be used: {0}")]
    BadSdp(String),
    /// An m-line with a track has no codec that is forwarded.
    #[error("no common codec on m-line {mid}: offer Opus, or VP9 profile 0, VP8, H.264 or AV1")]
    NoCodec {
        /// The m-line.
        mid: String,
    },
    /// A track of the subscribe list does not exist, or may not be subscribed to by this participant.
    #[error(
        "track {track} cannot be subscribed to: there is no such track in the room, or it is the client's own"
    )]
    UnknownTrack {
        /// The track.
        track: TrackId,
    },
    /// A mid of one of the lists is not in the SDP, is listed twice, or has another kind or direction there.
    #[error(
        "m-line {mid} is missing, listed twice, or of another kind or direction than its list entry"
    )]
    BadMid {
        /// The m-line.
        mid: String,
    },
    /// A payload type is listed twice, or stands for two codecs in one or two offers of the connection.
    #[error(
        "payload type {pt} has two meanings: give each codec of all sections a number of its own, and keep it"
    )]
    PayloadType {
        /// The payload type.
        pt: u8,
    },
    /// A section has too many lines of one attribute.
    #[error("a section has more than {max} lines `a={name}`: send fewer")]
    TooManyLines {
        /// The attribute's name, or what it begins with.
        name: String,
        /// Maximum number of such lines.
        max: usize,
    },
    /// A track is in the subscribe list twice.
    #[error("track {track} is subscribed to twice: list it once")]
    SubscribedTwice {
        /// The track.
        track: TrackId,
    },
    /// The room has the maximum number of tracks.
    #[error(
        "the room has its maximum number of tracks: unpublish others, or raise `max-participants` of the server above 32"
    )]
    TooManyTracks,
    /// The participant has no permission for it.
    #[error("the participant may not {0}")]
    NotAllowed(&'static str),
    /// More tracks, m-lines or bytes than the limits allow.
    #[error(
        "the offer is too large: it has more than {} KiB, {} sections with media or {} published tracks, or a \
         track's name of more than {} bytes",
        Limits::default().sdp_bytes / 1024,
        Limits::default().media_sections,
        Limits::default().published_tracks,
        Publish::MAX_NAME
    )]
    TooLarge,
    /// The server panicked at the offer: the participant is removed.
    #[error(
        "the connection ended: the server failed at this offer; join again, and report it as a bug"
    )]
    Fault,
    /// The SFU has stopped.
    #[error("the server is shutting down")]
    Closed,
}

/// Why a data message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// No participant has the sender's id.
    #[error("the participant has not joined")]
    NotJoined,
    /// The room, or all rooms together, send more than the limits allow.
    #[error("the room, or all rooms together, send too many messages: send fewer")]
    Limited,
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
    /// The UDP socket cannot be bound.
    #[error("cannot use UDP {addr}: {source}")]
    Socket {
        /// The configured address.
        addr: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The TCP listener cannot be bound.
    #[error("cannot use TCP {addr}: {source}")]
    Tcp {
        /// The configured address.
        addr: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start the SFU's thread: {0}")]
    Thread(std::io::Error),
}

/// An event for a participant.
#[derive(Debug, Clone, PartialEq)]
pub enum SfuEvent {
    /// A participant joined the room.
    ParticipantJoined {
        /// The participant who joined.
        participant: ParticipantId,
    },
    /// The name or the attributes of a participant have changed.
    ParticipantChanged {
        /// The participant who changed.
        participant: ParticipantId,
    },
    /// The quality of a participant's connection has changed, or is known now; also that of the receiver itself.
    Quality {
        /// The participant whose connection it is.
        participant: ParticipantId,
        /// The quality of the connection now.
        quality: ConnectionQuality,
    },
    /// A message of another participant.
    Data(Delivery),
    /// A participant left the room; its tracks were removed before.
    ParticipantLeft {
        /// The participant who left.
        participant: ParticipantId,
    },
    /// A track can be subscribed to. Own tracks only in a loopback room.
    TrackAdded(TrackInfo),
    /// A track has ended; its m-lines are silent.
    TrackRemoved {
        /// The track that ended.
        track: TrackId,
    },
    /// A publisher muted or unmuted a track.
    TrackMuted {
        /// The track that was muted or unmuted.
        track: TrackId,
        /// Whether the track is muted now.
        muted: bool,
    },
    /// The participant now receives this rung of a subscribed track.
    RungChanged {
        /// The subscribed track.
        track: TrackId,
        /// The rung that the participant receives from now on.
        rung: Rung,
        /// Epoch in the subscriber's anchor messages.
        epoch: u16,
        /// Size of the layer.
        size: Size,
        /// Scale of the rung's anchors: width of an anchor's frame over that of the layer.
        scale: u16,
        /// Number of spatial layers in which the publisher sends the track (SVC); 1: there are none.
        spatial_layers: u8,
    },
    /// The way in which the picture of a subscribed track is made has changed.
    Way {
        /// The subscribed track.
        track: TrackId,
        /// The way in which the picture is made from now on.
        way: Way,
        /// Why the picture is made in this way.
        reason: WayReason,
    },
    /// A subscribed track is paused, as the bandwidth does not suffice, or goes on.
    Paused {
        /// The subscribed track.
        track: TrackId,
        /// Whether the track is paused now.
        paused: bool,
    },
    /// The room has another active speaker.
    Speaker {
        /// The participant who speaks.
        participant: ParticipantId,
    },
    /// Parameters for the participant's own track.
    Knobs {
        /// The participant's own track.
        track: TrackId,
        /// Layers with new parameters; others stay as they are.
        layers: Vec<(Layer, LayerKnobs)>,
    },
    /// Others can decode neither the participant's own track nor its backup. The participant may publish one
    /// ([`Publish::backup_of`]).
    BackupWanted {
        /// The participant's own track.
        track: TrackId,
        /// The codecs that serve those who cannot decode the track, what serves most of them first.
        codecs: Vec<VideoCodec>,
    },
    /// A request for a still of the participant's own track.
    Regions {
        /// The participant's own track.
        track: TrackId,
        /// Tiles of the still, and its maximum size.
        request: RegionRequest,
    },
    /// Statistics of the participant's subscriptions, once a second.
    TrackStats(Vec<TrackStats>),
    /// The participant has been removed. No event follows this one.
    Disconnected(DisconnectReason),
}

/// A request for a still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionRequest {
    /// Id of the request. The answer has it as its epoch.
    pub id: u16,
    /// Size of the low layer.
    pub size: Size,
    /// Width of the answer's frame over that of the low layer.
    pub scale: u16,
    /// Tile map of the low layer.
    pub tiles: Vec<u8>,
    /// Maximum size of the answer in bytes.
    pub bytes: usize,
}

/// Why a participant was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The participant left, or the SFU stopped.
    Left,
    /// The connection was lost, or failed.
    Lost,
    /// There was no offer in time, or the connection did not come up.
    NeverConnected,
    /// The client opened more data channels than it may.
    TooManyChannels,
    /// The client's packets took more than their share of a media thread's CPU time, for seconds.
    Flood,
    /// The server panicked in the work for this participant.
    Fault,
}

/// A subscriber's report on the anchors of one subscription since its last report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnchorReport {
    /// Anchors that were used.
    pub used: u32,
    /// Used anchors that came after their frame was shown.
    pub late: u32,
    /// Anchors that came in part, or could not be used.
    pub lost: u32,
    /// Anchors that added nothing to their frame.
    pub duplicate: u32,
    /// Anchors that came after one of a newer epoch.
    pub former_epoch: u32,
}

impl AnchorReport {
    /// The sum of the report's figures.
    pub(crate) fn all(&self) -> u64 {
        let AnchorReport { used, late, lost, duplicate, former_epoch } = *self;
        [used, late, lost, duplicate, former_epoch].into_iter().map(u64::from).sum()
    }
}

/// A subscriber's report on the network that it runs on every frame of a track.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkReport {
    /// The network that runs.
    pub network: FrameNetwork,
    /// Why no network runs; `None` where one runs, or where the subscriber does not say.
    pub absence: Option<NoNetwork>,
}

/// A subscriber's report on one subscription since its last report.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrackReport {
    /// Report on the subscription's anchors.
    pub anchors: AnchorReport,
    /// The loss of quality with the frames since an anchor, if it was measured.
    pub decay: Option<DecayReport>,
    /// Report on the subscriber's network.
    pub network: NetworkReport,
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenReport {
    /// The report, bounded by what was sent.
    pub counted: AnchorReport,
    /// Sum of the amounts by which the report was cut.
    pub excess: u64,
}

/// Why a report is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The sender does not subscribe to the track.
    #[error("no such subscription: report on tracks that are subscribed to")]
    NotWatched,
    /// Reports come too fast.
    #[error("more than one report a second: wait a second between two")]
    TooSoon,
    /// The SFU has stopped.
    #[error("the SFU has stopped: join again")]
    Closed,
}

/// Statistics of one subscription in the last second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackStats {
    /// The subscribed track.
    pub track: TrackId,
    /// Bitrate of RTP payload, video or audio.
    pub media_bitrate: Bitrate,
    /// Bitrate of anchor messages.
    pub anchor_bitrate: Bitrate,
    /// Anchors sent, per second.
    pub anchors_per_s: f64,
    /// Anchors sent since the subscription began.
    pub anchors_sent: u64,
    /// Anchors dropped since the subscription began: late, over the bandwidth, or without their frame in this timeline.
    pub anchors_dropped: u64,
    /// Why the enhancer makes no anchors, if an enhanced rung of the track is wanted.
    pub refused: Option<Refusal>,
}

/// Takes the taps' output, each stream in decoding order, on any of the SFU's threads. The function must not block.
/// `false` means full: the SFU counts the loss, and the stream continues with a [`TapInput::Gap`] and a key frame.
pub type TapSink = Arc<dyn Fn(TapInput) -> bool + Send + Sync>;

/// Takes what is recorded, each track in order, on any of the SFU's threads. The function must not block. `false` means
/// full: the SFU counts the loss, and a video track continues with a [`RecordInput::Gap`] and a key frame. Steps
/// without media must be taken.
pub type RecordSink = Arc<dyn Fn(RecordInput) -> bool + Send + Sync>;

/// Takes what is rendered, as a [`RecordSink`] takes what is recorded, and requests for key frames of renditions.
pub type RendererSink = Arc<dyn Fn(RendererInput) -> bool + Send + Sync>;

/// Optional sinks of the SFU's output, besides the enhancer's. Media threads call them.
#[derive(Clone, Default)]
pub struct Sinks {
    /// Sink of messages for the SFUs that share its rooms.
    pub relay: Option<RelaySink>,
    /// Sink of recorded media.
    pub recorder: Option<RecordSink>,
    /// Sink of media to be rendered.
    pub renderer: Option<RendererSink>,
}

/// Takes requests to a stream's enhancement and reports, on any of the SFU's threads. The function must not block.
/// `false` means full: the request is dropped and counted. Requests come only while the stream is tapped: between its
/// first input and its [`TapInput::Stop`], or before the first.
pub type RequestSink = Arc<dyn Fn(StreamId, EnhancerRequest) -> bool + Send + Sync>;

/// The two queues from the SFU to the enhancer. One may have room while the other is full.
#[derive(Clone)]
pub struct EnhancerSinks {
    /// Takes the taps' output.
    pub tap: TapSink,
    /// Takes requests and reports.
    pub requests: RequestSink,
}

impl EnhancerSinks {
    /// Sinks of an SFU without an enhancer: all input is ignored.
    pub fn none() -> EnhancerSinks {
        EnhancerSinks { tap: Arc::new(|_| true), requests: Arc::new(|_, _| true) }
    }
}
