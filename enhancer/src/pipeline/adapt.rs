//! Adapts what a publisher is asked to send to what its stream shows: runs [`crate::control`] in the pipeline.
//!
//! Runs on the stream's decoding thread, once a second, when the publisher's browser has said what its uplink carries.

use std::time::Duration;

use windlass_types::{Layer, PublisherKnobs, PublisherUplink};
use windlass_vp9::DecodedFrame;

use super::anchors::Limits;
use crate::control::{Controller, ControllerConfig, Knobs, Measurements, Meter};

/// Minimum time between two decisions, however often the publisher reports.
const INTERVAL: Duration = Duration::from_millis(900);

/// One publisher's controller and its measurements.
pub(super) struct Adaptation {
    layer: Layer,
    controller: Controller,
    meter: Meter,
    last: Duration,
    /// Knobs that were decided last.
    current: Knobs,
    /// Whether the first decision has not been sent to the publisher yet.
    first: bool,
    operator: Operator,
}

/// The operator's limits on adaptation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operator {
    /// Maximum enhanced anchors per frame.
    pub anchor_fraction: f64,
    /// Size of HR pictures over that of the low layer. It is the smallest available scale unless something else was
    /// said.
    pub scale: usize,
}

impl Adaptation {
    /// A controller for a publisher with this uplink.
    pub(super) fn new(now: Duration, uplink: &PublisherUplink, operator: Operator) -> Adaptation {
        let (controller, current) = begin(uplink, operator);
        let (layer, meter) = (uplink.layer, Meter::new());
        Adaptation { layer, controller, meter, last: now, current, first: true, operator }
    }

    /// Limits on enhanced anchors, by the last decision.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            per_mille: (self.current.anchor_fraction * 1000.0).round().clamp(0.0, 1000.0) as u16,
            bytes: self.current.anchor_bytes as usize,
        }
    }

    /// Sets the scale of viewers' pictures over the low layer.
    pub(super) fn rescale(&mut self, scale: usize) {
        self.operator.scale = scale;
        self.controller.rescale(scale);
    }

    /// Measures a decoded frame of the low layer.
    pub(super) fn low(&mut self, frame: &DecodedFrame) {
        if frame.info.shown {
            self.meter.low(self.layer, &frame.info, &frame.picture);
        }
    }

    /// Decides new knobs for the publisher, if it is time. `gain_db` is the gain of enhanced anchors on their frames.
    pub(super) fn observe(
        &mut self,
        now: Duration,
        uplink: &PublisherUplink,
        gain_db: Option<f64>,
    ) -> Option<PublisherKnobs> {
        if uplink.layer != self.layer {
            if uplink.layer == self.current.layer {
                // The publisher follows the last knobs.
                self.layer = uplink.layer;
            } else {
                // Subscribers hold another layer now.
                *self = Adaptation::new(now, uplink, self.operator);
            }
        }
        if std::mem::take(&mut self.first) {
            return Some(knobs(&self.current));
        }
        let span = now.saturating_sub(self.last);
        if span < INTERVAL {
            return None;
        }
        self.last = now;
        let measured = self.meter.take(span, uplink.report.size, uplink.report.bitrate);
        let measured = Measurements { enhanced_gain_db: gain_db, ..measured };
        self.current = self.controller.observe(now, &measured)?;
        Some(knobs(&self.current))
    }
}

/// Creates a publisher's controller, with the knobs to begin with. The controller may choose no larger layer than the
/// one that subscribers hold: a smaller one costs fewer bits, and some could not receive a larger one.
fn begin(uplink: &PublisherUplink, operator: Operator) -> (Controller, Knobs) {
    let layers = match uplink.layer {
        Layer::H => vec![Layer::H, Layer::Q],
        layer => vec![layer],
    };
    let mut controller = Controller::new(ControllerConfig {
        layers,
        camera_fps: uplink.report.fps,
        scale: operator.scale,
        max_anchor_fraction: operator.anchor_fraction,
        ..ControllerConfig::default()
    });
    let first = controller.start(uplink.report.bitrate, uplink.report.size);
    (controller, first)
}

