//! Chooses the server on which a client joins a room.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::record::MAX_WITH;
use super::{
    Claim, ClaimWrite, Handoff, KnownClaim, LEASE_TIMEOUT, LINK_SETUP_TIMEOUT, Node,
    RENEW_INTERVAL, Rooms, SUSPECT_AFTER,
};

/// Server for a client that joins a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// The client joins on this server.
    Local,
    /// The client goes to the server with this signalling address.
    Redirect(Arc<str>),
    /// The client joins on this server, once the server has claimed the room in place of the claim with this revision
    /// (0: there is no claim).
    Claim(u64),
    /// The client goes to a further server, once this server, the owner, has added that server to the claim.
    AddNode(Handoff),
    /// The server is not known yet: ask again at that time.
    RetryAt(Instant),
}

/// Number of participants of one room, as the server that is asked knows them.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// Participants on this server.
    pub local: usize,
    /// Number of participants from which on this server sends newcomers to other servers.
    pub max: usize,
    /// Participants on other servers, by the server's name.
    pub remote: &'a HashMap<Arc<str>, usize>,
}

impl Rooms {
    /// Chooses the server for a client that joins `room` (a bucket key) here.
    pub fn place(&self, room: &str, load: &Load<'_>, now: Instant) -> Placement {
        let Some(since) = self.readable_since else { return Placement::Local };
        let claim = self.claims.get(room);
        let own = claim.filter(|claim| claim.names(&self.me));
        if let Some(claim) = own
            && (load.local >= load.max || (self.draining && claim.owner != self.me))
        {
            return self.place_overflow(room, claim, load, now);
        }
        let given_away =
            self.draining && claim.is_some_and(|c| self.live_node(&c.owner, now).is_some());
        if own.is_some() || (load.local > 0 && !given_away) {
            return Placement::Local;
        }
        if let Some(placement) = claim.and_then(|claim| self.place_by_claim(claim, since, now)) {
            return placement;
        }
        if self.draining
            && let Some((_, other)) = self.candidates(now).first()
        {
            return Placement::Redirect(other.url.clone());
        }
        // Others replace the claim of a server whose lease they do not know, so the lease must be there before the
        // claim (invariant 3).
        if !self.reads_own_lease(now) {
            return Placement::RetryAt(now + RENEW_INTERVAL / 3);
        }
        Placement::Claim(claim.map_or(0, |claim| claim.revision))
    }

    /// The server for a client by the claim of other servers; `None`: all of them are lost.
    fn place_by_claim(
        &self,
        claim: &KnownClaim,
        readable_since: Instant,
        now: Instant,
    ) -> Option<Placement> {
        if let Some(owner) = self.live_node(&claim.owner, now) {
            let age = now.saturating_duration_since(owner.renewed.max(readable_since));
            let end = self.lease_end(owner).filter(|_| age > SUSPECT_AFTER);
            let redirect = || Placement::Redirect(owner.url.clone());
            return Some(end.map_or_else(redirect, Placement::RetryAt));
        }
        // The first lease of a new server may arrive later than its first claim.
        let claim_end = claim.since + LEASE_TIMEOUT;
        if !self.nodes.contains_key(&claim.owner) && now < claim_end {
            return Some(Placement::RetryAt(claim_end));
        }
        // The owner is lost. One of the other servers of the room will take the claim.
        let other = claim.with.iter().find_map(|name| self.live_node(name, now));
        other.map(|node| Placement::Redirect(node.url.clone()))
    }

    /// Where a client goes when this server of the room is full, or draining. The owner knows the load of all servers
    /// of the room, so the others send to it.
    fn place_overflow(
        &self,
        room: &str,
        claim: &KnownClaim,
        load: &Load<'_>,
        now: Instant,
    ) -> Placement {
        if claim.owner != self.me {
            let owner = self.live_node(&claim.owner, now);
            let owner = owner.filter(|_| self.is_reachable(&claim.owner, claim, now));
            return owner.map_or(Placement::Local, |node| Placement::Redirect(node.url.clone()));
        }
        let takes =
            |node: &&Node| !node.draining && self.is_alive(node, now) && node.relay.is_some();
        let count = |name: &Arc<str>| load.remote.get(name).copied().unwrap_or_default();
        let with_room = claim.with.iter().filter(|name| count(name) < load.max);
        let reachable = with_room.filter(|name| self.is_reachable(name, claim, now));
        let taking =
            reachable.filter_map(|name| Some((count(name), self.nodes.get(name).filter(takes)?)));
        if let Some((_, node)) = taking.min_by_key(|(count, _)| *count) {
            return Placement::Redirect(node.url.clone());
        }
        let shares = self.nodes.get(&self.me).is_some_and(|own| own.relay.is_some());
        let candidates = self.candidates(now).into_iter();
        let mut further = candidates.filter(|(name, node)| takes(node) && !claim.names(name));
        match further.next().filter(|_| shares && claim.with.len() < MAX_WITH) {
            // No server has room: the client joins here, above the wanted maximum, rather than being refused.
            None => Placement::Local,
            Some((name, node)) => Placement::AddNode(Handoff {
                write: ClaimWrite {
                    room: room.to_owned(),
                    replaces: claim.revision,
                    claim: Claim {
                        node: self.me.to_string(),
                        with: claim.with.iter().chain([name]).map(ToString::to_string).collect(),
                    },
                },
                url: node.url.clone(),
            }),
        }
    }

    /// Whether a server of a shared room is linked, or is expected to be linked soon.
    fn is_reachable(&self, name: &Arc<str>, claim: &KnownClaim, now: Instant) -> bool {
        let is_new = now.saturating_duration_since(claim.since) < LINK_SETUP_TIMEOUT;
        self.linked.contains(name) || (is_new && self.unlinked_since(name, claim).is_none())
    }
}
