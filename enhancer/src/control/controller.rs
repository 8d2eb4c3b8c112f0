//! One publisher's controller: measurements of an interval in, knobs for the next out.

use std::time::Duration;

use windlass_types::{Bitrate, Layer, Size};

use super::ascent::Ascent;
use super::belief::Belief;
use super::knobs::{Knobs, divisor};
use super::meter::Measurements;
use super::model::Model;

/// Settings of a controller that an operator may change.
#[derive(Debug, Clone, PartialEq)]
pub struct ControllerConfig {
    /// λ for bits: price of the whole uplink, in VMAF.
    pub bits_price: f64,
    /// λ for compute: price of an enhanced anchor on every frame, in VMAF.
    pub anchor_price: f64,
    /// Share of the estimated uplink that may be used.
    pub headroom: f64,
    /// Layers that the publisher can send; never empty (the half layer where it is).
    pub layers: Vec<Layer>,
    /// Frames per second of the camera.
    pub camera_fps: f64,
    /// Maximum size of viewers' pictures over that of the low layer.
    pub scale: usize,
    /// Whether the stream is a shared screen.
    pub screen: bool,
    /// Maximum enhanced anchors per frame; 0 without super-resolution.
    pub max_anchor_fraction: f64,
    /// Advantage, on VMAF's scale, below which another frame rate is not worth a change.
    pub margin: f64,
    /// Advantage, on VMAF's scale, below which another layer is not worth a change, besides its key frame: about the
    /// error of the model.
    pub layer_margin: f64,
    /// Minimum intervals between two changes of layer that nothing forces.
    pub rest: u32,
    /// Time for which another layer is expected to stay the better one. The cost of its key frame is spread over it.
    pub horizon: Duration,
    /// Parameters of the gradient ascent.
    pub ascent: Ascent,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            bits_price: 2.0,
            anchor_price: 20.0,
            headroom: 1.0,
            layers: Layer::ALL.to_vec(),
            camera_fps: 30.0,
            scale: 4,
            screen: false,
            max_anchor_fraction: 0.1,
            margin: 0.75,
            layer_margin: 1.5,
            rest: 4,
            horizon: Duration::from_secs(15),
            ascent: Ascent::default(),
        }
    }
}

/// Point in the space of the three continuous knobs. Each is a share of its range, 0 to 1; more takes more resources
/// (OneAdapt §4.1.5).
type Normal = [f64; 3];
/// Index in [`Normal`] of the share of the uplink that is used, from [`MIN_USAGE`] up.
const USAGE: usize = 0;
/// Index in [`Normal`] of the anchors per frame, as a share of the operator's maximum.
const ANCHORS: usize = 1;
/// Index in [`Normal`] of the bytes of an anchor, as a share of [`MAX_ANCHOR_BYTES`].
const ANCHOR_BYTES: usize = 2;

/// The discrete knobs: layer and frame rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    layer: Layer,
    /// Share of the camera's frames that is sent, one of [`RATES`].
    rate: f64,
}

/// Minimum share of the uplink that is used.
const MIN_USAGE: f64 = 0.3;
/// Frame rates that a publisher is asked for, as shares of the camera's: two frames of three judder and gained nothing,
/// one of three lost (`lab/notes/controller.md`).
const RATES: [f64; 2] = [0.5, 1.0];
/// Maximum bytes of an enhanced anchor per full-size sample.
const MAX_ANCHOR_BYTES: f64 = 0.06;
/// Penalty in VMAF per 100 % overshoot of the uplink.
const OVER_PRICE: f64 = 300.0;
/// Advantage in VMAF from which the layer changes after a single interval. With a smaller one it takes more intervals.
const DECISIVE: f64 = 3.0;
/// Cost of a full-size key frame in VMAF × seconds, per sample and per 1/(kbit/s): 26 at 640×360 and 80 kbit/s
/// (`lab/notes/controller.md`).
const KEY_FRAME: f64 = 26.0 * 80.0 / (640.0 * 360.0);
/// Minimum relative change of a knob with which knobs are sent to the publisher.
const NEWS: f64 = 0.04;

/// How far the controller leans to another layer.
#[derive(Debug, Clone, Copy)]
struct Lean {
    to: Layer,
    /// The layer's accumulated advantage: from 1 on the controller switches to it.
    advantage: f64,
}

impl Lean {
    /// Leans to the layer in use: to no other one.
    fn none(layer: Layer) -> Lean {
        Lean { to: layer, advantage: 0.0 }
    }
}

/// Adapts one publisher; see the [module](super).
#[derive(Debug, Clone)]
pub struct Controller {
    config: ControllerConfig,
    belief: Belief,
    at: Normal,
    choice: Choice,
    lean: Lean,
    since_switch: u32,
    current: Option<Knobs>,
    seen: Option<Duration>,
}

