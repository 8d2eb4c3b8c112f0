//! Forwards a publisher's packets to its subscribers and taps, and subscribers' key frame requests to the publisher.

use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::media::{Mid, Pt};
use str0m::rtp::RtpPacket;
use windlass_types::{Layer, StreamId, TapInput};

use super::alignment::Report;
use super::capture;
use super::downlink::State;
use super::peer::Encoding;
use super::red::Red;
use super::rewriter::{PacketIn, Source};
use super::vp9::{Descriptor, key_frame_size};
use super::{Core, Output, Track};
use crate::api::{Kind, ParticipantId, TrackId};

/// Longest shorter side of a single encoding that counts as the quarter layer, in pixels. Usual: 180.
const MAX_QUARTER_LINES: u16 = 270;
/// Longest shorter side of a single encoding that counts as the half layer, in pixels. Usual: 360.
const MAX_HALF_LINES: u16 = 480;

impl Core {
    /// Forwards one packet of a publisher.
    pub(super) fn forward(
        &mut self,
        from: ParticipantId,
        mid: Mid,
        encoding: Encoding,
        rtp: &RtpPacket,
    ) {
        self.counters.rtp_in += 1;
        let peer = self.peers.get(&from);
        let track = peer.and_then(|p| p.published.get(&mid)).copied();
        let Some((track_id, track)) = track.and_then(|t| Some((t, self.tracks.get_mut(&t)?)))
        else {
            self.counters.rtp_unknown += 1;
            return;
        };
        if track.info.muted {
            return;
        }
        let packet = PacketIn { handover_delay: self.handover_delay, ..packet_in(rtp) };
        match track.info.kind {
            Kind::Audio => {
                let blocks = peer.and_then(|p| p.red_block_type(rtp.header.payload_type));
                let ext_vals = &rtp.header.ext_vals;
                let (level, voice) = (ext_vals.audio_level, ext_vals.voice_activity);
                let audio_info = AudioInfo { level, voice, blocks };
                self.forward_audio(track_id, packet, &rtp.payload, audio_info);
            }
            Kind::Video => match track.layer_of(encoding, &rtp.payload) {
                Some((layer, former)) => {
                    if let Some(former) = former {
                        self.rename_layer(track_id, former, layer, packet.arrival);
                    }
                    self.forward_video(track_id, layer, packet, sender_report(rtp), &rtp.payload);
                }
                None => self.counters.rtp_unknown += 1,
            },
        }
    }

