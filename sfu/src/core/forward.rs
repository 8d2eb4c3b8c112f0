//! Forwards a track's packets and anchors to its subscribers, here and at other nodes, and to its taps.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_types::recording::{RecordedTime, SenderReport};
use windlass_types::{Layer, VideoCodec};

use super::codec;
use super::codec::red::Red;
use super::output::Output;
use super::peers::Peers;
use super::record;
use super::subscriber::anchor_channel::OutgoingAnchor;
use super::subscriber::audio::AudioInfo;
use super::subscriber::rewriter::{PacketIn, Source};
use super::track::Track;
use crate::stats::Counters;

/// Where a track's packets go.
pub(crate) struct Forwarding<'a> {
    pub(crate) peers: &'a mut Peers,
    pub(crate) counters: &'a mut Counters,
    pub(crate) outputs: &'a mut VecDeque<Output>,
}

impl Forwarding<'_> {
    /// Forwards an audio packet with its publisher's last sender report. The publisher is on this node or on another.
    pub(crate) fn audio(
        &mut self,
        track: &Track,
        packet: PacketIn,
        report: Option<SenderReport>,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
    ) {
        let id = track.info.track;
        let red = audio_info.blocks.map(|opus| (Red::parse(payload, *opus), opus));
        let red = match red {
            None => None,
            Some((Some(red), opus)) => Some((red, opus)),
            Some((None, _)) => {
                self.counters.red_malformed += 1;
                return;
            }
        };
        for &subscriber in &track.subscribers {
            let Some(peer) = self.peers.connected_mut(subscriber) else { continue };
            for slot in 0..peer.slots.len() {
                if peer.slots[slot].track == Some(id)
                    && peer.send_audio(slot, id, packet, payload, audio_info, red)
                {
                    self.counters.rtp_out += 1;
                }
            }
        }
        self.outputs.extend(track.nodes.packet(None, &packet, payload, audio_info));
        if track.recordings.recorder.is_some() {
            let time = RecordedTime { rtp: packet.timestamp, arrival: packet.arrival, report };
            let red = red.map(|(red, _)| red);
            self.outputs.extend(record::track::audio(id, time, red, payload));
        }
    }

    /// Forwards a video packet with its publisher's last sender report. The publisher is on this node or on another.
    /// `scale` is the anchors' scale until the enhancer has reported one.
    pub(crate) fn video(
        &mut self,
        track: &mut Track,
        layer: Layer,
        mut packet: PacketIn,
        report: Option<SenderReport>,
        payload: &Arc<[u8]>,
        scale: u16,
    ) {
        if !take(track, layer, packet, payload) {
            self.counters.video_malformed += 1;
            return;
        }
        track.taps.align(layer, packet.timestamp, report);
        packet.stale = track.recent.push(layer, packet, payload);
        let source = Source { track: track.info.track, layer };
        let (tapped, scale) = (track.tapped(), track.scale(scale));
        for &subscriber in &track.subscribers {
            let Some(peer) = self.peers.connected_mut(subscriber) else { continue };
            for slot in 0..peer.slots.len() {
                if peer.slots[slot].source != Some(source.track) {
                    continue;
                }
                let sent = peer.send_video(slot, source, packet, payload, self.counters);
                let Some(sent) = sent else { continue };
                if sent.switched {
                    self.counters.layer_switches += 1;
                    for (packet, payload) in track.recent.after(layer, packet.seq) {
                        peer.send_video(slot, source, *packet, payload, self.counters);
                    }
                }
                if sent.new_epoch && peer.announce(slot, tapped, scale, self.outputs) {
                    self.outputs.extend(track.request_initial_anchor());
                }
            }
        }
        let info = AudioInfo::default();
        self.outputs.extend(track.nodes.packet(Some(layer), &packet, payload, info));
        if packet.codec != VideoCodec::Vp9 {
            return;
        }
        for recording in track.recordings.iter_mut() {
            recording.push(layer, packet, report, payload, self.outputs);
        }
        if track.taps.push(layer, packet, payload) {
            track.taps.collect(self.counters, self.outputs);
        }
    }

    /// Sends an anchor to the subscribers of its track that hold an enhanced rung of the tapped layer.
    pub(crate) fn anchor(
        &mut self,
        now: Instant,
        track: &Track,
        outgoing: OutgoingAnchor<'_>,
        budget: Duration,
    ) {
        self.outputs.extend(track.nodes.anchor(&outgoing));
        let budget = track.budget(budget);
        for &subscriber in &track.subscribers {
            if let Some(peer) = self.peers.get_mut(subscriber) {
                peer.send_anchor(now, outgoing, budget, self.counters);
            }
        }
    }

    /// Counts a single encoding as another layer from its current key frame on, as its size has changed. The
    /// subscribers stay with the encoding until the next allocation.
    pub(crate) fn rename_layer(&mut self, track: &mut Track, former: Layer, layer: Layer) {
        track.layers.rename(former, layer);
        for recording in track.recordings.iter_mut() {
            recording.rename(former, layer);
        }
        let id = track.info.track;
        let (old, new) = (Source { track: id, layer: former }, Source { track: id, layer });
        for &subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|slot| slot.video.concerns(old)) {
                slot.video.set_target(Some(new));
            }
        }
    }
}

