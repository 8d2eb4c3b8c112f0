//! Rooms: who is in them, on this node and others, and who speaks.

pub(super) mod data;
pub(super) mod data_rate;
pub(super) mod members;
pub(super) mod permissions;
pub(super) mod speakers;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use windlass_types::ConnectionQuality;

use self::speakers::Speakers;
use crate::api::{JoinError, JoinOptions, ParticipantId, SfuEvent};
use crate::config::Limits;
use crate::core::gcra::Gcra;
use crate::core::output::Output;
use crate::core::shard::Shard;
use crate::relay::NodeId;

/// Other nodes that get a message. Each has the list of its participants that the message is for; `None`: all of them.
pub(crate) type Nodes = BTreeMap<NodeId, Option<Vec<ParticipantId>>>;

/// A room, with the members that see each other's tracks.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) members: Vec<ParticipantId>,
    /// Members on other nodes.
    pub(crate) remote_members: BTreeMap<ParticipantId, NodeId>,
    /// Connection qualities of the members on other nodes, as far as they are known.
    pub(crate) remote_qualities: BTreeMap<ParticipantId, ConnectionQuality>,
    pub(crate) loopback: bool,
    pub(crate) speakers: Speakers,
    /// Messages that the room has used of its limit of data messages.
    pub(crate) data_used: Gcra,
}

impl Room {
    /// Whether a participant is in the room, on this node or another.
    pub(crate) fn has(&self, id: ParticipantId) -> bool {
        self.members.contains(&id) || self.remote_members.contains_key(&id)
    }

    /// Whether a participant is in the room on the node `node`.
    pub(crate) fn has_remote(&self, id: ParticipantId, node: NodeId) -> bool {
        self.remote_members.get(&id) == Some(&node)
    }

    /// Members of the room on the node `node`.
    pub(crate) fn members_of(&self, node: NodeId) -> Vec<ParticipantId> {
        self.remote_members.iter().filter(|(_, of)| **of == node).map(|(&id, _)| id).collect()
    }

    /// Members of this node that see what the member `of` does. In a loopback room this includes the member itself.
    pub(crate) fn audience(&self, of: ParticipantId) -> impl Iterator<Item = ParticipantId> {
        self.members.iter().copied().filter(move |&member| member != of || self.loopback)
    }

    /// Sends an event to all members of this node.
    pub(crate) fn notify(&self, event: &SfuEvent, outputs: &mut VecDeque<Output>) {
        outputs.extend(self.members.iter().map(|&member| Output::Event(member, event.clone())));
    }

    /// Maximum number of participants that get a message, at this node and at others.
    pub(crate) fn receivers(&self, from: ParticipantId, to: Option<&[ParticipantId]>) -> usize {
        let Some(to) = to else {
            let itself = usize::from(!self.loopback);
            return (self.members.len() + self.remote_members.len()).saturating_sub(itself);
        };
        // Only those that are there count, and each once.
        let others = to.iter().filter(|&&id| id != from || self.loopback);
        let named: BTreeSet<ParticipantId> = others.copied().collect();
        let here = self.members.iter().filter(|id| named.contains(id)).count();
        here + named.iter().filter(|id| self.remote_members.contains_key(id)).count()
    }

    /// The other nodes that get a message for `to`, each with those of `to` that are there.
    pub(crate) fn nodes_of(&self, to: &[ParticipantId]) -> Nodes {
        let mut nodes = Nodes::new();
        for id in to {
            let Some(&node) = self.remote_members.get(id) else { continue };
            let ids = nodes.entry(node).or_default().get_or_insert_default();
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        nodes
    }
}

/// State of a room when a participant enters it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    /// Members of this node.
    pub(crate) members: Vec<ParticipantId>,
    /// Members of all nodes.
    pub(crate) present: Vec<ParticipantId>,
    /// The active speaker.
    pub(crate) speaker: Option<ParticipantId>,
}

/// The room that a participant has left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whether it is a loopback room.
    pub(crate) loopback: bool,
    /// Members on other nodes, where the room has ended for this node.
    pub(crate) ended: Option<Vec<ParticipantId>>,
}

/// The rooms of a core.
pub(crate) struct Rooms {
    by_name: HashMap<String, Room>,
    /// Whether new rooms are refused.
    draining: bool,
    shard: Shard,
}

impl Rooms {
    /// The rooms of a core, none at first. `shard` counts rooms and participants for all cores.
    pub(crate) fn new(shard: Shard) -> Rooms {
        Rooms { by_name: HashMap::new(), draining: false, shard }
    }

    /// Refuses new rooms from now on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// Counts one more participant, and its room if that is new.
    pub(crate) fn admit(
        &self,
        room: &str,
        options: JoinOptions,
        limits: &Limits,
    ) -> Result<(), JoinError> {
        if !self.shard.acquire_participant(limits.participants) {
            return Err(JoinError::ServerFull);
        }
        let max = limits.participants_per_room;
        let refusal = match self.by_name.get(room) {
            None if self.draining => Some(JoinError::Draining),
            None => {
                let acquired = self.shard.acquire_room(options.loopback, limits.rooms);
                (!acquired).then_some(JoinError::ServerFull)
            }
            Some(r) if r.loopback || options.loopback => Some(JoinError::RoomFull),
            Some(r) => (r.members.len() >= max).then_some(JoinError::RoomFull),
        };
        if let Some(error) = refusal {
            self.shard.release_participant();
            return Err(error);
        }
        Ok(())
    }

