//! Which layers of a track the enhancer gets: the tap of a low layer, and the tap of a higher layer for captured
//! anchors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_types::recording::SenderReport;
use windlass_types::{AnchorPolicy, Epoch, Layer, Owner, StreamId, TapInput};

use super::alignment::Alignment;
use super::capture;
use crate::core::output::Output;
use crate::core::publisher::layers::Layers;
use crate::core::subscriber::rewriter::PacketIn;
use crate::core::tap::{Tap, TapTerms};
use crate::stats::Counters;

/// Time for which the tapped layer and its scale stay in use. A change of layer costs all subscribers a key frame, and
/// a change of scale costs them their detail.
const HOLD_TIME: Duration = Duration::from_secs(10);

/// Subscribers of the enhanced rungs of one track, by layer: their number, and the largest scale that their tiles need.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LayerDemand([LayerHolders; Layer::ALL.len()]);

#[derive(Debug, Clone, Copy, Default)]
struct LayerHolders {
    count: u32,
    max_scale: u16,
}

impl LayerDemand {
    /// Adds a subscriber.
    pub(crate) fn add(&mut self, layer: Layer, scale: u16) {
        let holders = &mut self.0[layer as usize];
        holders.count += 1;
        holders.max_scale = scale.max(holders.max_scale);
    }

    fn count(self, layer: Layer) -> u32 {
        self.0[layer as usize].count
    }

    /// The largest scale that the subscribers of a layer need; 0: the layer has no subscribers.
    pub(crate) fn scale(self, layer: Layer) -> u16 {
        self.0[layer as usize].max_scale
    }

    /// The layer with the most subscribers, where each step down doubles their weight: a smaller layer loses more
    /// without anchors.
    fn best_layer(self) -> Option<Layer> {
        let steps = |layer: Layer| Layer::F as usize - layer as usize;
        let weight = |layer: Layer| self.count(layer) << steps(layer);
        let held = Layer::ALL.into_iter().filter(|&layer| self.count(layer) > 0);
        held.max_by_key(|&layer| (weight(layer), steps(layer)))
    }
}

/// The tapped layer with its hysteresis: it stays for [`HOLD_TIME`] while it has a subscriber.
#[derive(Debug, Clone, Copy, Default)]
struct TappedLayer(Option<(Layer, Instant)>);

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
struct ScaleHold(Option<(u16, Instant)>);

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

/// Terms that each allocation sets for a track's taps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackTerms {
    /// Policy by which the stream's anchors are chosen.
    pub(crate) policy: AnchorPolicy,
    /// Room and publisher of the stream; `None`: unchanged.
    pub(crate) owner: Option<Owner>,
    /// Maximum pixels of a frame.
    pub(crate) max_pixels: u32,
}

/// The taps of one track, and what they leave behind when they stop or change.
#[derive(Default)]
pub(crate) struct Taps {
    /// Whether the enhancer cannot read the track. Then a layer is chosen, for the publisher's stills, and no packet is
    /// copied.
    opaque: bool,
    /// Tap of the low layer.
    low: Option<Tap>,
    /// Tap of a higher layer, for captured anchors.
    capture: Option<Tap>,
    /// Maps timestamps between the layers.
    alignment: Alignment,
    tapped: TappedLayer,
    scale: ScaleHold,
    /// First epoch that no earlier tap has used.
    next_epoch: u16,
    /// A layer, and the scale at which the enhancer makes its anchors.
    enhanced: Option<(Layer, u16)>,
}

impl Taps {
    /// Whether the enhancer cannot read the track.
    pub(crate) fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Sets whether the enhancer cannot read the track. Where that changes, the taps end. Returns whether the enhancer
    /// gets no more of the stream.
    pub(crate) fn set_opaque(&mut self, opaque: bool) -> bool {
        if opaque == self.opaque {
            return false;
        }
        let stopped = self.end();
        self.opaque = opaque;
        stopped
    }

