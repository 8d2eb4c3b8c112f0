//! Streams made by libvpx's VP9 encoder, through its full range of settings.
//!
//! In: an [`Encoding`], which describes pictures, settings and what happens at which picture. Out: a
//! [`Stream`] of chunks. Deterministic: one thread, seeded pictures.
//!
//! One of the two modules here with `unsafe`: the FFI to libvpx.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_long, c_ulong};
use std::ptr;

use vpx_sys as ffi;
use vpx_sys::vp8e_enc_control_id as id;

use super::source::hash;
use super::{I420, Scene, Source};

/// Chunks (frames or superframes) in decoding order.
#[derive(Debug, Clone)]
pub struct Stream {
    /// What reports call it.
    pub name: String,
    /// The data.
    pub chunks: Vec<Vec<u8>>,
}

/// How much time the encoder may take, and so which of its code makes the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// `VPX_DL_REALTIME`.
    Realtime,
    /// `VPX_DL_GOOD_QUALITY`.
    Good,
    /// `VPX_DL_BEST_QUALITY`.
    Best,
}

/// What the rate control aims at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateControl {
    /// Constant rate in kbit/s.
    Cbr(u32),
    /// Variable rate in kbit/s.
    Vbr(u32),
    /// Constant quality 0 to 63.
    Quality(u32),
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
            Control::InterLayerPrediction => id::VP9E_SET_SVC_INTER_LAYER_PRED,
            Control::TargetLevel => id::VP9E_SET_TARGET_LEVEL,
        }
    }
}

/// Something that happens just before a picture is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Pictures are of another size from here on; no key frame where VP9 can scale its references.
    Resize(usize, usize),
    /// The encoder codes at another size than the pictures: 0 to 3 for 1, 4/5, 3/5, 1/2 on either axis.
    Scale(u32, u32),
    /// A key frame.
    Key,
    /// `VP8_EFLAG_*` of this picture.
    Flags(u32),
    /// A control.
    Set(Control, i32),
    /// A target rate in kbit/s.
    Rate(u32),
    /// Segments of a region-of-interest map with quantiser and loop filter of their own.
    RegionQuality,
    /// Segments of a region-of-interest map that skip their residual or name their reference.
    RegionModes,
    /// No regions any more.
    NoRegions,
    /// Half of the blocks inactive, in a chequered pattern that this number shifts.
    ActiveMap(u32),
    /// All blocks active.
    NoActiveMap,
    /// With layers: the base layer of this picture is an intra-only frame.
    IntraOnlyBase,
    /// With layers: spatial layer 1 of this picture uses no temporal prediction.
    SyncLayer,
}

/// Scalability of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// Size of each spatial layer as a fraction of the picture, lowest first.
    pub spatial: &'static [(i32, i32)],
    /// Temporal layers: 1, 2 (0-1) or 3 (0-2-1-2).
    pub temporal: u32,
}

/// What is encoded and how.
#[derive(Debug, Clone)]
pub struct Encoding {
    scene: Scene,
    seed: u32,
    width: usize,
    height: usize,
    frames: usize,
    deadline: Deadline,
    two_pass: bool,
    lag: u32,
    error_resilient: bool,
    rate: RateControl,
    quantisers: (u32, u32),
    key_interval: u32,
    dynamic_resize: bool,
    drop_threshold: u32,
    layers: Option<Layers>,
    controls: Vec<(Control, i32)>,
    actions: Vec<(usize, Action)>,
}

impl Encoding {
    /// Real-time encoding at speed 7, 300 kbit/s, of a mixed scene.
    pub fn new(width: usize, height: usize, frames: usize) -> Encoding {
        Encoding {
            scene: Scene::Mixed,
            seed: 1,
            width,
            height,
            frames,
            deadline: Deadline::Realtime,
            two_pass: false,
            lag: 0,
            error_resilient: false,
            rate: RateControl::Cbr(300),
            quantisers: (0, 63),
            key_interval: 9999,
            dynamic_resize: false,
            drop_threshold: 0,
            layers: None,
            controls: vec![(Control::CpuUsed, 7)],
            actions: Vec::new(),
        }
    }

