//! Who may connect, open a socket or begin a session of WHIP or WHEP, and how often join: bounds for all together, and for
//! each address and each identity.
//!
//! Nobody has more than a quarter of what there is for all: not an address (of sockets, connections, handshakes, and through
//! them of participants and rooms), and not an identity, wherever it comes from (of participants and rooms). A room is counted
//! for whoever began it, until it ends.
//!
//! Addresses of IPv6 count by their first 64 bits, which are one customer's (RFC 6177). The machine's own addresses
//! have no bounds of their own: a proxy there that is not trusted stands for all of its clients.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use windlass_sfu::{rate_limit_address, share_of_one};

use crate::rate::TokenBucket;

/// Addresses and identities that are remembered at a time. Only those with something open, or with joins in the last minute,
/// are; a stranger above that is refused.
const REMEMBERED: usize = 65_536;
/// Connections without a socket for each socket that there may be: a browser opens so many to load a page.
const CONNECTIONS: usize = 6;
/// TLS handshakes at a time.
const HANDSHAKES: usize = 1024;
/// Joins are counted over this time.
const MINUTE: Duration = Duration::from_secs(60);

/// Bounds of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorLimits {
    /// Sockets and sessions at a time, of all together.
    pub sockets: usize,
    /// Sockets and sessions at a time of one address; 0: addresses are not bounded, in nothing but joins.
    pub sockets_per_address: usize,
    /// Joins in a minute of one address; 0 for no bound.
    pub joins_per_address: u32,
    /// Participants at a time, of all together (which the SFU counts).
    pub participants: usize,
    /// Rooms at a time, of all together (which the SFU counts), and as many rooms of one participant's own.
    pub rooms: usize,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self {
            sockets: 2000,
            sockets_per_address: share_of_one(2000),
            joins_per_address: 600,
            participants: 1000,
            rooms: 200,
        }
    }
}

/// Why somebody may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// There are as many sockets as there may be.
    #[error("too many connections; try again later")]
    Full,
    /// The address has as many sockets as it may.
    #[error("too many connections from your address")]
    Sockets,
    /// The address joins too often.
    #[error("too many joins from your address; try again in a minute")]
    Joins,
    /// The address, or the identity, has as many participants, or has begun as many rooms, as one may.
    #[error("too many {0} of your address or identity are on this server; end some of them")]
    Share(&'static str),
}

/// Counts who is inside.
#[derive(Debug)]
pub(crate) struct Door {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limits: DoorLimits,
    all: Guests,
    visitors: HashMap<Who, Visitor>,
}

/// Whom something is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Address(IpAddr),
    /// By its access token.
    Identity(String),
}

#[derive(Debug, Default)]
struct Visitor {
    guests: Guests,
    joins: Option<(TokenBucket, Instant)>,
}

/// What somebody comes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A socket or a session.
    Socket,
    /// A connection that is none, or not yet.
    Connection,
    /// A connection that has not agreed on its keys yet.
    Handshake,
    /// A participant.
    Participant,
    /// A room that it begins.
    Room,
    /// A room of its own.
    Loopback,
}

/// How many there are of each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Guests([usize; 6]);

impl Guests {
    fn of(&mut self, guest: Guest) -> &mut usize {
        &mut self.0[guest as usize]
    }
}

impl DoorLimits {
    /// As many as there may be for all, as far as they are counted here.
    fn of_all(&self, guest: Guest) -> usize {
        match guest {
            Guest::Socket => self.sockets,
            Guest::Connection => self.sockets.saturating_mul(CONNECTIONS),
            Guest::Handshake => HANDSHAKES,
            // The SFU refuses them.
            Guest::Participant | Guest::Room | Guest::Loopback => usize::MAX,
        }
    }

    /// As many as there may be for one.
    fn of_one(&self, guest: Guest, who: &Who) -> usize {
        if self.sockets_per_address == 0 && matches!(who, Who::Address(_)) {
            return usize::MAX;
        }
        match guest {
            Guest::Socket => self.sockets_per_address,
            Guest::Connection => self.sockets_per_address.saturating_mul(CONNECTIONS),
            Guest::Handshake => share_of_one(HANDSHAKES),
            Guest::Participant => share_of_one(self.participants),
            Guest::Room | Guest::Loopback => share_of_one(self.rooms),
        }
    }
}

