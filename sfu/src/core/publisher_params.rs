//! What publishers are asked to send of their layers: bitrate, frame rate, and which layers.

use std::collections::BTreeMap;
use std::time::Instant;

use windlass_types::{Bitrate, EnhancerRequest, Layer, LayerKnobs, PublisherKnobs, Rung, StreamId};

use super::dynacast;
use super::peer::Peer;
use super::view::View;
use super::{Core, Output, Track};
use crate::api::{Kind, SfuEvent, TrackId};

/// Maximum bitrates of the layers in our SDK (`client-web/src/sdk/uplink/layers.ts`), which are those that Chromium gives them.
pub(super) const SDK_MAX: [Bitrate; 3] =
    [Bitrate::bps(150_000), Bitrate::bps(500_000), Bitrate::bps(1_500_000)];
/// A frame rate above that of any camera: no limit.
const UNLIMITED_FPS: f64 = 120.0;
/// The quarter layer while no subscriber holds it and its bits serve the half layer better. It stays on, so that newcomers have it at once.
const STANDBY: LayerKnobs =
    LayerKnobs { active: true, bitrate: Bitrate::bps(30_000), fps: 10.0, needed: false };

/// A layer without limits of the server: the client's own limits hold.
fn unlimited(layer: Layer) -> LayerKnobs {
    let bitrate = SDK_MAX[layer as usize];
    LayerKnobs { active: true, bitrate, fps: UNLIMITED_FPS, needed: false }
}

/// What the publisher of a track was asked to send.
#[derive(Debug)]
pub(super) struct PublisherParams {
    /// Last parameters of the smallest layer.
    smallest: LayerKnobs,
    /// Parameters from the enhancer's controller; `None` before it has sent any.
    adapted: Option<PublisherKnobs>,
    /// Whether the quarter layer is on [`STANDBY`].
    standby: bool,
}

impl Default for PublisherParams {
    fn default() -> PublisherParams {
        PublisherParams { smallest: unlimited(Layer::Q), adapted: None, standby: false }
    }
}

impl PublisherParams {
    fn adapts(&self, layer: Layer) -> bool {
        self.adapted.is_some_and(|adapted| adapted.layer == layer)
    }

    /// Whether the controller has ended the layer: it would take bits from the adapted one.
    pub(super) fn has_ended(&self, layer: Layer) -> bool {
        layer == Layer::H && self.adapts(Layer::Q)
    }
}

impl Track {
    /// Asks the publisher to send `layers` with these parameters; other layers stay as they are.
    fn send_params(&mut self, mut layers: Vec<(Layer, LayerKnobs)>) -> Output {
        for (_, params) in layers.iter_mut().filter(|(layer, _)| *layer == Layer::Q) {
            params.needed = self.params.smallest.needed;
            self.params.smallest = *params;
        }
        let event = SfuEvent::Knobs { track: self.info.track, layers };
        Output::Event(self.info.participant, event)
    }

    /// Ends the controller's adaptation: its layers have no limits any more.
    pub(super) fn end_adaptation(&mut self) -> Option<Output> {
        self.params.adapted.take()?;
        self.params.standby = false;
        let layers = [Layer::Q, Layer::H].map(|layer| (layer, unlimited(layer)));
        Some(self.send_params(layers.to_vec()))
    }
}

impl Core {
    /// Applies parameters from the enhancer's controller.
    pub(super) fn on_adaptation(&mut self, now: Instant, stream: StreamId, knobs: PublisherKnobs) {
        let track = self.streams.get(&stream).and_then(|t| self.tracks.get_mut(t));
        let Some(track) = track.filter(|t| t.tap.is_some() && knobs.layer < Layer::F) else {
            return;
        };
        let before = track.params.adapted.replace(knobs);
        let PublisherKnobs { layer, bitrate, fps } = knobs;
        let mut layers = vec![(layer, LayerKnobs { active: true, bitrate, fps, needed: false })];
        if layer == Layer::Q {
            // A larger layer would only take bits from this one.
            layers.push((Layer::H, LayerKnobs { active: false, ..unlimited(Layer::H) }));
        } else if before.is_some_and(|before| before.layer == Layer::Q) {
            layers.push((Layer::Q, unlimited(Layer::Q)));
        }
        self.outputs.push_back(track.send_params(layers));
        self.schedule.allocate_now(now);
    }