    /// The pictures: a scene and its seed.
    #[must_use]
    pub fn scene(mut self, scene: Scene, seed: u32) -> Self {
        (self.scene, self.seed) = (scene, seed);
        self
    }

    /// The encoder's effort.
    #[must_use]
    pub fn effort(mut self, deadline: Deadline, speed: i32) -> Self {
        self.deadline = deadline;
        self.set(Control::CpuUsed, speed)
    }

    /// Two passes with look-ahead of `lag` pictures and up to `alt_refs` layers of hidden references.
    #[must_use]
    pub fn two_pass(mut self, lag: u32, alt_refs: i32) -> Self {
        self.two_pass = true;
        self.deadline = Deadline::Good;
        self.look_ahead(lag, alt_refs)
    }

    /// Look-ahead of `lag` pictures, with hidden alternate references where `alt_refs` is not 0.
    #[must_use]
    pub fn look_ahead(mut self, lag: u32, alt_refs: i32) -> Self {
        self.lag = lag;
        self.set(Control::AutoAltRef, alt_refs)
    }

    /// No dependence on earlier frames' probabilities and vectors.
    #[must_use]
    pub fn error_resilient(mut self) -> Self {
        self.error_resilient = true;
        self
    }

    /// The target of the rate control.
    #[must_use]
    pub fn rate(mut self, rate: RateControl) -> Self {
        self.rate = rate;
        self
    }

    /// Least and largest quantiser, 0 to 63.
    #[must_use]
    pub fn quantisers(mut self, least: u32, largest: u32) -> Self {
        self.quantisers = (least, largest);
        self
    }

    /// A key frame after at most this many pictures.
    #[must_use]
    pub fn key_interval(mut self, pictures: u32) -> Self {
        self.key_interval = pictures;
        self
    }

    /// The rate control may change the coded size.
    #[must_use]
    pub fn dynamic_resize(mut self) -> Self {
        self.dynamic_resize = true;
        self
    }

    /// The rate control may drop pictures (threshold in percent of the buffer).
    #[must_use]
    pub fn dropping(mut self, threshold: u32) -> Self {
        self.drop_threshold = threshold;
        self
    }

    /// Spatial and temporal layers.
    #[must_use]
    pub fn layers(mut self, spatial: &'static [(i32, i32)], temporal: u32) -> Self {
        self.layers = Some(Layers { spatial, temporal });
        self
    }

    /// A control from the start on.
    #[must_use]
    pub fn set(mut self, control: Control, value: i32) -> Self {
        self.controls.retain(|(c, _)| *c != control);
        self.controls.push((control, value));
        self
    }

    /// An action before picture `frame`.
    #[must_use]
    pub fn at(mut self, frame: usize, action: Action) -> Self {
        self.actions.push((frame, action));
        self
    }

    /// Encodes. The error says what libvpx refused.
    pub fn encode(&self, name: impl Into<String>) -> Result<Stream, String> {
        let mut stats = Vec::new();
        if self.two_pass {
            let pass = ffi::vpx_enc_pass::VPX_RC_FIRST_PASS;
            stats = self.run(pass, &mut [])?.concat();
        }
        let pass = if self.two_pass {
            ffi::vpx_enc_pass::VPX_RC_LAST_PASS
        } else {
            ffi::vpx_enc_pass::VPX_RC_ONE_PASS
        };
        Ok(Stream { name: name.into(), chunks: self.run(pass, &mut stats)? })
    }