    /// Lets an admitted participant enter, and makes the room for the first one.
    pub(crate) fn enter(&mut self, name: &str, id: ParticipantId, loopback: bool) -> Entered {
        let room = self.by_name.entry(name.to_owned());
        let room = room.or_insert_with(|| Room { loopback, ..Room::default() });
        let members = room.members.clone();
        let present = members.iter().chain(room.remote_members.keys()).copied().collect();
        room.members.push(id);
        // Changes of the speaker are notified later.
        Entered { members, present, speaker: room.speakers.speaker() }
    }

    /// Counts one participant less.
    pub(crate) fn release(&self) {
        self.shard.release_participant();
    }

    /// Removes a member, and tells the others; the room ends with the last one.
    pub(crate) fn leave(
        &mut self,
        name: &str,
        id: ParticipantId,
        outputs: &mut VecDeque<Output>,
    ) -> Option<Left> {
        let room = self.by_name.get_mut(name)?;
        room.members.retain(|&m| m != id);
        room.speakers.remove(id);
        room.notify(&SfuEvent::ParticipantLeft { participant: id }, outputs);
        let loopback = room.loopback;
        let mut ended = None;
        if room.members.is_empty() {
            ended = Some(std::mem::take(&mut room.remote_members).into_keys().collect());
            self.by_name.remove(name);
            self.shard.release_room(loopback);
        }
        Some(Left { loopback, ended })
    }

    /// The room with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Room> {
        self.by_name.get(name)
    }

    /// The room with this name, to change it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Room> {
        self.by_name.get_mut(name)
    }

    /// The room of a participant of any node, with its name.
    pub(crate) fn of(&self, id: ParticipantId) -> Option<(&str, &Room)> {
        let found = self.by_name.iter().find(|(_, room)| room.has(id));
        found.map(|(name, room)| (name.as_str(), room))
    }

    /// A room that other nodes may share.
    pub(crate) fn shareable(&self, name: &str) -> Option<&Room> {
        self.by_name.get(name).filter(|room| !room.loopback)
    }

    /// Names of all rooms.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    /// Number of rooms.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Tells the members of rooms whose active speaker has changed.
    pub(crate) fn notify_speakers(&mut self, now: Instant, outputs: &mut VecDeque<Output>) {
        for room in self.by_name.values_mut() {
            if let Some(participant) = room.speakers.poll(now) {
                room.notify(&SfuEvent::Speaker { participant }, outputs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: ParticipantId = ParticipantId(1);
    const BO: ParticipantId = ParticipantId(2);
    const THERE: ParticipantId = ParticipantId(3);

    fn limits(participants: usize, rooms: usize) -> Limits {
        Limits { participants, rooms, participants_per_room: 2, ..Limits::default() }
    }

    #[test]
    fn a_refused_participant_takes_no_place() {
        let (mut rooms, max) = (Rooms::new(Shard::default()), limits(2, 1));
        let join = JoinOptions::default();
        assert_eq!(rooms.admit("tea", join, &max), Ok(()));
        rooms.enter("tea", ANA, false);
        assert_eq!(rooms.admit("cake", join, &max), Err(JoinError::ServerFull), "one room");
        rooms.drain();
        assert_eq!(rooms.admit("cake", join, &max), Err(JoinError::Draining));
        assert_eq!(rooms.admit("tea", join, &max), Ok(()), "its place is still there");
        assert_eq!(rooms.admit("tea", join, &max), Err(JoinError::ServerFull), "two participants");
    }

    #[test]
    fn a_room_ends_with_its_last_member_here() {
        let (mut rooms, mut outputs) = (Rooms::new(Shard::default()), VecDeque::new());
        rooms.enter("tea", ANA, false);
        let found = rooms.enter("tea", BO, false);
        assert_eq!((found.members, found.speaker), (vec![ANA], None));
        rooms.get_mut("tea").expect("made").remote_members.insert(THERE, NodeId(9));
        assert_eq!(rooms.of(THERE).map(|(name, _)| name), Some("tea"));
        let left = rooms.leave("tea", ANA, &mut outputs);
        assert_eq!(left, Some(Left { loopback: false, ended: None }));
        assert!(matches!(outputs.pop_front(), Some(Output::Event(BO, _))) && outputs.is_empty());
        let left = rooms.leave("tea", BO, &mut outputs).expect("it was there");
        assert_eq!((left.ended, rooms.len()), (Some(vec![THERE]), 0));
    }

    #[test]
    fn receivers_are_those_that_are_there_and_each_once() {
        let mut room = Room { members: vec![ANA, BO], ..Room::default() };
        room.remote_members.insert(THERE, NodeId(9));
        assert_eq!(room.receivers(ANA, None), 2);
        let named = [BO, BO, ANA, THERE, ParticipantId(99)];
        assert_eq!(room.receivers(ANA, Some(&named)), 2);
        assert_eq!(room.nodes_of(&[THERE, THERE]), Nodes::from([(NodeId(9), Some(vec![THERE]))]));
        room.loopback = true;
        assert_eq!(room.receivers(ANA, Some(&named)), 3, "its own, too");
    }
}
