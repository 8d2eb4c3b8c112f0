//! Which SFU a room lives on: the one that claimed it first, for as long as that lives; and on which others too, where there are too many in it.
//!
//! A node writes a lease as workers do, and a *claim* for each room that begins on it, which only one can write. Whoever is asked for a room that
//! another has sends the client there. Where claims cannot be read, rooms are served by the node that is reached. A room's owner, once it has as many of its
//! participants as it wants, writes other nodes into the claim and sends newcomers there.
//!
//! Source: decisions 013 and 014. Pure: every time is an argument; claims are values.

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

/// A claim is written again after so long, so that those of lost nodes can end by themselves in the bucket.
const REFRESH: Duration = Duration::from_secs(3_600);
/// For how long a claim lasts in the bucket, and a little longer here.
pub const CLAIM_HOLDS: Duration = Duration::from_secs(6 * 3_600);
const CLAIM_KNOWN: Duration = Duration::from_secs(6 * 3_600 + 60);
/// A node that has not renewed its lease for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// A node to which there is no link any more for so long lives, if its lease does, and cannot be reached: a lease of one that is lost has ended by then.
const PARTED: Duration = Duration::from_millis(1_700);
/// Two nodes that share a room have a link by then, or cannot reach each other.
const LINKED_BY: Duration = Duration::from_secs(5);

/// A longer lease or claim is not read.
const MOST_BYTES: usize = 1_024;
/// Nodes that are known at the most.
const MOST_NODES: usize = 1_024;
/// Claims that are known at the most; rooms beyond them are served where they are asked for.
const MOST_CLAIMS: usize = 200_000;
/// Nodes of one room, at the most, its owner not counted.
const MOST_WITH: usize = 31;

/// What an SFU says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeLease {
    /// Where clients reach its signalling (`wss://host/ws`).
    pub url: String,
    /// Where other nodes reach it (`https://host:port`), if it shares rooms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<String>,
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
    /// Those of others on which the room is too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
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
    /// Its address is none for a WebSocket, or for a link.
    #[error("its address is none")]
    Address,
    /// More nodes than a room may have.
    #[error("{0} nodes")]
    Many(usize),
}

/// Whether that is an address of one of these schemes, with a host, and nobody's name or password.
fn is_address(url: &str, schemes: &[&str]) -> bool {
    let Some(rest) = schemes.iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:[]%".contains(c);
    !host.is_empty() && host.chars().all(fits) && rest.bytes().all(|byte| byte.is_ascii_graphic())
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
    /// This node's, which has enough of it: another may have the others, where the claim is written anew.
    Spread(Given),
    /// It will be known by then.
    Wait(Instant),
}

/// How many of a room are where, as far as the node knows that is asked.
#[derive(Debug, Clone, Copy)]
pub struct Crowd<'a> {
    /// On itself.
    pub here: usize,
    /// As many as it wants of one room.
    pub most: usize,
    /// On other nodes, by their names.
    pub afar: &'a HashMap<Arc<str>, usize>,
}

#[derive(Debug, Clone)]
struct Node {
    url: Arc<str>,
    relay: Option<Arc<str>>,
    participants: u32,
    draining: bool,
    renewed: Instant,
}

#[derive(Debug, Clone)]
struct Owner {
    node: Arc<str>,
    with: Vec<Arc<str>>,
    revision: u64,
    since: Instant,
    /// Others have written over the claim: it is to be written again.
    is_spoilt: bool,
}

impl Owner {
    fn has(&self, name: &Arc<str>) -> bool {
        self.node == *name || self.with.contains(name)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.node).chain(&self.with)
    }
}

