//! An open VP9 encoder of libvpx: settings and controls, pictures in, packets out.
//!
//! The FFI of all encoders here and in tests; one thread, and the same packets in each run.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_ulong};
use std::ptr;

use ffi::vp8e_enc_control_id as id;
use vpx_sys as ffi;

use crate::VpxError;

/// How much time the encoder may take for a frame, which decides the code that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Real time (`VPX_DL_REALTIME`).
    Realtime,
    /// Good quality (`VPX_DL_GOOD_QUALITY`).
    Good,
    /// Best quality (`VPX_DL_BEST_QUALITY`).
    Best,
}

/// Controls of `vp8cx.h` that take one integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the control of that name in vp8cx.h
pub enum Control {
    CpuUsed,
    AutoAltRef,
    NoiseSensitivity,
    Sharpness,
    StaticThreshold,
    ArnrMaxFrames,
    ArnrStrength,
    TuneSsim,
    CqLevel,
    MaxIntraPercent,
    GoldenBoostPercent,
    Lossless,
    TileColumns,
    TileRows,
    FrameParallel,
    AqMode,
    PeriodicBoost,
    TuneContent,
    ColourSpace,
    ColourRange,
    MinGoldenInterval,
    MaxGoldenInterval,
    RowThreads,
    AltRefAq,
    ExtremeVectors,
    TemporalModel,
    ChromaDeltaQ,
    DisableLoopFilter,
    Svc,
    InterLayerPrediction,
    TargetLevel,
}

impl Control {
    fn id(self) -> id {
        match self {
            Control::CpuUsed => id::VP8E_SET_CPUUSED,
            Control::AutoAltRef => id::VP8E_SET_ENABLEAUTOALTREF,
            Control::NoiseSensitivity => id::VP9E_SET_NOISE_SENSITIVITY,
            Control::Sharpness => id::VP8E_SET_SHARPNESS,
            Control::StaticThreshold => id::VP8E_SET_STATIC_THRESHOLD,
            Control::ArnrMaxFrames => id::VP8E_SET_ARNR_MAXFRAMES,
            Control::ArnrStrength => id::VP8E_SET_ARNR_STRENGTH,
            Control::TuneSsim => id::VP8E_SET_TUNING,
            Control::CqLevel => id::VP8E_SET_CQ_LEVEL,
            Control::MaxIntraPercent => id::VP8E_SET_MAX_INTRA_BITRATE_PCT,
            Control::GoldenBoostPercent => id::VP9E_SET_GF_CBR_BOOST_PCT,
            Control::Lossless => id::VP9E_SET_LOSSLESS,
            Control::TileColumns => id::VP9E_SET_TILE_COLUMNS,
            Control::TileRows => id::VP9E_SET_TILE_ROWS,
            Control::FrameParallel => id::VP9E_SET_FRAME_PARALLEL_DECODING,
            Control::AqMode => id::VP9E_SET_AQ_MODE,
            Control::PeriodicBoost => id::VP9E_SET_FRAME_PERIODIC_BOOST,
            Control::TuneContent => id::VP9E_SET_TUNE_CONTENT,
            Control::ColourSpace => id::VP9E_SET_COLOR_SPACE,
            Control::ColourRange => id::VP9E_SET_COLOR_RANGE,
            Control::MinGoldenInterval => id::VP9E_SET_MIN_GF_INTERVAL,
            Control::MaxGoldenInterval => id::VP9E_SET_MAX_GF_INTERVAL,
            Control::RowThreads => id::VP9E_SET_ROW_MT,
            Control::AltRefAq => id::VP9E_SET_ALT_REF_AQ,
            Control::ExtremeVectors => id::VP9E_ENABLE_MOTION_VECTOR_UNIT_TEST,
            Control::TemporalModel => id::VP9E_SET_TPL,
            Control::ChromaDeltaQ => id::VP9E_SET_DELTA_Q_UV,
            Control::DisableLoopFilter => id::VP9E_SET_DISABLE_LOOPFILTER,
            Control::Svc => id::VP9E_SET_SVC,
            Control::InterLayerPrediction => id::VP9E_SET_SVC_INTER_LAYER_PRED,
            Control::TargetLevel => id::VP9E_SET_TARGET_LEVEL,
        }
    }
}

