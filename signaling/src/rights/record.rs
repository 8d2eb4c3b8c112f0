//! Rules of moderators and operators: at most one rule for each subject.
//!
//! Of two rules about the same subject the later one holds, in whatever order they arrive. So servers that exchange all
//! rules converge, and an old rule cannot come back.

use std::cmp::Ordering;
use std::fmt::Write;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use windlass_protocol::{Grant, limits};

/// Maximum size of a rule that is read, in bytes.
pub(crate) const MAX_RULE_BYTES: usize = 2_048;
/// Maximum difference of servers' clocks, in milliseconds. A rule that is further in the future is refused.
const MAX_CLOCK_SKEW_MS: u64 = 60_000;

/// Subject of a rule, in its room.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// Whether the room is locked, or has a lobby.
    Entry,
    /// Whether the room is recorded.
    Recording,
    /// A banned identity.
    Ban(String),
    /// The grants of an identity or participant.
    Grants(Grantee),
    /// A participant that was removed; its seat token is invalid.
    Removed(u64),
    /// A revoked access token, by its id (`jti`).
    Token(String),
    /// A participant in the lobby.
    Knock(String),
    /// The answer to a participant in the lobby.
    Answer(String),
}

/// Participants whose grants a rule sets: those of an identity, or one without identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grantee {
    Identity(String),
    Participant(u64),
}

/// The content of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// The former rule no longer holds.
    Lifted,
    /// The ban, removal or revocation holds.
    Holds,
    Entry {
        locked: bool,
        lobby: bool,
    },
    /// The room is recorded, since the time `since`, in milliseconds since 1970.
    Recording {
        since: u64,
        /// Identity, or else id, of the only participant that is recorded; `None`: all are.
        participant: Option<String>,
        /// Whether enhanced pictures are made of it too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        enhanced: bool,
    },
    /// The grants, of `publish`, `subscribe`, `enhance` and `data`.
    Grants(Vec<Grant>),
    Knock {
        name: String,
        identity: Option<String>,
    },
    Admitted(bool),
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// Time at which the rule was made, in milliseconds since 1970.
    pub at: u64,
    /// Time until which the rule holds, in seconds since 1970.
    pub until: u64,
    /// Whether the rule is extended to the expiry of each token that it concerns.
    pub follows: bool,
    pub says: Content,
}

/// A rule with its subject, as servers exchange it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleRecord {
    pub room: String,
    pub about: Subject,
    pub rule: Rule,
}

