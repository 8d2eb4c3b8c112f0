//! Rights while a call runs: who may come in, who may stay, and what they may do there.
//!
//! Whatever moderators and operators say becomes a rule in the [`book`], here and on the cluster's other servers ([`spread`]); what
//! follows from the rules for those who are here is worked out again whenever one changes ([`Rights::judge`]) and carried out by
//! [`obey`]. So it makes no difference who said it, where, and in which order it is heard.

mod book;
mod obey;
mod order;
mod rule;
mod seat;
mod spread;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use windlass_protocol::{ErrorCode, Grant, Knock, ProtocolError};
use windlass_sfu::{ParticipantId, Permissions};

pub(crate) use self::book::Door;
use self::book::{Book, Put};
pub(crate) use self::obey::obey;
pub(crate) use self::order::{OrderError, Orders};
pub use self::rule::BadRule;
use self::rule::{About, Rule, Says, Told, Whom};
pub use self::seat::SeatKey;
pub use self::spread::{HeardRule, ToldRule};
use crate::access::{ALL_ROOMS, Admission, Bearer, Grants};

/// A ban or revocation lasts for so long at least, in seconds, unless it is said for how long.
const DAY: u64 = 24 * 3_600;
/// A room without anybody in it forgets after so long, in seconds, that it was locked or had a lobby.
const EMPTY: u64 = 300;
/// A knock is told again after so long that it does not end, in seconds.
const KNOCK: u64 = 30;
/// Nobody waits longer, in seconds.
const MOST_WAIT: u64 = 30 * 60;
/// An answer is remembered for so long, in seconds.
const ANSWER: u64 = 60;

/// What holds for a participant who is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Why it has to go.
    pub out: Option<Out>,
    /// What it may do.
    pub grants: Grants,
    /// Whether nobody new may come in, and whether there is a lobby.
    pub door: (bool, bool),
    /// Who waits, for moderators.
    pub waiting: Arc<Vec<Knock>>,
}

/// Why somebody may not be in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Out {
    /// A moderator or operator removed it.
    #[error("you were removed from the room")]
    Removed,
    /// Its identity is banned.
    #[error("you are banned from the room")]
    Banned,
    /// Its token was revoked.
    #[error("the access token was revoked")]
    Revoked,
    /// A moderator has not let it in.
    #[error("you were not let in")]
    Refused,
    /// Nobody has for a long time.
    #[error("nobody has let you in")]
    Forgotten,
    /// Its identity waits elsewhere from now on.
    #[error("you wait to be let in from elsewhere")]
    Again,
    /// Nobody new may come in.
    #[error("the room is locked")]
    Locked,
    /// One must wait to be let in, and cannot by this way.
    #[error("a moderator must let you in, and this way in cannot wait for that")]
    Lobby,
    /// As many wait as may.
    #[error("too many wait to be let in")]
    Crowd,
}

impl Out {
    /// The code of the answer.
    pub fn code(self) -> ErrorCode {
        match self {
            Out::Removed => ErrorCode::Removed,
            Out::Banned => ErrorCode::Banned,
            Out::Revoked => ErrorCode::Revoked,
            Out::Refused | Out::Forgotten => ErrorCode::Refused,
            Out::Again => ErrorCode::Replaced,
            Out::Locked | Out::Lobby => ErrorCode::Locked,
            Out::Crowd => ErrorCode::RoomFull,
        }
    }
}

impl From<Out> for ProtocolError {
    fn from(out: Out) -> Self {
        ProtocolError::new(out.code(), out.to_string())
    }
}

/// How somebody may come in who is not barred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// At once.
    Open,
    /// When a moderator says so.
    Lobby,
}

/// What the obeying task has to do to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    End(ParticipantId),
    Restrict(ParticipantId, Permissions),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Rights {
    inner: Mutex<Inner>,
    /// Something is to be worked out again.
    changed: Notify,
    /// There are rules that other servers have not been told.
    spread: Notify,
    seats: SeatKey,
    full: AtomicU64,
    barred: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    book: Book,
    people: HashMap<ParticipantId, Person>,
    waiters: HashMap<String, Waiter>,
    /// Rooms of which it is to be worked out again what follows.
    dirty: BTreeSet<String>,
    /// What other servers are to be told; `None`: there are none.
    untold: Option<BTreeSet<(String, About)>>,
    /// The latest time until which any token was good, in seconds since 1970.
    latest: u64,
}

