//! What quality and bits to expect of knobs: OutputGrad of OneAdapt as a chain of two models.
//!
//! OneAdapt §4.1.3 splits how the output changes with a knob into how the decoded picture changes with it (InputGrad)
//! and how the output changes with the picture (DNNGrad). Here the picture is described by three numbers by layer: the
//! quantiser step that the bits buy, how often frames come, and how much of the lost octaves anchors give back.
//!
//! 1. **InputGrad**, from what comes free. Bits × step is a constant of the content (MPEG-2 test model 5's complexity;
//!    measured here: step ∝ bits⁻¹·⁰, frames¹ᐟ²), so every interval's own frames tell the step at any other bitrate;
//!    other layers' complexities follow by [`across`], corrected by what was seen when a layer was last used.
//! 2. **The quality gradient**, by finite differences of [`Model::quality`]: loss by coding noise, by the octaves that
//!    a smaller layer lacks, and by frames that are held.
//!
//! Coefficients were fitted to VMAF by least squares (`lab/notes/controller.md`); quality is on its scale.

use windlass_types::{Bitrate, Layer, Size};

use super::knobs::{Knobs, divisor};

/// Coarsest quantiser step that Chromium's encoders use (quantiser 56 of 63), in grey levels. It bounds the bitrate
/// from below.
pub(super) const COARSEST: f64 = 125.9;
/// Finest quantiser step that Chromium's encoders use for a shared screen (quantiser 8), in grey levels; a camera's is
/// close to it. It bounds the bitrate from above.
pub(super) const FINEST: f64 = 4.9;
/// Full-size area at which the coefficients were fitted, in luma samples.
const FITTED_AREA: f64 = 640.0 * 360.0;

/// Model of one stream's content: the numbers that [`Model::expect`] computes quality and bitrate from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Visible bits per block in each of the three octaves below full size: [`Texture::bits`](super::Texture::bits).
    pub bits: [f64; 3],
    /// `ln(step · kbps / √fps)` of each layer.
    pub complexity: [f64; 3],
    /// Mean square difference of two successive camera frames, in square grey levels.
    pub motion: f64,
    /// Frames per second that the camera gives.
    pub camera_fps: f64,
    /// Luma samples of a full-size picture.
    pub area: f64,
    /// Maximum size of viewers' pictures over that of the low layer. Detail beyond it reaches no viewer.
    pub scale: usize,
    /// Gain of an enhanced anchor on its own frame, in dB; `None` if not known.
    pub enhanced_gain_db: Option<f64>,
}

/// Loss by coding noise, in VMAF: factor, exponent of the quantiser step (in full-size samples), exponent of the
/// texture. Fitted (`lab/notes/controller.md`).
const NOISE: (f64, f64, f64) = (0.939, 0.702, -0.973);
/// Texture at which the factor of [`NOISE`] holds, in visible bits per block of the third octave.
const USUAL_TEXTURE: f64 = 3.0;
/// Loss of the half layer by the octave that it lacks, in VMAF: constant, and factor per visible bit. Fitted
/// (`lab/notes/controller.md`).
const HALF: (f64, f64) = (-1.094, 7.32);
/// Loss of the quarter layer by the two octaves that it lacks, in VMAF: constant, and factor per visible bit. Fitted
/// (`lab/notes/controller.md`).
const QUARTER: (f64, f64) = (-3.45, 10.665);
/// Loss where every other frame is held, in VMAF: factor, and exponent of the motion in square grey levels. Fitted
/// (`lab/notes/controller.md`).
const HOLD: (f64, f64) = (1.185, 0.644);
/// Motion at which an anchor's gain decays to 1/e within one second, in square grey levels.
const DECAY: f64 = 3.52;
/// Quantiser step of the half layer of a usual face, in grey levels, at 640×360, 80 kbit/s and 30 frames a second.
const USUAL_STEP: f64 = 27.0;
/// Share of a usual camera's complexity and motion that a shared screen has, because it stands still most of the time.
const SCREEN: f64 = 0.2;
/// VMAF that each dB of an enhanced anchor's gain adds, as super-resolution does on faces.
const BY_DB: f64 = 2.0;
/// Bytes per full-size sample at which an enhanced anchor has 1 − 1/e of its gain.
const ANCHOR_BYTES: f64 = 0.02;

