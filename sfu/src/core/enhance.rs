//! Anchors to every subscriber of an enhanced rung: those that the enhancer makes, and a publisher's stills.

use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_types::{
    Anchor, AnchorSource, CAPTURED_WITHIN, EnhancerOutput, EnhancerRequest, Epoch, Layer,
    LayerKnobs, PublisherKnobs, PublisherUplink, Rung, StageTimes, StreamId,
};

use super::anchors::{Verdict, messages};
use super::peer::{Peer, Slot};
use super::regions::{Refused, enlarged};
use super::rewriter::Source;
use super::{Core, Output};
use crate::api::{ParticipantId, SfuEvent, TrackId, UplinkReport};
use crate::stats::Counters;

/// What our SDK lets each layer have, in kbit/s.
const MOST_KBPS: [f64; 3] = [150.0, 500.0, 1500.0];
/// More than cameras give.
const ANY_FPS: f64 = 120.0;

/// A layer that nobody adapts: the client's own limits hold.
pub fn unbounded(layer: Layer) -> (Layer, LayerKnobs) {
    let kbps = MOST_KBPS[layer as usize];
    (layer, LayerKnobs { active: true, kbps, fps: ANY_FPS, needed: false })
}

/// An anchor on its way to subscribers.
pub(super) struct Parcel<'a> {
    pub(super) anchor: &'a Anchor,
    /// What its frame is of, by whose RTP timestamp it goes.
    pub(super) source: Source,
    /// The layer that anchors are made for now.
    pub(super) tapped: Layer,
}

impl Core {
    /// Takes what the enhancer made.
    pub fn enhancer(&mut self, now: Instant, output: EnhancerOutput) {
        match output {
            EnhancerOutput::Anchor(anchor) => self.anchor(now, &anchor),
            EnhancerOutput::NeedKeyFrame { stream } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(tap) = track.and_then(|t| t.tap.as_mut()) {
                    tap.need_key();
                    self.due = now;
                }
            }
            EnhancerOutput::Scale { stream, epoch, scale } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                let layer = track.as_ref().and_then(|t| t.tap.as_ref()?.layer_of(epoch));
                if let Some((track, layer)) = track.zip(layer) {
                    track.scaled = Some((layer, scale));
                    (self.next_allocation, self.due) = (now, now);
                }
            }
            EnhancerOutput::Refused { stream, reason } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(track) = track {
                    track.refused = reason;
                }
            }
            EnhancerOutput::Knobs { stream, knobs } => self.adapted(now, stream, knobs),
            EnhancerOutput::WantRegions { stream, size, tiles, bytes } => {
                self.ask_for_regions(now, stream, size, &tiles, bytes);
            }
            EnhancerOutput::NeedCapturedKeyFrame { stream } => {
                let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
                if let Some(capture) = track.and_then(|t| t.capture.as_mut()) {
                    capture.need_key();
                    self.due = now;
                }
            }
        }
    }

    /// A subscriber has none of the anchors that those of a track are added to.
    pub fn whole_anchor_wanted(&mut self, now: Instant, id: ParticipantId, track: TrackId) {
        self.counters.whole_anchor_requests_in += 1;
        let Some(t) = self.tracks.get_mut(&track) else { return };
        let Some((layer, peer)) = t.tapped().zip(self.peers.get(&id)) else { return };
        let holds = |slot: &Slot| {
            let rung = slot.enhanced(Some(layer), peer.can_take_anchors());
            rung.is_some_and(|(held, rung)| held == track && rung.enhanced())
        };
        if !peer.slots.iter().any(holds) {
            return;
        }
        self.outputs.extend(t.ask_whole(now));
        self.due = now;
    }

    fn anchor(&mut self, now: Instant, anchor: &Anchor) {
        self.counters.anchors_in += 1;
        let track = self.streams.get(&anchor.stream).and_then(|t| self.tracks.get_mut(t));
        let made_of = track.and_then(|t| {
            let tap = t.tap.as_ref()?;
            Some((tap.layer(), tap.layer_of(anchor.epoch)?, t))
        });
        let Some((tapped, layer, track)) = made_of else {
            self.counters.anchors_due += 1;
            self.counters.anchors_dropped_unmapped += 1;
            return;
        };
        track.costs.count(anchor.source, anchor.payload.len());
        let source = Source { track: track.info.track, layer };
        let parcel = Parcel { anchor, source, tapped };
        self.give_all(now, source.track, &parcel);
    }

    /// A publisher says what its uplink carries: what it sends is adapted to that. Our SDK says so where the user has agreed to stills.
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
        let sane = [report.kbps, report.fps].iter().all(|v| v.is_finite() && *v > 0.0);
        let adapts = self.config.adapt && sane && track.capture.is_none();
        let (Some(tap), Some(stream)) = (&track.tap, track.info.stream) else { return };
        if adapts {
            let UplinkReport { kbps, size, fps } = report;
            let layer = tap.layer();
            let rate = |l| track.layers.rate(l, now).map_or(0.0, |bps| bps as f64 / 1000.0);
            let others: f64 = Layer::ALL.into_iter().filter(|&l| l != layer).map(rate).sum();
            let kbps = (kbps - others).min(MOST_KBPS[layer as usize]);
            let uplink = PublisherUplink { layer, kbps, size, fps };
            self.outputs.push_back(Output::Tap(EnhancerRequest::Uplink(uplink).of(stream)));
        }
    }

    /// Somebody who watches a track says by how much its picture got worse with each of so many frames after an anchor, in mean
    /// square grey levels.
    pub fn decay(&mut self, id: ParticipantId, track: TrackId, decay: (f64, f64)) {
        let Some(t) = self.tracks.get(&track).filter(|t| t.subscribers.contains(&id)) else {
            return;
        };
        // Who has no anchors cannot have seen that.
        let holds = |peer: &Peer| {
            let mut slots = peer.slots.iter().filter(|slot| slot.track == Some(track));
            slots.any(|slot| slot.rung.is_some_and(Rung::enhanced))
        };
        if !self.peers.get(&id).is_some_and(holds) {
            return;
        }
        let Some(stream) = t.info.stream.filter(|_| t.tap.is_some()) else { return };
        if [decay.0, decay.1].iter().all(|v| v.is_finite() && *v >= 0.0) {
            let decay = EnhancerRequest::Decay { viewer: id.0, decay };
            self.outputs.push_back(Output::Tap(decay.of(stream)));
        }
    }

    /// The controller wants other knobs of a publisher.
    fn adapted(&mut self, now: Instant, stream: StreamId, knobs: PublisherKnobs) {
        let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
        let Some(track) = track.filter(|t| t.tap.is_some() && knobs.layer < Layer::F) else {
            return;
        };
        let before = track.adapted.replace(knobs);
        let PublisherKnobs { layer, kbps, fps } = knobs;
        let mut layers = vec![(layer, LayerKnobs { active: true, kbps, fps, needed: false })];
        if layer == Layer::Q {
            // The larger one would only take its bits.
            layers.push((Layer::H, LayerKnobs { active: false, ..unbounded(Layer::H).1 }));
        } else if before.is_some_and(|before| before.layer == Layer::Q) {
            layers.push(unbounded(Layer::Q));
        }
        self.outputs.push_back(track.knobs(layers));
        self.next_allocation = now;
        self.due = now;
    }

    /// Asks the publisher of a stream for tiles of its low layer, of this size.
    fn ask_for_regions(
        &mut self,
        now: Instant,
        stream: StreamId,
        size: (u16, u16),
        tiles: &[u8],
        bytes: usize,
    ) {
        let track = self.streams.get(&stream).and_then(|t| self.tracks.get(t));
        let Some(track) = track.filter(|t| t.regions && !t.info.muted) else { return };
        let id = track.info.participant;
        let Some(publisher) = self.peers.get_mut(&id).filter(|p| p.gives_regions()) else { return };
        let (track, scale) = (track.info.track, track.scale(self.config.scale));
        if let Some(request) = publisher.regions.ask(now, track, (size, scale), tiles, bytes) {
            self.counters.region_requests += 1;
            self.outputs.push_back(Output::Event(id, SfuEvent::Regions { track, request }));
        }
    }

    /// Takes a message of a publisher's region channel.
    pub(super) fn take_region(&mut self, now: Instant, id: ParticipantId, message: &[u8]) {
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
        let size = tap.size().map(|low| enlarged(low, scale));
        if size != Some((answer.header.width, answer.header.height)) {
            // It was asked for before the layer or its scale changed.
            return self.counters.regions_unasked += 1;
        }
        self.counters.regions_in += 1;
        track.costs.count(AnchorSource::Captured, answer.payload.len());
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
        self.outputs.push_back(Output::Tap(given.of(anchor.stream)));
        let parcel = Parcel { anchor: &anchor, source, tapped: layer };
        self.give_all(now, id, &parcel);
    }

    /// Sends an anchor to every subscriber of its track that it is for.
    pub(super) fn give_all(&mut self, now: Instant, track: TrackId, parcel: &Parcel<'_>) {
        let Some(track) = self.tracks.get(&track) else { return };
        self.outputs.extend(track.relay_anchor(parcel));
        let budget = track.budget(self.config.budget);
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            for slot in 0..peer.slots.len() {
                give(now, peer, slot, parcel, budget, &mut self.counters);
            }
        }
        self.due = now;
    }
}

