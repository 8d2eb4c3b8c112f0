//! Anchors for the subscribers of enhanced rungs: from the enhancer, and a publisher's stills.

use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_types::{
    Anchor, AnchorSource, Bitrate, CAPTURED_WITHIN, EnhancerOutput, EnhancerRequest, Epoch, Layer,
    PublisherUplink, Rung, Size, StageTimes, StreamId,
};

use super::anchor_channel::AnchorChannel;
use super::anchors::{Verdict, messages};
use super::peer::Peer;
use super::publisher_params::SDK_MAX;
use super::regions::Refused;
use super::rewriter::Source;
use super::slot::Slot;
use super::{Core, Output};
use crate::api::{Decay, ParticipantId, SfuEvent, TrackId, UplinkReport};
use crate::stats::Counters;

/// An anchor for subscribers.
pub(super) struct OutgoingAnchor<'a> {
    pub(super) anchor: &'a Anchor,
    /// Track and layer of its frame, by whose RTP timestamp it is placed.
    pub(super) source: Source,
    /// The layer that is tapped now.
    pub(super) tapped: Layer,
}

impl Core {
    /// Takes an output of the enhancer.
    pub fn on_enhancer_output(&mut self, now: Instant, output: EnhancerOutput) {
        match output {
            EnhancerOutput::Anchor(anchor) => self.on_anchor(now, &anchor),
            EnhancerOutput::NeedKeyFrame { stream } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(tap) = track.and_then(|t| t.tap.as_mut()) {
                    tap.await_key();
                    self.schedule.wake(now);
                }
            }
            EnhancerOutput::Scale { stream, epoch, scale } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                let layer = track.as_ref().and_then(|t| t.tap.as_ref()?.layer_of(epoch));
                if let Some((track, layer)) = track.zip(layer) {
                    track.tap_history.enhanced = Some((layer, scale));
                    self.schedule.allocate_now(now);
                }
            }
            EnhancerOutput::Refused { stream, reason } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(track) = track {
                    track.refused = reason;
                }
            }
            EnhancerOutput::Knobs { stream, knobs } => self.on_adaptation(now, stream, knobs),
            EnhancerOutput::WantRegions { stream, size, tiles, bytes } => {
                self.request_regions(now, stream, size, &tiles, bytes);
            }
            EnhancerOutput::NeedCapturedKeyFrame { stream } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(capture) = track.and_then(|t| t.capture.as_mut()) {
                    capture.await_key();
                    self.schedule.wake(now);
                }
            }
        }
    }

    /// Requests a key anchor for a subscriber that lacks the anchors before it.
    pub fn request_whole_anchor(&mut self, now: Instant, id: ParticipantId, track: TrackId) {
        self.counters.whole_anchor_requests_in += 1;
        let Some(t) = self.tracks.get_mut(&track) else { return };
        let Some((layer, peer)) = t.tapped().zip(self.peers.get(&id)) else { return };
        let holds = |slot: &Slot| {
            let rung = slot.effective_rung(Some(layer), peer.can_receive_anchors());
            rung.is_some_and(|(held, rung)| held == track && rung.enhanced())
        };
        if !peer.slots.iter().any(holds) {
            return;
        }
        self.outputs.extend(t.request_whole_anchor(now));
        self.schedule.wake(now);
    }

    fn on_anchor(&mut self, now: Instant, anchor: &Anchor) {
        self.counters.anchors_in += 1;
        let track = self.streams.get(&anchor.stream).and_then(|t| self.tracks.get_mut(t));
        let tapped_track = track.and_then(|t| {
            let tap = t.tap.as_ref()?;
            Some((tap.layer(), tap.layer_of(anchor.epoch)?, t))
        });
        let Some((tapped, layer, track)) = tapped_track else {
            self.counters.anchors_due += 1;
            self.counters.anchors_dropped_unmapped += 1;
            return;
        };
        track.anchor_costs.count(anchor.source, anchor.payload.len());
        let source = Source { track: track.info.track, layer };
        self.send_anchor(now, &OutgoingAnchor { anchor, source, tapped });
    }

    /// Passes a publisher's uplink bandwidth to the enhancer's controller. Our SDK reports it where the user has agreed to stills.
    pub fn uplink(
        &mut self,
        now: Instant,
        id: ParticipantId,
        track: TrackId,
        report: UplinkReport,
    ) {
        let Some(track) = self.tracks.get(&track).filter(|t| t.info.participant == id) else {
            return;
        };
        let valid = report.bitrate > Bitrate::ZERO && report.fps.is_finite() && report.fps > 0.0;
        let adapts = self.config.adapt && valid && track.capture.is_none();
        let (Some(tap), Some(stream)) = (&track.tap, track.info.stream) else { return };
        if adapts {
            let layer = tap.layer();
            let others = Layer::ALL.into_iter().filter(|&l| l != layer);
            let others: Bitrate = others.filter_map(|l| track.layers.rate(l, now)).sum();
            let bitrate = report.bitrate.saturating_sub(others).min(SDK_MAX[layer as usize]);
            let uplink = PublisherUplink { layer, report: UplinkReport { bitrate, ..report } };
            self.outputs.push_back(Output::Request(stream, EnhancerRequest::Uplink(uplink)));
        }
    }

    /// Passes a subscriber's measured decay of a track to the enhancer.
    pub fn decay(&mut self, id: ParticipantId, track: TrackId, decay: Decay) {
        let Some(t) = self.tracks.get(&track).filter(|t| t.subscribers.contains(&id)) else {
            return;
        };
        // A subscriber without anchors cannot have measured it.
        let holds = |peer: &Peer| {
            let mut slots = peer.slots.iter().filter(|slot| slot.track == Some(track));
            slots.any(|slot| slot.rung.is_some_and(Rung::enhanced))
        };
        if !self.peers.get(&id).is_some_and(holds) {
            return;
        }
        let Some(stream) = t.info.stream.filter(|_| t.tap.is_some()) else { return };
        if [decay.per_frame, decay.frames].iter().all(|v| v.is_finite() && *v >= 0.0) {
            let decay = EnhancerRequest::Decay { viewer: id.0, decay };
            self.outputs.push_back(Output::Request(stream, decay));
        }
    }

    /// Requests a still from the publisher of a stream: these tiles of its low layer.
    fn request_regions(
        &mut self,
        now: Instant,
        stream: StreamId,
        size: Size,
        tiles: &[u8],
        bytes: usize,
    ) {
        let track = self.streams.get(&stream).and_then(|t| self.tracks.get(t));
        let Some(track) = track.filter(|t| t.regions && !t.info.muted) else { return };
        let id = track.info.participant;
        let Some(publisher) = self.peers.get_mut(&id).filter(|p| p.channels.has_region()) else {
            return;
        };
        let (track, scale) = (track.info.track, track.scale(self.config.scale));
        if let Some(request) = publisher.regions.request(now, track, size, scale, tiles, bytes) {
            self.counters.region_requests += 1;
            self.outputs.push_back(Output::Event(id, SfuEvent::Regions { track, request }));
        }
    }

    /// Takes a message of a publisher's region channel.
    pub(super) fn on_region_message(&mut self, now: Instant, id: ParticipantId, message: &[u8]) {
        let Some(publisher) = self.peers.get_mut(&id) else { return };
        let (id, answer) = match publisher.regions.take(now, message) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(Refused::Malformed) => return self.counters.regions_malformed += 1,
            Err(Refused::Unasked) => return self.counters.regions_unasked += 1,
        };
        let Some(track) = self.tracks.get_mut(&id).filter(|t| !t.info.muted) else { return };
        let (Some(tap), Some(stream)) = (&track.tap, track.info.stream) else { return };
        let scale = track.scale(self.config.scale);
        let size = tap.size().map(|low| low.scaled(scale));
        if size != Some(answer.header.size()) {
            // The layer or its scale has changed since the request.
            return self.counters.regions_unasked += 1;
        }
        self.counters.regions_in += 1;
        track.anchor_costs.count(AnchorSource::Captured, answer.payload.len());
        let (header, layer) = (answer.header, tap.layer());
        let payload = Bytes::from(answer.payload);
        let anchor = Anchor {
            stream,
            epoch: Epoch(0),
            rtp_timestamp: header.rtp_timestamp,
            arrival: now,
            source: AnchorSource::Captured,
            codec: header.codec,
            tiled: header.tiled,
            width: header.width,
            height: header.height,
            beyond_prior: header.beyond_prior,
            payload,
            times: StageTimes::default(),
        };
        let source = Source { track: id, layer };
        let given = EnhancerRequest::Given(anchor.clone());
        self.outputs.push_back(Output::Request(stream, given));
        self.send_anchor(now, &OutgoingAnchor { anchor: &anchor, source, tapped: layer });
    }

    /// Sends an anchor to the subscribers of its track that hold an enhanced rung of the tapped layer.
    pub(super) fn send_anchor(&mut self, now: Instant, outgoing: &OutgoingAnchor<'_>) {
        let Some(track) = self.tracks.get(&outgoing.source.track) else { return };
        self.outputs.extend(track.relay_anchor(outgoing));
        let budget = track.budget(self.config.budget);
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            for slot in 0..peer.slots.len() {
                peer.send_anchor(now, slot, outgoing, budget, &mut self.counters);
            }
        }
        self.schedule.wake(now);
    }
}

