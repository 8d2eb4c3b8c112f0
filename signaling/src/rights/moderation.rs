//! Requests of moderators and operators, which become rules.

use windlass_protocol::{ErrorCode, Grant, Moderate, ProtocolError};
use windlass_sfu::{ParticipantId, TrackId};

use super::{
    ALL_ROOMS, ANSWER_S, Content, Denied, EMPTY_RECORDING_S, EMPTY_ROOM_S, Entry, Full, Grantee,
    LocalParticipant, MIN_BAN_S, Recording, Rights, Rule, Subject, seat, unix_now_ms,
};
use crate::directory::Directory;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModerationError {
    /// The room or its lobby has no such participant.
    #[error("there is no such participant in the room")]
    UnknownParticipant,
    /// The room has no such track on this server.
    #[error("there is no such track in the room on this server")]
    UnknownTrack,
    /// A participant without identity cannot be banned: it could not be recognized.
    #[error("the participant cannot be banned: it has no identity")]
    NoIdentity,
    /// The grant is one that only tokens give.
    #[error(
        "the grant cannot change in a call: only `publish`, `subscribe`, `enhance` and `data` can"
    )]
    OtherGrant,
    /// There are too many rules.
    #[error(transparent)]
    Full(#[from] Full),
}

impl ModerationError {
    /// The code of the answer.
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            ModerationError::UnknownParticipant => ErrorCode::UnknownParticipant,
            ModerationError::UnknownTrack => ErrorCode::UnknownTrack,
            ModerationError::NoIdentity => ErrorCode::NoIdentity,
            ModerationError::OtherGrant => ErrorCode::Forbidden,
            ModerationError::Full(_) => ErrorCode::TooManyRules,
        }
    }
}

impl From<ModerationError> for ProtocolError {
    fn from(error: ModerationError) -> Self {
        ProtocolError::new(error.code(), error.to_string())
    }
}

/// Moderation of one room.
pub(crate) struct Moderation<'a> {
    pub rights: &'a Rights,
    pub directory: &'a Directory,
    pub room: &'a str,
}

/// A participant of the room.
struct Found {
    id: ParticipantId,
    /// Whether the participant is on this server.
    is_local: bool,
}