    /// Ends the taps. Returns whether the enhancer gets no more of the stream.
    fn end(&mut self) -> bool {
        (self.capture, self.enhanced) = (None, None);
        let Some(tap) = self.low.take() else { return false };
        self.next_epoch = tap.next_epoch();
        !self.opaque
    }

    /// The tap of the low layer.
    pub(crate) fn low(&self) -> Option<&Tap> {
        self.low.as_ref()
    }

    /// The tap of the low layer.
    pub(crate) fn low_mut(&mut self) -> Option<&mut Tap> {
        self.low.as_mut()
    }

    /// Whether the enhancer gets a low layer.
    pub(crate) fn is_read(&self) -> bool {
        self.low.is_some() && !self.opaque
    }

    /// Whether a low layer is tapped.
    pub(crate) fn is_on(&self) -> bool {
        self.low.is_some()
    }

    /// The tapped layer.
    pub(crate) fn layer(&self) -> Option<Layer> {
        self.low.as_ref().map(Tap::layer)
    }

    /// The tap of a higher layer.
    pub(crate) fn capture_mut(&mut self) -> Option<&mut Tap> {
        self.capture.as_mut()
    }

    /// Whether a higher layer is tapped.
    pub(crate) fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// The layers that are tapped.
    pub(crate) fn layers(&self) -> impl Iterator<Item = Layer> {
        [&self.low, &self.capture].into_iter().flatten().map(Tap::layer)
    }

    /// The layer to tap by the demand for anchors.
    pub(crate) fn wanted(&mut self, now: Instant, demand: LayerDemand) -> Option<Layer> {
        self.tapped.update(now, demand)
    }

    /// Taps another low layer, or none. Returns whether the enhancer gets no more of the stream.
    pub(crate) fn set_layer(
        &mut self,
        stream: StreamId,
        wanted: Option<Layer>,
        max_frame_bytes: usize,
    ) -> bool {
        match (&mut self.low, wanted) {
            (Some(tap), Some(layer)) => tap.set_layer(layer),
            (None, Some(layer)) => {
                self.low = Some(Tap::new(stream, layer, self.next_epoch, max_frame_bytes));
            }
            (Some(_), None) => return self.end(),
            (None, None) => {}
        }
        false
    }

    /// Taps the largest layer that is sent above the tapped one, of the size of anchors or a whole part of it; `None`:
    /// captured anchors are off. Returns what to tell the enhancer.
    pub(crate) fn set_capture(
        &mut self,
        now: Instant,
        stream: StreamId,
        scale: Option<u16>,
        layers: &Layers,
        max_frame_bytes: usize,
    ) -> Option<TapInput> {
        let low = self.low.as_ref().filter(|_| !self.opaque);
        let above = scale.zip(low).and_then(|(scale, tap)| {
            // Frames of other sizes cannot be scaled to the size of the anchors.
            let fits = (1..=scale).rev().filter(|part| scale % part == 0);
            let mut above = fits.filter_map(|part| tap.layer().enlarged(part));
            above.find(|&layer| layers.rate(layer, now).is_some())
        });
        if self.capture.as_ref().map(Tap::layer) == above {
            return None;
        }
        // Without a tap the whole stream has been stopped.
        let stopped = self.capture.take().is_some() && self.low.is_some();
        self.capture = above.map(|layer| Tap::new(stream, layer, 0, max_frame_bytes));
        stopped.then_some(TapInput::CaptureStop { stream })
    }

    /// Tells the low layer's tap its terms, and the largest scale of its anchors by the demand for them.
    pub(crate) fn set_terms(
        &mut self,
        now: Instant,
        demand: LayerDemand,
        layers: &Layers,
        terms: TrackTerms,
    ) {
        let tile_scale = self.layer().map_or(0, |layer| demand.scale(layer));
        let tile_scale = self.scale.update(now, tile_scale);
        let Some(tap) = &mut self.low else { return };
        let TrackTerms { policy, owner, max_pixels } = terms;
        let owner = owner.unwrap_or(tap.terms().owner);
        let sent = |layer| !self.opaque && layers.rate(layer, now).is_some();
        let max_scale = useful_scale(tap.layer(), sent, tile_scale);
        if self.opaque {
            // No enhancer will choose another one.
            self.enhanced = Some((tap.layer(), max_scale));
        }
        tap.set_terms(TapTerms { max_scale, policy, owner, max_pixels });
    }