    fn run(&self, pass: ffi::vpx_enc_pass, stats: &mut [u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut open = Open::new(self, Box::new(self.settings(pass, stats)?))?;
        for &(control, value) in &self.controls {
            open.control(control, value)?;
        }
        if let Some(layers) = self.layers {
            open.enable_layers(layers)?;
        }
        let source = Source::new(self.scene, self.seed);
        let (mut width, mut height) = (self.width, self.height);
        let mut packets = Vec::new();
        for n in 0..self.frames {
            let mut flags = 0;
            for &(_, action) in self.actions.iter().filter(|(at, _)| *at == n) {
                match action {
                    Action::Resize(w, h) => {
                        (width, height) = (w, h);
                        open.resize(w, h)?;
                    }
                    Action::Key => flags |= ffi::VPX_EFLAG_FORCE_KF,
                    Action::Flags(more) => flags |= more,
                    other => open.act(other)?,
                }
            }
            if let Some(layers) = self.layers {
                open.choose_layer(n, layers)?;
            }
            let picture = source.picture(n, width, height);
            open.encode(Some(&picture), n as i64, flags, &mut packets)?;
        }
        loop {
            let before = packets.len();
            open.encode(None, self.frames as i64, 0, &mut packets)?;
            if packets.len() == before {
                return Ok(packets);
            }
        }
    }

    fn settings(
        &self,
        pass: ffi::vpx_enc_pass,
        stats: &mut [u8],
    ) -> Result<ffi::vpx_codec_enc_cfg_t, String> {
        let mut defaults = MaybeUninit::<ffi::vpx_codec_enc_cfg_t>::zeroed();
        // SAFETY: the pointer is valid for writes, and the interface pointer is libvpx's own static.
        check(unsafe {
            ffi::vpx_codec_enc_config_default(ffi::vpx_codec_vp9_cx(), defaults.as_mut_ptr(), 0)
        })?;
        // SAFETY: libvpx reported that it has filled in the whole struct.
        let mut s = unsafe { defaults.assume_init() };
        s.g_w = self.width as u32;
        s.g_h = self.height as u32;
        s.g_timebase = ffi::vpx_rational { num: 1, den: 30 };
        s.g_threads = 1;
        s.g_lag_in_frames = self.lag;
        s.g_error_resilient = u32::from(self.error_resilient);
        s.g_pass = pass;
        s.rc_twopass_stats_in =
            ffi::vpx_fixed_buf_t { buf: stats.as_mut_ptr().cast(), sz: stats.len() as _ };
        let (mode, kbps) = match self.rate {
            RateControl::Cbr(kbps) => (ffi::vpx_rc_mode::VPX_CBR, kbps),
            RateControl::Vbr(kbps) => (ffi::vpx_rc_mode::VPX_VBR, kbps),
            RateControl::Quality(_) => (ffi::vpx_rc_mode::VPX_Q, 0),
        };
        s.rc_end_usage = mode;
        s.rc_target_bitrate = kbps;
        s.rc_dropframe_thresh = self.drop_threshold;
        s.rc_resize_allowed = u32::from(self.dynamic_resize);
        (s.rc_min_quantizer, s.rc_max_quantizer) = self.quantisers;
        s.rc_undershoot_pct = 50;
        s.rc_overshoot_pct = 50;
        s.rc_buf_sz = 1000;
        s.rc_buf_optimal_sz = 600;
        s.rc_buf_initial_sz = 500;
        s.kf_mode = ffi::vpx_kf_mode::VPX_KF_AUTO;
        s.kf_max_dist = self.key_interval;
        if let Some(layers) = self.layers {
            let (spatial, temporal) = (layers.spatial.len(), layers.temporal as usize);
            s.ss_number_layers = spatial as u32;
            s.ts_number_layers = layers.temporal;
            s.ts_periodicity = [1, 2, 4][temporal - 1];
            s.temporal_layering_mode = [0, 2, 3][temporal - 1];
            let decimator: &[u32] = [&[1][..], &[2, 1], &[4, 2, 1]][temporal - 1];
            for (layer, &decimator) in decimator.iter().enumerate() {
                s.ts_rate_decimator[layer] = decimator;
                s.ts_target_bitrate[layer] = kbps * (layer as u32 + 1) / layers.temporal;
            }
            for layer in 0..spatial * temporal {
                let share = kbps / spatial as u32;
                s.layer_target_bitrate[layer] =
                    share * (layer as u32 % layers.temporal + 1) / layers.temporal;
            }
            for layer in 0..spatial {
                s.ss_target_bitrate[layer] = kbps / spatial as u32;
            }
        }
        Ok(s)
    }
}

/// An open libvpx encoder.
struct Open {
    // Boxed: libvpx keeps pointers to the context and to the configuration.
    context: Box<ffi::vpx_codec_ctx_t>,
    settings: Box<ffi::vpx_codec_enc_cfg_t>,
    deadline: c_ulong,
}

impl Open {
    fn new(encoding: &Encoding, settings: Box<ffi::vpx_codec_enc_cfg_t>) -> Result<Open, String> {
        let mut context: Box<ffi::vpx_codec_ctx_t> =
            // SAFETY: plain old data (integers, nullable pointers, an error code whose 0 is "ok");
            // all-zero is libvpx's own initial state for it.
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        // SAFETY: both pointers are valid for the call and stay so as long as the context; the ABI
        // version is the one of the bindings, and libvpx refuses another.
        check(unsafe {
            ffi::vpx_codec_enc_init_ver(
                &raw mut *context,
                ffi::vpx_codec_vp9_cx(),
                &raw const *settings,
                0,
                ffi::VPX_ENCODER_ABI_VERSION as c_int,
            )
        })?;
        let deadline = c_ulong::from(match encoding.deadline {
            Deadline::Realtime => ffi::VPX_DL_REALTIME,
            Deadline::Good => ffi::VPX_DL_GOOD_QUALITY,
            Deadline::Best => ffi::VPX_DL_BEST_QUALITY,
        });
        let mut open = Open { context, settings, deadline };
        if let RateControl::Quality(level) = encoding.rate {
            open.set_int(id::VP8E_SET_CQ_LEVEL, level as c_int)?;
        }
        Ok(open)
    }

