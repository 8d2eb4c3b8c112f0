//! A publisher that follows the knobs, with one low layer, by libvpx as Chromium runs it.
//!
//! A change of bit or frame rate goes to the running encoder; another layer begins with a key frame, as in a browser.
//! In: full-size pictures in order. Out: VP9 frames.

use anyhow::Result;
use windlass_enhancer::control::{Knobs, divisor};
use windlass_hybrid::resample::box_down;
use windlass_types::{Bitrate, Layer};
use windlass_vp9::{Picture, Plane};

use windlass_vpx::{Encoder, EncoderConfig};

/// The encoder of one publisher.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    low: Option<(Layer, bool, Encoder)>,
    /// Number of frames that are due, with a fraction: one is sent when it reaches 1.
    due: f64,
}

impl Publisher {
    /// Encodes one frame of a camera (or `screen`) with `fps` frames a second; `None` where the frame rate leaves the
    /// frame out.
    pub(super) fn frame(
        &mut self,
        picture: &Picture,
        knobs: &Knobs,
        camera_fps: f64,
        screen: bool,
    ) -> Result<Option<Vec<u8>>> {
        let fps = knobs.fps.min(camera_fps);
        self.due += fps / camera_fps;
        // Half a frame of rounding must not cost a frame; a first frame is due at once.
        let restarted = self.low.as_ref().is_none_or(|(l, s, _)| (*l, *s) != (knobs.layer, screen));
        if self.due < 0.999 && !restarted {
            return Ok(None);
        }
        self.due = if restarted { 0.0 } else { (self.due - 1.0).min(1.0) };
        let small = shrink(picture, divisor(knobs.layer));
        let config = EncoderConfig {
            width: small.width(),
            height: small.height(),
            fps,
            kbps: kbps(knobs.bitrate),
            screen,
            cpu_used: None,
        };
        if restarted {
            self.low = Some((knobs.layer, screen, Encoder::new(config)?));
        }
        let Some((.., encoder)) = &mut self.low else { return Ok(None) };
        encoder.set_rate(config.kbps, fps)?;
        Ok(Some(encoder.encode(&small)?))
    }
}

/// A bitrate in whole kbit/s, as libvpx takes it.
fn kbps(bitrate: Bitrate) -> u32 {
    bitrate.as_kbps().round().max(1.0) as u32
}

/// The picture of a layer, scaled down as in Chromium.
fn shrink(picture: &Picture, divisor: usize) -> Picture {
    if divisor == 1 {
        return picture.clone();
    }
    let [y, u, v]: [Plane; 3] = picture.planes().map(|plane| box_down(plane, divisor));
    Picture { y, u, v }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::controller::setting::Setting;
    use crate::eval::synthetic;

    fn run(knobs: impl Fn(usize) -> Knobs, frames: usize) -> Vec<Option<Vec<u8>>> {
        let clip = synthetic::panning(frames);
        let mut publisher = Publisher::default();
        let pictures = clip.frames.frames().unwrap().map(Result::unwrap);
        let sent = pictures.enumerate().map(|(n, p)| publisher.frame(&p, &knobs(n), 30.0, false));
        sent.map(Result::unwrap).collect()
    }

    fn is_key(data: &[u8]) -> bool {
        // Frame marker, profile 0, not shown again, and the bit of key frames at 0.
        data[0] & 0b1111_1100 == 0b1000_0000
    }

    #[test]
    fn frame_rates_are_kept() {
        let setting = Setting { layer: Layer::H, divisor: 2 };
        let sent = run(|_| setting.knobs(300.0, 30.0), 30);
        assert_eq!(sent.iter().flatten().count(), 15);
    }

    #[test]
    fn another_layer_begins_with_a_key_frame_and_another_rate_does_not() {
        let layer = |n| if n < 6 { Layer::H } else { Layer::Q };
        let rate = |n| if n < 3 { 300.0 } else { 150.0 };
        let at = |n| Setting { layer: layer(n), divisor: 1 };
        let sent = run(|n| at(n).knobs(rate(n), 30.0), 9);
        let keys: Vec<usize> =
            (0..9).filter(|&n| sent[n].as_ref().is_some_and(|data| is_key(data))).collect();
        assert_eq!(keys, [0, 6]);
    }
}
