//! Scoring a run of pictures against the original, one by one.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use windlass_vp9::Picture;

use super::frames::{FrameStore, Size};
use super::vmaf::Vmaf;
use crate::interrupt;

/// Distance of the frames that SSIMULACRA2 scores: it measures single images, and is the slowest metric.
const STEP: usize = 30;

/// The metric that is measured besides PSNR and VMAF. Both are slow, so the caller chooses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Besides {
    /// The SSIM of luma.
    Ssim,
    /// SSIMULACRA2 in colour.
    Ssimulacra2,
}

/// The scores of a clip, frame by frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scores {
    /// PSNR of luma in dB.
    pub psnr_y_db: Vec<f64>,
    /// SSIM of luma; `None` where it was not asked for, and for pictures smaller than its window.
    pub ssim: Option<Vec<f64>>,
    /// SSIMULACRA2 of every 30th frame: 100 is the original, 90 cannot be told from it. Empty where it was not asked
    /// for.
    pub ssimulacra2: Vec<f64>,
    /// VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<Vec<f64>>,
    /// VMAF-NEG: VMAF of the model that does not reward sharpening.
    pub vmaf_neg: Option<Vec<f64>>,
}

/// Compares pictures with the original of the same number.
pub(super) struct Scorer<'a> {
    original: Box<dyn Iterator<Item = Result<Picture>> + 'a>,
    size: Size,
    expected: usize,
    vmaf: Option<Vmaf>,
    besides: Besides,
    psnr: Vec<f64>,
    ssim: Option<Vec<f64>>,
    ssimulacra2: Vec<f64>,
    count: usize,
    keep: &'a [usize],
    kept: Vec<Picture>,
}

impl<'a> Scorer<'a> {
    /// A scorer over all pictures of `original`, which keeps the pictures numbered `keep`.
    pub(super) fn new(
        original: &'a FrameStore,
        vmaf: Option<&Path>,
        besides: Besides,
        keep: &'a [usize],
    ) -> Result<Scorer<'a>> {
        Ok(Scorer {
            original: Box::new(original.frames()?),
            size: original.size(),
            expected: original.len(),
            vmaf: vmaf.map(|ffmpeg| Vmaf::start(ffmpeg, original)).transpose()?,
            besides,
            psnr: Vec::with_capacity(original.len()),
            ssim: (besides == Besides::Ssim).then(|| Vec::with_capacity(original.len())),
            ssimulacra2: Vec::new(),
            count: 0,
            keep,
            kept: Vec::new(),
        })
    }

    /// Scores the next picture.
    pub(super) fn push(&mut self, picture: &Picture) -> Result<()> {
        interrupt::check()?;
        let size = Size::of(picture);
        ensure!(
            size == self.size,
            "frame {} came out at {size} instead of {}",
            self.count,
            self.size
        );
        let original = self.original.next().context("more pictures than the clip has frames")??;
        self.psnr.push(windlass_scores::psnr_db(&original.y, &picture.y));
        if let Some(series) = &mut self.ssim {
            match windlass_scores::ssim(&original.y, &picture.y) {
                Some(one) => series.push(one),
                None => self.ssim = None,
            }
        }
        if self.besides == Besides::Ssimulacra2 && self.is_sampled() {
            self.ssimulacra2.push(windlass_scores::ssimulacra2(&original, picture)?);
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

    /// The scores, and the pictures that were kept.
    pub(super) fn finish(self) -> Result<(Scores, Vec<Picture>)> {
        ensure!(self.count == self.expected, "{} of {} frames came out", self.count, self.expected);
        let vmaf = self.vmaf.map(Vmaf::finish).transpose()?;
        let (vmaf, vmaf_neg) = vmaf.map(|scores| (scores.vmaf, scores.neg)).unzip();
        let (psnr_y_db, ssim, ssimulacra2) = (self.psnr, self.ssim, self.ssimulacra2);
        Ok((Scores { psnr_y_db, ssim, ssimulacra2, vmaf, vmaf_neg }, self.kept))
    }

    /// Whether SSIMULACRA2 scores the next picture. Of a clip that is too short, it scores the last one.
    fn is_sampled(&self) -> bool {
        let last = self.count + 1 == self.expected;
        self.count % STEP == STEP / 2 || last && self.ssimulacra2.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::frames::FrameWriter;
    use crate::eval::synthetic;

    fn store() -> FrameStore {
        let mut writer = FrameWriter::new(Size { width: 32, height: 16 }).unwrap();
        (0..3).for_each(|_| writer.push(&Picture::grey(32, 16)).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn the_original_itself_scores_full_marks_and_wanted_pictures_are_kept() {
        let original = store();
        let mut scorer = Scorer::new(&original, None, Besides::Ssim, &[0, 2]).unwrap();
        (0..3).for_each(|_| scorer.push(&Picture::grey(32, 16)).unwrap());
        let (scores, kept) = scorer.finish().unwrap();
        assert!(scores.psnr_y_db.iter().all(|db| (db - windlass_scores::PSNR_CAP_DB).abs() < 1e-9));
        assert!(scores.ssim.unwrap().iter().all(|one| (one - 1.0).abs() < 1e-4));
        assert_eq!((scores.psnr_y_db.len(), scores.vmaf, kept.len()), (3, None, 2));
        assert!(scores.ssimulacra2.is_empty());
    }

    #[test]
    fn ssimulacra2_is_taken_where_it_is_asked_for_and_tells_a_grey_picture() {
        let clip = synthetic::panning(4);
        let score = |grey: bool| {
            let mut scorer = Scorer::new(&clip.frames, None, Besides::Ssimulacra2, &[]).unwrap();
            for picture in clip.frames.frames().unwrap() {
                let picture = picture.unwrap();
                let grey_one = Picture::grey(picture.width(), picture.height());
                scorer.push(if grey { &grey_one } else { &picture }).unwrap();
            }
            scorer.finish().unwrap().0
        };
        let (same, grey) = (score(false), score(true));
        assert_eq!((same.ssimulacra2.len(), same.ssim), (1, None));
        assert!(same.ssimulacra2[0] > 99.0 && grey.ssimulacra2[0] < 20.0, "{grey:?}");
    }

    #[test]
    fn missing_and_misfit_pictures_are_errors() {
        let original = store();
        let mut scorer = Scorer::new(&original, None, Besides::Ssim, &[]).unwrap();
        assert!(scorer.push(&Picture::grey(16, 16)).is_err());
        scorer.push(&Picture::grey(32, 16)).unwrap();
        assert!(scorer.finish().is_err());
    }
}
