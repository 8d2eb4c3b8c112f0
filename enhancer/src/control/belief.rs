//! Learns a model of the content from measurements.
//!
//! Only the layer that is being sent is measured; the model needs all three. What cannot be measured keeps its last
//! ratio to what can. Each interval moves the model part of the way to the new measurement. Another scene moves it all
//! the way, so that a change of content counts at once.

use windlass_types::Layer;

use super::meter::{LowMeasure, Measurements};
use super::model::{Model, across};

/// Weight of a measurement in a belief (EWMA).
const PART: f64 = 0.35;
/// Weight of a measurement in a belief while the content is new (EWMA).
const PART_NEW: f64 = 0.8;
/// Intervals for which content counts as new.
const NEW: u32 = 3;
/// Intervals after a change of layer that measure its key frame, not the content.
const SETTLING: u32 = 2;
/// Intervals after which a layer's complexity is known well.
const KNOWN: u32 = 4;
/// Visible bits of an octave over those of the next smaller octave, before the octave was ever measured.
const USUAL_RATIOS: [f64; 2] = [0.5, 0.55];
/// Motion measured in a layer's own samples over the motion at full size, for the layers q, h and f.
const SEEN_MOTION: [f64; 3] = [0.75, 0.92, 1.0];
/// Exponent of time by which the square difference of two frames grows with the time between them.
const SPREAD: f64 = 1.38;
/// Maximum difference of a layer's complexity from the fit of [`across`], in natural logarithms.
const MAX_OFFSET: f64 = 0.6;

/// State that is learned from measurements: the model of the content, and what corrects it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Belief {
    model: Option<Model>,
    /// Visible bits of each larger octave over those of the next smaller one, as last measured.
    ratios: [f64; 2],
    /// Difference of each layer's complexity from the one that [`across`] expects, in natural logarithms.
    offsets: [f64; 3],
    last: Option<Layer>,
    /// Intervals since the content changed.
    age: u32,
    /// Intervals since the layer changed.
    settled: u32,
    /// Whether the former layer was known well when the present one began. Only then its forecast corrects `offsets`.
    foretold: bool,
    camera_fps: f64,
    scale: usize,
}

impl Belief {
    /// Creates a belief that knows only the camera's frame rate, and the scale of viewers' pictures over the low layer.
    pub(super) fn new(camera_fps: f64, scale: usize) -> Belief {
        Belief {
            scale,
            model: None,
            ratios: USUAL_RATIOS,
            offsets: [0.0; 3],
            last: None,
            age: 0,
            settled: 0,
            foretold: false,
            camera_fps: camera_fps.clamp(1.0, 240.0),
        }
    }

    /// Changes the scale of viewers' pictures over the low layer. The gain of enhanced anchors is then unknown.
    pub(super) fn rescale(&mut self, scale: usize) {
        self.scale = scale;
        if let Some(model) = &mut self.model {
            (model.scale, model.enhanced_gain_db) = (scale, None);
        }
    }

    /// The model of the content; `None` before anything was seen.
    pub(super) fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// Whether the content is so new that pictures of it are still being built.
    pub(super) fn is_new(&self) -> bool {
        self.age < NEW
    }

    /// Learns from the measurements of an interval. Returns `None` and changes nothing if numbers are missing or
    /// absurd.
    pub(super) fn see(&mut self, measured: &Measurements) -> Option<&Model> {
        let low = measured.low.filter(LowMeasure::is_sane)?;
        let (layer, at) = (low.layer, low.layer as usize);
        let own = (low.inter_step * low.inter_bitrate.as_kbps() / low.fps.sqrt()).ln();
        let bits = self.bits(measured)?;
        let expected: [f64; 3] = Layer::ALL.map(|to| {
            across(layer, to, low.inter_step, own) + self.offsets[to as usize] - self.offsets[at]
        });
        let motion = low.motion / SEEN_MOTION[at] * (low.fps / self.camera_fps).powf(SPREAD);
        let area = f64::from(measured.size.pixels());
        let gain = measured.enhanced_gain_db.filter(|gain| gain.is_finite());
        let fresh = Model {
            bits,
            complexity: expected,
            motion: motion.max(0.01),
            camera_fps: self.camera_fps,
            area,
            scale: self.scale,
            enhanced_gain_db: gain.map(|gain| gain.clamp(0.0, 20.0)),
        };
        let Some(old) = self.model else {
            self.last = Some(layer);
            // The first layer's key frame is all that there is to go by.
            self.settled = SETTLING;
            return Some(self.model.insert(fresh));
        };
        if self.last == Some(layer) {
            self.settled = self.settled.saturating_add(1);
        } else {
            self.foretold = self.settled.min(self.age) >= KNOWN;
            self.settled = 0;
        }
        self.last = Some(layer);
        self.age = if low.cut { 0 } else { self.age.saturating_add(1) };
        if self.settled < SETTLING && !low.cut {
            return self.model();
        }
        // What the layer turned out to need, now that it is being sent, against what another one had foretold, if that
        // was known well itself.
        if self.settled == SETTLING && self.foretold && self.age > SETTLING {
            let missed = own - old.complexity[at];
            self.offsets[at] = (self.offsets[at] + 0.5 * missed).clamp(-MAX_OFFSET, MAX_OFFSET);
        }
        let part = match self.age {
            0 => 1.0,
            age if age < NEW => PART_NEW,
            _ => PART,
        };
        let mix = |old: f64, new: f64| old + part * (new - old);
        let model = Model {
            bits: std::array::from_fn(|i| mix(old.bits[i], bits[i])),
            complexity: std::array::from_fn(|i| mix(old.complexity[i], expected[i])),
            motion: mix(old.motion.ln(), fresh.motion.ln()).exp(),
            enhanced_gain_db: match (old.enhanced_gain_db, fresh.enhanced_gain_db) {
                (Some(old), Some(new)) => Some(mix(old, new)),
                (old, new) => new.or(old),
            },
            ..fresh
        };
        Some(self.model.insert(model))
    }

    /// Visible bits of the three octaves below full size. Octaves that were not measured keep their ratio to the next
    /// smaller one.
    fn bits(&mut self, measured: &Measurements) -> Option<[f64; 3]> {
        let low = measured.low.as_ref()?;
        let third = low.octaves[2].bits();
        if low.octaves[2].is_empty() || !third.is_finite() {
            return None;
        }
        let third = third.max(0.01);
        let mut bits = [0.0, 0.0, third];
        for i in [1, 0] {
            let below = bits[i + 1];
            bits[i] = if low.octaves[i].is_empty() {
                below * self.ratios[i]
            } else {
                let seen = low.octaves[i].bits();
                self.ratios[i] = (seen / below).clamp(0.02, 2.0);
                seen.max(0.01)
            };
        }
        Some(bits)
    }
}
