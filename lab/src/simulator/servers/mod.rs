//! A cluster in simulated time. Nodes have [`Rooms`] of their own. A bucket lets one of two claims win and tells all
//! nodes a while later. Clients come by any node, are sent on, and come again where their node is lost.
//!
//! The product's own code decides. Clients, losses and the time that news take are made up. Equal scenarios give
//! equal reports, except for the time that deciding took here.

pub(crate) mod day;
pub(crate) mod scaling;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::mean::Mean;
use crate::latencies::Latencies;
use windlass_cluster::rooms::{
    Claim, ClaimWrite, Load, NodeLease, Placement, RENEW_INTERVAL, Rooms,
};

/// A scenario of servers that share rooms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClusterScenario {
    /// A description in a line.
    pub about: String,
    /// Seed of all that is random.
    pub seed: u64,
    /// Number of servers.
    pub nodes: usize,
    /// Number of rooms at a time.
    pub rooms: usize,
    /// Number of participants at a time; they come in the first minute.
    pub participants: usize,
    /// Length of the scenario, in seconds.
    pub seconds: u64,
    /// Participants of a room on one node before the room spreads to another; 0: no limit.
    pub max_per_room: usize,
    /// Mean stay of a participant, in seconds.
    pub stay_s: f64,
    /// Time from a write to the bucket until all nodes know of it, in ms.
    pub news_ms: u64,
    /// Time from one loss of a node to the next, in seconds; 0: none is lost.
    pub lose_every_s: u64,
    /// Time from a node's loss to its restart, in seconds.
    pub back_after_s: u64,
    /// Time from its node's loss to a client's next attempt, in ms.
    pub notice_ms: u64,
    /// Second from which on the bucket cannot be reached.
    pub down_at_s: u64,
    /// Time for which the bucket cannot be reached, in seconds.
    pub down_for_s: u64,
}

impl Default for ClusterScenario {
    fn default() -> Self {
        ClusterScenario {
            about: String::new(),
            seed: 1,
            nodes: 100,
            rooms: 10_000,
            participants: 100_000,
            max_per_room: 0,
            seconds: 180,
            stay_s: 600.0,
            news_ms: 5,
            lose_every_s: 30,
            back_after_s: 20,
            notice_ms: 500,
            down_at_s: 0,
            down_for_s: 0,
        }
    }
}

/// Writes to the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct BucketWrites<T> {
    /// Writes of nodes' leases.
    pub leases: T,
    /// Writes of rooms' claims.
    pub claims: T,
}

/// The results of a scenario.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct ClusterReport {
    /// Number of joins that ended on a node.
    pub joins: u64,
    /// Number of times that a client was sent to another node.
    pub hops: u64,
    /// Number of claims that another node was quicker to write.
    pub conflicts: u64,
    /// Number of times that a client asked a lost node.
    pub dead_ends: u64,
    /// Number of participants whose node was lost.
    pub displaced: u64,
    /// Median time from a node's loss until a displaced participant is on a node again, in ms.
    pub back_p50_ms: u64,
    /// 99th percentile of the time from a node's loss until a displaced participant is on a node again, in ms.
    pub back_p99_ms: u64,
    /// Maximum number of participants of a node over the mean of all live nodes: the mean over the seconds after the
    /// first minute.
    pub imbalance_mean: f64,
    /// Maximum number of participants of a node over the mean of all live nodes, in any second after the first
    /// minute.
    pub max_imbalance: f64,
    /// Number of seconds at which some room had participants on two nodes against its claim.
    pub split_seconds: u64,
    /// Maximum number of rooms that were on several nodes, as their claims say.
    pub max_spread_rooms: usize,
    /// Maximum number of rooms at a time that were on two nodes against their claims.
    pub max_split_rooms: usize,
    /// Number of rooms whose participants were sent to another node to be with others.
    pub healed: u64,
    /// Writes to the buckets in a second.
    pub writes_per_s: BucketWrites<f64>,
    /// Messages in a second that the bucket's servers send to nodes, for both buckets.
    pub told_per_s: f64,
    /// Time of deciding where a room is, measured on this machine, in ns.
    pub place_ns: f64,
}

/// Milliseconds since the beginning.
type Time = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client wants into its room, by a node. `since` is the time at which its node was lost, if it was.
    Ask {
        client: usize,
        node: usize,
        hops: u8,
        since: Option<Time>,
    },
    Leave {
        client: usize,
        visit: u64,
    },
    Lease {
        node: usize,
        life: u64,
    },
    Claimed {
        room: usize,
        revision: u64,
    },
    Released {
        room: usize,
        revision: u64,
    },
    Lose,
    Back {
        node: usize,
    },
    Reconcile {
        node: usize,
        life: u64,
    },
    Look,
}

