//! Messages of the server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_types::{
    Attributes, Bitrate, ConnectionQuality, Layer, LayerKnobs, Refusal, Rung, TrackKind,
    VideoCodec, Way, WayReason,
};

use crate::data::Base64;
use crate::error::{ErrorCode, ProtocolError};
use crate::grant::Grant;
use crate::ice::IceServers;
use crate::moderate::Knock;

/// A message of the server. `type` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The client has joined the room.
    Welcome(Welcome),
    /// The room is on another server of the cluster: go there at once, with the same room and token. A client that has
    /// not joined yet finds the socket closed. A participant is served here until all participants of the room have
    /// sent `arrived`, or for some seconds.
    Moved {
        /// Signalling address of that server (`wss://…/ws`).
        url: String,
        /// Ticket for the `join` there, if the client is in the room. By it the others learn which participant it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        ticket: Option<String>,
        /// Signalling addresses of other servers of the cluster, as in `welcome`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<String>>", optional))]
        others: Vec<String>,
    },
    /// The WebRTC answer to the offer with the id `id`.
    Answer {
        /// Id of the offer.
        id: u32,
        /// Session description of the server.
        sdp: String,
        /// The client's own tracks.
        #[serde(default)]
        tracks: Vec<OwnTrack>,
    },
    /// A participant has joined the room.
    ParticipantJoined {
        /// Id of the participant who has joined.
        participant: String,
        /// Display name of the participant.
        name: String,
        /// Identity in the participant's access token, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        identity: Option<String>,
        /// Former id of a participant who moved here from another server of the cluster. The participant takes the
        /// place of the one with that id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        was: Option<String>,
        /// The attributes that the participant tells the others.
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
        attributes: Attributes,
    },
    /// A participant has another name or other attributes.
    ParticipantChanged {
        /// Id of the participant who has changed.
        participant: String,
        /// Display name of the participant from now on.
        name: String,
        /// All attributes of the participant from now on.
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
        attributes: Attributes,
    },
    /// A message of a participant in the room, with either `text` or `bytes`.
    Data {
        /// Id of the participant who sent the message.
        from: String,
        /// Number of the message: each message of a sender has a larger one than its earlier messages. A client that
        /// moves is at two servers for a while, and gets each message from both.
        seq: u32,
        /// Number that the sender gave the message, if any. A message that is sent again has the same number, even if
        /// its sender has come back with another id (`was`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        number: Option<u32>,
        /// Topic of the message.
        topic: String,
        /// Content of the message, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        text: Option<String>,
        /// Content of the message, if it is bytes, in Base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
        bytes: Option<Base64>,
    },
    /// A participant has left the room, and its tracks have ended.
    ParticipantLeft {
        /// Id of the participant who has left.
        participant: String,
    },
    /// A track can be subscribed to from now on.
    TrackAdded {
        /// The new track.
        track: Track,
    },
    /// A track has ended.
    TrackRemoved {
        /// Id of the track.
        track: String,
    },
    /// A track was muted or unmuted by its publisher. For one's own track: by an operator or moderator.
    TrackMuted {
        /// Id of the track.
        track: String,
        /// Whether it is muted now.
        muted: bool,
    },
    /// A subscribed track is paused for lack of bandwidth, or goes on.
    Paused {
        /// The subscribed track.
        track: String,
        /// Whether it is paused now.
        paused: bool,
    },
    /// The room has another active speaker.
    Speaker {
        /// Id of the participant who speaks.
        participant: String,
    },
    /// The quality of a participant's connection has changed, or is known now. It may be the client's own.
    Quality {
        /// Id of the participant whose connection it is.
        participant: String,
        /// Quality of the connection from now on.
        quality: ConnectionQuality,
    },
    /// The client receives another rung of a track from now on.
    Rung {
        /// The subscribed track.
        track: String,
        /// Rung that the client receives.
        rung: Rung,
        /// Epoch that begins. Anchors of other epochs do not fit its frames.
        epoch: u16,
        /// Width of the layer in pixels; zero while unknown.
        width: u16,
        /// Height of the layer in pixels; zero while unknown.
        height: u16,
        /// Scale of the rung's anchors (HR size over LR size), where the rung is enhanced.
        scale: u16,
        /// Number of spatial layers in which the publisher sends the track (SVC). Pictures of several are not rebuilt.
        spatial_layers: u8,
    },
    /// The picture of a track is made in another way from now on.
    Way {
        /// The subscribed track.
        track: String,
        /// Way in which the picture is made.
        way: Way,
        /// Why the picture is made in this way.
        reason: WayReason,
    },
    /// Parameters for the layers of the client's own track, from now on.
    Knobs {
        /// The client's own track.
        track: String,
        /// Parameters by layer. Layers that are not listed keep theirs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        layers: BTreeMap<Layer, LayerKnobs>,
    },
    /// Others can decode neither the client's own track nor its backup. The client may publish one (`backup_of`).
    BackupWanted {
        /// The client's own track.
        track: String,
        /// The codecs that serve those who cannot decode the track, what serves most of them first.
        codecs: Vec<VideoCodec>,
    },
    /// A request for a still: tiles of the next camera frame of the client's own track, or all of it.
    Regions {
        /// The client's own track.
        track: String,
        /// Id of the request, which the answer repeats as its epoch.
        id: u16,
        /// Width of the low layer in pixels.
        width: u16,
        /// Height of the low layer in pixels.
        height: u16,
        /// Scale of the answer: size of its picture over that of the low layer.
        scale: u16,
        /// Tile map in Base64: one bit for each tile of 64×64 pixels of the low layer, row by row, the lowest bit
        /// first.
        tiles: String,
        /// Maximum bytes of the answer.
        bytes: usize,
    },
    /// Statistics of the subscriptions in the last second.
    Stats {
        /// One entry for each subscribed video track.
        tracks: Vec<TrackStats>,
    },
    /// The client waits in the lobby. The answer to `join` comes when a moderator admits or refuses it.
    Waiting {},
    /// The client's grants have changed. What it may not do any more has ended already.
    Grants {
        /// Grants of the client from now on.
        grants: Vec<Grant>,
    },
    /// The restrictions of entering the room have changed.
    Entry {
        /// Whether the room is locked: no new participants may enter.
        locked: bool,
        /// Whether the room has a lobby: new participants wait until a moderator admits them.
        lobby: bool,
    },
    /// The recording of the room has begun or ended.
    Recording {
        /// Whether the room is recorded now.
        on: bool,
    },
    /// The participants in the lobby, for moderators. Sent at most once a second.
    Lobby {
        /// All participants in the lobby, the first one first.
        waiting: Vec<Knock>,
    },
    /// A `moderate` request is carried out. Or a `send` or `attributes` message with an `id` is on its way to the
    /// others.
    Done {
        /// Id of the message, if it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        id: Option<u32>,
    },
    /// The answer to `ice_servers`.
    IceServers {
        /// Servers that are valid from now on.
        ice: IceServers,
    },
    /// The answer to `ping`.
    Pong {
        /// The time of the `ping`.
        time: f64,
    },
    /// A message was refused, or the session has failed.
    Error(Error),
}

