//! What the server may say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_types::{
    Attributes, Bitrate, ConnectionQuality, Layer, LayerKnobs, Refusal, Rung, Way, WayReason,
};

use crate::client::TrackKind;
use crate::data::Base64;
use crate::error::{ErrorCode, ProtocolError};
use crate::grant::Grant;
use crate::ice::IceServers;
use crate::moderate::Knock;

/// What the server may say; `type` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The client is in the room.
    Welcome(Welcome),
    /// The room lives on another server of the cluster: go there at once, with the same room and token. Whoever is not
    /// in the room yet finds the socket closed; for whoever is, all goes on until it has said `arrived` and so have the
    /// others, or for some seconds.
    Moved {
        /// The address of that server's signalling (`wss://…/ws`).
        url: String,
        /// To be given in `join` there by whoever is in the room: the others learn by it who that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        ticket: Option<String>,
        /// As in `welcome`: other servers of the cluster.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<String>>", optional))]
        others: Vec<String>,
    },
    /// The WebRTC answer to offer `id`.
    Answer {
        /// The offer's id.
        id: u32,
        /// The server's session description.
        sdp: String,
        /// The client's own tracks.
        #[serde(default)]
        tracks: Vec<OwnTrack>,
    },
    /// Someone has come.
    ParticipantJoined {
        /// Id of the participant who has come.
        participant: String,
        /// The name to show.
        name: String,
        /// Who that is by the access token, where one was needed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        identity: Option<String>,
        /// Its id at the server that its room was on before, where it has just come from there: it takes that
        /// participant's place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        was: Option<String>,
        /// The attributes that the participant tells the others.
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
        attributes: Attributes,
    },
    /// Someone has another name or other attributes.
    ParticipantChanged {
        /// Id of the participant who has changed.
        participant: String,
        /// The name to show from now on.
        name: String,
        /// All attributes from now on.
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
        attributes: Attributes,
    },
    /// A message of somebody in the room. It has `text` or `bytes`.
    Data {
        /// Id of the participant who sent it.
        from: String,
        /// Its number: each message of its sender has a larger one than those before. A client that is at two servers
        /// for a while, as it moves, gets each message at both.
        seq: u32,
        /// The sender's own number for it, if it gave one: the same where it sends a message again, also after it has
        /// come back with another id (`was`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        number: Option<u32>,
        /// The message's topic.
        topic: String,
        /// The message, if it is a text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        text: Option<String>,
        /// The message, if it is bytes, in Base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
        bytes: Option<Base64>,
    },
    /// Someone has gone; their tracks went with them.
    ParticipantLeft {
        /// Id of the participant who has gone.
        participant: String,
    },
    /// A track can be subscribed to from now on.
    TrackAdded {
        /// The track.
        track: Track,
    },
    /// A track is gone.
    TrackRemoved {
        /// Its id.
        track: String,
    },
    /// A track's owner muted it, or ended that; of one's own track: an operator did.
    TrackMuted {
        /// Its id.
        track: String,
        /// Whether it is muted now.
        muted: bool,
    },
    /// Nothing more comes of a track, for want of bandwidth, or it goes on.
    Paused {
        /// The subscribed track.
        track: String,
        /// Whether it is paused now.
        paused: bool,
    },
    /// Somebody speaks now, until another does.
    Speaker {
        /// Id of the participant who speaks.
        participant: String,
    },
    /// The quality of somebody's connection has changed, or is known now; also of the client's own.
    Quality {
        /// Whose.
        participant: String,
        /// From now on.
        quality: ConnectionQuality,
    },
    /// From here on the client is given another rung of a track.
    Rung {
        /// The subscribed track.
        track: String,
        /// The rung that the client is given.
        rung: Rung,
        /// The epoch that begins; anchors of others do not fit its frames.
        epoch: u16,
        /// Width of the layer in pixels; zero while unknown.
        width: u16,
        /// Height of the layer in pixels; zero while unknown.
        height: u16,
        /// HR size / LR size, where the rung is enhanced.
        scale: u16,
    },
    /// How the picture of a track is made from now on, and why.
    Way {
        /// The subscribed track.
        track: String,
        /// How it is made.
        way: Way,
        /// Why in that way.
        reason: WayReason,
    },
    /// What the client is asked to send of its own track from now on.
    Knobs {
        /// The client's own track.
        track: String,
        /// Layers, by name; those that are not named stay as they are.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        layers: BTreeMap<Layer, LayerKnobs>,
    },
    /// The client is asked for a still: tiles of the next camera frame of its own track, or all of it.
    Regions {
        /// The client's own track.
        track: String,
        /// Names the request in the answer.
        id: u16,
        /// Width of the low layer in pixels.
        width: u16,
        /// Height of the low layer in pixels.
        height: u16,
        /// Size of the answer's picture over that.
        scale: u16,
        /// The bits of the tile map (64×64 pixels of the low layer each, row by row, the lowest bit first) in Base64.
        tiles: String,
        /// Maximum bytes of the answer.
        bytes: usize,
    },
    /// What was sent to the client in the last second.
    Stats {
        /// One entry for each subscribed video track.
        tracks: Vec<TrackStats>,
    },
    /// One waits in the lobby: the answer to `join` comes when a moderator admits one, or refuses.
    Waiting {},
    /// What one may do has changed. What one does and may not any more has ended already.
    Grants {
        /// What one may do from now on.
        grants: Vec<Grant>,
    },
    /// Who may come into the room has changed.
    Door {
        /// Whether nobody new may.
        locked: bool,
        /// Whether whoever comes waits until a moderator admits them.
        lobby: bool,
    },
    /// The room is recorded from now on, or is not any more.
    Recording {
        /// Whether it is recorded now.
        on: bool,
    },
    /// Who waits now, to moderators; at most once a second.
    Lobby {
        /// All of them, who came first at first.
        waiting: Vec<Knock>,
    },
    /// What a `moderate` asked for is so from now on; or a `send` or `attributes` with an `id` is on its way to the
    /// others.
    Done {
        /// The message's id, where it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        id: Option<u32>,
    },
    /// The answer to `ice_servers`.
    IceServers {
        /// What helps from now on.
        ice: IceServers,
    },
    /// The answer to `ping`.
    Pong {
        /// The time of the `ping`.
        time: f64,
    },
    /// Something could not be done.
    Error(Error),
}

