//! The ways to an HR picture that `eval` compares, and what each of them shows.

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::resample::{bicubic2x, upsample};
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};

use super::anchors::{AnchorTrack, rtp_timestamp, shown_at};
use super::cpu_clock::CpuClock;
use super::low_layer::Coded;
use super::score::Scorer;
use super::sr::Upscaler;

/// How the HR pictures are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// One full-size stream at the bits of low layer and anchors together.
    Direct,
    /// The low layer, bicubic.
    Bicubic,
    /// The low layer, Lanczos-3.
    Lanczos,
    /// Lanczos-3, then an unsharp mask of 0.3.
    #[value(name = "lanczos@0.3")]
    LanczosSharp,
    /// Super-resolution of every frame, as if it cost neither time nor bits.
    PerFrameSr,
    /// Reconstruction without any anchor.
    NoAnchors,
    /// The product's default: anchors and reconstruction.
    Hybrid,
}

impl Method {
    /// All of them, in the order of the report.
    pub const ALL: [Method; 7] = [
        Method::Direct,
        Method::Bicubic,
        Method::Lanczos,
        Method::LanczosSharp,
        Method::PerFrameSr,
        Method::NoAnchors,
        Method::Hybrid,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Direct => "direct",
            Method::Bicubic => "bicubic",
            Method::Lanczos => "lanczos",
            Method::LanczosSharp => "lanczos@0.3",
            Method::PerFrameSr => "per-frame-sr",
            Method::NoAnchors => "no-anchors",
            Method::Hybrid => "hybrid",
        }
    }
}

/// What a method cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Mean processor time per frame for everything after decoding, in milliseconds.
    pub reconstruct_ms: f64,
    /// Mean processor time of one super-resolution.
    pub infer_ms: Option<f64>,
    /// Anchors that reached the picture.
    pub anchors: usize,
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
    Ok(Cost { reconstruct_ms: clock.mean_run_ms().unwrap_or_default(), ..Cost::default() })
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
    Ok(Cost {
        reconstruct_ms: (whole - infer_ms.unwrap_or_default()).max(0.0),
        infer_ms,
        anchors: 0,
    })
}

/// Plays the low layer through the hybrid decoder while anchors come in late, and scores what it has
/// when each frame is shown.
pub fn hybrid(
    low: &Coded,
    fps: f64,
    track: Option<&AnchorTrack>,
    scorer: &mut Scorer<'_>,
) -> Result<Cost> {
    let mut decoder = HybridDecoder::new(HybridConfig::default());
    let mut clock = CpuClock::default();
    let mut pending = track.map_or(&[][..], |track| &track.anchors).iter().peekable();
    let mut used = 0;
    for (n, frame) in low.frames.iter().enumerate() {
        let now = shown_at(n, fps);
        // Anchors of earlier frames that came in since the last one was shown.
        while let Some(late) = pending.next_if(|a| a.frame < n && a.ready_at <= now) {
            let outcome = clock.measure(|| decoder.push_anchor(&late.anchor));
            used += usize::from(applied(outcome, late.frame)?);
        }
        clock
            .measure(|| decoder.push_frame(rtp_timestamp(n, fps), &frame.data))
            .with_context(|| format!("rebuilding frame {n}"))?;
        // Without any delay an anchor is there with its frame.
        while let Some(prompt) = pending.next_if(|a| a.ready_at <= now) {
            let outcome = clock.measure(|| decoder.push_anchor(&prompt.anchor));
            used += usize::from(applied(outcome, prompt.frame)?);
        }
        scorer.push(decoder.hr().with_context(|| format!("frame {n} shows no picture"))?)?;
    }
    let whole = clock.mean_ms(low.frames.len()).unwrap_or_default();
    Ok(Cost { reconstruct_ms: (whole - low.decode_ms).max(0.0), infer_ms: None, anchors: used })
}

/// Whether the anchor reached the picture; one that the decoder calls wrong is our own fault.
fn applied(outcome: AnchorOutcome, frame: usize) -> Result<bool> {
    ensure!(
        !matches!(outcome, AnchorOutcome::Malformed | AnchorOutcome::WrongSize),
        "the decoder refuses the anchor of frame {frame}: {outcome:?}"
    );
    Ok(matches!(outcome, AnchorOutcome::Applied { .. }))
}

