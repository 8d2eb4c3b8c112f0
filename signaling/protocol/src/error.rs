//! Every reason for which the server answers with an `error` message.

use serde::{Deserialize, Serialize};

/// The reason of an `error` message. Stable: clients may branch on it.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The server does not speak the client's protocol version.
    UnsupportedVersion,
    /// The message is not what the protocol says.
    Malformed,
    /// The message's `type` is unknown.
    UnknownType,
    /// The message needs a `join` before it.
    NotJoined,
    /// The socket has joined already.
    AlreadyJoined,
    /// No access token, or none that this server takes.
    Unauthorized,
    /// The access token was good once.
    TokenExpired,
    /// The access token does not allow this.
    Forbidden,
    /// The same identity has joined the room again, by another socket.
    Replaced,
    /// A moderator or operator removed the participant, or ended the room.
    Removed,
    /// Nobody of this identity may be in the room.
    Banned,
    /// The access token was revoked.
    Revoked,
    /// A moderator did not let the client in, or nobody did in time.
    Refused,
    /// The room is locked: nobody new may come in.
    Locked,
    /// The room has as many participants as it may.
    RoomFull,
    /// The server has as many rooms or participants as it may.
    ServerFull,
    /// The session description cannot be used.
    BadSdp,
    /// There is no such track.
    UnknownTrack,
    /// There is no such participant in the room, or nobody of that id waits.
    UnknownParticipant,
    /// The participant has no identity: nothing tells it from others when it comes again.
    NoIdentity,
    /// There are as many bans and other rules as there may be.
    TooManyRules,
    /// No codec is common to both sides.
    NoCodec,
    /// A message or field is beyond its bound.
    TooLarge,
    /// Messages come faster than the server takes them.
    RateLimited,
    /// No media connection came up in time.
    NoMedia,
    /// The server is going down.
    ShuttingDown,
    /// The server failed; the fault is not the client's.
    Internal,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [ErrorCode; 27] = [
        ErrorCode::UnsupportedVersion,
        ErrorCode::Malformed,
        ErrorCode::UnknownType,
        ErrorCode::NotJoined,
        ErrorCode::AlreadyJoined,
        ErrorCode::Unauthorized,
        ErrorCode::TokenExpired,
        ErrorCode::Forbidden,
        ErrorCode::Replaced,
        ErrorCode::Removed,
        ErrorCode::Banned,
        ErrorCode::Revoked,
        ErrorCode::Refused,
        ErrorCode::Locked,
        ErrorCode::RoomFull,
        ErrorCode::ServerFull,
        ErrorCode::BadSdp,
        ErrorCode::UnknownTrack,
        ErrorCode::UnknownParticipant,
        ErrorCode::NoIdentity,
        ErrorCode::TooManyRules,
        ErrorCode::NoCodec,
        ErrorCode::TooLarge,
        ErrorCode::RateLimited,
        ErrorCode::NoMedia,
        ErrorCode::ShuttingDown,
        ErrorCode::Internal,
    ];

    /// What the client, or the person before it, can do next.
    pub fn hint(self) -> &'static str {
        match self {
            ErrorCode::UnsupportedVersion => {
                "Reload the page to get the client that fits this server."
            }
            ErrorCode::Malformed => "Correct the message as docs/signaling.md describes it.",
            ErrorCode::UnknownType => "Use one of the message types in docs/signaling.md.",
            ErrorCode::NotJoined => "Send `join` and wait for `welcome` first.",
            ErrorCode::AlreadyJoined => "Send `leave`, or open a second socket for another call.",
            ErrorCode::Unauthorized => {
                "Ask whoever runs the application for an access token, and join with it."
            }
            ErrorCode::TokenExpired => "Get a new access token, and join with it.",
            ErrorCode::Forbidden => "Use an access token for this room that allows it.",
            ErrorCode::Replaced => "Go on where you joined last, or join again from here.",
            ErrorCode::Removed | ErrorCode::Banned | ErrorCode::Revoked | ErrorCode::Refused => {
                "Ask whoever runs the call."
            }
            ErrorCode::Locked => "Ask somebody in the room to unlock it.",
            ErrorCode::UnknownParticipant => "They may have just gone.",
            ErrorCode::NoIdentity => {
                "Lock the room, or let the server ask for access tokens, which have identities."
            }
            ErrorCode::TooManyRules => "End bans that are not needed, or wait until some end.",
            ErrorCode::RoomFull => "Choose another room, or try again when someone has left.",
            ErrorCode::ServerFull => "Try again in a moment, or ask the operator for more room.",
            ErrorCode::BadSdp => "Send the browser's own offer, with the mids that it contains.",
            ErrorCode::UnknownTrack => {
                "Subscribe to tracks of `welcome` and `track_added` that are still there."
            }
            ErrorCode::NoCodec => "Use a browser with VP9 video and Opus audio.",
            ErrorCode::TooLarge => "Keep within the limits in docs/signaling.md.",
            ErrorCode::RateLimited => "Send fewer messages each second.",
            ErrorCode::NoMedia => {
                "Send an offer within 30 seconds of `join`; if you did, check that the network lets media through."
            }
            ErrorCode::ShuttingDown => "Reconnect in a few seconds.",
            ErrorCode::Internal => {
                "Reconnect; if it happens again, tell the operator the time of it."
            }
        }
    }

    /// Whether the server always closes the socket after the error. Others close it only where
    /// the `error` message says so.
    pub fn fatal(self) -> bool {
        matches!(
            self,
            ErrorCode::NoMedia
                | ErrorCode::ShuttingDown
                | ErrorCode::Replaced
                | ErrorCode::Removed
                | ErrorCode::Banned
                | ErrorCode::Revoked
                | ErrorCode::Refused
        )
    }
}

/// Why a text is not a client message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    /// The code of the `error` message to answer with.
    pub code: ErrorCode,
    /// What is wrong, for the developer of a client. Never quotes the message's secrets.
    pub message: String,
    /// The id of the refused message, where one could be read.
    pub id: Option<u32>,
}

impl ProtocolError {
    /// An error that is not yet tied to a message id.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), id: None }
    }

    /// This error as the answer to message `id`.
    #[must_use]
    pub fn answering(mut self, id: Option<u32>) -> Self {
        self.id = id;
        self
    }
}
