//! How near a shown picture is to the original, by four measures.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use ssimulacra2::{ColorPrimaries, Rgb, TransferCharacteristic, compute_frame_ssimulacra2};
use windlass_hybrid::picture::Picture;

use crate::eval::frames::{FrameStore, Size};
use crate::eval::metrics;
use crate::eval::pictures;
use crate::eval::stats::mean;
use crate::eval::vmaf::Vmaf;

/// SSIMULACRA2 is an image's measure and slow: it takes every so manyeth frame.
const STEP: usize = 30;

/// Means over the frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// PSNR of luma in dB.
    pub psnr_y_db: f64,
    /// VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<f64>,
    /// VMAF of the model that does not reward sharpening.
    pub vmaf_neg: Option<f64>,
    /// SSIMULACRA2 in colour, of every 30th frame: 100 is the original, 90 cannot be told from it.
    pub ssimulacra2: f64,
}

/// The frame that is kept to be looked at.
pub fn kept_frame(count: usize) -> usize {
    count * 3 / 4
}

/// Compares pictures with the original of the same number.
pub struct Scorer<'a> {
    original: Box<dyn Iterator<Item = Result<Picture>> + 'a>,
    size: Size,
    expected: usize,
    vmaf: Option<Vmaf>,
    psnr: Vec<f64>,
    ssimulacra2: Vec<f64>,
    kept: Option<Picture>,
}

impl<'a> Scorer<'a> {
    /// A scorer over all pictures of `original`.
    pub fn new(original: &'a FrameStore, vmaf: Option<&Path>) -> Result<Scorer<'a>> {
        Ok(Scorer {
            original: Box::new(original.frames()?),
            size: original.size(),
            expected: original.len(),
            vmaf: vmaf.map(|ffmpeg| Vmaf::start(ffmpeg, original)).transpose()?,
            psnr: Vec::new(),
            ssimulacra2: Vec::new(),
            kept: None,
        })
    }

    /// Scores the next picture.
    pub fn push(&mut self, picture: &Picture) -> Result<()> {
        let n = self.psnr.len();
        let size = Size::of(picture);
        ensure!(size == self.size, "frame {n} came out at {size} instead of {}", self.size);
        let original = self.original.next().context("more pictures than the clip has frames")??;
        self.psnr.push(metrics::psnr_db(&original.y, &picture.y));
        if n % STEP == STEP / 2 || n + 1 == self.expected && self.ssimulacra2.is_empty() {
            self.ssimulacra2.push(compute_frame_ssimulacra2(rgb(&original)?, rgb(picture)?)?);
        }
        if let Some(vmaf) = &mut self.vmaf {
            vmaf.push(picture)?;
        }
        if n == kept_frame(self.expected) {
            self.kept = Some(picture.clone());
        }
        Ok(())
    }

    /// The means, and the picture that was kept.
    pub fn finish(self) -> Result<(Quality, Picture)> {
        let count = self.psnr.len();
        ensure!(count == self.expected, "{count} of {} frames came out", self.expected);
        let vmaf = self.vmaf.map(Vmaf::finish).transpose()?;
        let quality = Quality {
            psnr_y_db: mean(self.psnr).context("no frames")?,
            vmaf: vmaf.as_ref().and_then(|scores| mean(scores.vmaf.iter().copied())),
            vmaf_neg: vmaf.as_ref().and_then(|scores| mean(scores.neg.iter().copied())),
            ssimulacra2: mean(self.ssimulacra2).context("no frames")?,
        };
        Ok((quality, self.kept.context("no frames")?))
    }
}

fn rgb(picture: &Picture) -> Result<Rgb> {
    let bytes = pictures::rgb(picture);
    let pixels = bytes.as_chunks::<3>().0.iter().map(|p| p.map(|c| f32::from(c) / 255.0)).collect();
    let (transfer, primaries) = (TransferCharacteristic::SRGB, ColorPrimaries::BT709);
    Rgb::new(pixels, picture.width(), picture.height(), transfer, primaries)
        .context("a picture of no size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    #[test]
    fn the_original_scores_full_marks_and_a_grey_picture_does_not() {
        let clip = synthetic::panning(4);
        let score = |grey: bool| {
            let mut scorer = Scorer::new(&clip.frames, None).unwrap();
            for picture in clip.frames.frames().unwrap() {
                let picture = picture.unwrap();
                let grey_one = Picture::grey(picture.width(), picture.height());
                scorer.push(if grey { &grey_one } else { &picture }).unwrap();
            }
            scorer.finish().unwrap()
        };
        let (same, kept) = score(false);
        assert!(same.psnr_y_db > 99.0 && same.ssimulacra2 > 99.0, "{same:?}");
        let third = clip.frames.frames().unwrap().nth(3).unwrap().unwrap();
        assert_eq!(kept, third);
        assert!(score(true).0.ssimulacra2 < 20.0);
    }
}