/// Default of `max_lr_pixels`, for servers that do not say it.
fn max_lr_pixels() -> u32 {
    windlass_types::MAX_LR_PIXELS
}

/// Default of `max_sections`, for servers that do not say it.
fn max_sections() -> u32 {
    64
}

/// The client is in the room.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol version that the server speaks.
    pub version: u32,
    /// The client's own id.
    pub participant: String,
    /// The room.
    pub room: String,
    /// Whether it is a room of one's own.
    pub loopback: bool,
    /// The operator's latency budget for anchors, in ms.
    pub budget_ms: u32,
    /// The least HR size / LR size of enhanced rungs: `rung` says that of each track.
    pub scale: u32,
    /// Maximum pixels of a layer that is enhanced, in either orientation: larger pictures need not be rebuilt.
    #[serde(default = "max_lr_pixels")]
    pub lr_pixels: u32,
    /// Maximum number of sections that send or receive media in an offer of the client.
    #[serde(default = "max_sections")]
    pub max_sections: u32,
    /// Who else is here.
    pub participants: Vec<Participant>,
    /// What can be subscribed to.
    pub tracks: Vec<Track>,
    /// The client's own identity by its access token, where one was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub identity: Option<String>,
    /// What the client may do.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Whether nobody new may come in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub locked: bool,
    /// Whether whoever comes waits until a moderator admits them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub lobby: bool,
    /// Whether the room is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub recording: bool,
    /// The client's own attributes, which it had in `join`.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
    pub attributes: Attributes,
    /// By which the client comes back into a locked room, and past the lobby: a secret of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub seat: Option<String>,
    /// Servers that help the client to reach this one.
    #[serde(default, skip_serializing_if = "IceServers::is_empty")]
    pub ice: IceServers,
    /// Signalling addresses of other servers of the cluster, for when this one is lost; the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<String>>", optional))]
    pub others: Vec<String>,
}

/// A track that the client publishes.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTrack {
    /// The `a=mid` of the section that sends it.
    pub mid: String,
    /// The id by which `mute`, and the others, know it.
    pub track: String,
}

/// Someone in the room.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// The participant's id.
    pub id: String,
    /// The name to show.
    pub name: String,
    /// Who that is by the access token, where one was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub identity: Option<String>,
    /// Its id at the server that its room was on before, where it has just come from there: it takes that participant's
    /// place.
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
    /// The track's id, unique on the server.
    pub id: String,
    /// Id of the participant who publishes the track.
    pub participant: String,
    /// Audio or video.
    pub kind: TrackKind,
    /// The publisher's name for it, such as `camera`.
    pub name: String,
    /// Whether its owner muted it.
    pub muted: bool,
    /// The `stream` of the anchor messages; only of video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub stream: Option<u32>,
}

/// What was sent of one track in the last second.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrackStats {
    /// The subscribed track.
    pub track: String,
    /// Video in kbit/s.
    #[serde(rename = "video_kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub video_bitrate: Bitrate,
    /// Anchors in kbit/s.
    #[serde(rename = "anchor_kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub anchor_bitrate: Bitrate,
    /// Anchors each second.
    pub anchors_per_s: f64,
    /// Anchors dropped since the subscription began, for being late or for want of room.
    pub anchors_dropped: u64,
    /// Why no anchors are made of the track though this client could have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub refused: Option<Refusal>,
}

/// Something could not be done.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// The reason, for programs.
    pub code: ErrorCode,
    /// What happened, for people.
    pub message: String,
    /// What to do next, for people.
    pub hint: String,
    /// The id of the message that this answers, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub id: Option<u32>,
    /// Whether the server closes the socket after this.
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
