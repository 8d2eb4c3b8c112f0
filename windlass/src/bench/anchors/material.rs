//! A clip's low layer and the anchors that go with it, before they are coded.

use anyhow::{Context, Result};
use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg, detail_of};
use windlass_hybrid::anchor::{AnchorHeader, ReassembledAnchor};
use windlass_hybrid::detail::Detail;
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::{HybridConfig, HybridDecoder};

use super::args::Source;
use crate::eval::clip::Clip;
use crate::eval::low_layer::{self, Coded};
use crate::eval::scale::Scale;
use crate::eval::sr::Upscaler;

/// HR over LR.
pub const SCALE: usize = 2;

/// Finest quality of the still codec by which a twin is given finished detail.
const TRANSPORT_QUALITY: u8 = 100;

/// Encodes the halved clip as Chromium does.
pub fn low_layer(clip: &Clip, kbps: u32, screen: bool) -> Result<Coded> {
    low_layer::encode(clip, kbps, screen, |picture| Scale::TWO.shrink(&picture))
}

/// Frames, and the detail that some of them get.
pub struct Material {
    /// Width and height of HR pictures.
    pub size: (usize, usize),
    /// The coded low layer.
    pub frames: Vec<Vec<u8>>,
    /// The original HR luma of every frame.
    pub originals: Vec<Plane>,
    /// Anchors: their frame, its low luma, and its detail.
    pub anchors: Vec<(usize, Plane, Detail)>,
}

impl Material {
    /// Takes `rate` anchors per second from the first frame on.
    pub fn new(
        clip: &Clip,
        low: &Coded,
        source: Source,
        rate: f64,
        upscaler: &mut Upscaler,
    ) -> Result<Material> {
        let interval = (clip.fps / rate).round().max(1.0) as usize;
        let size = clip.frames.size();
        let mut material = Material {
            size: (size.width, size.height),
            frames: low.frames.iter().map(|f| f.data.clone()).collect(),
            originals: Vec::new(),
            anchors: Vec::new(),
        };
        for (n, (original, low)) in clip.frames.frames()?.zip(low.pictures.frames()?).enumerate() {
            let (original, low): (Picture, Picture) = (original?, low?);
            if n % interval == 0 {
                let high = match source {
                    Source::Original => original.y.clone(),
                    // What the network adds and a picture cannot show is not asked of any codec.
                    Source::Sr => upscaler.picture(&low)?.y,
                };
                material.anchors.push((n, low.y.clone(), detail_of(&high, &low.y, 2)?));
            }
            material.originals.push(original.y);
        }
        Ok(material)
    }

    /// The details alone.
    pub fn details(&self) -> impl Iterator<Item = &Detail> {
        self.anchors.iter().map(|(_, _, detail)| detail)
    }
}

/// A subscriber's decoder that is given finished detail.
pub struct Subscriber {
    decoder: HybridDecoder,
    size: (usize, usize),
}

impl Subscriber {
    /// One that has seen nothing.
    pub fn new(size: (usize, usize)) -> Subscriber {
        Subscriber { decoder: HybridDecoder::new(HybridConfig::default()), size }
    }

    /// Takes frame `n`.
    pub fn frame(&mut self, n: usize, data: &[u8]) -> Result<()> {
        self.decoder.push_frame(timestamp(n), data)?;
        Ok(())
    }

    /// The HR luma on display.
    pub fn luma(&self) -> Result<&Plane> {
        self.decoder.hr().map(|p| &p.y).context("nothing is shown")
    }

    /// What the picture on display has beyond its low one.
    pub fn shown(&self, low: &Plane) -> Result<Detail> {
        Ok(detail_of(self.luma()?, low, 2)?)
    }

