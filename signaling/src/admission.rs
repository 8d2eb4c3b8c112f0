//! Admission control: bounds for connections, sockets, WHIP and WHEP sessions, participants and rooms; for all clients
//! together, and for each.
//!
//! A client is an IP address or an identity. No client has more than a quarter of a resource: an address of any
//! resource, an identity (from whatever address) of participants and rooms. A room counts for the client that began it,
//! until it ends.
//!
//! IPv6 addresses count by their first 64 bits, which are one customer's (RFC 6177). The machine's own addresses
//! have no bounds: a proxy there that is not trusted serves many clients.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use windlass_sfu::{rate_limit_address, share_of_one};

use crate::rate::TokenBucket;

/// Maximum number of clients that are tracked: those with a slot, or with a join in [`JOIN_WINDOW`]. Further clients
/// are refused.
const MAX_CLIENTS: usize = 65_536;
/// Number of connections for each socket of [`AdmissionLimits`]: a browser opens this many to load a page.
const CONNECTIONS_PER_SOCKET: usize = 6;
/// Maximum number of concurrent TLS handshakes.
const MAX_HANDSHAKES: usize = 1024;
/// Time over which joins are counted.
const JOIN_WINDOW: Duration = Duration::from_secs(60);

/// Bounds of admission control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Maximum number of sockets and sessions.
    pub sockets: usize,
    /// Maximum number of sockets and sessions of one address; 0: addresses have no bound of any resource, only of
    /// joins.
    pub sockets_per_address: usize,
    /// Maximum number of joins of one address in a minute; 0: no bound.
    pub joins_per_address: u32,
    /// Maximum number of participants. The SFU enforces it; a client has a quarter.
    pub participants: usize,
    /// Maximum number of rooms, and of loopback rooms. The SFU enforces it; a client has a quarter.
    pub rooms: usize,
}

impl Default for AdmissionLimits {
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

/// Why a client is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The server has its maximum number of sockets, connections or clients.
    #[error("too many connections; try again later")]
    Full,
    /// The address has its maximum number of sockets or connections.
    #[error("too many connections from your address: close some of them")]
    Sockets,
    /// The address has joined too often.
    #[error("too many joins from your address; try again in a minute")]
    Joins,
    /// The address or identity has its share of this resource.
    #[error("too many {0} of your address or identity are on this server; end some of them")]
    Share(&'static str),
}

/// Counts resources by client.
#[derive(Debug)]
pub(crate) struct AdmissionControl {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limits: AdmissionLimits,
    all: Usage,
    clients: HashMap<Client, ClientState>,
}

/// The client to which a resource is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Client {
    Address(IpAddr),
    /// The identity in an access token.
    Identity(String),
}

#[derive(Debug, Default)]
struct ClientState {
    usage: Usage,
    joins: Option<(TokenBucket, Instant)>,
}

/// Kind of a counted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A WebSocket, or a WHIP or WHEP session.
    Socket,
    /// A TCP connection.
    Connection,
    /// A TLS handshake.
    Handshake,
    /// A participant.
    Participant,
    /// A room, counted to the client that began it.
    Room,
    /// A loopback room.
    Loopback,
}

/// Number of slots by resource.
#[derive(Debug, Default, PartialEq, Eq)]
struct Usage([usize; 6]);

impl Usage {
    fn of(&mut self, resource: Resource) -> &mut usize {
        &mut self.0[resource as usize]
    }
}

impl AdmissionLimits {
    /// Maximum of all clients together, if admission control enforces it.
    fn total(&self, resource: Resource) -> usize {
        match resource {
            Resource::Socket => self.sockets,
            Resource::Connection => self.sockets.saturating_mul(CONNECTIONS_PER_SOCKET),
            Resource::Handshake => MAX_HANDSHAKES,
            // Enforced by the SFU.
            Resource::Participant | Resource::Room | Resource::Loopback => usize::MAX,
        }
    }

    /// Maximum number of slots of one client.
    fn per_client(&self, resource: Resource, owner: &Client) -> usize {
        if self.sockets_per_address == 0 && matches!(owner, Client::Address(_)) {
            return usize::MAX;
        }
        match resource {
            Resource::Socket => self.sockets_per_address,
            Resource::Connection => self.sockets_per_address.saturating_mul(CONNECTIONS_PER_SOCKET),
            Resource::Handshake => share_of_one(MAX_HANDSHAKES),
            Resource::Participant => share_of_one(self.participants),
            Resource::Room | Resource::Loopback => share_of_one(self.rooms),
        }
    }
}