struct Node {
    rooms: Rooms,
    /// Time since which it can read leases and claims.
    readable_since: Option<Instant>,
    /// Number of the node's starts and losses; odd while it lives.
    life: u64,
    /// The node's participants, by room.
    local: HashMap<usize, HashSet<usize>>,
    participants: usize,
}

impl Node {
    fn set_readable(&mut self, since: Option<Instant>) {
        self.readable_since = since;
        self.rooms.set_readable(since);
    }
}

struct Client {
    room: usize,
    at: Option<usize>,
    visit: u64,
}

struct Play<'a> {
    scenario: &'a ClusterScenario,
    rng: StdRng,
    start: Instant,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    number: u64,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// The bucket: a room's claim, if any, and the last revision.
    bucket: BTreeMap<usize, (Option<Claim>, u64)>,
    /// Claims that no node has been told of, by revision.
    written: HashMap<u64, Claim>,
    revision: u64,
    report: ClusterReport,
    backs: Vec<u64>,
    imbalances: Vec<f64>,
    /// Time of deciding where a room is, in ns.
    place_ns: Mean,
    writes: BucketWrites<u64>,
    told: u64,
}

fn key(room: usize) -> String {
    format!("r{room}")
}

/// Name of a node since its last restart: claims from before the restart belong to another name.
fn name(node: usize, life: u64) -> String {
    format!("n{node}.{life}")
}

/// Plays a scenario.
pub(crate) fn play(scenario: &ClusterScenario) -> ClusterReport {
    let mut play = Play::new(scenario);
    let end = scenario.seconds * 1_000;
    while let Some(Reverse((at, _, event))) = play.events.pop() {
        if at > end {
            break;
        }
        play.now = at;
        play.event(event);
    }
    play.done()
}

impl<'a> Play<'a> {
    fn new(scenario: &'a ClusterScenario) -> Self {
        let nodes = (0..scenario.nodes.max(1)).map(|n| Node {
            rooms: Rooms::new(&name(n, 0)),
            readable_since: None,
            life: 0,
            local: HashMap::new(),
            participants: 0,
        });
        let mut play = Play {
            scenario,
            rng: StdRng::seed_from_u64(scenario.seed),
            start: Instant::now(),
            now: 0,
            events: BinaryHeap::new(),
            number: 0,
            nodes: nodes.collect(),
            clients: Vec::new(),
            bucket: BTreeMap::new(),
            written: HashMap::new(),
            revision: 0,
            report: ClusterReport::default(),
            backs: Vec::new(),
            imbalances: Vec::new(),
            place_ns: Mean::default(),
            writes: BucketWrites::default(),
            told: 0,
        };
        for node in 0..play.nodes.len() {
            play.begin(node);
        }
        for client in 0..scenario.participants {
            let room = play.rng.random_range(0..scenario.rooms.max(1));
            play.clients.push(Client { room, at: None, visit: 0 });
            let at = play.rng.random_range(1_000..60_000);
            play.ask(at, client);
        }
        if scenario.lose_every_s > 0 {
            play.after(60_000, Event::Lose);
        }
        play.after(60_000, Event::Look);
        play
    }