/// Why a rule of another server is refused.
#[derive(Debug, thiserror::Error)]
pub enum BadRule {
    /// The rule is longer than any that a server writes.
    #[error("the rule has {0} bytes, more than {MAX_RULE_BYTES}")]
    TooLong(usize),
    /// The rule is not the expected JSON.
    #[error("the rule cannot be parsed: {0}")]
    Json(#[from] serde_json::Error),
    /// A name is invalid, or the content does not fit the subject.
    #[error("the rule's content does not fit its subject, or a name is invalid")]
    Invalid,
    /// The rule is from the future.
    #[error("the rule is from the future: check the servers' clocks")]
    Future,
}

impl Rule {
    /// Whether this rule replaces another one about the same subject. The order is total, so that servers agree.
    pub(crate) fn is_later_than(&self, other: &Rule) -> bool {
        let order = self.at.cmp(&other.at);
        let order = order.then(self.until.cmp(&other.until)).then(self.follows.cmp(&other.follows));
        order.then_with(|| self.says.cmp(&other.says)) == Ordering::Greater
    }
}

impl RuleRecord {
    /// Parses and checks a rule of another server.
    pub(crate) fn read(bytes: &[u8], now_ms: u64) -> Result<RuleRecord, BadRule> {
        if bytes.len() > MAX_RULE_BYTES {
            return Err(BadRule::TooLong(bytes.len()));
        }
        let record: RuleRecord = serde_json::from_slice(bytes)?;
        if record.rule.at > now_ms + MAX_CLOCK_SKEW_MS {
            return Err(BadRule::Future);
        }
        if record.is_valid() { Ok(record) } else { Err(BadRule::Invalid) }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The bucket key of a subject.
    pub(crate) fn key(room: &str, about: &Subject) -> String {
        let about = serde_json::to_vec(&(room, about)).unwrap_or_default();
        let digest = digest::digest(&digest::SHA256, &about);
        digest.as_ref()[..16].iter().fold(String::new(), |mut key, byte| {
            let _ = write!(key, "{byte:02x}");
            key
        })
    }

    fn is_valid(&self) -> bool {
        let fits = match (&self.about, &self.rule.says) {
            (_, Content::Lifted)
            | (Subject::Entry, Content::Entry { .. })
            | (Subject::Ban(_) | Subject::Removed(_) | Subject::Token(_), Content::Holds)
            | (Subject::Answer(_), Content::Admitted(_)) => true,
            (Subject::Recording, Content::Recording { participant, .. }) => {
                participant.as_deref().is_none_or(is_identity)
            }
            (Subject::Grants(_), Content::Grants(grants)) => grants.len() <= Grant::ALL.len(),
            (Subject::Knock(_), Content::Knock { name, identity }) => {
                limits::check_name(name).is_ok() && identity.as_deref().is_none_or(is_identity)
            }
            _ => false,
        };
        let named = match &self.about {
            Subject::Entry
            | Subject::Recording
            | Subject::Removed(_)
            | Subject::Grants(Grantee::Participant(_)) => true,
            Subject::Ban(name)
            | Subject::Grants(Grantee::Identity(name))
            | Subject::Token(name) => is_identity(name),
            Subject::Knock(id) | Subject::Answer(id) => id.len() <= limits::PARTICIPANT_CHARS,
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

    fn record(room: &str, about: Subject, says: Content) -> RuleRecord {
        let rule = Rule { at: 1_000, until: 9, follows: false, says };
        RuleRecord { room: room.into(), about, rule }
    }

    #[test]
    fn a_rule_is_read_as_it_was_written_and_has_a_key_of_its_own() {
        let about = [
            Subject::Entry,
            Subject::Recording,
            Subject::Ban("ana".into()),
            Subject::Grants(Grantee::Identity("ana".into())),
            Subject::Grants(Grantee::Participant(u64::MAX)),
            Subject::Removed(7),
            Subject::Token("ana".into()),
        ];
        let mut keys: Vec<String> =
            about.iter().map(|about| RuleRecord::key("tea", about)).collect();
        keys.push(RuleRecord::key("coffee", &Subject::Entry));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 8);
        for about in about {
            let lifted = record("tea", about, Content::Lifted);
            assert_eq!(RuleRecord::read(&lifted.write(), 1_000).unwrap(), lifted);
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_rule() {
        let bad = [
            record("a b", Subject::Entry, Content::Lifted),
            record("tea", Subject::Entry, Content::Holds),
            record("tea", Subject::Ban(String::new()), Content::Holds),
            record("tea", Subject::Ban("x".repeat(129)), Content::Holds),
            record("tea", Subject::Ban("ana".into()), Content::Admitted(true)),
            record(
                "tea",
                Subject::Knock("w1".into()),
                Content::Knock { name: "\n".into(), identity: None },
            ),
        ];
        for wrong in bad {
            assert!(RuleRecord::read(&wrong.write(), 1_000).is_err(), "{wrong:?}");
        }
        let early = record("tea", Subject::Entry, Content::Lifted);
        assert!(RuleRecord::read(&early.write(), 0).is_ok());
        let mut early = early;
        early.rule.at = MAX_CLOCK_SKEW_MS + 1;
        assert!(matches!(RuleRecord::read(&early.write(), 0), Err(BadRule::Future)));
        assert!(RuleRecord::read(&vec![b' '; MAX_RULE_BYTES + 1], 0).is_err());
        assert!(RuleRecord::read(b"{}", 0).is_err());
    }

    #[test]
    fn the_later_of_two_holds_and_of_the_same_time_always_the_same_one() {
        let rule = |at, until, says| Rule { at, until, follows: false, says };
        assert!(rule(2, 0, Content::Lifted).is_later_than(&rule(1, 9, Content::Holds)));
        assert!(rule(1, 9, Content::Lifted).is_later_than(&rule(1, 8, Content::Holds)));
        let (one, other) = (rule(1, 9, Content::Lifted), rule(1, 9, Content::Holds));
        assert!(other.is_later_than(&one) && !one.is_later_than(&other));
        assert!(!one.is_later_than(&one));
    }
}