impl Refused {
    fn of(resource: Resource) -> Refused {
        match resource {
            Resource::Socket | Resource::Connection | Resource::Handshake => Refused::Sockets,
            Resource::Participant => Refused::Share("participants"),
            Resource::Room => Refused::Share("rooms"),
            Resource::Loopback => Refused::Share("loopback rooms"),
        }
    }
}

/// A unit of a resource in use, released when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Arc<AdmissionControl>,
    resource: Resource,
    of: Vec<Client>,
}

/// Slot of a socket or session. What belongs to the socket is counted to the same clients.
#[derive(Debug)]
pub(crate) struct Permit(Slot);

impl AdmissionControl {
    pub(crate) fn new(limits: AdmissionLimits) -> Arc<AdmissionControl> {
        let state = State { limits, all: Usage::default(), clients: HashMap::new() };
        Arc::new(AdmissionControl { state: Mutex::new(state) })
    }

    /// Changes the bounds. Slots in use stay.
    pub(crate) fn set_limits(&self, limits: AdmissionLimits) {
        let mut state = self.state.lock();
        state.limits = limits;
        // The buckets have the former rate.
        for client in state.clients.values_mut() {
            client.joins = None;
        }
    }

    /// Number of open sockets and sessions.
    pub(crate) fn open(&self) -> usize {
        *self.state.lock().all.of(Resource::Socket)
    }

    /// Number of clients that are tracked.
    pub(crate) fn addresses(&self) -> usize {
        self.state.lock().clients.len()
    }

    /// Takes a slot for an address; `None`: the slot counts for no address.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        resource: Resource,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Result<Slot, Refused> {
        let of = client.and_then(rate_limit_address).map(Client::Address);
        self.admit(resource, of.into_iter().collect(), now)
    }

    /// Takes a slot for a socket or session of an address.
    pub(crate) fn socket(
        self: &Arc<Self>,
        client: IpAddr,
        now: Instant,
    ) -> Result<Permit, Refused> {
        self.acquire(Resource::Socket, Some(client), now).map(Permit)
    }

    /// Takes a slot, counted to all clients in `of`.
    fn admit(
        self: &Arc<Self>,
        resource: Resource,
        of: Vec<Client>,
        now: Instant,
    ) -> Result<Slot, Refused> {
        let mut state = self.state.lock();
        let limits = state.limits;
        if *state.all.of(resource) >= limits.total(resource) {
            return Err(Refused::Full);
        }
        for owner in &of {
            if !state.can_track(owner, now) {
                return Err(Refused::Full);
            }
            let has = state.clients.get_mut(owner).map_or(0, |client| *client.usage.of(resource));
            if has >= limits.per_client(resource, owner) {
                return Err(Refused::of(resource));
            }
        }
        for owner in &of {
            *state.clients.entry(owner.clone()).or_default().usage.of(resource) += 1;
        }
        *state.all.of(resource) += 1;
        Ok(Slot { admission: self.clone(), resource, of })
    }
}

impl Permit {
    /// Opaque number of the client that owns a participant: of its identity, or of its address if it has none. 0:
    /// unknown, since the address serves many clients.
    pub(crate) fn owner(&self, identity: Option<&str>) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (identity, self.0.of.first()) {
            (Some(identity), _) => identity.hash(&mut hasher),
            (None, Some(owner)) => owner.hash(&mut hasher),
            (None, None) => return 0,
        }
        hasher.finish()
    }

    /// Counts a join for the address of the permit.
    pub(crate) fn join(&self, now: Instant) -> Result<(), Refused> {
        let Some(address) = self.0.of.first() else { return Ok(()) };
        let mut state = self.0.admission.state.lock();
        let max = state.limits.joins_per_address;
        if max == 0 {
            return Ok(());
        }
        let Some(client) = state.clients.get_mut(address) else { return Ok(()) };
        let per_second = f64::from(max) / JOIN_WINDOW.as_secs_f64();
        let fresh = || (TokenBucket::with_rate(max, per_second, now), now);
        let (bucket, last) = client.joins.get_or_insert_with(fresh);
        *last = now;
        if bucket.take(now) { Ok(()) } else { Err(Refused::Joins) }
    }

    /// Takes a slot for a participant or room of this socket or session, counted to its address and identity.
    pub(crate) fn slot(
        &self,
        resource: Resource,
        identity: Option<&str>,
        now: Instant,
    ) -> Result<Slot, Refused> {
        let identity = identity.map(|identity| Client::Identity(identity.to_owned()));
        self.0.admission.admit(resource, self.0.of.iter().cloned().chain(identity).collect(), now)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        let count = state.all.of(self.resource);
        *count = count.saturating_sub(1);
        for owner in &self.of {
            let Some(client) = state.clients.get_mut(owner) else { continue };
            let count = client.usage.of(self.resource);
            *count = count.saturating_sub(1);
            if client.usage == Usage::default() && client.joins.is_none() {
                state.clients.remove(owner);
            }
        }
    }
}

