//! `windlass-lab eval --adapt`: the gain of a network that learns its last layer from the call itself.
//!
//! Source: NeuroScaler §2 and LiveNAS; [`LastLayer`]. The first seconds of a clip are the call so far. One picture a
//! second of them has an HR picture: the camera's own, or the full layer's, which a server that decodes `f` knows.
//! The pictures after are measured, each through the network alone, without anchors: by Lanczos, by the generic
//! network and by the one that has learned. The measured frames are the same for all seconds, so that rows compare.
//! Once a second the learned weights are tried on a picture of which the server knows the truth. They are given up
//! for good where they do not help any more.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use windlass_hybrid::resample::to_plane;
use windlass_sr::{CpuEngine, Engine, Input, LastLayer, Learned, Luma, Model, Residual};
use windlass_vp9::Plane;

use super::args::{ClipSpec, EvalArgs};
use super::captured::rates;
use super::clip::{self, Clip};
use super::cpu_clock::CpuClock;
use super::ffmpeg;
use super::low_layer::{self, Coded};
use super::report::Machine;
use super::scale::Scale;
use super::sr;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// Number of frames between the last learned frame and the first measured frame.
const GAP: usize = 10;
/// Every `EVERY`th frame after the gap is measured.
const EVERY: usize = 5;

/// All results of one run.
#[derive(Debug, Clone, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

/// One clip, uplink, source and time of learning.
#[derive(Debug, Clone, Serialize)]
struct Row {
    clip: String,
    uplink_kbps: u32,
    /// The source of the pictures: `camera`, or `f` and its bitrate.
    from: String,
    seconds: f64,
    /// Number of pictures that were learned from.
    pictures: usize,
    /// PSNR of luma in dB by Lanczos: the mean over the measured frames.
    lanczos_db: f64,
    generic_db: f64,
    adapted_db: f64,
    gain_db: f64,
    /// Gain in dB on examples that were held back from learning; none: the generic weights were kept.
    held_back_db: Option<f64>,
    /// Seconds after which learning was given up, if it was.
    given_up_s: Option<f64>,
    /// CPU time of all learning so far, in seconds; left out with `--no-times`.
    cpu_s: Option<f64>,
    frames: usize,
}

/// The network after some seconds of training on the call.
struct Trained {
    seconds: f64,
    pictures: usize,
    cpu_s: f64,
    held_back_db: Option<f64>,
    learned: Option<Learned>,
    given_up_s: Option<f64>,
}

/// Runs the command and prints its table.
pub(super) fn run(args: &EvalArgs) -> Result<()> {
    let model = sr::network(args.run.model.as_deref())?;
    let tools = ffmpeg::find(args.output.ffmpeg.as_deref())?;
    let mut rows = Vec::new();
    let progress = Progress::new(args.input.clips.len() * args.uplinks().len(), "calls");
    for spec in &args.input.clips {
        let found = one_clip(spec, args, &tools.reader, &model, &progress, &mut rows);
        if interrupt::kept(found)?.is_none() {
            break;
        }
    }
    let table = table(&rows);
    let report = Report { command: "eval", machine: Machine::here(), rows };
    args.output.rows().put(&report, progress.interrupted(), &table, Contents::default)
}

