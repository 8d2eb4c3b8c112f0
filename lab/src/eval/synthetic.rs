//! Clips without files, for the tests of `eval`.

use std::time::Duration;

use windlass_types::AnchorSource;
use windlass_vp9::Picture;

use super::anchors::{self, AnchorSettings, AnchorTrack};
use super::captured::CapturedSettings;
use super::clip::Clip;
use super::coding::Target;
use super::frames::{FrameWriter, Size};
use super::low_layer::{self, Coded};
use super::scale::Scale;
use super::select;
use super::sr::Upscaler;

/// A clip of 192×128 whose luma is `luma(n, x, y)`.
pub(crate) fn clip(frames: usize, luma: impl Fn(usize, usize, usize) -> u8) -> Clip {
    let size = Size { width: 192, height: 128 };
    let mut writer = FrameWriter::new(size).unwrap();
    for n in 0..frames {
        let mut picture = Picture::grey(size.width, size.height);
        for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
            *v = luma(n, i % size.width, i / size.width);
        }
        writer.push(&picture).unwrap();
    }
    Clip { frames: writer.finish().unwrap(), fps: 30.0 }
}

/// A clip of a pan over a texture.
pub(crate) fn panning(frames: usize) -> Clip {
    clip(frames, |n, x, y| {
        let (x, y) = ((x + 2 * n) as f32, y as f32);
        (128.0 + 50.0 * (x * 0.7).sin() + 40.0 * (y * 0.9 + x * 0.05).cos()) as u8
    })
}

/// The low layer of a clip, of half the size.
pub(crate) fn low_layer(clip: &Clip, kbps: u32) -> Coded {
    low_layer::encode(clip, kbps, false, |picture| Scale::TWO.shrink(&picture)).unwrap()
}

/// Enhanced anchors at a fine quality.
pub(crate) fn anchor_settings(fraction: f64, delay_ms: u64) -> AnchorSettings {
    AnchorSettings {
        fraction,
        target: Target::Quality(90),
        tiles: None,
        beyond_prior: true,
        source: AnchorSource::Enhanced,
        delay: Duration::from_millis(delay_ms),
        loss: 0.0,
        seed: 1,
    }
}

/// Captured anchors of a short clip.
pub(crate) fn captured_settings() -> CapturedSettings {
    CapturedSettings {
        full_kbps: Some(800),
        fraction: 0.2,
        quality: 80,
        stills_fps: 6.0,
        stills_kbps: 100,
        within: false,
        area: 0.5,
    }
}

/// The anchors of [`anchor_settings`] on a fifth of the frames, which the scheduler chooses.
pub(crate) fn track(clip: &Clip, low: &Coded, delay_ms: u64) -> AnchorTrack {
    let settings = anchor_settings(0.2, delay_ms);
    let chosen = select::scheduled(low, clip.fps, settings.fraction);
    let mut upscaler = Upscaler::new().unwrap();
    anchors::make(clip, low, Scale::TWO, &settings, &chosen, &mut upscaler).unwrap()
}
