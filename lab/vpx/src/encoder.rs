//! A camera as Chromium encodes it, frames with a quantiser of the caller's, and whole videos as the papers
//! re-encode them.
//!
//! Source: WebRTC's `libvpx_vp9_encoder.cc` (L1T1) for [`Encoder::new`]: one-pass CBR, no
//! look-ahead, buffers of 1000/600/500 ms, under- and overshoot 50 %, cyclic-refresh adaptive
//! quantisation, one key frame. Two things differ, so that a run repeats and frames pair by number:
//! one thread, and no frame dropping. NeuroScaler appendix B for [`Encoder::reencoder`].
//!
//! In: I420 pictures, kbit/s, frames per second. Out: one complete VP9 frame for each picture.

use std::os::raw::c_int;

use vpx_sys as ffi;
use windlass_vp9::Picture;

use crate::VpxError;
use crate::codec::{Codec, Control, Deadline, Image, settings};

/// The coarsest quantiser on libvpx's scale, where each step is about 5 % of the step size.
const MAX_QUANTISER: u8 = 63;

/// The settings of a stream that is encoded as by a browser.
#[derive(Debug, Clone, Copy)]
pub struct EncoderConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frames per second.
    pub fps: f64,
    /// Target bitrate, in kbit/s.
    pub kbps: u32,
    /// Whether the picture is a shared screen: libvpx's screen-content tuning and a higher minimum quantiser, as in
    /// Chromium.
    pub screen: bool,
    /// libvpx's speed, 0 to 9; `None`: Chromium's for the size.
    pub cpu_used: Option<u8>,
}

/// The settings of a sequence in which the caller names the quantiser and the references of every frame.
#[derive(Debug, Clone, Copy)]
pub struct SequenceConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// libvpx's speed, 0 to 9.
    pub cpu_used: u8,
}

/// The settings of a video that is re-encoded as in NeuroScaler: constrained VBR, look-ahead of 16, alt-refs, a key
/// frame every 120 frames.
#[derive(Debug, Clone, Copy)]
pub struct ReencodeConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frames per second.
    pub fps: f64,
    /// Target bitrate, in kbit/s.
    pub kbps: u32,
    /// libvpx's speed, 0 to 9.
    pub cpu_used: u8,
}

/// How one frame of a [`SequenceConfig`] is predicted, and the references that it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUse {
    /// A key frame; it becomes `LAST`, `GOLDEN` and `ALTREF`.
    Key,
    /// A frame predicted from `LAST`; it becomes `LAST`.
    FromLast,
}

impl FrameUse {
    fn flags(self) -> u32 {
        let keep = ffi::VP8_EFLAG_NO_UPD_GF | ffi::VP8_EFLAG_NO_UPD_ARF;
        match self {
            Self::Key => ffi::VPX_EFLAG_FORCE_KF,
            Self::FromLast => keep | ffi::VP8_EFLAG_NO_REF_GF | ffi::VP8_EFLAG_NO_REF_ARF,
        }
    }
}

/// A real-time VP9 encoder.
pub struct Encoder {
    codec: Codec,
    width: usize,
    height: usize,
    fps: f64,
    /// Number of frames since the rate last changed, and the clock at that change.
    frame: i64,
    since: i64,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (width, height) = (self.width, self.height);
        f.debug_struct("Encoder").field("size", &(width, height)).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Opens an encoder for a call; the error says what libvpx refused.
    ///
    /// # Errors
    ///
    /// Fails if a side is not of 16 to 8192 pixels, or libvpx refuses a setting.
    pub fn new(config: EncoderConfig) -> Result<Encoder, VpxError> {
        let mut s = checked_settings(config.width, config.height)?;
        s.rc_end_usage = ffi::vpx_rc_mode::VPX_CBR;
        s.rc_target_bitrate = config.kbps;
        s.rc_min_quantizer = if config.screen { 8 } else { 2 };
        s.rc_max_quantizer = 56;
        s.rc_undershoot_pct = 50;
        s.rc_overshoot_pct = 50;
        s.rc_buf_sz = 1000;
        s.rc_buf_optimal_sz = 600;
        s.rc_buf_initial_sz = 500;
        s.kf_mode = ffi::vpx_kf_mode::VPX_KF_AUTO;
        s.kf_max_dist = 3000;
        let mut encoder = Self::open(s, config.fps)?;
        // Chromium: a key frame may take this share (%) of the per-frame rate: half the optimal buffer.
        let intra = (600.0 * 0.5 * config.fps / 10.0).max(300.0) as c_int;
        // Chromium's complexity by size: 5 below CIF, else 7.
        let complexity = if config.width * config.height < 352 * 288 { 5 } else { 7 };
        encoder.control_all(&[
            (Control::CpuUsed, c_int::from(config.cpu_used.unwrap_or(complexity))),
            (Control::StaticThreshold, 1),
            (Control::MaxIntraPercent, intra),
            (Control::AqMode, ffi::AQ_MODE::CYCLIC_REFRESH_AQ as c_int),
            (Control::NoiseSensitivity, 0),
            (Control::FrameParallel, 0),
            (Control::TileColumns, 0),
            (Control::RowThreads, 1),
            (Control::TuneContent, c_int::from(config.screen)),
        ])?;
        Ok(encoder)
    }

