//! What follows from rules, one each. Each server here has people; what one tells the other is handed over by the test.

use super::moderation::ModerationError;
use super::*;
use crate::directory::{Directory, Slots};
use crate::webhooks::Webhooks;
use windlass_protocol::Moderate;

const ANA: ParticipantId = ParticipantId(1);
const BO: ParticipantId = ParticipantId(2);

struct Server {
    rights: Arc<Rights>,
    directory: Directory,
}

impl Server {
    fn new(seats: &SeatKey) -> Server {
        let rights = Rights::new(seats.clone(), true);
        Server { rights, directory: Directory::new(Webhooks::default()) }
    }

    fn alone() -> Server {
        Server::new(&SeatKey::random())
    }

    fn way(&self, admission: &Admission, seat: Option<&str>) -> Result<EntryMode, Denied> {
        self.rights.check_entry("tea", false, admission, seat, now())
    }

    fn enter(&self, id: ParticipantId, admission: &Admission) -> (Member, String) {
        let identity = admission.identity.clone();
        let person = crate::ParticipantInfo { name: "N".into(), identity, ..Default::default() };
        let seats = |_| Ok(Slots { own: None, room: None });
        let grants = admission.grants.clone();
        self.directory.enter(id, "tea", person, grants, now(), seats).unwrap();
        let (member, seat) = self.rights.entered(id, "tea", false, admission, now());
        (member, seat.unwrap())
    }

    fn moderation(&self) -> Moderation<'_> {
        Moderation { rights: &self.rights, directory: &self.directory, room: "tea" }
    }

    fn say(&self, order: Moderate) -> Result<(), ModerationError> {
        self.moderation().apply(order)
    }

    fn evaluate(&self) -> Vec<Effect> {
        self.rights.evaluate(unix_now_ms(), false)
    }

    /// Hears everything that the other one has to tell.
    fn hear(&self, other: &Server) -> usize {
        let told = other.rights.take_unsent();
        for rule in &told {
            self.rights.heard(&rule.value, unix_now_ms()).unwrap();
        }
        told.len()
    }
}

fn now() -> u64 {
    unix_now_ms() / 1000
}

fn admission(identity: Option<&str>, grants: &[Grant]) -> Admission {
    let identity = identity.map(ToOwned::to_owned);
    let token = identity.as_ref().map(|who| format!("{who}-token"));
    let bearer = Bearer { token, expires: now() + 3600 };
    Admission { identity, name: None, grants: Grants::new(grants.iter().copied()), bearer }
}

fn guest(identity: &str) -> Admission {
    admission(Some(identity), &Grant::PARTICIPANT)
}

fn moderator() -> Admission {
    admission(Some("mod"), &[Grant::Subscribe, Grant::Moderate])
}

fn ban(participant: &str) -> Moderate {
    Moderate::Ban { participant: participant.into(), seconds: None }
}

#[test]
fn who_is_banned_goes_at_once_and_does_not_come_back_by_any_token() {
    let server = Server::alone();
    let (member, seat) = server.enter(ANA, &guest("ana"));
    server.say(ban("p1")).unwrap();
    assert_eq!(server.evaluate(), [Effect::End(ANA)]);
    assert_eq!(member.ruling.borrow().denied, Some(Denied::Banned));
    assert!(server.evaluate().is_empty(), "once");
    drop(member);
    assert_eq!(server.way(&guest("ana"), Some(&seat)), Err(Denied::Banned));
    assert_eq!(server.way(&admission(Some("ana"), &[Grant::Moderate]), None), Err(Denied::Banned));
    assert_eq!(server.way(&guest("bo"), None), Ok(EntryMode::Open));
    server.say(Moderate::Unban { identity: "ana".into() }).unwrap();
    assert_eq!(server.way(&guest("ana"), None), Ok(EntryMode::Open));
}

#[test]
fn a_ban_lasts_for_as_long_as_the_longest_token_that_is_shown() {
    let server = Server::alone();
    let (_member, _) = server.enter(ANA, &guest("ana"));
    server.say(ban("p1")).unwrap();
    let until = || server.moderation().bans()[0].1;
    assert!(until() >= now() + MIN_BAN_S - 1 && until() <= now() + MIN_BAN_S + 1);
    let mut long = guest("ana");
    long.bearer.expires = now() + 30 * MIN_BAN_S;
    assert_eq!(server.way(&long, None), Err(Denied::Banned));
    assert_eq!(until(), long.bearer.expires);
    // Of somebody who is banned for a time that is not so.
    server.say(Moderate::Ban { participant: "p1".into(), seconds: Some(60) }).unwrap();
    assert_eq!(server.way(&long, None), Err(Denied::Banned));
    assert!(until() <= now() + 61);
}

