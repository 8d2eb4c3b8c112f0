//! All rules, by room. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};

use windlass_protocol::{Grant, Knock};
use windlass_sfu::ParticipantId;

use super::record::{Content, Grantee, Rule, RuleRecord, Subject};
use crate::access::ALL_ROOMS;

/// Maximum number of rules. Further ones are refused, and counted.
const MAX_RULES: usize = 20_000;
/// Maximum number of rules of one room, so that its moderators do not exhaust [`MAX_RULES`]. Up to half of
/// [`MAX_RULES`] may be about all rooms.
const MAX_RULES_PER_ROOM: usize = 1_000;
/// Maximum number of rules of one room that lift, with which another one that lifts no known rule is not kept.
const MAX_LIFTED_PER_ROOM: usize = 50;
/// Maximum number of participants in one lobby.
const MAX_WAITING_PER_ROOM: usize = 100;
/// Maximum number of participants in all lobbies.
const MAX_WAITING: usize = 2_000;
/// Maximum number of rules of lobbies for each participant that may wait in them: those who come and go leave rules
/// behind, which must not fill other rooms' lobbies.
const KNOCKS_FACTOR: usize = 3;
/// Time for which a lifting rule is kept, in seconds: the lifted rule may arrive late.
const LIFTED_FOR_S: u64 = 600;

/// The rules of all rooms, at most one for each subject.
#[derive(Debug, Default)]
pub(crate) struct Book {
    rooms: BTreeMap<String, BTreeMap<Subject, Rule>>,
    /// Number of rules without those of lobbies.
    count: usize,
    /// Number of rules of lobbies. Participants who have left one keep theirs for a while.
    knocks: usize,
    /// Number of participants in lobbies.
    waiting: usize,
}

/// Result of [`Book::put`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// The rule holds from now on.
    Applied,
    /// The book had this rule already.
    Unchanged,
    /// A later rule holds.
    Outdated,
    /// There are too many rules.
    Full,
}

/// Room and subject of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoomSubject<'a> {
    pub(crate) room: &'a str,
    pub(crate) about: &'a Subject,
}

/// Restrictions of entering a room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry {
    /// New participants are refused.
    pub locked: bool,
    /// New participants wait for a moderator.
    pub lobby: bool,
}

/// A recording that was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recording {
    /// Time of the order to record, in milliseconds since 1970.
    pub(crate) since: u64,
    /// Identity, or else id, of the only participant that is recorded; `None`: all are.
    pub(crate) participant: Option<String>,
    /// Whether enhanced pictures are made of it too.
    pub(crate) enhanced: bool,
}

impl Book {
    /// Takes a rule, if it is the latest about its subject and there is room for it.
    pub(crate) fn put(&mut self, record: RuleRecord) -> Update {
        let RuleRecord { room, about, rule } = record;
        let knocks = matches!(about, Subject::Knock(_));
        let known = self.rooms.get(&room).and_then(|rules| rules.get(&about));
        let waited = knocks && known.is_some_and(|known| known.says != Content::Lifted);
        if let Some(known) = known {
            if *known == rule {
                return Update::Unchanged;
            }
            if !rule.is_later_than(known) {
                return Update::Outdated;
            }
        } else if self.is_full(&room, &about) {
            return Update::Full;
        } else if knocks {
            self.knocks += 1;
        } else {
            self.count += 1;
        }
        self.waiting -= usize::from(waited);
        self.waiting += usize::from(knocks && rule.says != Content::Lifted);
        self.rooms.entry(room).or_default().insert(about, rule);
        Update::Applied
    }