/// libvpx's defaults for one thread and one pass, with no frame dropped, resized or held back.
///
/// # Errors
///
/// Fails if libvpx does not give its defaults.
pub fn settings(width: usize, height: usize) -> Result<Box<ffi::vpx_codec_enc_cfg_t>, VpxError> {
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
    s.g_threads = 1;
    s.g_lag_in_frames = 0;
    s.g_error_resilient = 0;
    s.g_pass = ffi::vpx_enc_pass::VPX_RC_ONE_PASS;
    s.rc_dropframe_thresh = 0;
    s.rc_resize_allowed = 0;
    Ok(s)
}

/// A picture as libvpx takes it: borrowed planes.
pub struct Image<'a>(pub(crate) ffi::vpx_image_t, PhantomData<&'a [u8]>);

impl<'a> Image<'a> {
    /// An I420 picture of this luma size, from planes with a stride each.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses a picture of this size.
    ///
    /// # Panics
    ///
    /// Where a plane is too short.
    pub fn new(
        width: usize,
        height: usize,
        planes: [(&'a [u8], usize); 3],
    ) -> Result<Image<'a>, VpxError> {
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
                planes[0].0.as_ptr().cast_mut(),
            )
        };
        if wrapped.is_null() {
            return Err(VpxError::Size { width, height });
        }
        for (i, (samples, stride)) in planes.into_iter().enumerate() {
            let half = |n: usize| if i == 0 { n } else { n.div_ceil(2) };
            assert!(stride >= half(width) && samples.len() >= stride * half(height));
            image.planes[i] = samples.as_ptr().cast_mut();
            image.stride[i] = stride as c_int;
        }
        Ok(Image(image, PhantomData))
    }
}

/// An open encoder.
pub struct Codec {
    // Boxed: libvpx keeps pointers to the context and to the settings.
    context: Box<ffi::vpx_codec_ctx_t>,
    settings: Box<ffi::vpx_codec_enc_cfg_t>,
    /// The packets of the first of two passes; `settings` points at them.
    stats: Vec<u8>,
}

// SAFETY: a libvpx context may be used from any thread, one at a time; the encoder owns it alone.
unsafe impl Send for Codec {}

impl Codec {
    /// Opens an encoder. `stats` are the packets of the first pass, for the second of two.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the settings.
    pub fn open(
        settings: Box<ffi::vpx_codec_enc_cfg_t>,
        stats: Vec<u8>,
    ) -> Result<Codec, VpxError> {
        // SAFETY: plain old data (integers, nullable pointers, an error code whose 0 is "ok"); all-zero is libvpx's
        // own initial state for it.
        let context = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let mut codec = Codec { context, settings, stats };
        codec.own_pointers();
        // SAFETY: context and settings are valid and stay where they are as long as the encoder, as does what the
        // settings point at; the ABI version is the one of the bindings, and libvpx refuses another.
        let opened = unsafe {
            ffi::vpx_codec_enc_init_ver(
                &raw mut *codec.context,
                ffi::vpx_codec_vp9_cx(),
                &raw const *codec.settings,
                0,
                ffi::VPX_ENCODER_ABI_VERSION as c_int,
            )
        };
        check(opened, "open an encoder")?;
        Ok(codec)
    }

    /// Points the settings at this encoder's own memory, whatever they pointed at.
    fn own_pointers(&mut self) {
        self.settings.rc_twopass_stats_in =
            ffi::vpx_fixed_buf_t { buf: self.stats.as_mut_ptr().cast(), sz: self.stats.len() as _ };
        self.settings.rc_firstpass_mb_stats_in =
            ffi::vpx_fixed_buf_t { buf: ptr::null_mut(), sz: 0 };
    }

    /// The present settings.
    pub fn settings(&self) -> &ffi::vpx_codec_enc_cfg_t {
        &self.settings
    }

    /// Changes the settings for the next frames.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the changed settings.
    pub fn configure(
        &mut self,
        what: &'static str,
        change: impl FnOnce(&mut ffi::vpx_codec_enc_cfg_t),
    ) -> Result<(), VpxError> {
        change(&mut self.settings);
        self.own_pointers();
        // SAFETY: the context is open, and the settings live as long as it, as does what they point at.
        let set = unsafe {
            ffi::vpx_codec_enc_config_set(&raw mut *self.context, &raw const *self.settings)
        };
        check(set, what)
    }

    /// Sets a control.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the value, or does not have the control.
    pub fn set(&mut self, control: Control, value: i32) -> Result<(), VpxError> {
        // SAFETY: the context is open, and each of these controls takes one int by value (vp8cx.h).
        let set = unsafe {
            ffi::vpx_codec_control_(&raw mut *self.context, control.id() as c_int, value)
        };
        check_control(set, format_args!("{control:?} = {value}"))
    }

