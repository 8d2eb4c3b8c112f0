//! Which SFU a room lives on: the one that claimed it first, for as long as that lives.
//!
//! A node writes a lease as workers do, and a *claim* for each room that begins on it, which only one can write. Whoever is asked for a room that
//! another has sends the client there. Where claims cannot be read, rooms are served by the node that is reached.
//!
//! Source: decision 013. Pure: every time is an argument; claims are values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Between two renewals of a node's lease.
pub const RENEW: Duration = Duration::from_millis(300);
/// A node that has not renewed its lease for so long has lost its rooms.
pub const HOLDS: Duration = Duration::from_millis(1_500);
/// A lease of which a renewal is missing: soon it is known whether the node lives.
const DOUBTFUL: Duration = Duration::from_millis(700);
/// A claim may be older than its room, which the client that asked for it is about to enter.
const ENTERING: Duration = Duration::from_secs(10);

/// A longer lease or claim is not read.
const MOST_BYTES: usize = 1_024;
/// Nodes that are known at the most.
const MOST_NODES: usize = 1_024;
/// Claims that are known at the most; rooms beyond them are served where they are asked for.
const MOST_CLAIMS: usize = 200_000;

/// What an SFU says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeLease {
    /// Where clients reach its signalling (`wss://host/ws`).
    pub url: String,
    /// Participants that it has.
    pub participants: u32,
    /// It ends soon, and takes no new rooms.
    pub draining: bool,
}

/// That a room is a node's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// The node's name.
    pub node: String,
}

