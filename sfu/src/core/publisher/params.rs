//! Parameters for the layers of one track that its publisher is asked to use: bitrate, frame rate, and which layers to
//! send.

use std::time::Instant;

use windlass_types::{Bitrate, Layer, LayerKnobs, PublisherKnobs};

use super::dynacast::Dynacast;
use super::layers::SDK_MAX;
use super::narrow::NarrowLimit;

/// Frame rate that means no limit: above that of any camera.
const UNLIMITED_FPS: f64 = 120.0;
/// The quarter layer while no subscriber holds it and its bits serve the half layer better. It stays on, so that
/// newcomers have it at once.
const STANDBY: LayerKnobs =
    LayerKnobs { active: true, bitrate: Bitrate::bps(30_000), fps: 10.0, needed: false };

/// Layers with new parameters. Layers that are not listed keep theirs.
pub(crate) type LayerParams = Vec<(Layer, LayerKnobs)>;

/// The subscribers of a track that take no larger layer than the smallest. A later value outranks those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LimitedSubscribers {
    /// No subscriber takes the smallest layer alone.
    #[default]
    None,
    /// All such subscribers receive the smallest layer.
    Served,
    /// At least one of them receives no layer.
    Unserved,
}

/// Parameters of a layer without limits of the server: the client's own limits hold.
fn unlimited(layer: Layer) -> LayerKnobs {
    let bitrate = SDK_MAX[layer as usize];
    LayerKnobs { active: true, bitrate, fps: UNLIMITED_FPS, needed: false }
}

/// Parameters that the publisher of a track was given. The methods return new ones, which are to be sent to it.
#[derive(Debug)]
pub(crate) struct PublisherParams {
    /// Last parameters of the smallest layer, without `narrow`.
    smallest: LayerKnobs,
    /// The limit of the smallest layer's bitrate.
    narrow: NarrowLimit,
    /// Parameters from the enhancer's controller; `None` before it has sent any.
    adapted: Option<PublisherKnobs>,
    /// Whether the quarter layer is on [`STANDBY`].
    standby: bool,
    dynacast: Dynacast,
}

impl Default for PublisherParams {
    fn default() -> PublisherParams {
        PublisherParams {
            smallest: unlimited(Layer::Q),
            narrow: NarrowLimit::default(),
            adapted: None,
            standby: false,
            dynacast: Dynacast::default(),
        }
    }
}

impl PublisherParams {
    /// Whether the enhancer's controller decides about the layers.
    pub(crate) fn is_adapted(&self) -> bool {
        self.adapted.is_some()
    }

    fn adapts(&self, layer: Layer) -> bool {
        self.adapted.is_some_and(|adapted| adapted.layer == layer)
    }

    /// Whether the publisher was asked not to send the layer: nobody needs it, or the controller has ended it, as it
    /// would take bits from the adapted one.
    pub(crate) fn is_off(&self, layer: Layer) -> bool {
        self.dynacast.is_paused(layer) || (layer == Layer::H && self.adapts(Layer::Q))
    }

    /// Bitrates of the layers for the allocator: measured ones, and the last ones of layers that are paused or being
    /// resumed.
    pub(crate) fn rates(
        &self,
        now: Instant,
        measured: [Option<Bitrate>; 3],
    ) -> [Option<Bitrate>; 3] {
        self.dynacast.rates(now, measured)
    }

    /// Notes new parameters. Keeps whether the smallest layer is needed, which its other parameters do not change, and
    /// the limit of its bitrate.
    fn set(&mut self, mut layers: LayerParams) -> LayerParams {
        for (_, params) in layers.iter_mut().filter(|(layer, _)| *layer == Layer::Q) {
            params.needed = self.smallest.needed;
            self.smallest = *params;
            params.bitrate = self.narrow.apply(params.bitrate);
        }
        layers
    }

