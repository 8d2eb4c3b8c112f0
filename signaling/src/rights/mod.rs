//! Rights while a call runs: who may enter a room, who may stay, and what they may do there.
//!
//! Each request of a moderator or operator becomes a rule in the [`book`], on this server and on the cluster's other
//! servers ([`spread`]). Whenever a rule changes, its effects on local participants are evaluated
//! ([`Rights::evaluate`]) and applied (`crate::effects`). So the result does not depend on the server of a request, nor
//! on the order in which rules arrive.

pub(crate) mod book;
mod moderation;
mod record;
pub(crate) mod ruling;
mod seat;
mod spread;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use windlass_protocol::{Grant, Knock};
use windlass_sfu::{ParticipantId, Permissions};

use self::book::{Book, Update};
pub(crate) use self::book::{Entry, Recording};
pub(crate) use self::moderation::{Moderation, ModerationError};
pub use self::record::BadRule;
use self::record::{Content, Grantee, Rule, RuleRecord, Subject};
pub use self::ruling::{Denied, Ruling};
pub use self::seat::SeatKey;
pub use self::spread::{AppliedRule, OutgoingRule};
use crate::access::{ALL_ROOMS, Admission, Bearer, Grants};

/// Minimum time of a ban or revocation for which no time was given, in seconds: a day.
const MIN_BAN_S: u64 = 24 * 3_600;
/// Time after which an empty room is no longer locked and has no lobby, in seconds.
const EMPTY_ROOM_S: u64 = 300;
/// Time for which an empty room is still recorded, in seconds: its participants may come back.
const EMPTY_RECORDING_S: u64 = 60;
/// Lifetime of a knock in seconds. It is renewed while the participant waits.
const KNOCK_S: u64 = 30;
/// Maximum time in the lobby, in seconds.
const MAX_WAIT_S: u64 = 30 * 60;
/// Lifetime of an answer to a knock, in seconds.
const ANSWER_S: u64 = 60;

/// Way in which a participant may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryMode {
    /// The participant may enter at once.
    Open,
    /// The participant may enter when a moderator admits it.
    Lobby,
}

/// The effect of rules on a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    End(ParticipantId),
    Restrict(ParticipantId, Permissions),
}

/// All rules, and the participants that they affect. The module's documentation has the method.
#[derive(Debug)]
pub(crate) struct Rights {
    inner: Mutex<Inner>,
    /// Notified when rights must be evaluated.
    pub(crate) changed: Notify,
    /// Notified when there are unsent rules.
    pub(crate) spread: Notify,
    seats: SeatKey,
    /// Number of rules that were refused because there were too many.
    full: AtomicU64,
    /// Number of participants that were not let in.
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    book: Book,
    participants: HashMap<ParticipantId, LocalParticipant>,
    waiters: HashMap<String, Waiter>,
    /// Rooms whose rights must be evaluated.
    dirty: BTreeSet<String>,
    /// Rules that other servers have not got; `None`: there are no other servers.
    unsent: Option<BTreeSet<(String, Subject)>>,
    /// Latest expiry of any token, in seconds since 1970.
    latest_expiry: u64,
}

/// A participant in a room on this server.
#[derive(Debug)]
struct LocalParticipant {
    room: String,
    /// Whether the participant is in a loopback room with that name.
    loopback: bool,
    identity: Option<String>,
    bearer: Bearer,
    /// Grants of the participant's token.
    grants: Grants,
    ruling: watch::Sender<Ruling>,
}

#[derive(Debug)]
struct Waiter {
    room: String,
    name: String,
    identity: Option<String>,
    since: u64,
    answer: watch::Sender<Option<Result<(), Denied>>>,
}

/// Registration of a local participant, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    rights: Arc<Rights>,
    id: ParticipantId,
    /// The room's name.
    pub room: String,
    /// Rights of the participant.
    pub ruling: watch::Receiver<Ruling>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.rights.inner.lock().participants.remove(&self.id);
    }
}

