//! Reports the quality of connections to the participants' rooms.

use std::time::Instant;

use windlass_types::{ConnectionQuality, Layer};

use super::quality::{Shortfall, Signs};
use crate::api::{ParticipantId, SfuEvent, TrackKind};
use crate::core::Core;
use crate::core::track::Track;
use crate::relay::{NodeId, Relayed};

impl Core {
    /// Assesses all connections, once a second, and tells their rooms what has changed.
    pub(crate) fn assess_connections(&mut self, now: Instant) {
        let mut changed = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.link.connected) {
            let tracks = peer.published.values().filter_map(|&track| self.tracks.get(track));
            let uplink = tracks.map(|track| track.shortfall(now)).max().unwrap_or_default();
            let heard = peer.link.last_heard.unwrap_or(now);
            let silent = now.saturating_duration_since(heard);
            let signs = Signs { silent, uplink, downlink: peer.fit };
            changed.extend(peer.connection.assess(now, signs).map(|quality| (peer.id, quality)));
        }
        for (participant, quality) in changed {
            self.notify_quality(participant, quality);
        }
    }

    /// Tells all participants of a participant's room, on this node and others, of the quality of its connection.
    fn notify_quality(&mut self, participant: ParticipantId, quality: ConnectionQuality) {
        let Some(name) = self.peers.get(participant).map(|peer| peer.room.clone()) else { return };
        let Some(room) = self.rooms.get(&name) else { return };
        room.notify(&SfuEvent::Quality { participant, quality }, &mut self.outputs);
        if !room.loopback {
            let message = Relayed::Quality { participant, quality };
            self.relays.send_to_audience(&name, &message, &mut self.outputs);
        }
    }

    /// Takes the quality of a participant of another node.
    pub(crate) fn on_remote_quality(
        &mut self,
        node: NodeId,
        room: &str,
        participant: ParticipantId,
        quality: ConnectionQuality,
    ) {
        if !self.is_remote_member(node, room, participant) {
            return;
        }
        let Some(room) = self.rooms.get_mut(room) else { return };
        room.remote_qualities.insert(participant, quality);
        room.notify(&SfuEvent::Quality { participant, quality }, &mut self.outputs);
    }

    /// The qualities that are known of a room's participants, for a newcomer.
    pub(crate) fn known_qualities(&self, room: &str) -> Vec<(ParticipantId, ConnectionQuality)> {
        let Some(room) = self.rooms.get(room) else { return Vec::new() };
        let local = room.members.iter().filter_map(|id| Some((*id, self.quality_of(*id)?)));
        local.chain(room.remote_qualities.iter().map(|(&id, &quality)| (id, quality))).collect()
    }

    /// The quality that was last reported for a participant of this node.
    pub(crate) fn quality_of(&self, id: ParticipantId) -> Option<ConnectionQuality> {
        self.peers.get(id).and_then(|peer| peer.connection.last_sent())
    }
}

impl Track {
    /// Layers of the track that its publisher does not send though they are asked for.
    fn shortfall(&self, now: Instant) -> Shortfall {
        // With one encoding there is no choice, and no part of a track says of its publisher what the track does not.
        if !self.is_announced()
            || self.info.kind != TrackKind::Video
            || self.info.muted
            || self.layers.is_single()
        {
            return Shortfall::default();
        }
        let sent = Layer::ALL.map(|layer| self.layers.rate(layer, now));
        let offered = |layer: Layer| self.largest >= Some(layer) || self.was_sent(layer);
        let asked = Layer::ALL.map(|layer| offered(layer) && !self.params.is_off(layer));
        Shortfall::new(asked, sent)
    }

    /// Whether the layer has come before. Where the client says which layers it sends, its word alone counts, and the
    /// answer is `false`.
    fn was_sent(&self, layer: Layer) -> bool {
        self.largest.is_none() && self.layers.sizes()[layer as usize].is_some()
    }
}