    /// A single encoding counts as another layer from this key frame on, as its size has changed. Its subscribers stay with it until the
    /// next allocation.
    pub(super) fn rename_layer(
        &mut self,
        track_id: TrackId,
        former: Layer,
        layer: Layer,
        now: Instant,
    ) {
        let Some(track) = self.tracks.get_mut(&track_id) else { return };
        track.layers.rename(former, layer);
        track.sizes[former as usize] = None;
        let (old, new) =
            (Source { track: track_id, layer: former }, Source { track: track_id, layer });
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|slot| slot.video.concerns(old)) {
                slot.video.set_target(Some(new));
            }
        }
        self.schedule.allocate_now(now);
    }

    /// Forwards an audio packet of a publisher on this node or another.
    pub(super) fn forward_audio(
        &mut self,
        track_id: TrackId,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        audio_info: AudioInfo,
    ) {
        let Some(track) = self.tracks.get(&track_id) else { return };
        let from = track.info.participant;
        if let Some(level) = audio_info.level
            && let Some(room) = self.rooms.get_mut(&*track.room)
        {
            room.speakers.on_level(packet.arrival, from, level);
        }
        let red = audio_info.blocks.map(|opus| (Red::parse(payload, *opus), opus));
        let red = match red {
            None => None,
            Some((Some(red), opus)) => Some((red, opus)),
            Some((None, _)) => {
                self.counters.red_malformed += 1;
                return;
            }
        };
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber).filter(|p| p.connected) else {
                continue;
            };
            for slot in 0..peer.slots.len() {
                if peer.slots[slot].track == Some(track_id)
                    && peer.send_audio(slot, track_id, packet, payload, audio_info, red)
                {
                    self.counters.rtp_out += 1;
                }
            }
        }
        self.outputs.extend(track.relay(None, &packet, payload, audio_info));
    }

    /// Forwards a video packet of a publisher on this node, with its last sender report, or on another.
    pub(super) fn forward_video(
        &mut self,
        track_id: TrackId,
        layer: Layer,
        mut packet: PacketIn,
        report: Option<Report>,
        payload: &Arc<[u8]>,
    ) {
        let Some(track) = self.tracks.get_mut(&track_id) else { return };
        track.layers.count(layer, payload.len(), packet.arrival);
        if !payload.is_empty() {
            let Ok(descriptor) = Descriptor::parse(payload) else {
                self.counters.vp9_malformed += 1;
                return;
            };
            if descriptor.starts_key() {
                track.keyframes.on_begin(layer, packet.arrival);
                let size = key_frame_size(&payload[descriptor.len..]);
                track.sizes[layer as usize] = size.or(track.sizes[layer as usize]);
            }
            if !descriptor.inter && descriptor.end && packet.marker {
                track.keyframes.on_complete(layer, packet.arrival);
            }
        }
        track.alignment.on_packet(layer, packet.timestamp, report);
        packet.stale = track.recent.push(layer, packet, payload);
        let source = Source { track: track_id, layer };
        let (tapped, scale) = (track.tapped(), track.scale(self.config.scale));
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber).filter(|p| p.connected) else {
                continue;
            };
            for slot in 0..peer.slots.len() {
                if peer.slots[slot].track != Some(track_id) {
                    continue;
                }
                let sent = peer.send_video(slot, source, packet, payload, &mut self.counters);
                let Some(sent) = sent else { continue };
                if sent.switched {
                    self.counters.layer_switches += 1;
                    for (packet, payload) in track.recent.after(layer, packet.seq) {
                        peer.send_video(slot, source, *packet, payload, &mut self.counters);
                    }
                }
                if sent.new_epoch && peer.announce(slot, tapped, scale, &mut self.outputs) {
                    self.outputs.extend(track.request_initial_anchor());
                }
            }
        }
        self.outputs.extend(track.relay(Some(layer), &packet, payload, AudioInfo::default()));
        if let Some(tap) = track.tap.as_mut().filter(|tap| tap.layer() == layer) {
            tap.push(packet, payload);
            self.collect_tap(track_id);
        } else if let Some(capture) = track.capture.as_mut().filter(|c| c.layer() == layer) {
            capture.push(packet, payload);
            self.collect_tap(track_id);
        }
    }

    /// Passes the frames of a track's taps to the enhancer.
    fn collect_tap(&mut self, track: TrackId) {
        let Some(track) = self.tracks.get_mut(&track) else { return };
        let Some(tap) = track.tap.as_mut() else { return };
        self.counters.tap_gaps += std::mem::take(&mut tap.gaps);
        while let Some(input) = tap.poll() {
            self.counters.tap_frames += u64::from(matches!(input, TapInput::Frame(_)));
            self.outputs.push_back(Output::Tap(input));
        }
        let Some(capture) = track.capture.as_mut() else { return };
        while let Some(input) = capture::poll(capture, &mut track.alignment, tap.layer()) {
            let counters = &mut self.counters;
            match &input {
                TapInput::Captured(frame) => {
                    counters.captured_frames += 1;
                    counters.captured_unaligned += u64::from(frame.low_timestamp.is_none());
                }
                _ => counters.captured_gaps += 1,
            }
            self.outputs.push_back(Output::Tap(input));
        }
    }

    /// Passes the frames of all taps to the enhancer.
    pub(super) fn collect_taps(&mut self) {
        let tapped: Vec<_> =
            self.tracks.iter().filter(|(_, t)| t.tap.is_some()).map(|(&id, _)| id).collect();
        for track in tapped {
            self.collect_tap(track);
        }
    }

    /// The enhancer's queue was full for an input of this stream: of its high-resolution frames if `captured`.
    pub fn on_tap_overflow(&mut self, now: Instant, stream: StreamId, captured: bool) {
        self.counters.tap_overflows += 1;
        let Some(track) = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t)) else {
            return;
        };
        match (&mut track.tap, &mut track.capture) {
            (_, Some(capture)) if captured => capture.on_overflow(),
            (Some(tap), _) if !captured => tap.on_overflow(),
            _ => return,
        }
        self.schedule.wake(now);
    }

    /// Takes a subscriber's key frame request for one of its m-lines.
    pub(super) fn on_key_frame_request(&mut self, id: ParticipantId, mid: Mid) {
        self.counters.keyframe_requests_in += 1;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let congested = peer.downlink.state() == State::Congested;
        let Some(slot) = peer.slots.iter_mut().find(|s| s.mid == mid) else { return };
        let Some(source) = slot.video.current() else { return };
        if congested {
            // A full queue would drop the key frame, and other packets with it.
            slot.key_frame_pending = true;
            return;
        }
        if let Some(track) = self.tracks.get_mut(&source.track) {
            track.keyframes.request_repair(Some(id), source.layer);
        }
    }

    /// Requests from publishers the key frames that subscribers and taps wait for.
    pub(super) fn request_key_frames(&mut self, now: Instant) {
        for peer in self
            .peers
            .values_mut()
            .filter(|p| p.connected && p.downlink.state() != State::Congested)
        {
            for slot in peer.slots.iter_mut().filter(|s| s.key_frame_pending) {
                slot.key_frame_pending = false;
                let Some(source) = slot.video.current() else { continue };
                if let Some(track) = self.tracks.get_mut(&source.track) {
                    track.keyframes.request_repair(Some(peer.id), source.layer);
                }
            }
        }
        for peer in self.peers.values().filter(|p| p.connected) {
            for wanted in peer.slots.iter().filter_map(|s| s.video.waits_for()) {
                // A layer that is not sent has no key frames.
                let track = self.tracks.get_mut(&wanted.track);
                if let Some(track) = track.filter(|t| t.layers.rate(wanted.layer, now).is_some()) {
                    track.keyframes.request(Some(peer.id), wanted.layer);
                }
            }
        }
        for track in self.tracks.values_mut() {
            if track.remote.is_some() {
                let layer = track.keyframes.poll(now);
                let request = layer.and_then(|l| track.request_remote_key_frame(l));
                self.counters.keyframe_requests_out += u64::from(request.is_some());
                self.outputs.extend(request);
                continue;
            }
            let publisher = self.peers.get_mut(&track.info.participant);
            let Some(publisher) = publisher.filter(|p| p.connected && !track.info.muted) else {
                track.keyframes.clear();
                continue;
            };
            if let Some(tap) = &mut track.tap
                && track.layers.rate(tap.layer(), now).is_some()
                && tap.take_key_request(now)
            {
                track.keyframes.request_repair(None, tap.layer());
            }
            if let Some(capture) = &mut track.capture
                && track.layers.rate(capture.layer(), now).is_some()
                && capture.take_key_request(now)
            {
                track.keyframes.request_repair(None, capture.layer());
            }
            if let Some(layer) = track.keyframes.poll(now)
                && publisher.request_key_frame(track.mid, layer)
            {
                self.counters.keyframe_requests_out += 1;
            }
        }
    }
}