fn knobs(knobs: &Knobs) -> PublisherKnobs {
    PublisherKnobs { layer: knobs.layer, bitrate: knobs.bitrate, fps: knobs.fps }
}

#[cfg(test)]
mod tests {
    use windlass_types::{Bitrate, Size, UplinkReport};

    use super::*;

    const UPLINK: PublisherUplink = uplink(Layer::Q, Bitrate::bps(200_000));

    const OPERATOR: Operator = Operator { anchor_fraction: 0.1, scale: 2 };

    const fn uplink(layer: Layer, bitrate: Bitrate) -> PublisherUplink {
        let report = UplinkReport { bitrate, size: Size::new(640, 360), fps: 30.0 };
        PublisherUplink { layer, report }
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_word_comes_at_once_and_stays_within_the_uplink() {
        let mut adaptation = Adaptation::new(at(0), &UPLINK, OPERATOR);
        let first = adaptation.observe(at(0), &UPLINK, None).expect("it begins");
        assert_eq!(first.layer, Layer::Q);
        assert!(first.bitrate <= UPLINK.report.bitrate);
        assert_eq!(adaptation.observe(at(100), &UPLINK, None), None, "too soon");
        let short = uplink(Layer::Q, Bitrate::kbps(60.0));
        let less = adaptation.observe(at(1100), &short, None).expect("the uplink fell");
        assert!(less.bitrate <= short.report.bitrate);
    }

    #[test]
    fn another_layer_begins_anew() {
        let mut adaptation = Adaptation::new(at(0), &UPLINK, OPERATOR);
        adaptation.observe(at(0), &UPLINK, None);
        let other = PublisherUplink { layer: Layer::H, ..UPLINK };
        let first = adaptation.observe(at(100), &other, None).expect("it begins");
        assert_eq!(first.layer, Layer::H);
    }

    #[test]
    fn a_layer_that_it_asked_for_goes_on_and_one_that_subscribers_chose_begins_anew() {
        let high = uplink(Layer::H, Bitrate::kbps(300.0));
        let mut adaptation = Adaptation::new(at(0), &high, OPERATOR);
        adaptation.observe(at(0), &high, None);
        adaptation.current.layer = Layer::Q;
        let low = PublisherUplink { layer: Layer::Q, ..high };
        assert_eq!(adaptation.observe(at(100), &low, None), None, "as it was told");
        adaptation.current.layer = Layer::H;
        assert!(adaptation.observe(at(200), &high, None).is_none());
        let others = adaptation.observe(at(300), &low, None).expect("it begins anew");
        assert_eq!(others.layer, Layer::Q);
        let short = uplink(Layer::Q, Bitrate::kbps(2000.0));
        for second in 1..30 {
            let current = adaptation.observe(at(300 + 1000 * second), &short, None);
            assert!(
                current.is_none_or(|current| current.layer == Layer::Q),
                "they cannot take more"
            );
        }
    }

    #[test]
    fn with_another_scale_it_goes_on_and_may_still_choose_the_layer_that_it_left() {
        let high = uplink(Layer::H, Bitrate::kbps(300.0));
        let mut adaptation = Adaptation::new(at(0), &high, OPERATOR);
        adaptation.observe(at(0), &high, None);
        adaptation.current.layer = Layer::Q;
        let low = PublisherUplink { layer: Layer::Q, ..high };
        assert_eq!(adaptation.observe(at(100), &low, None), None, "as it was told");
        let before = adaptation.limits();
        adaptation.rescale(4);
        assert_eq!(adaptation.limits(), before);
        assert!(adaptation.observe(at(200), &low, None).is_none(), "it does not begin anew");
        assert_eq!(adaptation.controller.layers(), [Layer::H, Layer::Q]);
    }

    #[test]
    fn anchors_take_no_more_than_the_operator_allows() {
        let mut adaptation = Adaptation::new(at(0), &UPLINK, OPERATOR);
        adaptation.observe(at(0), &UPLINK, None);
        let limits = adaptation.limits();
        assert!((1..=100).contains(&limits.per_mille), "{limits:?}");
        assert!(limits.bytes >= 500);
    }
}
