//! The methods that need no anchors: what each of them shows.

use anyhow::Result;
use windlass_hybrid::picture::{Picture, Plane};

use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::scale::Scale;
use super::score::Scorer;
use super::sr::Upscaler;

/// What a method cost.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// Mean processor time per frame for everything after decoding, in milliseconds.
    pub reconstruct_ms: f64,
    /// Mean processor time of one super-resolution.
    pub infer_ms: Option<f64>,
}

/// Shows the decoded pictures as they are.
pub fn plain(coded: &Coded, scorer: &mut Scorer<'_>) -> Result<Cost> {
    for picture in coded.pictures.frames()? {
        scorer.push(&picture?)?;
    }
    Ok(Cost::default())
}

/// Makes each HR picture of one decoded LR picture alone.
pub fn upscaled(
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
pub fn per_frame_sr(low: &Coded, scorer: &mut Scorer<'_>, upscaler: &mut Upscaler) -> Result<Cost> {
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
pub fn lanczos_sharp(scale: Scale, low: &Picture) -> Picture {
    let high = scale.lanczos(low);
    Picture { y: unsharp(&high.y, 0.3), ..high }
}

/// `y + amount · (y − blur(y))` with a 5×5 binomial blur, as ffmpeg's `unsharp=5:5` has it; edges repeat.
fn unsharp(plane: &Plane, amount: f32) -> Plane {
    const TAPS: [f32; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];
    let (width, height) = (plane.width(), plane.height());
    let near = |at: usize, tap: usize, end: usize| (at + tap).saturating_sub(2).min(end - 1);
    let mut across = vec![0f32; width * height];
    for y in 0..height {
        let row = plane.row(y);
        for (x, out) in across[y * width..][..width].iter_mut().enumerate() {
            *out =
                TAPS.iter().enumerate().map(|(t, w)| w * f32::from(row[near(x, t, width)])).sum();
        }
    }
    let mut sharp = plane.clone();
    for (i, sample) in sharp.samples_mut().iter_mut().enumerate() {
        let (x, y) = (i % width, i / width);
        let blur: f32 =
            TAPS.iter().enumerate().map(|(t, w)| w * across[near(y, t, height) * width + x]).sum();
        let value = f32::from(*sample);
        *sample = (value + amount * (value - blur)).round().clamp(0.0, 255.0) as u8;
    }
    sharp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharpening_leaves_flat_areas_alone_and_steepens_edges() {
        let flat = Plane::filled(7, 5, 90);
        assert_eq!(unsharp(&flat, 0.3), flat);
        let edge: Vec<u8> = (0..8 * 4).map(|i| if i % 8 < 4 { 50 } else { 150 }).collect();
        let sharp = unsharp(&Plane::from_samples(8, 4, edge).unwrap(), 0.3);
        assert!(sharp.row(1)[3] < 50 && sharp.row(1)[4] > 150, "{:?}", sharp.row(1));
        assert_eq!((sharp.row(1)[0], sharp.row(1)[7]), (50, 150));
    }
}