/// Default of `lr_pixels`, for servers that do not send it.
fn max_lr_pixels() -> u32 {
    windlass_types::MAX_LR_PIXELS
}

/// Default of `max_sections`, for servers that do not send it.
fn max_sections() -> u32 {
    64
}

/// State of the room that the client has joined.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Protocol version of the server.
    pub version: u32,
    /// Id of the client's participant.
    pub participant: String,
    /// Name of the room.
    pub room: String,
    /// Whether the room is a loopback room, in which the participant is alone.
    pub loopback: bool,
    /// The operator's latency budget for anchors, in ms.
    pub budget_ms: u32,
    /// Minimum scale of enhanced rungs (HR size over LR size). `rung` has the scale of each track.
    pub scale: u32,
    /// Maximum pixels of a layer that is enhanced, in either orientation: larger pictures need not be rebuilt.
    #[serde(default = "max_lr_pixels")]
    pub lr_pixels: u32,
    /// Maximum number of sections that send or receive media in an offer of the client.
    #[serde(default = "max_sections")]
    pub max_sections: u32,
    /// Other participants in the room.
    pub participants: Vec<Participant>,
    /// Tracks that the client may subscribe to.
    pub tracks: Vec<Track>,
    /// Identity in the client's access token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub identity: Option<String>,
    /// Grants of the client.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Whether the room is locked: no new participants may enter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub locked: bool,
    /// Whether the room has a lobby: new participants wait until a moderator admits them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub lobby: bool,
    /// Whether the room is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub recording: bool,
    /// Attributes of the client's participant, as in `join`.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
    pub attributes: Attributes,
    /// Seat token, with which the client may come back into a locked room, and does not wait in the lobby. Keep it
    /// secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub seat: Option<String>,
    /// STUN and TURN servers for the client.
    #[serde(default, skip_serializing_if = "IceServers::is_empty")]
    pub ice: IceServers,
    /// Signalling addresses of other servers of the cluster, the best first: for when the connection to this one is
    /// lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<String>>", optional))]
    pub others: Vec<String>,
}