    /// Applies parameters from the enhancer's controller, for the quarter or the half layer.
    pub(crate) fn adapt(&mut self, knobs: PublisherKnobs) -> LayerParams {
        let before = self.adapted.replace(knobs);
        let PublisherKnobs { layer, bitrate, fps } = knobs;
        let mut layers = vec![(layer, LayerKnobs { active: true, bitrate, fps, needed: false })];
        if layer == Layer::Q {
            // A larger layer would only take bits from this one.
            layers.push((Layer::H, LayerKnobs { active: false, ..unlimited(Layer::H) }));
        } else if before.is_some_and(|before| before.layer == Layer::Q) {
            layers.push((Layer::Q, unlimited(Layer::Q)));
        }
        self.set(layers)
    }

    /// Ends the controller's adaptation: its layers have no limits any more.
    pub(crate) fn end_adaptation(&mut self) -> Option<LayerParams> {
        self.adapted.take()?;
        self.standby = false;
        let layers = [Layer::Q, Layer::H].map(|layer| (layer, unlimited(layer)));
        Some(self.set(layers.to_vec()))
    }

    /// Requests the smallest layer where it does not come (`missing`) and a subscriber limited to it goes without;
    /// withdraws the request when no subscriber is limited to it.
    pub(crate) fn request_smallest(
        &mut self,
        limited: LimitedSubscribers,
        missing: bool,
    ) -> Option<LayerParams> {
        let asked = self.smallest.needed;
        let needed = match limited {
            LimitedSubscribers::None => false,
            LimitedSubscribers::Served => asked,
            LimitedSubscribers::Unserved => asked || missing,
        };
        if asked == needed {
            return None;
        }
        self.smallest.needed = needed;
        Some(self.set(vec![(Layer::Q, self.smallest)]))
    }

    /// Limits the smallest layer to what the narrowest subscriber that must have it carries (`room`; `None`: there is
    /// none). `rate`: the bitrate at which the layer comes.
    pub(crate) fn limit_smallest(
        &mut self,
        now: Instant,
        room: Option<Bitrate>,
        rate: Option<Bitrate>,
    ) -> Option<LayerParams> {
        let changed = self.narrow.update(now, room, rate, self.smallest.bitrate);
        changed.then(|| self.set(vec![(Layer::Q, self.smallest)]))
    }

    /// Bitrate of the smallest layer without the limit for narrow subscribers; `None` where it is not limited.
    pub(crate) fn unlimited(&self) -> Option<Bitrate> {
        self.narrow.is_on().then_some(self.smallest.bitrate)
    }

    /// Takes which layers are needed, and the bitrates of those sent. Returns the layers to pause (`false`) and to
    /// resume.
    pub(crate) fn unused(
        &mut self,
        now: Instant,
        needed: [bool; 3],
        sent: [Option<Bitrate>; 3],
    ) -> Vec<(Layer, bool)> {
        self.dynacast.update(now, needed, sent)
    }

    /// Pauses and resumes layers.
    pub(crate) fn activate(&mut self, changes: Vec<(Layer, bool)>) -> LayerParams {
        let of = |(layer, active)| (layer, LayerKnobs { active, ..unlimited(layer) });
        self.set(changes.into_iter().map(of).collect())
    }