/// Nodes and claims, as one node knows them.
#[derive(Debug)]
pub struct Rooms {
    me: Arc<str>,
    /// Clients come by TLS: they are sent nowhere else.
    only_wss: bool,
    draining: bool,
    nodes: BTreeMap<Arc<str>, Node>,
    owners: HashMap<String, Owner>,
    /// The nodes of rooms that are on this one and others, even while claims cannot be read.
    shared: HashMap<String, Vec<Arc<str>>>,
    /// Nodes to which there is a link: they live, whatever their leases say.
    linked: HashSet<Arc<str>>,
    /// Nodes to which there was one, and since when there is none: they are lost, or cannot be reached.
    parted: HashMap<Arc<str>, Instant>,
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

/// The room that a key is of; `None` where it is none.
pub fn room(key: &str) -> Option<String> {
    let digits = key.strip_prefix('r').filter(|digits| digits.is_ascii())?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

impl Rooms {
    /// Those of a node of this name, which knows of no other.
    pub fn new(me: &str) -> Self {
        Rooms {
            me: me.into(),
            only_wss: false,
            draining: false,
            nodes: BTreeMap::new(),
            owners: HashMap::new(),
            shared: HashMap::new(),
            linked: HashSet::new(),
            parted: HashMap::new(),
            readable: None,
        }
    }

    /// The same of a node whose clients come to it by `url`: where that is by TLS, it sends them to no node without.
    #[must_use]
    pub fn reached_by(mut self, url: &str) -> Self {
        self.only_wss = url.starts_with("wss://");
        self
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
        let schemes = if self.only_wss { &["wss://"][..] } else { &["wss://", "ws://"] };
        let links = ["http://", "https://"];
        let link = lease.relay.as_deref();
        if !is_address(&lease.url, schemes) || link.is_some_and(|link| !is_address(link, &links)) {
            return Err(BadNode::Address);
        }
        if self.nodes.len() >= MOST_NODES && !self.nodes.contains_key(name) {
            return Ok(false);
        }
        let NodeLease { url, relay, participants, draining } = lease;
        let relay = relay.map(Into::into);
        let node = Node { url: url.into(), relay, participants, draining, renewed: now };
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
        let claim: Claim = read(bytes)?;
        if claim.with.len() > MOST_WITH {
            return Err(BadNode::Many(claim.with.len()));
        }
        if self.owners.len() >= MOST_CLAIMS && !self.owners.contains_key(room) {
            return Ok(false);
        }
        self.claimed_by(room, &claim, revision, now);
        Ok(true)
    }

    /// The same, as this node has heard in answer to its own claim.
    pub fn claimed_by(&mut self, room: &str, claim: &Claim, revision: u64, now: Instant) {
        // News may come by two ways, and the older one last.
        if self.owners.get(room).is_some_and(|known| known.revision >= revision) {
            return;
        }
        let with = claim.with.iter().map(|name| name.as_str().into()).collect();
        let owner = Owner {
            node: claim.node.as_str().into(),
            with,
            revision,
            since: now,
            is_spoilt: false,
        };
        if owner.has(&self.me) && !owner.with.is_empty() {
            self.shared.insert(room.to_owned(), owner.all().cloned().collect());
        } else {
            self.shared.remove(room);
        }
        self.owners.insert(room.to_owned(), owner);
    }

    /// There is a link to a node, or none any more.
    pub fn linked(&mut self, name: &str, up: bool, now: Instant) {
        if up {
            self.linked.insert(name.into());
            self.parted.remove(name);
        } else {
            self.parted.extend(self.linked.take(name).map(|name| (name, now)));
        }
    }

    /// The rooms that are on this node and others, with these.
    pub fn shared(&self) -> impl Iterator<Item = (&str, Vec<Arc<str>>)> {
        let others = |name: &&Arc<str>| **name != self.me;
        self.shared
            .iter()
            .map(move |(room, all)| (room.as_str(), all.iter().filter(others).cloned().collect()))
    }

    /// Where other nodes reach one for what they share.
    pub fn relay(&self, name: &str) -> Option<Arc<str>> {
        self.nodes.get(name)?.relay.clone()
    }

    /// A claim was given up.
    pub fn released(&mut self, room: &str, revision: u64) {
        if self.owners.get(room).is_some_and(|known| known.revision < revision) {
            self.owners.remove(room);
        }
    }

    /// Somebody who is not of the cluster has written over a claim, which holds for all who know it; others may not learn of it until it is written again.
    pub fn spoilt(&mut self, room: &str) {
        if let Some(owner) = self.owners.get_mut(room) {
            owner.is_spoilt = true;
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

    /// Whether what this node writes is told to it just now: otherwise news of others may be on their way as well.
    fn hears(&self, now: Instant) -> bool {
        self.nodes.get(&self.me).is_some_and(|own| now < own.renewed + HOLDS)
    }

    /// Whether a node of a shared room can be reached, or may be soon.
    fn reaches(&self, name: &Arc<str>, owner: &Owner, now: Instant) -> bool {
        let soon = now.saturating_duration_since(owner.since) < LINKED_BY;
        self.linked.contains(name) || (soon && self.parted_from(name, owner).is_none())
    }

    /// Whether a room is on this node and that one.
    pub fn shares(&self, room: &str, name: &str) -> bool {
        self.shared.get(room).is_some_and(|all| all.iter().any(|one| **one == *name))
    }

    fn lives(&self, node: &Node, now: Instant) -> bool {
        self.holds(node).is_none_or(|until| now < until)
    }

    /// Where a room is, or may be.
    pub fn place(&self, room: &str, crowd: &Crowd<'_>, now: Instant) -> Place {
        let Some(since) = self.readable else { return Place::Here };
        let owner = self.owners.get(room);
        let among = owner.filter(|owner| owner.has(&self.me));
        if let Some(owner) = among
            && (crowd.here >= crowd.most || (self.draining && owner.node != self.me))
        {
            return self.beside(room, owner, crowd, now);
        }
        let elsewhere =
            |owner: &&Owner| self.nodes.get(&owner.node).is_some_and(|node| self.lives(node, now));
        let given = self.draining && owner.as_ref().is_some_and(elsewhere);
        if among.is_some() || (crowd.here > 0 && !given) {
            return Place::Here;
        }
        if let Some(owner) = owner {
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
            // One of those that it is on still will claim it.
            let others = owner.with.iter().filter_map(|name| self.nodes.get(name));
            if let Some(node) = others.into_iter().find(|node| self.lives(node, now)) {
                return Place::At(node.url.clone());
            }
        }
        if self.draining
            && let Some(other) = self.least(now)
        {
            return Place::At(other);
        }
        // Others take a claim for that of a lost node where they do not know the node; and where its own lease is not heard, those of others that live may
        // seem lost.
        if !self.hears(now) {
            return Place::Wait(now + RENEW / 3);
        }
        Place::Claim(owner.map_or(0, |owner| owner.revision))
    }

    /// Where whoever comes too many goes: by a room's owner, who knows how full the others are, to one that has room, or a new one.
    fn beside(&self, room: &str, owner: &Owner, crowd: &Crowd<'_>, now: Instant) -> Place {
        let takes = |node: &&Node| !node.draining && self.lives(node, now) && node.relay.is_some();
        if owner.node != self.me {
            let node = self.nodes.get(&owner.node).filter(|node| self.lives(node, now));
            let node = node.filter(|_| self.reaches(&owner.node, owner, now));
            return node.map_or(Place::Here, |node| Place::At(node.url.clone()));
        }
        let has = |name: &Arc<str>| crowd.afar.get(name).copied().unwrap_or_default();
        let others = owner.with.iter().filter(|name| has(name) < crowd.most);
        let others = others.filter(|name| self.reaches(name, owner, now));
        let others =
            others.filter_map(|name| Some((has(name), self.nodes.get(name).filter(takes)?)));
        if let Some((_, node)) = others.min_by_key(|(has, _)| *has) {
            return Place::At(node.url.clone());
        }
        let shares = self.nodes.get(&self.me).is_some_and(|own| own.relay.is_some());
        let ranked = self.ranked(now).into_iter();
        let mut fresh = ranked.filter(|(name, node)| takes(node) && !owner.has(name));
        match fresh.next().filter(|_| shares && owner.with.len() < MOST_WITH) {
            // What there is must do.
            None => Place::Here,
            Some((name, node)) => Place::Spread(Given {
                room: room.to_owned(),
                revision: owner.revision,
                claim: Claim {
                    node: self.me.to_string(),
                    with: owner.with.iter().chain([name]).map(ToString::to_string).collect(),
                },
                url: node.url.clone(),
            }),
        }
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

    /// Which of this node's rooms go where, before it ends: to one of those on which they are anyway, or to one that takes rooms, of these the one with the
    /// fewest participants first, and so on around.
    pub fn hand_over(&self, local: &HashSet<String>, now: Instant) -> Vec<Given> {
        if self.readable.is_none() {
            return Vec::new();
        }
        let ranked = self.ranked(now);
        let mut others = ranked.iter().cycle();
        let mut given = Vec::new();
        for room in local {
            let owner = self.owners.get(room);
            // It is one of the room's nodes until those who are on it are on another: they are relayed meanwhile.
            let beside = owner.and_then(|owner| self.without_me(room, owner, now));
            let beside = beside.map(|mut given| {
                given.claim.with.push(self.me.to_string());
                given
            });
            given.extend(beside.or_else(|| {
                let (name, node) = others.next()?;
                Some(Given {
                    room: room.clone(),
                    revision: owner.map_or(0, |owner| owner.revision),
                    claim: Claim { node: name.to_string(), with: Vec::new() },
                    url: node.url.clone(),
                })
            }));
        }
        given
    }

    /// Of these rooms, those that no other node has.
    pub fn unowned(&self, local: &HashSet<String>) -> HashSet<String> {
        let other = |room: &&String| self.owners.get(*room).is_none_or(|o| o.node == self.me);
        local.iter().filter(other).cloned().collect()
    }

    /// A room's claim by those who have it beside this node, where there are any that take it.
    fn without_me(&self, room: &str, owner: &Owner, now: Instant) -> Option<Given> {
        let takes = |name: &&Arc<str>| {
            let node = self.nodes.get(*name).filter(|node| !node.draining);
            **name != self.me && node.is_some_and(|node| self.lives(node, now))
        };
        let mut rest = owner.all().filter(takes);
        let first = rest.next()?;
        let claim =
            Claim { node: first.to_string(), with: rest.map(ToString::to_string).collect() };
        let url = self.nodes.get(first)?.url.clone();
        Some(Given { room: room.to_owned(), revision: owner.revision, claim, url })
    }

    /// What is to be done about claims: see [`Tidy`]. `local`: the rooms that have participants on this node.
    pub fn tidy(&mut self, local: &HashSet<String>, now: Instant) -> Tidy {
        let mut tidy = Tidy::default();
        if self.readable.is_none() {
            return tidy;
        }
        let since = self.readable.unwrap_or(now);
        let (me, linked) = (&self.me, &self.linked);
        self.nodes.retain(|name, node| {
            let heard = now.saturating_duration_since(node.renewed.max(since));
            name == me || linked.contains(name) || heard < FORGOTTEN
        });
        self.parted.retain(|name, _| self.nodes.contains_key(name));
        self.owners.retain(|_, owner| now.saturating_duration_since(owner.since) < CLAIM_KNOWN);
        for (room, owner) in &self.owners {
            let entering = !self.draining && now.saturating_duration_since(owner.since) < ENTERING;
            if owner.node == self.me && !local.contains(room) && !entering {
                match self.without_me(room, owner, now) {
                    Some(given) => tidy.claim.push((room.clone(), given.revision, given.claim)),
                    None => tidy.release.push((room.clone(), owner.revision)),
                }
            }
        }
        // Whoever asks before others have heard of it must not find it here still.
        for (room, _) in &tidy.release {
            self.owners.remove(room);
        }
        self.shared.retain(|room, _| local.contains(room) || self.owners.contains_key(room));
        for room in local {
            let alive = |name: &Arc<str>| {
                self.linked.contains(name)
                    || self.nodes.get(name).is_some_and(|node| self.lives(node, now))
            };
            let beside = |all: &[Arc<str>]| Claim {
                node: self.me.to_string(),
                with: all
                    .iter()
                    .filter(|&name| *name != self.me && alive(name))
                    .map(ToString::to_string)
                    .collect(),
            };
            match self.owners.get(room) {
                None => {
                    let all = self.shared.get(room).map_or(&[][..], Vec::as_slice);
                    tidy.claim.push((room.clone(), 0, beside(all)));
                }
                Some(owner) if owner.node == self.me => {
                    let old = now.saturating_duration_since(owner.since) >= REFRESH;
                    if old || owner.is_spoilt || !owner.with.iter().all(alive) {
                        tidy.claim.push((room.clone(), owner.revision, beside(&owner.with)));
                    }
                }
                Some(owner) if owner.has(&self.me) && alive(&owner.node) => {
                    let node = self.nodes.get(&owner.node);
                    let to = |node: &Node| (room.clone(), node.url.clone());
                    if self.draining {
                        tidy.moved.extend(node.map(to));
                    } else if self.is_cut_off(owner, now) {
                        tidy.better.extend(node.map(to));
                    }
                }
                Some(owner) => match self.nodes.get(&owner.node) {
                    Some(node) if self.lives(node, now) => {
                        tidy.moved.push((room.clone(), node.url.clone()));
                    }
                    // It may only seem lost.
                    _ if !self.hears(now) => {}
                    _ => {
                        let all: Vec<_> = owner.all().cloned().collect();
                        tidy.claim.push((room.clone(), owner.revision, beside(&all)));
                    }
                },
            }
        }
        tidy
    }

    /// Since when the link to another node of a room is cut, that was there while they shared it.
    fn parted_from(&self, name: &Arc<str>, owner: &Owner) -> Option<Instant> {
        self.parted.get(name).copied().filter(|since| *since >= owner.since)
    }

    /// Whether a room's participants here do not get all of it, and those at its owner do: the link to the owner, or to another of its nodes that has one to
    /// the owner, is cut, though both live. Of two such nodes one gives way.
    fn is_cut_off(&self, owner: &Owner, now: Instant) -> bool {
        let is_cut = |name: &&Arc<str>| {
            let parted = self.parted_from(name, owner).map(|since| since + PARTED);
            now >= parted.unwrap_or(owner.since + LINKED_BY)
                && !self.linked.contains(*name)
                && **name != self.me
                // By what it has said, not by what it may have.
                && self.nodes.get(*name).is_some_and(|node| now < node.renewed + HOLDS)
        };
        let gives_way = |name: &&Arc<str>| **name == owner.node || self.me > **name;
        self.hears(now) && owner.all().filter(is_cut).any(|name| gives_way(&name))
    }

    /// Nodes that live, this one included, and claims.
    pub fn counts(&self, now: Instant) -> (usize, usize) {
        let nodes = self.nodes.values().filter(|node| self.lives(node, now)).count();
        (nodes, self.owners.len())
    }
}

/// A claim that is to be written, and where participants go once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The room.
    pub room: String,
    /// Of the claim in whose place the new one comes.
    pub revision: u64,
    /// Who has it then.
    pub claim: Claim,
    /// Where they go.
    pub url: Arc<str>,
}

/// What is to be done about claims ([`Rooms::tidy`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tidy {
    /// Those of this node whose rooms have ended, by revision.
    pub release: Vec<(String, u64)>,
    /// What is to be written, in the place of a revision: of rooms that nobody has, or a node that is lost; or of which one of the nodes is; or that only others are left in.
    pub claim: Vec<(String, u64, Claim)>,
    /// Rooms here that another node has, where their participants should go.
    pub moved: Vec<(String, Arc<str>)>,
    /// Rooms here whose participants would get more of them at their owner: they may go there.
    pub better: Vec<(String, Arc<str>)>,
}

#[cfg(test)]
#[path = "rooms_tests.rs"]
mod tests;
