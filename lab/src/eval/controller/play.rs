//! Plays a whole scene through publisher and viewer, interval by interval. The caller sets the knobs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use windlass_enhancer::control::{Knobs, Measurements};
use windlass_types::Bitrate;
use windlass_vp9::Picture;

use super::publisher::Publisher;
use super::scene::Scene;
use super::trace::Trace;
use super::viewer::Viewer;
use crate::eval::stats::mean;
use crate::eval::vmaf::Vmaf;

/// One simulated call: a scene on an uplink, which every setting of the knobs plays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    /// The scene with the camera's pictures.
    pub scene: &'a Scene,
    /// Bitrate of the uplink over time.
    pub trace: &'a Trace,
    /// Time between two changes of the knobs.
    pub interval: Duration,
    /// The path of an ffmpeg with libvmaf, if there is one.
    pub vmaf: Option<&'a Path>,
}

/// One interval of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Interval {
    /// Bitrate that the uplink carried, in kbit/s.
    pub uplink_kbps: f64,
    /// Bitrate that was sent, in kbit/s.
    pub kbps: f64,
    /// PSNR of luma in dB: the mean over the camera's frames.
    pub psnr_y_db: f64,
    /// VMAF; `None` without an ffmpeg that has libvmaf.
    pub vmaf: Option<f64>,
    /// VMAF of the model that does not reward sharpening; `None` as for `vmaf`.
    pub vmaf_neg: Option<f64>,
    /// Whether a shared screen was shown.
    pub screen: bool,
    /// The knobs, named as in the report.
    pub knobs: String,
}

/// Measurements of one play of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    /// The intervals of the call, in order.
    pub intervals: Vec<Interval>,
    /// CPU time of measuring, in milliseconds for each second of the call.
    pub metering_ms_per_s: f64,
}

/// Plays the scene. `steer` returns the knobs of each interval, from the interval's number, its uplink and the
/// measurements of the interval before.
pub(super) fn play(
    call: &Call<'_>,
    mut steer: impl FnMut(usize, f64, Option<&Measurements>) -> Knobs,
) -> Result<Run> {
    let Call { scene, .. } = call;
    let mut publisher = Publisher::default();
    let mut viewer = Viewer::default();
    let mut vmaf = call.vmaf.map(|ffmpeg| Vmaf::start(ffmpeg, &scene.frames)).transpose()?;
    let frames = (call.interval.as_secs_f64() * scene.fps).round().max(1.0) as usize;
    let span = Duration::from_secs_f64(frames as f64 / scene.fps);
    let size = scene.frames.size().into();
    let (mut intervals, mut psnr): (Vec<Interval>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut measured: Option<Measurements> = None;
    let mut knobs = None;
    let mut bytes = 0;
    for (n, original) in scene.frames.frames()?.enumerate() {
        let original: Picture = original?;
        if n % frames == 0 {
            let uplink = call.trace.at(n as f64 / scene.fps);
            let chosen = steer(n / frames, uplink, measured.as_ref());
            intervals.push(Interval {
                uplink_kbps: uplink,
                kbps: 0.0,
                psnr_y_db: 0.0,
                vmaf: None,
                vmaf_neg: None,
                screen: scene.is_screen(n),
                knobs: name(&chosen),
            });
            knobs = Some(chosen);
        }
        let knobs = knobs.context("the first interval has knobs")?;
        let sent = publisher.frame(&original, &knobs, scene.fps, scene.is_screen(n))?;
        bytes += sent.as_ref().map_or(0, Vec::len);
        let shown = viewer.frame(n, knobs.layer, sent.as_deref())?;
        psnr.push(windlass_scores::psnr_db(&original.y, &shown.y));
        if let Some(vmaf) = &mut vmaf {
            vmaf.push(shown)?;
        }
        let last = n + 1 == scene.frames.len();
        if let Some(interval) = intervals.last_mut().filter(|_| last || (n + 1) % frames == 0) {
            let seconds = (n % frames + 1) as f64 / scene.fps;
            interval.kbps = bytes as f64 * 0.008 / seconds;
            bytes = 0;
            let uplink = interval.uplink_kbps;
            measured = Some(viewer.meter.take(span, size, Bitrate::kbps(uplink)));
        }
    }
    let scores = vmaf.map(Vmaf::finish).transpose()?;
    for (i, interval) in intervals.iter_mut().enumerate() {
        let range = i * frames..((i + 1) * frames).min(psnr.len());
        let of = |series: &[f64]| mean(series[range.clone()].iter().copied());
        interval.psnr_y_db = of(&psnr).unwrap_or_default();
        interval.vmaf = scores.as_ref().and_then(|scores| of(&scores.vmaf));
        interval.vmaf_neg = scores.as_ref().and_then(|scores| of(&scores.neg));
    }
    let ms = viewer.metering.mean_ms(psnr.len()).unwrap_or_default();
    Ok(Run { intervals, metering_ms_per_s: ms * scene.fps })
}

/// The knobs as text: `h 30 fps 128 kbit/s`.
fn name(knobs: &Knobs) -> String {
    format!("{} {:.0} fps {}", knobs.layer.rid(), knobs.fps, knobs.bitrate)
}
