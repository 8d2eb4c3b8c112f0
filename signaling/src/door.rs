//! Who may connect, open a socket or begin a session of WHIP or WHEP, and how often join: bounds for all together and for
//! each address.
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
use windlass_sfu::counted_address;

use crate::rate::TokenBucket;

/// Addresses that are remembered at a time. Only those with open sockets, or with joins in the last minute, are; a
/// stranger above that is refused.
const REMEMBERED: usize = 65_536;
/// Connections without a socket for each socket that there may be: a browser opens so many to load a page.
const CONNECTIONS: usize = 6;
/// Joins are counted over this time.
const MINUTE: Duration = Duration::from_secs(60);

/// Bounds of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorLimits {
    /// Sockets and sessions at a time, of all together.
    pub sockets: usize,
    /// Sockets and sessions at a time of one address; 0 for no bound.
    pub sockets_per_address: usize,
    /// Joins in a minute of one address; 0 for no bound.
    pub joins_per_address: u32,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self { sockets: 2000, sockets_per_address: 200, joins_per_address: 200 }
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
    visitors: HashMap<IpAddr, Visitor>,
}

#[derive(Debug, Default)]
struct Visitor {
    guests: Guests,
    joins: Option<(TokenBucket, Instant)>,
}

/// What somebody comes with.
#[derive(Debug, Clone, Copy)]
enum Guest {
    /// A socket or a session.
    Socket,
    /// A connection that is none, or not yet.
    Connection,
}

/// How many there are.
#[derive(Debug, Default)]
struct Guests {
    sockets: usize,
    connections: usize,
}

impl Guests {
    fn of(&mut self, guest: Guest) -> &mut usize {
        match guest {
            Guest::Socket => &mut self.sockets,
            Guest::Connection => &mut self.connections,
        }
    }

    fn none(&self) -> bool {
        self.sockets == 0 && self.connections == 0
    }
}

/// Room for one guest; dropping it gives it back.
#[derive(Debug)]
struct Seat {
    door: Arc<Door>,
    guest: Guest,
    address: Option<IpAddr>,
}

/// A socket or session that was let in; dropping it makes room.
#[derive(Debug)]
pub(crate) struct Permit(Seat);

/// A connection that is no socket; dropping it makes room.
#[derive(Debug)]
pub(crate) struct Knock(#[expect(dead_code, reason = "it is held for as long as it lives")] Seat);

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
        self.state.lock().all.sockets
    }

    /// Addresses that are remembered.
    pub fn addresses(&self) -> usize {
        self.state.lock().visitors.len()
    }

    /// Takes a connection, of which nothing is known yet; `None`: of one who stands for many.
    pub fn knock(self: &Arc<Self>, client: Option<IpAddr>, now: Instant) -> Result<Knock, Refused> {
        self.admit(Guest::Connection, CONNECTIONS, client, now).map(Knock)
    }

    /// Lets a socket in.
    pub fn enter(self: &Arc<Self>, client: IpAddr, now: Instant) -> Result<Permit, Refused> {
        self.admit(Guest::Socket, 1, Some(client), now).map(Permit)
    }

    /// Room for one more, where there may be so many for each socket that there may be.
    fn admit(
        self: &Arc<Self>,
        guest: Guest,
        times: usize,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Result<Seat, Refused> {
        let mut state = self.state.lock();
        let limits = state.limits;
        if *state.all.of(guest) >= limits.sockets.saturating_mul(times) {
            return Err(Refused::Full);
        }
        let address = client.and_then(counted_address);
        if let Some(address) = address {
            let visitor = state.visitor(address, now).ok_or(Refused::Full)?;
            let most = limits.sockets_per_address.saturating_mul(times);
            let count = visitor.guests.of(guest);
            if most > 0 && *count >= most {
                return Err(Refused::Sockets);
            }
            *count += 1;
        }
        *state.all.of(guest) += 1;
        Ok(Seat { door: self.clone(), guest, address })
    }
}

impl Permit {
    /// Whose a participant is, by a number that says nothing else: of its identity, or, where it has none, of its address; 0 where that
    /// stands for many.
    pub fn owner(&self, identity: Option<&str>) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (identity, self.0.address) {
            (Some(identity), _) => identity.hash(&mut hasher),
            (None, Some(address)) => address.hash(&mut hasher),
            (None, None) => return 0,
        }
        hasher.finish()
    }

    /// Whether its address may join once more.
    pub fn join(&self, now: Instant) -> Result<(), Refused> {
        let Some(address) = self.0.address else { return Ok(()) };
        let mut state = self.0.door.state.lock();
        let most = state.limits.joins_per_address;
        if most == 0 {
            return Ok(());
        }
        let Some(visitor) = state.visitors.get_mut(&address) else { return Ok(()) };
        let per_second = f64::from(most) / MINUTE.as_secs_f64();
        let fresh = || (TokenBucket::with_rate(most, per_second, now), now);
        let (bucket, last) = visitor.joins.get_or_insert_with(fresh);
        *last = now;
        if bucket.take(now) { Ok(()) } else { Err(Refused::Joins) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.door.state.lock();
        let count = state.all.of(self.guest);
        *count = count.saturating_sub(1);
        let Some(address) = self.address else { return };
        let Some(visitor) = state.visitors.get_mut(&address) else { return };
        let count = visitor.guests.of(self.guest);
        *count = count.saturating_sub(1);
        if visitor.guests.none() && visitor.joins.is_none() {
            state.visitors.remove(&address);
        }
    }
}

impl State {
    /// What is known of an address; `None` where too many are known.
    fn visitor(&mut self, address: IpAddr, now: Instant) -> Option<&mut Visitor> {
        if self.visitors.len() >= REMEMBERED && !self.visitors.contains_key(&address) {
            // After a minute a bucket is full again: forgetting it changes nothing.
            self.visitors.retain(|_, v| {
                let recent =
                    |(_, last): &(_, Instant)| now.saturating_duration_since(*last) < MINUTE;
                !v.guests.none() || v.joins.as_ref().is_some_and(recent)
            });
            if self.visitors.len() >= REMEMBERED {
                return None;
            }
        }
        Some(self.visitors.entry(address).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn door(sockets: usize, sockets_per_address: usize, joins_per_address: u32) -> Arc<Door> {
        Door::new(DoorLimits { sockets, sockets_per_address, joins_per_address })
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
        let knock = |from: &str| door.knock(Some(ip(from)), now);
        let mut held: Vec<_> = (0..12).map(|_| knock("192.0.2.1").unwrap()).collect();
        assert_eq!(knock("192.0.2.1").unwrap_err(), Refused::Sockets);
        assert!(door.enter(ip("192.0.2.1"), now).is_ok(), "sockets are others");
        held.extend((0..6).map(|_| door.knock(None, now).unwrap()));
        assert_eq!(knock("192.0.2.9").unwrap_err(), Refused::Full);
        held.truncate(11);
        assert!(knock("192.0.2.1").is_ok());
        drop(held);
        assert_eq!((door.addresses(), door.state.lock().all.connections), (0, 0));
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
        door.set_limits(DoorLimits { sockets: 9, sockets_per_address: 2, joins_per_address: 0 });
        assert!(door.enter(ip("192.0.2.1"), now).is_ok());
        door.set_limits(DoorLimits { sockets: 1, sockets_per_address: 2, joins_per_address: 0 });
        assert_eq!(door.enter(ip("192.0.2.9"), now).unwrap_err(), Refused::Full);
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