impl Refused {
    fn of(guest: Guest) -> Refused {
        match guest {
            Guest::Socket | Guest::Connection | Guest::Handshake => Refused::Sockets,
            Guest::Participant => Refused::Share("participants"),
            Guest::Room => Refused::Share("rooms"),
            Guest::Loopback => Refused::Share("loopback rooms"),
        }
    }
}

/// Room for one guest; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Seat {
    door: Arc<Door>,
    guest: Guest,
    of: Vec<Who>,
}

/// A socket or session that was let in; dropping it makes room.
#[derive(Debug)]
pub(crate) struct Permit(Seat);

impl Door {
    pub fn new(limits: DoorLimits) -> Arc<Door> {
        let state = State { limits, all: Guests::default(), visitors: HashMap::new() };
        Arc::new(Door { state: Mutex::new(state) })
    }

    /// Other bounds from now on; nobody who is inside has to go.
    pub fn set_limits(&self, limits: DoorLimits) {
        let mut state = self.state.lock();
        state.limits = limits;
        // Buckets are of the former rate.
        for visitor in state.visitors.values_mut() {
            visitor.joins = None;
        }
    }

    /// Sockets that are open.
    pub fn open(&self) -> usize {
        *self.state.lock().all.of(Guest::Socket)
    }

    /// Addresses and identities that are remembered.
    pub fn addresses(&self) -> usize {
        self.state.lock().visitors.len()
    }

    /// Takes a connection, of which nothing is known yet, or its handshake; `None`: of one who stands for many.
    pub fn knock(
        self: &Arc<Self>,
        guest: Guest,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Result<Seat, Refused> {
        let of = client.and_then(rate_limit_address).map(Who::Address);
        self.admit(guest, of.into_iter().collect(), now)
    }

    /// Lets a socket in.
    pub fn enter(self: &Arc<Self>, client: IpAddr, now: Instant) -> Result<Permit, Refused> {
        self.knock(Guest::Socket, Some(client), now).map(Permit)
    }

    /// Room for one more, unless there are as many as there may be, for all or for one of those that it is counted `of`.
    fn admit(self: &Arc<Self>, guest: Guest, of: Vec<Who>, now: Instant) -> Result<Seat, Refused> {
        let mut state = self.state.lock();
        let limits = state.limits;
        if *state.all.of(guest) >= limits.of_all(guest) {
            return Err(Refused::Full);
        }
        for who in &of {
            if !state.remembers(who, now) {
                return Err(Refused::Full);
            }
            let has = state.visitors.get_mut(who).map_or(0, |visitor| *visitor.guests.of(guest));
            if has >= limits.of_one(guest, who) {
                return Err(Refused::of(guest));
            }
        }
        for who in &of {
            *state.visitors.entry(who.clone()).or_default().guests.of(guest) += 1;
        }
        *state.all.of(guest) += 1;
        Ok(Seat { door: self.clone(), guest, of })
    }
}

impl Permit {
    /// Whose a participant is, by a number that says nothing else: of its identity, or, where it has none, of its address; 0 where that
    /// stands for many.
    pub fn owner(&self, identity: Option<&str>) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (identity, self.0.of.first()) {
            (Some(identity), _) => identity.hash(&mut hasher),
            (None, Some(who)) => who.hash(&mut hasher),
            (None, None) => return 0,
        }
        hasher.finish()
    }

    /// Whether its address may join once more.
    pub fn join(&self, now: Instant) -> Result<(), Refused> {
        let Some(address) = self.0.of.first() else { return Ok(()) };
        let mut state = self.0.door.state.lock();
        let most = state.limits.joins_per_address;
        if most == 0 {
            return Ok(());
        }
        let Some(visitor) = state.visitors.get_mut(address) else { return Ok(()) };
        let per_second = f64::from(most) / MINUTE.as_secs_f64();
        let fresh = || (TokenBucket::with_rate(most, per_second, now), now);
        let (bucket, last) = visitor.joins.get_or_insert_with(fresh);
        *last = now;
        if bucket.take(now) { Ok(()) } else { Err(Refused::Joins) }
    }

