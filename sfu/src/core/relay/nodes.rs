//! The other nodes, the rooms that are shared with them, and who gets what of a room.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::api::TrackId;
use crate::core::output::Output;
use crate::relay::{NodeId, Relayed};

/// Nodes that get something of a room, by room.
type Audiences = HashMap<Arc<str>, BTreeSet<NodeId>>;

/// The other nodes, and the rooms that are shared with them.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    /// Nodes with a link.
    linked: BTreeSet<NodeId>,
    /// The other nodes of each shared room.
    shared: HashMap<Arc<str>, Vec<NodeId>>,
    /// Nodes that want the local tracks of each room.
    audiences: Audiences,
    /// Nodes that want the local tracks of a room before the room is shared with them.
    pending_audiences: Audiences,
    /// Local ids of remote tracks, by node and id there.
    tracks: HashMap<(NodeId, TrackId), TrackId>,
}

/// Difference between a room's former and new list of other nodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Nodes that are on the new list alone.
    pub(crate) new: Vec<NodeId>,
    /// Nodes that are on the former list alone.
    pub(crate) gone: Vec<NodeId>,
}

/// Result of a node's request for the local tracks of a room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// The node gets the tracks from now on.
    Now,
    /// The node gets the tracks when the room is shared with it.
    Later,
    /// There is no link to the node.
    NotLinked,
    /// Too many rooms are relayed.
    Refused,
}

impl Relays {
    /// How a room's other nodes change when `nodes` take the place of the current ones.
    pub(crate) fn change(&self, room: &str, nodes: &[NodeId]) -> Change {
        let known = self.shared.get(room).map_or(&[][..], Vec::as_slice);
        let new = nodes.iter().filter(|node| !known.contains(node)).copied().collect();
        let gone = known.iter().filter(|node| !nodes.contains(node)).copied().collect();
        Change { new, gone }
    }

    /// Sets a room's other nodes. Returns those of them that have waited for the room's local tracks.
    pub(crate) fn set_nodes(&mut self, room: &Arc<str>, nodes: &[NodeId]) -> Vec<NodeId> {
        if nodes.is_empty() {
            self.shared.remove(room);
        } else {
            self.shared.insert(room.clone(), nodes.to_vec());
        }
        let pending = self.pending_audiences.remove(room).unwrap_or_default();
        pending.into_iter().filter(|node| nodes.contains(node)).collect()
    }

    /// Sets whether there is a link to a node. Returns whether that has changed. A node without a link wants nothing
    /// any more.
    pub(crate) fn set_link(&mut self, node: NodeId, up: bool) -> bool {
        if up {
            return self.linked.insert(node);
        }
        for audiences in [&mut self.audiences, &mut self.pending_audiences] {
            audiences.retain(|_, nodes| {
                nodes.remove(&node);
                !nodes.is_empty()
            });
        }
        self.linked.remove(&node)
    }

    /// The rooms that are shared with a node.
    pub(crate) fn shared_with(&self, node: NodeId) -> Vec<Arc<str>> {
        let shared = self.shared.iter().filter(|(_, nodes)| nodes.contains(&node));
        shared.map(|(room, _)| room.clone()).collect()
    }

    /// Notes that a node wants the local tracks of a room. At most `max_rooms` are relayed.
    pub(crate) fn begin(&mut self, node: NodeId, room: &Arc<str>, max_rooms: usize) -> Begun {
        if !self.linked.contains(&node) {
            return Begun::NotLinked;
        }
        let shared = self.shared.get(room).is_some_and(|nodes| nodes.contains(&node));
        let audiences = if shared { &mut self.audiences } else { &mut self.pending_audiences };
        if audiences.len() >= max_rooms && !audiences.contains_key(room) {
            return Begun::Refused;
        }
        audiences.entry(room.clone()).or_default().insert(node);
        if shared { Begun::Now } else { Begun::Later }
    }

    /// Notes that a node does not want the local tracks of a room any more.
    pub(crate) fn end(&mut self, node: NodeId, room: &str) {
        for audiences in [&mut self.audiences, &mut self.pending_audiences] {
            if let Some(nodes) = audiences.get_mut(room) {
                nodes.remove(&node);
                if nodes.is_empty() {
                    audiences.remove(room);
                }
            }
        }
    }

