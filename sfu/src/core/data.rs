//! Messages of participants to each other, and changes of what is known of them.
//!
//! Every receiver gets a sender's messages in their order, as all of them take one way: this core's outputs, the link to the other node and its core.
//! Rates are bounded at the sender's node: by room, so that many senders do not fill the queues of a room's members, and for all that goes to other
//! nodes, so that links stay free for the rest. Each participant has a small rate of its own that no others can use up. In large rooms, where one
//! message is many, what counts is how many get it: by sender, and for the whole core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::data_rate::{ALL_RECEIVED, NODES, OWN, RECEIVED, ROOM};
use super::{Core, Output};
use crate::api::{DataError, DataMessage, Delivery, ParticipantId, SfuEvent};
use crate::relay::{NodeId, Relayed, RelayedData};

/// Who gets a message, other than this node's participants.
type Nodes = BTreeMap<NodeId, Option<Vec<ParticipantId>>>;

impl Core {
    /// Sends a message of a participant to others of its room; `None`: to all others. Those that are not there are passed over.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, or more is sent than the limits allow.
    pub fn send_data(
        &mut self,
        now: Instant,
        from: ParticipantId,
        to: Option<&[ParticipantId]>,
        message: DataMessage,
    ) -> Result<(), DataError> {
        let room = self.peers.get(&from).ok_or(DataError::NotJoined)?.room.clone();
        let nodes = self.nodes_of(&room, to);
        let bytes = message.topic.len() + message.content.len();
        let receivers = self.receivers(&room, to);
        if !self.admit_receivers(now, from)
            || !self.admit_data(now, from, &room, bytes, !nodes.is_empty())
        {
            self.counters.data_limited += 1;
            return Err(DataError::Limited);
        }
        self.use_receivers(now, from, bytes, receivers);
        self.counters.data_in += 1;
        let Some(peer) = self.peers.get_mut(&from) else { return Err(DataError::NotJoined) };
        peer.data.seq = peer.data.seq.wrapping_add(1);
        let (seq, message) = (peer.data.seq, Arc::new(message));
        let name: Arc<str> = room.as_str().into();
        for (node, to) in nodes {
            let data = RelayedData { from, seq, to, message: message.clone() };
            self.outputs.push_back(Output::Relay(node, name.clone(), Relayed::Data(data)));
        }
        self.deliver(&room, to, &Delivery::new(from, seq, message));
        self.schedule.wake(now);
        Ok(())
    }

    /// The most that get a message: at this node, and at others.
    fn receivers(&self, room: &str, to: Option<&[ParticipantId]>) -> usize {
        let Some(room) = self.rooms.get(room) else { return 0 };
        to.map_or((room.members.len() + room.remote_members.len()).saturating_sub(1), <[_]>::len)
    }

    /// Whether so many may get a message.
    fn admit_receivers(&self, now: Instant, from: ParticipantId) -> bool {
        let used = self.peers.get(&from).map(|peer| peer.data.received);
        used.is_some_and(|used| RECEIVED.admits(used, now))
            && ALL_RECEIVED.admits(self.data_received, now)
    }

