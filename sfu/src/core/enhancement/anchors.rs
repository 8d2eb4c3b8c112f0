//! Anchors for the subscribers of enhanced rungs: from the enhancer, and a publisher's stills.

use std::time::Instant;

use windlass_types::tiles::TileMap;
use windlass_types::{
    Anchor, EnhancerOutput, EnhancerRequest, Layer, PublisherKnobs, Rung, Size, StreamId,
};

use crate::api::{
    DecayReport, ParticipantId, ReportError, SfuEvent, TakenReport, TrackId, TrackReport,
    UplinkReport,
};
use crate::core::forward::Forwarding;
use crate::core::publisher::stills::{Refused, WHOLE_BYTES};
use crate::core::subscriber::anchor_channel::OutgoingAnchor;
use crate::core::subscriber::rewriter::Source;
use crate::core::subscriber::slot::Slot;
use crate::core::{Core, Output};

impl Core {
    /// Takes an output of the enhancer.
    pub fn on_enhancer_output(&mut self, now: Instant, output: EnhancerOutput) {
        match output {
            EnhancerOutput::Anchor(anchor) => self.on_anchor(now, &anchor),
            EnhancerOutput::NeedKeyFrame { stream } => {
                let track = self.tracks.of_stream_mut(stream);
                if let Some(tap) = track.and_then(|t| t.taps.low_mut()) {
                    tap.await_key();
                    self.schedule.wake(now);
                }
            }
            EnhancerOutput::Scale { stream, epoch, scale } => {
                let track = self.tracks.of_stream_mut(stream);
                if track.is_some_and(|track| track.taps.on_scale(epoch, scale)) {
                    self.schedule.allocate_now(now);
                }
            }
            EnhancerOutput::Refused { stream, reason } => {
                let track = self.tracks.of_stream_mut(stream);
                if let Some(track) = track {
                    track.refused = reason;
                }
            }
            EnhancerOutput::Knobs { stream, knobs } => self.on_adaptation(now, stream, knobs),
            EnhancerOutput::WantRegions { stream, size, tiles, bytes } => {
                self.request_regions(now, stream, size, &tiles, bytes);
            }
            EnhancerOutput::NeedCapturedKeyFrame { stream } => {
                let track = self.tracks.of_stream_mut(stream);
                if let Some(capture) = track.and_then(|t| t.taps.capture_mut()) {
                    capture.await_key();
                    self.schedule.wake(now);
                }
            }
        }
    }

    /// Requests a key anchor for a subscriber that lacks the anchors before it.
    pub fn request_key_anchor(&mut self, now: Instant, id: ParticipantId, track: TrackId) {
        self.counters.key_anchor_requests_in += 1;
        let Some(t) = self.tracks.get_mut(track) else { return };
        let Some((layer, peer)) = t.tapped().zip(self.peers.get(id)) else { return };
        let holds = |slot: &Slot| {
            let rung = slot.effective_rung(Some(layer), peer.can_receive_anchors());
            rung.is_some_and(|(held, rung)| held == track && rung.enhanced())
        };
        if !peer.slots.iter().any(holds) {
            return;
        }
        self.outputs.extend(t.request_key_anchor(now));
        self.schedule.wake(now);
    }