/// Adds the rows of one clip.
fn one_clip(
    spec: &ClipSpec,
    args: &EvalArgs,
    reader: &Path,
    model: &Arc<Model>,
    progress: &Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let scale = Scale::of(model.architecture());
    let name = spec.path.file_name().unwrap_or(spec.path.as_os_str()).to_string_lossy();
    progress.begin(format!("{name}: reading"))?;
    let clip = clip::read(reader, &spec.path, &args.input.wanted(spec, scale))?;
    let screen = args.input.screen || spec.screen;
    let full_kbps = args.captured.settings().full_kbps;
    let full_kbps = full_kbps.unwrap_or_else(|| rates::layer_kbps(clip.frames.size()));
    let full = low_layer::encode(&clip, full_kbps, screen, |picture| picture)?;
    for kbps in args.uplinks() {
        progress.begin(format!("{name} at {kbps} kbit/s"))?;
        let low = low_layer::encode(&clip, kbps, screen, |picture| scale.shrink(&picture))?;
        for from in [None, Some(&full)] {
            let networks = learn(args, &clip, &low, from, model, scale)?;
            let known = Known { clip: &clip, low: &low, from, model, scale };
            let from =
                from.map_or_else(|| "camera".to_owned(), |_| format!("f, {full_kbps} kbit/s"));
            for row in measure(&known, networks)? {
                let (clip, from) = (name.to_string(), from.clone());
                let cpu_s = row.cpu_s.filter(|_| !args.output.no_times);
                rows.push(Row { clip, from, uplink_kbps: kbps, cpu_s, ..row });
            }
        }
        progress.done();
    }
    Ok(())
}

fn luma(plane: &Plane) -> Result<Luma<'_>> {
    Ok(Luma::new(plane.samples(), plane.width(), plane.height(), plane.stride())?)
}

/// The network after each of the seconds that were asked for.
fn learn(
    args: &EvalArgs,
    clip: &Clip,
    low: &Coded,
    from: Option<&Coded>,
    model: &Arc<Model>,
    scale: Scale,
) -> Result<Vec<Trained>> {
    let mut seconds = args.adapt.clone();
    seconds.sort_by(f64::total_cmp);
    let frames = |seconds: f64| (seconds * clip.fps).round() as usize;
    let last = seconds.last().copied().map_or(0, frames);
    ensure!(
        last + GAP < clip.frames.len(),
        "the clip has {:.1} s, which leaves nothing to measure after {} s of learning; name fewer with --adapt",
        clip.frames.len() as f64 / clip.fps,
        last as f64 / clip.fps
    );
    let mut engine = CpuEngine::new(model.clone());
    let mut trainer = LastLayer::new(model.clone());
    let (mut networks, mut pictures, mut cpu_s) = (Vec::new(), 0, 0.0);
    let step = (clip.fps.round() as usize).max(1);
    let highs = from.map_or(&clip.frames, |full| &full.pictures).frames()?;
    for (n, (high, picture)) in highs.zip(low.pictures.frames()?).enumerate().take(last + 1) {
        let (high, picture) = (high?, picture?);
        while networks.len() < seconds.len() && frames(seconds[networks.len()]) <= n {
            let mut clock = CpuClock::default();
            let learned = clock.measure(|| trainer.learned());
            networks.push(Trained {
                seconds: seconds[networks.len()],
                pictures,
                held_back_db: learned.as_ref().map(|learned| learned.held_back_db),
                cpu_s: cpu_s + clock.mean_run_ms().unwrap_or_default() / 1000.0,
                learned,
                given_up_s: None,
            });
        }
        if n % step == 0 && n < last {
            let twin = sr::without_anchors(&picture.y, scale);
            let twin = model.architecture().has_twin().then_some(&twin).map(luma).transpose()?;
            let input = Input { low: luma(&picture.y)?, twin };
            let mut clock = CpuClock::default();
            clock.measure(|| {
                trainer.see(&mut engine, &input, luma(&high.y)?).map_err(anyhow::Error::from)
            })?;
            cpu_s += clock.mean_run_ms().unwrap_or_default() / 1000.0;
            pictures += 1;
        }
    }
    Ok(networks)
}

/// The clip that trained networks are measured on, and its low layer.
struct Known<'a> {
    clip: &'a Clip,
    low: &'a Coded,
    /// The full layer that the server decodes; `None`: the camera's own pictures.
    from: Option<&'a Coded>,
    model: &'a Arc<Model>,
    scale: Scale,
}

