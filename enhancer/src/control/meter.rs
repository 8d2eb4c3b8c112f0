//! Measures one publisher's video in an interval, from the tap's own decoder.
//!
//! InputGrad of OneAdapt (§4.1.3) needs how the decoded picture changes with the knobs. All of it comes free: sizes and
//! quantisers of the frames that came anyway, differences from one picture to the next (the loss with fewer frames a
//! second), and the detail in each octave. The original is never used: a server does not have it. Pure. One row in
//! [`ROWS`] counts, so that it costs little.

use std::time::Duration;

use windlass_hybrid::resample::{box_half, lanczos2x};
use windlass_types::{Bitrate, Layer, Size};
use windlass_vp9::{FrameBuffer, FrameInfo, FrameKind, Plane, Samples, ac_step};

use super::texture::Texture;

/// Interval of the rows that are compared with the frame before.
const ROWS: usize = 4;
/// Share of intra blocks from which on a picture counts as another scene.
const CUT: f64 = 0.5;
/// Side of the blocks whose variance is measured, in samples.
const BLOCK: usize = 8;

/// Measurements of one publisher in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurements {
    /// Duration of the interval.
    pub span: Duration,
    /// Estimate of congestion control for the publisher's uplink.
    pub uplink: Bitrate,
    /// Size of the publisher's full pictures.
    pub size: Size,
    /// Measurements of the low layer; `None` if no frame came.
    pub low: Option<LowMeasure>,
    /// Gain of an enhanced anchor on its own frame in dB, if known. It comes from the drop that subscribers report when
    /// a new anchor meets the old reconstruction (ARISE's slope).
    pub enhanced_gain_db: Option<f64>,
}

/// Measurements of the low layer in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowMeasure {
    /// The layer that was measured.
    pub layer: Layer,
    /// Bitrate of the layer.
    pub bitrate: Bitrate,
    /// Frames of the layer per second.
    pub fps: f64,
    /// Bitrate of all frames but key frames.
    pub inter_bitrate: Bitrate,
    /// Mean quantiser step of all frames but key frames, in grey levels.
    pub inter_step: f64,
    /// Mean square difference of a picture from the one before, in square grey levels per sample.
    pub motion: f64,
    /// Whether a frame that is no key frame consisted mostly of intra blocks: another scene.
    pub cut: bool,
    /// Texture of each octave below the full size that the layer has. Octaves that it lacks are empty.
    pub octaves: [Texture; 3],
}

impl LowMeasure {
    /// Whether the numbers can be those of a video.
    pub fn is_sane(&self) -> bool {
        let positive = [self.inter_step, self.fps];
        self.inter_bitrate > Bitrate::ZERO
            && positive.iter().all(|v| v.is_finite() && *v > 0.0)
            && self.motion.is_finite()
            && self.motion >= 0.0
            && self.fps < 1000.0
    }
}

/// Sums of the frames that are not key frames.
#[derive(Debug, Default)]
struct InterFrames {
    count: u32,
    bytes: usize,
    /// Sum of the quantiser steps, in grey levels.
    steps: f64,
}

/// Sums up the frames of an interval.
#[derive(Debug, Default)]
pub struct Meter {
    layer: Option<Layer>,
    frames: u32,
    bytes: usize,
    inter: InterFrames,
    motion: f64,
    cut: bool,
    compared: u32,
    previous: Vec<u8>,
    previous_size: (usize, usize),
    octaves: [Texture; 3],
}

impl Meter {
    /// Creates a meter at the beginning of its first interval.
    pub fn new() -> Meter {
        Meter::default()
    }

