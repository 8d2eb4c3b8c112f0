//! Messages of participants to each other, and changes of their names and attributes.
//!
//! Every receiver gets a sender's messages in their order, as all of them take one way: this core's outputs, the link
//! to the other node and its core. Rates are bounded at the sender's node. One bound is by room, so that many senders
//! do not fill the queues of a room's members. Another is for all messages to other nodes, so that links stay free for
//! the rest. Each participant has a small rate of its own that others of this node cannot use up, except on links. In
//! large rooms one message is sent many times, so rates also bound the number of receivers: by sender, and for the
//! whole core. A change of a name or of attributes counts as a message of its size to all.

use std::sync::Arc;
use std::time::Instant;

use super::data_rate::Load;
use crate::api::{DataError, DataMessage, Delivery, ParticipantId, SfuEvent};
use crate::core::room::Nodes;
use crate::core::{Core, Output};
use crate::relay::{Relayed, RelayedData};

impl Core {
    /// Sends a message of a participant to others of its room; `None`: to all others. Receivers that are not in the
    /// room are passed over.
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
        let bytes = message.topic.len() + message.content.sent_len();
        let nodes = self.admit_data(now, from, bytes, to)?;
        self.counters.data_in += 1;
        let Some(peer) = self.peers.get_mut(from) else { return Err(DataError::NotJoined) };
        peer.data.seq = peer.data.seq.wrapping_add(1);
        let (seq, message) = (peer.data.seq, Arc::new(message));
        let room = peer.room.clone();
        let name: Arc<str> = room.as_str().into();
        for (node, to) in nodes {
            let data = RelayedData { from, seq, to, message: message.clone() };
            self.outputs.push_back(Output::Relay(node, name.clone(), Relayed::Data(data)));
        }
        self.deliver(&room, to, &Delivery::new(from, seq, message));
        self.schedule.wake(now);
        Ok(())
    }

    /// Counts a message of `bytes` bytes against the limits. Returns the other nodes that get the message.
    fn admit_data(
        &mut self,
        now: Instant,
        from: ParticipantId,
        bytes: usize,
        to: Option<&[ParticipantId]>,
    ) -> Result<Nodes, DataError> {
        let peer = self.peers.get_mut(from).ok_or(DataError::NotJoined)?;
        let room = self.rooms.get_mut(&peer.room).ok_or(DataError::NotJoined)?;
        let nodes = match to {
            Some(to) => room.nodes_of(to),
            None => self.relays.audience(&peer.room).map(|node| (node, None)).collect(),
        };
        let load = Load { bytes, receivers: room.receivers(from, to), nodes: nodes.len() };
        if self.data.admit(now, &mut peer.data, &mut room.data_used, load) {
            return Ok(nodes);
        }
        self.counters.data_limited += 1;
        Err(DataError::Limited)
    }

    /// Gives a message to participants of this node: to those of `to`, or to all where it is `None`. The sender gets
    /// its own message in a loopback room.
    pub(crate) fn deliver(
        &mut self,
        room: &str,
        to: Option<&[ParticipantId]>,
        delivery: &Delivery,
    ) {
        let Some(room) = self.rooms.get(room) else { return };
        let is_named = |id: &ParticipantId| to.is_none_or(|to| to.contains(id));
        for member in room.audience(delivery.from).filter(is_named) {
            if self.peers.get(member).is_some_and(|peer| !peer.link.media_only) {
                self.counters.data_out += 1;
                let event = SfuEvent::Data(delivery.clone());
                self.outputs.push_back(Output::Event(member, event));
            }
        }
    }

    /// Counts a change of a participant's name or attributes as a message to all others. `bytes` is the size of both
    /// after the change.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, or more is sent than the limits allow.
    pub fn admit_change(
        &mut self,
        now: Instant,
        id: ParticipantId,
        bytes: usize,
    ) -> Result<(), DataError> {
        self.admit_data(now, id, bytes, None).map(drop)
    }

    /// Tells the others of a participant's room that its name or attributes have changed.
    pub fn participant_changed(&mut self, now: Instant, id: ParticipantId) {
        let Some(room) = self.peers.get(id).map(|peer| peer.room.clone()) else { return };
        self.notify_changed(&room, id);
        let message = Relayed::Changed { participant: id };
        self.relays.send_to_audience(&room, &message, &mut self.outputs);
        self.schedule.wake(now);
    }

    /// Tells the participants of this node that another participant of their room has changed.
    pub(crate) fn notify_changed(&mut self, room: &str, participant: ParticipantId) {
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
    use crate::core::tests::harness::*;

    const ANA: ParticipantId = ParticipantId(1);
    const BO: ParticipantId = ParticipantId(2);
    const CY: ParticipantId = ParticipantId(3);

    fn message(text: &str) -> DataMessage {
        let content = DataContent::Text(text.to_owned());
        DataMessage { topic: "chat".to_owned(), content, reliable: true, number: None }
    }

    fn room(ids: &[ParticipantId]) -> Harness {
        let limits = crate::Limits { participants_per_room: 200, ..config().limits };
        let mut harness = Harness::new(SfuConfig { limits, ..config() });
        for &id in ids {
            harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
        }
        harness.deliver();
        harness
    }

    fn heard(harness: &mut Harness, id: ParticipantId) -> Vec<(ParticipantId, u32, String)> {
        harness.deliver();
        let events = harness.events.remove(&id).unwrap_or_default().into_iter();
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
        let mut harness = room(&[ANA, BO, CY]);
        let now = harness.now;
        harness.core.send_data(now, ANA, None, message("all")).expect("sent");
        let named = [CY, ANA, ParticipantId(99), CY];
        harness.core.send_data(now, ANA, Some(&named), message("you")).expect("sent");
        harness.core.send_data(now, ANA, Some(&[]), message("nobody")).expect("sent");
        let all = (ANA, 1, "all".to_owned());
        assert_eq!(heard(&mut harness, BO), std::slice::from_ref(&all));
        assert_eq!(heard(&mut harness, CY), [all, (ANA, 2, "you".to_owned())]);
        assert_eq!(heard(&mut harness, ANA), []);
        let counters = harness.core.counters;
        assert_eq!((counters.data_in, counters.data_out, counters.data_limited), (3, 3, 0));
        let nobody = harness.core.send_data(now, ParticipantId(99), None, message("x"));
        assert_eq!(nobody, Err(DataError::NotJoined));
    }

    #[test]
    fn messages_stay_in_their_room_and_pass_over_those_who_take_none() {
        let mut harness = room(&[ANA]);
        let now = harness.now;
        let player = JoinOptions { media_only: true, ..JoinOptions::default() };
        harness.core.join(now, "room", BO, player).expect("joined");
        harness.core.join(now, "other", CY, JoinOptions::default()).expect("joined");
        harness.core.send_data(now, ANA, None, message("x")).expect("sent");
        harness.core.send_data(now, ANA, Some(&[BO, CY]), message("x")).expect("sent");
        assert_eq!(heard(&mut harness, BO), []);
        assert_eq!(heard(&mut harness, CY), []);
    }

    #[test]
    fn in_a_loopback_room_the_sender_gets_its_own() {
        let mut harness = Harness::new(config());
        let now = harness.now;
        let alone = JoinOptions { loopback: true, ..JoinOptions::default() };
        harness.core.join(now, "loopback/p1", ANA, alone).expect("joined");
        harness.core.send_data(now, ANA, None, message("x")).expect("sent");
        assert_eq!(heard(&mut harness, ANA), [(ANA, 1, "x".to_owned())]);
    }

    #[test]
    fn a_room_has_a_rate_and_each_participant_a_small_one_of_its_own() {
        let ids: Vec<_> = (1..=20).map(ParticipantId).collect();
        let mut harness = room(&ids);
        let large = "x".repeat(16 * 1024);
        let mut taken = 0;
        // All but the last one send as much as they can.
        for &id in ids[..19].iter().cycle().take(19 * 40) {
            taken +=
                u64::from(harness.core.send_data(harness.now, id, None, message(&large)).is_ok());
        }
        // Of its own each has two messages of that size, and the room 14 and the one that exceeds it.
        assert_eq!((taken, harness.core.counters.data_limited), (19 * 2 + 15, 19 * 40 - taken));
        let last = ids[19];
        assert_eq!(harness.core.send_data(harness.now, last, None, message("I am here")), Ok(()));
        let limited = harness.core.send_data(harness.now, ids[0], None, message("x"));
        assert_eq!(limited, Err(DataError::Limited));
        harness.now += Duration::from_secs(1);
        let later = harness.core.send_data(harness.now, ids[0], None, message("x"));
        assert_eq!(later, Ok(()));
    }

    #[test]
    fn in_a_large_room_a_message_counts_as_often_as_it_is_received() {
        let ids: Vec<_> = (1..=101).map(ParticipantId).collect();
        let mut harness = room(&ids);
        let large = "x".repeat(16 * 1024);
        let sent = |harness: &mut Harness, id, to: Option<&[ParticipantId]>, count: usize| {
            let mut one = || harness.core.send_data(harness.now, id, to, message(&large)).is_ok();
            (0..count).filter(|_| one()).count()
        };
        // Each takes more than a fifth of what a sender has for its receivers in a second; the last one may exceed it.
        assert_eq!(sent(&mut harness, ANA, None, 40), 5);
        assert_eq!(sent(&mut harness, ANA, Some(&[BO]), 1), 0);
        harness.now += Duration::from_secs(1);
        assert_eq!(sent(&mut harness, ANA, None, 40), 5);
        // Others are not held by that, up to what the core can take: 20 of them in a second. Then each has one of its
        // own, which costs it four.
        let taken: usize = ids[1..].iter().map(|&id| sent(&mut harness, id, None, 9)).sum();
        assert!((100..120).contains(&taken), "{taken}");
        assert_eq!(sent(&mut harness, ids[50], Some(&[ANA]), 1), 0);
        harness.now += Duration::from_secs(20);
        assert_eq!(sent(&mut harness, BO, Some(&[ANA]), 1), 1);
    }

    #[test]
    fn who_names_people_that_are_not_there_uses_up_nothing_of_others() {
        let mut harness = room(&[ANA, BO]);
        let nobody: Vec<_> = (1000..1100).map(ParticipantId).collect();
        let large = "x".repeat(16 * 1024);
        let strangers: Vec<_> = (10..15).map(ParticipantId).collect();
        for &id in &strangers {
            let name = format!("alone{id}");
            harness.core.join(harness.now, &name, id, JoinOptions::default()).expect("joined");
        }
        for _ in 0..2 {
            for &id in strangers.iter().cycle().take(20) {
                let _ = harness.core.send_data(harness.now, id, Some(&nobody), message(&large));
            }
            harness.now += Duration::from_secs(1);
        }
        for _ in 0..50 {
            assert_eq!(harness.core.send_data(harness.now, ANA, None, message("x")), Ok(()));
        }
        // Who is named many times counts once.
        harness.now += Duration::from_secs(10);
        for _ in 0..10 {
            let sent = harness.core.send_data(harness.now, ANA, Some(&[BO; 100]), message(&large));
            assert_eq!(sent, Ok(()));
        }
    }

    #[test]
    fn what_the_core_has_no_time_for_takes_nothing_from_each_ones_own_rate() {
        let many: Vec<_> = (100..250).map(ParticipantId).collect();
        let mut harness = room(&many);
        for id in [ANA, BO] {
            harness.core.join(harness.now, "other", id, JoinOptions::default()).expect("joined");
        }
        let large = "x".repeat(16 * 1024);
        for &id in many.iter().cycle().take(600) {
            let _ = harness.core.send_data(harness.now, id, None, message(&large));
        }
        assert!(harness.core.counters.data_limited > 0);
        let sent = (0..40)
            .filter(|_| harness.core.send_data(harness.now, ANA, None, message("x")).is_ok());
        assert_eq!(sent.count(), 10);
    }

    #[test]
    fn a_change_counts_as_a_message_of_its_size() {
        let ids: Vec<_> = (1..=20).map(ParticipantId).collect();
        let mut harness = room(&ids);
        let mut taken = 0;
        for &id in ids.iter().cycle().take(20 * 40) {
            taken += u64::from(harness.core.admit_change(harness.now, id, 4096).is_ok());
        }
        // Of its own each has four of that size, and the room 48.
        assert_eq!((taken, harness.core.counters.data_limited), (20 * 4 + 48, 20 * 40 - taken));
        let nobody = harness.core.admit_change(harness.now, ParticipantId(99), 1);
        assert_eq!(nobody, Err(DataError::NotJoined));
    }

    #[test]
    fn escapes_count_as_they_are_sent() {
        let mut harness = room(&[ANA, BO]);
        let escaped = "\0".repeat(16 * 1024);
        let mut one = || harness.core.send_data(harness.now, ANA, None, message(&escaped)).is_ok();
        // Of 96 KiB each: one of its own, and three of the room's 256 KiB, the last of which may exceed it.
        assert_eq!((0..9).filter(|_| one()).count(), 4);
    }

    #[test]
    fn others_are_told_of_a_change() {
        let mut harness = room(&[ANA, BO]);
        harness.events.clear();
        harness.core.participant_changed(harness.now, ANA);
        harness.deliver();
        let changed = SfuEvent::ParticipantChanged { participant: ANA };
        assert_eq!(harness.events.remove(&BO), Some(vec![changed]));
        assert_eq!(harness.events.remove(&ANA), None);
    }
}
