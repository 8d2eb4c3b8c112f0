//! A shipped clip of a real face, for tests of the worth of anchors.
//!
//! One photograph (`tests/fixtures/faces`) as a hand-held camera shows it: the picture drifts and comes nearer by
//! fractions of a sample. No mouth moves, so it is easier to carry than the picture of a call.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use windlass_vp9::Picture;

use super::clip::Clip;
use super::frames::{FrameWriter, Size};

/// The photograph, as a PNG file.
const PHOTOGRAPH: &[u8] = include_bytes!("../../../tests/fixtures/faces/astronaut.png");
/// Size of the clip's pictures, in samples.
const SIZE: Size = Size { width: 384, height: 288 };

/// A clip of `frames` frames, 30 in a second.
pub(super) fn clip(frames: usize) -> Clip {
    let mut reader = png::Decoder::new(std::io::Cursor::new(PHOTOGRAPH)).read_info().unwrap();
    let (width, height) = (reader.info().width, reader.info().height);
    let mut luma = vec![0; (width * height) as usize];
    reader.next_frame(&mut luma).unwrap();
    let photograph = ImageRef::new(width, height, &luma, PixelType::U8).unwrap();
    let mut writer = FrameWriter::new(SIZE).unwrap();
    let mut shown = Image::new(SIZE.width as u32, SIZE.height as u32, PixelType::U8);
    let mut resizer = Resizer::new();
    for n in 0..frames {
        let t = n as f64 / 30.0;
        let nearer = 1.0 + 0.02 * (1.1 * t).sin();
        let (x, y) = (32.0 + 14.0 * (1.7 * t).sin(), 24.0 + 9.0 * (2.3 * t).cos());
        let (wide, high) = (SIZE.width as f64 / nearer, SIZE.height as f64 / nearer);
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
            .crop(x, y, wide, high);
        resizer.resize(&photograph, &mut shown, &options).unwrap();
        let mut picture = Picture::grey(SIZE.width, SIZE.height);
        picture.y.samples_mut().copy_from_slice(shown.buffer());
        writer.push(&picture).unwrap();
    }
    Clip { frames: writer.finish().unwrap(), fps: 30.0 }
}

/// What the product shows must be better with anchors than without, by what they cost.
mod tests {
    use std::time::Duration;

    use windlass_enhancer::EnhancerConfig;
    use windlass_hybrid::HybridConfig;

    use super::*;
    use crate::eval::anchors::{self, AnchorSettings, TimedAnchor};
    use crate::eval::captured::{CapturedSettings, Source, StillPath, regions};
    use crate::eval::coding::Target;
    use crate::eval::low_layer::Coded;
    use crate::eval::scale::Scale;
    use crate::eval::sr::Upscaler;
    use crate::eval::{rebuild, select, stats, synthetic};
    use windlass_scores::psnr_db;

    const FRAMES: usize = 75;

    /// Mean PSNR-Y of the rebuilt pictures from the second second on.
    fn shown(clip: &Clip, low: &Coded, anchors: &[TimedAnchor]) -> f64 {
        let mut originals = clip.frames.frames().unwrap();
        let mut psnr = Vec::new();
        rebuild::play(low, clip.fps, anchors, HybridConfig::default(), |_, picture| {
            psnr.push(psnr_db(&originals.next().unwrap().unwrap().y, &picture.y));
            Ok(())
        })
        .unwrap();
        stats::mean(psnr[30..].iter().copied()).unwrap()
    }

    /// Enhanced anchors with the settings of a server: about one a second.
    #[test]
    fn enhanced_is_better_than_rebuilt_by_two_tenths_of_a_decibel() {
        let clip = clip(FRAMES);
        let low = synthetic::low_layer(&clip, 150);
        let product = EnhancerConfig::default();
        let settings = AnchorSettings {
            tiles: Some(product.tiles),
            target: Target::Quality(product.anchor_quality),
            ..synthetic::anchor_settings(product.anchor_fraction, 130)
        };
        let chosen = select::scheduled(&low, clip.fps, settings.fraction);
        let mut upscaler = Upscaler::new().unwrap();
        let track =
            anchors::make(&clip, &low, Scale::TWO, &settings, &chosen, &mut upscaler).unwrap();
        let (with, without) = (shown(&clip, &low, &track.anchors), shown(&clip, &low, &[]));
        eprintln!("enhanced {with:.2} dB, rebuilt {without:.2} dB, {:.0} kbit/s", track.kbps);
        assert!(with > without + 0.2, "enhanced {with:.2} dB, rebuilt {without:.2} dB");
    }

    /// Stills of the publisher's own, one a second, of 30 kbit/s.
    #[test]
    fn captured_is_better_than_rebuilt_by_a_decibel() {
        let clip = clip(FRAMES);
        let low = synthetic::low_layer(&clip, 150);
        let settings = CapturedSettings {
            stills_fps: 1.0,
            stills_kbps: 30,
            area: 1.0,
            ..CapturedSettings::default()
        };
        let path = StillPath { delay: Duration::from_millis(130), uplink_kbps: 180.0 };
        let (stills, mut upscaler) = (Source::Regions, Upscaler::new().unwrap());
        let track = regions::make(&clip, &low, Scale::TWO, stills, &settings, &path, &mut upscaler)
            .unwrap();
        let (with, without) = (shown(&clip, &low, &track.anchors), shown(&clip, &low, &[]));
        eprintln!("captured {with:.2} dB, rebuilt {without:.2} dB, {:.0} kbit/s", track.kbps);
        assert!(with > without + 1.0, "captured {with:.2} dB, rebuilt {without:.2} dB");
    }
}