/// Place of a participant in the lobby, which it leaves when this value is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    rights: Arc<Rights>,
    id: String,
    /// A moderator's answer.
    pub answer: watch::Receiver<Option<Result<(), Denied>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.rights.left_lobby(&self.id);
    }
}

impl Rights {
    /// A server's rights, without rules. `clustered`: each rule must be sent to the other servers.
    pub(crate) fn new(seats: SeatKey, clustered: bool) -> Arc<Rights> {
        let inner = Inner { unsent: clustered.then(BTreeSet::new), ..Inner::default() };
        Arc::new(Rights {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            spread: Notify::new(),
            seats,
            full: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Whether, and how, a participant may enter a room at `now` (seconds since 1970).
    pub(crate) fn check_entry(
        &self,
        room: &str,
        loopback: bool,
        admission: &Admission,
        seat: Option<&str>,
        now: u64,
    ) -> Result<EntryMode, Denied> {
        let way = self.way(room, loopback, admission, seat, now);
        self.refused.fetch_add(u64::from(way.is_err()), Ordering::Relaxed);
        way
    }

    /// The participant that a seat token names: its bearer was this participant of the room, and was not removed.
    pub(crate) fn seated(
        &self,
        room: &str,
        identity: Option<&str>,
        seat: &str,
        now: u64,
    ) -> Option<ParticipantId> {
        let whose = self.seats.check(seat, room, identity, now)?;
        (!self.inner.lock().book.is_removed(room, whose)).then_some(whose)
    }

    fn way(
        &self,
        room: &str,
        loopback: bool,
        Admission { identity, grants, bearer, .. }: &Admission,
        seat: Option<&str>,
        now: u64,
    ) -> Result<EntryMode, Denied> {
        let identity = identity.as_deref();
        let mut inner = self.inner.lock();
        inner.latest_expiry = inner.latest_expiry.max(bearer.expires);
        inner.extend_to_expiry(room, identity, bearer, &mut || self.spread.notify_one());
        if bearer.token.as_deref().is_some_and(|token| inner.book.is_revoked(token)) {
            return Err(Denied::Revoked);
        }
        if identity.is_some_and(|identity| inner.book.ban(room, identity).is_some()) {
            return Err(Denied::Banned);
        }
        let entry = inner.book.entry(room);
        if loopback || grants.has(Grant::Moderate) || entry == Entry::default() {
            return Ok(EntryMode::Open);
        }
        let whose = seat.and_then(|seat| self.seats.check(seat, room, identity, now));
        // Who was removed stays in the list until its connection has ended.
        let mut here = inner.participants.iter().filter(|(id, person)| {
            person.room == room && !person.loopback && !inner.book.is_removed(room, **id)
        });
        let seated = whose.is_some_and(|id| !inner.book.is_removed(room, id))
            || (identity.is_some() && here.any(|(_, p)| p.identity.as_deref() == identity));
        match entry {
            _ if seated => Ok(EntryMode::Open),
            Entry { locked: true, .. } => Err(Denied::Locked),
            Entry { .. } => Ok(EntryMode::Lobby),
        }
    }

    /// Registers a participant in a room, for as long as the returned member lives. Also returns its seat token.
    pub(crate) fn entered(
        self: &Arc<Self>,
        id: ParticipantId,
        room: &str,
        loopback: bool,
        admission: &Admission,
        now: u64,
    ) -> (Member, Option<String>) {
        let Admission { identity, grants, bearer, .. } = admission.clone();
        let mut inner = self.inner.lock();
        let seat = (!loopback).then(|| self.seats.issue(room, id, identity.as_deref(), now));
        let ruling = Ruling {
            denied: None,
            grants: grants.clone(),
            entry: Entry::default(),
            recording: false,
            waiting: Arc::default(),
        };
        let (ruling, ruled) = watch::channel(ruling);
        let person =
            LocalParticipant { room: room.to_owned(), loopback, identity, bearer, grants, ruling };
        // `welcome` contains the rights of now.
        let (mut rights, _) = inner.rights_of(id, &person, &inner.waiting(room));
        if rights.denied.take().is_some() {
            // A rule removed it while it entered.
            inner.dirty.insert(room.to_owned());
            self.changed.notify_one();
        }
        person.ruling.send_replace(rights);
        inner.participants.insert(id, person);
        let mut ruling = ruled;
        ruling.mark_unchanged();
        (Member { rights: self.clone(), id, room: room.to_owned(), ruling }, seat)
    }

    /// Adds a participant to a room's lobby.
    pub(crate) fn knock(
        self: &Arc<Self>,
        room: &str,
        name: &str,
        identity: Option<&str>,
        now_ms: u64,
    ) -> Result<Waiting, Denied> {
        let id = format!("w{:016x}", rand::random::<u64>());
        let (name, identity) = (name.to_owned(), identity.map(ToOwned::to_owned));
        let says = Content::Knock { name: name.clone(), identity: identity.clone() };
        let now = now_ms / 1000;
        let rule = Rule { at: now_ms, until: now + KNOCK_S, follows: false, says };
        if self.set(room, Subject::Knock(id.clone()), rule).is_err() {
            return Err(Denied::LobbyFull);
        }
        let (answer, answered) = watch::channel(None);
        let waiter = Waiter { room: room.to_owned(), name, identity, since: now_ms, answer };
        let mut inner = self.inner.lock();
        // An identity has one place in the lobby.
        let same =
            |w: &&Waiter| w.room == room && w.identity.is_some() && w.identity == waiter.identity;
        for former in inner.waiters.values().filter(same) {
            former.answer.send_replace(Some(Err(Denied::Again)));
        }
        inner.waiters.insert(id.clone(), waiter);
        drop(inner);
        Ok(Waiting { rights: self.clone(), id, answer: answered })
    }

    /// Removes a participant that has left the lobby.
    fn left_lobby(&self, id: &str) {
        let waiter = self.inner.lock().waiters.remove(id);
        let Some(Waiter { room, .. }) = waiter else { return };
        let about = Subject::Knock(id.to_owned());
        let now_ms = unix_now_ms();
        let lifted = Rule {
            at: now_ms,
            until: now_ms / 1000 + KNOCK_S,
            follows: false,
            says: Content::Lifted,
        };
        let _ = self.set(&room, about, lifted);
    }

    /// Adds a rule with an earlier time, unless its subject has a rule already.
    fn put_unless_known(&self, room: &str, about: Subject, rule: Rule) -> Result<(), Full> {
        if self.inner.lock().book.get(room, &about).is_some() {
            return Ok(());
        }
        self.set(room, about, rule)
    }

    /// Applies a rule. It gets a newer timestamp than any former rule of its subject, even from a server whose clock is
    /// ahead.
    fn set(&self, room: &str, about: Subject, mut rule: Rule) -> Result<(), Full> {
        let mut inner = self.inner.lock();
        rule.at = inner.book.get(room, &about).map_or(rule.at, |known| rule.at.max(known.at + 1));
        let put = inner.put(RuleRecord { room: room.to_owned(), about, rule });
        drop(inner);
        match put {
            Update::Full => {
                self.full.fetch_add(1, Ordering::Relaxed);
                return Err(Full);
            }
            Update::Applied => {
                self.changed.notify_one();
                self.spread.notify_one();
            }
            Update::Unchanged | Update::Outdated => {}
        }
        Ok(())
    }

    /// Evaluates the rights of participants in rooms whose rules have changed. `tick`: includes rules that
    /// expire or must be renewed now.
    pub(crate) fn evaluate(&self, now_ms: u64, tick: bool) -> Vec<Effect> {
        let now = now_ms / 1000;
        let mut inner = self.inner.lock();
        if tick {
            let ended = inner.book.tick(now);
            inner.dirty.extend(ended);
            if inner.renew(now) {
                self.spread.notify_one();
            }
        }
        let dirty = std::mem::take(&mut inner.dirty);
        if dirty.is_empty() {
            return Vec::new();
        }
        let all = dirty.contains(ALL_ROOMS);
        let inner = &*inner;
        let mut effects = Vec::new();
        let mut waiting: HashMap<&str, Arc<Vec<Knock>>> = HashMap::new();
        for (id, person) in &inner.participants {
            if !all && !dirty.contains(&person.room) {
                continue;
            }
            let knocks = waiting.entry(&person.room).or_insert_with(|| inner.waiting(&person.room));
            let (ruling, may) = inner.rights_of(*id, person, knocks);
            let mut effect = None;
            person.ruling.send_if_modified(|known| {
                if known.denied.is_some() || *known == ruling {
                    return false;
                }
                if ruling.denied.is_some() {
                    effect = Some(Effect::End(*id));
                } else if known.grants != ruling.grants {
                    effect = Some(Effect::Restrict(*id, may));
                }
                *known = ruling.clone();
                true
            });
            effects.extend(effect);
        }
        for (id, waiter) in &inner.waiters {
            if all || dirty.contains(&waiter.room) {
                let answer = inner.answer(id, waiter);
                waiter.answer.send_if_modified(|known| {
                    let news = known.is_none() && answer.is_some();
                    *known = known.or(answer);
                    news
                });
            }
        }
        effects
    }

    /// All recordings that were ordered, by room.
    pub(crate) fn recordings(&self) -> Vec<(String, Recording)> {
        self.inner.lock().book.recordings()
    }

    /// Whether an order has ended the recording of a room.
    pub(crate) fn has_lifted_recording(&self, room: &str) -> bool {
        let inner = self.inner.lock();
        let rule = inner.book.get(room, &Subject::Recording);
        rule.is_some_and(|rule| rule.says == Content::Lifted)
    }

    /// Figures for metrics.
    pub(crate) fn stats(&self) -> RightsStats {
        let (rules, waiting) = self.inner.lock().book.counts();
        let [full, refused] =
            [&self.full, &self.refused].map(|count| count.load(Ordering::Relaxed));
        RightsStats { rules, waiting, full, refused }
    }
}

/// Figures of rights.
pub(crate) struct RightsStats {
    /// Number of rules.
    pub rules: usize,
    /// Number of participants in lobbies.
    pub waiting: usize,
    /// Number of rules that were refused because there were too many.
    pub full: u64,
    /// Number of participants that were not let in.
    pub refused: u64,
}

/// There are too many rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has its maximum number of bans and other rules")]
pub(crate) struct Full;

impl Inner {
    fn put(&mut self, record: RuleRecord) -> Update {
        let (room, about) = (record.room.clone(), record.about.clone());
        let put = self.book.put(record);
        if put == Update::Applied {
            self.dirty.insert(room.clone());
            if let Some(unsent) = &mut self.unsent {
                unsent.insert((room, about));
            }
        }
        put
    }

    /// The rights of a participant, and what the SFU lets it do.
    fn rights_of(
        &self,
        id: ParticipantId,
        person: &LocalParticipant,
        waiting: &Arc<Vec<Knock>>,
    ) -> (Ruling, Permissions) {
        let LocalParticipant { room, identity, bearer, grants, .. } = person;
        let revoked = bearer.token.as_deref().is_some_and(|token| self.book.is_revoked(token));
        let banned = identity.as_deref().is_some_and(|who| self.book.ban(room, who).is_some());
        let out = if revoked {
            Some(Denied::Revoked)
        } else if banned {
            Some(Denied::Banned)
        } else {
            self.book.is_removed(room, id).then_some(Denied::Removed)
        };
        let whom = identity.clone().map_or(Grantee::Participant(id.0), Grantee::Identity);
        let grants = match self.book.grants(room, &whom) {
            None => grants.clone(),
            Some(granted) => {
                let by_token = [Grant::Moderate, Grant::Admin].into_iter();
                Grants::new(granted.iter().copied().chain(by_token.filter(|g| grants.has(*g))))
            }
        };
        let (entry, waiting) = if person.loopback {
            (Entry::default(), Arc::default())
        } else if grants.has(Grant::Moderate) {
            (self.book.entry(room), waiting.clone())
        } else {
            (self.book.entry(room), Arc::default())
        };
        let recording = !person.loopback && self.book.recording(room).is_some();
        let may = may(&grants);
        (Ruling { denied: out, grants, entry, recording, waiting }, may)
    }

    fn waiting(&self, room: &str) -> Arc<Vec<Knock>> {
        Arc::new(self.book.knocks(room))
    }

    /// The answer to a participant in the lobby.
    fn answer(&self, id: &str, waiter: &Waiter) -> Option<Result<(), Denied>> {
        let banned = |who: &String| self.book.ban(&waiter.room, who).is_some();
        if waiter.identity.as_ref().is_some_and(banned) {
            return Some(Err(Denied::Banned));
        }
        match self.book.answer(&waiter.room, id) {
            Some(true) => Some(Ok(())),
            Some(false) => Some(Err(Denied::Refused)),
            None => (self.book.entry(&waiter.room) == Entry::default()).then_some(Ok(())),
        }
    }

    /// Renews rules that must not end yet: restrictions of rooms with local participants, and local participants in
    /// lobbies. Returns whether a rule changed.
    fn renew(&mut self, now: u64) -> bool {
        let mut renewed = Vec::new();
        let rooms: BTreeSet<&str> =
            self.participants.values().filter(|p| !p.loopback).map(|p| p.room.as_str()).collect();
        for room in rooms {
            for (about, empty) in
                [(Subject::Entry, EMPTY_ROOM_S), (Subject::Recording, EMPTY_RECORDING_S)]
            {
                let Some(rule) = self.book.get(room, &about) else { continue };
                if rule.says != Content::Lifted && rule.until < now + empty - empty / 5 {
                    let rule = Rule { until: now + empty, ..rule.clone() };
                    renewed.push(RuleRecord { room: room.to_owned(), about, rule });
                }
            }
        }
        for (id, waiter) in &self.waiters {
            if now >= waiter.since / 1000 + MAX_WAIT_S {
                waiter.answer.send_if_modified(|known| {
                    let news = known.is_none();
                    *known = known.or(Some(Err(Denied::Forgotten)));
                    news
                });
                continue;
            }
            let about = Subject::Knock(id.clone());
            if self.book.get(&waiter.room, &about).is_none_or(|rule| rule.until < now + KNOCK_S / 2)
            {
                let (name, identity) = (waiter.name.clone(), waiter.identity.clone());
                let says = Content::Knock { name, identity };
                let rule = Rule { at: waiter.since, until: now + KNOCK_S, follows: false, says };
                renewed.push(RuleRecord { room: waiter.room.clone(), about, rule });
            }
        }
        let mut news = false;
        for record in renewed {
            let dirty = self.dirty.contains(&record.room);
            let room = record.room.clone();
            news |= self.put(record) == Update::Applied;
            // A renewal has no effects.
            if !dirty {
                self.dirty.remove(&room);
            }
        }
        news
    }

    /// Extends bans and grants that follow tokens to the expiry of the token `bearer`.
    fn extend_to_expiry(
        &mut self,
        room: &str,
        identity: Option<&str>,
        bearer: &Bearer,
        news: &mut dyn FnMut(),
    ) {
        let identity = identity.map(ToOwned::to_owned);
        let of_identity = identity.into_iter().flat_map(|who| {
            let grants = Subject::Grants(Grantee::Identity(who.clone()));
            [(room, Subject::Ban(who.clone())), (ALL_ROOMS, Subject::Ban(who)), (room, grants)]
        });
        let of_token = bearer.token.clone().map(|token| (ALL_ROOMS, Subject::Token(token)));
        for (room, about) in of_identity.chain(of_token) {
            let Some(rule) = self.book.get(room, &about) else { continue };
            if rule.follows && rule.says != Content::Lifted && rule.until < bearer.expires {
                let rule = Rule { until: bearer.expires, ..rule.clone() };
                self.put(RuleRecord { room: room.to_owned(), about, rule });
                news();
            }
        }
    }
}

/// Permissions in the SFU that a participant's grants give it.
pub(crate) fn may(grants: &Grants) -> Permissions {
    Permissions {
        publish: grants.has(Grant::Publish),
        subscribe: grants.has(Grant::Subscribe),
        enhance: grants.has(Grant::Enhance),
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
