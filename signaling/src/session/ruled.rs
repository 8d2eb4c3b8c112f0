//! What holds for whoever is inside, as it was told last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_protocol::{Knock, ServerMessage};

use crate::access::Grants;
use crate::rights::Ruling;

/// Between two lists of those who wait.
const LOBBY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Ruled {
    pub grants: Grants,
    door: (bool, bool),
    waiting: Arc<Vec<Knock>>,
    /// When the list was told last, and whether it has changed since then.
    told: Option<Instant>,
    stale: bool,
}

impl Ruled {
    /// What `welcome` tells; of those who wait it tells nothing.
    pub(super) fn at_first(ruling: &Ruling) -> Ruled {
        Ruled {
            grants: ruling.grants.clone(),
            door: ruling.door,
            waiting: ruling.waiting.clone(),
            told: None,
            stale: !ruling.waiting.is_empty(),
        }
    }

    /// Something else holds: what is to be told of it now.
    pub(super) fn change(&mut self, now: Instant, ruling: &Ruling) -> Vec<ServerMessage> {
        let mut told = Vec::new();
        if self.grants != ruling.grants {
            self.grants.clone_from(&ruling.grants);
            told.push(ServerMessage::Grants { grants: self.grants.list() });
        }
        if self.door != ruling.door {
            self.door = ruling.door;
            let (locked, lobby) = self.door;
            told.push(ServerMessage::Door { locked, lobby });
        }
        if self.waiting != ruling.waiting {
            self.waiting = ruling.waiting.clone();
            self.stale = true;
        }
        told.extend(self.lobby(now));
        told
    }

    /// Who waits, if that has changed and was not told just now.
    pub(super) fn lobby(&mut self, now: Instant) -> Option<ServerMessage> {
        let soon = self.told.is_some_and(|told| now.saturating_duration_since(told) < LOBBY);
        if !self.stale || soon {
            return None;
        }
        (self.stale, self.told) = (false, Some(now));
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
            out: None,
            grants: Grants::participant(),
            door: (false, false),
            waiting: Arc::new((0..waiting).map(knock).collect()),
        }
    }

    #[test]
    fn only_what_has_changed_is_told() {
        let now = Instant::now();
        let mut ruled = Ruled::at_first(&ruling(0));
        assert_eq!(ruled.change(now, &ruling(0)), []);
        let less = Ruling { grants: Grants::new([Grant::Subscribe]), ..ruling(0) };
        let told = ServerMessage::Grants { grants: vec![Grant::Subscribe] };
        assert_eq!(ruled.change(now, &less), [told]);
        let locked = Ruling { door: (true, false), ..less };
        assert_eq!(
            ruled.change(now, &locked),
            [ServerMessage::Door { locked: true, lobby: false }]
        );
    }

    #[test]
    fn who_waits_is_told_once_a_second_at_most() {
        let now = Instant::now();
        let mut ruled = Ruled::at_first(&ruling(0));
        assert_eq!(ruled.change(now, &ruling(1)).len(), 1);
        assert_eq!(ruled.change(now, &ruling(2)), []);
        assert_eq!(ruled.lobby(now), None);
        let Some(ServerMessage::Lobby { waiting }) = ruled.lobby(now + LOBBY) else {
            panic!("not told");
        };
        assert_eq!(waiting.len(), 2);
        assert_eq!(ruled.lobby(now + 9 * LOBBY), None);
    }
}