/// Somebody in a room here.
#[derive(Debug)]
struct Person {
    room: String,
    /// A room of its own, called like that one.
    loopback: bool,
    identity: Option<String>,
    bearer: Bearer,
    /// By its token.
    grants: Grants,
    ruling: watch::Sender<Ruling>,
}

#[derive(Debug)]
struct Waiter {
    room: String,
    name: String,
    identity: Option<String>,
    since: u64,
    answer: watch::Sender<Option<Result<(), Out>>>,
}

/// Somebody's place in a room here, until this is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    rights: Arc<Rights>,
    id: ParticipantId,
    /// As the SFU's callers name it.
    pub room: String,
    /// What holds for it.
    pub ruling: watch::Receiver<Ruling>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.rights.inner.lock().people.remove(&self.id);
    }
}

/// Somebody's place in the lobby, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    rights: Arc<Rights>,
    id: String,
    /// What a moderator says.
    pub answer: watch::Receiver<Option<Result<(), Out>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.rights.gone(&self.id);
    }
}

impl Rights {
    /// Without a rule. `clustered`: other servers want to be told of each.
    pub(crate) fn new(seats: SeatKey, clustered: bool) -> Arc<Rights> {
        let inner = Inner { untold: clustered.then(BTreeSet::new), ..Inner::default() };
        Arc::new(Rights {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            spread: Notify::new(),
            seats,
            full: AtomicU64::new(0),
            barred: AtomicU64::new(0),
        })
    }

    /// Whether, and how, somebody may come into a room at `now` (seconds since 1970).
    pub(crate) fn way_in(
        &self,
        room: &str,
        loopback: bool,
        admission: &Admission,
        seat: Option<&str>,
        now: u64,
    ) -> Result<Way, Out> {
        let way = self.way(room, loopback, admission, seat, now);
        self.barred.fetch_add(u64::from(way.is_err()), Ordering::Relaxed);
        way
    }

    fn way(
        &self,
        room: &str,
        loopback: bool,
        Admission { identity, grants, bearer, .. }: &Admission,
        seat: Option<&str>,
        now: u64,
    ) -> Result<Way, Out> {
        let identity = identity.as_deref();
        let mut inner = self.inner.lock();
        inner.latest = inner.latest.max(bearer.expires);
        inner.lasts_with(room, identity, bearer, &mut || self.spread.notify_one());
        if bearer.token.as_deref().is_some_and(|token| inner.book.is_revoked(token)) {
            return Err(Out::Revoked);
        }
        if identity.is_some_and(|identity| inner.book.ban(room, identity).is_some()) {
            return Err(Out::Banned);
        }
        let door = inner.book.door(room);
        if loopback || grants.has(Grant::Moderate) || door == Door::default() {
            return Ok(Way::Open);
        }
        let whose = seat.and_then(|seat| self.seats.whose(seat, room, identity, now));
        let mut here = inner.people.values().filter(|p| p.room == room && !p.loopback);
        let seated = whose.is_some_and(|id| !inner.book.is_removed(room, id))
            || (identity.is_some() && here.any(|p| p.identity.as_deref() == identity));
        match door {
            _ if seated => Ok(Way::Open),
            Door { locked: true, .. } => Err(Out::Locked),
            Door { .. } => Ok(Way::Lobby),
        }
    }

