//! What moderators and operators may say, made rules.

use windlass_protocol::{ErrorCode, Grant, Moderate, ProtocolError};
use windlass_sfu::{ParticipantId, TrackId};

use super::{
    ALL_ROOMS, ANSWER, About, DAY, Door, EMPTY, Full, Out, Person, Rights, Rule, Says, Whom, seat,
    unix_now_ms,
};
use crate::directory::Directory;

/// Why an order cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OrderError {
    /// Nobody of that id is in the room, or waits.
    #[error("there is no such participant in the room")]
    UnknownParticipant,
    /// No track of that id is in the room, on this server.
    #[error("there is no such track in the room on this server")]
    UnknownTrack,
    /// By nothing would it be known again.
    #[error("the participant has no identity")]
    NoIdentity,
    /// A grant that only tokens give.
    #[error("only `publish`, `subscribe` and `enhance` change while a call runs")]
    OtherGrant,
    /// There is no room for one more rule.
    #[error(transparent)]
    Full(#[from] Full),
}

impl OrderError {
    /// The code of the answer.
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            OrderError::UnknownParticipant => ErrorCode::UnknownParticipant,
            OrderError::UnknownTrack => ErrorCode::UnknownTrack,
            OrderError::NoIdentity => ErrorCode::NoIdentity,
            OrderError::OtherGrant => ErrorCode::Forbidden,
            OrderError::Full(_) => ErrorCode::TooManyRules,
        }
    }
}

impl From<OrderError> for ProtocolError {
    fn from(error: OrderError) -> Self {
        ProtocolError::new(error.code(), error.to_string())
    }
}

/// Orders about one room.
pub(crate) struct Orders<'a> {
    pub rights: &'a Rights,
    pub directory: &'a Directory,
    pub room: &'a str,
}

