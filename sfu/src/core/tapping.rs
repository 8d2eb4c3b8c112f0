//! Which layers of a track the enhancer gets: the tap of a low layer, and the tap of a higher layer for captured anchors.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use windlass_types::{Layer, StreamId, TapInput};

use super::tap::Tap;
use super::{Core, Output, Track};
use crate::api::TrackId;

/// Time for which the tapped layer and its scale stay in use: each change costs all subscribers a key frame or their detail.
const HOLD_TIME: Duration = Duration::from_secs(10);

/// Subscribers of the enhanced rungs of one track, by layer: their number, and the largest scale that their tiles need.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LayerDemand([LayerHolders; Layer::ALL.len()]);

#[derive(Debug, Clone, Copy, Default)]
struct LayerHolders {
    count: u32,
    max_scale: u16,
}

impl LayerDemand {
    /// Adds a subscriber.
    pub(super) fn add(&mut self, layer: Layer, scale: u16) {
        let holders = &mut self.0[layer as usize];
        holders.count += 1;
        holders.max_scale = scale.max(holders.max_scale);
    }

    fn count(self, layer: Layer) -> u32 {
        self.0[layer as usize].count
    }

    fn scale(self, layer: Layer) -> u16 {
        self.0[layer as usize].max_scale
    }

    /// The layer with the most subscribers, where each step down doubles their weight: a smaller layer loses more without anchors.
    fn best_layer(self) -> Option<Layer> {
        let steps = |layer: Layer| Layer::F as usize - layer as usize;
        let weight = |layer: Layer| self.count(layer) << steps(layer);
        let held = Layer::ALL.into_iter().filter(|&layer| self.count(layer) > 0);
        held.max_by_key(|&layer| (weight(layer), steps(layer)))
    }
}

/// The tapped layer with its hysteresis: it stays for [`HOLD_TIME`] while it has a subscriber.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TappedLayer(Option<(Layer, Instant)>);

impl TappedLayer {
    /// Updates the layer by the demand.
    fn update(&mut self, now: Instant, demand: LayerDemand) -> Option<Layer> {
        let held = self.0.filter(|&(layer, since)| {
            demand.count(layer) > 0 && now.saturating_duration_since(since) < HOLD_TIME
        });
        let layer = held.map(|(layer, _)| layer).or(demand.best_layer());
        if self.0.map(|(layer, _)| layer) != layer {
            self.0 = layer.map(|layer| (layer, now));
        }
        layer
    }
}

/// The largest scale that tiles need, with its hysteresis: it rises at once, and falls after [`HOLD_TIME`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScaleHold(Option<(u16, Instant)>);

impl ScaleHold {
    /// Updates the scale by that of the largest tile now.
    fn update(&mut self, now: Instant, scale: u16) -> u16 {
        let held = self.0.filter(|&(held, since)| {
            held > scale && now.saturating_duration_since(since) < HOLD_TIME
        });
        if held.is_none() {
            self.0 = Some((scale, now));
        }
        held.map_or(scale, |(held, _)| held)
    }
}

/// What a track's taps leave behind when they stop or change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TapHistory {
    tapped: TappedLayer,
    scale: ScaleHold,
    /// First epoch that no earlier tap has used.
    next_epoch: u16,
    /// A layer, and the scale at which the enhancer makes its anchors.
    pub(super) enhanced: Option<(Layer, u16)>,
}

impl Core {
    /// Starts, moves and stops the taps of all tracks.
    pub(super) fn update_taps(
        &mut self,
        now: Instant,
        mut demands: BTreeMap<TrackId, LayerDemand>,
    ) {
        let config = &self.config;
        for (id, track) in &mut self.tracks {
            let Some(stream) = track.info.stream else { continue };
            let mut demand = demands.remove(id).unwrap_or_default();
            // Other nodes do not send the sizes of their tiles.
            track.enhanced_for_nodes().for_each(|layer| demand.add(layer, layer.max_scale()));
            let wanted = track.tap_history.tapped.update(now, demand);
            let wanted = wanted.filter(|_| !track.info.muted);
            if track.remote.is_some() {
                self.outputs.extend(track.request_remote_enhancement(wanted));
                continue;
            }
            let wanted = wanted.filter(|_| self.enhancement);
            let max_frame_bytes = config.limits.tap_frame_bytes;
            track.update_tap(stream, wanted, max_frame_bytes, &mut self.outputs);
            let capture_scale = config.captured.then_some(track.scale(config.scale));
            track.update_capture(now, stream, capture_scale, max_frame_bytes, &mut self.outputs);
            let tile_scale = track.tap.as_ref().map_or(0, |tap| demand.scale(tap.layer()));
            let tile_scale = track.tap_history.scale.update(now, tile_scale);
            let max_scale = track.useful_scale(now, tile_scale);
            let publisher = self.peers.get(&track.info.participant);
            if let Some(tap) = &mut track.tap {
                let own_policy = publisher.and_then(|peer| config.room_policies.get(&peer.room));
                tap.policy = own_policy.copied().unwrap_or(self.policy);
                tap.max_pixels = config.tap_pixels;
                tap.owner = publisher.map_or(tap.owner, |peer| peer.owner);
                tap.max_scale = max_scale;
            }
            self.outputs.extend(track.send_anchor_state(self.enhancement, config.scale));
        }
    }
}