#[test]
fn who_has_no_identity_cannot_be_banned() {
    let server = Server::alone();
    let (_member, _) = server.enter(ANA, &Admission::open());
    assert_eq!(server.say(ban("p1")), Err(ModerationError::NoIdentity));
    assert_eq!(server.say(ban("p9")), Err(ModerationError::UnknownParticipant));
    assert!(server.evaluate().is_empty());
}

#[test]
fn a_revoked_token_is_good_for_nothing_and_ends_who_came_with_it() {
    let server = Server::alone();
    let (member, _) = server.enter(ANA, &guest("ana"));
    server.moderation().revoke("ana-token", None).unwrap();
    assert_eq!(server.evaluate(), [Effect::End(ANA)]);
    assert_eq!(member.ruling.borrow().denied, Some(Denied::Revoked));
    assert_eq!(server.way(&guest("ana"), None), Err(Denied::Revoked));
    let mut other = guest("ana");
    other.bearer.token = Some("another".into());
    assert_eq!(server.way(&other, None), Ok(EntryMode::Open));
    server.moderation().reinstate("ana-token").unwrap();
    assert_eq!(server.way(&guest("ana"), None), Ok(EntryMode::Open));
}

#[test]
fn what_lifts_nothing_takes_few_places() {
    let server = Server::alone();
    for n in 0..2_000 {
        server.say(Moderate::Unban { identity: format!("nobody-{n}") }).unwrap();
    }
    server.say(Moderate::Lock { locked: false }).unwrap();
    assert_eq!(server.rights.stats().rules, 50);
}

#[test]
fn into_a_locked_room_come_moderators_and_who_has_a_seat() {
    let server = Server::alone();
    let (member, seat) = server.enter(ANA, &guest("ana"));
    server.say(Moderate::Lock { locked: true }).unwrap();
    server.evaluate();
    assert_eq!(member.ruling.borrow().entry, Entry { locked: true, lobby: false });
    assert_eq!(server.way(&guest("bo"), None), Err(Denied::Locked));
    assert_eq!(server.way(&guest("bo"), Some(&seat)), Err(Denied::Locked), "not one's own");
    assert_eq!(server.way(&moderator(), None), Ok(EntryMode::Open));
    assert_eq!(server.way(&guest("ana"), None), Ok(EntryMode::Open), "it is there");
    drop(member);
    assert_eq!(server.way(&guest("ana"), None), Err(Denied::Locked));
    assert_eq!(server.way(&guest("ana"), Some(&seat)), Ok(EntryMode::Open), "it was there");
    server.say(Moderate::Lock { locked: false }).unwrap();
    assert_eq!(server.way(&guest("bo"), None), Ok(EntryMode::Open));
}

#[test]
fn who_was_removed_has_no_seat_any_more() {
    let server = Server::alone();
    let (member, seat) = server.enter(ANA, &guest("ana"));
    server.say(Moderate::Lock { locked: true }).unwrap();
    server.say(Moderate::Remove { participant: "p1".into() }).unwrap();
    assert_eq!(server.evaluate(), [Effect::End(ANA)]);
    let again = server.say(Moderate::Remove { participant: "p1".into() });
    assert_eq!(again, Err(ModerationError::UnknownParticipant));
    assert_eq!(server.way(&guest("ana"), None), Err(Denied::Locked), "while its connection ends");
    drop(member);
    assert_eq!(server.way(&guest("ana"), Some(&seat)), Err(Denied::Locked));
}

#[test]
fn a_lock_ends_a_while_after_the_last_has_left_and_not_before() {
    let server = Server::alone();
    let (member, _) = server.enter(ANA, &guest("ana"));
    server.say(Moderate::Lock { locked: true }).unwrap();
    let start = unix_now_ms();
    let entry_after = |seconds: u64| {
        server.rights.evaluate(start + seconds * 1000, true);
        server.moderation().entry().locked
    };
    assert!((1..20).all(|n| entry_after(n * EMPTY_ROOM_S / 10)), "somebody is there");
    drop(member);
    assert!(entry_after(2 * EMPTY_ROOM_S));
    assert!(!entry_after(4 * EMPTY_ROOM_S));
}