    /// Scale of anchors of a layer; `default` until the enhancer has reported it.
    pub(crate) fn scale_of(&self, layer: Option<Layer>, default: u16) -> u16 {
        let enhanced = self.enhanced.filter(|(of, _)| Some(*of) == layer);
        enhanced.map_or(default, |(_, scale)| scale)
    }

    /// Takes the scale at which the enhancer makes anchors of an epoch. Returns whether the epoch is known.
    pub(crate) fn on_scale(&mut self, epoch: Epoch, scale: u16) -> bool {
        let layer = self.low.as_ref().and_then(|tap| tap.layer_of(epoch));
        if let Some(layer) = layer {
            self.enhanced = Some((layer, scale));
        }
        layer.is_some()
    }

    /// Sets the layer and scale of anchors that another node makes.
    pub(crate) fn set_enhanced(&mut self, enhanced: Option<(Layer, u16)>) {
        self.enhanced = enhanced;
    }

    /// Drops frames until the next key frames: the track was muted or goes on.
    pub(crate) fn await_key(&mut self) {
        [&mut self.low, &mut self.capture].into_iter().flatten().for_each(Tap::await_key);
    }

    /// Notes that the enhancer's queue was full, for frames of the higher layer if `captured`. Returns whether there is
    /// such a tap.
    pub(crate) fn on_overflow(&mut self, captured: bool) -> bool {
        let tap = if captured { &mut self.capture } else { &mut self.low };
        tap.as_mut().map(Tap::on_overflow).is_some()
    }

    /// Treats packets that are missing for too long as gaps.
    pub(crate) fn advance(&mut self, now: Instant) {
        let Some(low) = &mut self.low else { return };
        low.advance(now);
        if let Some(capture) = &mut self.capture {
            capture.advance(now);
        }
    }

    /// When [`Taps::advance`] is due.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        [&self.low, &self.capture].into_iter().flatten().filter_map(Tap::timeout).min()
    }

    /// The layers whose key frames the taps need now, of those that are sent.
    pub(crate) fn take_key_requests(
        &mut self,
        now: Instant,
        layers: &Layers,
    ) -> impl Iterator<Item = Layer> {
        let opaque = self.opaque;
        let take = |tap: &mut Option<Tap>| {
            let tap = tap.as_mut().filter(|_| !opaque)?;
            layers.rate(tap.layer(), now)?;
            tap.take_key_request(now).then(|| tap.layer())
        };
        [take(&mut self.low), take(&mut self.capture)].into_iter().flatten()
    }

    /// Takes the RTP timestamp of a packet and the last sender report of its stream.
    pub(crate) fn align(&mut self, layer: Layer, timestamp: u32, report: Option<SenderReport>) {
        self.alignment.on_packet(layer, timestamp, report);
    }

    /// Takes a packet, if its layer is tapped. Returns whether it is.
    pub(crate) fn push(&mut self, layer: Layer, packet: PacketIn, payload: &Arc<[u8]>) -> bool {
        if self.opaque {
            return false;
        }
        let mut taps = [&mut self.low, &mut self.capture].into_iter().flatten();
        let tap = taps.find(|tap| tap.layer() == layer);
        tap.map(|tap| tap.push(packet, payload)).is_some()
    }

    /// Passes the frames of the taps to the enhancer.
    pub(crate) fn collect(&mut self, counters: &mut Counters, outputs: &mut VecDeque<Output>) {
        let Some(low) = &mut self.low else { return };
        counters.tap_gaps += std::mem::take(&mut low.gaps);
        while let Some(input) = low.poll() {
            counters.tap_frames += u64::from(matches!(input, TapInput::Frame(_)));
            outputs.push_back(Output::Tap(input));
        }
        let Some(capture) = &mut self.capture else { return };
        while let Some(input) = capture::poll(capture, &mut self.alignment, low.layer()) {
            match &input {
                TapInput::Captured(frame) => {
                    counters.captured_frames += 1;
                    counters.captured_unaligned += u64::from(frame.low_timestamp.is_none());
                }
                _ => counters.captured_gaps += 1,
            }
            outputs.push_back(Output::Tap(input));
        }
    }
}

