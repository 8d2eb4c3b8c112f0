//! An SFU among others: its lease, the rooms that it has claimed, where the other rooms are, and what it shares of them.

mod rights;
mod share;
mod wire;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::{self, Client, Heard};
use windlass_cluster::rooms::{Claim, Crowd, Given, NodeLease, Place, Rooms, key};
use windlass_cluster::ticket::{self, Mover};
use windlass_sfu::{ParticipantId, SfuHandle};
use windlass_signaling::cluster::{self, Cluster, Placed};
use windlass_signaling::{Metric, Person, Signaling};

use self::rights::Rights;
pub use self::rights::seats;
pub use self::share::Share;
use crate::config::{Config, NodeConfig};

/// How often claims are compared with the rooms that there are.
const TIDY: Duration = Duration::from_secs(1);
/// What news of somebody else's claim may take.
const NEWS: Duration = Duration::from_millis(50);
/// How often it is tried to find out where a room is, before it is served here.
const TRIES: usize = 20;

/// See the module.
pub struct Node {
    name: String,
    config: NodeConfig,
    client: Client,
    known: Mutex<Known>,
    signaling: OnceLock<Signaling>,
    stop: watch::Sender<bool>,
    /// Whether its lease is no more.
    left: watch::Sender<bool>,
    /// What it shares with others, where it does.
    share: Option<Share>,
    rights: Rights,
    /// The nodes of a room may be others now.
    changed: Notify,
}

struct Known {
    rooms: Rooms,
    /// Since when leases, and claims, can be read.
    nodes: Option<Instant>,
    claims: Option<Instant>,
    draining: bool,
    refused: u64,
    tickets_refused: u64,
    sent_away: u64,
    spread: u64,
}

impl Known {
    fn readable(&mut self) {
        let since = self.nodes.zip(self.claims).map(|(nodes, claims)| nodes.max(claims));
        self.rooms.readable(since);
    }
}

impl Node {
    /// One with a name of its own.
    pub async fn new(
        client: Client,
        node: NodeConfig,
        config: &Config,
        tls: Option<Mutual>,
    ) -> Result<Arc<Node>> {
        let me = rand::random::<u64>();
        let name = format!("{me:016x}");
        let share = match node.listen {
            None => None,
            Some(listen) => Some(Share::new(me, listen, node.address.clone(), config, tls).await?),
        };
        let known = Known {
            rooms: Rooms::new(&name).reached_by(&node.url),
            nodes: None,
            claims: None,
            draining: false,
            refused: 0,
            tickets_refused: 0,
            sent_away: 0,
            spread: 0,
        };
        Ok(Arc::new(Node {
            name,
            config: node,
            client,
            known: Mutex::new(known),
            signaling: OnceLock::new(),
            stop: watch::Sender::new(false),
            left: watch::Sender::new(false),
            share,
            rights: Rights::default(),
            changed: Notify::new(),
        }))
    }

