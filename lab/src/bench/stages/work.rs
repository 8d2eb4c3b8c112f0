//! The work: an encoded low layer, and details to encode as anchors.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::prior::Prior;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Picture, Plane, Samples};

use crate::bench::vp9::streams::Stream;
use crate::eval::cpu_clock::CpuClock;
use crate::eval::scale::Scale;
use windlass_vpx::{Encoder, EncoderConfig};

/// HR size over LR size.
const SCALE: usize = 2;
/// Number of details that are encoded by turns, so that caches do not hold all of them.
const DETAILS: usize = 8;
/// Quality of the server's anchors.
const QUALITY: u8 = 85;

/// The frames and details that every stream is made of.
pub(super) struct Work {
    /// The low layer: a key frame first.
    pub chunks: Vec<Vec<u8>>,
    /// Number of pixels of the low layer's pictures.
    pub pixels: u64,
    anchors: Vec<(Plane, Detail)>,
}

/// The work's CPU time on this machine without other load, for each frame and each anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Mean time to decode, over the low layer's frames.
    pub decode: Duration,
    /// Mean time to encode, over the anchors.
    pub encode: Duration,
}

impl Work {
    /// The work of a low layer and the same clip at HR size.
    pub(super) fn of_clip(low: &Stream, high: &Stream) -> Result<Work> {
        ensure!(low.chunks.len() == high.chunks.len(), "the streams differ in length");
        let mut decoder = Decoder::new();
        Work::new(low.chunks.clone(), |n| luma(&mut decoder, &high.chunks[n]))
    }

    /// The work of a moving texture with noise.
    pub(super) fn drawn(width: usize, height: usize, frames: usize) -> Result<Work> {
        let config =
            EncoderConfig { width, height, fps: 30.0, kbps: 500, screen: false, cpu_used: Some(7) };
        let mut encoder = Encoder::new(config)?;
        let low = (0..frames)
            .map(|n| encoder.encode(&Scale::TWO.shrink(&scene(SCALE * width, SCALE * height, n))));
        let low = low.collect::<Result<_, _>>()?;
        Work::new(low, |n| Ok(scene(SCALE * width, SCALE * height, n).y))
    }

    /// The work of a low layer; `high` makes the HR luma of every frame in turn.
    fn new(chunks: Vec<Vec<u8>>, mut high: impl FnMut(usize) -> Result<Plane>) -> Result<Work> {
        let (mut decoder, mut anchors, mut pixels) = (Decoder::new(), Vec::new(), 0);
        let every = chunks.len().div_ceil(DETAILS).max(1);
        for (n, chunk) in chunks.iter().enumerate() {
            let (low, high) = (luma(&mut decoder, chunk)?, high(n)?);
            pixels = (low.width() * low.height()) as u64;
            if n % every == 0 {
                let detail = detail_of(&high, &low, SCALE).context("the sizes do not fit")?;
                anchors.push((low, detail));
            }
        }
        ensure!(!anchors.is_empty(), "there are no frames");
        Ok(Work { chunks, pixels, anchors })
    }

    /// Number of HR samples of an anchor.
    pub(super) fn samples(&self) -> u64 {
        self.pixels * (SCALE * SCALE) as u64
    }

    /// The low luma and the detail of the `n`th anchor, not encoded yet.
    pub(super) fn anchor(&self, n: usize) -> (Samples<'_>, Detail) {
        let (low, detail) = &self.anchors[n % self.anchors.len()];
        (low.into(), detail.clone())
    }

    /// Measures the time of everything once, in this thread.
    pub(super) fn cost(&self) -> Result<Cost> {
        let (mut decoder, mut coder) = (Decoder::new(), Coder::new());
        let (mut decoding, mut coding) = (CpuClock::default(), CpuClock::default());
        for chunk in &self.chunks {
            decoding.measure(|| decoder.decode(chunk).map(drop))?;
        }
        for n in 0..2 * self.anchors.len() {
            let (low, detail) = self.anchor(n);
            coding.measure(|| coder.code(low, detail))?;
        }
        let mean = |clock: CpuClock| {
            Duration::from_secs_f64(clock.mean_run_ms().unwrap_or_default() / 1e3)
        };
        Ok(Cost { decode: mean(decoding), encode: mean(coding) })
    }
}

/// Encodes anchors as the server's workers do.
pub(super) struct Coder {
    prior: Prior,
}

impl Coder {
    pub(super) fn new() -> Coder {
        Coder { prior: Prior::new(Isa::detect(), SCALE) }
    }

    /// Encodes one anchor, and returns its length in bytes.
    pub(super) fn code(&mut self, low: Samples<'_>, mut detail: Detail) -> Result<usize> {
        self.prior.take_out(low, &mut detail);
        Ok(Htj2k::encode(&detail, QUALITY)?.len())
    }
}

fn luma(decoder: &mut Decoder, chunk: &[u8]) -> Result<Plane> {
    let frames = decoder.decode(chunk)?;
    let shown = frames.iter().rfind(|f| f.info.shown).context("nothing is shown")?;
    Ok(shown.picture.to_picture().y)
}

fn scene(width: usize, height: usize, n: usize) -> Picture {
    let mut picture = Picture::grey(width, height);
    let mut state = n as u32 + 1;
    for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
        let (x, y) = ((i % width + 2 * n) as f32, (i / width) as f32);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let texture = 50.0 * (x * 0.21).sin() + 40.0 * (y * 0.17 + x * 0.05).cos();
        *v = (124.0 + texture + (state >> 29) as f32) as u8;
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_scene_is_work_for_both_stages() {
        let work = Work::drawn(96, 64, 10).unwrap();
        assert_eq!((work.chunks.len(), work.pixels, work.samples()), (10, 6144, 24576));
        let cost = work.cost().unwrap();
        assert!(!cost.decode.is_zero() && !cost.encode.is_zero(), "{cost:?}");
        let (low, detail) = work.anchor(11);
        assert!(Coder::new().code(low, detail).unwrap() > 100);
    }
}
