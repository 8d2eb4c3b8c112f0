//! Packets of publishers, and key frame requests of subscribers: whose they are, and where they go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::Mid;
use str0m::rtp::RtpPacket;
use windlass_types::recording::SenderReport;
use windlass_types::{Layer, StreamId, VideoCodec};

use super::Core;
use super::forward::Forwarding;
use super::publisher::layers::Encoding;
use super::subscriber::audio::AudioInfo;
use super::subscriber::downlink::State;
use super::subscriber::rewriter::PacketIn;
use crate::api::{ParticipantId, TrackId, TrackKind};

impl Core {
    /// Forwards one packet of a publisher.
    pub(crate) fn forward(
        &mut self,
        from: ParticipantId,
        mid: Mid,
        encoding: Encoding,
        rtp: &RtpPacket,
    ) {
        self.counters.rtp_in += 1;
        let Some(peer) = self.peers.get_mut(from) else {
            self.counters.rtp_unknown += 1;
            return;
        };
        if !peer.link.packet_limit.admit(rtp.timestamp) {
            self.counters.rtp_limited += 1;
            return;
        }
        let track = peer.published.get(&mid).copied();
        let Some((track_id, track)) = track.and_then(|t| Some((t, self.tracks.get_mut(t)?))) else {
            self.counters.rtp_unknown += 1;
            return;
        };
        if track.info.muted {
            return;
        }
        let packet = PacketIn { handover_delay: self.schedule.handover_delay(), ..packet_in(rtp) };
        match track.info.kind {
            TrackKind::Audio => {
                let blocks = peer.red_block_type(rtp.header.payload_type);
                let ext_vals = &rtp.header.ext_vals;
                let (level, voice) = (ext_vals.audio_level, ext_vals.voice_activity);
                let audio_info = AudioInfo { level, voice, blocks };
                let report = sender_report(rtp);
                self.forward_audio(track_id, packet, report, &rtp.payload, audio_info);
            }
            TrackKind::Video => {
                let codec = peer.video_codec(rtp.header.payload_type);
                let packet = codec.map(|codec| {
                    // Only AV1 needs the descriptor. VP9 has its layers in each payload; VP8 and H.264 have one
                    // spatial layer.
                    let frame = match codec {
                        VideoCodec::Av1 => {
                            track.layers.frame_layers(encoding, packet.seq, &rtp.header.ext_vals)
                        }
                        _ => None,
                    };
                    PacketIn { codec, frame, ..packet }
                });
                let known = packet.and_then(|packet| {
                    Some((packet, track.layers.layer_of(encoding, &packet, &rtp.payload)?))
                });
                let Some((packet, (layer, former))) = known else {
                    self.counters.rtp_unknown += 1;
                    return;
                };
                if let Some(former) = former {
                    self.rename_layer(track_id, former, layer, packet.arrival);
                }
                self.forward_video(track_id, layer, packet, sender_report(rtp), &rtp.payload);
            }
        }
    }

    /// A single encoding counts as another layer from this key frame on.
    pub(crate) fn rename_layer(
        &mut self,
        track: TrackId,
        former: Layer,
        layer: Layer,
        now: Instant,
    ) {
        let Some(track) = self.tracks.get_mut(track) else { return };
        let mut to = Forwarding {
            peers: &mut self.peers,
            counters: &mut self.counters,
            outputs: &mut self.outputs,
        };
        to.rename_layer(track, former, layer);
        self.schedule.allocate_now(now);
    }

    /// Forwards an audio packet of a publisher on this node, with its last sender report, or on another.
    pub(crate) fn forward_audio(
        &mut self,
        track: TrackId,
        packet: PacketIn,
        report: Option<SenderReport>,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
    ) {
        let Some(track) = self.tracks.get(track) else { return };
        if let Some(level) = audio_info.level
            && let Some(room) = self.rooms.get_mut(&track.room)
        {
            room.speakers.on_level(packet.arrival, track.info.participant, level);
        }
        let mut to = Forwarding {
            peers: &mut self.peers,
            counters: &mut self.counters,
            outputs: &mut self.outputs,
        };
        to.audio(track, packet, report, payload, audio_info);
    }

    /// Forwards a video packet of a publisher on this node, with its last sender report, or on another.
    pub(crate) fn forward_video(
        &mut self,
        track: TrackId,
        layer: Layer,
        packet: PacketIn,
        report: Option<SenderReport>,
        payload: &Arc<[u8]>,
    ) {
        let Some(track) = self.tracks.get_mut(track) else { return };
        let scale = self.config.scale;
        let mut to = Forwarding {
            peers: &mut self.peers,
            counters: &mut self.counters,
            outputs: &mut self.outputs,
        };
        let before = track.layers.spatial();
        to.video(track, layer, packet, report, payload, scale);
        if track.layers.spatial() != before {
            self.schedule.allocate_now(packet.arrival);
        }
    }

    /// The enhancer's queue was full for an input of this stream: of its high-resolution frames if `captured`.
    pub fn on_tap_overflow(&mut self, now: Instant, stream: StreamId, captured: bool) {
        self.counters.tap_overflows += 1;
        let track = self.tracks.of_stream_mut(stream);
        if track.is_some_and(|track| track.taps.on_overflow(captured)) {
            self.schedule.wake(now);
        }
    }

    /// Takes a subscriber's key frame request for one of its m-lines.
    pub(crate) fn on_key_frame_request(&mut self, id: ParticipantId, mid: Mid) {
        self.counters.keyframe_requests_in += 1;
        let Some(peer) = self.peers.get_mut(id) else { return };
        let congested = peer.downlink.state() == State::Congested;
        let Some(slot) = peer.slots.iter_mut().find(|s| s.mid == mid) else { return };
        let Some(source) = slot.video.current() else { return };
        if congested {
            // A full queue would drop the key frame, and other packets with it.
            slot.key_frame_pending = true;
            return;
        }
        if let Some(track) = self.tracks.get_mut(source.track) {
            track.keyframes.request_repair(Some(id), source.layer);
        }
    }
}

/// The fields of a packet that forwarding needs.
fn packet_in(rtp: &RtpPacket) -> PacketIn {
    PacketIn {
        seq: *rtp.seq_no,
        timestamp: rtp.header.timestamp,
        arrival: rtp.timestamp,
        handover_delay: Duration::ZERO,
        marker: rtp.header.marker,
        codec: VideoCodec::default(),
        frame: None,
        stale: false,
    }
}

/// The last sender report of the packet's stream.
fn sender_report(rtp: &RtpPacket) -> Option<SenderReport> {
    rtp.last_sender_info.map(|r| SenderReport { time: r.ntp_time, rtp: r.rtp_time.numer() as u32 })
}
