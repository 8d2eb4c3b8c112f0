//! Tracks between nodes: the publisher's side of a track of another node, and what other nodes request of a local one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use windlass_types::{Layer, Refusal, VideoCodec};

use crate::api::TrackId;
use crate::core::output::Output;
use crate::core::subscriber::anchor_channel::OutgoingAnchor;
use crate::core::subscriber::audio::AudioInfo;
use crate::core::subscriber::rewriter::PacketIn;
use crate::relay::{AnchorState, NodeId, Relayed, RelayedAnchor, RelayedPacket};

/// The publisher's side of a track of another node.
#[derive(Debug)]
pub(crate) struct RemotePublisher {
    /// The node.
    pub node: NodeId,
    /// Id of the track at its own node.
    pub track: TrackId,
    room: Arc<str>,
    /// Anchors that the node makes of the track.
    anchor_state: AnchorState,
    /// The layers last requested.
    layers: [bool; 3],
    /// The layer whose enhancement was last requested.
    enhance: Option<Layer>,
}

impl RemotePublisher {
    /// The publisher of a node's track of a room; all layers are relayed at first.
    pub(crate) fn new(node: NodeId, track: TrackId, room: Arc<str>) -> RemotePublisher {
        let anchor_state = AnchorState::default();
        RemotePublisher { node, track, room, anchor_state, layers: [true; 3], enhance: None }
    }

    /// Anchors that the node makes of the track.
    pub(crate) fn anchor_state(&self) -> &AnchorState {
        &self.anchor_state
    }

    /// Takes the state of the node's anchors.
    pub(crate) fn set_anchor_state(&mut self, state: AnchorState) {
        self.anchor_state = state;
    }

    fn send(&self, message: Relayed) -> Output {
        Output::Relay(self.node, self.room.clone(), message)
    }

    /// Requests anchors of another layer, or none.
    pub(crate) fn request_enhancement(&mut self, wanted: Option<Layer>) -> Option<Output> {
        if self.enhance == wanted {
            return None;
        }
        self.enhance = wanted;
        Some(self.send(Relayed::Enhance { track: self.track, layer: wanted }))
    }

    /// Requests or stops layers.
    pub(crate) fn request_layers(&mut self, changes: &[(Layer, bool)]) -> Output {
        for &(layer, active) in changes {
            self.layers[layer as usize] = active;
        }
        self.send(Relayed::Layers { track: self.track, wanted: self.layers })
    }

    /// Requests a key frame.
    pub(crate) fn request_key_frame(&self, layer: Layer) -> Output {
        self.send(Relayed::KeyFrame { track: self.track, layer })
    }

    /// Says which codecs would serve those here who cannot decode the track.
    pub(crate) fn request_backup(&self, codecs: Vec<VideoCodec>) -> Output {
        self.send(Relayed::BackupWanted { track: self.track, codecs })
    }

    /// Requests a key anchor.
    pub(crate) fn request_key_anchor(&self) -> Output {
        self.send(Relayed::KeyAnchor { track: self.track })
    }
}

/// Layers and anchors of a local track that one other node wants.
#[derive(Debug)]
struct NodeDemand {
    layers: [bool; 3],
    enhance: Option<Layer>,
    /// The anchor state last sent.
    sent_state: Option<AnchorState>,
    /// The codecs that would serve its participants who cannot decode the track; empty: there are none.
    undecodable: Vec<VideoCodec>,
}

impl Default for NodeDemand {
    fn default() -> NodeDemand {
        NodeDemand { layers: [true; 3], enhance: None, sent_state: None, undecodable: Vec::new() }
    }
}

/// Anchors that are made of a local track now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Making {
    /// Whether there is an enhancer.
    pub(crate) available: bool,
    /// The tapped layer.
    pub(crate) layer: Option<Layer>,
    /// Scale of the layer's anchors: width of an anchor's frame over that of the layer.
    pub(crate) scale: u16,
    /// Time for which the policy holds frames.
    pub(crate) holds: Duration,
    /// Why the enhancer makes no anchors of the track.
    pub(crate) refused: Option<Refusal>,
}

/// Layers and anchors of a local track that other nodes want.
#[derive(Debug)]
pub(crate) struct NodeDemands {
    track: TrackId,
    room: Arc<str>,
    nodes: BTreeMap<NodeId, NodeDemand>,
}

impl NodeDemands {
    /// Demands for a track that no node wants yet.
    pub(crate) fn new(track: TrackId, room: Arc<str>) -> NodeDemands {
        NodeDemands { track, room, nodes: BTreeMap::new() }
    }

    /// Adds a node that gets the track from now on: all layers, and no anchors.
    pub(crate) fn add(&mut self, node: NodeId) {
        self.nodes.insert(node, NodeDemand::default());
    }

    /// Sets the nodes that get the track: just these.
    pub(crate) fn set(&mut self, nodes: impl Iterator<Item = NodeId>) {
        self.nodes = nodes.map(|node| (node, NodeDemand::default())).collect();
    }

    /// Removes a node, which does not get the track any more.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// Whether a node gets the track.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Sets the layers that a node wants. Returns whether the node gets the track.
    pub(crate) fn set_layers(&mut self, node: NodeId, wanted: [bool; 3]) -> bool {
        let demand = self.nodes.get_mut(&node);
        demand.map(|demand| demand.layers = wanted).is_some()
    }

    /// Sets the layer whose anchors a node wants, or none. Returns whether the node gets the track.
    pub(crate) fn set_enhanced(&mut self, node: NodeId, layer: Option<Layer>) -> bool {
        let demand = self.nodes.get_mut(&node);
        demand.map(|demand| demand.enhance = layer).is_some()
    }