    fn is_full(&self, room: &str, about: &Subject) -> bool {
        let rules = self.rooms.get(room);
        let max = if room == ALL_ROOMS { MAX_RULES / 2 } else { MAX_RULES_PER_ROOM };
        let rules = || rules.into_iter().flatten();
        let knocks = || rules().filter(|(about, _)| matches!(about, Subject::Knock(_)));
        // Participants in lobbies do not take the places of bans.
        if matches!(about, Subject::Knock(_)) {
            let waiting = knocks().filter(|(_, rule)| rule.says != Content::Lifted).count();
            return self.waiting >= MAX_WAITING
                || waiting >= MAX_WAITING_PER_ROOM
                || self.knocks >= KNOCKS_FACTOR * MAX_WAITING
                || knocks().count() >= KNOCKS_FACTOR * MAX_WAITING_PER_ROOM;
        }
        self.count >= MAX_RULES || rules().count() - knocks().count() >= max
    }

    /// Forgets rules that have ended by `now`. Returns their rooms.
    pub(crate) fn tick(&mut self, now: u64) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        let Book { rooms, count, knocks, waiting } = self;
        rooms.retain(|room, rules| {
            rules.retain(|about, rule| {
                let holds = now < rule.until;
                if !holds {
                    match about {
                        Subject::Knock(_) => {
                            *knocks -= 1;
                            *waiting -= usize::from(rule.says != Content::Lifted);
                        }
                        _ => *count -= 1,
                    }
                    changed.insert(room.clone());
                }
                holds
            });
            !rules.is_empty()
        });
        changed
    }

    /// The rule about a subject, even one that lifts.
    pub(crate) fn get(&self, room: &str, about: &Subject) -> Option<&Rule> {
        self.rooms.get(room)?.get(about)
    }

    fn says(&self, room: &str, about: &Subject) -> Option<&Content> {
        Some(&self.get(room, about)?.says)
    }

    /// Rooms and subjects of all rules.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = RoomSubject<'_>> {
        let rooms = self.rooms.iter();
        rooms.flat_map(|(room, rules)| rules.keys().map(move |about| RoomSubject { room, about }))
    }

    /// Number of rules without lobbies, and number of participants in lobbies.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.count, self.waiting)
    }

    /// Restrictions of entering a room.
    pub(crate) fn entry(&self, room: &str) -> Entry {
        match self.says(room, &Subject::Entry) {
            Some(&Content::Entry { locked, lobby }) => Entry { locked, lobby },
            _ => Entry::default(),
        }
    }

    /// The recording of a room.
    pub(crate) fn recording(&self, room: &str) -> Option<Recording> {
        match self.says(room, &Subject::Recording)? {
            Content::Recording { since, participant, enhanced } => {
                let (participant, enhanced) = (participant.clone(), *enhanced);
                Some(Recording { since: *since, participant, enhanced })
            }
            _ => None,
        }
    }

    /// All recordings, by room.
    pub(crate) fn recordings(&self) -> Vec<(String, Recording)> {
        let rooms = self.rooms.keys();
        rooms.filter_map(|room| Some((room.clone(), self.recording(room)?))).collect()
    }

    /// The ban of an identity in a room: its room (or all rooms) and subject.
    pub(crate) fn ban(&self, room: &str, identity: &str) -> Option<(String, Subject)> {
        let about = Subject::Ban(identity.to_owned());
        let held = |room: &&str| self.says(room, &about) == Some(&Content::Holds);
        let room = [room, ALL_ROOMS].into_iter().find(held)?;
        Some((room.to_owned(), about))
    }

    /// All bans of a room, with the time at which they end.
    pub(crate) fn bans(&self, room: &str) -> Vec<(String, u64)> {
        let rules = self.rooms.get(room).into_iter().flatten();
        let bans = rules.filter_map(|(about, rule)| match about {
            Subject::Ban(identity) if rule.says == Content::Holds => {
                Some((identity.clone(), rule.until))
            }
            _ => None,
        });
        bans.collect()
    }

    /// Whether a token was revoked.
    pub(crate) fn is_revoked(&self, token: &str) -> bool {
        self.says(ALL_ROOMS, &Subject::Token(token.to_owned())) == Some(&Content::Holds)
    }

    /// Whether a participant was removed.
    pub(crate) fn is_removed(&self, room: &str, id: ParticipantId) -> bool {
        self.says(room, &Subject::Removed(id.0)) == Some(&Content::Holds)
    }

    /// Grants in a room that replace those of the token, of `publish`, `subscribe`, `enhance` and `data`.
    pub(crate) fn grants(&self, room: &str, whom: &Grantee) -> Option<&[Grant]> {
        match self.says(room, &Subject::Grants(whom.clone()))? {
            Content::Grants(grants) => Some(grants),
            _ => None,
        }
    }

    /// The participants in a room's lobby, the first one first.
    pub(crate) fn knocks(&self, room: &str) -> Vec<Knock> {
        let rules = self.rooms.get(room).into_iter().flatten();
        let knocks = rules.filter_map(|(about, rule)| match (about, &rule.says) {
            (Subject::Knock(id), Content::Knock { name, identity })
                if self.answer(room, id).is_none() =>
            {
                let (id, name, identity) = (id.clone(), name.clone(), identity.clone());
                Some((rule.at, Knock { id, name, identity }))
            }
            _ => None,
        });
        let mut knocks: Vec<_> = knocks.collect();
        knocks.sort_by(|one, other| (one.0, &one.1.id).cmp(&(other.0, &other.1.id)));
        knocks.into_iter().map(|(_, knock)| knock).collect()
    }

    /// The answer to a participant in the lobby.
    pub(crate) fn answer(&self, room: &str, waiting: &str) -> Option<bool> {
        match self.says(room, &Subject::Answer(waiting.to_owned()))? {
            Content::Admitted(admitted) => Some(*admitted),
            _ => None,
        }
    }

    /// Whether a room has as many rules that lift as those about unknown subjects may be.
    pub(crate) fn is_full_of_lifted(&self, room: &str) -> bool {
        let rules = self.rooms.get(room).into_iter().flatten();
        let lifted = rules.filter(|(about, rule)| {
            !matches!(about, Subject::Knock(_)) && rule.says == Content::Lifted
        });
        lifted.count() >= MAX_LIFTED_PER_ROOM
    }

    /// A rule that lifts the one about a subject.
    pub(crate) fn lifting(&self, room: &str, about: &Subject, now_ms: u64) -> Rule {
        let until = now_ms / 1000 + LIFTED_FOR_S;
        let known = self.get(room, about).map_or(0, |rule| rule.until);
        Rule { at: now_ms, until: until.max(known), follows: false, says: Content::Lifted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(room: &str, about: Subject, at: u64, says: Content) -> RuleRecord {
        let rule = Rule { at, until: 100, follows: false, says };
        RuleRecord { room: room.into(), about, rule }
    }

    fn ban(room: &str, identity: &str, at: u64) -> RuleRecord {
        record(room, Subject::Ban(identity.into()), at, Content::Holds)
    }

    #[test]
    fn what_was_said_last_holds_in_whatever_order_it_is_heard() {
        let lifted = record("tea", Subject::Ban("ana".into()), 2, Content::Lifted);
        for order in
            [[ban("tea", "ana", 1), lifted.clone()], [lifted.clone(), ban("tea", "ana", 1)]]
        {
            let mut book = Book::default();
            let put = order.map(|record| book.put(record));
            assert!(book.ban("tea", "ana").is_none());
            assert!(
                put == [Update::Applied, Update::Applied]
                    || put == [Update::Applied, Update::Outdated]
            );
            assert_eq!(book.put(lifted.clone()), Update::Unchanged);
            assert_eq!(book.put(ban("tea", "ana", 3)), Update::Applied);
            assert!(book.ban("tea", "ana").is_some());
        }
    }

    #[test]
    fn a_ban_is_for_its_room_or_for_all_until_its_time() {
        let mut book = Book::default();
        book.put(ban("tea", "ana", 1));
        book.put(ban(ALL_ROOMS, "bo", 1));
        assert!(book.ban("tea", "ana").is_some() && book.ban("coffee", "ana").is_none());
        assert_eq!(book.ban("coffee", "bo").unwrap().0, ALL_ROOMS);
        assert_eq!(book.bans("tea"), [("ana".to_owned(), 100)]);
        assert!(book.tick(99).is_empty());
        assert_eq!(book.tick(100).len(), 2);
        assert!(book.ban("tea", "ana").is_none() && book.ban("tea", "bo").is_none());
        assert_eq!(book.counts(), (0, 0));
    }

    #[test]
    fn a_room_has_its_share_of_rules_and_those_who_wait_have_theirs() {
        let mut book = Book::default();
        let knock = |n: usize| {
            let says = Content::Knock { name: "Bo".into(), identity: None };
            record("tea", Subject::Knock(format!("w{n}")), n as u64, says)
        };
        let put: Vec<Update> = (0..MAX_WAITING_PER_ROOM + 5).map(|n| book.put(knock(n))).collect();
        assert_eq!(put.iter().filter(|p| **p == Update::Full).count(), 5);
        let put: Vec<Update> =
            (0..MAX_RULES_PER_ROOM + 5).map(|n| book.put(ban("tea", &n.to_string(), 1))).collect();
        assert_eq!(put.iter().filter(|p| **p == Update::Full).count(), 5);
        assert_eq!(book.put(ban("coffee", "ana", 1)), Update::Applied);
        // One that is known may still be lifted.
        assert_eq!(
            book.put(record("tea", Subject::Ban("0".into()), 2, Content::Lifted)),
            Update::Applied
        );
        assert_eq!(book.counts(), (MAX_RULES_PER_ROOM + 1, MAX_WAITING_PER_ROOM));
        let first = book.knocks("tea");
        assert_eq!((first.len(), first[0].id.as_str()), (MAX_WAITING_PER_ROOM, "w0"));
    }

    #[test]
    fn those_who_come_and_go_in_a_lobby_leave_room_in_others() {
        let mut book = Book::default();
        let knock = |room: &str, n: usize, at: u64, says: &Content| {
            record(room, Subject::Knock(format!("w{n}")), at, says.clone())
        };
        let comes = Content::Knock { name: "Bo".into(), identity: None };
        for n in 0..2 * MAX_WAITING {
            book.put(knock("tea", n, 1, &comes));
            book.put(knock("tea", n, 2, &Content::Lifted));
        }
        assert_eq!(book.counts(), (0, 0));
        assert_eq!(book.put(knock("tea", 2 * MAX_WAITING, 1, &comes)), Update::Full);
        assert_eq!(book.put(knock("coffee", 0, 1, &comes)), Update::Applied);
        assert_eq!(book.counts(), (0, 1));
        book.tick(100);
        assert_eq!((book.knocks, book.waiting), (0, 0));
    }

    #[test]
    fn who_was_answered_waits_no_more() {
        let mut book = Book::default();
        let says = Content::Knock { name: "Bo".into(), identity: Some("bo".into()) };
        book.put(record("tea", Subject::Knock("w1".into()), 1, says));
        assert_eq!(book.knocks("tea").len(), 1);
        book.put(record("tea", Subject::Answer("w1".into()), 2, Content::Admitted(false)));
        assert_eq!((book.knocks("tea").len(), book.answer("tea", "w1")), (0, Some(false)));
        assert_eq!(book.answer("coffee", "w1"), None);
    }

    #[test]
    fn what_lifts_a_rule_is_remembered_for_as_long_as_that_would_have_held() {
        let mut book = Book::default();
        let mut long = ban("tea", "ana", 1);
        long.rule.until = 1_000_000;
        book.put(long);
        let lifting = book.lifting("tea", &Subject::Ban("ana".into()), 2_000);
        assert_eq!((lifting.until, lifting.says), (1_000_000, Content::Lifted));
        assert_eq!(book.lifting("tea", &Subject::Entry, 2_000).until, 2 + LIFTED_FOR_S);
    }
}
