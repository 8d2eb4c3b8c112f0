//! The participants of a core, and whose connection has work now.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::output::Output;
use super::peer::{Peer, PeerEvent};
use super::wakes::Wakes;
use crate::api::ParticipantId;
use crate::stats::Counters;

/// Maximum number of packets that one connection may send before the next one has its turn.
const MAX_PACKETS_PER_TURN: usize = 64;
/// Time after which the stack's pacer asks for its next packet when it means at once.
const PACER_IMMEDIATE: Duration = Duration::from_micros(1);

/// The participants of one core.
#[derive(Default)]
pub(crate) struct Peers {
    by_id: BTreeMap<ParticipantId, Peer>,
    wakes: Wakes,
    /// Participants with work left in this step. Those with a timer have its time.
    ready: VecDeque<(ParticipantId, Option<Instant>)>,
    /// Events that the participants' connections have reported.
    events: Vec<(ParticipantId, PeerEvent)>,
}

impl Peers {
    /// Adds the participant that `make` makes. The participant lists itself in the given [`Wakes`] when it has work.
    pub(crate) fn add(&mut self, make: impl FnOnce(Wakes) -> Peer) {
        let peer = make(self.wakes.clone());
        self.by_id.insert(peer.id, peer);
    }

    /// Removes a participant.
    pub(crate) fn remove(&mut self, id: ParticipantId) -> Option<Peer> {
        self.by_id.remove(&id)
    }

    /// The participant with this id.
    pub(crate) fn get(&self, id: ParticipantId) -> Option<&Peer> {
        self.by_id.get(&id)
    }

    /// The participant with this id, to change it.
    pub(crate) fn get_mut(&mut self, id: ParticipantId) -> Option<&mut Peer> {
        self.by_id.get_mut(&id)
    }

    /// The participant with this id, and the list that takes its connection's events.
    pub(crate) fn with_events(
        &mut self,
        id: ParticipantId,
    ) -> Option<(&mut Peer, &mut Vec<(ParticipantId, PeerEvent)>)> {
        self.by_id.get_mut(&id).map(|peer| (peer, &mut self.events))
    }

    /// The participant with this id, if its connection is up.
    pub(crate) fn connected_mut(&mut self, id: ParticipantId) -> Option<&mut Peer> {
        self.by_id.get_mut(&id).filter(|peer| peer.link.connected)
    }

    /// Whether there is a participant with this id.
    pub(crate) fn contains(&self, id: ParticipantId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// All participants, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.by_id.values()
    }

    /// All participants, in the order of their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.by_id.values_mut()
    }

    /// Number of participants.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds an event of a connection.
    pub(crate) fn report(&mut self, id: ParticipantId, event: PeerEvent) {
        self.events.push((id, event));
    }

    /// Takes the events of connections.
    pub(crate) fn take_events(&mut self) -> Vec<(ParticipantId, PeerEvent)> {
        std::mem::take(&mut self.events)
    }

    /// When the next participant has work; `None`: no timer is set.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.wakes.next(now)
    }

    /// Lists the participants that have work now.
    pub(crate) fn collect_ready(&mut self, now: Instant) {
        self.ready.extend(self.wakes.take_touched().into_iter().map(|id| (id, None)));
        let due = self.wakes.take_due(now).into_iter();
        self.ready.extend(due.map(|(entry, id)| (id, Some(entry))));
    }

    /// Services up to `max` of the listed participants. Returns whether there are more.
    pub(crate) fn service(
        &mut self,
        now: Instant,
        max: usize,
        counters: &mut Counters,
        outputs: &mut VecDeque<Output>,
    ) -> bool {
        for _ in 0..max {
            let Some((id, entry)) = self.ready.pop_front() else { break };
            let has_work = |peer: &mut Peer| match entry {
                Some(entry) => peer.link.wake.is_due(entry, now),
                None => peer.link.wake.is_touched(),
            };
            let peer = self.by_id.get_mut(&id).filter(|peer| peer.link.stack.has_begun());
            let Some(peer) = peer.and_then(|peer| has_work(peer).then_some(peer)) else { continue };
            service(now, peer, counters, outputs, &mut self.events);
        }
        !self.ready.is_empty()
    }
}

/// Advances the time of a connection that has work, and polls its output.
fn service(
    now: Instant,
    peer: &mut Peer,
    counters: &mut Counters,
    outputs: &mut VecDeque<Output>,
    events: &mut Vec<(ParticipantId, PeerEvent)>,
) {
    peer.release_anchors(now, counters);
    // The stack's pacer releases one packet at a time, and is due again a microsecond later. If other connections had
    // their turn in between, a frame's packets would leave one by one.
    let mut at = now;
    for _ in 0..MAX_PACKETS_PER_TURN {
        peer.link.tick(at);
        if !peer.drain(at, outputs, events) {
            break;
        }
        let due = peer.link.wake.due();
        if due > at + PACER_IMMEDIATE {
            break;
        }
        at = at.max(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_touched_have_their_turn_and_those_without_a_connection_none() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        for id in [1, 2, 3].map(ParticipantId) {
            peers.add(|wakes| Peer::new(id, "tea", true, wakes, now, now));
        }
        peers.remove(ParticipantId(3));
        peers.get_mut(ParticipantId(2)).expect("added").link.wake.touch();
        assert_eq!((peers.len(), peers.due(now)), (2, Some(now)));
        peers.collect_ready(now);
        let (mut counters, mut outputs) = (Counters::default(), VecDeque::new());
        assert!(peers.service(now, 0, &mut counters, &mut outputs), "one is left");
        assert!(!peers.service(now, 9, &mut counters, &mut outputs));
        assert!(outputs.is_empty() && peers.take_events().is_empty());
        assert_eq!(peers.due(now), None);
    }
}