/// A track that the client publishes.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTrack {
    /// `a=mid` of the section that sends the track.
    pub mid: String,
    /// Id of the track, for `mute` and for the others.
    pub track: String,
}

/// A participant in the room.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Id of the participant.
    pub id: String,
    /// Display name of the participant.
    pub name: String,
    /// Identity in the participant's access token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub identity: Option<String>,
    /// Former id of a participant who moved here from another server of the cluster. The participant takes the place of
    /// the one with that id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub was: Option<String>,
    /// The attributes that the participant tells the others.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
    pub attributes: Attributes,
}

/// A published track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Id of the track, unique on the server.
    pub id: String,
    /// Id of the participant who publishes the track.
    pub participant: String,
    /// Kind of the track: audio or video.
    pub kind: TrackKind,
    /// Name that the publisher gives the track, such as `camera`.
    pub name: String,
    /// Whether the publisher, or an operator, has muted the track.
    pub muted: bool,
    /// Whether its frames are encrypted end to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub encrypted: bool,
    /// The `stream` field of the track's anchor messages; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub stream: Option<u32>,
}

/// Statistics of one subscription in the last second.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrackStats {
    /// The subscribed track.
    pub track: String,
    /// Bitrate of the video in kbit/s.
    #[serde(rename = "video_kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub video_bitrate: Bitrate,
    /// Bitrate of the anchors in kbit/s.
    #[serde(rename = "anchor_kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub anchor_bitrate: Bitrate,
    /// Anchors sent, per second.
    pub anchors_per_s: f64,
    /// Number of anchors dropped since the subscription began: they were late, or did not fit.
    pub anchors_dropped: u64,
    /// Why the server makes no anchors of the track, although the client could have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub refused: Option<Refusal>,
}

/// An error: a message was refused, or the session has failed.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// The reason, for programs.
    pub code: ErrorCode,
    /// Description of the error for people.
    pub message: String,
    /// Advice for people on what to do next.
    pub hint: String,
    /// Id of the message that the error answers, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub id: Option<u32>,
    /// Whether the server closes the socket after this error.
    pub fatal: bool,
}

impl From<ProtocolError> for Error {
    fn from(e: ProtocolError) -> Self {
        Error {
            code: e.code,
            message: e.message,
            hint: e.code.hint().to_owned(),
            id: e.id,
            fatal: e.code.fatal(),
        }
    }
}

impl From<ProtocolError> for ServerMessage {
    fn from(e: ProtocolError) -> Self {
        ServerMessage::Error(e.into())
    }
}

impl ServerMessage {
    /// The message as JSON text.
    pub fn to_json(&self) -> String {
        // Only maps with foreign key types can fail to serialise, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a server's message, as clients and tests do.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON, or is not a message of the protocol.
    pub fn parse(text: &str) -> Result<ServerMessage, serde_json::Error> {
        serde_json::from_str(text)
    }
}
