//! Which claims a server must write or release, and which of its participants must move.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::{
    CLAIM_FORGET_AFTER, CLAIM_REFRESH, Claim, JOIN_GRACE, KnownClaim, LEASE_TIMEOUT,
    LINK_SETUP_TIMEOUT, NODE_FORGET_AFTER, PARTITION_AFTER, Rooms,
};

/// A claim to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWrite {
    /// Bucket key of the room.
    pub room: String,
    /// Revision of the claim that is replaced; 0: there is none.
    pub replaces: u64,
    /// The new claim.
    pub claim: Claim,
}

/// A claim to be written, and the server to which participants are sent once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// The claim.
    pub write: ClaimWrite,
    /// Signalling address of the server that takes the participants.
    pub url: Arc<str>,
}

/// Actions of a server about its claims and participants. Rooms are bucket keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconcileActions {
    /// Claims to release, by room and revision: the rooms have ended.
    pub release: Vec<(String, u64)>,
    /// Claims to write: of rooms without a claim or with a lost server, of empty shared rooms, and of those to be
    /// refreshed.
    pub claim: Vec<ClaimWrite>,
    /// Rooms whose participants must go to a signalling address, since another server has the claim.
    pub must_move: Vec<(String, Arc<str>)>,
    /// Rooms whose participants may go to a signalling address, since this server is cut off from a part of the room.
    pub may_move: Vec<(String, Arc<str>)>,
}

impl Rooms {
    /// Compares claims with `local`, the rooms that have participants on this server, and forgets what is too old. To
    /// be called once a second.
    pub fn reconcile(&mut self, local: &HashSet<String>, now: Instant) -> ReconcileActions {
        let mut actions = ReconcileActions::default();
        let Some(since) = self.readable_since else { return actions };
        self.forget_old(since, now);
        self.release_ended(local, now, &mut actions);
        self.shared.retain(|room, _| local.contains(room) || self.claims.contains_key(room));
        for room in local {
            self.reconcile_room(room, now, &mut actions);
        }
        actions
    }

    fn forget_old(&mut self, readable_since: Instant, now: Instant) {
        let (me, linked) = (&self.me, &self.linked);
        self.nodes.retain(|name, node| {
            let age = now.saturating_duration_since(node.renewed.max(readable_since));
            name == me || linked.contains(name) || age < NODE_FORGET_AFTER
        });
        self.unlinked.retain(|name, _| self.nodes.contains_key(name));
        self.claims
            .retain(|_, claim| now.saturating_duration_since(claim.since) < CLAIM_FORGET_AFTER);
    }

    /// Gives up this server's claims to rooms without local participants: to the other servers of the room, or
    /// altogether.
    fn release_ended(
        &mut self,
        local: &HashSet<String>,
        now: Instant,
        actions: &mut ReconcileActions,
    ) {
        for (room, claim) in &self.claims {
            let in_grace =
                !self.draining && now.saturating_duration_since(claim.since) < JOIN_GRACE;
            if claim.owner == self.me && !local.contains(room) && !in_grace {
                match self.handoff_within(room, claim, now) {
                    Some(handoff) => actions.claim.push(handoff.write),
                    None => actions.release.push((room.clone(), claim.revision)),
                }
            }
        }
        // A client that asks before others hear of the release must not be placed here (invariant 4).
        for (room, _) in &actions.release {
            self.claims.remove(room);
        }
    }

    /// Adds the actions for a room that has participants on this server.
    fn reconcile_room(&self, room: &str, now: Instant, actions: &mut ReconcileActions) {
        let write = |replaces, all: &[Arc<str>]| {
            let claim = self.claim_with_live(all, now);
            ClaimWrite { room: room.to_owned(), replaces, claim }
        };
        let Some(claim) = self.claims.get(room) else {
            let known = self.shared.get(room).map_or(&[][..], Vec::as_slice);
            actions.claim.push(write(0, known));
            return;
        };
        let to_owner = || Some((room.to_owned(), self.nodes.get(&claim.owner)?.url.clone()));
        if claim.owner == self.me {
            let is_old = now.saturating_duration_since(claim.since) >= CLAIM_REFRESH;
            let has_lost = !claim.with.iter().all(|name| self.is_linked_or_alive(name, now));
            if is_old || claim.is_overwritten || has_lost {
                actions.claim.push(write(claim.revision, &claim.with));
            }
        } else if claim.names(&self.me) && self.is_linked_or_alive(&claim.owner, now) {
            if self.draining {
                actions.must_move.extend(to_owner());
            } else if self.must_yield(claim, now) {
                actions.may_move.extend(to_owner());
            }
        } else if self.live_node(&claim.owner, now).is_some() {
            actions.must_move.extend(to_owner());
        } else if self.reads_own_lease(now) {
            let all: Vec<_> = claim.nodes().cloned().collect();
            actions.claim.push(write(claim.revision, &all));
        }
    }

