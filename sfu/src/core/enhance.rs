//! What comes back from the enhancer, to every subscriber of an enhanced rung.

use std::time::Instant;

use windlass_media::{Anchor, EnhancerOutput, TapInput};

use super::anchors::{Verdict, messages};
use super::peer::Slot;
use super::rewriter::Source;
use super::{Core, Output};
use crate::api::{ParticipantId, TrackId};

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
        let tap = self.tracks.get_mut(&track).and_then(|t| t.tap.as_mut());
        let Some((tap, peer)) = tap.zip(self.peers.get(&id)) else { return };
        let layer = tap.layer();
        let holds = |slot: &Slot| {
            let rung = slot.enhanced(Some(layer), peer.can_take_anchors());
            rung.is_some_and(|(held, rung)| held == track && rung.enhanced())
        };
        if peer.slots.iter().any(holds) && tap.passes_whole(now) {
            self.outputs.push_back(Output::Tap(TapInput::WholeAnchor { stream: tap.stream() }));
        }
    }

    fn anchor(&mut self, now: Instant, anchor: &Anchor) {
        self.counters.anchors_in += 1;
        let age = now.saturating_duration_since(anchor.arrival);
        let budget = self.config.budget;
        self.counters.anchors_dropped_late += u64::from(age > budget);
        let track = self.streams.get(&anchor.stream).and_then(|t| self.tracks.get_mut(t));
        let made_of = track.and_then(|t| {
            let tap = t.tap.as_ref()?;
            Some((tap.layer(), tap.layer_of(anchor.epoch)?, t))
        });
        let Some((tapped, layer, track)) = made_of else {
            self.counters.anchors_dropped_unmapped += 1;
            return;
        };
        track.anchor_bytes += anchor.payload.len() as u64;
        let source = Source { track: track.info.track, layer };
        for subscriber in &track.subscribers {
            let Some(peer) = self.peers.get_mut(subscriber) else { continue };
            for slot in 0..peer.slots.len() {
                let holds = peer.slots[slot].enhanced(Some(tapped), peer.can_take_anchors());
                if !holds.is_some_and(|(id, rung)| id == source.track && rung.enhanced()) {
                    continue;
                }
                let place = peer.slots[slot].video.locate(source, anchor.rtp_timestamp);
                let Some((timestamp, epoch)) = place else {
                    self.counters.anchors_dropped_unmapped += 1;
                    peer.slots[slot].sent.anchors_dropped += 1;
                    continue;
                };
                let Some(messages) = messages(anchor, timestamp, epoch, age) else {
                    self.counters.anchors_dropped_malformed += 1;
                    continue;
                };
                let bytes = messages.iter().map(Vec::len).sum();
                let buffered = peer.channel_buffered();
                let verdict =
                    peer.pace.admit(now, peer.anchor_rate_bps, buffered, bytes, age, budget);
                if verdict == Verdict::Send && peer.send_messages(&messages) {
                    self.counters.anchors_out += 1;
                    peer.slots[slot].anchor_sent(bytes);
                } else {
                    self.counters.anchors_dropped_full += u64::from(verdict != Verdict::Late);
                    peer.slots[slot].sent.anchors_dropped += 1;
                }
            }
        }
        self.due = now;
    }
}