    /// Sets the quarter layer to [`STANDBY`] where the half layer is adapted and no subscriber holds the quarter layer.
    pub(crate) fn set_standby(
        &mut self,
        holds_quarter: impl FnOnce() -> bool,
    ) -> Option<LayerParams> {
        let standby = self.adapts(Layer::H) && !holds_quarter();
        if self.standby == standby {
            return None;
        }
        self.standby = standby;
        // Where the quarter layer is adapted itself, the controller has sent its parameters.
        let ours = standby || !self.adapts(Layer::Q);
        let params = if standby { STANDBY } else { unlimited(Layer::Q) };
        ours.then(|| self.set(vec![(Layer::Q, params)]))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn knobs(layer: Layer) -> PublisherKnobs {
        PublisherKnobs { layer, bitrate: Bitrate::bps(90_000), fps: 20.0 }
    }

    fn active(layers: &LayerParams) -> Vec<(Layer, bool)> {
        layers.iter().map(|(layer, params)| (*layer, params.active)).collect()
    }

    #[test]
    fn an_adapted_quarter_layer_has_all_bits_until_the_adaptation_ends() {
        let mut params = PublisherParams::default();
        assert!(params.end_adaptation().is_none());
        assert_eq!(active(&params.adapt(knobs(Layer::Q))), [(Layer::Q, true), (Layer::H, false)]);
        assert_eq!(active(&params.adapt(knobs(Layer::H))), [(Layer::H, true), (Layer::Q, true)]);
        let ended = params.end_adaptation().expect("it was adapted");
        assert_eq!(active(&ended), [(Layer::Q, true), (Layer::H, true)]);
        assert!(!params.is_adapted());
    }

    #[test]
    fn the_limit_for_narrow_subscribers_outlasts_other_parameters_and_ends() {
        let (mut params, mut now) = (PublisherParams::default(), Instant::now());
        let mut limit = |params: &mut PublisherParams, room: Option<u64>| {
            let mut last = None;
            for _ in 0..50 {
                now += Duration::from_millis(200);
                let rate = Some(Bitrate::bps(150_000));
                last = params.limit_smallest(now, room.map(Bitrate::bps), rate).or(last);
            }
            last
        };
        let smallest = |layers: &LayerParams| {
            let q = layers.iter().find(|(layer, _)| *layer == Layer::Q).expect("of the smallest");
            (q.1.active, q.1.bitrate.as_bps())
        };
        let limited = limit(&mut params, Some(50_000)).expect("it is narrow");
        assert_eq!((smallest(&limited), params.unlimited()), ((true, 45_000), Some(SDK_MAX[0])));
        assert_eq!(smallest(&params.adapt(knobs(Layer::Q))), (true, 45_000));
        assert_eq!(smallest(&params.adapt(knobs(Layer::H))), (true, 45_000));
        let standby = params.set_standby(|| false).expect("nobody holds it");
        assert_eq!(smallest(&standby), (true, 30_000));
        assert_eq!(smallest(&params.end_adaptation().expect("adapted")), (true, 45_000));
        assert_eq!(smallest(&params.activate(vec![(Layer::Q, false)])), (false, 45_000));
        let ended = limit(&mut params, None).expect("nobody is narrow");
        assert_eq!((smallest(&ended), params.unlimited()), ((false, 150_000), None));
    }

    #[test]
    fn the_smallest_layer_stays_asked_for_while_a_subscriber_is_limited_to_it() {
        let mut params = PublisherParams::default();
        assert!(params.request_smallest(LimitedSubscribers::Unserved, false).is_none(), "it comes");
        let asked =
            params.request_smallest(LimitedSubscribers::Unserved, true).expect("it does not come");
        assert!(asked[0].1.needed);
        assert!(
            params.request_smallest(LimitedSubscribers::Served, false).is_none(),
            "it is asked for already"
        );
        let adapted = params.adapt(knobs(Layer::Q));
        assert!(adapted[0].1.needed, "other parameters keep that");
        let withdrawn = params
            .request_smallest(LimitedSubscribers::None, false)
            .expect("nobody is limited to it");
        assert!(!withdrawn[0].1.needed);
    }

    #[test]
    fn the_quarter_layer_is_on_standby_while_the_half_layer_is_adapted_and_nobody_holds_it() {
        let mut params = PublisherParams::default();
        assert!(params.set_standby(|| false).is_none());
        params.adapt(knobs(Layer::H));
        assert!(params.set_standby(|| true).is_none());
        assert_eq!(params.set_standby(|| false), Some(vec![(Layer::Q, STANDBY)]));
        assert!(params.set_standby(|| false).is_none());
        assert_eq!(params.set_standby(|| true), Some(vec![(Layer::Q, unlimited(Layer::Q))]));
    }
}
