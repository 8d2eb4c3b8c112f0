//! A publisher's packets to its subscribers and its tap, and subscribers' wishes for key frames back.

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

/// The shorter side of an only encoding that is taken for the quarter layer (usually 180), in pixels.
const QUARTER_MAX: u16 = 270;
/// The shorter side of an only encoding that is taken for the half layer (usually 360), in pixels.
const HALF_MAX: u16 = 480;

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
        let packet = PacketIn { late: self.late, ..packet_in(rtp) };
        match track.info.kind {
            Kind::Audio => {
                let blocks = peer.and_then(|p| p.repeats(rtp.header.payload_type));
                let ext_vals = &rtp.header.ext_vals;
                let (level, voice) = (ext_vals.audio_level, ext_vals.voice_activity);
                let sound = Sound { level, voice, blocks };
                self.forward_audio(track_id, packet, &rtp.payload, sound);
            }
            Kind::Video => match track.layer_of(encoding, &rtp.payload) {
                Some((layer, former)) => {
                    if let Some(former) = former {
                        self.rename(track_id, former, layer, packet.arrival);
                    }
                    self.forward_video(track_id, layer, packet, report(rtp), &rtp.payload);
                }
                None => self.counters.rtp_unknown += 1,
            },
        }
    }

    /// A publisher's only encoding is another layer from this key frame on: those who have it go on with it, and the tap and what everybody is
    /// given are decided anew.
    pub(super) fn rename(&mut self, track_id: TrackId, former: Layer, layer: Layer, now: Instant) {
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
        (self.next_allocation, self.due) = (now, now);
    }

    /// Forwards a packet of audio, of this node's publisher or another's.
    pub(super) fn forward_audio(
        &mut self,
        track_id: TrackId,
        packet: PacketIn,
        payload: &Arc<[u8]>,
        sound: Sound,
    ) {
        let Some(track) = self.tracks.get(&track_id) else { return };
        let from = track.info.participant;
        if let Some(level) = sound.level
            && let Some(room) = self.rooms.get_mut(&*track.room)
        {
            room.speakers.hear(packet.arrival, from, level);
        }
        let red = sound.blocks.map(|opus| (Red::parse(payload, *opus), opus));
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
                    && peer.send_audio(slot, track_id, packet, payload, (sound, red))
                {
                    self.counters.rtp_out += 1;
                }
            }
        }
        self.outputs.extend(track.relay(None, &packet, payload, sound));
    }

    /// Forwards a packet of video, of this node's publisher, with what that last said about its clock, or another's.
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
                track.keyframes.arrived(layer, packet.arrival);
                let size = key_frame_size(&payload[descriptor.len..]);
                track.sizes[layer as usize] = size.or(track.sizes[layer as usize]);
            }
            if !descriptor.inter && descriptor.end && packet.marker {
                track.keyframes.whole(layer, packet.arrival);
            }
        }
        track.alignment.saw(layer, packet.timestamp, report);
        packet.stale = track.recent.push(layer, packet, payload);
        let source = Source { track: track_id, layer };
        let made = (track.tapped(), track.scale(self.config.scale));
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
                if sent.new_epoch && peer.announce(slot, made, &mut self.outputs) {
                    self.outputs.extend(track.begin_whole());
                }
            }
        }
        self.outputs.extend(track.relay(Some(layer), &packet, payload, Sound::default()));
        if let Some(tap) = track.tap.as_mut().filter(|tap| tap.layer() == layer) {
            tap.push(packet, payload);
            self.collect_tap(track_id);
        } else if let Some(capture) = track.capture.as_mut().filter(|c| c.layer() == layer) {
            capture.push(packet, payload);
            self.collect_tap(track_id);
        }
    }

    /// Hands on what a tap has made.
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

    /// Hands on what all taps have made.
    pub(super) fn collect_taps(&mut self) {
        let tapped: Vec<_> =
            self.tracks.iter().filter(|(_, t)| t.tap.is_some()).map(|(&id, _)| id).collect();
        for track in tapped {
            self.collect_tap(track);
        }
    }

    /// The enhancer's queue did not take something of this stream, of its pictures at HR size if `captured`.
    pub fn tap_refused(&mut self, now: Instant, stream: StreamId, captured: bool) {
        self.counters.tap_overflows += 1;
        let Some(track) = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t)) else {
            return;
        };
        match (&mut track.tap, &mut track.capture) {
            (_, Some(capture)) if captured => capture.refused(),
            (Some(tap), _) if !captured => tap.refused(),
            _ => return,
        }
        self.due = now;
    }

    /// A subscriber's decoder needs a key frame on one of its m-lines.
    pub(super) fn key_frame_wanted(&mut self, id: ParticipantId, mid: Mid) {
        self.counters.keyframe_requests_in += 1;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let congested = peer.downlink.state() == State::Congested;
        let Some(slot) = peer.slots.iter_mut().find(|s| s.mid == mid) else { return };
        let Some(source) = slot.video.current() else { return };
        if congested {
            // It would be lost, and much else with it.
            slot.key_owed = true;
            return;
        }
        if let Some(track) = self.tracks.get_mut(&source.track) {
            track.keyframes.want_repair(Some(id), source.layer);
        }
    }

    /// Asks publishers for the key frames that anybody waits for.
    pub(super) fn request_key_frames(&mut self, now: Instant) {
        for peer in self
            .peers
            .values_mut()
            .filter(|p| p.connected && p.downlink.state() != State::Congested)
        {
            for slot in peer.slots.iter_mut().filter(|s| s.key_owed) {
                slot.key_owed = false;
                let Some(source) = slot.video.current() else { continue };
                if let Some(track) = self.tracks.get_mut(&source.track) {
                    track.keyframes.want_repair(Some(peer.id), source.layer);
                }
            }
        }
        for peer in self.peers.values().filter(|p| p.connected) {
            for wanted in peer.slots.iter().filter_map(|s| s.video.waits_for()) {
                // A layer that is not being sent has no key frames to ask for.
                let track = self.tracks.get_mut(&wanted.track);
                if let Some(track) = track.filter(|t| t.layers.rate(wanted.layer, now).is_some()) {
                    track.keyframes.want(Some(peer.id), wanted.layer);
                }
            }
        }
        for track in self.tracks.values_mut() {
            if track.afar.is_some() {
                let asked = track.keyframes.poll(now).and_then(|l| track.key_frame_afar(l));
                self.counters.keyframe_requests_out += u64::from(asked.is_some());
                self.outputs.extend(asked);
                continue;
            }
            let publisher = self.peers.get_mut(&track.info.participant);
            let Some(publisher) = publisher.filter(|p| p.connected && !track.info.muted) else {
                track.keyframes.forget();
                continue;
            };
            if let Some(tap) = &mut track.tap
                && track.layers.rate(tap.layer(), now).is_some()
                && tap.asks_for_key(now)
            {
                track.keyframes.want_repair(None, tap.layer());
            }
            if let Some(capture) = &mut track.capture
                && track.layers.rate(capture.layer(), now).is_some()
                && capture.asks_for_key(now)
            {
                track.keyframes.want_repair(None, capture.layer());
            }
            if let Some(layer) = track.keyframes.poll(now)
                && publisher.request_key_frame(track.mid, layer)
            {
                self.counters.keyframe_requests_out += 1;
            }
        }
    }
}

