//! A publisher that does as the knobs say: one low layer and a detail stream, by libvpx as Chromium runs it.
//!
//! A change of bit or frame rate goes to the running encoder; another layer, and a detail stream that goes on after a
//! pause or over another layer, begin with a key frame, as in a browser. In: full-size pictures in order. Out: VP9
//! frames.

use anyhow::Result;
use windlass_enhancer::control::{Knobs, divisor};
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::resample::box_down;
use windlass_media::Layer;

use crate::eval::vpx::{Encoder, EncoderConfig};

/// What was sent of one camera frame.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// The low layer's frame; `None` where the frame rate leaves it out.
    pub low: Option<Vec<u8>>,
    /// A full-size frame of the detail stream.
    pub detail: Option<Vec<u8>>,
}

/// The encoders of one publisher.
#[derive(Debug, Default)]
pub struct Publisher {
    low: Option<(Layer, bool, Encoder)>,
    detail: Option<(Layer, bool, Encoder)>,
    /// Frames owed: one is sent when there is a whole one.
    low_due: f64,
    detail_due: f64,
}

impl Publisher {
    /// Encodes one camera frame of a camera (or `screen`) with so many frames a second.
    pub fn frame(
        &mut self,
        picture: &Picture,
        knobs: &Knobs,
        camera_fps: f64,
        screen: bool,
    ) -> Result<Sent> {
        let mut sent = Sent::default();
        let fps = knobs.fps.min(camera_fps);
        self.low_due += fps / camera_fps;
        self.detail_due += knobs.detail.map_or(0.0, |detail| detail.fps / camera_fps);
        // Half a frame of rounding must not cost a frame; a first frame is due at once.
        let restarted = self.low.as_ref().is_none_or(|(l, s, _)| (*l, *s) != (knobs.layer, screen));
        if self.low_due < 0.999 && !restarted {
            return Ok(sent);
        }
        self.low_due = if restarted { 0.0 } else { (self.low_due - 1.0).min(1.0) };
        let small = shrink(picture, divisor(knobs.layer));
        let config = EncoderConfig {
            width: small.width(),
            height: small.height(),
            fps,
            kbps: kbps(knobs.low_kbps),
            screen,
            cpu_used: None,
        };
        if restarted {
            self.low = Some((knobs.layer, screen, Encoder::new(config)?));
        }
        if let Some((.., encoder)) = &mut self.low {
            encoder.set_rate(config.kbps, fps)?;
            sent.low = Some(encoder.encode(&small)?);
        }
        sent.detail = self.detail(picture, knobs, screen)?;
        Ok(sent)
    }

    fn detail(
        &mut self,
        picture: &Picture,
        knobs: &Knobs,
        screen: bool,
    ) -> Result<Option<Vec<u8>>> {
        let Some(detail) = knobs.detail.filter(|_| knobs.layer != Layer::F) else {
            self.detail = None;
            return Ok(None);
        };
        let of = (knobs.layer, screen);
        let restarted = self.detail.as_ref().is_none_or(|(l, s, _)| (*l, *s) != of);
        if self.detail_due < 0.999 && !restarted {
            return Ok(None);
        }
        self.detail_due = if restarted { 0.0 } else { (self.detail_due - 1.0).min(1.0) };
        let (kbps, fps) = (kbps(detail.kbps), detail.fps.max(0.1));
        if restarted {
            let (width, height) = (picture.width(), picture.height());
            let config = EncoderConfig { width, height, fps, kbps, screen, cpu_used: None };
            self.detail = Some((knobs.layer, screen, Encoder::new(config)?));
        }
        let Some((.., encoder)) = &mut self.detail else { return Ok(None) };
        encoder.set_rate(kbps, fps)?;
        Ok(Some(encoder.encode(picture)?))
    }
}

fn kbps(value: f64) -> u32 {
    value.round().max(1.0) as u32
}

/// The picture of a layer, as Chromium makes it.
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

    fn run(knobs: impl Fn(usize) -> Knobs, frames: usize) -> Vec<Sent> {
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
    fn frame_rates_are_kept_and_detail_comes_with_frames_of_the_low_layer() {
        let setting = Setting { layer: Layer::H, divisor: 2, detail_share: 0.2, detail_fps: 5.0 };
        let sent = run(|_| setting.knobs(300.0, 30.0), 30);
        let (low, detail): (Vec<bool>, Vec<bool>) =
            sent.iter().map(|s| (s.low.is_some(), s.detail.is_some())).unzip();
        assert_eq!(low.iter().filter(|&&l| l).count(), 15);
        assert!((4..=6).contains(&detail.iter().filter(|&&d| d).count()));
        assert!(low.iter().zip(&detail).all(|(low, detail)| *low || !*detail));
    }

    #[test]
    fn another_layer_begins_with_a_key_frame_and_another_rate_does_not() {
        let layer = |n| if n < 6 { Layer::H } else { Layer::Q };
        let rate = |n| if n < 3 { 300.0 } else { 150.0 };
        let at = |n| Setting { layer: layer(n), divisor: 1, detail_share: 0.0, detail_fps: 1.0 };
        let sent = run(|n| at(n).knobs(rate(n), 30.0), 9);
        let keys: Vec<usize> =
            (0..9).filter(|&n| sent[n].low.as_ref().is_some_and(|data| is_key(data))).collect();
        assert_eq!(keys, [0, 6]);
    }
}
