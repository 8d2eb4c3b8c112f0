//! The rights of a participant, as its client knows them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_protocol::{Knock, ServerMessage};

use crate::access::Grants;
use crate::rights::book::Entry;
use crate::rights::ruling::Ruling;

/// Minimum time between two lists of the lobby.
const LOBBY_INTERVAL: Duration = Duration::from_secs(1);

/// The rights of a participant, as last sent to its client.
#[derive(Debug)]
pub(super) struct Ruled {
    pub grants: Grants,
    entry: Entry,
    recording: bool,
    waiting: Arc<Vec<Knock>>,
    /// Time at which the lobby was last sent.
    sent: Option<Instant>,
    /// Whether the lobby has changed since it was last sent.
    is_stale: bool,
}

impl Ruled {
    /// The state after `welcome`, which does not contain the lobby.
    pub(super) fn at_first(ruling: &Ruling) -> Ruled {
        Ruled {
            grants: ruling.grants.clone(),
            entry: ruling.entry,
            recording: ruling.recording,
            waiting: ruling.waiting.clone(),
            sent: None,
            is_stale: !ruling.waiting.is_empty(),
        }
    }

    /// Takes changed rights. Returns the messages that the client must get now.
    pub(super) fn change(&mut self, now: Instant, ruling: &Ruling) -> Vec<ServerMessage> {
        let mut messages = Vec::new();
        if self.grants != ruling.grants {
            self.grants.clone_from(&ruling.grants);
            messages.push(ServerMessage::Grants { grants: self.grants.list() });
        }
        if self.entry != ruling.entry {
            self.entry = ruling.entry;
            let Entry { locked, lobby } = self.entry;
            messages.push(ServerMessage::Entry { locked, lobby });
        }
        if self.recording != ruling.recording {
            self.recording = ruling.recording;
            messages.push(ServerMessage::Recording { on: self.recording });
        }
        if self.waiting != ruling.waiting {
            self.waiting = ruling.waiting.clone();
            self.is_stale = true;
        }
        messages.extend(self.lobby(now));
        messages
    }

    /// The lobby, if it has changed and was not sent just now.
    pub(super) fn lobby(&mut self, now: Instant) -> Option<ServerMessage> {
        let soon =
            self.sent.is_some_and(|sent| now.saturating_duration_since(sent) < LOBBY_INTERVAL);
        if !self.is_stale || soon {
            return None;
        }
        (self.is_stale, self.sent) = (false, Some(now));
        Some(ServerMessage::Lobby { waiting: self.waiting.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use windlass_protocol::Grant;

    use super::*;

    fn ruling(waiting: usize) -> Ruling {
        let knock = |n: usize| Knock { id: format!("w{n}"), name: "Bo".to_owned(), identity: None };
        Ruling {
            denied: None,
            grants: Grants::participant(),
            entry: Entry::default(),
            recording: false,
            waiting: Arc::new((0..waiting).map(knock).collect()),
        }
    }

    #[test]
    fn only_what_has_changed_is_told() {
        let now = Instant::now();
        let mut ruled = Ruled::at_first(&ruling(0));
        assert_eq!(ruled.change(now, &ruling(0)), []);
        let less = Ruling { grants: Grants::new([Grant::Subscribe]), ..ruling(0) };
        let grants = ServerMessage::Grants { grants: vec![Grant::Subscribe] };
        assert_eq!(ruled.change(now, &less), [grants]);
        let locked = Ruling { entry: Entry { locked: true, lobby: false }, ..less };
        assert_eq!(
            ruled.change(now, &locked),
            [ServerMessage::Entry { locked: true, lobby: false }]
        );
        let recorded = Ruling { recording: true, ..locked };
        assert_eq!(ruled.change(now, &recorded), [ServerMessage::Recording { on: true }]);
        assert_eq!(ruled.change(now, &recorded), []);
    }

    #[test]
    fn who_waits_is_told_once_a_second_at_most() {
        let now = Instant::now();
        let mut ruled = Ruled::at_first(&ruling(0));
        assert_eq!(ruled.change(now, &ruling(1)).len(), 1);
        assert_eq!(ruled.change(now, &ruling(2)), []);
        assert_eq!(ruled.lobby(now), None);
        let Some(ServerMessage::Lobby { waiting }) = ruled.lobby(now + LOBBY_INTERVAL) else {
            panic!("not told");
        };
        assert_eq!(waiting.len(), 2);
        assert_eq!(ruled.lobby(now + 9 * LOBBY_INTERVAL), None);
    }
}
