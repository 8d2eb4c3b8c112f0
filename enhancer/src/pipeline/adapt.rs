//! What a publisher is asked to send, adapted by what its stream shows: the shell of [`crate::control`].
//!
//! Runs on the stream's decoding thread, once a second, when the publisher's browser has said what its uplink carries.

use std::time::Duration;

use windlass_hybrid::vp9::DecodedFrame;
use windlass_media::{Layer, PublisherKnobs};

use super::decode::{DecodeFn, DecoderFactory};
use crate::control::{Controller, ControllerConfig, Knobs, Meter};

/// What a publisher can send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Uplink {
    pub layer: Layer,
    pub kbps: f64,
    pub size: (u32, u32),
    pub fps: f64,
}

/// The least time between two looks, whatever the publisher says.
const INTERVAL: Duration = Duration::from_millis(900);

/// One publisher's controller and what it looks at.
pub(super) struct Adaptation {
    layer: Layer,
    controller: Controller,
    meter: Meter,
    /// Decodes the detail stream, while that can be followed.
    detail: Option<DecodeFn>,
    last: Duration,
    /// What the publisher was told has not been sent yet.
    first: Option<Knobs>,
}

impl Adaptation {
    /// Begins with a publisher that can send `uplink`.
    pub fn new(now: Duration, uplink: &Uplink) -> Adaptation {
        let (controller, first) = begin(uplink);
        let first = Some(first);
        let (layer, meter) = (uplink.layer, Meter::new());
        Adaptation { layer, controller, meter, detail: None, last: now, first }
    }

    /// Looks at a decoded frame of the low layer.
    pub fn low(&mut self, frame: &DecodedFrame) {
        if frame.info.shown {
            self.meter.low(self.layer, &frame.info, &frame.picture);
        }
    }

    /// Looks at a frame of the detail stream; after one that cannot be decoded, at none before the next key frame.
    pub fn detail(&mut self, data: &[u8], key: bool, factory: &DecoderFactory) {
        if key {
            self.detail.get_or_insert_with(|| factory());
        }
        let Some(decode) = &mut self.detail else { return };
        match decode(data) {
            Ok(frames) => {
                for frame in frames.iter().filter(|f| f.info.shown) {
                    self.meter.detail(&frame.info, &frame.picture);
                }
            }
            Err(_) => self.detail = None,
        }
    }

    /// What the publisher is to be told, if anything is new.
    pub fn observe(&mut self, now: Duration, uplink: &Uplink) -> Option<PublisherKnobs> {
        if uplink.layer != self.layer {
            *self = Adaptation::new(now, uplink);
        }
        if let Some(first) = self.first.take() {
            return Some(knobs(&first));
        }
        let span = now.saturating_sub(self.last);
        if span < INTERVAL {
            return None;
        }
        self.last = now;
        let measured = self.meter.take(span, uplink.size, uplink.kbps);
        self.controller.observe(now, &measured).as_ref().map(knobs)
    }
}

/// A controller of a publisher whose low layer is what subscribers hold: that is not for it to change.
fn begin(uplink: &Uplink) -> (Controller, Knobs) {
    let mut controller = Controller::new(ControllerConfig {
        layers: vec![uplink.layer],
        camera_fps: uplink.fps,
        most_anchor_fraction: 0.0,
        ..ControllerConfig::default()
    });
    let first = controller.start(uplink.kbps, uplink.size);
    (controller, first)
}

fn knobs(knobs: &Knobs) -> PublisherKnobs {
    PublisherKnobs {
        layer: knobs.layer,
        kbps: knobs.low_kbps,
        fps: knobs.fps,
        detail: knobs.detail,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_hybrid::vp9::DecodeError;

    use super::*;

    const UPLINK: Uplink = Uplink { layer: Layer::Q, kbps: 200.0, size: (640, 360), fps: 30.0 };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_word_comes_at_once_and_stays_within_the_uplink() {
        let mut adaptation = Adaptation::new(at(0), &UPLINK);
        let first = adaptation.observe(at(0), &UPLINK).expect("it begins");
        assert_eq!((first.layer, first.detail), (Layer::Q, None));
        assert!(first.kbps <= 200.0);
        assert_eq!(adaptation.observe(at(100), &UPLINK), None, "too soon");
        let short = Uplink { kbps: 60.0, ..UPLINK };
        let less = adaptation.observe(at(1100), &short).expect("the uplink fell");
        assert!(less.kbps + less.detail.map_or(0.0, |d| d.kbps) <= 60.0);
    }

    #[test]
    fn another_layer_begins_anew() {
        let mut adaptation = Adaptation::new(at(0), &UPLINK);
        adaptation.observe(at(0), &UPLINK);
        let other = Uplink { layer: Layer::H, ..UPLINK };
        let first = adaptation.observe(at(100), &other).expect("it begins");
        assert_eq!(first.layer, Layer::H);
    }

    #[test]
    fn detail_that_cannot_be_decoded_is_left_until_a_key_frame() {
        let factory: DecoderFactory = Arc::new(|| Box::new(|_: &[u8]| Err(DecodeError::Header)));
        let mut adaptation = Adaptation::new(at(0), &UPLINK);
        adaptation.detail(&[1], false, &factory);
        assert!(adaptation.detail.is_none());
        adaptation.detail(&[1], true, &factory);
        assert!(adaptation.detail.is_none(), "it failed");
    }
}
