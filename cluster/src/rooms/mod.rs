//! Which server serves which room. Pure: every time is an argument, every claim is a value.
//!
//! Each server of a cluster writes a *lease* (renewed every [`RENEW_INTERVAL`]) and one *claim* for each room that it
//! owns. All servers read all leases and claims. [`Rooms`] is one server's copy of both. It answers two questions:
//! [`Rooms::place`] ("a client wants to join this room here: where does it go?") and [`Rooms::reconcile`] ("which
//! claims must change, which participants must move?", asked once a second).
//!
//! # States of a room
//!
//! As one server sees the room; the state is derived from leases, claims and links, and stored nowhere.
//!
//! ```text
//!            a server writes its claim                owner is full: AddNode
//!  ┌──────┐ ──────────────────────────▶ ┌───────┐ ─────────────────────────▶ ┌────────┐
//!  │ FREE │                             │ OWNED │                            │ SHARED │
//!  └──────┘ ◀────────────────────────── └───────┘ ◀───────────────────────── └────────┘
//!            no participants for JOIN_GRACE:       all other servers are lost
//!            claim released
//!
//!  The lease of the owner of an OWNED or SHARED room:
//!
//!  ┌──────────────┐  no renewal for SUSPECT_AFTER   ┌─────────┐  no renewal for LEASE_TIMEOUT  ┌──────┐
//!  │ OWNED/SHARED │ ──────────────────────────────▶ │ SUSPECT │ ─────────────────────────────▶ │ LOST │
//!  └──────────────┘ ◀────────────────────────────── └─────────┘                                └──────┘
//!    ▲  │   ▲               lease renewed                                                         │
//!    │  │   └─────────────────────────────────────────────────────────────────────────────────────┘
//!    │  │      a server with participants of the room, or the next one that is asked, takes the claim
//!    │  │ owner drains: Handoff writes another owner into the claim
//!    │  ▼
//!  ┌────────┐
//!  │ MOVING │   until all participants have arrived at the new owner
//!  └────────┘
//! ```
//!
//! | state | condition | a client that joins here |
//! | --- | --- | --- |
//! | free | no claim | claims the room for this server ([`Placement::Claim`]) |
//! | owned | the claim's owner lives | joins here, or is sent to the owner ([`Placement::Redirect`]) |
//! | shared | the claim names further servers ([`Claim::with`]) | joins here, or is sent to one of these servers |
//! | suspect | the owner's last renewal is older than `SUSPECT_AFTER` | waits until the lease is renewed or ends ([`Placement::RetryAt`]) |
//! | lost | the owner's last renewal is older than [`LEASE_TIMEOUT`] | is sent to another server of the room, or claims it in place of the old revision |
//! | moving | the claim names another owner; participants are still here | is sent to the new owner |
//! | unknown | leases or claims cannot be read (NATS is down) | joins here |
//!
//! # Events
//!
//! | event | method | effect |
//! | --- | --- | --- |
//! | lease written | [`Rooms::on_lease`] | the server lives for [`LEASE_TIMEOUT`] more |
//! | lease deleted | [`Rooms::on_lease_released`] | the server is lost at once |
//! | claim written | [`Rooms::on_claim`] | replaces the known claim, if its revision is newer |
//! | claim deleted | [`Rooms::on_claim_released`] | the room is free, if no newer claim is known |
//! | claim damaged by a foreign writer | [`Rooms::on_claim_overwritten`] | the claim holds; its owner writes it again |
//! | relay link up or down | [`Rooms::on_link`] | a linked server lives, whatever its lease says |
//! | NATS readable or not | [`Rooms::set_readable`] | leases end only while they can be read |
//! | a second has passed | [`Rooms::reconcile`] | claims are written and released, participants are moved, old entries are forgotten. An owner without participants gives a shared room to its other servers |
//! | SIGTERM | [`Rooms::drain`], [`Rooms::handoffs`] | this server takes no new rooms and gives its rooms away |
//!
//! # Invariants
//!
//! 1. **One owner.** A claim is written with the revision that it replaces; of two servers that write, one succeeds
//!    (013). The other one places its client again.
//! 2. **No client is sent to a server whose lease has ended.** A client of a room on other servers waits while the
//!    owner is suspect (013.2).
//! 3. **Only a server that reads its own lease takes a lost room.** Otherwise others may only seem lost (014.5). For
//!    the same reason a server that has just started claims nothing before its own lease can be read (013.6).
//! 4. **A released claim is forgotten before the release reaches others**, so that the next client claims the room
//!    again (013.6).
//! 5. **Nothing expires while NATS cannot be read.** Rooms are then served where clients ask; when NATS is back, the
//!    participants of the server without the claim are moved (013.4).
//! 6. **A link outweighs a lease.** A linked server of a shared room keeps its place without NATS (014.4).
//! 7. **Of two servers of a room without a link one yields**: the one that is not the owner, or of two others the one
//!    with the larger name. Its participants *may* go to the owner (014.6). Participants on a server without the claim
//!    *must* go (015.6).
//! 8. **A draining server stays in the claim's `with`** until its participants have arrived elsewhere, so that they are
//!    relayed meanwhile (015.5).
//! 9. **Bounded memory**: `MAX_NODES` and `MAX_CLAIMS`; servers and claims are forgotten by time.
//!
//! The numbers in parentheses are decisions in `docs/decisions`, with the point. `lab/src/simulator/servers` runs this
//! code at 100 servers.

