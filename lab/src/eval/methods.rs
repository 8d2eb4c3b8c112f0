//! The methods that need no anchors: the pictures that each of them shows.

use anyhow::Result;
use windlass_vp9::Picture;

use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::scale::Scale;
use super::score::Scorer;
use super::sharpen::{BINOMIAL, unsharp};
use super::sr::Upscaler;

/// The CPU time of a method.
#[derive(Debug, Clone, Default)]
pub(super) struct Cost {
    /// Mean CPU time for each frame for everything after decoding, in milliseconds.
    pub reconstruct_ms: f64,
    /// Mean CPU time of one super-resolution, in milliseconds.
    pub infer_ms: Option<f64>,
}

/// Shows the decoded pictures as they are.
pub(super) fn plain(coded: &Coded, scorer: &mut Scorer<'_>) -> Result<Cost> {
    for picture in coded.pictures.frames()? {
        scorer.push(&picture?)?;
    }
    Ok(Cost::default())
}

/// Makes each HR picture of one decoded LR picture alone.
pub(super) fn upscaled(
    low: &Coded,
    scorer: &mut Scorer<'_>,
    upscale: impl Fn(&Picture) -> Picture,
) -> Result<Cost> {
    let mut clock = CpuClock::default();
    for picture in low.pictures.frames()? {
        let picture = picture?;
        scorer.push(&clock.measure(|| upscale(&picture)))?;
    }
    Ok(Cost { reconstruct_ms: clock.mean_run_ms().unwrap_or_default(), infer_ms: None })
}

/// Super-resolves every decoded picture.
pub(super) fn per_frame_sr(
    low: &Coded,
    scorer: &mut Scorer<'_>,
    upscaler: &mut Upscaler,
) -> Result<Cost> {
    let mut clock = CpuClock::default();
    upscaler.restart_clock();
    for picture in low.pictures.frames()? {
        let picture = picture?;
        let high = clock.measure(|| upscaler.picture(&picture))?;
        scorer.push(&high)?;
    }
    let infer_ms = upscaler.infer_ms();
    let whole = clock.mean_run_ms().unwrap_or_default();
    Ok(Cost { reconstruct_ms: (whole - infer_ms.unwrap_or_default()).max(0.0), infer_ms })
}

/// The HR picture by Lanczos-3, sharpened.
pub(super) fn lanczos_sharp(scale: Scale, low: &Picture) -> Picture {
    let high = scale.lanczos(low);
    Picture { y: unsharp(&high.y, &BINOMIAL, 0.3), ..high }
}