/// Quality and bitrate that a setting of the knobs is expected to give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Expected quality of the picture, on VMAF's scale of 0 to 100.
    pub quality: f64,
    /// Expected bitrate: lower than allowed if the finest quantiser needs less, higher if the coarsest needs more.
    pub bitrate: Bitrate,
}

impl Model {
    /// Model of a usual talking head, or of a usual shared screen, with the given picture size and frame rate.
    pub fn usual(size: Size, camera_fps: f64, screen: bool) -> Model {
        let area = f64::from(size.pixels()).max(1.0);
        let part = if screen { SCREEN } else { 1.0 };
        let complexity =
            (part * USUAL_STEP * 80.0 * (area / FITTED_AREA).sqrt() / 30f64.sqrt()).ln();
        Model {
            bits: [0.7, 1.4, 2.8],
            complexity: Layer::ALL.map(|layer| across(Layer::H, layer, USUAL_STEP, complexity)),
            motion: 10.0 * part,
            camera_fps,
            area,
            scale: 4,
            enhanced_gain_db: None,
        }
    }

    /// Quality and bitrate that `knobs` are expected to give.
    pub fn expect(&self, knobs: &Knobs) -> Expected {
        let (step, kbps) = self.step(knobs);
        Expected { quality: self.quality(knobs, step), bitrate: Bitrate::kbps(kbps) }
    }

    /// Quantiser step of the low layer in grey levels, and the kbit/s that the layer really takes.
    fn step(&self, knobs: &Knobs) -> (f64, f64) {
        let kbps = knobs.bitrate.as_kbps().max(1.0);
        let wanted =
            (self.complexity[knobs.layer as usize] + 0.5 * knobs.fps.max(1.0).ln()).exp() / kbps;
        let step = wanted.clamp(FINEST, COARSEST);
        (step, kbps * wanted / step)
    }

    fn quality(&self, knobs: &Knobs, step: f64) -> f64 {
        let size = divisor(knobs.layer) as f64;
        let texture = self.bits[2].max(0.2) / USUAL_TEXTURE;
        let noise = NOISE.0 * (size * step).powf(NOISE.1) * texture.powf(NOISE.2).min(3.0);
        let [first, second, _] = self.bits;
        let lost = match knobs.layer {
            Layer::F => 0.0,
            Layer::H => HALF.0 + HALF.1 * first,
            Layer::Q => QUARTER.0 + QUARTER.1 * (first + second),
        };
        let given = self.enhanced(knobs);
        // The octave above viewers' pictures is lost whatever is given.
        let beyond = if self.beyond(knobs.layer) { HALF.0 + HALF.1 * first } else { 0.0 };
        let (lost, beyond) = (lost.max(0.0), beyond.max(0.0));
        let within = (lost - beyond).max(0.0);
        100.0 - noise - lost.min(beyond) - within * (1.0 - given) - self.held(knobs)
    }

    /// Whether viewers' pictures made from `layer` are smaller than full-size ones.
    fn beyond(&self, layer: Layer) -> bool {
        self.scale < divisor(layer)
    }

    /// Loss by frames that still show the one before, in VMAF: by their share, and by how long they show it.
    fn held(&self, knobs: &Knobs) -> f64 {
        let sent = (knobs.fps / self.camera_fps).clamp(0.05, 1.0);
        HOLD.0 * self.motion.powf(HOLD.1) * 2.0 * (1.0 - sent) * (0.5 / sent).sqrt()
    }

    /// Mean share of an anchor's detail that is left until the next anchor, at `per_second` anchors a second.
    fn fresh(&self, per_second: f64) -> f64 {
        let decay = (self.motion / DECAY / per_second.max(1e-3)).max(1e-6);
        (1.0 - (-decay).exp()) / decay
    }