    /// A claim of this server that also names those servers of `all` that are linked or live.
    fn claim_with_live(&self, all: &[Arc<str>], now: Instant) -> Claim {
        let others = all.iter().filter(|&name| *name != self.me);
        let live = others.filter(|name| self.is_linked_or_alive(name, now));
        Claim { node: self.me.to_string(), with: live.map(ToString::to_string).collect() }
    }

    /// Whether a server may stay in a claim (invariant 6): it has a link with this one, or a lease that has not ended.
    fn is_linked_or_alive(&self, name: &Arc<str>, now: Instant) -> bool {
        self.linked.contains(name) || self.live_node(name, now).is_some()
    }

    /// Whether this server is cut off from a part of a shared room, and is the one of the two that yields (invariant
    /// 7): both live, but have no link.
    fn must_yield(&self, claim: &KnownClaim, now: Instant) -> bool {
        let is_cut_off = |name: &&Arc<str>| {
            let since = self.unlinked_since(name, claim).map(|since| since + PARTITION_AFTER);
            now >= since.unwrap_or(claim.since + LINK_SETUP_TIMEOUT)
                && !self.linked.contains(*name)
                && **name != self.me
                // Its lease was renewed recently, whether or not leases have been readable since.
                && self.nodes.get(*name).is_some_and(|node| now < node.renewed + LEASE_TIMEOUT)
        };
        let yields_to = |name: &Arc<str>| *name == claim.owner || self.me > *name;
        self.reads_own_lease(now) && claim.nodes().filter(is_cut_off).any(yields_to)
    }

    /// The handoffs of a draining server. Each room goes to one of its other servers. Otherwise rooms go in turn to the
    /// servers that take rooms, the one with the fewest participants first.
    pub fn handoffs(&self, local: &HashSet<String>, now: Instant) -> Vec<Handoff> {
        if self.readable_since.is_none() {
            return Vec::new();
        }
        let candidates = self.candidates(now);
        let mut next = candidates.iter().cycle();
        let handoff = |room: &String| {
            let claim = self.claims.get(room);
            if let Some(mut within) = claim.and_then(|c| self.handoff_within(room, c, now)) {
                // This server stays in the claim until its participants have arrived (invariant 8).
                within.write.claim.with.push(self.me.to_string());
                return Some(within);
            }
            let (name, node) = next.next()?;
            let write = ClaimWrite {
                room: room.clone(),
                replaces: claim.map_or(0, |claim| claim.revision),
                claim: Claim::sole(name),
            };
            Some(Handoff { write, url: node.url.clone() })
        };
        local.iter().filter_map(handoff).collect()
    }

    /// The rooms of `local` that no other server has claimed.
    pub fn not_claimed_by_others(&self, local: &HashSet<String>) -> HashSet<String> {
        let is_ours = |room: &&String| self.claims.get(*room).is_none_or(|c| c.owner == self.me);
        local.iter().filter(is_ours).cloned().collect()
    }

    /// Hands a shared room to its other servers, where one of them takes rooms.
    fn handoff_within(&self, room: &str, claim: &KnownClaim, now: Instant) -> Option<Handoff> {
        let takes = |name: &&Arc<str>| {
            **name != self.me && self.live_node(name, now).is_some_and(|node| !node.draining)
        };
        let mut rest = claim.nodes().filter(takes);
        let owner = rest.next()?;
        let url = self.nodes.get(owner)?.url.clone();
        let with = rest.map(ToString::to_string).collect();
        let write = ClaimWrite {
            room: room.to_owned(),
            replaces: claim.revision,
            claim: Claim { node: owner.to_string(), with },
        };
        Some(Handoff { write, url })
    }
}