    /// The nodes that want a room's local tracks.
    pub(crate) fn audience(&self, room: &str) -> impl Iterator<Item = NodeId> {
        self.audiences.get(room).into_iter().flatten().copied()
    }

    /// Sends a message about a room to a node.
    pub(crate) fn send(
        &self,
        node: NodeId,
        room: &Arc<str>,
        message: Relayed,
        outputs: &mut VecDeque<Output>,
    ) {
        if self.linked.contains(&node) {
            outputs.push_back(Output::Relay(node, room.clone(), message));
        }
    }

    /// Sends a message to the nodes that want a room's local tracks.
    pub(crate) fn send_to_audience(
        &self,
        room: &str,
        message: &Relayed,
        outputs: &mut VecDeque<Output>,
    ) {
        let Some((room, nodes)) = self.audiences.get_key_value(room) else { return };
        for &node in nodes {
            outputs.push_back(Output::Relay(node, room.clone(), message.clone()));
        }
    }

    /// Sends a message to all other nodes of a room.
    pub(crate) fn send_to_shared(
        &self,
        room: &str,
        message: &Relayed,
        outputs: &mut VecDeque<Output>,
    ) {
        let Some((room, nodes)) = self.shared.get_key_value(room) else { return };
        for &node in nodes {
            self.send(node, room, message.clone(), outputs);
        }
    }

    /// The local id of a node's track.
    pub(crate) fn track(&self, node: NodeId, track: TrackId) -> Option<TrackId> {
        self.tracks.get(&(node, track)).copied()
    }

    /// Adds a track of another node, by node and id there.
    pub(crate) fn add_track(&mut self, node: NodeId, track: TrackId, local: TrackId) {
        self.tracks.insert((node, track), local);
    }

    /// Removes a track of another node.
    pub(crate) fn remove_track(&mut self, node: NodeId, track: TrackId) {
        self.tracks.remove(&(node, track));
    }

    /// Ids of remote tracks, at their own nodes.
    #[cfg(test)]
    pub(crate) fn remote_ids(&self) -> impl Iterator<Item = TrackId> {
        self.tracks.keys().map(|(_, track)| *track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(2);
    const OTHER: NodeId = NodeId(3);

    #[test]
    fn a_node_that_asks_early_gets_the_tracks_when_the_room_is_shared_with_it() {
        let (mut relays, tea) = (Relays::default(), Arc::<str>::from("tea"));
        assert_eq!(relays.begin(NODE, &tea, 9), Begun::NotLinked);
        assert!(relays.set_link(NODE, true) && !relays.set_link(NODE, true));
        assert_eq!(relays.begin(NODE, &tea, 9), Begun::Later);
        assert_eq!(relays.change("tea", &[NODE]), Change { new: vec![NODE], gone: vec![] });
        assert_eq!(relays.set_nodes(&tea, &[NODE]), [NODE]);
        assert_eq!(relays.begin(NODE, &tea, 0), Begun::Refused, "it is one room too many");
        assert_eq!(relays.begin(NODE, &tea, 9), Begun::Now);
        assert_eq!(relays.audience("tea").collect::<Vec<_>>(), [NODE]);
        assert!(relays.set_link(NODE, false));
        assert_eq!(relays.audience("tea").count(), 0);
    }

    #[test]
    fn messages_go_to_nodes_with_a_link() {
        let (mut relays, tea) = (Relays::default(), Arc::<str>::from("tea"));
        relays.set_link(NODE, true);
        relays.set_nodes(&tea, &[NODE, OTHER]);
        assert_eq!(relays.change("tea", &[OTHER]), Change { new: vec![], gone: vec![NODE] });
        let mut sent = VecDeque::new();
        relays.send_to_shared("tea", &Relayed::Begin, &mut sent);
        relays.send_to_audience("tea", &Relayed::Begin, &mut sent);
        relays.send(OTHER, &tea, Relayed::Begin, &mut sent);
        assert!(matches!(sent.pop_front(), Some(Output::Relay(NODE, _, Relayed::Begin))));
        assert!(sent.is_empty());
        assert_eq!(relays.shared_with(OTHER), [tea]);
    }
}