    /// Share of the lost octaves that enhanced anchors give back, 0 to 1, by the gain that subscribers report.
    fn enhanced(&self, knobs: &Knobs) -> f64 {
        let gain = self.enhanced_gain_db.unwrap_or(0.0);
        if gain <= 0.0 || knobs.anchor_fraction <= 0.0 || knobs.layer == Layer::F {
            return 0.0;
        }
        let lost = (HALF.0 + HALF.1 * self.bits[0]).max(1.0);
        let coded = 1.0 - (-f64::from(knobs.anchor_bytes) / (ANCHOR_BYTES * self.area)).exp();
        let fresh = self.fresh(knobs.anchor_fraction * knobs.fps);
        (BY_DB * gain / lost * coded * fresh).clamp(0.0, 1.0)
    }
}

/// Expected complexity of layer `to`, from the quantiser step and complexity of layer `from`. Constants and exponents
/// are fitted (`lab/notes/controller.md`).
pub(super) fn across(from: Layer, to: Layer, step: f64, complexity: f64) -> f64 {
    let (constant, exponent) = match (from, to) {
        (Layer::F, Layer::H) => (-0.16, 0.82),
        (Layer::F, Layer::Q) => (-0.86, 0.78),
        (Layer::H, Layer::F) => (0.46, 1.12),
        (Layer::H, Layer::Q) => (-0.70, 0.95),
        (Layer::Q, Layer::F) => (1.68, 1.01),
        (Layer::Q, Layer::H) => (1.13, 0.88),
        _ => (0.0, 1.0),
    };
    complexity + constant + (exponent - 1.0) * step.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A talking head: at 100 kbit/s and 30 frames a second the half layer has a step of 25.
    fn face() -> Model {
        let complexity = (25.0f64 * 100.0 / 30f64.sqrt()).ln();
        Model {
            bits: [0.8, 1.6, 3.0],
            complexity: Layer::ALL.map(|layer| across(Layer::H, layer, 25.0, complexity)),
            motion: 5.0,
            camera_fps: 30.0,
            area: 640.0 * 360.0,
            scale: 4,
            enhanced_gain_db: None,
        }
    }

    fn plain(layer: Layer, kbps: f64) -> Knobs {
        let bitrate = Bitrate::kbps(kbps);
        Knobs { layer, fps: 30.0, bitrate, anchor_fraction: 0.0, anchor_bytes: 0 }
    }

    #[test]
    fn half_the_bits_are_twice_the_step_until_the_encoder_has_no_coarser_one() {
        let model = face();
        let (at_100, sent) = model.step(&plain(Layer::H, 100.0));
        assert!((at_100 - 25.0).abs() < 1e-9 && (sent - 100.0).abs() < 1e-9);
        assert!((model.step(&plain(Layer::H, 50.0)).0 - 50.0).abs() < 1e-9);
        let (step, sent) = model.step(&plain(Layer::F, 20.0));
        assert!((step - COARSEST).abs() < 1e-9 && sent > 40.0, "{sent}");
    }

    #[test]
    fn larger_layers_win_with_many_bits_and_smaller_ones_with_few() {
        let at = |layer, kbps| face().expect(&plain(layer, kbps)).quality;
        assert!(at(Layer::F, 300.0) > at(Layer::H, 300.0));
        assert!(at(Layer::H, 30.0) > at(Layer::F, 30.0) - 20.0 * 3.0);
        assert!(at(Layer::H, 100.0) > at(Layer::Q, 100.0));
    }

    #[test]
    fn held_frames_cost_by_motion_and_none_where_all_are_sent() {
        let model = face();
        let at = |fps, motion| {
            let model = Model { motion, ..model };
            model.held(&Knobs { fps, ..plain(Layer::H, 100.0) })
        };
        assert!(at(30.0, 50.0).abs() < 1e-9);
        assert!(at(15.0, 50.0) > 3.0 * at(15.0, 5.0) && at(10.0, 5.0) > at(15.0, 5.0));
    }
}