impl State {
    /// Whether the client is tracked, or can be.
    fn can_track(&mut self, owner: &Client, now: Instant) -> bool {
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(owner) {
            // A bucket is full again after the window: forgetting it changes nothing.
            self.clients.retain(|_, v| {
                let recent =
                    |(_, last): &(_, Instant)| now.saturating_duration_since(*last) < JOIN_WINDOW;
                v.usage != Usage::default() || v.joins.as_ref().is_some_and(recent)
            });
            return self.clients.len() < MAX_CLIENTS;
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

    fn admission(
        sockets: usize,
        sockets_per_address: usize,
        joins_per_address: u32,
    ) -> Arc<AdmissionControl> {
        AdmissionControl::new(AdmissionLimits {
            sockets,
            sockets_per_address,
            joins_per_address,
            ..AdmissionLimits::default()
        })
    }

    #[test]
    fn sockets_are_bounded_in_all_and_by_address() {
        let (admission, now) = (admission(3, 2, 0), Instant::now());
        let first = admission.socket(ip("192.0.2.1"), now).unwrap();
        let _second = admission.socket(ip("192.0.2.1"), now).unwrap();
        assert_eq!(admission.socket(ip("192.0.2.1"), now).unwrap_err(), Refused::Sockets);
        let _third = admission.socket(ip("192.0.2.2"), now).unwrap();
        assert_eq!(admission.socket(ip("192.0.2.3"), now).unwrap_err(), Refused::Full);
        drop(first);
        assert!(admission.socket(ip("192.0.2.1"), now).is_ok());
    }

    #[test]
    fn connections_that_are_no_sockets_have_bounds_of_their_own() {
        let (admission, now) = (admission(3, 2, 0), Instant::now());
        let knock = |from: &str| admission.acquire(Resource::Connection, Some(ip(from)), now);
        let mut held: Vec<_> = (0..12).map(|_| knock("192.0.2.1").unwrap()).collect();
        assert_eq!(knock("192.0.2.1").unwrap_err(), Refused::Sockets);
        assert!(admission.socket(ip("192.0.2.1"), now).is_ok(), "sockets are others");
        held.extend((0..6).map(|_| admission.acquire(Resource::Connection, None, now).unwrap()));
        assert_eq!(knock("192.0.2.9").unwrap_err(), Refused::Full);
        held.truncate(11);
        assert!(knock("192.0.2.1").is_ok());
        drop(held);
        assert_eq!((admission.addresses(), &admission.state.lock().all), (0, &Usage::default()));
    }

    #[test]
    fn neighbours_of_one_network_of_ipv6_are_one_and_this_machine_is_nobody() {
        let (admission, now) = (admission(9, 1, 1), Instant::now());
        let _held = admission.socket(ip("2001:db8:0:1::1"), now).unwrap();
        assert_eq!(
            admission.socket(ip("2001:db8:0:1:ffff::2"), now).unwrap_err(),
            Refused::Sockets
        );
        assert!(admission.socket(ip("2001:db8:0:2::1"), now).is_ok());
        let own: Vec<_> = ["127.0.0.1", "::1", "::ffff:127.0.0.1"]
            .into_iter()
            .map(|own| admission.socket(ip(own), now).unwrap())
            .collect();
        assert!(own.iter().all(|p| p.join(now).is_ok() && p.join(now).is_ok()));
    }

    #[test]
    fn joins_are_bounded_by_address_and_time() {
        let (admission, now) = (admission(9, 9, 2), Instant::now());
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let permits = [admission.socket(one, now).unwrap(), admission.socket(one, now).unwrap()];
        assert_eq!((permits[0].join(now), permits[1].join(now)), (Ok(()), Ok(())));
        assert_eq!(permits[0].join(now), Err(Refused::Joins));
        assert_eq!(admission.socket(other, now).unwrap().join(now), Ok(()));
        drop(permits);
        let again = admission.socket(one, now).unwrap();
        assert_eq!(again.join(now), Err(Refused::Joins), "who comes back is not forgotten");
        assert_eq!(again.join(now + JOIN_WINDOW), Ok(()));
    }

    #[test]
    fn new_bounds_hold_for_those_who_come() {
        let (admission, now) = (admission(9, 1, 0), Instant::now());
        let _held = admission.socket(ip("192.0.2.1"), now).unwrap();
        let wider =
            AdmissionLimits { sockets: 9, sockets_per_address: 2, ..AdmissionLimits::default() };
        admission.set_limits(wider);
        assert!(admission.socket(ip("192.0.2.1"), now).is_ok());
        admission.set_limits(AdmissionLimits { sockets: 1, ..wider });
        assert_eq!(admission.socket(ip("192.0.2.9"), now).unwrap_err(), Refused::Full);
    }

    #[test]
    fn an_address_or_identity_has_a_quarter_of_the_participants_and_rooms_and_gives_them_back() {
        let now = Instant::now();
        let limits = AdmissionLimits { participants: 8, rooms: 4, ..AdmissionLimits::default() };
        let admission = AdmissionControl::new(limits);
        let [one, other, own] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"]
            .map(|address| admission.socket(ip(address), now).unwrap());
        let mut ana = vec![one.slot(Resource::Participant, Some("ana"), now).unwrap()];
        ana.push(other.slot(Resource::Participant, Some("ana"), now).unwrap());
        let full =
            |permit: &Permit, resource, identity| permit.slot(resource, identity, now).unwrap_err();
        let people = Refused::Share("participants");
        assert_eq!(full(&other, Resource::Participant, Some("ana")), people, "by identity");
        assert_eq!(
            full(&own, Resource::Participant, Some("ana")),
            people,
            "wherever it comes from"
        );
        let _bo = one.slot(Resource::Participant, Some("bo"), now).unwrap();
        assert_eq!(full(&one, Resource::Participant, Some("eve")), people, "by address");
        for resource in [Resource::Room, Resource::Loopback] {
            let _first = one.slot(resource, None, now).unwrap();
            assert!(matches!(full(&one, resource, None), Refused::Share(_)));
            assert!(other.slot(resource, None, now).is_ok());
        }
        ana.pop();
        assert!(other.slot(Resource::Participant, Some("ana"), now).is_ok());
        let many: Vec<_> = (0..9).map(|_| own.slot(Resource::Room, None, now).unwrap()).collect();
        drop((ana, many));
        assert!(
            admission
                .state
                .lock()
                .clients
                .keys()
                .all(|owner| *owner != Client::Identity("ana".into()))
        );
    }

    #[test]
    fn addresses_are_not_bounded_where_all_come_by_one() {
        let now = Instant::now();
        let limits =
            AdmissionLimits { sockets_per_address: 0, rooms: 4, ..AdmissionLimits::default() };
        let admission = AdmissionControl::new(limits);
        let all: Vec<_> = (0..9).map(|_| admission.socket(ip("192.0.2.1"), now).unwrap()).collect();
        let rooms: Vec<_> =
            all.iter().map(|permit| permit.slot(Resource::Room, None, now).unwrap()).collect();
        assert_eq!(rooms.len(), 9);
    }

    #[test]
    fn an_office_of_200_behind_one_address_joins_one_room_by_the_defaults() {
        let (admission, now) = (AdmissionControl::new(AdmissionLimits::default()), Instant::now());
        let office = ip("192.0.2.1");
        let in_all: Vec<_> = (0..200)
            .map(|n| {
                let knock = admission.acquire(Resource::Connection, Some(office), now).unwrap();
                let hands = admission.acquire(Resource::Handshake, Some(office), now).unwrap();
                let permit = admission.socket(office, now).unwrap();
                permit.join(now).unwrap();
                let owner = n.to_string();
                let slot = permit.slot(Resource::Participant, Some(&owner), now).unwrap();
                (knock, hands, permit, slot)
            })
            .collect();
        // And all of them once more, before the server has heard that the first ones are gone.
        assert!(in_all.iter().all(|_| admission.socket(office, now).unwrap().join(now).is_ok()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (admission, now) = (admission(usize::MAX, 1, 1), Instant::now());
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..MAX_CLIENTS as u32 {
            admission.socket(address(0x0a00_0000 + n), now).unwrap().join(now).unwrap();
        }
        assert_eq!(admission.socket(address(1), now).unwrap_err(), Refused::Full);
        assert_eq!(admission.addresses(), MAX_CLIENTS);
        assert!(admission.socket(address(1), now + JOIN_WINDOW).is_ok());
        assert!(admission.addresses() <= 1);
    }
}
