//! Streams made by libvpx's VP9 encoder, through its full range of settings.
//!
//! In: an [`Encoding`], which describes pictures, settings and what happens at which picture. Out: a
//! [`Stream`] of chunks. Deterministic: one thread, seeded pictures.

use std::os::raw::c_int;

use vpx_sys as ffi;
use vpx_sys::vp8e_enc_control_id as id;
use windlass_files::ivf::{self, IvfError};
use windlass_vpx::{Codec, Control, Deadline, Image, VpxError, settings};

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

impl Stream {
    /// Reads an IVF file.
    ///
    /// # Errors
    ///
    /// Fails if it is no IVF file of VP9, is truncated, or has no frames.
    pub fn read(name: impl Into<String>, file: &[u8]) -> Result<Stream, IvfError> {
        let frames = ivf::read(file)?.frames.into_iter();
        Ok(Stream { name: name.into(), chunks: frames.map(<[u8]>::to_vec).collect() })
    }

    /// The stream as an IVF file at 30 frames per second, without a size.
    pub fn to_ivf(&self) -> Vec<u8> {
        ivf::write(&self.chunks, (0, 0), 30)
    }
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
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses a setting or a picture.
    pub fn encode(&self, name: impl Into<String>) -> Result<Stream, String> {
        let chunks = if self.two_pass {
            self.run(ffi::vpx_enc_pass::VPX_RC_FIRST_PASS, Vec::new())
                .and_then(|stats| self.run(ffi::vpx_enc_pass::VPX_RC_LAST_PASS, stats.concat()))
        } else {
            self.run(ffi::vpx_enc_pass::VPX_RC_ONE_PASS, Vec::new())
        };
        Ok(Stream { name: name.into(), chunks: chunks.map_err(|e| e.to_string())? })
    }

    fn run(&self, pass: ffi::vpx_enc_pass, stats: Vec<u8>) -> Result<Vec<Vec<u8>>, VpxError> {
        let mut open = Open(Codec::open(self.settings(pass)?, stats)?);
        if let RateControl::Quality(level) = self.rate {
            open.0.set(Control::CqLevel, level as c_int)?;
        }
        for &(control, value) in &self.controls {
            open.0.set(control, value)?;
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
            packets.extend(open.encode(Some(&picture), n, flags, self.deadline)?);
        }
        loop {
            let last = open.encode(None, self.frames, 0, self.deadline)?;
            if last.is_empty() {
                return Ok(packets);
            }
            packets.extend(last);
        }
    }

    fn settings(&self, pass: ffi::vpx_enc_pass) -> Result<Box<ffi::vpx_codec_enc_cfg_t>, VpxError> {
        let mut s = settings(self.width, self.height)?;
        s.g_timebase = ffi::vpx_rational { num: 1, den: 30 };
        s.g_lag_in_frames = self.lag;
        s.g_error_resilient = u32::from(self.error_resilient);
        s.g_pass = pass;
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
struct Open(Codec);

impl Open {
    /// For controls that take a pointer to a struct, which libvpx reads during the call only.
    fn set_struct<T>(&mut self, control: id, value: &mut T) -> Result<(), VpxError> {
        // SAFETY: the callers below pair each control with the struct that vp8cx.h names for it, and its pointers
        // outlive the call.
        unsafe { self.0.set_struct(control, value) }
    }

    fn enable_layers(&mut self, layers: Layers) -> Result<(), VpxError> {
        self.0.set(Control::Svc, 1)?;
        let settings = self.0.settings();
        let mut parameters = ffi::vpx_svc_parameters {
            max_quantizers: [settings.rc_max_quantizer as c_int; 12],
            min_quantizers: [settings.rc_min_quantizer as c_int; 12],
            scaling_factor_num: [1; 12],
            scaling_factor_den: [1; 12],
            speed_per_layer: [7; 12],
            temporal_layering_mode: settings.temporal_layering_mode,
            loopfilter_ctrl: [0; 12],
        };
        for (layer, &(num, den)) in layers.spatial.iter().enumerate() {
            parameters.scaling_factor_num[layer] = num;
            parameters.scaling_factor_den[layer] = den;
        }
        self.set_struct(id::VP9E_SET_SVC_PARAMETERS, &mut parameters)
    }

    fn choose_layer(&mut self, n: usize, layers: Layers) -> Result<(), VpxError> {
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

    fn resize(&mut self, width: usize, height: usize) -> Result<(), VpxError> {
        self.0.configure("resize", |s| (s.g_w, s.g_h) = (width as u32, height as u32))
    }

    fn act(&mut self, action: Action) -> Result<(), VpxError> {
        match action {
            Action::Set(control, value) => self.0.set(control, value),
            Action::Rate(kbps) => {
                self.0.configure("change the rate", |s| s.rc_target_bitrate = kbps)
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

    fn layer_sync(&mut self, layer_1: c_int, intra_only: c_int) -> Result<(), VpxError> {
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
    ) -> Result<(), VpxError> {
        let settings = self.0.settings();
        let (cols, rows) = (settings.g_w.div_ceil(8), settings.g_h.div_ceil(8));
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

    fn active(&mut self, shift: Option<u32>) -> Result<(), VpxError> {
        let settings = self.0.settings();
        let (cols, rows) = (settings.g_w.div_ceil(16), settings.g_h.div_ceil(16));
        let mut map: Vec<u8> = (0..rows * cols)
            .map(|i| shift.is_none_or(|s| (((i % cols + s) >> 1) ^ (i / cols)) & 1 == 0))
            .map(u8::from)
            .collect();
        let mut active = ffi::vpx_active_map { active_map: map.as_mut_ptr(), rows, cols };
        self.set_struct(id::VP8E_SET_ACTIVEMAP, &mut active)
    }

    /// Encodes picture `n`, or flushes; what comes out.
    fn encode(
        &mut self,
        picture: Option<&I420>,
        n: usize,
        flags: u32,
        deadline: Deadline,
    ) -> Result<Vec<Vec<u8>>, VpxError> {
        let image = picture.map(|picture| {
            let planes = [0, 1, 2].map(|i| (picture.plane(i), picture.plane_size(i).0));
            Image::new(picture.width(), picture.height(), planes)
        });
        let time = n as i64;
        self.0.encode(image.transpose()?.as_ref(), time..time + 1, flags, deadline)
    }
}