impl Moderation<'_> {
    /// Applies a moderator's request.
    pub(crate) fn apply(&self, request: Moderate) -> Result<(), ModerationError> {
        match request {
            Moderate::Grants { participant, grants } => self.grants(&participant, Some(grants)),
            Moderate::Lock { locked } => {
                let entry = Entry { locked, ..self.entry() };
                self.set_entry(entry, None)
            }
            Moderate::Lobby { lobby } => self.set_entry(Entry { lobby, ..self.entry() }, None),
            Moderate::Admit { waiting } => self.answer(&waiting, true),
            Moderate::Refuse { waiting } => self.answer(&waiting, false),
            Moderate::Remove { participant } => self.remove(&participant),
            Moderate::Ban { participant, seconds } => {
                let identity = self
                    .identity(self.find(&participant)?.id)
                    .ok_or(ModerationError::NoIdentity)?;
                self.ban(&identity, seconds)
            }
            Moderate::Unban { identity } => self.lift(self.room, Subject::Ban(identity)),
            Moderate::Mute { track, muted } => {
                let track: TrackId = track.parse().map_err(|_| ModerationError::UnknownTrack)?;
                let held = self.directory.hold(self.room, track, muted);
                held.map(|_| ()).ok_or(ModerationError::UnknownTrack)
            }
        }
    }

    /// Restrictions of entering the room.
    pub(crate) fn entry(&self) -> Entry {
        self.rights.inner.lock().book.entry(self.room)
    }

    /// Sets the restrictions, for `seconds` (at least [`EMPTY_ROOM_S`]), and for as long as the room has participants.
    pub(crate) fn set_entry(
        &self,
        entry: Entry,
        seconds: Option<u32>,
    ) -> Result<(), ModerationError> {
        if entry == Entry::default() {
            return self.lift(self.room, Subject::Entry);
        }
        let seconds = seconds.map_or(EMPTY_ROOM_S, |seconds| u64::from(seconds).max(EMPTY_ROOM_S));
        let Entry { locked, lobby } = entry;
        self.set(self.room, Subject::Entry, seconds, Content::Entry { locked, lobby })
    }

    /// Begins to record the room, or goes on with its recording. Returns the recording that holds from now on.
    pub(crate) fn record(&self, recording: Recording) -> Result<Recording, ModerationError> {
        if let Some(known) = self.recording() {
            return Ok(known);
        }
        let Recording { since, participant, enhanced } = recording.clone();
        let says = Content::Recording { since, participant, enhanced };
        self.set(self.room, Subject::Recording, EMPTY_RECORDING_S, says)?;
        Ok(recording)
    }

    /// Goes on with a recording after a restart. Rules about the recording that were made since the order keep
    /// precedence.
    pub(crate) fn resume_recording(&self, recording: &Recording) -> Result<(), ModerationError> {
        let Recording { since, participant, enhanced } = recording.clone();
        let says = Content::Recording { since, participant, enhanced };
        let until = unix_now_ms() / 1000 + EMPTY_RECORDING_S;
        let rule = Rule { at: since, until, follows: false, says };
        Ok(self.rights.put_unless_known(self.room, Subject::Recording, rule)?)
    }

    /// The recording of the room.
    pub(crate) fn recording(&self) -> Option<Recording> {
        self.rights.inner.lock().book.recording(self.room)
    }

    /// Ends the recording of the room.
    pub(crate) fn end_recording(&self) -> Result<(), ModerationError> {
        self.lift(self.room, Subject::Recording)
    }

    /// Sets a participant's grants, of `publish`, `subscribe`, `enhance` and `data`; `None`: those of its token.
    pub(crate) fn grants(
        &self,
        participant: &str,
        grants: Option<Vec<Grant>>,
    ) -> Result<(), ModerationError> {
        let id = self.find(participant)?.id;
        let about = Subject::Grants(
            self.identity(id).map_or(Grantee::Participant(id.0), Grantee::Identity),
        );
        let Some(mut grants) = grants else { return self.lift(self.room, about) };
        if grants.iter().any(|grant| !Grant::PARTICIPANT.contains(grant)) {
            return Err(ModerationError::OtherGrant);
        }
        grants.sort_unstable();
        grants.dedup();
        self.set_following(self.room, about, None, Content::Grants(grants))
    }

    /// Bans an identity from the room, for `seconds` or as long as its tokens are valid.
    pub(crate) fn ban(&self, identity: &str, seconds: Option<u32>) -> Result<(), ModerationError> {
        self.set_following(self.room, Subject::Ban(identity.to_owned()), seconds, Content::Holds)
    }

    /// Lifts a ban.
    pub(crate) fn unban(&self, identity: &str) -> Result<(), ModerationError> {
        self.lift(self.room, Subject::Ban(identity.to_owned()))
    }

    /// Banned identities, with the time at which the ban ends.
    pub(crate) fn bans(&self) -> Vec<(String, u64)> {
        self.rights.inner.lock().book.bans(self.room)
    }

    /// The participants in the lobby.
    pub(crate) fn waiting(&self) -> Vec<windlass_protocol::Knock> {
        self.rights.inner.lock().book.knocks(self.room)
    }

    /// Revokes an access token, for `seconds` or as long as it is valid.
    pub(crate) fn revoke(&self, token: &str, seconds: Option<u32>) -> Result<(), ModerationError> {
        self.set_following(ALL_ROOMS, Subject::Token(token.to_owned()), seconds, Content::Holds)
    }

    /// Lifts a revocation.
    pub(crate) fn reinstate(&self, token: &str) -> Result<(), ModerationError> {
        self.lift(ALL_ROOMS, Subject::Token(token.to_owned()))
    }

    /// Removes a participant from the room, on whichever server it is. Its seat token becomes invalid.
    pub(crate) fn remove(&self, participant: &str) -> Result<(), ModerationError> {
        let Found { id, is_local } = self.find(participant)?;
        let removed =
            self.set(self.room, Subject::Removed(id.0), seat::SEAT_VALID_S, Content::Holds);
        let mut inner = self.rights.inner.lock();
        match inner.participants.get_mut(&id).filter(|_| is_local && removed.is_err()) {
            // A local participant is removed even if there are too many rules.
            Some(person) => {
                person.ruling.send_modify(|ruling| ruling.denied = Some(Denied::Removed));
            }
            None => removed?,
        }
        Ok(())
    }

    /// Admits or refuses a participant in the lobby.
    pub(crate) fn answer(&self, waiting: &str, admitted: bool) -> Result<(), ModerationError> {
        if !self.waiting().iter().any(|knock| knock.id == waiting) {
            return Err(ModerationError::UnknownParticipant);
        }
        self.set(
            self.room,
            Subject::Answer(waiting.to_owned()),
            ANSWER_S,
            Content::Admitted(admitted),
        )
    }

    /// Finds a participant of the room.
    fn find(&self, participant: &str) -> Result<Found, ModerationError> {
        let id: ParticipantId =
            participant.parse().map_err(|_| ModerationError::UnknownParticipant)?;
        let inner = self.rights.inner.lock();
        let stays = |p: &LocalParticipant| {
            p.room == self.room && !p.loopback && p.ruling.borrow().denied.is_none()
        };
        let is_local = inner.participants.get(&id).is_some_and(stays);
        drop(inner);
        if is_local || self.directory.is_remote(self.room, id) {
            return Ok(Found { id, is_local });
        }
        Err(ModerationError::UnknownParticipant)
    }

    fn identity(&self, id: ParticipantId) -> Option<String> {
        self.directory.get(id).identity
    }

    fn set(
        &self,
        room: &str,
        about: Subject,
        seconds: u64,
        says: Content,
    ) -> Result<(), ModerationError> {
        let at = unix_now_ms();
        let rule = Rule { at, until: at / 1000 + seconds, follows: false, says };
        Ok(self.rights.set(room, about, rule)?)
    }

    /// Sets a rule for `seconds`, or for as long as tokens are valid: [`MIN_BAN_S`], or until the latest expiry of any
    /// token that was seen.
    fn set_following(
        &self,
        room: &str,
        about: Subject,
        seconds: Option<u32>,
        says: Content,
    ) -> Result<(), ModerationError> {
        let at = unix_now_ms();
        let now = at / 1000;
        let until = match seconds {
            Some(seconds) => now + u64::from(seconds),
            None => self.rights.inner.lock().latest_expiry.max(now + MIN_BAN_S),
        };
        let rule = Rule { at, until, follows: seconds.is_none(), says };
        Ok(self.rights.set(room, about, rule)?)
    }

    /// Lifts the rule about a subject. What lifts no rule is kept too, as one may be on its way from another server.
    /// Of that there may be little: it must not take the places of rules.
    fn lift(&self, room: &str, about: Subject) -> Result<(), ModerationError> {
        let lifting = {
            let book = &self.rights.inner.lock().book;
            if book.get(room, &about).is_none() && book.is_full_of_lifted(room) {
                return Ok(());
            }
            book.lifting(room, &about, unix_now_ms())
        };
        Ok(self.rights.set(room, about, lifting)?)
    }
}