impl Controller {
    /// Creates a controller that has measured nothing. It begins with the half layer (or the nearest that there is) and
    /// all frames.
    pub fn new(mut config: ControllerConfig) -> Controller {
        let sane = |value: f64, otherwise: f64| if value.is_finite() { value } else { otherwise };
        config.camera_fps = sane(config.camera_fps, 30.0).clamp(1.0, 240.0);
        config.headroom = sane(config.headroom, 1.0).clamp(0.1, 1.0);
        config.bits_price = sane(config.bits_price, 0.0).max(0.0);
        config.anchor_price = sane(config.anchor_price, 0.0).max(0.0);
        config.max_anchor_fraction = sane(config.max_anchor_fraction, 0.0).clamp(0.0, 1.0);
        if config.layers.is_empty() {
            config.layers.push(Layer::H);
        }
        let has = |layer: &Layer| config.layers.contains(layer);
        let layer = [Layer::H, Layer::Q, Layer::F].into_iter().find(has).unwrap_or(Layer::H);
        Controller {
            belief: Belief::new(config.camera_fps, config.scale),
            config,
            at: [1.0, 0.33, 0.33],
            choice: Choice { layer, rate: 1.0 },
            lean: Lean::none(layer),
            since_switch: 0,
            current: None,
            seen: None,
        }
    }

    /// Sets the scale of viewers' pictures over the low layer. What is known of the content stays.
    pub fn rescale(&mut self, scale: usize) {
        self.config.scale = scale;
        self.belief.rescale(scale);
    }

    /// Knobs to begin with, before anything was measured: the layer that suits usual content, and all frames. `size` is
    /// that of full pictures.
    pub fn start(&mut self, uplink: Bitrate, size: Size) -> Knobs {
        let uplink = uplink.as_kbps().max(1.0);
        let model = Model::usual(size, self.config.camera_fps, self.config.screen);
        let model = Model { scale: self.config.scale, ..model };
        let worth = |layer: Layer| {
            let choice = Choice { layer, ..self.choice };
            // The first key frame costs what any costs, and nothing speaks for anything else than the usual layer yet.
            let doubt = if layer == self.choice.layer { 0.0 } else { self.config.layer_margin };
            let cost = self.key_frame(&model, layer, uplink) + doubt;
            self.objective(&model, choice, &self.at, uplink) - cost
        };
        let layers = self.config.layers.iter().copied();
        if let Some(best) = layers.max_by(|a, b| worth(*a).total_cmp(&worth(*b))) {
            self.choice.layer = best;
        }
        let knobs = self.knobs(self.choice, &self.at, uplink, model.area);
        self.current = Some(knobs);
        knobs
    }

    /// Takes what was measured until `now` (since an origin that the caller keeps to). Returns new knobs, or `None` if
    /// those of before shall stay. An estimate of the uplink of zero, or a time that is not after the last, changes
    /// nothing. Without frames, or with absurd ones, only the bits follow the uplink.
    pub fn observe(&mut self, now: Duration, measured: &Measurements) -> Option<Knobs> {
        if measured.uplink == Bitrate::ZERO || self.seen.is_some_and(|seen| now <= seen) {
            return None;
        }
        self.seen = Some(now);
        self.since_switch = self.since_switch.saturating_add(1);
        let current = self.current.unwrap_or_else(|| self.start(measured.uplink, measured.size));
        let uplink = measured.uplink.as_kbps();
        let area = f64::from(measured.size.pixels());
        if let Some(model) = self.belief.see(measured).copied() {
            self.choose(&model, uplink);
        }
        let next = self.knobs(self.choice, &self.at, uplink, area);
        if is_news(&current, &next)
            || current.bitrate > Bitrate::kbps(self.config.headroom * uplink)
        {
            self.current = Some(next);
            return Some(next);
        }
        None
    }

    /// Layers that the controller may choose.
    pub fn layers(&self) -> &[Layer] {
        &self.config.layers
    }

    /// Model of the content, for reports; `None` before the first measurement.
    pub fn model(&self) -> Option<&Model> {
        self.belief.model()
    }

    /// Climbs from the present knobs, and looks whether the best point of another choice is better.
    fn choose(&mut self, model: &Model, uplink: f64) {
        // A page is sent coarsely and then refined: its first seconds say nothing of what it needs.
        if self.config.screen && self.belief.is_new() {
            return;
        }
        let far = Ascent { reach: 1.0, ..self.config.ascent };
        let top = |choice: Choice| {
            let objective = |at: &Normal| self.objective(model, choice, at, uplink);
            let at = far.climb(self.from(choice), objective);
            (objective(&at), choice, at)
        };
        let here = top(self.choice);
        let mut best = here;
        for choice in self.choices().filter(|choice| *choice != self.choice) {
            let mut other = top(choice);
            if choice.layer != self.choice.layer {
                other.0 -= self.key_frame(model, choice.layer, uplink);
            }
            if other.0 > best.0 || !best.0.is_finite() {
                best = other;
            }
        }
        let (value, choice, at) = best;
        let advantage = value - here.0;
        if choice.layer == self.choice.layer {
            self.lean = Lean::none(self.choice.layer);
            // No key frame, but an encoder that has to find its rate again, and a viewer who sees it.
            if choice != self.choice && advantage > self.config.margin {
                (self.choice, self.at) = (choice, at);
                return;
            }
        } else if self.leans(choice.layer, advantage) {
            (self.choice, self.at) = (choice, at);
            (self.lean, self.since_switch) = (Lean::none(choice.layer), 0);
            return;
        }
        let (from, choice) = (self.from(self.choice), self.choice);
        self.at = self.config.ascent.climb(from, |at| self.objective(model, choice, at, uplink));
    }