    /// Writes its lease, reads what others write, and keeps claims true, from now on.
    pub fn start(self: &Arc<Self>, signaling: Signaling, sfu: &SfuHandle) {
        if let Some(share) = &self.share {
            share.start(self, signaling.clone(), sfu.clone());
        }
        self.rights.start(&self.client, &signaling);
        let _ = self.signaling.set(signaling);
        let node = self.clone();
        tokio::spawn(nats::watch_nodes(self.client.clone(), move |heard| node.of_nodes(&heard)));
        let node = self.clone();
        tokio::spawn(nats::watch_claims(self.client.clone(), move |heard| node.of_claims(&heard)));
        let (node, stop) = (self.clone(), self.stop.subscribe());
        tokio::spawn(async move {
            nats::keep_node(node.client.clone(), &node.name, || node.lease(), stop).await;
            node.left.send_replace(true);
        });
        let node = self.clone();
        tokio::spawn(async move {
            let mut ticks = interval(TIDY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                node.tidy().await;
            }
        });
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn local(&self) -> HashMap<String, String> {
        let rooms = self.signaling.get().map_or_else(Vec::new, Signaling::rooms);
        rooms.into_iter().map(|(room, _)| (key(&room), room)).collect()
    }

    fn lease(&self) -> NodeLease {
        let rooms = self.signaling.get().map_or_else(Vec::new, Signaling::rooms);
        let participants = rooms.iter().map(|(_, participants)| participants).sum::<usize>();
        NodeLease {
            url: self.config.url.clone(),
            relay: self.share.as_ref().map(|share| share.address().to_owned()),
            participants: u32::try_from(participants).unwrap_or(u32::MAX),
            draining: self.known().draining,
        }
    }

    fn of_nodes(&self, heard: &Heard<'_>) {
        let known = &mut *self.known();
        match heard {
            Heard::Written { name, bytes, .. } => {
                if !known.rooms.renewed(name, bytes, Instant::now()).unwrap_or_default() {
                    known.refused += 1;
                }
            }
            Heard::GivenUp { name, .. } => known.rooms.given_up(name),
            Heard::Readable { since } => known.nodes = Some(*since),
            Heard::Refused { .. } | Heard::Begins => {}
            Heard::Cut => known.nodes = None,
        }
        known.readable();
    }

    fn of_claims(&self, heard: &Heard<'_>) {
        let known = &mut *self.known();
        match heard {
            Heard::Written { name, bytes, revision } => {
                let now = Instant::now();
                if !known.rooms.claimed(name, bytes, *revision, now).unwrap_or_default() {
                    known.refused += 1;
                }
                self.changed.notify_one();
            }
            Heard::GivenUp { name, revision } => known.rooms.released(name, *revision),
            Heard::Refused { name } => known.rooms.spoilt(name),
            Heard::Readable { since } => known.claims = Some(*since),
            Heard::Begins => known.rooms.forget_claims(),
            Heard::Cut => known.claims = None,
        }
        known.readable();
    }

    async fn claim(&self, room: &str, claim: &Claim, revision: u64) -> bool {
        let Some(revision) = nats::claim(&self.client, room, claim, revision).await else {
            return false;
        };
        self.known().rooms.claimed_by(room, claim, revision, Instant::now());
        self.changed.notify_one();
        true
    }

    async fn tidy(&self) {
        let local = self.local();
        let keys: HashSet<String> = local.keys().cloned().collect();
        if self.known().draining {
            // What could not be given away, or has come back as the one to whom it was given is lost.
            let left = self.known().rooms.unowned(&keys);
            self.hand_over(&local, &left).await;
        }
        let tidy = self.known().rooms.tidy(&keys, Instant::now());
        for (room, revision) in tidy.release {
            if !nats::release(&self.client, &room, revision).await {
                // It may still be there: it is tried again.
                let claim = Claim { node: self.name.clone(), with: Vec::new() };
                self.known().rooms.claimed_by(&room, &claim, revision, Instant::now());
            }
        }
        for (room, revision, claim) in tidy.claim {
            self.claim(&room, &claim, revision).await;
        }
        for (room, url) in tidy.moved {
            self.send_away(&local, &room, &url, true);
        }
        for (room, url) in tidy.better {
            self.send_away(&local, &room, &url, false);
        }
        self.changed.notify_one();
    }

    fn send_away(&self, local: &HashMap<String, String>, room: &str, url: &str, must: bool) {
        if let (Some(signaling), Some(room)) = (self.signaling.get(), local.get(room)) {
            let told = signaling.send_away(room, url, must);
            self.known().sent_away += u64::from(told);
        }
    }

    /// Gives its rooms to others, where there are any, and takes no more.
    pub async fn drain(&self) {
        let local = self.local();
        let keys: HashSet<String> = local.keys().cloned().collect();
        {
            let mut known = self.known();
            known.draining = true;
            known.rooms.drain();
        }
        self.hand_over(&local, &keys).await;
    }

    async fn hand_over(&self, local: &HashMap<String, String>, keys: &HashSet<String>) {
        let given = self.known().rooms.hand_over(keys, Instant::now());
        for Given { room, revision, claim, url } in given {
            if self.claim(&room, &claim, revision).await {
                self.send_away(local, &room, &url, true);
            }
        }
    }

    /// Gives up its lease.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }

    /// The same, and waits until others can know it.
    pub async fn leave(&self) {
        let mut left = self.left.subscribe();
        self.stop();
        let _ = left.wait_for(|left| *left).await;
    }

    /// What it knows of the cluster.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = {
            let known = self.known();
            let (nodes, claims) = known.rooms.counts(Instant::now());
            vec![
                Metric::gauge("cluster_nodes", nodes as f64)
                    .help("SFUs that live, this one included."),
                Metric::gauge("cluster_rooms", claims as f64)
                    .help("Rooms that an SFU has claimed."),
                Metric::gauge("cluster_rooms_shared", known.rooms.shared().count() as f64)
                    .help("Rooms that are on this SFU and on others."),
                Metric::counter("cluster_refused", known.refused)
                    .help("Leases and claims that made no sense."),
                Metric::counter("cluster_tickets_refused", known.tickets_refused)
                    .help("Clients who came with a ticket of a move that was not good, and took nobody's place."),
                Metric::counter("cluster_rooms_moved", known.sent_away)
                    .help("Rooms whose participants were sent to another SFU."),
                Metric::counter("cluster_rooms_spread", known.spread)
                    .help("Times that a room of this SFU was given a further one."),
            ]
        };
        all.push(self.rights.metrics());
        all.extend(self.share.iter().flat_map(Share::metrics));
        all
    }

    /// Where a room is, as it is known now.
    fn look(&self, key: &str, room: &str, here: usize) -> Place {
        let afar = self.share.as_ref().map(|share| share.crowd(room)).unwrap_or_default();
        let crowd = Crowd { here, most: self.config.max_participants, afar: &afar };
        self.known().rooms.place(key, &crowd, Instant::now())
    }
}