    fn on_anchor(&mut self, now: Instant, anchor: &Anchor) {
        self.counters.anchors_in += 1;
        let track = self.tracks.of_stream_mut(anchor.stream);
        let tapped_track = track.and_then(|t| {
            let tap = t.taps.low()?;
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

    /// Passes a publisher's uplink bandwidth to the enhancer's controller. Our SDK reports it where the user has agreed
    /// to stills.
    pub fn uplink(
        &mut self,
        now: Instant,
        id: ParticipantId,
        track: TrackId,
        report: UplinkReport,
    ) {
        let track = self.tracks.get(track).filter(|t| t.info.participant == id);
        if let Some(track) = track.filter(|_| self.config.adapt) {
            self.outputs.extend(track.uplink(now, report));
        }
    }

    /// Passes a subscriber's measured decay of a track to the enhancer.
    pub fn decay(&mut self, id: ParticipantId, track: TrackId, decay: DecayReport) {
        let Some(t) = self.tracks.get(track).filter(|t| t.subscribers.contains(&id)) else {
            return;
        };
        // A subscriber without anchors cannot have measured it.
        let Some(peer) = self.peers.get(id) else { return };
        let mut slots = peer.slots.iter().filter(|slot| slot.track == Some(track));
        if !slots.any(|slot| slot.subscription.rung.is_some_and(Rung::enhanced)) {
            return;
        }
        let Some(stream) = t.enhanced_stream() else { return };
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
        let track = self.tracks.of_stream(stream).map(|track| track.info.track);
        if let Some(track) = track {
            self.request_still(now, track, size, tiles, bytes);
        }
    }

    /// Requests the due stills of tracks that the enhancer cannot read. It cannot say which tiles lack most either, so
    /// all are asked for.
    pub(crate) fn request_whole_stills(&mut self, now: Instant) {
        let unread = self.tracks.iter_mut().filter(|t| t.taps.is_on() && !t.taps.is_read());
        let due = unread.filter_map(|track| {
            let size = track.tapped_size()?;
            let turn = (track.stills.last_whole(), track.info.track, size);
            track.stills.is_due(now).then_some(turn)
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(last, ..)| *last);
        for (_, track, size) in due {
            let tiles = TileMap::full(size).to_bytes();
            // Of several tracks of one publisher the others come with the next turns.
            if self.request_still(now, track, size, &tiles, WHOLE_BYTES)
                && let Some(track) = self.tracks.get_mut(track)
            {
                track.stills.on_whole_request(now);
            }
        }
    }

    /// Requests a still from the publisher of a track. Returns whether it was asked.
    fn request_still(
        &mut self,
        now: Instant,
        track: TrackId,
        size: Size,
        tiles: &[u8],
        bytes: usize,
    ) -> bool {
        let track = self.tracks.get(track);
        let Some(track) = track.filter(|t| t.stills.usable() && !t.info.muted) else {
            return false;
        };
        let id = track.info.participant;
        let Some(publisher) = self.peers.get_mut(id).filter(|p| p.link.channels.has_region())
        else {
            return false;
        };
        let (track, scale) = (track.info.track, track.scale(self.config.scale));
        let request = publisher.regions.request(now, track, size, scale, tiles, bytes);
        let Some(request) = request else { return false };
        self.counters.region_requests += 1;
        self.outputs.push_back(Output::Event(id, SfuEvent::Regions { track, request }));
        true
    }

    /// Takes a message of a publisher's region channel.
    pub(crate) fn on_region_message(&mut self, now: Instant, id: ParticipantId, message: &[u8]) {
        let Some(publisher) = self.peers.get_mut(id) else { return };
        let (id, answer) = match publisher.regions.take(now, message) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(Refused::Malformed) => return self.counters.regions_malformed += 1,
            Err(Refused::Unasked) => return self.counters.regions_unasked += 1,
        };
        let Some(track) = self.tracks.get_mut(id).filter(|t| !t.info.muted) else { return };
        let Some(layer) = track.taps.layer() else { return };
        let Some(anchor) = track.still(now, answer, self.config.scale) else {
            // The layer or its scale has changed since the request.
            return self.counters.regions_unasked += 1;
        };
        self.counters.regions_in += 1;
        track.stills.on_answer();
        track.anchor_costs.count(anchor.source, anchor.payload.len());
        let source = Source { track: id, layer };
        if let Some(stream) = track.enhanced_stream() {
            let given = EnhancerRequest::Given(anchor.clone());
            self.outputs.push_back(Output::Request(stream, given));
        }
        self.send_anchor(now, &OutgoingAnchor { anchor: &anchor, source, tapped: layer });
    }

    /// Sends an anchor to the subscribers of its track that hold an enhanced rung of the tapped layer.
    pub(crate) fn send_anchor(&mut self, now: Instant, outgoing: &OutgoingAnchor<'_>) {
        let Some(track) = self.tracks.get(outgoing.source.track) else { return };
        let mut to = Forwarding {
            peers: &mut self.peers,
            counters: &mut self.counters,
            outputs: &mut self.outputs,
        };
        to.anchor(now, track, *outgoing, self.config.budget);
        self.record_anchor(outgoing.source, outgoing.anchor);
        self.schedule.wake(now);
    }

    /// Applies parameters from the enhancer's controller.
    fn on_adaptation(&mut self, now: Instant, stream: StreamId, knobs: PublisherKnobs) {
        let track = self.tracks.of_stream_mut(stream);
        let Some(track) = track.filter(|t| t.taps.is_read() && knobs.layer < Layer::F) else {
            return;
        };
        let layers = track.params.adapt(knobs);
        self.outputs.push_back(track.ask(layers));
        self.schedule.allocate_now(now);
    }

    /// Takes a subscriber's report on a track: anchors, their decay as in [`Core::decay`], and the network that runs on
    /// every frame. Where that has begun or ended, rungs are allocated at once.
    ///
    /// # Errors
    ///
    /// Fails if the participant does not subscribe to the track, or has sent a report on it less than a second ago.
    pub fn report(
        &mut self,
        now: Instant,
        id: ParticipantId,
        track: TrackId,
        report: TrackReport,
    ) -> Result<TakenReport, ReportError> {
        let peer = self.peers.get_mut(id).ok_or(ReportError::NotWatched)?;
        let slot = peer.slots_of(track).next().ok_or(ReportError::NotWatched)?;
        let taken = slot.subscription.sent.report_quota.take(now, report.anchors)?;
        if slot.subscription.network.report(now, report.network) {
            self.schedule.allocate_now(now);
        }
        // A subscriber without anchors cannot have measured their decay.
        if let Some(decay) = report.decay.filter(|_| slot.subscription.sent.anchors > 0) {
            self.decay(id, track, decay);
        }
        Ok(taken)
    }
}