    /// Requests the smallest layer where a subscriber takes no larger one and the layer does not come: on a narrow uplink, browsers may
    /// give all bits to a larger one. Withdraws the request when no subscriber is limited to the smallest layer.
    pub(super) fn request_smallest_layers(&mut self, now: Instant) {
        let mut limited: BTreeMap<TrackId, bool> = BTreeMap::new();
        let slots = self.peers.values().filter(|p| p.connected).flat_map(|p| &p.slots);
        for slot in slots.filter(|s| s.max.layer() == Layer::Q && !s.view.is_some_and(View::hidden))
        {
            let Some(track) = slot.track else { continue };
            let goes_without = slot.rung.is_none_or(|rung| rung.layer() != Layer::Q);
            *limited.entry(track).or_default() |= goes_without;
        }
        // With one encoding there is no choice.
        let local = |track: &&mut Track| track.remote.is_none() && track.single.is_none();
        for track in self.tracks.values_mut().filter(local) {
            let sent = Layer::ALL.map(|layer| track.layers.rate(layer, now).is_some());
            let missing = !sent[Layer::Q as usize] && sent.contains(&true);
            let smallest = track.params.smallest;
            let needed = limited
                .get(&track.info.track)
                .is_some_and(|&goes_without| smallest.needed || (goes_without && missing));
            if smallest.needed != needed {
                track.params.smallest.needed = needed;
                let layers = vec![(Layer::Q, track.params.smallest)];
                self.outputs.push_back(track.send_params(layers));
            }
        }
    }

    /// Pauses layers that no subscriber needs, except the one with which newcomers begin, and resumes them.
    pub(super) fn pause_unused_layers(&mut self, now: Instant) {
        let mut needed: BTreeMap<TrackId, [bool; 3]> = BTreeMap::new();
        for slot in self.peers.values().flat_map(|p| &p.slots) {
            let Some(track) = slot.track else { continue };
            let needed = needed.entry(track).or_default();
            let sources = [slot.video.current(), slot.video.waits_for()];
            let layers = sources.into_iter().flatten().filter(|s| s.track == track);
            let layers = layers.map(|s| s.layer).chain(slot.rung.map(Rung::layer));
            layers.for_each(|layer| needed[layer as usize] = true);
        }
        for (id, track) in &mut self.tracks {
            // The controller decides about the layers of an adapted track; a muted track sends nothing.
            if track.params.adapted.is_some() || track.info.muted || track.info.kind != Kind::Video
            {
                continue;
            }
            let mut needed = needed.get(id).copied().unwrap_or_default();
            let sent = Layer::ALL.map(|layer| track.layers.rate(layer, now));
            for tap in [&track.tap, &track.capture].into_iter().flatten() {
                needed[tap.layer() as usize] = true;
            }
            for layer in Layer::ALL.into_iter().filter(|&layer| track.needed_by_nodes(layer)) {
                needed[layer as usize] = true;
            }
            if let Some(first) = dynacast::first_layer(needed, sent) {
                needed[first as usize] = true;
            }
            let changes = track.dynacast.update(now, needed, sent);
            if !changes.is_empty() && track.remote.is_some() {
                self.outputs.extend(track.request_remote_layers(&changes));
            } else if !changes.is_empty() {
                let layers = changes
                    .into_iter()
                    .map(|(layer, active)| (layer, LayerKnobs { active, ..unlimited(layer) }));
                self.outputs.push_back(track.send_params(layers.collect()));
            }
        }
    }

    /// Reports to the enhancer which publishers it may ask for stills: those whose low layer is tapped and whose larger layer is not sent.
    pub(super) fn update_still_sources(&mut self) {
        for track in self.tracks.values_mut().filter(|track| track.remote.is_none()) {
            let Some(stream) = track.info.stream else { continue };
            let publisher = self.peers.get(&track.info.participant);
            track.stills =
                publisher.is_some_and(|p| p.channels.has_region()) && self.config.regions;
            let possible = track.stills && track.tap.is_some() && track.capture.is_none();
            if track.regions != possible && track.tap.is_some() {
                let regions = EnhancerRequest::Regions(possible);
                self.outputs.push_back(Output::Tap(regions.of(stream)));
            }
            track.regions = possible;
        }
    }

    /// Sets the quarter layer to [`STANDBY`] where the half layer is adapted and no subscriber holds the quarter layer.
    pub(super) fn update_standby(&mut self) {
        for track in self.tracks.values_mut().filter(|track| track.remote.is_none()) {
            let holds_quarter = |peer: &Peer| {
                let mut slots = peer.slots.iter().filter(|s| s.track == Some(track.info.track));
                slots.any(|s| s.rung.is_none_or(|rung| rung.layer() == Layer::Q))
            };
            let mut subscribers = track.subscribers.iter().filter_map(|id| self.peers.get(id));
            let standby = track.params.adapts(Layer::H) && !subscribers.any(holds_quarter);
            if track.params.standby == standby {
                continue;
            }
            track.params.standby = standby;
            // Where the quarter layer is adapted itself, the controller has sent its parameters.
            if standby || !track.params.adapts(Layer::Q) {
                let params = if standby { STANDBY } else { unlimited(Layer::Q) };
                self.outputs.push_back(track.send_params(vec![(Layer::Q, params)]));
            }
        }
    }
}