impl Cluster for Node {
    fn place<'a>(&'a self, room: &'a str, here: usize) -> Placed<'a> {
        Box::pin(async move {
            let key = key(room);
            for _ in 0..TRIES {
                match self.look(&key, room, here) {
                    Place::Here => return cluster::Place::Here,
                    Place::At(url) => return cluster::Place::At(url.to_string()),
                    Place::Wait(until) => {
                        sleep(until.saturating_duration_since(Instant::now()) + NEWS / 10).await;
                        continue;
                    }
                    Place::Claim(revision) => {
                        let claim = Claim { node: self.name.clone(), with: Vec::new() };
                        if self.claim(&key, &claim, revision).await {
                            return cluster::Place::Here;
                        }
                    }
                    Place::Spread(given) => {
                        if self.claim(&key, &given.claim, given.revision).await {
                            self.known().spread += 1;
                            // It must have heard of that when the client comes.
                            sleep(NEWS).await;
                            return cluster::Place::At(given.url.to_string());
                        }
                    }
                }
                sleep(NEWS).await;
            }
            // Rather a room in two places, which is mended later, than none.
            tracing::warn!("nobody can say where a room is: it is served here");
            cluster::Place::Here
        })
    }

    fn others(&self) -> Vec<String> {
        let others = self.known().rooms.others(Instant::now());
        others.iter().map(ToString::to_string).collect()
    }

    fn ticket(&self, mover: &cluster::Mover<'_>, id: ParticipantId) -> Option<String> {
        let now = self.client.time()?;
        Some(ticket::issue(self.client.seal_key(), of(mover), &id.to_string(), now))
    }

    fn was(&self, mover: &cluster::Mover<'_>, ticket: &str) -> Option<String> {
        let now = self.client.time()?;
        let was = ticket::check(self.client.seal_key(), of(mover), ticket, now);
        if let Err(why) = &was {
            tracing::debug!(%why, "a ticket is not good");
            self.known().tickets_refused += 1;
        }
        was.ok()
    }
}

fn of<'a>(mover: &cluster::Mover<'a>) -> Mover<'a> {
    let Person { name, identity, .. } = mover.person;
    Mover { room: mover.room, name, identity: identity.as_deref() }
}