/// Measures the pictures after the last second of learning.
fn measure(known: &Known<'_>, mut networks: Vec<Trained>) -> Result<Vec<Row>> {
    let Known { clip, low, model, scale, .. } = *known;
    let last = networks.last().map_or(0.0, |network| network.seconds);
    let from = (last * clip.fps).round() as usize + GAP;
    let mut engine = CpuEngine::new(model.clone());
    let mut residual = Residual::default();
    let (mut frames, mut lanczos, mut generic) = (0, 0.0, 0.0);
    let mut adapted = vec![0.0; networks.len()];
    let step = (clip.fps.round() as usize).max(1);
    let truth = known.from.map_or(&clip.frames, |full| &full.pictures).frames()?;
    let pictures = clip.frames.frames()?.zip(low.pictures.frames()?).zip(truth);
    for (n, ((original, picture), truth)) in pictures.enumerate() {
        let (original, picture, truth) = (original?, picture?, truth?);
        let at = n.checked_sub(from);
        if let Some(at) = at.filter(|at| at.is_multiple_of(step)) {
            let twin = sr::without_anchors(&picture.y, scale);
            let twin = model.architecture().has_twin().then_some(&twin).map(luma).transpose()?;
            let input = Input { low: luma(&picture.y)?, twin };
            for network in &mut networks {
                let Some(learned) = &network.learned else { continue };
                if learned.gain_db(&mut engine, model, &input, luma(&truth.y)?)? < 0.0 {
                    network.learned = None;
                    network.given_up_s = Some(at as f64 / clip.fps);
                }
            }
        }
        if !at.is_some_and(|at| at.is_multiple_of(EVERY)) {
            continue;
        }
        frames += 1;
        let base = scale.base(&picture.y);
        lanczos += windlass_scores::psnr_db(&original.y, &to_plane(&base));
        let twin = sr::without_anchors(&picture.y, scale);
        let twin = model.architecture().has_twin().then_some(&twin).map(luma).transpose()?;
        let input = Input { low: luma(&picture.y)?, twin };
        let mut quality = |weights: &Arc<Model>| -> Result<f64> {
            engine.swap(weights)?;
            engine.infer_batch(&[input], std::slice::from_mut(&mut residual))?;
            let detail =
                residual.to_detail().context("the picture has another size than it says")?;
            let mut high = base.clone();
            for (base, d) in high.samples_mut().iter_mut().zip(detail.samples()) {
                *base = base.saturating_add(*d);
            }
            Ok(windlass_scores::psnr_db(&original.y, &to_plane(&high)))
        };
        let before = quality(model)?;
        generic += before;
        for (sum, network) in adapted.iter_mut().zip(&networks) {
            *sum +=
                network.learned.as_ref().map_or(Ok(before), |learned| quality(&learned.model))?;
        }
    }
    let mean = |sum: f64| sum / f64::from(frames.max(1));
    let rows = networks.into_iter().zip(adapted).map(|(network, adapted)| Row {
        clip: String::new(),
        uplink_kbps: 0,
        from: String::new(),
        seconds: network.seconds,
        pictures: network.pictures,
        lanczos_db: mean(lanczos),
        generic_db: mean(generic),
        adapted_db: mean(adapted),
        gain_db: mean(adapted - generic),
        held_back_db: network.held_back_db,
        given_up_s: network.given_up_s,
        cpu_s: Some(network.cpu_s),
        frames: frames as usize,
    });
    Ok(rows.collect())
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| clip, uplink | learned from | after | Lanczos | generic | adapted | gain | held back | CPU |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let mut held =
            row.held_back_db.map_or_else(|| "generic".to_owned(), |db| format!("{db:+.2}"));
        if let Some(seconds) = row.given_up_s {
            let _ = write!(held, ", given up after {seconds:.0} s");
        }
        let cpu = row.cpu_s.map_or_else(|| "–".to_owned(), |s| format!("{s:.2} s"));
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "| {}, {} | {} | {} s, {} pictures | {:.2} | {:.2} | {:.2} | {:+.2} | {held} | {cpu} |",
            row.clip,
            row.uplink_kbps,
            row.from,
            row.seconds,
            row.pictures,
            row.lanczos_db,
            row.generic_db,
            row.adapted_db,
            row.gain_db,
        );
    }
    out
}
