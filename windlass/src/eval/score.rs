//! Scoring a run of pictures against the original, one by one.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::picture::Picture;

use super::frames::{FrameStore, Size};
use super::metrics;
use super::vmaf::Vmaf;

/// Quality frame by frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores {
    /// PSNR of luma in dB.
    pub psnr_y_db: Vec<f64>,
    /// SSIM of luma; `None` for pictures smaller than its window.
    pub ssim: Option<Vec<f64>>,
    /// VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<Vec<f64>>,
    /// VMAF of the model that does not reward sharpening.
    pub vmaf_neg: Option<Vec<f64>>,
}

/// Compares pictures with the original of the same number.
pub struct Scorer<'a> {
    original: Box<dyn Iterator<Item = Result<Picture>> + 'a>,
    size: Size,
    expected: usize,
    vmaf: Option<Vmaf>,
    psnr: Vec<f64>,
    ssim: Option<Vec<f64>>,
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
            psnr: Vec::with_capacity(original.len()),
            ssim: Some(Vec::with_capacity(original.len())),
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
        self.psnr.push(metrics::psnr_db(&original.y, &picture.y));
        match (&mut self.ssim, metrics::ssim(&original.y, &picture.y)) {
            (Some(series), Some(one)) => series.push(one),
            (series, _) => *series = None,
        }
        if let Some(vmaf) = &mut self.vmaf {
            vmaf.push(picture)?;
        }
        if self.keep.contains(&self.count) {
            self.kept.push(picture.clone());
        }
        self.count += 1;
        Ok(())
    }

    /// The scores, and the pictures set aside.
    pub fn finish(self) -> Result<(Scores, Vec<Picture>)> {
        ensure!(self.count == self.expected, "{} of {} frames came out", self.count, self.expected);
        let vmaf = self.vmaf.map(Vmaf::finish).transpose()?;
        let (vmaf, vmaf_neg) = vmaf.map(|scores| (scores.vmaf, scores.neg)).unzip();
        Ok((Scores { psnr_y_db: self.psnr, ssim: self.ssim, vmaf, vmaf_neg }, self.kept))
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
        let (scores, kept) = scorer.finish().unwrap();
        assert!(scores.psnr_y_db.iter().all(|db| (db - metrics::PSNR_CAP_DB).abs() < 1e-9));
        assert!(scores.ssim.unwrap().iter().all(|one| (one - 1.0).abs() < 1e-4));
        assert_eq!((scores.psnr_y_db.len(), scores.vmaf, kept.len()), (3, None, 2));
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