    /// Sets the codecs that would serve a node's participants who cannot decode the track. Returns whether the node
    /// gets the track.
    pub(crate) fn set_undecodable(&mut self, node: NodeId, codecs: Vec<VideoCodec>) -> bool {
        let demand = self.nodes.get_mut(&node);
        demand.map(|demand| demand.undecodable = codecs).is_some()
    }

    /// The codecs that would serve participants who cannot decode the track, a list for each node that has some.
    pub(crate) fn undecodable(&self) -> impl Iterator<Item = &[VideoCodec]> {
        let lists = self.nodes.values().map(|demand| demand.undecodable.as_slice());
        lists.filter(|codecs| !codecs.is_empty())
    }

    /// The layers whose anchors are wanted, one for each node.
    pub(crate) fn enhanced(&self) -> impl Iterator<Item = Layer> {
        self.nodes.values().filter_map(|demand| demand.enhance)
    }

    /// Whether a node wants a layer.
    pub(crate) fn need(&self, layer: Layer) -> bool {
        self.nodes.values().any(|demand| demand.layers[layer as usize])
    }

    /// Sends the state of the track's anchors to the nodes that have another one.
    pub(crate) fn send_anchor_state(&mut self, making: Making) -> Vec<Output> {
        let Making { available, layer, scale, holds, refused } = making;
        let state = AnchorState { available, layer, scale, holds, refused };
        let (track, room) = (self.track, &self.room);
        let nodes = self.nodes.iter_mut().filter(|(_, demand)| demand.sent_state != Some(state));
        nodes
            .map(|(&node, demand)| {
                demand.sent_state = Some(state);
                Output::Relay(node, room.clone(), Relayed::AnchorState { track, state })
            })
            .collect()
    }

    /// A packet for the nodes that want its layer; `layer` is `None` for audio.
    pub(crate) fn packet(
        &self,
        layer: Option<Layer>,
        packet: &PacketIn,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
    ) -> Vec<Output> {
        let wants = |demand: &NodeDemand| layer.is_none_or(|layer| demand.layers[layer as usize]);
        let nodes = self.nodes.iter().filter(|(_, demand)| wants(demand));
        nodes
            .map(|(&node, _)| {
                let message = Relayed::Packet(RelayedPacket {
                    track: self.track,
                    layer,
                    seq: packet.seq,
                    timestamp: packet.timestamp,
                    marker: packet.marker,
                    level: audio_info.level,
                    voice: audio_info.voice,
                    blocks: audio_info.blocks.map(|pt| *pt),
                    codec: packet.codec,
                    frame: packet.frame,
                    payload: payload.clone(),
                });
                Output::Relay(node, self.room.clone(), message)
            })
            .collect()
    }

    /// An anchor for the nodes that want anchors.
    pub(crate) fn anchor(&self, outgoing: &OutgoingAnchor<'_>) -> Vec<Output> {
        let OutgoingAnchor { anchor, source, tapped } = *outgoing;
        let nodes = self.nodes.iter().filter(|(_, demand)| demand.enhance.is_some());
        nodes
            .map(|(&node, _)| {
                let message = Relayed::Anchor(Box::new(RelayedAnchor {
                    track: self.track,
                    anchor: anchor.clone(),
                    layer: source.layer,
                    tapped,
                }));
                Output::Relay(node, self.room.clone(), message)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACK: TrackId = TrackId(7);

    #[test]
    fn a_remote_publisher_is_asked_only_for_what_is_new() {
        let mut remote = RemotePublisher::new(NodeId(2), TRACK, "tea".into());
        assert!(remote.request_enhancement(None).is_none());
        assert!(remote.request_enhancement(Some(Layer::Q)).is_some());
        assert!(remote.request_enhancement(Some(Layer::Q)).is_none());
        let asked = remote.request_layers(&[(Layer::F, false)]);
        let Output::Relay(NodeId(2), _, Relayed::Layers { track: TRACK, wanted }) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(wanted, [true, true, false]);
    }

    #[test]
    fn nodes_learn_of_anchors_once_and_those_that_get_the_track_alone() {
        let mut nodes = NodeDemands::new(TRACK, "tea".into());
        let making = |scale| Making {
            available: true,
            layer: Some(Layer::Q),
            scale,
            holds: Duration::ZERO,
            refused: None,
        };
        assert!(nodes.send_anchor_state(making(2)).is_empty());
        nodes.add(NodeId(2));
        assert!(!nodes.set_layers(NodeId(3), [false; 3]), "it does not get the track");
        assert_eq!(nodes.send_anchor_state(making(2)).len(), 1);
        assert_eq!(nodes.send_anchor_state(making(2)).len(), 0);
        assert_eq!(nodes.send_anchor_state(making(4)).len(), 1);
    }

    #[test]
    fn a_layer_is_needed_while_a_node_wants_it() {
        let mut nodes = NodeDemands::new(TRACK, "tea".into());
        assert!(!nodes.need(Layer::F));
        nodes.add(NodeId(2));
        assert!(nodes.need(Layer::F) && nodes.enhanced().next().is_none());
        nodes.set_layers(NodeId(2), [true, false, false]);
        nodes.set_enhanced(NodeId(2), Some(Layer::Q));
        assert!(!nodes.need(Layer::F) && nodes.need(Layer::Q));
        assert_eq!(nodes.enhanced().collect::<Vec<_>>(), [Layer::Q]);
    }
}