    /// Somebody is in a room here from now on, for as long as what this returns lives. Also its seat there.
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
        let seat = (!loopback).then(|| self.seats.give(room, id, identity.as_deref(), now));
        let ruling = Ruling {
            out: None,
            grants: grants.clone(),
            door: (false, false),
            waiting: Arc::default(),
        };
        let (ruling, ruled) = watch::channel(ruling);
        let person = Person { room: room.to_owned(), loopback, identity, bearer, grants, ruling };
        // What holds already is told by `welcome`.
        let (mut holds, _) = inner.holds(id, &person, &inner.waiting(room));
        if holds.out.take().is_some() {
            // It was put out while it came in.
            inner.dirty.insert(room.to_owned());
            self.changed.notify_one();
        }
        person.ruling.send_replace(holds);
        inner.people.insert(id, person);
        let mut ruling = ruled;
        ruling.mark_unchanged();
        (Member { rights: self.clone(), id, room: room.to_owned(), ruling }, seat)
    }

    /// Somebody waits to be let into a room.
    pub(crate) fn knock(
        self: &Arc<Self>,
        room: &str,
        name: &str,
        identity: Option<&str>,
        now_ms: u64,
    ) -> Result<Waiting, Out> {
        let id = format!("w{:016x}", rand::random::<u64>());
        let (name, identity) = (name.to_owned(), identity.map(ToOwned::to_owned));
        let says = Says::Knock { name: name.clone(), identity: identity.clone() };
        let now = now_ms / 1000;
        let rule = Rule { at: now_ms, until: now + KNOCK, follows: false, says };
        if self.set(room, About::Knock(id.clone()), rule).is_err() {
            return Err(Out::Crowd);
        }
        let (answer, answered) = watch::channel(None);
        let waiter = Waiter { room: room.to_owned(), name, identity, since: now_ms, answer };
        let mut inner = self.inner.lock();
        // One waits at one place.
        let same =
            |w: &&Waiter| w.room == room && w.identity.is_some() && w.identity == waiter.identity;
        for former in inner.waiters.values().filter(same) {
            former.answer.send_replace(Some(Err(Out::Again)));
        }
        inner.waiters.insert(id.clone(), waiter);
        drop(inner);
        Ok(Waiting { rights: self.clone(), id, answer: answered })
    }

    /// Somebody waits no more.
    fn gone(&self, id: &str) {
        let waiter = self.inner.lock().waiters.remove(id);
        let Some(Waiter { room, .. }) = waiter else { return };
        let about = About::Knock(id.to_owned());
        let now_ms = unix_now_ms();
        let lifted =
            Rule { at: now_ms, until: now_ms / 1000 + KNOCK, follows: false, says: Says::Lifted };
        let _ = self.set(&room, about, lifted);
    }

    /// A rule holds from now on: it is later than what was said before, also by a server whose clock is ahead.
    fn set(&self, room: &str, about: About, mut rule: Rule) -> Result<(), Full> {
        let mut inner = self.inner.lock();
        rule.at = inner.book.get(room, &about).map_or(rule.at, |known| rule.at.max(known.at + 1));
        let put = inner.put(Told { room: room.to_owned(), about, rule });
        drop(inner);
        match put {
            Put::Full => {
                self.full.fetch_add(1, Ordering::Relaxed);
                return Err(Full);
            }
            Put::News => {
                self.changed.notify_one();
                self.spread.notify_one();
            }
            Put::Known | Put::Older => {}
        }
        Ok(())
    }

    /// Works out what follows for those who are here of what has changed; `tick`: also by time.
    fn judge(&self, now_ms: u64, tick: bool) -> Vec<Deed> {
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
        let mut deeds = Vec::new();
        let mut waiting: HashMap<&str, Arc<Vec<Knock>>> = HashMap::new();
        for (id, person) in &inner.people {
            if !all && !dirty.contains(&person.room) {
                continue;
            }
            let knocks = waiting.entry(&person.room).or_insert_with(|| inner.waiting(&person.room));
            let (ruling, may) = inner.holds(*id, person, knocks);
            let mut deed = None;
            person.ruling.send_if_modified(|known| {
                if known.out.is_some() || *known == ruling {
                    return false;
                }
                if ruling.out.is_some() {
                    deed = Some(Deed::End(*id));
                } else if known.grants != ruling.grants {
                    deed = Some(Deed::Restrict(*id, may));
                }
                *known = ruling.clone();
                true
            });
            deeds.extend(deed);
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
        deeds
    }

    /// Rules that hold, people who wait, rules that there was no room for, and how often somebody was not let in.
    pub(crate) fn counts(&self) -> (usize, usize, u64, u64) {
        let (rules, waiting) = self.inner.lock().book.counts();
        let [full, barred] = [&self.full, &self.barred].map(|count| count.load(Ordering::Relaxed));
        (rules, waiting, full, barred)
    }
}

/// There is no room for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are as many bans and other rules as there may be")]
pub(crate) struct Full;

impl Inner {
    fn put(&mut self, told: Told) -> Put {
        let (room, about) = (told.room.clone(), told.about.clone());
        let put = self.book.put(told);
        if put == Put::News {
            self.dirty.insert(room.clone());
            if let Some(untold) = &mut self.untold {
                untold.insert((room, about));
            }
        }
        put
    }