/// The largest scale that is of use for the tapped layer, where tiles need `tile_scale`. It is the smallest scale
/// that is enough, or a larger one whose layer is `sent` and captured, as captured pixels are better than made ones. It
/// never exceeds the camera's size.
fn useful_scale(low: Layer, sent: impl Fn(Layer) -> bool, tile_scale: u16) -> u16 {
    let sent = |&scale: &u16| low.enlarged(scale).is_some_and(&sent);
    let enough = |&scale: &u16| scale >= tile_scale;
    let scales = || (1..=low.max_scale()).filter(|&scale| low.enlarged(scale).is_some());
    scales()
        .find(|scale| sent(scale) && enough(scale))
        .or(scales().find(enough))
        .unwrap_or(low.max_scale())
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

    #[test]
    fn a_tap_that_starts_again_uses_epochs_of_its_own_and_forgets_its_scale() {
        let (mut taps, stream) = (Taps::default(), StreamId(1));
        assert!(!taps.set_layer(stream, Some(Layer::Q), 1000));
        taps.set_enhanced(Some((Layer::Q, 4)));
        assert_eq!((taps.scale_of(Some(Layer::Q), 2), taps.scale_of(Some(Layer::H), 2)), (4, 2));
        assert!(taps.set_layer(stream, None, 1000) && !taps.is_on());
        assert!(!taps.set_layer(stream, None, 1000), "it has stopped already");
        assert_eq!(taps.scale_of(Some(Layer::Q), 2), 2);
        assert!(!taps.on_scale(Epoch(0), 3) && !taps.on_overflow(false));
    }

    #[test]
    fn the_enhancer_hears_once_that_it_cannot_read_a_track_any_more() {
        let (mut taps, stream) = (Taps::default(), StreamId(1));
        assert!(!taps.set_opaque(false) && !taps.set_layer(stream, Some(Layer::Q), 1000));
        assert!(taps.is_read() && taps.set_opaque(true) && !taps.is_on());
        assert!(!taps.set_layer(stream, Some(Layer::Q), 1000) && !taps.set_opaque(true));
        assert!(taps.is_on() && !taps.is_read());
        assert!(!taps.set_layer(stream, None, 1000), "it had nothing of that");
        assert!(!taps.set_layer(stream, Some(Layer::Q), 1000) && !taps.set_opaque(false));
        assert!(!taps.is_on(), "it begins anew");
    }

    #[test]
    fn the_layer_of_the_anchors_size_is_captured_while_it_is_sent() {
        let (mut taps, stream, now) = (Taps::default(), StreamId(1), Instant::now());
        let mut layers = Layers::default();
        layers.count(Layer::H, &PacketIn::alone(0, now), 1000, None);
        assert!(taps.set_capture(now, stream, Some(2), &layers, 1000).is_none());
        assert!(!taps.captures(), "nothing without a tap of the low layer");
        taps.set_layer(stream, Some(Layer::Q), 1000);
        taps.set_capture(now, stream, Some(2), &layers, 1000);
        assert_eq!(taps.layers().collect::<Vec<_>>(), [Layer::Q, Layer::H]);
        let later = now + Duration::from_secs(9);
        let stop = taps.set_capture(later, stream, Some(2), &layers, 1000);
        assert!(matches!(stop, Some(TapInput::CaptureStop { stream: StreamId(1) })));
    }
}