    fn after(&mut self, ms: Time, event: Event) {
        self.number += 1;
        self.events.push(Reverse((self.now + ms, self.number, event)));
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn is_down(&self) -> bool {
        let (from, long) = (self.scenario.down_at_s * 1_000, self.scenario.down_for_s * 1_000);
        (from..from + long).contains(&self.now)
    }

    /// Lets a client ask any live node, as a load balancer does that knows only which nodes live.
    fn ask(&mut self, ms: Time, client: usize) {
        let node = self.rng.random_range(0..self.nodes.len());
        self.after(ms, Event::Ask { client, node, hops: 0, since: None });
    }

    /// Starts a node, which knows what is in the buckets.
    fn begin(&mut self, node: usize) {
        let now = self.instant();
        let down = self.is_down();
        let claims: Vec<(usize, Claim, u64)> = self
            .bucket
            .iter()
            .filter_map(|(&room, (claim, revision))| Some((room, claim.clone()?, *revision)))
            .collect();
        let this = &mut self.nodes[node];
        this.life += 1;
        this.rooms = Rooms::new(&name(node, this.life));
        this.set_readable((!down).then_some(now));
        if !down {
            for (room, claim, revision) in claims {
                this.rooms.apply_claim(&key(room), &claim, revision, now);
            }
        }
        let life = this.life;
        // Nodes do not all renew leases and reconcile at the same moment.
        let (lease, reconcile) = (self.rng.random_range(0..300), self.rng.random_range(0..1_000));
        self.after(lease, Event::Lease { node, life });
        self.after(reconcile, Event::Reconcile { node, life });
    }

    fn lives(&self, node: usize) -> bool {
        self.nodes[node].life % 2 == 1
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Ask { client, node, hops, since } => self.asked(client, node, hops, since),
            Event::Leave { client, visit } => {
                if self.clients[client].visit == visit {
                    self.leave(client);
                    self.clients[client].room =
                        self.rng.random_range(0..self.scenario.rooms.max(1));
                    self.ask(1_000, client);
                }
            }
            Event::Lease { node, life } => self.lease(node, life),
            Event::Claimed { room, revision } => {
                let now = self.instant();
                let claim = self.written.remove(&revision);
                let bytes = serde_json::to_vec(&claim).unwrap_or_default();
                for node in self.nodes.iter_mut().filter(|node| node.life % 2 == 1) {
                    let _ = node.rooms.on_claim(&key(room), &bytes, revision, now);
                    self.told += 1;
                }
            }
            Event::Released { room, revision } => {
                for node in self.nodes.iter_mut().filter(|node| node.life % 2 == 1) {
                    node.rooms.on_claim_released(&key(room), revision);
                    self.told += 1;
                }
            }
            Event::Lose => self.lose(),
            Event::Back { node } => self.begin(node),
            Event::Reconcile { node, life } => self.reconcile(node, life),
            Event::Look => self.look(),
        }
    }

    fn lease(&mut self, node: usize, life: u64) {
        if self.nodes[node].life != life {
            return;
        }
        let (now, down) = (self.instant(), self.is_down());
        self.after(RENEW_INTERVAL.as_millis() as u64, Event::Lease { node, life });
        if down {
            self.nodes[node].set_readable(None);
            return;
        }
        self.writes.leases += 1;
        let participants = u32::try_from(self.nodes[node].participants).unwrap_or(u32::MAX);
        let relay = (self.scenario.max_per_room > 0).then(|| format!("http://{node}"));
        let url = format!("ws://{node}");
        let lease = NodeLease { url, relay, participants, draining: false };
        let bytes = serde_json::to_vec(&lease).unwrap_or_default();
        for other in self.nodes.iter_mut().filter(|node| node.life % 2 == 1) {
            let _ = other.rooms.on_lease(&name(node, life), &bytes, now);
            self.told += 1;
        }
        let this = &mut self.nodes[node];
        this.set_readable(this.readable_since.or(Some(now)));
    }

