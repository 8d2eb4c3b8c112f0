//! Reasons for which the server answers with an `error` message.

use serde::{Deserialize, Serialize};

/// The reason of an `error` message. Stable: clients may branch on it.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The server does not speak the client's protocol version.
    UnsupportedVersion,
    /// The message is not JSON, or not in the form that the protocol requires.
    Malformed,
    /// The message's `type` is unknown.
    UnknownType,
    /// The message needs a `join` before it.
    NotJoined,
    /// The socket has joined already.
    AlreadyJoined,
    /// There is no access token, or this server does not accept it.
    Unauthorized,
    /// The access token has expired.
    TokenExpired,
    /// The access token does not allow this.
    Forbidden,
    /// Another client has joined the room with this identity.
    Replaced,
    /// A moderator or operator removed the participant, or ended the room.
    Removed,
    /// The identity is banned from the room, or from all rooms.
    Banned,
    /// The access token was revoked.
    Revoked,
    /// A moderator refused the client in the lobby, or no moderator answered in time.
    Refused,
    /// The room is locked: no new participants may enter.
    Locked,
    /// The room has its maximum number of participants.
    RoomFull,
    /// The server has its maximum number of rooms or participants.
    ServerFull,
    /// The session description cannot be used.
    BadSdp,
    /// There is no such track.
    UnknownTrack,
    /// There is no such participant in the room or in its lobby.
    UnknownParticipant,
    /// The participant has no identity, so a ban would not recognize it.
    NoIdentity,
    /// There is the maximum number of bans and other rules.
    TooManyRules,
    /// Client and server have no codec in common.
    NoCodec,
    /// A message or field exceeds its limit.
    TooLarge,
    /// The client sends messages too fast.
    RateLimited,
    /// The media connection did not come up in time.
    NoMedia,
    /// The server is shutting down.
    ShuttingDown,
    /// The server has failed; the client is not at fault.
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

    /// What the client, or its user, can do next.
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

    /// Whether the server always closes the socket after this error. After other errors it does so only where the
    /// `error` message says so.
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

/// Why a text is not a valid client message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    /// Code of the `error` message that answers the text.
    pub code: ErrorCode,
    /// What is wrong, for the developer of a client. The text never quotes the message's secrets.
    pub message: String,
    /// Id of the refused message, if it could be read.
    pub id: Option<u32>,
}

impl ProtocolError {
    /// An error that does not have the id of a message yet.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), id: None }
    }

    /// This error as the answer to the message with the id `id`.
    #[must_use]
    pub fn answering(mut self, id: Option<u32>) -> Self {
        self.id = id;
        self
    }
}