    /// Opens an encoder whose frames the caller controls one by one ([`Encoder::encode_as`]).
    ///
    /// # Errors
    ///
    /// Fails if a side is not of 16 to 8192 pixels, or libvpx refuses a setting.
    pub fn sequence(config: SequenceConfig) -> Result<Encoder, VpxError> {
        let mut s = checked_settings(config.width, config.height)?;
        // CBR is not used: its scene detection would encode a still picture twice.
        s.rc_end_usage = ffi::vpx_rc_mode::VPX_Q;
        s.rc_target_bitrate = 1000;
        s.kf_mode = ffi::vpx_kf_mode::VPX_KF_DISABLED;
        let mut encoder = Self::open(s, 10.0)?;
        encoder.control_all(&[
            (Control::CpuUsed, c_int::from(config.cpu_used)),
            (Control::StaticThreshold, 0),
            (Control::AqMode, ffi::AQ_MODE::NO_AQ as c_int),
            (Control::NoiseSensitivity, 0),
            (Control::TileColumns, 0),
        ])?;
        Ok(encoder)
    }

    /// Opens an encoder for whole videos; it holds pictures back, so frames come from
    /// [`Encoder::push`] and [`Encoder::finish`].
    ///
    /// # Errors
    ///
    /// Fails if a side is not of 16 to 8192 pixels, or libvpx refuses a setting.
    pub fn reencoder(config: ReencodeConfig) -> Result<Encoder, VpxError> {
        let mut s = checked_settings(config.width, config.height)?;
        s.rc_end_usage = ffi::vpx_rc_mode::VPX_VBR;
        s.rc_target_bitrate = config.kbps;
        s.rc_2pass_vbr_minsection_pct = 50;
        s.rc_2pass_vbr_maxsection_pct = 150;
        s.rc_min_quantizer = 4;
        s.rc_max_quantizer = 48;
        s.g_lag_in_frames = 16;
        s.g_error_resilient = 1;
        s.kf_mode = ffi::vpx_kf_mode::VPX_KF_AUTO;
        s.kf_min_dist = 120;
        s.kf_max_dist = 120;
        let mut encoder = Self::open(s, config.fps)?;
        encoder.control_all(&[
            (Control::CpuUsed, c_int::from(config.cpu_used)),
            (Control::AutoAltRef, 1),
            (Control::RowThreads, 1),
            (Control::FrameParallel, 1),
        ])?;
        Ok(encoder)
    }

    fn open(settings: Box<ffi::vpx_codec_enc_cfg_t>, fps: f64) -> Result<Encoder, VpxError> {
        let (width, height) = (settings.g_w as usize, settings.g_h as usize);
        let codec = Codec::open(settings, Vec::new())?;
        Ok(Encoder { codec, width, height, fps, frame: 0, since: 0 })
    }

    /// Encodes the next picture and returns its VP9 frame.
    ///
    /// # Errors
    ///
    /// Fails if the picture is not of the encoder's size, libvpx refuses it, or it drops or holds back the frame.
    pub fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>, VpxError> {
        let data = self.push(picture)?;
        if data.is_empty() { Err(VpxError::NoData) } else { Ok(data) }
    }

    /// Encodes the next picture as the caller says.
    ///
    /// # Errors
    ///
    /// Fails if the picture is not of the encoder's size, libvpx refuses it, or it drops or holds back the frame.
    pub fn encode_as(&mut self, picture: &Picture, used: FrameUse) -> Result<Vec<u8>, VpxError> {
        let data = self.give(picture, used.flags())?;
        if data.is_empty() { Err(VpxError::NoData) } else { Ok(data) }
    }

    /// Hands in the next picture and returns the frames that are finished, if any.
    ///
    /// # Errors
    ///
    /// Fails if the picture is not of the encoder's size, or libvpx refuses it.
    pub fn push(&mut self, picture: &Picture) -> Result<Vec<u8>, VpxError> {
        self.give(picture, 0)
    }

    /// Returns the frames that are still held back.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses to encode what it holds back.
    pub fn finish(&mut self) -> Result<Vec<u8>, VpxError> {
        let mut all = Vec::new();
        loop {
            let data = self.call(None, 0)?;
            if data.is_empty() {
                return Ok(all);
            }
            all.extend(data);
        }
    }

    fn give(&mut self, picture: &Picture, flags: u32) -> Result<Vec<u8>, VpxError> {
        let (width, height) = (self.width, self.height);
        if (picture.width(), picture.height()) != (width, height) {
            return Err(VpxError::WrongPicture {
                width: picture.width(),
                height: picture.height(),
                expected_width: width,
                expected_height: height,
            });
        }
        let planes = picture.planes().map(|plane| (plane.samples(), plane.stride()));
        let data = self.call(Some(&Image::new(width, height, planes)?), flags)?;
        self.frame += 1;
        Ok(data)
    }

