//! All rules that hold, by room. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet};

use windlass_protocol::{Grant, Knock};
use windlass_sfu::ParticipantId;

use super::rule::{About, Rule, Says, Told, Whom};
use crate::access::ALL_ROOMS;

/// Rules at a time: further ones are refused, and counted.
const MOST: usize = 20_000;
/// Of one room, so that no moderator takes all the others' place; half of all may be for all rooms.
const MOST_OF_ROOM: usize = 1_000;
/// Of one room, those who wait.
const MOST_WAITING: usize = 100;
/// Of all rooms.
const MOST_WAITING_ANYWHERE: usize = 2_000;
/// What was lifted is remembered for so long at least, in seconds: what it lifted may come late.
const LIFTED: u64 = 600;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Book {
    rooms: BTreeMap<String, BTreeMap<About, Rule>>,
    count: usize,
    waiting: usize,
}

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It holds from now on.
    News,
    /// It holds already.
    Known,
    /// A later one does.
    Older,
    /// There is no room for it.
    Full,
}

/// Who may come in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Door {
    /// Nobody new.
    pub locked: bool,
    /// Whoever a moderator admits.
    pub lobby: bool,
}

impl Book {
    /// Takes a rule in, if it is the latest of what it is about and there is room for it.
    pub(crate) fn put(&mut self, told: Told) -> Put {
        let Told { room, about, rule } = told;
        let known = self.rooms.get(&room);
        if let Some(known) = known.and_then(|rules| rules.get(&about)) {
            if *known == rule {
                return Put::Known;
            }
            if !rule.is_later_than(known) {
                return Put::Older;
            }
        } else if self.is_full(&room, &about) {
            return Put::Full;
        } else {
            self.count += 1;
            self.waiting += usize::from(matches!(about, About::Knock(_)));
        }
        self.rooms.entry(room).or_default().insert(about, rule);
        Put::News
    }

    fn is_full(&self, room: &str, about: &About) -> bool {
        let rules = self.rooms.get(room);
        let most = if room == ALL_ROOMS { MOST / 2 } else { MOST_OF_ROOM };
        let rules = || rules.into_iter().flatten();
        let knocks = || rules().filter(|(about, _)| matches!(about, About::Knock(_)));
        // Whoever waits takes no place of a ban.
        if matches!(about, About::Knock(_)) {
            let waiting = knocks().filter(|(_, rule)| rule.says != Says::Lifted).count();
            return self.waiting >= MOST_WAITING_ANYWHERE || waiting >= MOST_WAITING;
        }
        self.count - self.waiting >= MOST || rules().count() - knocks().count() >= most
    }

