//! VP9 encoding with libvpx at the settings Chromium uses for a camera in real time.
//!
//! Source: WebRTC's `libvpx_vp9_encoder.cc` (L1T1): one-pass CBR, no look-ahead, buffers of
//! 1000/600/500 ms, under- and overshoot 50 %, cyclic-refresh adaptive quantisation, one key frame.
//! Two things differ, so that a run repeats and frames pair by number: one thread, and no frame dropping.
//!
//! In: I420 pictures, kbit/s, frames per second. Out: one complete VP9 frame for each picture.
//! The only module of `eval` with `unsafe`: the FFI to libvpx.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_ulong};
use std::ptr;

use anyhow::{Result, bail, ensure};
use vpx_sys as ffi;
use windlass_hybrid::picture::Picture;

/// What to encode and at which rate.
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

/// A real-time VP9 encoder.
pub struct Encoder {
    // Boxed: libvpx keeps a pointer to the configuration inside the context.
    context: Box<ffi::vpx_codec_ctx_t>,
    config: EncoderConfig,
    frame: i64,
}

impl Encoder {
    /// Opens an encoder; the error says what libvpx refused.
    pub fn new(config: EncoderConfig) -> Result<Encoder> {
        ensure!(
            (16..=8192).contains(&config.width) && (16..=8192).contains(&config.height),
            "cannot encode {}x{}: both sides must be 16 to 8192 pixels",
            config.width,
            config.height
        );
        let settings = settings(&config)?;
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
                &raw const settings,
                0,
                ffi::VPX_ENCODER_ABI_VERSION as c_int,
            )
        };
        if opened != ffi::VPX_CODEC_OK {
            bail!(
                "libvpx refuses to encode {}x{}: {}",
                config.width,
                config.height,
                message(opened)
            );
        }
        let mut encoder = Encoder { context, config, frame: 0 };
        encoder.apply_controls()?;
        Ok(encoder)
    }

    /// Encodes the next picture and returns its VP9 frame.
    pub fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>> {
        let mut image = self.wrap(picture)?;
        // The clock is 90 kHz, as in RTP; libvpx wants the shown span of each frame.
        let stamp = |n: i64| (n as f64 * 90_000.0 / self.config.fps).round() as i64;
        let (start, end) = (stamp(self.frame), stamp(self.frame + 1));
        // SAFETY: `image` points at planes that outlive the call and were checked by `wrap` to hold every row;
        // the context was opened by `new`.
        let coded = unsafe {
            ffi::vpx_codec_encode(
                &raw mut *self.context,
                &raw mut image,
                start,
                (end - start) as c_ulong,
                0,
                c_ulong::from(ffi::VPX_DL_REALTIME),
            )
        };
        ensure!(
            coded == ffi::VPX_CODEC_OK,
            "libvpx could not encode frame {}: {}",
            self.frame,
            message(coded)
        );
        self.frame += 1;
        let mut out = Vec::new();
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let packet =
                unsafe { ffi::vpx_codec_get_cx_data(&raw mut *self.context, &raw mut position) };
            if packet.is_null() {
                break;
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
        ensure!(!out.is_empty(), "libvpx gave no data for frame {}", self.frame - 1);
        Ok(out)
    }

    /// A libvpx image over the borrowed planes of a picture, after checking its size.
    fn wrap(&self, picture: &Picture) -> Result<ffi::vpx_image_t> {
        let (width, height) = (self.config.width, self.config.height);
        ensure!(
            (picture.width(), picture.height()) == (width, height),
            "a picture of {}x{} for an encoder of {width}x{height}",
            picture.width(),
            picture.height()
        );
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
        ensure!(!wrapped.is_null(), "libvpx does not take {width}x{height} pictures");
        // A Picture's planes always hold `stride * height` bytes, and its chroma is half its luma, rounded up.
        for (i, plane) in picture.planes().into_iter().enumerate() {
            image.planes[i] = plane.samples().as_ptr().cast_mut();
            image.stride[i] = plane.stride() as c_int;
        }
        Ok(image)
    }

    fn apply_controls(&mut self) -> Result<()> {
        use ffi::vp8e_enc_control_id as id;
        // Chromium: a key frame may take this share (%) of the per-frame rate: half the optimal buffer.
        let intra = (600.0 * 0.5 * self.config.fps / 10.0).max(300.0) as c_int;
        let controls = [
            (
                id::VP8E_SET_CPUUSED,
                self.config.cpu_used.map_or_else(|| cpu_used(&self.config), c_int::from),
            ),
            (id::VP8E_SET_STATIC_THRESHOLD, 1),
            (id::VP8E_SET_MAX_INTRA_BITRATE_PCT, intra),
            (id::VP9E_SET_AQ_MODE, ffi::AQ_MODE::CYCLIC_REFRESH_AQ as c_int),
            (id::VP9E_SET_NOISE_SENSITIVITY, 0),
            (id::VP9E_SET_FRAME_PARALLEL_DECODING, 0),
            (id::VP9E_SET_TILE_COLUMNS, 0),
            (id::VP9E_SET_ROW_MT, 1),
            (id::VP9E_SET_TUNE_CONTENT, c_int::from(self.config.screen)),
        ];
        for (control, value) in controls {
            // SAFETY: the context is open, and each control above takes one int by value (vp8cx.h).
            let set =
                unsafe { ffi::vpx_codec_control_(&raw mut *self.context, control as c_int, value) };
            ensure!(
                set == ffi::VPX_CODEC_OK,
                "libvpx refuses {control:?} = {value}: {}",
                message(set)
            );
        }
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `new` and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// Chromium's complexity by size: 5 below CIF, else 7.
fn cpu_used(config: &EncoderConfig) -> c_int {
    if config.width * config.height < 352 * 288 { 5 } else { 7 }
}

fn settings(config: &EncoderConfig) -> Result<ffi::vpx_codec_enc_cfg_t> {
    let mut defaults = MaybeUninit::<ffi::vpx_codec_enc_cfg_t>::zeroed();
    // SAFETY: the pointer is valid for writes, and the interface pointer is libvpx's own static.
    let filled = unsafe {
        ffi::vpx_codec_enc_config_default(ffi::vpx_codec_vp9_cx(), defaults.as_mut_ptr(), 0)
    };
    ensure!(filled == ffi::VPX_CODEC_OK, "libvpx has no VP9 encoder: {}", message(filled));
    // SAFETY: libvpx reported that it has filled in the whole struct.
    let mut s = unsafe { defaults.assume_init() };
    s.g_w = config.width as u32;
    s.g_h = config.height as u32;
    s.g_timebase = ffi::vpx_rational { num: 1, den: 90_000 };
    s.g_threads = 1;
    s.g_lag_in_frames = 0;
    s.g_error_resilient = 0;
    s.g_pass = ffi::vpx_enc_pass::VPX_RC_ONE_PASS;
    s.rc_end_usage = ffi::vpx_rc_mode::VPX_CBR;
    s.rc_target_bitrate = config.kbps;
    s.rc_dropframe_thresh = 0;
    s.rc_resize_allowed = 0;
    s.rc_min_quantizer = if config.screen { 8 } else { 2 };
    s.rc_max_quantizer = 56;
    s.rc_undershoot_pct = 50;
    s.rc_overshoot_pct = 50;
    s.rc_buf_sz = 1000;
    s.rc_buf_optimal_sz = 600;
    s.rc_buf_initial_sz = 500;
    s.kf_mode = ffi::vpx_kf_mode::VPX_KF_AUTO;
    s.kf_max_dist = 3000;
    Ok(s)
}

fn message(code: ffi::vpx_codec_err_t) -> String {
    // SAFETY: libvpx returns a static, NUL-terminated string for every code.
    unsafe { CStr::from_ptr(ffi::vpx_codec_err_to_string(code)) }.to_string_lossy().into_owned()
}

/// Mean bit rate of coded frames in kbit/s.
pub fn kbps(bytes: usize, frames: usize, fps: f64) -> f64 {
    if frames == 0 { 0.0 } else { bytes as f64 * 8.0 * fps / frames as f64 / 1000.0 }
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

    fn encode(w: usize, h: usize) -> Vec<Vec<u8>> {
        let config = EncoderConfig {
            width: w,
            height: h,
            fps: 30.0,
            kbps: 200,
            screen: false,
            cpu_used: None,
        };
        let mut encoder = Encoder::new(config).unwrap();
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
        let config = EncoderConfig {
            width: 64,
            height: 64,
            fps: 30.0,
            kbps: 100,
            screen: false,
            cpu_used: None,
        };
        assert!(Encoder::new(config).unwrap().encode(&Picture::grey(64, 32)).is_err());
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        let config = EncoderConfig {
            width: 1,
            height: 9000,
            fps: 30.0,
            kbps: 100,
            screen: false,
            cpu_used: None,
        };
        assert!(Encoder::new(config).is_err());
    }

    #[test]
    fn bit_rate_is_bits_over_the_shown_time() {
        assert!((kbps(3000, 30, 30.0) - 24.0).abs() < 1e-9);
    }
}
