//! Scoring a run of pictures against the original, one by one.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::picture::Picture;

use super::frames::{FrameStore, Size};
use super::metrics;
use super::vmaf::Vmaf;

/// Means over a clip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Mean PSNR of luma in dB.
    pub psnr_y_db: f64,
    /// Mean SSIM of luma; `None` for pictures smaller than its window.
    pub ssim: Option<f64>,
    /// Mean VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<f64>,
    /// Mean VMAF of the model that does not reward sharpening.
    pub vmaf_neg: Option<f64>,
}

/// Compares pictures with the original of the same number.
pub struct Scorer<'a> {
    original: Box<dyn Iterator<Item = Result<Picture>> + 'a>,
    size: Size,
    expected: usize,
    vmaf: Option<Vmaf>,
    psnr: f64,
    ssim: Option<f64>,
    count: usize,
    keep: &'a [usize],
    kept: Vec<Picture>,
}

impl<'a> Scorer<'a> {
    /// A scorer over all pictures of `original`, which sets the pictures numbered `keep` aside.
    pub fn new(
        original: &'a FrameStore,
        vmaf: Option<&Path>,
        keep: &'a [usize],
    ) -> Result<Scorer<'a>> {
        Ok(Scorer {
            original: Box::new(original.frames()?),
            size: original.size(),
            expected: original.len(),
            vmaf: vmaf.map(|ffmpeg| Vmaf::start(ffmpeg, original)).transpose()?,
            psnr: 0.0,
            ssim: Some(0.0),
            count: 0,
            keep,
            kept: Vec::new(),
        })
    }

    /// Scores the next picture.
    pub fn push(&mut self, picture: &Picture) -> Result<()> {
        let size = Size::of(picture);
        ensure!(
            size == self.size,
            "frame {} came out at {size} instead of {}",
            self.count,
            self.size
        );
        let original = self.original.next().context("more pictures than the clip has frames")??;
        self.psnr += metrics::psnr_db(&original.y, &picture.y);
        self.ssim =
            self.ssim.zip(metrics::ssim(&original.y, &picture.y)).map(|(sum, one)| sum + one);
        if let Some(vmaf) = &mut self.vmaf {
            vmaf.push(picture)?;
        }
        if self.keep.contains(&self.count) {
            self.kept.push(picture.clone());
        }
        self.count += 1;
        Ok(())
    }

    /// The means, and the pictures set aside.
    pub fn finish(self) -> Result<(Quality, Vec<Picture>)> {
        ensure!(self.count == self.expected, "{} of {} frames came out", self.count, self.expected);
        let frames = self.count as f64;
        let vmaf = self.vmaf.map(Vmaf::finish).transpose()?;
        let quality = Quality {
            psnr_y_db: self.psnr / frames,
            ssim: self.ssim.map(|sum| sum / frames),
            vmaf: vmaf.map(|s| s.vmaf),
            vmaf_neg: vmaf.map(|s| s.neg),
        };
        Ok((quality, self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::frames::FrameWriter;

    fn store() -> FrameStore {
        let mut writer = FrameWriter::new(Size { width: 32, height: 16 }).unwrap();
        (0..3).for_each(|_| writer.push(&Picture::grey(32, 16)).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn the_original_itself_scores_full_marks_and_wanted_pictures_are_kept() {
        let original = store();
        let mut scorer = Scorer::new(&original, None, &[0, 2]).unwrap();
        (0..3).for_each(|_| scorer.push(&Picture::grey(32, 16)).unwrap());
        let (quality, kept) = scorer.finish().unwrap();
        assert!((quality.psnr_y_db - metrics::PSNR_CAP_DB).abs() < 1e-9);
        assert!((quality.ssim.unwrap() - 1.0).abs() < 1e-4);
        assert_eq!((quality.vmaf, kept.len()), (None, 2));
    }

    #[test]
    fn missing_and_misfit_pictures_are_errors() {
        let original = store();
        let mut scorer = Scorer::new(&original, None, &[]).unwrap();
        assert!(scorer.push(&Picture::grey(16, 16)).is_err());
        scorer.push(&Picture::grey(32, 16)).unwrap();
        assert!(scorer.finish().is_err());
    }
}