    /// Counts that so many get a message.
    fn use_receivers(&mut self, now: Instant, from: ParticipantId, bytes: usize, receivers: usize) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.data.received.add(now, RECEIVED.cost_of_all(bytes, receivers));
        }
        self.data_received.add(now, ALL_RECEIVED.cost_of_all(bytes, receivers));
    }

    /// Whether a message is within the limits; if so, it is counted.
    fn admit_data(
        &mut self,
        now: Instant,
        from: ParticipantId,
        room: &str,
        bytes: usize,
        to_nodes: bool,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        if OWN.admits(peer.data.used, now) {
            peer.data.used.add(now, OWN.cost(bytes));
            return true;
        }
        let Some(room) = self.rooms.get_mut(room) else { return false };
        let used_by_nodes = &mut self.relays.data_used;
        if !ROOM.admits(room.data_used, now) || to_nodes && !NODES.admits(*used_by_nodes, now) {
            return false;
        }
        room.data_used.add(now, ROOM.cost(bytes));
        if to_nodes {
            used_by_nodes.add(now, NODES.cost(bytes));
        }
        true
    }

    /// The other nodes that get a message, each with those of `to` that are there.
    fn nodes_of(&self, room: &str, to: Option<&[ParticipantId]>) -> Nodes {
        let Some(to) = to else {
            return self.relays.audience(room).map(|node| (node, None)).collect();
        };
        let mut nodes = Nodes::new();
        let Some(room) = self.rooms.get(room) else { return nodes };
        for id in to {
            let Some(&node) = room.remote_members.get(id) else { continue };
            let ids = nodes.entry(node).or_default().get_or_insert_default();
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        nodes
    }

    /// Gives a message to participants of this node; `to`: to these, or all. The sender gets its own in a loopback room.
    pub(super) fn deliver(
        &mut self,
        room: &str,
        to: Option<&[ParticipantId]>,
        delivery: &Delivery,
    ) {
        let Some(room) = self.rooms.get(room) else { return };
        let is_named = |id: &ParticipantId| to.is_none_or(|to| to.contains(id));
        let others = room.members.iter().filter(|&&id| id != delivery.from || room.loopback);
        for &member in others.filter(|id| is_named(id)) {
            if self.peers.get(&member).is_some_and(|peer| peer.takes_data) {
                self.counters.data_out += 1;
                let event = SfuEvent::Data(delivery.clone());
                self.outputs.push_back(Output::Event(member, event));
            }
        }
    }

    /// Tells the others of a participant's room that its name or attributes have changed.
    pub fn participant_changed(&mut self, now: Instant, id: ParticipantId) {
        let Some(room) = self.peers.get(&id).map(|peer| peer.room.clone()) else { return };
        self.tell_changed(&room, id);
        self.send_to_audience(&room, &Relayed::Changed { participant: id });
        self.schedule.wake(now);
    }

    /// Tells the participants of this node.
    pub(super) fn tell_changed(&mut self, room: &str, participant: ParticipantId) {
        let Some(room) = self.rooms.get(room) else { return };
        for &member in room.members.iter().filter(|&&member| member != participant) {
            let event = SfuEvent::ParticipantChanged { participant };
            self.outputs.push_back(Output::Event(member, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_types::DataContent;

    use super::*;
    use crate::api::JoinOptions;
    use crate::config::SfuConfig;
    use crate::core::world::*;

    const ANA: ParticipantId = ParticipantId(1);
    const BO: ParticipantId = ParticipantId(2);
    const CY: ParticipantId = ParticipantId(3);

    fn message(text: &str) -> DataMessage {
        let content = DataContent::Text(text.to_owned());
        DataMessage { topic: "chat".to_owned(), content, reliable: true, number: None }
    }

    fn room(ids: &[ParticipantId]) -> World {
        let limits = crate::Limits { participants_per_room: 200, ..config().limits };
        let mut world = World::new(SfuConfig { limits, ..config() });
        for &id in ids {
            world.core.join(world.now, "room", id, JoinOptions::default()).expect("joined");
        }
        world.deliver();
        world
    }

    fn heard(world: &mut World, id: ParticipantId) -> Vec<(ParticipantId, u32, String)> {
        world.deliver();
        let events = world.events.remove(&id).unwrap_or_default().into_iter();
        let of = |event| match event {
            SfuEvent::Data(Delivery { from, seq, message, .. }) => match &message.content {
                DataContent::Text(text) => Some((from, seq, text.clone())),
                DataContent::Bytes(_) => None,
            },
            _ => None,
        };
        events.filter_map(of).collect()
    }

    #[test]
    fn all_others_get_a_message_or_those_that_it_names() {
        let mut world = room(&[ANA, BO, CY]);
        let now = world.now;
        world.core.send_data(now, ANA, None, message("all")).expect("sent");
        let named = [CY, ANA, ParticipantId(99), CY];
        world.core.send_data(now, ANA, Some(&named), message("you")).expect("sent");
        world.core.send_data(now, ANA, Some(&[]), message("nobody")).expect("sent");
        let all = (ANA, 1, "all".to_owned());
        assert_eq!(heard(&mut world, BO), std::slice::from_ref(&all));
        assert_eq!(heard(&mut world, CY), [all, (ANA, 2, "you".to_owned())]);
        assert_eq!(heard(&mut world, ANA), []);
        let counters = world.core.counters;
        assert_eq!((counters.data_in, counters.data_out, counters.data_limited), (3, 3, 0));
        let nobody = world.core.send_data(now, ParticipantId(99), None, message("x"));
        assert_eq!(nobody, Err(DataError::NotJoined));
    }

    #[test]
    fn messages_stay_in_their_room_and_pass_over_those_who_take_none() {
        let mut world = room(&[ANA]);
        let now = world.now;
        let player = JoinOptions { takes_data: false, ..JoinOptions::default() };
        world.core.join(now, "room", BO, player).expect("joined");
        world.core.join(now, "other", CY, JoinOptions::default()).expect("joined");
        world.core.send_data(now, ANA, None, message("x")).expect("sent");
        world.core.send_data(now, ANA, Some(&[BO, CY]), message("x")).expect("sent");
        assert_eq!(heard(&mut world, BO), []);
        assert_eq!(heard(&mut world, CY), []);
    }

    #[test]
    fn in_a_loopback_room_the_sender_gets_its_own() {
        let mut world = World::new(config());
        let now = world.now;
        let alone = JoinOptions { loopback: true, ..JoinOptions::default() };
        world.core.join(now, "loopback/p1", ANA, alone).expect("joined");
        world.core.send_data(now, ANA, None, message("x")).expect("sent");
        assert_eq!(heard(&mut world, ANA), [(ANA, 1, "x".to_owned())]);
    }

    #[test]
    fn a_room_has_a_rate_and_each_participant_a_small_one_of_its_own() {
        let ids: Vec<_> = (1..=20).map(ParticipantId).collect();
        let mut world = room(&ids);
        let large = "x".repeat(16 * 1024);
        let mut taken = 0;
        // All but the last one send as much as they can.
        for &id in ids[..19].iter().cycle().take(19 * 40) {
            taken += u64::from(world.core.send_data(world.now, id, None, message(&large)).is_ok());
        }
        // Of its own each has two messages of that size, and the room 14 and the one that exceeds it.
        assert_eq!((taken, world.core.counters.data_limited), (19 * 2 + 15, 19 * 40 - taken));
        let last = ids[19];
        assert_eq!(world.core.send_data(world.now, last, None, message("I am here")), Ok(()));
        let limited = world.core.send_data(world.now, ids[0], None, message("x"));
        assert_eq!(limited, Err(DataError::Limited));
        world.now += Duration::from_secs(1);
        let later = world.core.send_data(world.now, ids[0], None, message("x"));
        assert_eq!(later, Ok(()));
    }

    #[test]
    fn in_a_large_room_a_message_counts_as_often_as_it_is_received() {
        let ids: Vec<_> = (1..=101).map(ParticipantId).collect();
        let mut world = room(&ids);
        let large = "x".repeat(16 * 1024);
        let sent = |world: &mut World, id, to: Option<&[ParticipantId]>, count: usize| {
            let mut one = || world.core.send_data(world.now, id, to, message(&large)).is_ok();
            (0..count).filter(|_| one()).count()
        };
        // Each takes more than a fifth of what a sender has for its receivers in a second; the last one may exceed it.
        assert_eq!(sent(&mut world, ANA, None, 40), 5);
        assert_eq!(sent(&mut world, ANA, Some(&[BO]), 1), 0);
        world.now += Duration::from_secs(1);
        assert_eq!(sent(&mut world, ANA, None, 40), 5);
        // Others are not held by that, up to what the core can take: 20 of them in a second.
        let taken: usize = ids[1..].iter().map(|&id| sent(&mut world, id, None, 2)).sum();
        assert!((14..20).contains(&taken), "{taken}");
        world.now += Duration::from_secs(2);
        assert_eq!(sent(&mut world, BO, Some(&[ANA]), 1), 1);
    }

    #[test]
    fn others_are_told_of_a_change() {
        let mut world = room(&[ANA, BO]);
        world.events.clear();
        world.core.participant_changed(world.now, ANA);
        world.deliver();
        let told = SfuEvent::ParticipantChanged { participant: ANA };
        assert_eq!(world.events.remove(&BO), Some(vec![told]));
        assert_eq!(world.events.remove(&ANA), None);
    }
}
