//! What moderators and operators have said: one rule for each thing that one can be about.
//!
//! Of two rules about the same thing the later one holds, whoever hears them in which order: so servers that tell each other
//! all that they hear agree in the end, and what was said before cannot come back.

use std::cmp::Ordering;
use std::fmt::Write;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use windlass_protocol::{Grant, limits};

/// A longer rule is not read.
pub(crate) const MOST_BYTES: usize = 2_048;
/// By how much servers' clocks may differ, in milliseconds: what says that it is from a later time is not believed.
const CLOCKS_MS: u64 = 60_000;

/// What a rule is about, in its room.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum About {
    /// Who may come in.
    Door,
    /// An identity, which may not be there.
    Ban(String),
    /// What somebody may do there.
    Grants(Whom),
    /// A participant that was removed: its seat is gone.
    Removed(u64),
    /// A token, by its own id.
    Token(String),
    /// Somebody who waits.
    Knock(String),
    /// What one who waits was answered.
    Answer(String),
}

/// Somebody, by identity where there are such.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Whom {
    Identity(String),
    Participant(u64),
}

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    /// What was said before holds no more.
    Lifted,
    /// It is so.
    Holds,
    Door {
        locked: bool,
        lobby: bool,
    },
    /// Of `publish`, `subscribe` and `enhance`, those that one has.
    Grants(Vec<Grant>),
    Knock {
        name: String,
        identity: Option<String>,
    },
    Admitted(bool),
}

/// What was said, when, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// In milliseconds since 1970.
    pub at: u64,
    /// In seconds since 1970.
    pub until: u64,
    /// Whether it lasts for as long as any token that it concerns.
    pub follows: bool,
    pub says: Says,
}

/// A rule, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub room: String,
    pub about: About,
    pub rule: Rule,
}

/// Why a text is no rule.
#[derive(Debug, thiserror::Error)]
pub enum BadRule {
    /// More bytes than any has.
    #[error("{0} bytes")]
    Long(usize),
    /// Something else.
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A name that nothing has, or a rule about something else.
    #[error("it makes no sense")]
    Senseless,
    /// It is from a later time than now.
    #[error("it is from the future")]
    Early,
}

impl Rule {
    /// Which of two rules about the same thing holds.
    pub(crate) fn is_later_than(&self, other: &Rule) -> bool {
        let order = self.at.cmp(&other.at);
        let order = order.then(self.until.cmp(&other.until)).then(self.follows.cmp(&other.follows));
        order.then_with(|| self.says.cmp(&other.says)) == Ordering::Greater
    }
}

impl Told {
    /// Reads what another server has told, at `now_ms`.
    pub(crate) fn read(bytes: &[u8], now_ms: u64) -> Result<Told, BadRule> {
        if bytes.len() > MOST_BYTES {
            return Err(BadRule::Long(bytes.len()));
        }
        let told: Told = serde_json::from_slice(bytes)?;
        if told.rule.at > now_ms + CLOCKS_MS {
            return Err(BadRule::Early);
        }
        if told.makes_sense() { Ok(told) } else { Err(BadRule::Senseless) }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What it is about, as a key of a bucket.
    pub(crate) fn key(room: &str, about: &About) -> String {
        let about = serde_json::to_vec(&(room, about)).unwrap_or_default();
        let digest = digest::digest(&digest::SHA256, &about);
        digest.as_ref()[..16].iter().fold(String::new(), |mut key, byte| {
            let _ = write!(key, "{byte:02x}");
            key
        })
    }

    fn makes_sense(&self) -> bool {
        let fits = match (&self.about, &self.rule.says) {
            (_, Says::Lifted)
            | (About::Door, Says::Door { .. })
            | (About::Ban(_) | About::Removed(_) | About::Token(_), Says::Holds)
            | (About::Answer(_), Says::Admitted(_)) => true,
            (About::Grants(_), Says::Grants(grants)) => grants.len() <= Grant::ALL.len(),
            (About::Knock(_), Says::Knock { name, identity }) => {
                limits::check_name(name).is_ok() && identity.as_deref().is_none_or(is_identity)
            }
            _ => false,
        };
        let named = match &self.about {
            About::Door | About::Removed(_) | About::Grants(Whom::Participant(_)) => true,
            About::Ban(name) | About::Grants(Whom::Identity(name)) | About::Token(name) => {
                is_identity(name)
            }
            About::Knock(id) | About::Answer(id) => id.len() <= limits::PARTICIPANT_CHARS,
        };
        let everywhere = self.room == crate::access::ALL_ROOMS;
        fits && named && (everywhere || limits::check_room(&self.room).is_ok())
    }
}

fn is_identity(text: &str) -> bool {
    (1..=limits::IDENTITY_BYTES).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(room: &str, about: About, says: Says) -> Told {
        let rule = Rule { at: 1_000, until: 9, follows: false, says };
        Told { room: room.into(), about, rule }
    }

    #[test]
    fn a_rule_is_read_as_it_was_written_and_has_a_key_of_its_own() {
        let about = [
            About::Door,
            About::Ban("ana".into()),
            About::Grants(Whom::Identity("ana".into())),
            About::Grants(Whom::Participant(u64::MAX)),
            About::Removed(7),
            About::Token("ana".into()),
        ];
        let mut keys: Vec<String> = about.iter().map(|about| Told::key("tea", about)).collect();
        keys.push(Told::key("coffee", &About::Door));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 7);
        for about in about {
            let told = told("tea", about, Says::Lifted);
            assert_eq!(Told::read(&told.write(), 1_000).unwrap(), told);
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_rule() {
        let bad = [
            told("a b", About::Door, Says::Lifted),
            told("tea", About::Door, Says::Holds),
            told("tea", About::Ban(String::new()), Says::Holds),
            told("tea", About::Ban("x".repeat(129)), Says::Holds),
            told("tea", About::Ban("ana".into()), Says::Admitted(true)),
            told(
                "tea",
                About::Knock("w1".into()),
                Says::Knock { name: "\n".into(), identity: None },
            ),
        ];
        for told in bad {
            assert!(Told::read(&told.write(), 1_000).is_err(), "{told:?}");
        }
        let early = told("tea", About::Door, Says::Lifted);
        assert!(Told::read(&early.write(), 0).is_ok());
        let mut early = early;
        early.rule.at = CLOCKS_MS + 1;
        assert!(matches!(Told::read(&early.write(), 0), Err(BadRule::Early)));
        assert!(Told::read(&vec![b' '; MOST_BYTES + 1], 0).is_err());
        assert!(Told::read(b"{}", 0).is_err());
    }

    #[test]
    fn the_later_of_two_holds_and_of_the_same_time_always_the_same_one() {
        let rule = |at, until, says| Rule { at, until, follows: false, says };
        assert!(rule(2, 0, Says::Lifted).is_later_than(&rule(1, 9, Says::Holds)));
        assert!(rule(1, 9, Says::Lifted).is_later_than(&rule(1, 8, Says::Holds)));
        let (one, other) = (rule(1, 9, Says::Lifted), rule(1, 9, Says::Holds));
        assert!(other.is_later_than(&one) && !one.is_later_than(&other));
        assert!(!one.is_later_than(&one));
    }
}