/// What a packet of audio says beside its payload.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sound {
    /// How loud it is, in dBov.
    pub(super) level: Option<i8>,
    /// Whether that is a voice.
    pub(super) voice: Option<bool>,
    /// The payload type of its blocks, where it is Opus with redundancy.
    pub(super) blocks: Option<Pt>,
}

/// What forwarding looks at of a packet.
fn packet_in(rtp: &RtpPacket) -> PacketIn {
    PacketIn {
        seq: *rtp.seq_no,
        timestamp: rtp.header.timestamp,
        arrival: rtp.timestamp,
        late: Duration::ZERO,
        marker: rtp.header.marker,
        stale: false,
    }
}

/// What the packet's sender last said about its clock.
fn report(rtp: &RtpPacket) -> Option<Report> {
    rtp.last_sender_info.map(|r| (r.ntp_time, r.rtp_time.numer() as u32))
}

impl Track {
    /// The layer of an encoding, and that which it was before. An only one is named by the size of its last key frame.
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
            && let Some((width, height)) = key_frame_size(&payload[descriptor.len..])
        {
            let lines = width.min(height);
            self.single = Some(if lines <= QUARTER_MAX {
                Layer::Q
            } else if lines <= HALF_MAX {
                Layer::H
            } else {
                Layer::F
            });
        }
        self.single.map(|layer| (layer, former.filter(|&former| former != layer)))
    }
}