/// The HR picture by bicubic interpolation.
pub fn bicubic(low: &Picture) -> Picture {
    let (width, height) = (low.width(), low.height());
    Picture {
        y: bicubic2x(&low.y, 2 * width, 2 * height),
        u: bicubic2x(&low.u, width, height),
        v: bicubic2x(&low.v, width, height),
    }
}

/// The HR picture by Lanczos-3, sharpened.
pub fn lanczos_sharp(low: &Picture) -> Picture {
    let high = upsample(low);
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
    use std::time::Duration;

    use super::*;
    use crate::eval::anchors::{self, AnchorSettings};
    use crate::eval::clip::Clip;
    use crate::eval::frames::{FrameWriter, Size};
    use crate::eval::low_layer;

    #[test]
    fn sharpening_leaves_flat_areas_alone_and_steepens_edges() {
        let flat = Plane::filled(7, 5, 90);
        assert_eq!(unsharp(&flat, 0.3), flat);
        let edge: Vec<u8> = (0..8 * 4).map(|i| if i % 8 < 4 { 50 } else { 150 }).collect();
        let sharp = unsharp(&Plane::from_samples(8, 4, edge).unwrap(), 0.3);
        assert!(sharp.row(1)[3] < 50 && sharp.row(1)[4] > 150, "{:?}", sharp.row(1));
        assert_eq!((sharp.row(1)[0], sharp.row(1)[7]), (50, 150));
    }

    /// A clip that pans over a texture, as the store that `eval` works on.
    fn panning_clip(frames: usize) -> Clip {
        let size = Size { width: 192, height: 128 };
        let mut writer = FrameWriter::new(size).unwrap();
        for n in 0..frames {
            let mut picture = Picture::grey(size.width, size.height);
            for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
                let (x, y) = (i % size.width + 2 * n, i / size.width);
                *v = (128.0
                    + 50.0 * (x as f32 * 0.7).sin()
                    + 40.0 * (y as f32 * 0.9 + x as f32 * 0.05).cos()) as u8;
            }
            writer.push(&picture).unwrap();
        }
        Clip { frames: writer.finish().unwrap(), fps: 30.0 }
    }

    fn track(low: &Coded, delay_ms: u64) -> AnchorTrack {
        let settings =
            AnchorSettings { fraction: 0.2, quality: 90, delay: Duration::from_millis(delay_ms) };
        anchors::make(low, 30.0, &settings, &mut Upscaler::new().unwrap()).unwrap()
    }

    #[test]
    fn anchors_are_used_when_they_are_ready_and_no_sooner() {
        let clip = panning_clip(20);
        let low =
            low_layer::encode(&clip, 300, false, |picture| low_layer::halve(&picture)).unwrap();
        let shown = |track: Option<&AnchorTrack>| {
            let every: Vec<usize> = (0..20).collect();
            let mut scorer = Scorer::new(&clip.frames, None, &every).unwrap();
            let cost = hybrid(&low, clip.fps, track, &mut scorer).unwrap();
            (cost.anchors, scorer.finish().unwrap().1)
        };
        let (none, without) = shown(None);
        let (some, late) = shown(Some(&track(&low, 130)));
        let (all, prompt) = shown(Some(&track(&low, 0)));
        assert_eq!(none, 0);
        assert!(some > 0 && all >= some, "{some} {all}");
        // The first anchor, of the key frame, is ready at 130 ms: frame 4, shown at 133 ms, is the first to have it.
        assert_eq!(late[..4], without[..4]);
        assert_ne!(late[4], without[4]);
        assert_ne!(prompt[0], without[0]);
    }

    #[test]
    fn the_same_clip_gives_the_same_figures() {
        let clip = panning_clip(8);
        let run = || {
            let low =
                low_layer::encode(&clip, 200, false, |picture| low_layer::halve(&picture)).unwrap();
            let mut scorer = Scorer::new(&clip.frames, None, &[]).unwrap();
            hybrid(&low, clip.fps, Some(&track(&low, 66)), &mut scorer).unwrap();
            (low.kbps.to_bits(), scorer.finish().unwrap().0)
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn command_line_names_are_those_of_the_report() {
        for method in Method::ALL {
            assert_eq!(Method::from_str(method.name(), false), Ok(method));
        }
    }
}