mod placement;
mod reconcile;
mod record;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::placement::{Load, Placement};
pub use self::reconcile::{ClaimWrite, Handoff, ReconcileActions};
pub use self::record::{Claim, NodeLease, RecordError, room_key, room_of_key};

/// Interval between two renewals of a server's lease.
pub const RENEW_INTERVAL: Duration = Duration::from_millis(300);
/// Age of the last renewal from which on a server is lost.
pub const LEASE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Age of the last renewal from which on a server is suspect: a renewal is missing. The value is between two renewals
/// and [`LEASE_TIMEOUT`].
const SUSPECT_AFTER: Duration = Duration::from_millis(700);
/// Age up to which a claim without participants is kept: the client that asked for the room is about to join.
const JOIN_GRACE: Duration = Duration::from_secs(10);

/// Age at which the owner writes its claim again, so that [`CLAIM_TTL`] ends claims of lost servers only.
const CLAIM_REFRESH: Duration = Duration::from_secs(3_600);
/// Age at which NATS deletes a claim.
pub const CLAIM_TTL: Duration = Duration::from_secs(6 * 3_600);
/// Age at which a claim is forgotten here: [`CLAIM_TTL`] and a minute.
const CLAIM_FORGET_AFTER: Duration = Duration::from_secs(6 * 3_600 + 60);
/// Age of the last renewal at which a server is forgotten.
const NODE_FORGET_AFTER: Duration = Duration::from_secs(60);
/// Time without a link after which two servers that both live are partitioned. Longer than [`LEASE_TIMEOUT`], so that a
/// lost server's lease has ended by then.
const PARTITION_AFTER: Duration = Duration::from_millis(1_700);
/// Time that two servers have to link after a claim names both.
const LINK_SETUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of servers that are known. Leases of further ones are refused.
const MAX_NODES: usize = 1_024;
/// Maximum number of claims that are known. Rooms beyond it are served where clients ask for them.
const MAX_CLAIMS: usize = 200_000;

/// A server, as its last lease describes it.
#[derive(Debug, Clone)]
struct Node {
    url: Arc<str>,
    relay: Option<Arc<str>>,
    participants: u32,
    draining: bool,
    renewed: Instant,
}

/// The last known claim to a room.
#[derive(Debug, Clone)]
struct KnownClaim {
    owner: Arc<str>,
    with: Vec<Arc<str>>,
    revision: u64,
    /// When this server learned of the claim.
    since: Instant,
    /// Whether a foreign writer has overwritten the claim in the bucket. Then the owner writes it again.
    is_overwritten: bool,
}

impl KnownClaim {
    fn names(&self, node: &Arc<str>) -> bool {
        self.owner == *node || self.with.contains(node)
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.owner).chain(&self.with)
    }
}

