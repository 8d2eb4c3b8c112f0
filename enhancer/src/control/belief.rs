//! From what was measured to what is believed of the content.
//!
//! Measurements are of the layer that is being sent; the model wants all three. What cannot be seen is taken from what
//! was last seen of it, in proportion to what can be. Each interval moves a belief part of the way; another scene moves
//! it all the way, so that a change of content is believed at once.

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
/// Octaves in proportion to the next smaller one, where none was ever seen.
const USUAL_RATIOS: [f64; 2] = [0.5, 0.55];
/// Motion seen in a layer's samples over that of the full size.
const SEEN_MOTION: [f64; 3] = [0.75, 0.92, 1.0];
/// Exponent by which the difference of two frames grows with their distance in time.
const SPREAD: f64 = 1.38;
/// Maximum difference of a layer from what the fit expects, in logarithms.
const MAX_OFFSET: f64 = 0.6;

/// What was learned so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Belief {
    model: Option<Model>,
    /// Octaves over the next smaller one, as last seen.
    ratios: [f64; 2],
    /// By layer, how its complexity differs from the one expected by [`across`].
    offsets: [f64; 3],
    last: Option<Layer>,
    /// Intervals since the content was another.
    age: u32,
    /// Intervals since the layer was another.
    settled: u32,
    /// Whether the layer before was known well when this one began.
    foretold: bool,
    camera_fps: f64,
    scale: usize,
}

impl Belief {
    /// Nothing is known but the camera's frame rate, and how much larger than the low layer viewers' pictures are.
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

    /// Viewers' pictures have another size over the low layer's from now on; anchors of that gain something else.
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

    /// Takes what was measured in an interval. `None`, and nothing changes, where the numbers are missing or absurd.
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

    /// Visible bits of the three octaves, as far as they were seen; the others in proportion.
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