    fn asked(&mut self, client: usize, node: usize, hops: u8, since: Option<Time>) {
        if !self.lives(node) {
            self.report.dead_ends += 1;
            let (node, ms) = (self.rng.random_range(0..self.nodes.len()), self.scenario.notice_ms);
            self.after(ms, Event::Ask { client, node, hops: 0, since });
            return;
        }
        let (room, now) = (self.clients[client].room, self.instant());
        let local = self.nodes[node].local.get(&room).map_or(0, HashSet::len);
        let max = match self.scenario.max_per_room {
            0 => usize::MAX,
            max => max,
        };
        let mut remote = HashMap::new();
        if local >= max {
            let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != node);
            for (other, at) in others.filter(|(_, at)| at.life % 2 == 1) {
                if let Some(there) = at.local.get(&room) {
                    remote.insert(name(other, at.life).as_str().into(), there.len());
                }
            }
        }
        let load = Load { local, max, remote: &remote };
        let began = Instant::now();
        let place = self.nodes[node].rooms.place(&key(room), &load, now);
        self.place_ns.add(began.elapsed().as_nanos() as f64);
        match place {
            Placement::Local => self.enter(client, node, since),
            Placement::Redirect(url) => {
                self.report.hops += 1;
                let to = url.trim_start_matches("ws://").parse().unwrap_or(node);
                // After some attempts, a client waits a moment.
                let ms = if hops < 3 { 50 } else { self.scenario.notice_ms };
                self.after(
                    ms,
                    Event::Ask { client, node: to, hops: hops.saturating_add(1), since },
                );
            }
            Placement::RetryAt(until) => {
                let ms = until.saturating_duration_since(now).as_millis() as u64 + 5;
                self.after(ms, Event::Ask { client, node, hops, since });
            }
            Placement::AddNode(handoff) => {
                if self.claim(room, node, &handoff.write) {
                    self.report.hops += 1;
                    let to = handoff.url.trim_start_matches("ws://").parse().unwrap_or(node);
                    let ms = 50 + self.scenario.news_ms;
                    let hops = hops.saturating_add(1);
                    self.after(ms, Event::Ask { client, node: to, hops, since });
                } else {
                    self.report.conflicts += 1;
                    self.after(50, Event::Ask { client, node, hops, since });
                }
            }
            Placement::Claim(replaces) => {
                let claim = Claim::sole(&name(node, self.nodes[node].life));
                let write = ClaimWrite { room: key(room), replaces, claim };
                if self.claim(room, node, &write) {
                    self.enter(client, node, since);
                } else {
                    self.report.conflicts += 1;
                    self.after(50, Event::Ask { client, node, hops, since });
                }
            }
        }
    }

    /// Whether the bucket accepts a claim.
    fn claim(&mut self, room: usize, node: usize, write: &ClaimWrite) -> bool {
        if self.is_down() {
            return false;
        }
        self.writes.claims += 1;
        let (owner, last) =
            self.bucket.get(&room).map_or((false, 0), |(claim, last)| (claim.is_some(), *last));
        // A claim that was given up may be claimed as if there had been none.
        if last != write.replaces && (write.replaces != 0 || owner) {
            return false;
        }
        self.revision += 1;
        let (revision, now) = (self.revision, self.instant());
        self.nodes[node].rooms.apply_claim(&write.room, &write.claim, revision, now);
        self.written.insert(revision, write.claim.clone());
        self.bucket.insert(room, (Some(write.claim.clone()), revision));
        self.after(self.scenario.news_ms, Event::Claimed { room, revision });
        true
    }

    fn enter(&mut self, client: usize, node: usize, since: Option<Time>) {
        self.report.joins += 1;
        if let Some(since) = since {
            self.backs.push(self.now - since);
        }
        let this = &mut self.clients[client];
        this.at = Some(node);
        this.visit += 1;
        let (room, visit) = (this.room, this.visit);
        self.nodes[node].local.entry(room).or_default().insert(client);
        self.nodes[node].participants += 1;
        let stay = -(1.0 - self.rng.random::<f64>()).ln() * self.scenario.stay_s * 1_000.0;
        self.after(stay.clamp(1_000.0, 1e9) as u64, Event::Leave { client, visit });
    }

    fn leave(&mut self, client: usize) {
        let this = &mut self.clients[client];
        this.visit += 1;
        let Some(node) = this.at.take() else { return };
        let node = &mut self.nodes[node];
        node.participants -= 1;
        if let Some(there) = node.local.get_mut(&this.room) {
            there.remove(&client);
            if there.is_empty() {
                node.local.remove(&this.room);
            }
        }
    }

    fn lose(&mut self) {
        self.after(self.scenario.lose_every_s * 1_000, Event::Lose);
        let node = self.rng.random_range(0..self.nodes.len());
        if !self.lives(node) {
            return;
        }
        let mut clients: Vec<usize> = self.nodes[node].local.values().flatten().copied().collect();
        clients.sort_unstable();
        self.report.displaced += clients.len() as u64;
        for client in clients {
            self.leave(client);
            let to = self.rng.random_range(0..self.nodes.len());
            let jitter = self.rng.random_range(0..=self.scenario.notice_ms / 2);
            let since = Some(self.now);
            let ms = self.scenario.notice_ms * 3 / 4 + jitter;
            self.after(ms, Event::Ask { client, node: to, hops: 0, since });
        }
        self.nodes[node].life += 1;
        self.after(self.scenario.back_after_s * 1_000, Event::Back { node });
    }

    fn reconcile(&mut self, node: usize, life: u64) {
        if self.nodes[node].life != life {
            return;
        }
        self.after(1_000, Event::Reconcile { node, life });
        if self.is_down() {
            return;
        }
        let now = self.instant();
        let this = &mut self.nodes[node];
        let local: HashSet<String> = this.local.keys().map(|&room| key(room)).collect();
        let actions = this.rooms.reconcile(&local, now);
        let room = |key: &str| key.trim_start_matches('r').parse::<usize>().unwrap_or_default();
        for (key, revision) in actions.release {
            self.writes.claims += 1;
            let room = room(&key);
            if self.bucket.get(&room).is_some_and(|known| known.1 == revision) {
                self.revision += 1;
                self.bucket.insert(room, (None, self.revision));
                let revision = self.revision;
                self.after(self.scenario.news_ms, Event::Released { room, revision });
            }
        }
        for write in actions.claim {
            self.claim(room(&write.room), node, &write);
        }
        for (key, url) in actions.must_move {
            self.report.healed += 1;
            let there = self.nodes[node].local.get(&room(&key)).cloned().unwrap_or_default();
            let mut there: Vec<usize> = there.into_iter().collect();
            there.sort_unstable();
            let to = url.trim_start_matches("ws://").parse().unwrap_or(node);
            for client in there {
                self.leave(client);
                self.after(50, Event::Ask { client, node: to, hops: 0, since: None });
            }
        }
    }

    fn look(&mut self) {
        self.after(1_000, Event::Look);
        let living: Vec<usize> = (0..self.nodes.len()).filter(|&node| self.lives(node)).collect();
        let of = |node: &usize| self.nodes[*node].participants;
        let all: usize = living.iter().map(of).sum();
        let most = living.iter().map(of).max().unwrap_or_default();
        if all > 0 {
            self.imbalances.push(most as f64 * living.len() as f64 / all as f64);
        }
        let mut nodes: HashMap<usize, Vec<String>> = HashMap::new();
        for &node in &living {
            for &room in self.nodes[node].local.keys() {
                nodes.entry(room).or_default().push(name(node, self.nodes[node].life));
            }
        }
        nodes.retain(|_, nodes| nodes.len() > 1);
        let has = |room: &usize, name: &String| {
            let claim = self.bucket.get(room).and_then(|(claim, _)| claim.as_ref());
            claim.is_some_and(|claim| claim.node == *name || claim.with.contains(name))
        };
        let split = nodes.iter().filter(|(room, nodes)| !nodes.iter().all(|n| has(room, n)));
        let split = split.count();
        self.report.max_spread_rooms = self.report.max_spread_rooms.max(nodes.len() - split);
        self.report.split_seconds += u64::from(split > 0);
        self.report.max_split_rooms = self.report.max_split_rooms.max(split);
    }

    fn done(self) -> ClusterReport {
        let backs: Latencies = self.backs.iter().map(|&ms| ms as f64).collect();
        let seconds = self.scenario.seconds.max(1) as f64;
        let mean = self.imbalances.iter().sum::<f64>() / self.imbalances.len().max(1) as f64;
        ClusterReport {
            back_p50_ms: backs.percentile_or_zero(50.0).round() as u64,
            back_p99_ms: backs.percentile_or_zero(99.0).round() as u64,
            imbalance_mean: mean,
            max_imbalance: self.imbalances.iter().copied().fold(0.0, f64::max),
            writes_per_s: BucketWrites {
                leases: self.writes.leases as f64 / seconds,
                claims: self.writes.claims as f64 / seconds,
            },
            told_per_s: self.told as f64 / seconds,
            place_ns: self.place_ns.get().unwrap_or_default(),
            ..self.report
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> ClusterScenario {
        ClusterScenario {
            nodes: 5,
            rooms: 50,
            participants: 400,
            seconds: 150,
            ..Default::default()
        }
    }

    #[test]
    fn no_room_is_on_two_nodes_though_nodes_are_lost() {
        let report = play(&small());
        assert!(report.displaced > 0 && report.joins > 400, "{report:?}");
        assert_eq!((report.split_seconds, report.healed), (0, 0), "{report:?}");
        assert!(report.back_p99_ms < 4_000, "{report:?}");
    }

    #[test]
    fn rooms_that_are_too_large_are_on_several_nodes_which_all_know_it() {
        let large = ClusterScenario { rooms: 5, max_per_room: 30, stay_s: 60.0, ..small() };
        let report = play(&large);
        assert!(report.max_spread_rooms >= 4 && report.displaced > 0, "{report:?}");
        assert_eq!(report.split_seconds, 0, "{report:?}");
        assert!(report.back_p99_ms < 4_000, "{report:?}");
    }

    #[test]
    fn without_the_bucket_rooms_may_be_split_and_are_whole_again_after_it_is_back() {
        let split = ClusterScenario {
            down_at_s: 70,
            down_for_s: 20,
            lose_every_s: 0,
            stay_s: 30.0,
            ..small()
        };
        let report = play(&split);
        assert!(report.split_seconds > 0 && report.healed > 0, "{report:?}");
        assert!(report.split_seconds < 20 + 10, "{report:?}");
    }

    #[test]
    fn equal_scenarios_have_equal_reports() {
        let of = || ClusterReport { place_ns: 0.0, ..play(&small()) };
        assert_eq!(of(), of());
    }
}