/// Takes a video packet into the state of its track. Returns whether it can be read.
fn take(track: &mut Track, layer: Layer, packet: PacketIn, payload: &Arc<[u8]>) -> bool {
    let descriptor = codec::parse(packet.codec, packet.frame, payload).ok();
    track.layers.count(layer, &packet, payload.len(), descriptor.as_ref());
    if payload.is_empty() {
        return true;
    }
    let Some(descriptor) = descriptor else { return false };
    if descriptor.starts_key() {
        track.keyframes.on_begin(layer, packet.timestamp, packet.arrival);
        let size = codec::size(packet.codec, &descriptor, payload);
        track.layers.on_key_frame(layer, size);
    }
    if descriptor.starts_key() || descriptor.layers.is_some() {
        track.layers.on_spatial(layer, descriptor.layers);
    }
    if descriptor.end && packet.marker {
        track.keyframes.on_end(layer, packet.timestamp, packet.arrival);
    }
    true
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::api::ParticipantId;
    use crate::core::shard::Shard;
    use crate::core::tracks::Tracks;
    use crate::relay::{NodeId, Relayed};

    #[test]
    fn packets_go_to_the_nodes_that_want_their_layer_and_malformed_ones_nowhere() {
        let (mut tracks, now) = (Tracks::new(Shard::default()), Instant::now());
        let (who, room) = (ParticipantId(1), Arc::<str>::from("tea"));
        let id = tracks.add(who, &crate::core::tests::harness::camera(), room);
        let track = tracks.get_mut(id).expect("added");
        track.nodes.add(NodeId(2));
        track.nodes.set_layers(NodeId(2), [true, false, false]);
        let (mut peers, mut counters, mut outputs) =
            (Peers::default(), Counters::default(), VecDeque::new());
        let mut to =
            Forwarding { peers: &mut peers, counters: &mut counters, outputs: &mut outputs };
        let padding: Arc<[u8]> = Arc::new([]);
        to.video(track, Layer::Q, PacketIn::alone(1, now), None, &padding, 2);
        to.video(track, Layer::H, PacketIn::alone(2, now), None, &padding, 2);
        // An extended descriptor that ends after its first byte.
        let malformed: Arc<[u8]> = Arc::new([0xff]);
        to.video(track, Layer::Q, PacketIn::alone(3, now), None, &malformed, 2);
        assert_eq!(counters.video_malformed, 1);
        let sent = outputs.pop_front();
        let Some(Output::Relay(NodeId(2), _, Relayed::Packet(sent))) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!((sent.seq, sent.layer, outputs.len()), (1, Some(Layer::Q), 0));
    }
}