#[test]
fn who_comes_to_a_lobby_waits_until_a_moderator_says_something() {
    let server = Server::alone();
    let (moderates, _) = server.enter(ANA, &moderator());
    let (guest_there, _) = server.enter(BO, &guest("bo"));
    server.say(Moderate::Lobby { lobby: true }).unwrap();
    for admitted in [true, false] {
        assert_eq!(server.way(&guest("cy"), None), Ok(EntryMode::Lobby));
        let waiting = server.rights.knock("tea", "Cy", Some("cy"), unix_now_ms()).unwrap();
        server.evaluate();
        let knocks = moderates.ruling.borrow().waiting.clone();
        assert_eq!((knocks.len(), knocks[0].identity.as_deref()), (1, Some("cy")));
        assert!(guest_there.ruling.borrow().waiting.is_empty(), "nobody else's business");
        let id = knocks[0].id.clone();
        let order = if admitted {
            Moderate::Admit { waiting: id.clone() }
        } else {
            Moderate::Refuse { waiting: id.clone() }
        };
        server.say(order).unwrap();
        server.evaluate();
        let right = if admitted { Ok(()) } else { Err(Denied::Refused) };
        assert_eq!(*waiting.answer.borrow(), Some(right));
        let again = server.say(Moderate::Admit { waiting: id });
        assert_eq!(again, Err(ModerationError::UnknownParticipant), "it waits no more");
        drop(waiting);
        server.evaluate();
        assert!(moderates.ruling.borrow().waiting.is_empty());
    }
}

#[test]
fn all_who_wait_come_in_when_the_lobby_ends() {
    let server = Server::alone();
    let (_moderates, _) = server.enter(ANA, &moderator());
    server.say(Moderate::Lobby { lobby: true }).unwrap();
    let waiting = server.rights.knock("tea", "Cy", None, unix_now_ms()).unwrap();
    server.evaluate();
    assert_eq!(*waiting.answer.borrow(), None);
    server.say(Moderate::Lobby { lobby: false }).unwrap();
    server.evaluate();
    assert_eq!(*waiting.answer.borrow(), Some(Ok(())));
}

#[test]
fn an_identity_waits_once_and_a_crowd_is_bounded() {
    let server = Server::alone();
    server.say(Moderate::Lobby { lobby: true }).unwrap();
    let knock = |identity: Option<&str>| server.rights.knock("tea", "Cy", identity, unix_now_ms());
    let first = knock(Some("cy")).unwrap();
    let second = knock(Some("cy")).unwrap();
    assert_eq!(*first.answer.borrow(), Some(Err(Denied::Again)));
    assert_eq!(*second.answer.borrow(), None);
    let crowd: Vec<_> = (0..200).map(|_| knock(None)).collect();
    assert_eq!(crowd.iter().filter(|k| k.is_ok()).count(), 98);
    assert!(crowd.iter().any(|k| k.as_ref().err() == Some(&Denied::LobbyFull)));
    drop((first, second, crowd));
    assert!(knock(None).is_ok());
}

#[test]
fn nobody_waits_for_ever() {
    let server = Server::alone();
    server.say(Moderate::Lobby { lobby: true }).unwrap();
    let (_moderates, _) = server.enter(ANA, &moderator());
    let start = unix_now_ms();
    let waiting = server.rights.knock("tea", "Cy", None, start).unwrap();
    for minute in 1..MAX_WAIT_S / 60 {
        server.rights.evaluate(start + minute * 60_000, true);
    }
    assert_eq!(*waiting.answer.borrow(), None);
    server.rights.evaluate(start + MAX_WAIT_S * 1000, true);
    assert_eq!(*waiting.answer.borrow(), Some(Err(Denied::Forgotten)));
}

#[test]
fn grants_change_at_once_and_for_whoever_comes_back_with_the_identity() {
    let server = Server::alone();
    let (member, _) = server.enter(ANA, &guest("ana"));
    let set = |grants: &[Grant]| {
        server.say(Moderate::Grants { participant: "p1".into(), grants: grants.to_vec() })
    };
    set(&[Grant::Subscribe]).unwrap();
    let less = Permissions { publish: false, subscribe: true, enhance: false };
    assert_eq!(server.evaluate(), [Effect::Restrict(ANA, less)]);
    assert_eq!(member.ruling.borrow().grants.list(), [Grant::Subscribe]);
    drop(member);
    let (member, _) = server.enter(ANA, &guest("ana"));
    assert_eq!(member.ruling.borrow().grants.list(), [Grant::Subscribe]);
    // What a token lacks may be given, but not what only tokens give.
    assert_eq!(set(&[Grant::Moderate]), Err(ModerationError::OtherGrant));
    assert_eq!(set(&[Grant::Admin]), Err(ModerationError::OtherGrant));
    server.moderation().grants("p1", None).unwrap();
    assert_eq!(server.evaluate(), [Effect::Restrict(ANA, Permissions::default())]);
    assert_eq!(member.ruling.borrow().grants.list(), Grant::PARTICIPANT);
}

