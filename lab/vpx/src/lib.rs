//! VP9 encoding with libvpx: a camera as Chromium encodes it, anchors with a quantiser of our own,
//! and whole videos as the papers re-encode them.
//!
//! Source: WebRTC's `libvpx_vp9_encoder.cc` (L1T1) for [`Encoder::new`]: one-pass CBR, no
//! look-ahead, buffers of 1000/600/500 ms, under- and overshoot 50 %, cyclic-refresh adaptive
//! quantisation, one key frame. Two things differ, so that a run repeats and frames pair by number:
//! one thread, and no frame dropping. NeuroScaler appendix B for [`Encoder::reencoder`].
//!
//! In: I420 pictures, kbit/s, frames per second. Out: one complete VP9 frame for each picture.
//! The only module of this crate with `unsafe` for libvpx: its FFI.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_uint, c_ulong};
use std::ptr;

use vpx_sys as ffi;
use windlass_vp9::{Picture, Plane};

use ffi::vp8e_enc_control_id as id;

/// Finest and coarsest quantiser: libvpx's scale, of which every step is about 5 % of the step size.
pub const QUANTISERS: std::ops::RangeInclusive<u8> = 0..=63;

/// Why libvpx gave no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VpxError {
    /// A side out of range.
    #[error("cannot encode {width}x{height}: both sides must be 16 to 8192 pixels")]
    Size {
        /// Width asked for.
        width: usize,
        /// Height asked for.
        height: usize,
    },
    /// A picture of another size than the encoder's.
    #[error("a picture of {width}x{height} for an encoder of {expected_width}x{expected_height}")]
    WrongPicture {
        /// The picture's width.
        width: usize,
        /// The picture's height.
        height: usize,
        /// The encoder's width.
        expected_width: usize,
        /// The encoder's height.
        expected_height: usize,
    },
    /// libvpx refused a call.
    #[error("libvpx refuses to {what}: {message}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// Its own words.
        message: String,
    },
    /// No data came out for a picture.
    #[error("libvpx gave no data for a picture")]
    NoData,
}

/// What to encode and at which rate, as a browser would.
#[derive(Debug, Clone, Copy)]
pub struct EncoderConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frames per second.
    pub fps: f64,
    /// Target bit rate in kbit/s.
    pub kbps: u32,
    /// A shared screen: libvpx's screen-content tuning and a higher least quantiser, as Chromium sets them.
    pub screen: bool,
    /// libvpx's speed, 0 to 9; Chromium's for the size when `None`.
    pub cpu_used: Option<u8>,
}

/// A sequence whose every frame gets the quantiser and the references that the caller names.
#[derive(Debug, Clone, Copy)]
pub struct SequenceConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// libvpx's speed, 0 to 9.
    pub cpu_used: u8,
    /// libvpx's screen-content tuning.
    pub screen: bool,
    /// Whether every frame can be decoded with nothing but the pictures it refers to.
    pub error_resilient: bool,
}

/// A video re-encoded as in NeuroScaler: constrained VBR, look-ahead of 16, alt-refs, a key frame
/// every 120.
#[derive(Debug, Clone, Copy)]
pub struct ReencodeConfig {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frames per second.
    pub fps: f64,
    /// Target bit rate in kbit/s.
    pub kbps: u32,
    /// libvpx's speed, 0 to 9.
    pub cpu_used: u8,
}

/// How one frame of a [`SequenceConfig`] is predicted, and what it is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUse {
    /// A key frame; it becomes `LAST`, `GOLDEN` and `ALTREF`.
    Key,
    /// Predicted from `LAST`; it becomes `LAST`.
    FromLast,
    /// Predicted from `GOLDEN`; it becomes `LAST`.
    FromGolden,
}

