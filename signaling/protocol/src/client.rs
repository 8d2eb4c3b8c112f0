//! What a client may say.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_types::{Attributes, FrameNetwork, Layer, NoNetwork, Rung, UplinkReport};

use crate::data::{SendData, SetAttributes};
use crate::error::{ErrorCode, ProtocolError};
use crate::grant::AccessToken;
use crate::limits;
use crate::moderate::Moderate;

/// The name of the codec of all anchors: High-throughput JPEG 2000.
pub const ANCHOR_CODEC: &str = "htj2k";

/// One client message with the id that its answer will carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Chosen by the client, echoed in the `answer` or `error`. An `offer` must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// The message.
    #[serde(flatten)]
    pub message: ClientMessage,
}

/// What a client may say; `type` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Enter a room. The answer is `welcome`.
    Join(Join),
    /// A WebRTC offer with what its sections mean. The answer is `answer`.
    Offer(Offer),
    /// Cap what this participant is given of a track.
    SetRung(SetRung),
    /// Tell how a track is shown.
    View(View),
    /// Ask for a key anchor, which rests on no other: the client has none of those that this track's are added to.
    KeyAnchor {
        /// The subscribed track.
        track: String,
    },
    /// Tell that one's own track is muted, or no longer.
    Mute {
        /// The participant's own track.
        track: String,
        /// Whether it is muted now.
        muted: bool,
    },
    /// What the browser made of a track since its last report.
    Report(Report),
    /// What the browser says of the uplink of one's own track.
    Uplink(Uplink),
    /// Send a message to others in the room.
    Send(SendData),
    /// Change what the others are told of this participant.
    Attributes(SetAttributes),
    /// Ask for servers that help to reach this one, with names and passwords that are good from now on. The answer is
    /// `ice_servers`.
    IceServers {},
    /// One is in the room at the server that `moved` named, and needs nothing of this one any more; what one sends to
    /// it others may need still. The server closes the socket once nobody does.
    Arrived {},
    /// Say who else may be in the room, and what they may do there. Needs the grant `moderate`. The answer is `done`.
    Moderate(Moderate),
    /// Leave the room, or the lobby; the socket stays open for another `join`.
    Leave {},
    /// Ask for a `pong` with the same time.
    Ping {
        /// The client's own clock; the server only echoes it.
        time: f64,
    },
}

/// Enter a room.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The protocol version that the client speaks.
    pub version: u32,
    /// The room's name, as in its link.
    pub room: String,
    /// The name that the others see.
    pub name: String,
    /// A room of one's own, in which one receives one's own tracks as others would.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// Names of the anchor codecs that the client can decode; unknown ones are ignored. Without `htj2k` it gets plain
    /// rungs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub anchor_codecs: Option<Vec<String>>,
    /// What lets the client in, on a server with token keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub token: Option<AccessToken>,
    /// What `moved` gave, where a server has sent the client here: the others learn whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub ticket: Option<String>,
    /// The `seat` of one's last `welcome` to the room: with it one comes back into a locked room, and past the lobby.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub seat: Option<String>,
    /// What the others are told of this participant: after a lost connection, or at another server, the attributes that
    /// it had. Without the grant `data` they are ignored.
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

/// A WebRTC offer with what its sections mean.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The browser's session description.
    pub sdp: String,
    /// The sections that send.
    #[serde(default)]
    pub publish: Vec<Publish>,
    /// The sections that receive.
    #[serde(default)]
    pub subscribe: Vec<Subscribe>,
}

/// Audio or video.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// Opus.
    Audio,
    /// VP9, possibly in several layers.
    Video,
}

/// A section of an offer that sends a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The section's `a=mid`.
    pub mid: String,
    /// Whether the section sends audio or video.
    pub kind: TrackKind,
    /// What the others see as the track's name, such as `camera`.
    pub name: String,
    /// Of video: the largest layer that the client sends where its uplink carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub max: Option<Layer>,
}

/// A section of an offer that receives a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribe {
    /// The section's `a=mid`.
    pub mid: String,
    /// The track that it shall receive.
    pub track: String,
    /// The best rung that it may get, from its first packet on; without, what `set_rung` said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub max: Option<Rung>,
}

/// Cap what a participant is given of a track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRung {
    /// The subscribed track.
    pub track: String,
    /// The best rung that it may get.
    pub max: Rung,
}

/// How a subscribed track is shown: what is enough for it, and how much it matters beside the others, follows.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The subscribed track.
    pub track: String,
    /// Width of its place on the screen in pixels of the device; 0: it is not seen, and not sent.
    pub width: u16,
    /// Height of its place on the screen in pixels of the device; 0: it is not seen, and not sent.
    pub height: u16,
    /// Whether its user wants it above all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub pinned: bool,
}

/// What a browser made of a track since its last report. Absent figures are zero.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The subscribed track.
    pub track: String,
    /// Frames shown each second.
    pub shown_fps: f64,
    /// Frames shown with detail from anchors each second.
    pub enhanced_fps: f64,
    /// Anchors used.
    pub anchors_used: u32,
    /// Of these, anchors that came after their frame was shown.
    pub anchors_late: u32,
    /// Anchors that began to arrive but could not be used.
    pub anchors_lost: u32,
    /// Anchors that gave nothing that their frame had not.
    pub anchors_duplicate: u32,
    /// Anchors that came after one of a newer epoch.
    pub anchors_former_epoch: u32,
    /// Median time from a frame's arrival at the server to its anchor's use, in ms.
    pub latency_p50_ms: f64,
    /// 95th percentile of the same, in ms.
    pub latency_p95_ms: f64,
    /// Mean time to decode a frame, in ms.
    pub decode_ms: f64,
    /// Mean time to rebuild a frame's HR picture, in ms.
    pub reconstruct_ms: f64,
    /// The network that runs on every frame.
    pub network: FrameNetwork,
    /// Why none runs, where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub no_network: Option<NoNetwork>,
    /// By how much the picture gets worse with each frame after an anchor, in mean square grey levels of luma.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub decay: Option<f64>,
    /// In how many frames after it that was seen, in the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub decay_frames: Option<f64>,
}

/// What a browser says of the uplink of one's own track.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uplink {
    /// The participant's own track.
    pub track: String,
    /// What it says.
    #[serde(flatten)]
    pub report: UplinkReport,
}

/// Every `type` that a client may send.
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
    /// Reads one message. Never panics; what is wrong comes back with its code and, where one
    /// could be read, the message's id.
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
    /// Reads one message and forgets its id.
    ///
    /// # Errors
    ///
    /// Fails where [`Request::parse`] does.
    pub fn parse(text: &str) -> Result<ClientMessage, ProtocolError> {
        Request::parse(text).map(|r| r.message)
    }

    /// Refuses what is beyond [`limits`].
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

/// The version decides before anything else of a `join`: its other fields may have changed.
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