    fn control(&mut self, control: Control, value: i32) -> Result<(), String> {
        self.set_int(control.id(), value).map_err(|e| format!("{control:?} = {value}: {e}"))
    }

    fn set_int(&mut self, control: id, value: c_int) -> Result<(), String> {
        // SAFETY: the context is open, and every control that gets here takes one int by value.
        check(unsafe { ffi::vpx_codec_control_(&raw mut *self.context, control as c_int, value) })
    }

    /// For controls that take a pointer to a struct, which libvpx reads during the call only.
    fn set_struct<T>(&mut self, control: id, value: &mut T) -> Result<(), String> {
        // SAFETY: the context is open; the callers below pair each control with the struct that
        // vp8cx.h names for it, and its pointers outlive the call.
        check(unsafe {
            ffi::vpx_codec_control_(&raw mut *self.context, control as c_int, &raw mut *value)
        })
        .map_err(|e| format!("{control:?}: {e}"))
    }

    fn enable_layers(&mut self, layers: Layers) -> Result<(), String> {
        self.set_int(id::VP9E_SET_SVC, 1)?;
        let mut parameters = ffi::vpx_svc_parameters {
            max_quantizers: [self.settings.rc_max_quantizer as c_int; 12],
            min_quantizers: [self.settings.rc_min_quantizer as c_int; 12],
            scaling_factor_num: [1; 12],
            scaling_factor_den: [1; 12],
            speed_per_layer: [7; 12],
            temporal_layering_mode: self.settings.temporal_layering_mode,
            loopfilter_ctrl: [0; 12],
        };
        for (layer, &(num, den)) in layers.spatial.iter().enumerate() {
            parameters.scaling_factor_num[layer] = num;
            parameters.scaling_factor_den[layer] = den;
        }
        self.set_struct(id::VP9E_SET_SVC_PARAMETERS, &mut parameters)
    }

