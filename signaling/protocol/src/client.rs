//! Messages of the client.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_types::{
    Attributes, DecayReport, FrameNetwork, Layer, NoNetwork, Rung, TrackKind, UplinkReport,
};

use crate::data::{SendData, SetAttributes};
use crate::error::{ErrorCode, ProtocolError};
use crate::grant::AccessToken;
use crate::limits;
use crate::moderate::Moderate;

/// Name of the codec of all anchors: High-throughput JPEG 2000.
pub const ANCHOR_CODEC: &str = "htj2k";

/// A client's message with the id that its answer will carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Id that the client chooses, repeated in the `answer` or `error`. An `offer` must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// The message.
    #[serde(flatten)]
    pub message: ClientMessage,
}

/// A message of the client. `type` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Enter a room. The answer is `welcome`.
    Join(Join),
    /// Send a WebRTC offer, with the tracks of its sections. The answer is `answer`.
    Offer(Offer),
    /// Set the maximum rung of a subscribed track.
    SetRung(SetRung),
    /// Say how a track is shown: the size of its tile, and whether it is pinned.
    View(View),
    /// Ask for a key anchor of a track, which needs no other anchor. The client lacks those that later anchors build
    /// on.
    KeyAnchor {
        /// The subscribed track.
        track: String,
    },
    /// Say whether one's own track is muted.
    Mute {
        /// The participant's own track.
        track: String,
        /// Whether it is muted now.
        muted: bool,
    },
    /// Report how a subscribed track was shown since the last report.
    Report(Report),
    /// Report the uplink of one's own track, as the browser measures it.
    Uplink(Uplink),
    /// Send a message to others in the room.
    Send(SendData),
    /// Change the attributes and the name that the others see of this participant.
    Attributes(SetAttributes),
    /// Ask for STUN and TURN servers, with fresh names and passwords. The answer is `ice_servers`.
    IceServers {},
    /// Say that the client has joined the room on the server that `moved` named, and needs this server no more. Other
    /// participants here may still need what the client sends. The server closes the socket once nobody does.
    Arrived {},
    /// Send a moderator's request. Needs the grant `moderate`. The answer is `done`.
    Moderate(Moderate),
    /// Leave the room, or the lobby. The socket stays open for another `join`.
    Leave {},
    /// Ask for a `pong` with the same time.
    Ping {
        /// Time by the client's own clock; the server only repeats it.
        time: f64,
    },
}

/// Enter a room.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Protocol version of the client.
    pub version: u32,
    /// Name of the room, as in its link.
    pub room: String,
    /// Display name, which the others see.
    pub name: String,
    /// Whether to join a loopback room, in which the participant is alone and may subscribe to its own tracks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// Names of the anchor codecs that the client can decode. Unknown names are ignored. Without `htj2k`, the client
    /// gets plain rungs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub anchor_codecs: Option<Vec<String>>,
    /// Access token, for a server with token keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub token: Option<AccessToken>,
    /// Ticket of the `moved` message, where a server has sent the client here. By it the others learn whose place the
    /// client takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub ticket: Option<String>,
    /// Seat token of the last `welcome` to the room. With it, the client may come back into a locked room, and does not
    /// wait in the lobby.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub seat: Option<String>,
    /// Attributes of the participant at first: after a lost connection, or on another server, those that it had. They
    /// are ignored without the grant `data`.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Attributes>", optional))]
    pub attributes: Attributes,
}

impl Join {
    /// Whether the client can decode anchors.
    pub fn decodes_anchors(&self) -> bool {
        self.anchor_codecs.iter().flatten().any(|name| name == ANCHOR_CODEC)
    }
}

/// A WebRTC offer, with the tracks of its sections.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Session description of the browser.
    pub sdp: String,
    /// Sections that send a track.
    #[serde(default)]
    pub publish: Vec<Publish>,
    /// Sections that receive a track.
    #[serde(default)]
    pub subscribe: Vec<Subscribe>,
}

/// A section of an offer that sends a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// `a=mid` of the section.
    pub mid: String,
    /// Whether the section sends audio or video.
    pub kind: TrackKind,
    /// Name of the track that the others see, such as `camera`.
    pub name: String,
    /// Largest layer of a video that the client sends where its uplink carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub max: Option<Layer>,
    /// Whether its frames are encrypted end to end. The server then reads none of it, and does not record it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub encrypted: bool,
    /// `a=mid` of an earlier entry, whose video this one sends in another codec. Nobody is told of such a backup: those
    /// who cannot decode the other's codec get it in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub backup_of: Option<String>,
}

