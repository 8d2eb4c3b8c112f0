//! What moderators ask for, and what they are told for it.

use serde::{Deserialize, Serialize};

use crate::error::ProtocolError;
use crate::grant::Grant;
use crate::limits;

/// What a moderator wants; `action` in JSON is the variant's name in snake case.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Moderate {
    /// What a participant may do from now on, of `publish`, `subscribe`, `enhance` and `data`; its token's other grants
    /// stay.
    Grants {
        /// Id of the participant whose grants change.
        participant: String,
        /// All grants that the participant has from now on.
        grants: Vec<Grant>,
    },
    /// Let nobody new into the room, or end that.
    Lock {
        /// Whether it is locked from now on.
        locked: bool,
    },
    /// Let whoever comes wait until a moderator admits them, or end that: then all who wait are let in.
    Lobby {
        /// Whether there is one from now on.
        lobby: bool,
    },
    /// Let in who waits.
    Admit {
        /// The `id` of who knocked.
        waiting: String,
    },
    /// Send away who waits.
    Refuse {
        /// The `id` of who knocked.
        waiting: String,
    },
    /// Remove a participant; a token that is still good lets it in again.
    Remove {
        /// Id of the participant to remove.
        participant: String,
    },
    /// Remove a participant, and let nobody of its identity in any more.
    Ban {
        /// Id of the participant to ban.
        participant: String,
        /// How long the ban holds, in seconds; without, for as long as its token, or any other, may live.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "typescript", ts(optional))]
        seconds: Option<u32>,
    },
    /// End a ban.
    Unban {
        /// Identity of the ban to end.
        identity: String,
    },
    /// Mute somebody's track, whatever its owner says, or end that.
    Mute {
        /// The track.
        track: String,
        /// Whether it is muted from now on.
        muted: bool,
    },
}

/// Somebody who waits in the lobby.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knock {
    /// By which it is admitted or refused; it is no participant's.
    pub id: String,
    /// The name to show.
    pub name: String,
    /// Who that is by the access token, where one was needed.
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