    /// Forgets what holds no longer at `now`; the rooms that this concerns.
    pub(crate) fn tick(&mut self, now: u64) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        let (count, waiting) = (&mut self.count, &mut self.waiting);
        self.rooms.retain(|room, rules| {
            rules.retain(|about, rule| {
                let holds = now < rule.until;
                if !holds {
                    *count -= 1;
                    *waiting -= usize::from(matches!(about, About::Knock(_)));
                    changed.insert(room.clone());
                }
                holds
            });
            !rules.is_empty()
        });
        changed
    }

    /// The rule about something, lifted ones too.
    pub(crate) fn get(&self, room: &str, about: &About) -> Option<&Rule> {
        self.rooms.get(room)?.get(about)
    }

    fn says(&self, room: &str, about: &About) -> Option<&Says> {
        Some(&self.get(room, about)?.says)
    }

    /// Every rule, as it is told to others.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &About, &Rule)> {
        let rooms = self.rooms.iter();
        rooms.flat_map(|(room, rules)| rules.iter().map(move |(a, r)| (room.as_str(), a, r)))
    }

    /// Of how many things there is a rule, those who wait not counted, and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.count - self.waiting, self.waiting)
    }

    /// Who may come into a room.
    pub(crate) fn door(&self, room: &str) -> Door {
        match self.says(room, &About::Door) {
            Some(&Says::Door { locked, lobby }) => Door { locked, lobby },
            _ => Door::default(),
        }
    }

    /// The ban of an identity in a room, and where it is from.
    pub(crate) fn ban(&self, room: &str, identity: &str) -> Option<(String, About)> {
        let about = About::Ban(identity.to_owned());
        let held = |room: &&str| self.says(room, &about) == Some(&Says::Holds);
        let room = [room, ALL_ROOMS].into_iter().find(held)?;
        Some((room.to_owned(), about))
    }

    /// Every ban of a room, and until when.
    pub(crate) fn bans(&self, room: &str) -> Vec<(String, u64)> {
        let rules = self.rooms.get(room).into_iter().flatten();
        let bans = rules.filter_map(|(about, rule)| match about {
            About::Ban(identity) if rule.says == Says::Holds => {
                Some((identity.clone(), rule.until))
            }
            _ => None,
        });
        bans.collect()
    }

    /// Whether a token was revoked.
    pub(crate) fn is_revoked(&self, token: &str) -> bool {
        self.says(ALL_ROOMS, &About::Token(token.to_owned())) == Some(&Says::Holds)
    }

    /// Whether a participant was removed.
    pub(crate) fn is_removed(&self, room: &str, id: ParticipantId) -> bool {
        self.says(room, &About::Removed(id.0)) == Some(&Says::Holds)
    }

    /// What somebody may do in a room in the place of what its token says, of `publish`, `subscribe` and `enhance`.
    pub(crate) fn grants(&self, room: &str, whom: &Whom) -> Option<&[Grant]> {
        match self.says(room, &About::Grants(whom.clone()))? {
            Says::Grants(grants) => Some(grants),
            _ => None,
        }
    }

    /// Who waits to enter a room, who came first at first.
    pub(crate) fn knocks(&self, room: &str) -> Vec<Knock> {
        let rules = self.rooms.get(room).into_iter().flatten();
        let knocks = rules.filter_map(|(about, rule)| match (about, &rule.says) {
            (About::Knock(id), Says::Knock { name, identity })
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

    /// What one who waits was answered.
    pub(crate) fn answer(&self, room: &str, waiting: &str) -> Option<bool> {
        match self.says(room, &About::Answer(waiting.to_owned()))? {
            Says::Admitted(admitted) => Some(*admitted),
            _ => None,
        }
    }

    /// The rule that lifts another.
    pub(crate) fn lifting(&self, room: &str, about: &About, now_ms: u64) -> Rule {
        let until = now_ms / 1000 + LIFTED;
        let known = self.get(room, about).map_or(0, |rule| rule.until);
        Rule { at: now_ms, until: until.max(known), follows: false, says: Says::Lifted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(room: &str, about: About, at: u64, says: Says) -> Told {
        let rule = Rule { at, until: 100, follows: false, says };
        Told { room: room.into(), about, rule }
    }

    fn ban(room: &str, identity: &str, at: u64) -> Told {
        told(room, About::Ban(identity.into()), at, Says::Holds)
    }

    #[test]
    fn what_was_said_last_holds_in_whatever_order_it_is_heard() {
        let lifted = told("tea", About::Ban("ana".into()), 2, Says::Lifted);
        for order in
            [[ban("tea", "ana", 1), lifted.clone()], [lifted.clone(), ban("tea", "ana", 1)]]
        {
            let mut book = Book::default();
            let put = order.map(|told| book.put(told));
            assert!(book.ban("tea", "ana").is_none());
            assert!(put == [Put::News, Put::News] || put == [Put::News, Put::Older]);
            assert_eq!(book.put(lifted.clone()), Put::Known);
            assert_eq!(book.put(ban("tea", "ana", 3)), Put::News);
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
            let says = Says::Knock { name: "Bo".into(), identity: None };
            told("tea", About::Knock(format!("w{n}")), n as u64, says)
        };
        let put: Vec<Put> = (0..MOST_WAITING + 5).map(|n| book.put(knock(n))).collect();
        assert_eq!(put.iter().filter(|p| **p == Put::Full).count(), 5);
        let put: Vec<Put> =
            (0..MOST_OF_ROOM + 5).map(|n| book.put(ban("tea", &n.to_string(), 1))).collect();
        assert_eq!(put.iter().filter(|p| **p == Put::Full).count(), 5);
        assert_eq!(book.put(ban("coffee", "ana", 1)), Put::News);
        // One that is known may still be lifted.
        assert_eq!(book.put(told("tea", About::Ban("0".into()), 2, Says::Lifted)), Put::News);
        assert_eq!(book.counts(), (MOST_OF_ROOM + 1, MOST_WAITING));
        let first = book.knocks("tea");
        assert_eq!((first.len(), first[0].id.as_str()), (MOST_WAITING, "w0"));
    }

    #[test]
    fn who_was_answered_waits_no_more() {
        let mut book = Book::default();
        let says = Says::Knock { name: "Bo".into(), identity: Some("bo".into()) };
        book.put(told("tea", About::Knock("w1".into()), 1, says));
        assert_eq!(book.knocks("tea").len(), 1);
        book.put(told("tea", About::Answer("w1".into()), 2, Says::Admitted(false)));
        assert_eq!((book.knocks("tea").len(), book.answer("tea", "w1")), (0, Some(false)));
        assert_eq!(book.answer("coffee", "w1"), None);
    }

    #[test]
    fn what_lifts_a_rule_is_remembered_for_as_long_as_that_would_have_held() {
        let mut book = Book::default();
        let mut long = ban("tea", "ana", 1);
        long.rule.until = 1_000_000;
        book.put(long);
        let lifting = book.lifting("tea", &About::Ban("ana".into()), 2_000);
        assert_eq!((lifting.until, lifting.says), (1_000_000, Says::Lifted));
        assert_eq!(book.lifting("tea", &About::Door, 2_000).until, 2 + LIFTED);
    }
}