/// A section of an offer that receives a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribe {
    /// `a=mid` of the section.
    pub mid: String,
    /// Id of the track that the section receives.
    pub track: String,
    /// Maximum rung from the first packet on. Absent: the last `set_rung` holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub max: Option<Rung>,
}

/// Set the maximum rung of a subscribed track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRung {
    /// The subscribed track.
    pub track: String,
    /// Maximum rung of the track.
    pub max: Rung,
}

/// How a subscribed track is shown. The server derives from it which layer suffices, and the track's weight among
/// others.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The subscribed track.
    pub track: String,
    /// Width of the tile in device pixels; 0: the tile is not visible, and the track is not sent.
    pub width: u16,
    /// Height of the tile in device pixels; 0: the tile is not visible, and the track is not sent.
    pub height: u16,
    /// Whether the user has pinned the tile, so that the track comes before all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub pinned: bool,
}

/// Report on a subscribed track since the last report. Absent figures are zero.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The subscribed track.
    pub track: String,
    /// Frames shown, per second.
    pub shown_fps: f64,
    /// Frames shown with detail from anchors, per second.
    pub enhanced_fps: f64,
    /// Number of anchors that were used.
    pub anchors_used: u32,
    /// Number of used anchors that came after their frame was shown.
    pub anchors_late: u32,
    /// Number of anchors that began to arrive, but could not be used.
    pub anchors_lost: u32,
    /// Number of anchors that added nothing to their frame.
    pub anchors_duplicate: u32,
    /// Number of anchors that came after one of a newer epoch.
    pub anchors_former_epoch: u32,
    /// Median time from a frame's arrival at the server to its anchor's use, in ms.
    pub latency_p50_ms: f64,
    /// 95th percentile of the time from a frame's arrival at the server to its anchor's use, in ms.
    pub latency_p95_ms: f64,
    /// Mean time to decode a frame, in ms.
    pub decode_ms: f64,
    /// Mean time to rebuild a frame's HR picture, in ms.
    pub reconstruct_ms: f64,
    /// Network that runs on every frame.
    pub network: FrameNetwork,
    /// Why no network runs, where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub no_network: Option<NoNetwork>,
    /// How the picture gets worse after an anchor, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub anchor_decay: Option<DecayReport>,
}

/// Report on the uplink of one's own track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uplink {
    /// The participant's own track.
    pub track: String,
    /// The report, by the browser's measurements.
    #[serde(flatten)]
    pub report: UplinkReport,
}

/// All values of `type` in a client's message.
const TYPES: [&str; 15] = [
    "join",
    "offer",
    "set_rung",
    "view",
    "key_anchor",
    "mute",
    "report",
    "uplink",
    "send",
    "attributes",
    "ice_servers",
    "arrived",
    "moderate",
    "leave",
    "ping",
];

impl Request {
    /// Reads one message. Never panics. The error has its code and, where it could be read, the id of the message.
    ///
    /// # Errors
    ///
    /// Fails if the text is longer than [`limits::MESSAGE_BYTES`], is not JSON, or is not a message of the protocol
    /// within its limits.
    pub fn parse(text: &str) -> Result<Request, ProtocolError> {
        if text.len() > limits::MESSAGE_BYTES {
            return Err(ProtocolError::new(
                ErrorCode::TooLarge,
                format!(
                    "the message has {} bytes; {} are allowed",
                    text.len(),
                    limits::MESSAGE_BYTES
                ),
            ));
        }
        let value: Value = serde_json::from_str(text).map_err(|e| {
            ProtocolError::new(ErrorCode::Malformed, format!("not a JSON text: {e}"))
        })?;
        let id = read_id(&value)?;
        Self::from_value(id, value).map_err(|e| e.answering(id))
    }