/// Why a lease or claim is none.
#[derive(Debug, Error)]
pub enum BadNode {
    /// More bytes than any has.
    #[error("{0} bytes")]
    Long(usize),
    /// Something else.
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Its address is none for a WebSocket.
    #[error("its address is none")]
    Address,
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, BadNode> {
    if bytes.len() > MOST_BYTES {
        return Err(BadNode::Long(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// Where a room is, for a client that wants to enter it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this node.
    Here,
    /// On another, whose signalling is there.
    At(Arc<str>),
    /// Nobody's: this node may claim it, where the claim of this revision (0: none) is still the last.
    Claim(u64),
    /// It will be known by then.
    Wait(Instant),
}

#[derive(Debug, Clone)]
struct Node {
    url: Arc<str>,
    participants: u32,
    draining: bool,
    renewed: Instant,
}

#[derive(Debug, Clone)]
struct Owner {
    node: Arc<str>,
    revision: u64,
    since: Instant,
}

/// Nodes and claims, as one node knows them.
#[derive(Debug)]
pub struct Rooms {
    me: Arc<str>,
    draining: bool,
    nodes: BTreeMap<Arc<str>, Node>,
    owners: HashMap<String, Owner>,
    /// Since when leases and claims can be read without a break.
    readable: Option<Instant>,
}

/// A room's name as a key of a bucket, which has few characters.
pub fn key(room: &str) -> String {
    room.bytes().fold(String::from("r"), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

impl Rooms {
    /// Those of a node of this name, which knows of no other.
    pub fn new(me: &str) -> Self {
        Rooms {
            me: me.into(),
            draining: false,
            nodes: BTreeMap::new(),
            owners: HashMap::new(),
            readable: None,
        }
    }

    /// This node takes no new rooms from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Leases and claims can be read since then; or cannot.
    pub fn readable(&mut self, since: Option<Instant>) {
        self.readable = since;
    }

    /// Leases and claims can be read: since now, if they could not before.
    pub fn readable_again(&mut self, now: Instant) {
        self.readable.get_or_insert(now);
    }

    /// A node has written its lease. Whether there is room for it.
    pub fn renewed(&mut self, name: &str, bytes: &[u8], now: Instant) -> Result<bool, BadNode> {
        let lease: NodeLease = read(bytes)?;
        if !(lease.url.starts_with("ws://") || lease.url.starts_with("wss://")) {
            return Err(BadNode::Address);
        }
        if self.nodes.len() >= MOST_NODES && !self.nodes.contains_key(name) {
            return Ok(false);
        }
        let NodeLease { url, participants, draining } = lease;
        let node = Node { url: url.into(), participants, draining, renewed: now };
        self.nodes.insert(name.into(), node);
        Ok(true)
    }

    /// A node has given up its lease.
    pub fn given_up(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A claim was written. Whether there is room for it.
    pub fn claimed(
        &mut self,
        room: &str,
        bytes: &[u8],
        revision: u64,
        now: Instant,
    ) -> Result<bool, BadNode> {
        let Claim { node } = read(bytes)?;
        if self.owners.len() >= MOST_CLAIMS && !self.owners.contains_key(room) {
            return Ok(false);
        }
        self.claimed_by(room, &node, revision, now);
        Ok(true)
    }

    /// The same, as this node has heard in answer to its own claim.
    pub fn claimed_by(&mut self, room: &str, node: &str, revision: u64, now: Instant) {
        // News may come by two ways, and the older one last.
        if self.owners.get(room).is_none_or(|known| known.revision < revision) {
            let owner = Owner { node: node.into(), revision, since: now };
            self.owners.insert(room.to_owned(), owner);
        }
    }

    /// A claim was given up.
    pub fn released(&mut self, room: &str, revision: u64) {
        if self.owners.get(room).is_some_and(|known| known.revision < revision) {
            self.owners.remove(room);
        }
    }

    /// All claims are forgotten: they are about to be read again.
    pub fn forget_claims(&mut self) {
        self.owners.clear();
    }

    /// When a node's lease ends, as far as it can be told.
    fn holds(&self, node: &Node) -> Option<Instant> {
        let since = self.readable?;
        Some(node.renewed.max(since) + HOLDS)
    }

    fn lives(&self, node: &Node, now: Instant) -> bool {
        self.holds(node).is_none_or(|until| now < until)
    }

    /// Where a room is, or may be. `local`: participants of it are on this node.
    pub fn place(&self, room: &str, local: bool, now: Instant) -> Place {
        let Some(since) = self.readable else { return Place::Here };
        if local {
            return Place::Here;
        }
        let owner = self.owners.get(room);
        if let Some(owner) = owner {
            if owner.node == self.me {
                return Place::Here;
            }
            match self.nodes.get(&owner.node) {
                Some(node) if self.lives(node, now) => {
                    let late = now.saturating_duration_since(node.renewed.max(since)) > DOUBTFUL;
                    return match self.holds(node).filter(|_| late) {
                        Some(until) => Place::Wait(until),
                        None => Place::At(node.url.clone()),
                    };
                }
                // The lease of one that has just begun may come later than its claim.
                None if now < owner.since + HOLDS => return Place::Wait(owner.since + HOLDS),
                Some(_) | None => {}
            }
        }
        if self.draining
            && let Some(other) = self.least(now)
        {
            return Place::At(other);
        }
        // Others take a claim for that of a lost node where they do not know the node.
        if !self.nodes.contains_key(&self.me) {
            return Place::Wait(now + RENEW / 3);
        }
        Place::Claim(owner.map_or(0, |owner| owner.revision))
    }

    /// Another node that takes rooms, with the fewest participants.
    fn least(&self, now: Instant) -> Option<Arc<str>> {
        self.ranked(now).first().map(|(_, node)| node.url.clone())
    }

    /// Signalling addresses of the other nodes that take rooms, those with the fewest participants first.
    pub fn others(&self, now: Instant) -> Vec<Arc<str>> {
        self.ranked(now).into_iter().map(|(_, node)| node.url.clone()).collect()
    }

    /// The other nodes that take rooms, those with the fewest participants first.
    fn ranked(&self, now: Instant) -> Vec<(&Arc<str>, &Node)> {
        let takes =
            |name: &str, node: &Node| *name != *self.me && !node.draining && self.lives(node, now);
        let mut others: Vec<_> =
            self.nodes.iter().filter(|(name, node)| takes(name, node)).collect();
        others.sort_by_key(|(_, node)| node.participants);
        others
    }

    /// Which of this node's rooms, by the revisions of their claims, go to which node that takes rooms: the one with the fewest participants
    /// gets the first, and so on around.
    pub fn hand_over(&self, local: &HashSet<String>, now: Instant) -> Vec<Given> {
        if self.readable.is_none() {
            return Vec::new();
        }
        let others = self.ranked(now);
        let revision = |room: &String| self.owners.get(room).map_or(0, |owner| owner.revision);
        let rooms = local.iter().zip(others.iter().cycle());
        rooms
            .map(|(room, (node, of))| Given {
                room: room.clone(),
                revision: revision(room),
                node: (*node).clone(),
                url: of.url.clone(),
            })
            .collect()
    }

    /// What is to be done about claims: those of this node whose rooms have ended, with their revisions; rooms of this node that nobody has claimed; and
    /// rooms of this node that another has, with where it is.
    pub fn tidy(&mut self, local: &HashSet<String>, now: Instant) -> Tidy {
        let mut tidy = Tidy::default();
        if self.readable.is_none() {
            return tidy;
        }
        for (room, owner) in &self.owners {
            let entering = now.saturating_duration_since(owner.since) < ENTERING;
            if owner.node == self.me && !local.contains(room) && !entering {
                tidy.release.push((room.clone(), owner.revision));
            }
        }
        // Whoever asks before others have heard of it must not find it here still.
        for (room, _) in &tidy.release {
            self.owners.remove(room);
        }
        for room in local {
            match self.owners.get(room) {
                None => tidy.claim.push((room.clone(), 0)),
                Some(owner) if owner.node == self.me => {}
                Some(owner) => match self.nodes.get(&owner.node) {
                    Some(node) if self.lives(node, now) => {
                        tidy.moved.push((room.clone(), node.url.clone()));
                    }
                    _ => tidy.claim.push((room.clone(), owner.revision)),
                },
            }
        }
        tidy
    }

    /// Nodes that live, this one included, and claims.
    pub fn counts(&self, now: Instant) -> (usize, usize) {
        let nodes = self.nodes.values().filter(|node| self.lives(node, now)).count();
        (nodes, self.owners.len())
    }
}

/// A room that another node gets ([`Rooms::hand_over`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The room.
    pub room: String,
    /// Of the claim in whose place the new one comes.
    pub revision: u64,
    /// Who gets it.
    pub node: Arc<str>,
    /// Where that is.
    pub url: Arc<str>,
}

/// What is to be done about claims ([`Rooms::tidy`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tidy {
    /// Claims to be given up, by revision.
    pub release: Vec<(String, u64)>,
    /// Rooms to be claimed, in the place of a revision.
    pub claim: Vec<(String, u64)>,
    /// Rooms whose participants should go to another node.
    pub moved: Vec<(String, Arc<str>)>,
}

#[cfg(test)]
#[path = "rooms_tests.rs"]
mod tests;
