//! Requests of moderators, and the participants in a lobby.

use serde::{Deserialize, Serialize};

use crate::error::ProtocolError;
use crate::grant::Grant;
use crate::limits;

/// A moderator's request. `action` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Moderate {
    /// Set the grants of a participant, of `publish`, `subscribe`, `enhance` and `data`. The token's other grants stay.
    Grants {
        /// Id of the participant whose grants change.
        participant: String,
        /// All grants that the participant has from now on.
        grants: Vec<Grant>,
    },
    /// Lock the room, so that no new participants may enter, or unlock it.
    Lock {
        /// Whether the room is locked from now on.
        locked: bool,
    },
    /// Give the room a lobby, in which new participants wait until a moderator admits them, or remove it. Then all who
    /// wait are admitted.
    Lobby {
        /// Whether the room has a lobby from now on.
        lobby: bool,
    },
    /// Admit a participant in the lobby.
    Admit {
        /// `id` of the participant in the lobby.
        waiting: String,
    },
    /// Refuse a participant in the lobby.
    Refuse {
        /// `id` of the participant in the lobby.
        waiting: String,
    },
    /// Remove a participant. With a valid token it may join again.
    Remove {
        /// Id of the participant to remove.
        participant: String,
    },
    /// Remove a participant, and ban its identity from the room.
    Ban {
        /// Id of the participant to ban.
        participant: String,
        /// Time of the ban in seconds. Absent: until the participant's token and all others that were used have
        /// expired, and at least a day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        seconds: Option<u32>,
    },
    /// Lift a ban.
    Unban {
        /// Identity whose ban to lift.
        identity: String,
    },
    /// Mute a participant's track, so that its publisher cannot unmute it, or end that.
    Mute {
        /// Id of the track.
        track: String,
        /// Whether the track is muted from now on.
        muted: bool,
    },
}

/// A participant in the lobby.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knock {
    /// Id by which the participant is admitted or refused. It is not a participant id.
    pub id: String,
    /// Display name of the participant.
    pub name: String,
    /// Identity in the participant's access token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub identity: Option<String>,
}

impl Moderate {
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        match self {
            Moderate::Grants { participant, grants } => {
                limits::check_count("grants", grants.len(), Grant::ALL.len())?;
                limits::check_participant("participant", participant)
            }
            Moderate::Lock { .. } | Moderate::Lobby { .. } => Ok(()),
            Moderate::Admit { waiting } | Moderate::Refuse { waiting } => {
                limits::check_participant("waiting", waiting)
            }
            Moderate::Remove { participant } | Moderate::Ban { participant, .. } => {
                limits::check_participant("participant", participant)
            }
            Moderate::Unban { identity } => limits::check_identity(identity),
            Moderate::Mute { track, .. } => limits::check_track(track),
        }
    }
}