    /// Sets a control that takes a pointer to a struct.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the value, or does not have the control.
    ///
    /// # Safety
    ///
    /// The struct must be the one that `vp8cx.h` names for the control, and what it points at valid during the call.
    pub unsafe fn set_struct<T>(&mut self, control: id, value: &mut T) -> Result<(), VpxError> {
        // SAFETY: the context is open; the rest is the caller's.
        let set = unsafe {
            ffi::vpx_codec_control_(&raw mut *self.context, control as c_int, &raw mut *value)
        };
        check_control(set, format_args!("{control:?}"))
    }

    /// Encodes a picture that is shown from `time` on, or flushes the encoder. Returns the packets that are finished.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the picture, such as one of another size than the settings have.
    pub fn encode(
        &mut self,
        image: Option<&Image<'_>>,
        time: std::ops::Range<i64>,
        flags: u32,
        deadline: Deadline,
    ) -> Result<Vec<Vec<u8>>, VpxError> {
        let deadline = match deadline {
            Deadline::Realtime => ffi::VPX_DL_REALTIME,
            Deadline::Good => ffi::VPX_DL_GOOD_QUALITY,
            Deadline::Best => ffi::VPX_DL_BEST_QUALITY,
        };
        // SAFETY: the context is open; the image is null (flush) or points at planes that `Image` borrows.
        let coded = unsafe {
            ffi::vpx_codec_encode(
                &raw mut *self.context,
                image.map_or(ptr::null(), |image| &raw const image.0),
                time.start,
                (time.end - time.start) as c_ulong,
                ffi::vpx_enc_frame_flags_t::from(flags),
                c_ulong::from(deadline),
            )
        };
        check_call(&mut self.context, coded, "encode a picture")?;
        let mut packets = Vec::new();
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let packet =
                unsafe { ffi::vpx_codec_get_cx_data(&raw mut *self.context, &raw mut position) };
            if packet.is_null() {
                return Ok(packets);
            }
            // SAFETY: a non-null packet is valid until the next call into the encoder; each union field is read for
            // the packet kind that names it, and its buffer holds `sz` bytes.
            unsafe {
                let (start, size) = match (*packet).kind {
                    ffi::vpx_codec_cx_pkt_kind::VPX_CODEC_CX_FRAME_PKT => {
                        ((*packet).data.frame.buf, (*packet).data.frame.sz)
                    }
                    ffi::vpx_codec_cx_pkt_kind::VPX_CODEC_STATS_PKT => {
                        ((*packet).data.twopass_stats.buf, (*packet).data.twopass_stats.sz)
                    }
                    _ => continue,
                };
                packets.push(std::slice::from_raw_parts(start.cast(), size as usize).to_vec());
            }
        }
    }
}

impl Drop for Codec {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `open`, or is all-zero, and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// Converts libvpx's result to one of Rust.
pub(crate) fn check(code: ffi::vpx_codec_err_t, what: &'static str) -> Result<(), VpxError> {
    if code == ffi::VPX_CODEC_OK {
        return Ok(());
    }
    Err(VpxError::Refused { what, message: text(code) })
}

/// Converts the result of a call that leaves details in its context.
pub(crate) fn check_call(
    context: &mut ffi::vpx_codec_ctx_t,
    code: ffi::vpx_codec_err_t,
    what: &'static str,
) -> Result<(), VpxError> {
    if code == ffi::VPX_CODEC_OK {
        return Ok(());
    }
    // SAFETY: the context is open; the string, if any, is NUL-terminated and copied at once.
    let detail = unsafe {
        let detail = ffi::vpx_codec_error_detail(&raw mut *context);
        if detail.is_null() {
            "no details".into()
        } else {
            CStr::from_ptr(detail).to_string_lossy()
        }
    };
    Err(VpxError::Refused { what, message: format!("{} ({detail})", text(code)) })
}

fn check_control(code: ffi::vpx_codec_err_t, control: fmt::Arguments) -> Result<(), VpxError> {
    if code == ffi::VPX_CODEC_OK {
        return Ok(());
    }
    let message = format!("{control}: {}", text(code));
    Err(VpxError::Refused { what: "set a control", message })
}

/// libvpx's text for a result code.
fn text(code: ffi::vpx_codec_err_t) -> String {
    // SAFETY: libvpx returns a static, NUL-terminated string for every code.
    unsafe { CStr::from_ptr(ffi::vpx_codec_err_to_string(code)) }.to_string_lossy().into_owned()
}