impl FrameUse {
    fn flags(self) -> u32 {
        let keep = ffi::VP8_EFLAG_NO_UPD_GF | ffi::VP8_EFLAG_NO_UPD_ARF;
        match self {
            Self::Key => ffi::VPX_EFLAG_FORCE_KF,
            Self::FromLast => keep | ffi::VP8_EFLAG_NO_REF_GF | ffi::VP8_EFLAG_NO_REF_ARF,
            Self::FromGolden => keep | ffi::VP8_EFLAG_NO_REF_LAST | ffi::VP8_EFLAG_NO_REF_ARF,
        }
    }
}

/// A real-time VP9 encoder.
pub struct Encoder {
    // Boxed: libvpx keeps a pointer to the configuration inside the context.
    context: Box<ffi::vpx_codec_ctx_t>,
    settings: Box<ffi::vpx_codec_enc_cfg_t>,
    width: usize,
    height: usize,
    fps: f64,
    /// Frames since the rate last changed, and the clock then.
    frame: i64,
    since: i64,
}

// SAFETY: a libvpx context may be used from any thread, one at a time; the encoder owns it alone.
unsafe impl Send for Encoder {}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (width, height) = (self.width, self.height);
        f.debug_struct("Encoder").field("size", &(width, height)).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Opens an encoder for a call; the error says what libvpx refused.
    pub fn new(config: EncoderConfig) -> Result<Encoder, VpxError> {
        let mut s = defaults(config.width, config.height)?;
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
            (id::VP8E_SET_CPUUSED, c_int::from(config.cpu_used.unwrap_or(complexity))),
            (id::VP8E_SET_STATIC_THRESHOLD, 1),
            (id::VP8E_SET_MAX_INTRA_BITRATE_PCT, intra),
            (id::VP9E_SET_AQ_MODE, ffi::AQ_MODE::CYCLIC_REFRESH_AQ as c_int),
            (id::VP9E_SET_NOISE_SENSITIVITY, 0),
            (id::VP9E_SET_FRAME_PARALLEL_DECODING, 0),
            (id::VP9E_SET_TILE_COLUMNS, 0),
            (id::VP9E_SET_ROW_MT, 1),
            (id::VP9E_SET_TUNE_CONTENT, c_int::from(config.screen)),
        ])?;
        Ok(encoder)
    }

    /// Opens an encoder whose frames the caller controls one by one ([`Encoder::encode_as`]).
    pub fn sequence(config: SequenceConfig) -> Result<Encoder, VpxError> {
        let mut s = defaults(config.width, config.height)?;
        // Not CBR, whose scene detection would take a second try for a still picture.
        s.rc_end_usage = ffi::vpx_rc_mode::VPX_Q;
        s.rc_target_bitrate = 1000;
        s.g_error_resilient = u32::from(config.error_resilient);
        s.kf_mode = ffi::vpx_kf_mode::VPX_KF_DISABLED;
        let mut encoder = Self::open(s, 10.0)?;
        encoder.control_all(&[
            (id::VP8E_SET_CPUUSED, c_int::from(config.cpu_used)),
            (id::VP8E_SET_STATIC_THRESHOLD, 0),
            (id::VP9E_SET_AQ_MODE, ffi::AQ_MODE::NO_AQ as c_int),
            (id::VP9E_SET_NOISE_SENSITIVITY, 0),
            (id::VP9E_SET_TILE_COLUMNS, 0),
            (id::VP9E_SET_TUNE_CONTENT, c_int::from(config.screen)),
        ])?;
        Ok(encoder)
    }

    /// Opens an encoder for whole videos; it holds pictures back, so frames come from
    /// [`Encoder::push`] and [`Encoder::finish`].
    pub fn reencoder(config: ReencodeConfig) -> Result<Encoder, VpxError> {
        let mut s = defaults(config.width, config.height)?;
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
            (id::VP8E_SET_CPUUSED, c_int::from(config.cpu_used)),
            (id::VP8E_SET_ENABLEAUTOALTREF, 1),
            (id::VP9E_SET_ROW_MT, 1),
            (id::VP9E_SET_FRAME_PARALLEL_DECODING, 1),
        ])?;
        Ok(encoder)
    }

    fn open(settings: Box<ffi::vpx_codec_enc_cfg_t>, fps: f64) -> Result<Encoder, VpxError> {
        let mut context: Box<ffi::vpx_codec_ctx_t> =
            // SAFETY: plain old data (integers, nullable pointers, an error code whose 0 is "ok"); all-zero is
            // libvpx's own initial state for it.
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        // SAFETY: `context` and `settings` are valid for the call; the ABI version is the one that the bindings
        // (and so the struct layouts) were made from, and libvpx refuses another.
        let opened = unsafe {
            ffi::vpx_codec_enc_init_ver(
                &raw mut *context,
                ffi::vpx_codec_vp9_cx(),
                &raw const *settings,
                0,
                ffi::VPX_ENCODER_ABI_VERSION as c_int,
            )
        };
        check(opened, "open an encoder")?;
        let (width, height) = (settings.g_w as usize, settings.g_h as usize);
        Ok(Encoder { context, settings, width, height, fps, frame: 0, since: 0 })
    }

    /// Encodes the next picture and returns its VP9 frame.
    pub fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>, VpxError> {
        let data = self.push(picture)?;
        if data.is_empty() { Err(VpxError::NoData) } else { Ok(data) }
    }

    /// Encodes the next picture as the caller says.
    pub fn encode_as(&mut self, picture: &Picture, used: FrameUse) -> Result<Vec<u8>, VpxError> {
        let data = self.give(picture, used.flags())?;
        if data.is_empty() { Err(VpxError::NoData) } else { Ok(data) }
    }

    /// Gives the next picture and returns what frames are finished, if any.
    pub fn push(&mut self, picture: &Picture) -> Result<Vec<u8>, VpxError> {
        self.give(picture, 0)
    }

    /// Returns the frames that are still held back.
    pub fn finish(&mut self) -> Result<Vec<u8>, VpxError> {
        let mut all = Vec::new();
        loop {
            self.call(ptr::null(), 0)?;
            let data = self.take();
            if data.is_empty() {
                return Ok(all);
            }
            all.extend(data);
        }
    }

    fn give(&mut self, picture: &Picture, flags: u32) -> Result<Vec<u8>, VpxError> {
        let image = self.wrap(picture)?;
        self.call(&raw const image, flags)?;
        self.frame += 1;
        Ok(self.take())
    }

    fn call(&mut self, image: *const ffi::vpx_image_t, flags: u32) -> Result<(), VpxError> {
        // The clock is 90 kHz, as in RTP; libvpx wants the shown span of each frame.
        let stamp = |n: i64| self.since + (n as f64 * 90_000.0 / self.fps).round() as i64;
        let (start, end) = (stamp(self.frame), stamp(self.frame + 1));
        // SAFETY: `image` is null (flush) or points at planes that outlive the call and were checked by `wrap` to
        // hold every row; the context was opened by `open`.
        let coded = unsafe {
            ffi::vpx_codec_encode(
                &raw mut *self.context,
                image,
                start,
                (end - start) as c_ulong,
                ffi::vpx_enc_frame_flags_t::from(flags),
                c_ulong::from(ffi::VPX_DL_REALTIME),
            )
        };
        check(coded, "encode a picture")
    }

    fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let packet =
                unsafe { ffi::vpx_codec_get_cx_data(&raw mut *self.context, &raw mut position) };
            if packet.is_null() {
                return out;
            }
            // SAFETY: a non-null packet is valid until the next call into the encoder; `frame` is the union
            // field that this packet kind names, and its buffer holds `sz` bytes.
            unsafe {
                if (*packet).kind == ffi::vpx_codec_cx_pkt_kind::VPX_CODEC_CX_FRAME_PKT {
                    let frame = (*packet).data.frame;
                    out.extend_from_slice(std::slice::from_raw_parts(
                        frame.buf.cast::<u8>(),
                        frame.sz as usize,
                    ));
                }
            }
        }
    }

    /// The quantiser (0 to 63) of the frames to come, exactly.
    pub fn set_quantiser(&mut self, quantiser: u8) -> Result<(), VpxError> {
        let quantiser = c_uint::from(quantiser.min(*QUANTISERS.end()));
        if self.settings.rc_min_quantizer == quantiser
            && self.settings.rc_max_quantizer == quantiser
        {
            return Ok(());
        }
        self.settings.rc_min_quantizer = quantiser;
        self.settings.rc_max_quantizer = quantiser;
        // SAFETY: the context is open, and `settings` lives as long as it.
        let set = unsafe {
            ffi::vpx_codec_enc_config_set(&raw mut *self.context, &raw const *self.settings)
        };
        check(set, "change the quantiser")
    }

    /// Target bit rate in kbit/s and frame rate of the frames to come, as a browser's congestion control and
    /// `setParameters` change them in the middle of a stream.
    pub fn set_rate(&mut self, kbps: u32, fps: f64) -> Result<(), VpxError> {
        if fps.total_cmp(&self.fps).is_ne() {
            self.since += (self.frame as f64 * 90_000.0 / self.fps).round() as i64;
            (self.frame, self.fps) = (0, fps);
        }
        if self.settings.rc_target_bitrate == kbps {
            return Ok(());
        }
        self.settings.rc_target_bitrate = kbps;
        // SAFETY: the context is open, and `settings` lives as long as it.
        let set = unsafe {
            ffi::vpx_codec_enc_config_set(&raw mut *self.context, &raw const *self.settings)
        };
        check(set, "change the bit rate")
    }

    /// libvpx's speed (0 to 9) of the frames to come.
    pub fn set_speed(&mut self, speed: u8) -> Result<(), VpxError> {
        self.control_all(&[(id::VP8E_SET_CPUUSED, c_int::from(speed.min(9)))])
    }

    /// Which 16×16 blocks the frames to come may change, row by row; the others are copied from
    /// `LAST`. All when `None`, and after a key frame. A map of another size is refused by libvpx.
    pub fn set_active(&mut self, blocks: Option<&[bool]>) -> Result<(), VpxError> {
        let (columns, rows) = (self.width.div_ceil(16), self.height.div_ceil(16));
        let mut bytes: Vec<u8> = match blocks {
            Some(blocks) if blocks.len() == columns * rows => {
                blocks.iter().map(|&active| u8::from(active)).collect()
            }
            Some(_) => {
                return Err(VpxError::Refused {
                    what: "take a map of blocks",
                    message: "it has another size".into(),
                });
            }
            None => vec![1; columns * rows],
        };
        let mut map = ffi::vpx_active_map {
            active_map: bytes.as_mut_ptr(),
            rows: rows as c_uint,
            cols: columns as c_uint,
        };
        // SAFETY: this control takes a pointer to a vpx_active_map (vp8cx.h) whose map holds rows * cols bytes,
        // which libvpx copies during the call.
        let set = unsafe {
            ffi::vpx_codec_control_(
                &raw mut *self.context,
                id::VP8E_SET_ACTIVEMAP as c_int,
                &raw mut map,
            )
        };
        check(set, "take a map of blocks")
    }

    /// Luma of the frame just coded, as a decoder shows it.
    pub fn coded_luma(&mut self) -> Result<Plane, VpxError> {
        // SAFETY: plain old data; libvpx fills it in.
        let mut frame: ffi::vp9_ref_frame_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the context is open; this control takes a pointer to a vp9_ref_frame_t (vp8.h).
        let got = unsafe {
            ffi::vpx_codec_control_(
                &raw mut *self.context,
                ffi::vp8_com_control_id::VP9_GET_REFERENCE as c_int,
                &raw mut frame,
            )
        };
        check(got, "lend the coded picture")?;
        let image = &frame.img;
        if (image.d_w as usize, image.d_h as usize) != (self.width, self.height) {
            return Err(VpxError::NoData);
        }
        let (start, stride) = (image.planes[0].cast_const(), image.stride[0] as isize);
        let mut samples = Vec::with_capacity(self.width * self.height);
        for y in 0..self.height as isize {
            // SAFETY: the luma plane has `d_h` rows of `d_w` samples, `stride` apart, which stay valid until the
            // next call into the encoder.
            samples.extend_from_slice(unsafe {
                std::slice::from_raw_parts(start.offset(y * stride), self.width)
            });
        }
        Plane::from_samples(self.width, self.height, samples).ok_or(VpxError::NoData)
    }

    /// Replaces the picture in `LAST`, which must not be that of a key frame: a frame that was
    /// coded as `LAST` can be taken back so.
    pub fn set_last(&mut self, picture: &Picture) -> Result<(), VpxError> {
        let img = self.wrap(picture)?;
        let mut frame =
            ffi::vpx_ref_frame_t { frame_type: ffi::vpx_ref_frame_type::VP8_LAST_FRAME, img };
        // SAFETY: the context is open; this control takes a pointer to a vpx_ref_frame_t (vp8.h), whose planes
        // libvpx copies during the call.
        let set = unsafe {
            ffi::vpx_codec_control_(
                &raw mut *self.context,
                ffi::vp8_com_control_id::VP8_SET_REFERENCE as c_int,
                &raw mut frame,
            )
        };
        check(set, "take a reference")
    }

    /// A libvpx image over the borrowed planes of a picture, after checking its size.
    fn wrap(&self, picture: &Picture) -> Result<ffi::vpx_image_t, VpxError> {
        let (width, height) = (self.width, self.height);
        if (picture.width(), picture.height()) != (width, height) {
            return Err(VpxError::WrongPicture {
                width: picture.width(),
                height: picture.height(),
                expected_width: width,
                expected_height: height,
            });
        }
        // SAFETY: plain old data (integers, nullable pointers, enums that have a 0); vpx_img_wrap fills it in.
        let mut image: ffi::vpx_image_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: `image` is valid; the data pointer is never read before it is replaced below, and only has to
        // be non-null for libvpx not to allocate.
        let wrapped = unsafe {
            ffi::vpx_img_wrap(
                &raw mut image,
                ffi::vpx_img_fmt::VPX_IMG_FMT_I420,
                width as u32,
                height as u32,
                1,
                picture.y.samples().as_ptr().cast_mut(),
            )
        };
        if wrapped.is_null() {
            return Err(VpxError::Size { width, height });
        }
        // A Picture's planes always hold `stride * height` bytes, and its chroma is half its luma, rounded up.
        for (i, plane) in picture.planes().into_iter().enumerate() {
            image.planes[i] = plane.samples().as_ptr().cast_mut();
            image.stride[i] = plane.stride() as c_int;
        }
        Ok(image)
    }

    fn control_all(&mut self, controls: &[(id, c_int)]) -> Result<(), VpxError> {
        for &(control, value) in controls {
            // SAFETY: the context is open, and each control used here takes one int by value (vp8cx.h).
            let set =
                unsafe { ffi::vpx_codec_control_(&raw mut *self.context, control as c_int, value) };
            check(set, "set a control")?;
        }
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `open` and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// What all encoders here share: one pass, one thread, nothing dropped or resized.
fn defaults(width: usize, height: usize) -> Result<Box<ffi::vpx_codec_enc_cfg_t>, VpxError> {
    if !(16..=8192).contains(&width) || !(16..=8192).contains(&height) {
        return Err(VpxError::Size { width, height });
    }
    let mut defaults = MaybeUninit::<ffi::vpx_codec_enc_cfg_t>::zeroed();
    // SAFETY: the pointer is valid for writes, and the interface pointer is libvpx's own static.
    let filled = unsafe {
        ffi::vpx_codec_enc_config_default(ffi::vpx_codec_vp9_cx(), defaults.as_mut_ptr(), 0)
    };
    check(filled, "tell its defaults")?;
    // SAFETY: libvpx reported that it has filled in the whole struct.
    let mut s = Box::new(unsafe { defaults.assume_init() });
    s.g_w = width as u32;
    s.g_h = height as u32;
    s.g_timebase = ffi::vpx_rational { num: 1, den: 90_000 };
    s.g_threads = 1;
    s.g_lag_in_frames = 0;
    s.g_error_resilient = 0;
    s.g_pass = ffi::vpx_enc_pass::VPX_RC_ONE_PASS;
    s.rc_dropframe_thresh = 0;
    s.rc_resize_allowed = 0;
    Ok(s)
}

fn check(code: ffi::vpx_codec_err_t, what: &'static str) -> Result<(), VpxError> {
    if code == ffi::VPX_CODEC_OK {
        return Ok(());
    }
    // SAFETY: libvpx returns a static, NUL-terminated string for every code.
    let message = unsafe { CStr::from_ptr(ffi::vpx_codec_err_to_string(code)) };
    Err(VpxError::Refused { what, message: message.to_string_lossy().into_owned() })
}

/// Mean bit rate of coded frames in kbit/s.
pub fn kbps(bytes: usize, frames: usize, fps: f64) -> f64 {
    if frames == 0 { 0.0 } else { bytes as f64 * 8.0 * fps / frames as f64 / 1000.0 }
}

#[cfg(test)]
mod tests {
    use windlass_vp9::Decoder;

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

    fn sequence(width: usize, height: usize) -> Encoder {
        let config =
            SequenceConfig { width, height, cpu_used: 5, screen: false, error_resilient: true };
        let mut encoder = Encoder::sequence(config).unwrap();
        encoder.set_quantiser(30).unwrap();
        encoder
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
    fn the_lent_picture_is_the_one_that_a_decoder_shows() {
        let (mut encoder, mut decoder) = (sequence(99, 51), Decoder::new());
        for (n, used) in
            [FrameUse::Key, FrameUse::FromLast, FrameUse::FromGolden].iter().enumerate()
        {
            let data = encoder.encode_as(&moving_picture(n, 99, 51), *used).unwrap();
            let frames = decoder.decode(&data).unwrap();
            assert_eq!(encoder.coded_luma().unwrap(), frames[0].picture.to_picture().y);
        }
    }

    #[test]
    fn a_frame_that_was_taken_back_leaves_no_trace_in_the_next() {
        let (mut encoder, mut decoder) = (sequence(99, 51), Decoder::new());
        let key = encoder.encode_as(&moving_picture(0, 99, 51), FrameUse::Key).unwrap();
        decoder.decode(&key).unwrap();
        let mut last = encoder.coded_luma().unwrap();
        for n in 1..6 {
            for trial in 0..3 {
                let other = moving_picture(20 * n + trial, 99, 51);
                encoder.encode_as(&other, FrameUse::FromLast).unwrap();
                let picture = Picture { y: last, ..Picture::grey(99, 51) };
                encoder.set_last(&picture).unwrap();
                last = picture.y;
            }
            let data = encoder.encode_as(&moving_picture(n, 99, 51), FrameUse::FromLast).unwrap();
            last = encoder.coded_luma().unwrap();
            // Chroma never moves from grey by more than coding noise, so luma tells.
            assert_eq!(decoder.decode(&data).unwrap()[0].picture.to_picture().y, last);
        }
    }

    #[test]
    fn blocks_that_are_not_active_are_copied() {
        let mut encoder = sequence(128, 64);
        encoder.encode_as(&moving_picture(0, 128, 64), FrameUse::Key).unwrap();
        let before = encoder.coded_luma().unwrap();
        let active: Vec<bool> = (0..32).map(|i| i % 8 < 4).collect();
        encoder.set_active(Some(&active)).unwrap();
        encoder.encode_as(&moving_picture(9, 128, 64), FrameUse::FromLast).unwrap();
        let after = encoder.coded_luma().unwrap();
        for y in 0..64 {
            assert_eq!(before.row(y)[72..], after.row(y)[72..], "row {y}");
        }
        assert_ne!(before.row(30)[..64], after.row(30)[..64]);
        assert!(encoder.set_active(Some(&active[1..])).is_err());
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

    #[test]
    fn bit_rate_is_bits_over_the_shown_time() {
        assert!((kbps(3000, 30, 30.0) - 24.0).abs() < 1e-9);
    }
}