    fn choose_layer(&mut self, n: usize, layers: Layers) -> Result<(), String> {
        let temporal = match layers.temporal {
            1 => 0,
            2 => n % 2,
            _ => [0, 2, 1, 2][n % 4],
        } as c_int;
        let mut layer = ffi::vpx_svc_layer_id {
            spatial_layer_id: 0,
            temporal_layer_id: temporal,
            temporal_layer_id_per_spatial: [temporal; 5],
        };
        self.set_struct(id::VP9E_SET_SVC_LAYER_ID, &mut layer)
    }

    fn reconfigure(&mut self) -> Result<(), String> {
        // SAFETY: context and settings are valid and stay where they are.
        check(unsafe {
            ffi::vpx_codec_enc_config_set(&raw mut *self.context, &raw const *self.settings)
        })
    }

    fn resize(&mut self, width: usize, height: usize) -> Result<(), String> {
        self.settings.g_w = width as u32;
        self.settings.g_h = height as u32;
        self.reconfigure().map_err(|e| format!("resize to {width}x{height}: {e}"))
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Set(control, value) => self.control(control, value),
            Action::Rate(kbps) => {
                self.settings.rc_target_bitrate = kbps;
                self.reconfigure()
            }
            Action::Scale(h, v) => {
                let mode = |n| match n {
                    0 => ffi::VPX_SCALING_MODE::VP8E_NORMAL,
                    1 => ffi::VPX_SCALING_MODE::VP8E_FOURFIVE,
                    2 => ffi::VPX_SCALING_MODE::VP8E_THREEFIVE,
                    _ => ffi::VPX_SCALING_MODE::VP8E_ONETWO,
                };
                let mut modes =
                    ffi::vpx_scaling_mode { h_scaling_mode: mode(h), v_scaling_mode: mode(v) };
                self.set_struct(id::VP8E_SET_SCALEMODE, &mut modes)
            }
            Action::RegionQuality => self.regions(
                [0, -40, 30, 10, -5, 63, -63, 20],
                [0, 20, -30, 63, -63, 5, 9, -9],
                [0; 8],
                [-1; 8],
            ),
            Action::RegionModes => self.regions(
                [0, -10, 10, 0, 0, 0, 0, 0],
                [0; 8],
                [0, 0, 1, 0, 0, 1, 0, 0],
                [-1, -1, -1, 1, 2, 1, 3, -1],
            ),
            Action::NoRegions => self.regions([0; 8], [0; 8], [0; 8], [-1; 8]),
            Action::ActiveMap(shift) => self.active(Some(shift)),
            Action::NoActiveMap => self.active(None),
            Action::IntraOnlyBase => self.layer_sync(0, 1),
            Action::SyncLayer => self.layer_sync(1, 0),
            Action::Resize(..) | Action::Key | Action::Flags(_) => Ok(()),
        }
    }

    fn layer_sync(&mut self, layer_1: c_int, intra_only: c_int) -> Result<(), String> {
        let mut sync = ffi::vpx_svc_spatial_layer_sync {
            spatial_layer_sync: [0, layer_1, 0, 0, 0],
            base_layer_intra_only: intra_only,
        };
        self.set_struct(id::VP9E_SET_SVC_SPATIAL_LAYER_SYNC, &mut sync)
    }

    fn regions(
        &mut self,
        delta_q: [c_int; 8],
        delta_lf: [c_int; 8],
        skip: [c_int; 8],
        ref_frame: [c_int; 8],
    ) -> Result<(), String> {
        let (cols, rows) = (self.settings.g_w.div_ceil(8), self.settings.g_h.div_ceil(8));
        // Regions of 16x16 to 32x32 with ragged edges.
        let mut map: Vec<u8> = (0..rows * cols)
            .map(|i| (hash((i % cols / 3) ^ (i / cols / 2) << 12) % 8) as u8)
            .collect();
        let mut roi = ffi::vpx_roi_map {
            enabled: 1,
            roi_map: map.as_mut_ptr(),
            rows,
            cols,
            delta_q,
            delta_lf,
            skip,
            ref_frame,
            static_threshold: [0; 4],
        };
        self.set_struct(id::VP9E_SET_ROI_MAP, &mut roi)
    }