impl Orders<'_> {
    /// What a moderator asks for.
    pub(crate) fn follow(&self, order: Moderate) -> Result<(), OrderError> {
        match order {
            Moderate::Grants { participant, grants } => self.grants(&participant, Some(grants)),
            Moderate::Lock { locked } => {
                let door = Door { locked, ..self.door() };
                self.set_door(door, None)
            }
            Moderate::Lobby { lobby } => self.set_door(Door { lobby, ..self.door() }, None),
            Moderate::Admit { waiting } => self.answer(&waiting, true),
            Moderate::Refuse { waiting } => self.answer(&waiting, false),
            Moderate::Remove { participant } => self.remove(&participant),
            Moderate::Ban { participant, seconds } => {
                let identity =
                    self.identity(self.known(&participant)?.0).ok_or(OrderError::NoIdentity)?;
                self.ban(&identity, seconds)
            }
            Moderate::Unban { identity } => self.lift(self.room, About::Ban(identity)),
            Moderate::Mute { track, muted } => {
                let track: TrackId = track.parse().map_err(|_| OrderError::UnknownTrack)?;
                let held = self.directory.hold(self.room, track, muted);
                held.map(|_| ()).ok_or(OrderError::UnknownTrack)
            }
        }
    }

    /// Who may come in.
    pub(crate) fn door(&self) -> Door {
        self.rights.inner.lock().book.door(self.room)
    }

    /// From now on, for so many seconds at least, and for as long as somebody is in the room.
    pub(crate) fn set_door(&self, door: Door, seconds: Option<u32>) -> Result<(), OrderError> {
        if door == Door::default() {
            return self.lift(self.room, About::Door);
        }
        let seconds = seconds.map_or(EMPTY, |seconds| u64::from(seconds).max(EMPTY));
        let Door { locked, lobby } = door;
        self.set(self.room, About::Door, seconds, Says::Door { locked, lobby })
    }

    /// What somebody may do of `publish`, `subscribe` and `enhance`; `None`: what its token says.
    pub(crate) fn grants(
        &self,
        participant: &str,
        grants: Option<Vec<Grant>>,
    ) -> Result<(), OrderError> {
        let (id, _) = self.known(participant)?;
        let about =
            About::Grants(self.identity(id).map_or(Whom::Participant(id.0), Whom::Identity));
        let Some(mut grants) = grants else { return self.lift(self.room, about) };
        if grants.iter().any(|grant| !Grant::PARTICIPANT.contains(grant)) {
            return Err(OrderError::OtherGrant);
        }
        grants.sort_unstable();
        grants.dedup();
        self.follows(self.room, about, None, Says::Grants(grants))
    }

    /// Nobody of an identity is in the room any more, for so many seconds, or as long as tokens live.
    pub(crate) fn ban(&self, identity: &str, seconds: Option<u32>) -> Result<(), OrderError> {
        self.follows(self.room, About::Ban(identity.to_owned()), seconds, Says::Holds)
    }

    /// Ends a ban.
    pub(crate) fn unban(&self, identity: &str) -> Result<(), OrderError> {
        self.lift(self.room, About::Ban(identity.to_owned()))
    }

    /// Who is banned, and until when.
    pub(crate) fn bans(&self) -> Vec<(String, u64)> {
        self.rights.inner.lock().book.bans(self.room)
    }

    /// Who waits.
    pub(crate) fn waiting(&self) -> Vec<windlass_protocol::Knock> {
        self.rights.inner.lock().book.knocks(self.room)
    }

    /// A token is good for nothing any more, for so many seconds, or as long as it lives.
    pub(crate) fn revoke(&self, token: &str, seconds: Option<u32>) -> Result<(), OrderError> {
        self.follows(ALL_ROOMS, About::Token(token.to_owned()), seconds, Says::Holds)
    }

    /// And is good again.
    pub(crate) fn reinstate(&self, token: &str) -> Result<(), OrderError> {
        self.lift(ALL_ROOMS, About::Token(token.to_owned()))
    }

    /// Puts somebody out of the room, wherever it is. Its seat is gone with it.
    pub(crate) fn remove(&self, participant: &str) -> Result<(), OrderError> {
        let (id, here) = self.known(participant)?;
        let removed = self.set(self.room, About::Removed(id.0), seat::KEPT, Says::Holds);
        let mut inner = self.rights.inner.lock();
        match inner.people.get_mut(&id).filter(|_| here && removed.is_err()) {
            // Who is here goes in any case.
            Some(person) => person.ruling.send_modify(|ruling| ruling.out = Some(Out::Removed)),
            None => removed?,
        }
        Ok(())
    }

    /// Answers one who waits.
    pub(crate) fn answer(&self, waiting: &str, admitted: bool) -> Result<(), OrderError> {
        if !self.waiting().iter().any(|knock| knock.id == waiting) {
            return Err(OrderError::UnknownParticipant);
        }
        self.set(self.room, About::Answer(waiting.to_owned()), ANSWER, Says::Admitted(admitted))
    }

    /// Somebody in the room, and whether it is on this server.
    fn known(&self, participant: &str) -> Result<(ParticipantId, bool), OrderError> {
        let id: ParticipantId = participant.parse().map_err(|_| OrderError::UnknownParticipant)?;
        let inner = self.rights.inner.lock();
        let stays =
            |p: &Person| p.room == self.room && !p.loopback && p.ruling.borrow().out.is_none();
        let here = inner.people.get(&id).is_some_and(stays);
        drop(inner);
        if here || self.directory.is_afar(self.room, id) {
            return Ok((id, here));
        }
        Err(OrderError::UnknownParticipant)
    }

    fn identity(&self, id: ParticipantId) -> Option<String> {
        self.directory.get(id).identity
    }

    fn set(&self, room: &str, about: About, seconds: u64, says: Says) -> Result<(), OrderError> {
        let at = unix_now_ms();
        let rule = Rule { at, until: at / 1000 + seconds, follows: false, says };
        Ok(self.rights.set(room, about, rule)?)
    }

    /// A rule for so many seconds, or for as long as tokens live: a day, or until the latest time at which any that was seen ends.
    fn follows(
        &self,
        room: &str,
        about: About,
        seconds: Option<u32>,
        says: Says,
    ) -> Result<(), OrderError> {
        let at = unix_now_ms();
        let now = at / 1000;
        let until = match seconds {
            Some(seconds) => now + u64::from(seconds),
            None => self.rights.inner.lock().latest.max(now + DAY),
        };
        let rule = Rule { at, until, follows: seconds.is_none(), says };
        Ok(self.rights.set(room, about, rule)?)
    }

    fn lift(&self, room: &str, about: About) -> Result<(), OrderError> {
        let lifting = self.rights.inner.lock().book.lifting(room, &about, unix_now_ms());
        Ok(self.rights.set(room, about, lifting)?)
    }
}
