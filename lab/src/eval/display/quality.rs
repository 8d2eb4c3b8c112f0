//! The quality of a shown clip, in four figures.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::eval::score::Scores;
use crate::eval::stats::mean;

/// Mean qualities over the frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Quality {
    /// PSNR of luma, in dB.
    pub psnr_y_db: f64,
    /// VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<f64>,
    /// VMAF-NEG: VMAF of the model that does not reward sharpening.
    pub vmaf_neg: Option<f64>,
    /// SSIMULACRA2 in colour, of every 30th frame: 100 is the original, 90 cannot be told from it.
    pub ssimulacra2: f64,
}

impl Quality {
    /// The means over the scores of all frames.
    pub(crate) fn of(scores: &Scores) -> Result<Quality> {
        let of = |series: Option<&[f64]>| series.and_then(|all| mean(all.iter().copied()));
        Ok(Quality {
            psnr_y_db: mean(scores.psnr_y_db.iter().copied()).context("no frames")?,
            vmaf: of(scores.vmaf.as_deref()),
            vmaf_neg: of(scores.vmaf_neg.as_deref()),
            ssimulacra2: mean(scores.ssimulacra2.iter().copied()).context("no frames")?,
        })
    }
}