impl Peer {
    /// Sends an anchor on a slot, if the slot holds an enhanced rung of the tapped layer.
    fn send_anchor(
        &mut self,
        now: Instant,
        slot: usize,
        outgoing: &OutgoingAnchor<'_>,
        budget: Duration,
        counters: &mut Counters,
    ) {
        let OutgoingAnchor { anchor, source, tapped } = *outgoing;
        let held = self.slots[slot].effective_rung(Some(tapped), self.can_receive_anchors());
        if !held.is_some_and(|(id, rung)| id == source.track && rung.enhanced()) {
            return;
        }
        counters.anchors_due += 1;
        let place = self.slots[slot].video.locate(source, anchor.rtp_timestamp);
        let Some((timestamp, epoch)) = place else {
            counters.anchors_dropped_unmapped += 1;
            self.slots[slot].sent.anchors_dropped += 1;
            return;
        };
        let age = now.saturating_duration_since(anchor.arrival);
        let budget = match anchor.source {
            AnchorSource::Captured => budget.max(CAPTURED_WITHIN),
            AnchorSource::Enhanced => budget,
        };
        let buffered = self.anchor_bytes_buffered();
        let AnchorChannel { pacer, rate, .. } = &mut self.anchors;
        let verdict = pacer.admit(now, *rate, buffered, anchor.payload.len(), age, budget);
        let Verdict::Send(send_time) = verdict else {
            let late = verdict == Verdict::Late;
            counters.anchors_dropped_late += u64::from(late);
            counters.anchors_dropped_full += u64::from(!late);
            self.slots[slot].sent.anchors_dropped += 1;
            return;
        };
        let arrival_age = age + send_time;
        let messages = messages(anchor, timestamp, epoch, arrival_age, pacer.max_message());
        let Some(messages) = messages else {
            counters.anchors_dropped_malformed += 1;
            return;
        };
        pacer.push(now, self.slots[slot].mid, messages, age, budget);
        self.wake.touch();
        self.release_anchors(now, counters);
    }
}