    /// Room for a participant of this socket or session, or for a room that it begins: counted for its address, and for
    /// whoever it is by its token.
    pub fn seat(
        &self,
        guest: Guest,
        identity: Option<&str>,
        now: Instant,
    ) -> Result<Seat, Refused> {
        let identity = identity.map(|identity| Who::Identity(identity.to_owned()));
        self.0.door.admit(guest, self.0.of.iter().cloned().chain(identity).collect(), now)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.door.state.lock();
        let count = state.all.of(self.guest);
        *count = count.saturating_sub(1);
        for who in &self.of {
            let Some(visitor) = state.visitors.get_mut(who) else { continue };
            let count = visitor.guests.of(self.guest);
            *count = count.saturating_sub(1);
            if visitor.guests == Guests::default() && visitor.joins.is_none() {
                state.visitors.remove(who);
            }
        }
    }
}

impl State {
    /// Whether somebody is known, or there is room for one more.
    fn remembers(&mut self, who: &Who, now: Instant) -> bool {
        if self.visitors.len() >= REMEMBERED && !self.visitors.contains_key(who) {
            // After a minute a bucket is full again: forgetting it changes nothing.
            self.visitors.retain(|_, v| {
                let recent =
                    |(_, last): &(_, Instant)| now.saturating_duration_since(*last) < MINUTE;
                v.guests != Guests::default() || v.joins.as_ref().is_some_and(recent)
            });
            return self.visitors.len() < REMEMBERED;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn door(sockets: usize, sockets_per_address: usize, joins_per_address: u32) -> Arc<Door> {
        Door::new(DoorLimits {
            sockets,
            sockets_per_address,
            joins_per_address,
            ..DoorLimits::default()
        })
    }

    #[test]
    fn sockets_are_bounded_in_all_and_by_address() {
        let (door, now) = (door(3, 2, 0), Instant::now());
        let first = door.enter(ip("192.0.2.1"), now).unwrap();
        let _second = door.enter(ip("192.0.2.1"), now).unwrap();
        assert_eq!(door.enter(ip("192.0.2.1"), now).unwrap_err(), Refused::Sockets);
        let _third = door.enter(ip("192.0.2.2"), now).unwrap();
        assert_eq!(door.enter(ip("192.0.2.3"), now).unwrap_err(), Refused::Full);
        drop(first);
        assert!(door.enter(ip("192.0.2.1"), now).is_ok());
    }

    #[test]
    fn connections_that_are_no_sockets_have_bounds_of_their_own() {
        let (door, now) = (door(3, 2, 0), Instant::now());
        let knock = |from: &str| door.knock(Guest::Connection, Some(ip(from)), now);
        let mut held: Vec<_> = (0..12).map(|_| knock("192.0.2.1").unwrap()).collect();
        assert_eq!(knock("192.0.2.1").unwrap_err(), Refused::Sockets);
        assert!(door.enter(ip("192.0.2.1"), now).is_ok(), "sockets are others");
        held.extend((0..6).map(|_| door.knock(Guest::Connection, None, now).unwrap()));
        assert_eq!(knock("192.0.2.9").unwrap_err(), Refused::Full);
        held.truncate(11);
        assert!(knock("192.0.2.1").is_ok());
        drop(held);
        assert_eq!((door.addresses(), &door.state.lock().all), (0, &Guests::default()));
    }

    #[test]
    fn neighbours_of_one_network_of_ipv6_are_one_and_this_machine_is_nobody() {
        let (door, now) = (door(9, 1, 1), Instant::now());
        let _held = door.enter(ip("2001:db8:0:1::1"), now).unwrap();
        assert_eq!(door.enter(ip("2001:db8:0:1:ffff::2"), now).unwrap_err(), Refused::Sockets);
        assert!(door.enter(ip("2001:db8:0:2::1"), now).is_ok());
        let own: Vec<_> = ["127.0.0.1", "::1", "::ffff:127.0.0.1"]
            .into_iter()
            .map(|own| door.enter(ip(own), now).unwrap())
            .collect();
        assert!(own.iter().all(|p| p.join(now).is_ok() && p.join(now).is_ok()));
    }

    #[test]
    fn joins_are_bounded_by_address_and_time() {
        let (door, now) = (door(9, 9, 2), Instant::now());
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let permits = [door.enter(one, now).unwrap(), door.enter(one, now).unwrap()];
        assert_eq!((permits[0].join(now), permits[1].join(now)), (Ok(()), Ok(())));
        assert_eq!(permits[0].join(now), Err(Refused::Joins));
        assert_eq!(door.enter(other, now).unwrap().join(now), Ok(()));
        drop(permits);
        let again = door.enter(one, now).unwrap();
        assert_eq!(again.join(now), Err(Refused::Joins), "who comes back is not forgotten");
        assert_eq!(again.join(now + MINUTE), Ok(()));
    }

    #[test]
    fn new_bounds_hold_for_those_who_come() {
        let (door, now) = (door(9, 1, 0), Instant::now());
        let _held = door.enter(ip("192.0.2.1"), now).unwrap();
        let wider = DoorLimits { sockets: 9, sockets_per_address: 2, ..DoorLimits::default() };
        door.set_limits(wider);
        assert!(door.enter(ip("192.0.2.1"), now).is_ok());
        door.set_limits(DoorLimits { sockets: 1, ..wider });
        assert_eq!(door.enter(ip("192.0.2.9"), now).unwrap_err(), Refused::Full);
    }

    #[test]
    fn an_address_or_identity_has_a_quarter_of_the_participants_and_rooms_and_gives_them_back() {
        let now = Instant::now();
        let limits = DoorLimits { participants: 8, rooms: 4, ..DoorLimits::default() };
        let door = Door::new(limits);
        let [one, other, own] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"]
            .map(|address| door.enter(ip(address), now).unwrap());
        let mut ana = vec![one.seat(Guest::Participant, Some("ana"), now).unwrap()];
        ana.push(other.seat(Guest::Participant, Some("ana"), now).unwrap());
        let full =
            |permit: &Permit, guest, identity| permit.seat(guest, identity, now).unwrap_err();
        let people = Refused::Share("participants");
        assert_eq!(full(&other, Guest::Participant, Some("ana")), people, "by identity");
        assert_eq!(full(&own, Guest::Participant, Some("ana")), people, "wherever it comes from");
        let _bo = one.seat(Guest::Participant, Some("bo"), now).unwrap();
        assert_eq!(full(&one, Guest::Participant, Some("eve")), people, "by address");
        for guest in [Guest::Room, Guest::Loopback] {
            let _first = one.seat(guest, None, now).unwrap();
            assert!(matches!(full(&one, guest, None), Refused::Share(_)));
            assert!(other.seat(guest, None, now).is_ok());
        }
        ana.pop();
        assert!(other.seat(Guest::Participant, Some("ana"), now).is_ok());
        let many: Vec<_> = (0..9).map(|_| own.seat(Guest::Room, None, now).unwrap()).collect();
        drop((ana, many));
        assert!(door.state.lock().visitors.keys().all(|who| *who != Who::Identity("ana".into())));
    }

    #[test]
    fn addresses_are_not_bounded_where_all_come_by_one() {
        let now = Instant::now();
        let limits = DoorLimits { sockets_per_address: 0, rooms: 4, ..DoorLimits::default() };
        let door = Door::new(limits);
        let all: Vec<_> = (0..9).map(|_| door.enter(ip("192.0.2.1"), now).unwrap()).collect();
        let rooms: Vec<_> =
            all.iter().map(|permit| permit.seat(Guest::Room, None, now).unwrap()).collect();
        assert_eq!(rooms.len(), 9);
    }

    #[test]
    fn an_office_of_200_behind_one_address_joins_one_room_by_the_defaults() {
        let (door, now) = (Door::new(DoorLimits::default()), Instant::now());
        let office = ip("192.0.2.1");
        let in_all: Vec<_> = (0..200)
            .map(|n| {
                let knock = door.knock(Guest::Connection, Some(office), now).unwrap();
                let hands = door.knock(Guest::Handshake, Some(office), now).unwrap();
                let permit = door.enter(office, now).unwrap();
                permit.join(now).unwrap();
                let who = n.to_string();
                let seat = permit.seat(Guest::Participant, Some(&who), now).unwrap();
                (knock, hands, permit, seat)
            })
            .collect();
        // And all of them once more, before the server has heard that the first ones are gone.
        assert!(in_all.iter().all(|_| door.enter(office, now).unwrap().join(now).is_ok()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (door, now) = (door(usize::MAX, 1, 1), Instant::now());
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..REMEMBERED as u32 {
            door.enter(address(0x0a00_0000 + n), now).unwrap().join(now).unwrap();
        }
        assert_eq!(door.enter(address(1), now).unwrap_err(), Refused::Full);
        assert_eq!(door.addresses(), REMEMBERED);
        assert!(door.enter(address(1), now + MINUTE).is_ok());
        assert!(door.addresses() <= 1);
    }
}
