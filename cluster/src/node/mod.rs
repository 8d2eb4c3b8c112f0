//! One server of a cluster: keeps its lease and claims, places clients, and shares rooms with other servers.
//!
//! [`crate::rooms`] decides, [`crate::nats`] reads and writes, [`crate::relay`] carries; this module connects the three
//! with the server's signalling and SFU, which are behind [`Host`]. Source: decisions 013 to 015.

mod host;
mod rules;
mod sharing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use windlass_types::NodeId;
use windlass_types::relay::Relayed;

pub use self::host::{Host, Rule};
use self::rules::Rules;
use self::sharing::Sharing;
pub use self::sharing::{SharingConfig, SharingStats};
use crate::nats::{self, BucketEvent, Client};
use crate::relay::links::LinkEvent;
use crate::remote::RemoteError;
use crate::rooms::{
    Claim, ClaimWrite, Handoff, Load, NodeLease, Placement, RecordError, Rooms, room_key,
    room_of_key,
};
use crate::ticket::{self, Mover};

/// Interval of [`Rooms::reconcile`].
const RECONCILE_INTERVAL: Duration = Duration::from_secs(1);
/// Time that a claim needs to reach all servers.
const CLAIM_PROPAGATION: Duration = Duration::from_millis(50);
/// Maximum time that other servers have to carry out an order.
const ORDER_PATIENCE: Duration = Duration::from_secs(5);
/// Minimum time between two log lines about refused leases, which come twice a second.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of attempts to place a client; then its room is served here.
const MAX_ATTEMPTS: usize = 20;

/// A node's part of the configuration.
#[derive(Clone)]
pub struct NodeConfig {
    /// Signalling address for clients.
    pub url: String,
    /// Number of a room's participants from which on newcomers are sent to other servers.
    pub max_room_participants: usize,
    /// Settings for sharing rooms; `None`: all rooms are on this server alone.
    pub sharing: Option<SharingConfig>,
}

/// Why a node cannot start.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The relay's address cannot be used.
    #[error("cannot listen on {address}: give another address with `node-listen`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The token cannot be used.
    #[error(transparent)]
    Links(#[from] RemoteError),
}

/// Figures of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStats {
    /// Servers that live, this one included.
    pub nodes: usize,
    /// Rooms with a claim.
    pub claims: usize,
    /// Rooms that are on this server and on others.
    pub shared_rooms: usize,
    /// Malformed leases and claims.
    pub malformed_records: u64,
    /// Malformed rules.
    pub malformed_rules: u64,
    /// Tickets that were refused.
    pub tickets_refused: u64,
    /// Rooms whose participants were sent to another server.
    pub rooms_moved: u64,
    /// Servers that were added to claims of this server.
    pub nodes_added: u64,
    /// Figures of the relay, if rooms are shared.
    pub sharing: Option<SharingStats>,
}

