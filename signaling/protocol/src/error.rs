//! Reasons for which the server answers with an `error` message.

use serde::{Deserialize, Serialize};

crate::described! {
    /// The reason of an `error` message. Stable: clients may branch on it.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ErrorCode {
        /// The server does not speak the version in `join`.
        UnsupportedVersion,
        /// Not JSON, no `type`, a field missing or of the wrong kind, or a binary frame. Everything else goes on.
        Malformed,
        /// The server does not know the message's `type`.
        UnknownType,
        /// The message needs a `join` before it.
        NotJoined,
        /// A second `join` on one socket.
        AlreadyJoined,
        /// No access token, or an invalid one: malformed, not signed by a key of the server, or not valid yet.
        Unauthorized,
        /// The access token has expired.
        TokenExpired,
        /// The token is for another room or lacks the grant. Or an operator has muted the track. Or the token sets
        /// the name that `attributes` would change.
        Forbidden,
        /// The same identity has joined the room again by another socket. Fatal: do not reconnect.
        Replaced,
        /// A moderator or operator removed the participant, or ended the room. Fatal: do not reconnect.
        Removed,
        /// The identity is banned from the room, or from all rooms. Fatal: do not reconnect.
        Banned,
        /// The access token was revoked. Fatal: do not reconnect.
        Revoked,
        /// A moderator refused the client in the lobby, or nobody admitted it in half an hour. Fatal: do not
        /// reconnect.
        Refused,
        /// Nobody new may enter the room. For WHIP and WHEP also if it has a lobby.
        Locked,
        /// The room is at its maximum of participants, or, to an offer, of tracks.
        RoomFull,
        /// The server is at its maximum of rooms or participants.
        ServerFull,
        /// The session description cannot be used. A listed mid is not in it. Or a payload type stands for two
        /// codecs, or for another one than before. Or sections of the last offer are missing or in another order.
        BadSdp,
        /// No such track; to `mute`: not a track of this client. `track_removed` may be on its way.
        UnknownTrack,
        /// No participant, and nobody in the lobby, has that id.
        UnknownParticipant,
        /// A ban of a participant without identity, as in open rooms: a ban would not recognize it.
        NoIdentity,
        /// The room or the server is at its maximum of bans and other rules.
        TooManyRules,
        /// A section of video has none of VP9 (profile 0), VP8, H.264 (baseline, packetization mode 1) and AV1
        /// (main). Or one of audio has no Opus.
        NoCodec,
        /// Beyond a limit of size or number. Fatal if it is the number of data channels.
        TooLarge,
        /// Beyond a rate, or too many joins from the client's address in a minute. The message had no effect.
        RateLimited,
        /// No offer came within 30 s of `join`, or no media connection came up within 30 s of the first offer.
        /// Fatal.
        NoMedia,
        /// The server stops, or, to `join`, will stop and takes no new rooms. Fatal.
        ShuttingDown,
        /// A fault of the server, or the media connection was lost. Fatal, except to an offer, where a fatal one
        /// follows.
        Internal,
    }
}

impl ErrorCode {
    /// What the client, or its user, can do next.
    pub fn hint(self) -> &'static str {
        match self {
            ErrorCode::UnsupportedVersion => {
                "Reload the page to get the client that fits this server."
            }
            ErrorCode::Malformed => "Correct the client: docs/signaling.md describes its messages.",
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
            ErrorCode::NoCodec => {
                "Use a browser with Opus audio, and with VP9, VP8, H.264 or AV1 video."
            }
            ErrorCode::TooLarge => "Keep within the limits in docs/signaling.md.",
            ErrorCode::RateLimited => {
                "Wait a moment, then send less often: docs/signaling.md has the limits. One offer can have all changes."
            }
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
