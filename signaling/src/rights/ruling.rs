//! Result of the rules for one participant: why it must leave, or what it may do.

use std::sync::Arc;

use windlass_protocol::{ErrorCode, Knock, ProtocolError};

use super::book::Entry;
use crate::access::Grants;

/// The rights of a local participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Why the participant must leave; `None`: it may stay.
    pub denied: Option<Denied>,
    /// Grants of the participant.
    pub grants: Grants,
    /// Restrictions of entering the room.
    pub entry: Entry,
    /// Whether the room is recorded.
    pub recording: bool,
    /// The participants in the lobby, for moderators.
    pub waiting: Arc<Vec<Knock>>,
}

/// Why a participant may not be in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A moderator or operator removed the participant.
    #[error("you were removed from the room")]
    Removed,
    /// The identity is banned.
    #[error("you are banned from the room")]
    Banned,
    /// The access token was revoked.
    #[error("the access token was revoked")]
    Revoked,
    /// A moderator refused the participant in the lobby.
    #[error("a moderator or operator refused you")]
    Refused,
    /// No moderator answered within `MAX_WAIT_S`.
    #[error("no moderator admitted you in time")]
    Forgotten,
    /// Another client has entered the lobby with this identity.
    #[error("your identity waits in the lobby with another client")]
    Again,
    /// The room is locked.
    #[error("the room is locked")]
    Locked,
    /// The room has a lobby, in which WHIP and WHEP cannot wait.
    #[error("the room has a lobby, in which WHIP and WHEP clients cannot wait")]
    Lobby,
    /// The lobby is full.
    #[error("the lobby of the room is full")]
    LobbyFull,
}

impl Denied {
    /// The code of the answer.
    pub fn code(self) -> ErrorCode {
        match self {
            Denied::Removed => ErrorCode::Removed,
            Denied::Banned => ErrorCode::Banned,
            Denied::Revoked => ErrorCode::Revoked,
            Denied::Refused | Denied::Forgotten => ErrorCode::Refused,
            Denied::Again => ErrorCode::Replaced,
            Denied::Locked | Denied::Lobby => ErrorCode::Locked,
            Denied::LobbyFull => ErrorCode::RoomFull,
        }
    }
}

impl From<Denied> for ProtocolError {
    fn from(out: Denied) -> Self {
        ProtocolError::new(out.code(), out.to_string())
    }
}