/// One server of a cluster: keeps its lease and claims, places clients, and shares rooms with other servers.
///
/// ```
/// use windlass_cluster::nats::{NatsConfig, connect};
/// use windlass_cluster::node::{Host, Node, NodeConfig};
/// # use std::{collections::HashSet, error::Error, sync::Arc};
/// # use windlass_cluster::{node::Rule, relay::messages::RelayedParticipant};
/// # use windlass_types::{NodeId, ParticipantId, relay::Relayed};
/// # struct Server;
/// # impl Host for Server {
/// #     fn rooms(&self) -> Vec<(String, usize)> { Vec::new() }
/// #     fn send_away(&self, _: &str, _: &str, _: bool) -> bool { false }
/// #     fn participant(&self, _: ParticipantId) -> Option<RelayedParticipant> { None }
/// #     fn remote_joined(&self, _: ParticipantId, _: &str, _: RelayedParticipant) {}
/// #     fn remote_changed(&self, _: ParticipantId, _: RelayedParticipant) {}
/// #     fn remote_left(&self, _: ParticipantId) {}
/// #     async fn set_shared(&self, _: &str, _: &[NodeId]) {}
/// #     async fn on_link(&self, _: NodeId, _: bool) {}
/// #     async fn on_relayed(&self, _: NodeId, _: &Arc<str>, _: Relayed) {}
/// #     async fn on_order(&self, order: Vec<u8>) -> Vec<u8> { order }
/// #     async fn next_rules(&self) -> Vec<Rule> { std::future::pending().await }
/// #     fn on_rule(&self, _: &[u8]) -> Result<String, Box<dyn Error>> { Err("no rules".into()) }
/// #     fn resend_rule(&self, _: &str) {}
/// #     fn resend_rules_except(&self, _: &HashSet<String>) {}
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn Error>> {
/// // Nothing answers at this address. The client goes on trying.
/// let nats = NatsConfig { servers: vec!["nats://127.0.0.1:1".to_owned()], ..NatsConfig::default() };
/// let client = connect(&nats, "windlass", &"north-by-north-west".parse()?).await?;
/// let url = "wss://a.example/ws".to_owned();
/// let node = Node::new(client, NodeConfig { url, max_room_participants: 100, sharing: None }).await?;
/// // `Server` implements `Host` with the server's signalling and SFU.
/// node.start(Server);
/// // As long as nobody knows where rooms are, clients are served where they ask.
/// assert_eq!(node.place("tea", 0).await, None);
/// assert!(node.others().is_empty() && !node.shares_rooms());
/// # Ok(())
/// # }
/// ```
pub struct Node<H> {
    name: String,
    config: NodeConfig,
    client: Client,
    state: Mutex<State>,
    host: OnceLock<Arc<H>>,
    stop: watch::Sender<bool>,
    /// Whether the lease is released.
    has_left: watch::Sender<bool>,
    sharing: Option<Sharing>,
    rules: Rules,
    /// Notified when the servers of a room may have changed.
    claims_changed: Notify,
}

struct State {
    rooms: Rooms,
    /// Since when leases are readable.
    nodes_since: Option<Instant>,
    /// Since when claims are readable.
    claims_since: Option<Instant>,
    draining: bool,
    malformed_records: u64,
    /// When the last refused lease was logged.
    refusal_logged: Option<Instant>,
    tickets_refused: u64,
    rooms_moved: u64,
    nodes_added: u64,
}

impl State {
    fn update_readable(&mut self) {
        let since =
            self.nodes_since.zip(self.claims_since).map(|(nodes, claims)| nodes.max(claims));
        self.rooms.set_readable(since);
    }

    /// Counts a lease that cannot be used, and says why at intervals.
    fn refuse_lease(&mut self, why: &RecordError, now: Instant) {
        self.malformed_records += 1;
        let is_due = |at| now.saturating_duration_since(at) >= REFUSAL_LOG_INTERVAL;
        if self.refusal_logged.is_none_or(is_due) {
            self.refusal_logged = Some(now);
            tracing::warn!(%why, "rooms not shared with another server: its lease is refused; check that both servers have the same version and the same scheme in `node-url`");
        }
    }
}

/// Rooms with participants on this server: names by bucket key.
type LocalRooms = HashMap<String, String>;

impl<H: Host> Node<H> {
    /// A node with a random name. It is not visible to others before [`Node::start`].
    ///
    /// # Errors
    ///
    /// The address for other servers cannot be used.
    pub async fn new(client: Client, config: NodeConfig) -> Result<Arc<Node<H>>, NodeError> {
        let id = NodeId(rand::random());
        let sharing = match config.sharing.clone() {
            None => None,
            Some(sharing) => Some(Sharing::new(id, sharing).await?),
        };
        let name = id.to_string();
        let state = State {
            rooms: Rooms::new(&name).reached_by(&config.url),
            nodes_since: None,
            claims_since: None,
            draining: false,
            malformed_records: 0,
            refusal_logged: None,
            tickets_refused: 0,
            rooms_moved: 0,
            nodes_added: 0,
        };
        Ok(Arc::new(Node {
            name,
            config,
            client,
            state: Mutex::new(state),
            host: OnceLock::new(),
            stop: watch::Sender::new(false),
            has_left: watch::Sender::new(false),
            sharing,
            rules: Rules::default(),
            claims_changed: Notify::new(),
        }))
    }

    /// Starts to write the lease, to follow the cluster, and to reconcile claims. To be called once.
    pub fn start(self: &Arc<Self>, host: H) {
        let host = Arc::new(host);
        if self.host.set(host.clone()).is_err() {
            return;
        }
        if let Some(events) = self.sharing.as_ref().and_then(Sharing::start) {
            tokio::spawn(self.clone().follow_links(host.clone(), events));
            tokio::spawn(self.clone().follow_shared_rooms(host.clone()));
        }
        self.rules.start(&self.client, &host);
        let client = self.client.clone();
        tokio::spawn(async move {
            let perform = move |order| {
                let host = host.clone();
                async move { host.on_order(order).await }
            };
            client.perform_orders(perform).await;
        });
        let node = self.clone();
        let on_lease = move |event: BucketEvent<'_>| node.on_lease_event(&event);
        tokio::spawn(nats::watch_node_leases(self.client.clone(), on_lease));
        let node = self.clone();
        let on_claim = move |event: BucketEvent<'_>| node.on_claim_event(&event);
        tokio::spawn(nats::watch_claims(self.client.clone(), on_claim));
        let (node, stop) = (self.clone(), self.stop.subscribe());
        tokio::spawn(async move {
            let lease = || node.lease();
            nats::keep_node_lease(node.client.clone(), &node.name, lease, stop).await;
            node.has_left.send_replace(true);
        });
        let node = self.clone();
        tokio::spawn(async move {
            let mut ticks = interval(RECONCILE_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                node.reconcile().await;
            }
        });
    }

    /// Sends what this server's SFU has for another server. Never blocks.
    pub fn relay(&self, to: NodeId, room: &Arc<str>, relayed: &Relayed) {
        if let Some(sharing) = &self.sharing {
            sharing.send(self.host.get().map(|host| &**host), to, room, relayed);
        }
    }

    /// Whether rooms are shared.
    pub fn shares_rooms(&self) -> bool {
        self.sharing.is_some()
    }

    /// The signalling address of the server on which a client must join `room`; `None`: this server. `local` is the
    /// number of the room's participants here. Claims the room where needed.
    pub async fn place(&self, room: &str, local: usize) -> Option<Arc<str>> {
        let key = room_key(room);
        for _ in 0..MAX_ATTEMPTS {
            match self.placement(&key, room, local) {
                Placement::Local => return None,
                Placement::Redirect(url) => return Some(url),
                Placement::RetryAt(until) => {
                    let wait = until.saturating_duration_since(Instant::now());
                    sleep(wait + CLAIM_PROPAGATION / 10).await;
                    continue;
                }
                Placement::Claim(replaces) => {
                    let claim = Claim::sole(&self.name);
                    let write = ClaimWrite { room: key.clone(), replaces, claim };
                    if self.claim(&write).await {
                        return None;
                    }
                }
                Placement::AddNode(Handoff { write, url }) => {
                    if self.claim(&write).await {
                        self.state.lock().nodes_added += 1;
                        // The new server must know the claim when the client arrives.
                        sleep(CLAIM_PROPAGATION).await;
                        return Some(url);
                    }
                }
            }
            sleep(CLAIM_PROPAGATION).await;
        }
        // A room on two servers is reconciled later; a client without a room is not.
        tracing::warn!(
            "room placement unknown after many attempts: the room is served here; check the connection to NATS"
        );
        None
    }

    fn placement(&self, key: &str, room: &str, local: usize) -> Placement {
        let remote = self.sharing.as_ref().map(|sharing| sharing.remote_load(room));
        let remote = remote.unwrap_or_default();
        let load = Load { local, max: self.config.max_room_participants, remote: &remote };
        self.state.lock().rooms.place(key, &load, Instant::now())
    }

    /// Signalling addresses of the other servers that take rooms, the one with the fewest participants first.
    pub fn others(&self) -> Vec<Arc<str>> {
        self.state.lock().rooms.others(Instant::now())
    }

    /// A ticket for a participant that moves to another server; `None`: the time of NATS is not known.
    pub fn ticket(&self, mover: Mover<'_>, participant: &str) -> Option<String> {
        Some(ticket::issue(self.client.seal_key(), mover, participant, self.client.time()?))
    }

    /// The former id of a participant that comes with a ticket; `None`: the ticket is refused.
    pub fn former_id(&self, mover: Mover<'_>, ticket: &str) -> Option<String> {
        let former = ticket::check(self.client.seal_key(), mover, ticket, self.client.time()?);
        if let Err(why) = &former {
            tracing::debug!(%why, "refused the ticket of a participant that moves");
            self.state.lock().tickets_refused += 1;
        }
        former.ok()
    }

    /// Gives an order to all other servers. Returns their answers, and the number of servers that got the order.
    pub async fn order(&self, order: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let others = self.state.lock().rooms.servers(Instant::now()).saturating_sub(1);
        (self.client.order(order, others, ORDER_PATIENCE).await, others)
    }

    /// Gives all rooms to other servers, where there are any, and takes no new ones.
    pub async fn drain(&self) {
        let local = self.local_rooms();
        {
            let mut state = self.state.lock();
            state.draining = true;
            state.rooms.drain();
        }
        self.hand_off(&local, &local.keys().cloned().collect()).await;
    }

    /// Releases the lease.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }

    /// Releases the lease, and waits until that is done.
    pub async fn leave(&self) {
        let mut has_left = self.has_left.subscribe();
        self.stop();
        let _ = has_left.wait_for(|left| *left).await;
    }

    /// The node's counts and counters.
    pub fn stats(&self) -> NodeStats {
        let state = self.state.lock();
        NodeStats {
            nodes: state.rooms.servers(Instant::now()),
            claims: state.rooms.claims(),
            shared_rooms: state.rooms.shared().count(),
            malformed_records: state.malformed_records,
            malformed_rules: self.rules.malformed(),
            tickets_refused: state.tickets_refused,
            rooms_moved: state.rooms_moved,
            nodes_added: state.nodes_added,
            sharing: self.sharing.as_ref().map(Sharing::stats),
        }
    }

    fn local_rooms(&self) -> LocalRooms {
        let rooms = self.host.get().map_or_else(Vec::new, |host| host.rooms());
        rooms.into_iter().map(|(room, _)| (room_key(&room), room)).collect()
    }

    fn lease(&self) -> NodeLease {
        let rooms = self.host.get().map_or_else(Vec::new, |host| host.rooms());
        let participants = rooms.iter().map(|(_, participants)| participants).sum::<usize>();
        NodeLease {
            url: self.config.url.clone(),
            relay: self.sharing.as_ref().map(|sharing| sharing.address.clone()),
            participants: u32::try_from(participants).unwrap_or(u32::MAX),
            draining: self.state.lock().draining,
        }
    }

    fn on_lease_event(&self, event: &BucketEvent<'_>) {
        let state = &mut *self.state.lock();
        match event {
            BucketEvent::Written { key, value, .. } => {
                let now = Instant::now();
                match state.rooms.on_lease(key, value, now) {
                    Ok(true) => {}
                    Ok(false) => state.malformed_records += 1,
                    Err(why) => state.refuse_lease(&why, now),
                }
            }
            BucketEvent::Released { key, .. } => state.rooms.on_lease_released(key),
            BucketEvent::Readable { since } => state.nodes_since = Some(*since),
            BucketEvent::Rejected { .. } | BucketEvent::Reset => {}
            BucketEvent::Unreadable => state.nodes_since = None,
        }
        state.update_readable();
    }

    fn on_claim_event(&self, event: &BucketEvent<'_>) {
        let state = &mut *self.state.lock();
        match event {
            BucketEvent::Written { key, value, revision } => {
                let now = Instant::now();
                if !state.rooms.on_claim(key, value, *revision, now).unwrap_or_default() {
                    state.malformed_records += 1;
                }
                self.claims_changed.notify_one();
            }
            BucketEvent::Released { key, revision } => {
                state.rooms.on_claim_released(key, *revision);
            }
            BucketEvent::Rejected { key } => state.rooms.on_claim_overwritten(key),
            BucketEvent::Readable { since } => state.claims_since = Some(*since),
            BucketEvent::Reset => state.rooms.forget_claims(),
            BucketEvent::Unreadable => state.claims_since = None,
        }
        state.update_readable();
    }

    /// Writes a claim. `false`: another server was faster, or NATS did not answer.
    async fn claim(&self, write: &ClaimWrite) -> bool {
        let Some(revision) = nats::write_claim(&self.client, write).await else {
            return false;
        };
        let ClaimWrite { room, claim, .. } = write;
        self.state.lock().rooms.apply_claim(room, claim, revision, Instant::now());
        self.claims_changed.notify_one();
        true
    }

    async fn reconcile(&self) {
        let local = self.local_rooms();
        let keys: HashSet<String> = local.keys().cloned().collect();
        if self.state.lock().draining {
            // Handoffs that failed before, or whose new owner is lost.
            let remaining = self.state.lock().rooms.not_claimed_by_others(&keys);
            self.hand_off(&local, &remaining).await;
        }
        let actions = self.state.lock().rooms.reconcile(&keys, Instant::now());
        for (room, revision) in actions.release {
            if !nats::release_claim(&self.client, &room, revision).await {
                // The claim may still be there: the next reconciliation releases it.
                let claim = Claim::sole(&self.name);
                self.state.lock().rooms.apply_claim(&room, &claim, revision, Instant::now());
            }
        }
        for write in &actions.claim {
            self.claim(write).await;
        }
        for (room, url) in actions.must_move {
            self.send_away(&local, &room, &url, true);
        }
        for (room, url) in actions.may_move {
            self.send_away(&local, &room, &url, false);
        }
        self.claims_changed.notify_one();
    }

    fn send_away(&self, local: &LocalRooms, key: &str, url: &str, must: bool) {
        if let (Some(host), Some(room)) = (self.host.get(), local.get(key)) {
            let is_new = host.send_away(room, url, must);
            self.state.lock().rooms_moved += u64::from(is_new);
        }
    }

    /// Gives these rooms (bucket keys) to other servers.
    async fn hand_off(&self, local: &LocalRooms, keys: &HashSet<String>) {
        let handoffs = self.state.lock().rooms.handoffs(keys, Instant::now());
        for Handoff { write, url } in handoffs {
            if self.claim(&write).await {
                self.send_away(local, &write.room, &url, true);
            }
        }
    }

    /// Hands link events to the host, for as long as there are any.
    async fn follow_links(self: Arc<Self>, host: Arc<H>, mut events: Receiver<LinkEvent>) {
        let Some(sharing) = &self.sharing else { return };
        while let Some(event) = events.recv().await {
            let (id, up) = match event {
                LinkEvent::Message(id, message) => {
                    let name = id.to_string();
                    let shares =
                        |room: &str| self.state.lock().rooms.shares(&room_key(room), &name);
                    sharing.on_message(&*host, id, message, shares).await;
                    continue;
                }
                LinkEvent::Up(id) => (id, true),
                LinkEvent::Down(id) => (id, false),
            };
            self.state.lock().rooms.on_link(&id.to_string(), up, Instant::now());
            host.on_link(id, up).await;
            if !up {
                sharing.forget_node(&*host, id);
            }
        }
    }

    /// Keeps links to the servers of shared rooms, and keeps the host informed of these servers.
    async fn follow_shared_rooms(self: Arc<Self>, host: Arc<H>) {
        let Some(sharing) = &self.sharing else { return };
        let mut known: HashMap<String, BTreeSet<NodeId>> = HashMap::new();
        loop {
            let (shared, targets) = self.shared_rooms();
            sharing.links.set_targets(&targets);
            for (room, nodes) in &shared {
                if known.get(room) != Some(nodes) {
                    let nodes: Vec<_> = nodes.iter().copied().collect();
                    host.set_shared(room, &nodes).await;
                }
            }
            for room in known.keys().filter(|room| !shared.contains_key(*room)) {
                host.set_shared(room, &[]).await;
            }
            known = shared;
            self.claims_changed.notified().await;
        }
    }

    /// The other servers of each shared room, and the relay addresses of these servers.
    fn shared_rooms(&self) -> (HashMap<String, BTreeSet<NodeId>>, HashMap<NodeId, Arc<str>>) {
        let (mut shared, mut targets) = (HashMap::new(), HashMap::new());
        let state = self.state.lock();
        for (key, nodes) in state.rooms.shared() {
            let Some(room) = room_of_key(key) else { continue };
            let ids = nodes.iter().filter_map(|name| {
                let id: NodeId = name.parse().ok()?;
                targets.insert(id, state.rooms.relay_address(name)?);
                Some(id)
            });
            shared.insert(room, ids.collect());
        }
        (shared, targets)
    }
}