/// One server's knowledge of leases, claims and links; the module's documentation has the method.
///
/// ```
/// use std::collections::HashMap;
/// use std::time::Instant;
/// use windlass_cluster::rooms::{Load, Placement, Rooms, room_key};
///
/// // What the server `b` knows: two leases, and the claim of `a` to one room.
/// let (now, tea) = (Instant::now(), room_key("tea"));
/// let mut rooms = Rooms::new("b");
/// for (name, url) in [("a", "wss://a.example/ws"), ("b", "wss://b.example/ws")] {
///     let lease = format!(r#"{{"url":"{url}","participants":0,"draining":false}}"#);
///     rooms.on_lease(name, lease.as_bytes(), now)?;
/// }
/// rooms.on_claim(&tea, br#"{"node":"a"}"#, 1, now)?;
/// rooms.set_readable(Some(now));
///
/// let load = Load { local: 0, max: 100, remote: &HashMap::new() };
/// assert_eq!(rooms.place(&tea, &load, now), Placement::Redirect("wss://a.example/ws".into()));
/// # Ok::<(), windlass_cluster::rooms::RecordError>(())
/// ```
#[derive(Debug)]
pub struct Rooms {
    me: Arc<str>,
    /// Whether clients reach this server by TLS. Then they are redirected to `wss://` addresses only.
    only_wss: bool,
    draining: bool,
    nodes: BTreeMap<Arc<str>, Node>,
    /// The known claims, by the room's bucket key.
    claims: HashMap<String, KnownClaim>,
    /// Rooms on this server and others, with all their servers. Kept while claims cannot be read.
    shared: HashMap<String, Vec<Arc<str>>>,
    /// Servers to which there is a link.
    linked: HashSet<Arc<str>>,
    /// Servers whose link was lost, and when.
    unlinked: HashMap<Arc<str>, Instant>,
    /// Time since which leases and claims are readable without interruption; `None`: they are not readable.
    readable_since: Option<Instant>,
}

impl Rooms {
    /// The state of a server named `me` that has read nothing.
    pub fn new(me: &str) -> Self {
        Rooms {
            me: me.into(),
            only_wss: false,
            draining: false,
            nodes: BTreeMap::new(),
            claims: HashMap::new(),
            shared: HashMap::new(),
            linked: HashSet::new(),
            unlinked: HashMap::new(),
            readable_since: None,
        }
    }

    /// Sets this server's own signalling address. If that has TLS, clients are redirected to servers with TLS only.
    #[must_use]
    pub fn reached_by(mut self, url: &str) -> Self {
        self.only_wss = url.starts_with("wss://");
        self
    }

    /// Takes no new rooms from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Sets the time since which leases and claims are readable; `None`: they are not readable.
    pub fn set_readable(&mut self, since: Option<Instant>) {
        self.readable_since = since;
    }

    /// Takes a lease that a server has written. Returns `Ok(false)` if too many servers are known.
    ///
    /// # Errors
    ///
    /// The record is no valid lease.
    pub fn on_lease(
        &mut self,
        name: &str,
        bytes: &[u8],
        now: Instant,
    ) -> Result<bool, RecordError> {
        let lease = NodeLease::parse(bytes, self.only_wss)?;
        if self.nodes.len() >= MAX_NODES && !self.nodes.contains_key(name) {
            return Ok(false);
        }
        let NodeLease { url, relay, participants, draining } = lease;
        let relay = relay.map(Into::into);
        let node = Node { url: url.into(), relay, participants, draining, renewed: now };
        self.nodes.insert(name.into(), node);
        Ok(true)
    }