impl Track {
    /// Taps another layer, or none.
    fn update_tap(
        &mut self,
        stream: StreamId,
        wanted: Option<Layer>,
        max_frame_bytes: usize,
        outputs: &mut VecDeque<Output>,
    ) {
        match (&mut self.tap, wanted) {
            (Some(tap), Some(layer)) => tap.set_layer(layer),
            (None, Some(layer)) => {
                let epoch = self.tap_history.next_epoch;
                self.tap = Some(Tap::new(stream, layer, epoch, max_frame_bytes));
            }
            (Some(tap), None) => {
                self.tap_history.next_epoch = tap.next_epoch();
                (self.tap, self.tap_history.enhanced) = (None, None);
                outputs.push_back(Output::Tap(TapInput::Stop { stream }));
                outputs.extend(self.end_adaptation());
            }
            (None, None) => {}
        }
    }

    /// Taps the largest layer that is sent above the tapped one, of the size of anchors or a whole part of it; `None`: captured anchors are off.
    fn update_capture(
        &mut self,
        now: Instant,
        stream: StreamId,
        scale: Option<u16>,
        max_frame_bytes: usize,
        outputs: &mut VecDeque<Output>,
    ) {
        let above = scale.zip(self.tap.as_ref()).and_then(|(scale, tap)| {
            // Pictures of other sizes cannot be made as large as the anchors.
            let fits = (1..=scale).rev().filter(|part| scale % part == 0);
            let mut layers = fits.filter_map(|part| tap.layer().enlarged(part));
            layers.find(|&layer| self.layers.rate(layer, now).is_some())
        });
        if self.capture.as_ref().map(Tap::layer) == above {
            return;
        }
        // Without a tap the whole stream has been stopped.
        if self.capture.take().is_some() && self.tap.is_some() {
            outputs.push_back(Output::Tap(TapInput::CaptureStop { stream }));
        }
        self.capture = above.map(|layer| Tap::new(stream, layer, 0, max_frame_bytes));
    }

    /// Scale of the tapped layer's anchors; `default` until the enhancer has reported it.
    pub(super) fn scale(&self, default: u16) -> u16 {
        let layer = self.tapped();
        let enhanced = self.tap_history.enhanced.filter(|(of, _)| Some(*of) == layer);
        enhanced.map_or(default, |(_, scale)| scale)
    }

    /// The largest scale that is of use for the tapped layer, where tiles need `tile_scale`: the smallest that is enough, or a larger one
    /// whose layer is sent, as captured pixels are better than made ones. It never exceeds the camera's size.
    fn useful_scale(&self, now: Instant, tile_scale: u16) -> u16 {
        let Some(low) = self.tap.as_ref().map(Tap::layer) else { return 1 };
        let sent =
            |&scale: &u16| low.enlarged(scale).is_some_and(|l| self.layers.rate(l, now).is_some());
        let enough = |&scale: &u16| scale >= tile_scale;
        let scales = || (1..=low.max_scale()).filter(|&scale| low.enlarged(scale).is_some());
        scales()
            .find(|scale| sent(scale) && enough(scale))
            .or(scales().find(enough))
            .unwrap_or(low.max_scale())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(q: u32, h: u32) -> LayerDemand {
        let mut demand = LayerDemand::default();
        (0..q).for_each(|_| demand.add(Layer::Q, 2));
        (0..h).for_each(|_| demand.add(Layer::H, 2));
        demand
    }

    #[test]
    fn a_larger_tile_counts_at_once_and_for_a_while_when_it_has_gone() {
        let (start, mut scale) = (Instant::now(), ScaleHold::default());
        assert_eq!(scale.update(start, 2), 2);
        assert_eq!(scale.update(start, 4), 4);
        assert_eq!(scale.update(start + HOLD_TIME / 2, 3), 4);
        assert_eq!(scale.update(start + HOLD_TIME, 3), 3);
        assert_eq!(scale.update(start + HOLD_TIME, 4), 4);
    }

    #[test]
    fn subscribers_of_the_smallest_layer_keep_their_anchors_from_a_few_of_larger_ones() {
        let now = Instant::now();
        for ((q, h), layer) in [
            ((0, 0), None),
            ((1, 0), Some(Layer::Q)),
            ((0, 1), Some(Layer::H)),
            ((1, 2), Some(Layer::Q)),
            ((1, 3), Some(Layer::H)),
        ] {
            let tapped = TappedLayer::default().update(now, demand(q, h));
            assert_eq!(tapped, layer, "{q} and {h}");
        }
    }

    #[test]
    fn a_layer_that_is_held_stays_for_a_while_and_one_that_is_not_goes_at_once() {
        let (start, mut tapped) = (Instant::now(), TappedLayer::default());
        assert_eq!(tapped.update(start, demand(1, 0)), Some(Layer::Q));
        let soon = start + HOLD_TIME / 2;
        assert_eq!(tapped.update(soon, demand(1, 9)), Some(Layer::Q));
        assert_eq!(tapped.update(start + HOLD_TIME, demand(1, 9)), Some(Layer::H));
        assert_eq!(tapped.update(start + HOLD_TIME, demand(1, 0)), Some(Layer::Q));
    }
}