/// What an audio packet has beside its payload.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AudioInfo {
    /// Audio level in dBov (RFC 6464).
    pub(super) level: Option<i8>,
    /// Voice activity (RFC 6464).
    pub(super) voice: Option<bool>,
    /// Payload type of its blocks, if it is Opus with redundancy (RED).
    pub(super) blocks: Option<Pt>,
}

/// The fields of a packet that forwarding needs.
fn packet_in(rtp: &RtpPacket) -> PacketIn {
    PacketIn {
        seq: *rtp.seq_no,
        timestamp: rtp.header.timestamp,
        arrival: rtp.timestamp,
        handover_delay: Duration::ZERO,
        marker: rtp.header.marker,
        stale: false,
    }
}

/// The last sender report of the packet's stream.
fn sender_report(rtp: &RtpPacket) -> Option<Report> {
    rtp.last_sender_info.map(|r| (r.ntp_time, r.rtp_time.numer() as u32))
}

impl Track {
    /// The layer of an encoding, and its former layer if that has changed. A single encoding counts by the size of its last key frame.
    pub(super) fn layer_of(
        &mut self,
        encoding: Encoding,
        payload: &[u8],
    ) -> Option<(Layer, Option<Layer>)> {
        match encoding {
            Encoding::Layer(layer) => return Some((layer, None)),
            Encoding::Unknown => return None,
            Encoding::Single => {}
        }
        let former = self.single;
        if let Ok(descriptor) = Descriptor::parse(payload)
            && descriptor.starts_key()
            && let Some(size) = key_frame_size(&payload[descriptor.len..])
        {
            let lines = size.width.min(size.height);
            self.single = Some(if lines <= MAX_QUARTER_LINES {
                Layer::Q
            } else if lines <= MAX_HALF_LINES {
                Layer::H
            } else {
                Layer::F
            });
        }
        self.single.map(|layer| (layer, former.filter(|&former| former != layer)))
    }
}