    /// Notes that a server has released its lease.
    pub fn on_lease_released(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Takes a claim that was written. Returns `Ok(false)` if too many claims are known.
    ///
    /// # Errors
    ///
    /// The record is no valid claim.
    pub fn on_claim(
        &mut self,
        room: &str,
        bytes: &[u8],
        revision: u64,
        now: Instant,
    ) -> Result<bool, RecordError> {
        let claim = Claim::parse(bytes)?;
        if self.claims.len() >= MAX_CLAIMS && !self.claims.contains_key(room) {
            return Ok(false);
        }
        self.apply_claim(room, &claim, revision, now);
        Ok(true)
    }

    /// Takes a claim with its revision: another server's, or this server's own once NATS has accepted it.
    pub fn apply_claim(&mut self, room: &str, claim: &Claim, revision: u64, now: Instant) {
        // A claim of this server arrives twice: as the answer to the write, and from the bucket.
        if self.claims.get(room).is_some_and(|known| known.revision >= revision) {
            return;
        }
        let with = claim.with.iter().map(|name| name.as_str().into()).collect();
        let known = KnownClaim {
            owner: claim.node.as_str().into(),
            with,
            revision,
            since: now,
            is_overwritten: false,
        };
        if known.names(&self.me) && !known.with.is_empty() {
            self.shared.insert(room.to_owned(), known.nodes().cloned().collect());
        } else {
            self.shared.remove(room);
        }
        self.claims.insert(room.to_owned(), known);
    }

    /// Notes that a claim was released.
    pub fn on_claim_released(&mut self, room: &str, revision: u64) {
        if self.claims.get(room).is_some_and(|known| known.revision < revision) {
            self.claims.remove(room);
        }
    }

    /// Notes that a writer outside of this cluster has overwritten a claim. The claim still holds on servers that have
    /// read it. Others get it when its owner writes it again.
    pub fn on_claim_overwritten(&mut self, room: &str) {
        if let Some(claim) = self.claims.get_mut(room) {
            claim.is_overwritten = true;
        }
    }

    /// Forgets all claims. To be called when the bucket is about to be read from the beginning.
    pub fn forget_claims(&mut self) {
        self.claims.clear();
    }

    /// Notes that the link to a server has come up or gone down.
    pub fn on_link(&mut self, name: &str, up: bool, now: Instant) {
        if up {
            self.linked.insert(name.into());
            self.unlinked.remove(name);
        } else {
            self.unlinked.extend(self.linked.take(name).map(|name| (name, now)));
        }
    }

    /// Rooms that this server shares, by bucket key, each with the other servers of the room.
    pub fn shared(&self) -> impl Iterator<Item = (&str, Vec<Arc<str>>)> {
        let others = |name: &&Arc<str>| **name != self.me;
        self.shared
            .iter()
            .map(move |(room, all)| (room.as_str(), all.iter().filter(others).cloned().collect()))
    }

    /// Whether this server shares that room with that server.
    pub fn shares(&self, room: &str, name: &str) -> bool {
        self.shared.get(room).is_some_and(|all| all.iter().any(|one| **one == *name))
    }

    /// Relay address of a server.
    pub fn relay_address(&self, name: &str) -> Option<Arc<str>> {
        self.nodes.get(name)?.relay.clone()
    }

    /// Signalling addresses of the other servers that take rooms, the one with the fewest participants first.
    pub fn others(&self, now: Instant) -> Vec<Arc<str>> {
        self.candidates(now).into_iter().map(|(_, node)| node.url.clone()).collect()
    }

    /// Number of servers that live, this one included.
    pub fn servers(&self, now: Instant) -> usize {
        self.nodes.values().filter(|node| self.is_alive(node, now)).count()
    }

    /// Number of claims.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }

    /// Time at which a server's lease ends; `None`: leases are not readable, so none ends.
    fn lease_end(&self, node: &Node) -> Option<Instant> {
        let since = self.readable_since?;
        Some(node.renewed.max(since) + LEASE_TIMEOUT)
    }

    fn is_alive(&self, node: &Node, now: Instant) -> bool {
        self.lease_end(node).is_none_or(|end| now < end)
    }

    /// The server of that name, if it lives.
    fn live_node(&self, name: &str, now: Instant) -> Option<&Node> {
        self.nodes.get(name).filter(|node| self.is_alive(node, now))
    }

    /// Whether this server reads its own lease (invariant 3).
    fn reads_own_lease(&self, now: Instant) -> bool {
        self.nodes.get(&self.me).is_some_and(|own| now < own.renewed + LEASE_TIMEOUT)
    }

    /// Time at which the link to a server of a room was lost, if that was since the claim.
    fn unlinked_since(&self, name: &Arc<str>, claim: &KnownClaim) -> Option<Instant> {
        self.unlinked.get(name).copied().filter(|since| *since >= claim.since)
    }

    /// The other servers that take rooms, the one with the fewest participants first.
    fn candidates(&self, now: Instant) -> Vec<(&Arc<str>, &Node)> {
        let takes = |name: &str, node: &Node| {
            *name != *self.me && !node.draining && self.is_alive(node, now)
        };
        let mut others: Vec<_> =
            self.nodes.iter().filter(|(name, node)| takes(name, node)).collect();
        others.sort_by_key(|(_, node)| node.participants);
        others
    }
}

#[cfg(test)]
mod tests;