    fn active(&mut self, shift: Option<u32>) -> Result<(), String> {
        let (cols, rows) = (self.settings.g_w.div_ceil(16), self.settings.g_h.div_ceil(16));
        let mut map: Vec<u8> = (0..rows * cols)
            .map(|i| shift.is_none_or(|s| (((i % cols + s) >> 1) ^ (i / cols)) & 1 == 0))
            .map(u8::from)
            .collect();
        let mut active = ffi::vpx_active_map { active_map: map.as_mut_ptr(), rows, cols };
        self.set_struct(id::VP8E_SET_ACTIVEMAP, &mut active)
    }

    /// Encodes a picture, or flushes; adds what comes out to `packets`.
    fn encode(
        &mut self,
        picture: Option<&I420>,
        time: i64,
        flags: u32,
        packets: &mut Vec<Vec<u8>>,
    ) -> Result<(), String> {
        let mut image = picture.map(wrap).transpose()?;
        let pointer = image.as_mut().map_or(ptr::null_mut(), |i| &raw mut *i);
        // SAFETY: the context is open; the image is null (flush) or points at planes that `wrap`
        // took from a picture that outlives the call.
        check(unsafe {
            ffi::vpx_codec_encode(
                &raw mut *self.context,
                pointer,
                time,
                1,
                c_long::from(flags),
                self.deadline,
            )
        })
        .map_err(|e| format!("picture {time}: {e} ({})", detail(&mut self.context)))?;
        let mut position: ffi::vpx_codec_iter_t = ptr::null();
        loop {
            // SAFETY: the context is open and `position` is the iterator state libvpx asks for.
            let packet =
                unsafe { ffi::vpx_codec_get_cx_data(&raw mut *self.context, &raw mut position) };
            if packet.is_null() {
                return Ok(());
            }
            // SAFETY: a non-null packet is valid until the next call into the encoder; each union
            // field is read for the packet kind that names it, and its buffer holds `sz` bytes.
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

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `new` and is not used again.
        unsafe { ffi::vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// A libvpx image over the borrowed planes of a picture. libvpx only reads them.
fn wrap(picture: &I420) -> Result<ffi::vpx_image_t, String> {
    // SAFETY: plain old data (integers, nullable pointers, enums that have a 0), filled in below.
    let mut image: ffi::vpx_image_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `image` is valid; the data pointer is replaced before any use, and only has to be
    // non-null for libvpx not to allocate.
    let wrapped = unsafe {
        ffi::vpx_img_wrap(
            &raw mut image,
            ffi::vpx_img_fmt::VPX_IMG_FMT_I420,
            picture.width() as u32,
            picture.height() as u32,
            1,
            picture.samples().as_ptr().cast_mut(),
        )
    };
    if wrapped.is_null() {
        return Err(format!("libvpx does not take {}x{}", picture.width(), picture.height()));
    }
    for plane in 0..3 {
        image.planes[plane] = picture.plane(plane).as_ptr().cast_mut();
        image.stride[plane] = picture.plane_size(plane).0 as c_int;
    }
    Ok(image)
}

/// libvpx's result as one of Rust.
pub(super) fn check(code: ffi::vpx_codec_err_t) -> Result<(), String> {
    if code == ffi::VPX_CODEC_OK {
        return Ok(());
    }
    // SAFETY: libvpx returns a static, NUL-terminated string for every code.
    let text = unsafe { CStr::from_ptr(ffi::vpx_codec_err_to_string(code)) };
    Err(text.to_string_lossy().into_owned())
}

/// What libvpx adds to its last error.
pub(super) fn detail(context: &mut ffi::vpx_codec_ctx_t) -> String {
    // SAFETY: the context is open; the string, if any, is NUL-terminated and copied at once.
    unsafe {
        let text = ffi::vpx_codec_error_detail(&raw mut *context);
        if text.is_null() {
            return "no details".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