    /// What holds for somebody, and what it may do by that.
    fn holds(
        &self,
        id: ParticipantId,
        person: &Person,
        waiting: &Arc<Vec<Knock>>,
    ) -> (Ruling, Permissions) {
        let Person { room, identity, bearer, grants, .. } = person;
        let revoked = bearer.token.as_deref().is_some_and(|token| self.book.is_revoked(token));
        let banned = identity.as_deref().is_some_and(|who| self.book.ban(room, who).is_some());
        let out = if revoked {
            Some(Out::Revoked)
        } else if banned {
            Some(Out::Banned)
        } else {
            self.book.is_removed(room, id).then_some(Out::Removed)
        };
        let whom = identity.clone().map_or(Whom::Participant(id.0), Whom::Identity);
        let grants = match self.book.grants(room, &whom) {
            None => grants.clone(),
            Some(said) => {
                let by_token = [Grant::Moderate, Grant::Admin].into_iter();
                Grants::new(said.iter().copied().chain(by_token.filter(|g| grants.has(*g))))
            }
        };
        let (door, waiting) = if person.loopback {
            (Door::default(), Arc::default())
        } else if grants.has(Grant::Moderate) {
            (self.book.door(room), waiting.clone())
        } else {
            (self.book.door(room), Arc::default())
        };
        let may = may(&grants);
        (Ruling { out, grants, door: (door.locked, door.lobby), waiting }, may)
    }

    fn waiting(&self, room: &str) -> Arc<Vec<Knock>> {
        Arc::new(self.book.knocks(room))
    }

    /// What one who waits is to be told.
    fn answer(&self, id: &str, waiter: &Waiter) -> Option<Result<(), Out>> {
        let banned = |who: &String| self.book.ban(&waiter.room, who).is_some();
        if waiter.identity.as_ref().is_some_and(banned) {
            return Some(Err(Out::Banned));
        }
        match self.book.answer(&waiter.room, id) {
            Some(true) => Some(Ok(())),
            Some(false) => Some(Err(Out::Refused)),
            None => (self.book.door(&waiter.room) == Door::default()).then_some(Ok(())),
        }
    }

    /// Tells again what must not end yet: the doors of rooms with somebody in them, and who waits here. Whether there is news.
    fn renew(&mut self, now: u64) -> bool {
        let mut renewed = Vec::new();
        let rooms: BTreeSet<&str> =
            self.people.values().filter(|p| !p.loopback).map(|p| p.room.as_str()).collect();
        for room in rooms {
            let Some(rule) = self.book.get(room, &About::Door) else { continue };
            if rule.says != Says::Lifted && rule.until < now + EMPTY - EMPTY / 5 {
                let rule = Rule { until: now + EMPTY, ..rule.clone() };
                renewed.push(Told { room: room.to_owned(), about: About::Door, rule });
            }
        }
        for (id, waiter) in &self.waiters {
            if now >= waiter.since / 1000 + MOST_WAIT {
                waiter.answer.send_if_modified(|known| {
                    let news = known.is_none();
                    *known = known.or(Some(Err(Out::Forgotten)));
                    news
                });
                continue;
            }
            let about = About::Knock(id.clone());
            if self.book.get(&waiter.room, &about).is_none_or(|rule| rule.until < now + KNOCK / 2) {
                let (name, identity) = (waiter.name.clone(), waiter.identity.clone());
                let says = Says::Knock { name, identity };
                let rule = Rule { at: waiter.since, until: now + KNOCK, follows: false, says };
                renewed.push(Told { room: waiter.room.clone(), about, rule });
            }
        }
        let mut news = false;
        for told in renewed {
            let dirty = self.dirty.contains(&told.room);
            let room = told.room.clone();
            news |= self.put(told) == Put::News;
            // Nothing follows from it but that it lasts.
            if !dirty {
                self.dirty.remove(&room);
            }
        }
        news
    }

    /// Bans and grants that follow tokens last for as long as one that is good for longer.
    fn lasts_with(
        &mut self,
        room: &str,
        identity: Option<&str>,
        bearer: &Bearer,
        news: &mut dyn FnMut(),
    ) {
        let identity = identity.map(ToOwned::to_owned);
        let of_identity = identity.into_iter().flat_map(|who| {
            let grants = About::Grants(Whom::Identity(who.clone()));
            [(room, About::Ban(who.clone())), (ALL_ROOMS, About::Ban(who)), (room, grants)]
        });
        let of_token = bearer.token.clone().map(|token| (ALL_ROOMS, About::Token(token)));
        for (room, about) in of_identity.chain(of_token) {
            let Some(rule) = self.book.get(room, &about) else { continue };
            if rule.follows && rule.says != Says::Lifted && rule.until < bearer.expires {
                let rule = Rule { until: bearer.expires, ..rule.clone() };
                self.put(Told { room: room.to_owned(), about, rule });
                news();
            }
        }
    }
}

/// What the SFU lets somebody do by its grants.
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