    /// The message as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn from_value(id: Option<u32>, value: Value) -> Result<Request, ProtocolError> {
        let Some(kind) = value.get("type").and_then(Value::as_str) else {
            return Err(ProtocolError::new(
                ErrorCode::Malformed,
                "a message is a JSON object with a text field `type`",
            ));
        };
        if !TYPES.contains(&kind) {
            return Err(ProtocolError::new(
                ErrorCode::UnknownType,
                format!("the type is none of {}", TYPES.join(", ")),
            ));
        }
        if kind == "join" {
            check_version(&value)?;
        }
        let kind = kind.to_owned();
        let message: ClientMessage = serde_json::from_value(value)
            .map_err(|e| ProtocolError::new(ErrorCode::Malformed, format!("`{kind}`: {e}")))?;
        if matches!(message, ClientMessage::Offer(_)) && id.is_none() {
            return Err(ProtocolError::new(ErrorCode::Malformed, "`offer` needs an `id`"));
        }
        message.check()?;
        Ok(Request { id, message })
    }
}

impl ClientMessage {
    /// Reads one message, without its id.
    ///
    /// # Errors
    ///
    /// Fails where [`Request::parse`] does.
    pub fn parse(text: &str) -> Result<ClientMessage, ProtocolError> {
        Request::parse(text).map(|r| r.message)
    }

    /// Refuses a message that exceeds the [`limits`].
    fn check(&self) -> Result<(), ProtocolError> {
        match self {
            ClientMessage::Join(join) => {
                limits::check_room(&join.room)?;
                limits::check_name(&join.name)?;
                join.token.as_ref().map_or(Ok(()), limits::check_access_token)?;
                join.seat.as_deref().map_or(Ok(()), limits::check_seat)?;
                join.ticket.as_deref().map_or(Ok(()), limits::check_ticket)?;
                limits::check_attributes(&join.attributes)?;
                join.anchor_codecs.as_deref().map_or(Ok(()), limits::check_codecs)
            }
            ClientMessage::Offer(offer) => offer.check(),
            ClientMessage::SetRung(SetRung { track, .. })
            | ClientMessage::View(View { track, .. })
            | ClientMessage::KeyAnchor { track }
            | ClientMessage::Mute { track, .. }
            | ClientMessage::Uplink(Uplink { track, .. })
            | ClientMessage::Report(Report { track, .. }) => limits::check_track(track),
            ClientMessage::Moderate(moderate) => moderate.check(),
            ClientMessage::Send(send) => send.check(),
            ClientMessage::Attributes(attributes) => attributes.check(),
            ClientMessage::IceServers {}
            | ClientMessage::Arrived {}
            | ClientMessage::Leave {}
            | ClientMessage::Ping { .. } => Ok(()),
        }
    }
}

impl Offer {
    fn check(&self) -> Result<(), ProtocolError> {
        limits::check_sdp(&self.sdp)?;
        limits::check_count("publish", self.publish.len(), limits::PUBLISHED_TRACKS)?;
        limits::check_count("subscribe", self.subscribe.len(), limits::SUBSCRIBED_TRACKS)?;
        for publish in &self.publish {
            limits::check_mid(&publish.mid)?;
            limits::check_name(&publish.name)?;
        }
        for subscribe in &self.subscribe {
            limits::check_mid(&subscribe.mid)?;
            limits::check_track(&subscribe.track)?;
        }
        let mut mids: Vec<&str> = self.publish.iter().map(|p| p.mid.as_str()).collect();
        mids.extend(self.subscribe.iter().map(|s| s.mid.as_str()));
        mids.sort_unstable();
        if mids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ProtocolError::new(
                ErrorCode::Malformed,
                "`publish` and `subscribe` name a mid twice",
            ));
        }
        Ok(())
    }
}

/// Checks the version of a `join` before anything else, as its other fields may differ in other versions.
fn check_version(value: &Value) -> Result<(), ProtocolError> {
    match value.get("version").and_then(Value::as_u64) {
        Some(v) if v == u64::from(crate::VERSION) => Ok(()),
        Some(v) => Err(ProtocolError::new(
            ErrorCode::UnsupportedVersion,
            format!("this server speaks protocol version {}, the client {v}", crate::VERSION),
        )),
        None => {
            Err(ProtocolError::new(ErrorCode::Malformed, "`join` needs a whole number `version`"))
        }
    }
}

fn read_id(value: &Value) -> Result<Option<u32>, ProtocolError> {
    match value.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(id) => id.as_u64().and_then(|id| u32::try_from(id).ok()).map(Some).ok_or_else(|| {
            ProtocolError::new(
                ErrorCode::Malformed,
                "`id` must be a whole number from 0 to 4294967295",
            )
        }),
    }
}