    fn call(&mut self, image: Option<&Image<'_>>, flags: u32) -> Result<Vec<u8>, VpxError> {
        // The clock is 90 kHz, as in RTP; libvpx wants the shown span of each frame.
        let stamp = |n: i64| self.since + (n as f64 * 90_000.0 / self.fps).round() as i64;
        let shown = stamp(self.frame)..stamp(self.frame + 1);
        Ok(self.codec.encode(image, shown, flags, Deadline::Realtime)?.concat())
    }

    /// Sets the quantiser (0 to 63) of the next frames, exactly.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the changed settings.
    pub fn set_quantiser(&mut self, quantiser: u8) -> Result<(), VpxError> {
        let quantiser = u32::from(quantiser.min(MAX_QUANTISER));
        self.codec.configure("change the quantiser", |s| {
            (s.rc_min_quantizer, s.rc_max_quantizer) = (quantiser, quantiser);
        })
    }

    /// Sets the target bitrate in kbit/s and the frame rate of the next frames, as a browser's congestion control and
    /// `setParameters` change them in the middle of a stream.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the changed settings.
    pub fn set_rate(&mut self, kbps: u32, fps: f64) -> Result<(), VpxError> {
        if fps.total_cmp(&self.fps).is_ne() {
            self.since += (self.frame as f64 * 90_000.0 / self.fps).round() as i64;
            (self.frame, self.fps) = (0, fps);
        }
        if self.codec.settings().rc_target_bitrate == kbps {
            return Ok(());
        }
        self.codec.configure("change the bitrate", |s| s.rc_target_bitrate = kbps)
    }

    fn control_all(&mut self, controls: &[(Control, c_int)]) -> Result<(), VpxError> {
        controls.iter().try_for_each(|&(control, value)| self.codec.set(control, value))
    }
}

/// The settings that all encoders here share; their clock is RTP's.
fn checked_settings(
    width: usize,
    height: usize,
) -> Result<Box<ffi::vpx_codec_enc_cfg_t>, VpxError> {
    if !(16..=8192).contains(&width) || !(16..=8192).contains(&height) {
        return Err(VpxError::Size { width, height });
    }
    let mut s = settings(width, height)?;
    s.g_timebase = ffi::vpx_rational { num: 1, den: 90_000 };
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving_picture(n: usize, w: usize, h: usize) -> Picture {
        let mut picture = Picture::grey(w, h);
        for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
            *v = (((i % w) * 3 + (i / w) * 5 + n * 7) % 200 + 20) as u8;
        }
        picture
    }

    fn call(width: usize, height: usize) -> EncoderConfig {
        EncoderConfig { width, height, fps: 30.0, kbps: 200, screen: false, cpu_used: None }
    }

    fn encode(w: usize, h: usize) -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new(call(w, h)).unwrap();
        (0..8).map(|n| encoder.encode(&moving_picture(n, w, h)).unwrap()).collect()
    }

    #[test]
    fn every_picture_becomes_one_frame_and_a_second_run_is_identical() {
        let first = encode(160, 90);
        assert_eq!(first.len(), 8);
        assert!(
            first.iter().all(|f| f[0] >> 6 == 0b10),
            "a VP9 frame starts with the frame marker"
        );
        assert_eq!(first, encode(160, 90));
    }

    #[test]
    fn odd_sizes_are_encoded() {
        assert_eq!(encode(99, 51).len(), 8);
    }

    #[test]
    fn a_picture_of_another_size_is_an_error() {
        assert!(Encoder::new(call(64, 64)).unwrap().encode(&Picture::grey(64, 32)).is_err());
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        assert!(Encoder::new(call(1, 9000)).is_err());
    }

    #[test]
    fn a_reencoder_gives_every_picture_in_the_end() {
        let config = ReencodeConfig { width: 128, height: 64, fps: 60.0, kbps: 500, cpu_used: 8 };
        let mut encoder = Encoder::reencoder(config).unwrap();
        let mut bytes = 0;
        for n in 0..20 {
            bytes += encoder.push(&moving_picture(n, 128, 64)).unwrap().len();
        }
        bytes += encoder.finish().unwrap().len();
        assert!(bytes > 1000, "{bytes} bytes");
    }

    #[test]
    fn a_new_rate_holds_for_the_frames_to_come() {
        let mut encoder = Encoder::new(call(160, 90)).unwrap();
        let mut bytes = |from: usize, frames: usize| -> usize {
            let mut coded = |n| encoder.encode(&moving_picture(n * n, 160, 90)).unwrap().len();
            (from..from + frames).map(&mut coded).sum()
        };
        let before = bytes(1, 60);
        encoder.set_rate(60, 15.0).unwrap();
        let mut bytes = |from: usize, frames: usize| -> usize {
            let mut coded = |n| encoder.encode(&moving_picture(n * n, 160, 90)).unwrap().len();
            (from..from + frames).map(&mut coded).sum()
        };
        // A third of the rate, a frame shown for twice as long.
        let after = bytes(61, 60);
        assert!(after < before * 9 / 10 && after > before / 3, "{before} then {after}");
    }
}