    /// Gives frame `n` its detail, by the finest still code.
    pub fn anchor(&mut self, n: usize, detail: &Detail) -> Result<()> {
        let payload = ResidualJpeg.encode(detail, TRANSPORT_QUALITY)?;
        let mut bytes = vec![1, ResidualJpeg.id(), 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0];
        bytes.extend(timestamp(n).to_be_bytes());
        bytes.extend((self.size.0 as u16).to_be_bytes());
        bytes.extend((self.size.1 as u16).to_be_bytes());
        bytes.push(0);
        let (header, _) = AnchorHeader::parse(&bytes)?;
        self.decoder.push_anchor(&ReassembledAnchor { header, payload });
        self.decoder.refresh();
        Ok(())
    }
}

fn timestamp(n: usize) -> u32 {
    3000 * n as u32
}

/// Mean squared error in grey levels.
pub fn mse(a: &Detail, b: &Detail) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: u64 =
        pairs.map(|(&a, &b)| u64::from((i32::from(a) - i32::from(b)).unsigned_abs()).pow(2)).sum();
    sum as f64 / 256.0 / a.samples().len().max(1) as f64
}

/// Mean squared error of two pictures.
pub fn plane_mse(a: &Plane, b: &Plane) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: u64 = pairs.map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum();
    sum as f64 / a.samples().len().max(1) as f64
}

/// Decibels of a mean squared error of 8-bit samples.
pub fn db(mse: f64) -> f64 {
    10.0 * (255.0 * 255.0 / mse.max(1e-9)).log10()
}

/// `a + b`.
pub fn add(a: &Detail, b: &Detail) -> Detail {
    let mut sum = a.clone();
    for (s, &d) in sum.samples_mut().iter_mut().zip(b.samples()) {
        *s = s.saturating_add(d);
    }
    sum
}

/// `a - b`.
pub fn subtract(a: &Detail, b: &Detail) -> Detail {
    let mut rest = a.clone();
    for (s, &d) in rest.samples_mut().iter_mut().zip(b.samples()) {
        *s = s.saturating_sub(d);
    }
    rest
}

/// The clip's picture repeated, every other one mirrored, to another size: sharp as it is, and
/// without seams.
pub fn tile_plane(source: &Plane, width: usize, height: usize) -> Plane {
    let mut samples = Vec::with_capacity(width * height);
    for y in 0..height {
        let row = source.row(fold(y, source.height()));
        samples.extend((0..width).map(|x| row[fold(x, source.width())]));
    }
    Plane::from_samples(width, height, samples).unwrap_or_default()
}

/// Place `i` of a row of `n` samples that is repeated, every other time mirrored.
fn fold(i: usize, n: usize) -> usize {
    if (i / n).is_multiple_of(2) { i % n } else { n - 1 - i % n }
}

/// As [`tile_plane`].
pub fn tile_picture(source: &Picture, width: usize, height: usize) -> Picture {
    let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
    Picture {
        y: tile_plane(&source.y, width, height),
        u: tile_plane(&source.u, cw, ch),
        v: tile_plane(&source.v, cw, ch),
    }
}

/// As [`tile_plane`], of detail.
pub fn tile_detail(source: &Detail, width: usize, height: usize) -> Detail {
    let mut out = Detail::zero(width, height);
    for y in 0..height {
        let row = source.row(fold(y, source.height()));
        for (x, d) in out.row_mut(y).iter_mut().enumerate() {
            *d = row[fold(x, source.width())];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use windlass_hybrid::resample::to_plane;

    use super::*;

    #[test]
    fn a_mirrored_plane_has_no_seams() {
        let source = Plane::from_samples(3, 1, vec![1, 2, 3]).unwrap();
        let out = tile_plane(&source, 8, 2);
        assert_eq!(out.samples(), [1, 2, 3, 3, 2, 1, 1, 2].repeat(2));
    }

    #[test]
    fn half_a_grey_level_everywhere_is_a_quarter_of_mse() {
        let a = Detail::zero(4, 4);
        let b = Detail::from_samples(4, 4, vec![8; 16]).unwrap();
        assert!((mse(&a, &b) - 0.25).abs() < 1e-12);
        assert!((db(1.0) - 48.13).abs() < 0.01);
        assert_eq!(subtract(&add(&a, &b), &b), a);
        assert!(to_plane(&b).samples().iter().all(|&v| v == 1));
    }
}