#[test]
fn who_moderates_does_so_whatever_else_is_taken() {
    let server = Server::alone();
    let (member, _) = server.enter(ANA, &moderator());
    server.say(Moderate::Grants { participant: "p1".into(), grants: vec![] }).unwrap();
    server.evaluate();
    assert_eq!(member.ruling.borrow().grants.list(), [Grant::Moderate]);
}

#[test]
fn what_one_server_is_told_holds_on_the_others() {
    let key = SeatKey::of(b"the cluster's");
    let (one, other) = (Server::new(&key), Server::new(&key));
    let (member, _) = one.enter(ANA, &guest("ana"));
    let (_, seat) = one.enter(BO, &guest("bo"));
    let person = crate::ParticipantInfo {
        name: "Ana".into(),
        identity: Some("ana".into()),
        ..Default::default()
    };
    other.directory.remote_joined(ANA, "tea", person, now());
    other.say(Moderate::Lock { locked: true }).unwrap();
    other.say(ban("p1")).unwrap();
    assert_eq!(one.hear(&other), 2);
    assert_eq!(one.evaluate(), [Effect::End(ANA)]);
    assert_eq!(member.ruling.borrow().denied, Some(Denied::Banned));
    assert_eq!(one.way(&guest("cy"), None), Err(Denied::Locked));
    assert_eq!(other.way(&guest("bo"), Some(&seat)), Ok(EntryMode::Open), "its server may be lost");
    assert_eq!(other.hear(&one), 0, "what was heard is not told again");
}

#[test]
fn an_older_rule_is_answered_by_the_later_one() {
    let key = SeatKey::of(b"the cluster's");
    let (one, other) = (Server::new(&key), Server::new(&key));
    one.say(Moderate::Lock { locked: true }).unwrap();
    let old = one.rights.take_unsent();
    one.say(Moderate::Lock { locked: false }).unwrap();
    one.rights.take_unsent();
    one.rights.heard(&old[0].value, unix_now_ms()).unwrap();
    other.rights.heard(&old[0].value, unix_now_ms()).unwrap();
    assert!(!one.moderation().entry().locked);
    assert_eq!(other.hear(&one), 1);
    assert!(!other.moderation().entry().locked);
    one.rights.resend(|_| true);
    assert_eq!(other.hear(&one), 1, "after the bucket was lost");
}

#[test]
fn somebody_who_waits_at_one_server_is_admitted_at_another() {
    let (one, other) = (Server::alone(), Server::alone());
    let (moderates, _) = other.enter(ANA, &moderator());
    other.say(Moderate::Lobby { lobby: true }).unwrap();
    one.hear(&other);
    let waiting = one.rights.knock("tea", "Cy", None, unix_now_ms()).unwrap();
    other.hear(&one);
    other.evaluate();
    let id = moderates.ruling.borrow().waiting[0].id.clone();
    other.say(Moderate::Admit { waiting: id }).unwrap();
    one.hear(&other);
    one.evaluate();
    assert_eq!(*waiting.answer.borrow(), Some(Ok(())));
}

#[test]
fn an_identity_that_is_banned_while_it_waits_waits_no_more() {
    let server = Server::alone();
    server.say(Moderate::Lobby { lobby: true }).unwrap();
    let waiting = server.rights.knock("tea", "Cy", Some("cy"), unix_now_ms()).unwrap();
    server.moderation().ban("cy", None).unwrap();
    server.evaluate();
    assert_eq!(*waiting.answer.borrow(), Some(Err(Denied::Banned)));
}

#[test]
fn a_room_of_ones_own_has_no_door_but_bans_hold_there() {
    let server = Server::alone();
    server.say(Moderate::Lock { locked: true }).unwrap();
    let alone = |who: &str| server.rights.check_entry("tea", true, &guest(who), None, now());
    assert_eq!(alone("ana"), Ok(EntryMode::Open));
    server.moderation().ban("ana", None).unwrap();
    assert_eq!(alone("ana"), Err(Denied::Banned));
}