    /// Adds a frame of the low layer as the tap decoded it. If its layer differs from that of the frame before, the
    /// interval begins anew.
    pub fn low(&mut self, layer: Layer, info: &FrameInfo, picture: &FrameBuffer) {
        if self.layer != Some(layer) {
            *self = Meter { layer: Some(layer), ..Meter::default() };
        }
        let luma = Samples::from(&picture.planes()[0]);
        let area = (luma.width * luma.height).max(1) as f64;
        self.frames += 1;
        self.bytes += info.encoded_bytes;
        if info.kind != FrameKind::Key {
            self.inter.count += 1;
            self.inter.bytes += info.encoded_bytes;
            self.inter.steps += step(info);
            let intra = info.blocks.iter().filter(|block| block.is_intra());
            let anew: f64 =
                intra.map(|block| f64::from(block.width) * f64::from(block.height)).sum();
            self.cut |= anew > CUT * area;
        }
        let rows: Vec<u8> =
            (0..luma.height).step_by(ROWS).flat_map(|y| luma.row(y).iter().copied()).collect();
        if self.previous_size == (luma.width, luma.height) {
            self.motion += mean_square(&rows, &self.previous);
            self.compared += 1;
        }
        (self.previous, self.previous_size) = (rows, (luma.width, luma.height));
        // One picture of an interval tells what the size has: it changes slowly.
        if self.frames == 1 {
            let plane = plane(luma);
            let first = Layer::F as usize - layer as usize;
            octaves(&plane, &mut self.octaves[first..]);
        }
    }

    /// Returns the measurements of the interval, and begins the next. `uplink` is the estimate at the interval's end.
    pub fn take(&mut self, span: Duration, size: Size, uplink: Bitrate) -> Measurements {
        let seconds = span.as_secs_f64().max(1e-3);
        let kbps = |bytes: usize| bytes as f64 * 0.008 / seconds;
        let frames = f64::from(self.frames);
        let low = self.layer.filter(|_| self.frames > 0).map(|layer| LowMeasure {
            layer,
            bitrate: Bitrate::kbps(kbps(self.bytes)),
            fps: frames / seconds,
            // As if all frames were like these: key frames are no part of what the rate control balances.
            inter_bitrate: Bitrate::kbps(
                kbps(self.inter.bytes) * frames / f64::from(self.inter.count.max(1)),
            ),
            inter_step: self.inter.steps / f64::from(self.inter.count.max(1)),
            motion: self.motion / f64::from(self.compared.max(1)),
            cut: self.cut,
            octaves: self.octaves,
        });
        *self = Meter {
            layer: self.layer,
            previous: std::mem::take(&mut self.previous),
            previous_size: self.previous_size,
            ..Meter::default()
        };
        Measurements { span, uplink, size, low, enhanced_gain_db: None }
    }
}

/// Adds the texture of a picture in each octave below its own size.
fn octaves(picture: &Plane, to: &mut [Texture]) {
    let mut larger = picture.clone();
    for texture in to {
        if larger.width() < 4 * BLOCK || larger.height() < 4 * BLOCK {
            break;
        }
        let smaller = box_half(&larger);
        octave(&larger, &smaller, texture);
        larger = smaller;
    }
}

/// Quantiser step of a frame, in grey levels.
fn step(info: &FrameInfo) -> f64 {
    f64::from(ac_step(info.quantiser)) / 8.0
}

fn plane(luma: Samples<'_>) -> Plane {
    let rows = (0..luma.height).flat_map(|y| luma.row(y).iter().copied()).collect();
    Plane::from_samples(luma.width, luma.height, rows).unwrap_or_default()
}

/// Adds the block variances of what a picture has beyond its half-size copy.
fn octave(larger: &Plane, smaller: &Plane, to: &mut Texture) {
    let base = lanczos2x(smaller);
    let (width, height) = (base.width().min(larger.width()), base.height().min(larger.height()));
    for y in (0..height / BLOCK * BLOCK).step_by(BLOCK) {
        for x in (0..width / BLOCK * BLOCK).step_by(BLOCK) {
            let rows = y..y + BLOCK;
            let sum: u32 = rows
                .map(|y| squares(&larger.row(y)[x..x + BLOCK], &base.row(y)[x..x + BLOCK]))
                .sum();
            to.add(f64::from(sum) / (BLOCK * BLOCK) as f64);
        }
    }
}

fn squares(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

fn mean_square(a: &[u8], b: &[u8]) -> f64 {
    let lines = a.chunks(4096).zip(b.chunks(4096));
    lines.map(|(a, b)| f64::from(squares(a, b))).sum::<f64>() / a.len().max(1) as f64
}