/// Sends an anchor on a slot, if that is for it.
fn give(
    now: Instant,
    peer: &mut Peer,
    slot: usize,
    parcel: &Parcel<'_>,
    budget: Duration,
    counters: &mut Counters,
) {
    let Parcel { anchor, source, tapped } = *parcel;
    let holds = peer.slots[slot].enhanced(Some(tapped), peer.can_take_anchors());
    if !holds.is_some_and(|(id, rung)| id == source.track && rung.enhanced()) {
        return;
    }
    let video = &peer.slots[slot].video;
    if !peer.takes_anchors() {
        return;
    }
    counters.anchors_due += 1;
    let Some((timestamp, epoch)) = video.locate(source, anchor.rtp_timestamp) else {
        counters.anchors_dropped_unmapped += 1;
        peer.slots[slot].sent.anchors_dropped += 1;
        return;
    };
    let age = now.saturating_duration_since(anchor.arrival);
    let budget = match anchor.source {
        AnchorSource::Captured => budget.max(CAPTURED_WITHIN),
        AnchorSource::Enhanced => budget,
    };
    let buffered = peer.channel_buffered();
    let bytes = anchor.payload.len();
    let verdict = peer.pacer.admit(now, peer.anchor_rate_bps, buffered, bytes, age, budget);
    let Verdict::Send(takes) = verdict else {
        let late = verdict == Verdict::Late;
        counters.anchors_dropped_late += u64::from(late);
        counters.anchors_dropped_full += u64::from(!late);
        peer.slots[slot].sent.anchors_dropped += 1;
        return;
    };
    let Some(messages) = messages(anchor, timestamp, epoch, age + takes, peer.pacer.max_message())
    else {
        counters.anchors_dropped_malformed += 1;
        return;
    };
    peer.pacer.push(now, peer.slots[slot].mid, messages, age, budget);
    peer.wake.touch();
    peer.release_anchors(now, counters);
}