    /// All combinations of layer and frame rate.
    fn choices(&self) -> impl Iterator<Item = Choice> + '_ {
        let layers = self.config.layers.iter();
        layers.flat_map(|&layer| RATES.map(|rate| Choice { layer, rate }))
    }

    /// Point at which the climb for a choice begins: the present one, with the whole uplink for another layer.
    fn from(&self, choice: Choice) -> Normal {
        let mut from = self.at;
        if choice.layer != self.choice.layer {
            from[USAGE] = 1.0;
        }
        from
    }

    /// Cost of a key frame of a layer, in VMAF averaged over the horizon: the picture is worse until rate control has
    /// made up for it.
    fn key_frame(&self, model: &Model, layer: Layer, uplink: f64) -> f64 {
        let size = divisor(layer) as f64;
        let bits = KEY_FRAME * model.area / (size * size).powf(0.7) / uplink;
        // Another scene has to be sent anew anyway.
        let part = if self.current.is_some() && self.belief.is_new() { 0.3 } else { 1.0 };
        part * bits / self.config.horizon.as_secs_f64().max(1.0)
    }

    /// Adds an interval's advantage of another layer; returns whether to switch. The knob of layers moves by the
    /// gradient and takes the closest value (OneAdapt §4.1.5). So a large advantage switches at once, and a small one
    /// if it lasts.
    fn leans(&mut self, to: Layer, advantage: f64) -> bool {
        let before = if self.lean.to == to { self.lean.advantage } else { 0.0 };
        let decisive = if self.belief.is_new() { DECISIVE / 2.0 } else { DECISIVE };
        let gained = if advantage > self.config.layer_margin { advantage / decisive } else { -0.5 };
        self.lean = Lean { to, advantage: (before + gained).clamp(0.0, 2.0) };
        let rested = self.since_switch >= self.config.rest
            || self.belief.is_new()
            || advantage > 3.0 * DECISIVE;
        self.lean.advantage >= 1.0 && rested
    }

    /// Predicted quality less λ × resources (OneAdapt, equation 4.1), with a steep price beyond the uplink.
    fn objective(&self, model: &Model, choice: Choice, at: &Normal, uplink: f64) -> f64 {
        let smooth = self.knobs(choice, at, uplink, model.area);
        let expected = model.expect(&smooth);
        let share = expected.bitrate.as_kbps() / (self.config.headroom * uplink);
        // Anchors go to subscribers: their bits are weighed by the same price. Nothing is known of their
        // gain before subscribers have told: then they stay as they are.
        let anchor_kbps =
            f64::from(smooth.anchor_bytes) * 0.008 * smooth.anchor_fraction * smooth.fps;
        let anchors = model.enhanced_gain_db.map_or(0.0, |_| {
            self.config.anchor_price * smooth.anchor_fraction
                + self.config.bits_price * anchor_kbps / uplink
        });
        expected.quality
            - self.config.bits_price * share.min(1.0)
            - OVER_PRICE * (share - 1.0).max(0.0)
            - anchors
    }

    /// Knobs at a point, for a picture of `area` full-size samples.
    fn knobs(&self, choice: Choice, at: &Normal, uplink: f64, area: f64) -> Knobs {
        let usage = MIN_USAGE + (1.0 - MIN_USAGE) * at[USAGE];
        Knobs {
            layer: choice.layer,
            fps: choice.rate * self.config.camera_fps,
            bitrate: Bitrate::kbps((uplink * self.config.headroom * usage).max(1.0)),
            anchor_fraction: self.config.max_anchor_fraction * at[ANCHORS],
            anchor_bytes: (MAX_ANCHOR_BYTES * area * at[ANCHOR_BYTES]).max(500.0) as u32,
        }
    }
}

/// Whether knobs differ enough to be sent.
fn is_news(old: &Knobs, new: &Knobs) -> bool {
    let differs = |a: f64, b: f64| (a - b).abs() > NEWS * a.abs().max(b.abs());
    old.layer != new.layer
        || differs(old.fps, new.fps)
        || differs(old.bitrate.as_kbps(), new.bitrate.as_kbps())
        || differs(old.anchor_fraction, new.anchor_fraction)
        || differs(f64::from(old.anchor_bytes), f64::from(new.anchor_bytes))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
