//! Runs every method on every clip and uplink; progress goes to standard error.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use windlass_types::AnchorSource;

use super::adapt;
use super::anchors::AnchorSettings;
use super::args::{ClipSpec, EvalArgs, name};
use super::captured::{Source, rates};
use super::clip::{self, Clip};
use super::clip_run::{ClipRun, KeptPictures, RunSettings};
use super::controller;
use super::display;
use super::ffmpeg::{self, Ffmpeg};
use super::method::Method;
use super::pictures;
use super::report::{Machine, Report, Settings};
use super::row::{self, Row};
use super::rungs;
use super::sr::Upscaler;
use super::sweep;
use super::{codec_trace, frame_worth};
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// Methods whose pictures are shown beside the original, in this order.
const SHOWN: [Method; 7] = [
    Method::Bicubic,
    Method::Lanczos,
    Method::Hybrid,
    Method::PerFrameSr,
    Method::Captured(Source::Full),
    Method::Captured(Source::Regions),
    Method::Both(Source::Regions),
];

/// Runs the command and prints its report on standard output.
pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    let mut args = args.clone();
    let network = args.run.model.as_deref().map(Upscaler::from_file).transpose()?;
    if let Some(network) = &network {
        args.run.scale = network.scale();
    }
    let args = &args;
    args.check()?;
    if args.controller.controller {
        return controller::run(args);
    }
    if let Some(size) = args.display.display {
        return display::run(args, size);
    }
    if !args.adapt.is_empty() {
        return adapt::run(args);
    }
    let tools = ffmpeg::find(args.output.ffmpeg.as_deref())?;
    if tools.vmaf.is_none() {
        eprintln!(
            "note: no ffmpeg with libvmaf here, so VMAF stays empty (the Python package imageio-ffmpeg 0.8 has one; \
             name it with --ffmpeg)"
        );
    }
    let mut upscaler = network.map_or_else(Upscaler::new, Ok)?;
    if let Some(name) = &args.run.backend {
        upscaler = upscaler.on(name)?;
    }
    let mut settings = run_settings(args, &tools);
    let uplinks =
        if args.run.rungs && args.run.uplink.is_empty() { 1 } else { args.uplinks().len() };
    let progress = Progress::new(args.input.clips.len() * uplinks * settings.rows(), "rows");
    settings.progress = Some(&progress);
    let mut rows = Vec::new();
    for (number, spec) in args.input.clips.iter().enumerate() {
        let named = || format!("evaluating {}", spec.path.display());
        let name = name(&args.input.clips, number);
        let done = evaluate(spec, &name, args, &tools, &settings, &mut upscaler, &mut rows);
        if interrupt::kept(done.with_context(named))?.is_none() {
            break;
        }
    }
    rows.extend(row::means(&rows));
    let reference = args.sweep.bd_reference.to_string();
    if let Some(folder) = &args.output.plots {
        for name in sweep::write_plots(&rows, folder)? {
            progress.note(&format!("wrote {}", folder.join(name).display()));
        }
    }
    let report = Report {
        command: "eval",
        machine: Machine::here(),
        settings: Settings {
            scale: args.run.scale.factor(),
            anchor_source: if args.anchors.oracle { "captured" } else { "enhanced" },
            delay_ms: args.anchors.delay_ms,
            anchor_loss: args.anchors.anchor_loss,
            seed: args.anchors.seed,
            backend: upscaler.backend().to_owned(),
        },
        rungs: if args.run.rungs { rungs::rungs(&rows) } else { Vec::new() },
        bd: if args.sweep.sweep { sweep::differences(&rows, &reference) } else { Vec::new() },
        rows,
    };
    args.output.rows().put(&report, progress.interrupted(), &report.table(), || Contents {
        plots: sweep::plots(&report.rows).into_iter().map(|(_, plot)| plot).collect(),
        ..Contents::default()
    })
}

/// The settings that all clips and uplinks share.
fn run_settings<'a>(args: &EvalArgs, tools: &'a Ffmpeg) -> RunSettings<'a> {
    let anchors = args
        .fractions()
        .into_iter()
        .flat_map(|fraction| args.targets().into_iter().map(move |target| (fraction, target)))
        .map(|(fraction, target)| AnchorSettings {
            tiles: Some(args.anchors.tiles()),
            beyond_prior: !args.anchors.whole_detail,
            fraction,
            target,
            source: if args.anchors.oracle {
                AnchorSource::Captured
            } else {
                AnchorSource::Enhanced
            },
            delay: Duration::from_millis(u64::from(args.anchors.delay_ms)),
            loss: args.anchors.anchor_loss,
            seed: args.anchors.seed,
        })
        .collect();
    RunSettings {
        scale: args.run.scale,
        methods: args.methods(),
        anchors,
        captured: args.captured.settings(),
        nemo_step: args.anchors.nemo_step.get() as usize,
        vmaf: tools.vmaf.as_deref(),
        times: !args.output.no_times,
        progress: None,
    }
}

/// All rows of one clip.
fn evaluate(
    spec: &ClipSpec,
    name: &str,
    args: &EvalArgs,
    tools: &Ffmpeg,
    settings: &RunSettings<'_>,
    upscaler: &mut Upscaler,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let say = |what: String| settings.progress.iter().for_each(|progress| progress.say(&what));
    let note = |what: String| settings.progress.iter().for_each(|progress| progress.note(&what));
    interrupt::check()?;
    say(format!("{name}: reading"));
    let clip = clip::read(&tools.reader, &spec.path, &args.input.wanted(spec, args.run.scale))?;
    let (frames, size, fps) = (clip.frames.len(), clip.frames.size(), clip.fps);
    note(format!("{name}: {frames} frames of {size} at {fps:.2} fps"));
    let shown = match &args.output.pictures {
        Some(_) => pictures::chosen_frames(clip.frames.len()),
        None => Vec::new(),
    };
    let size = settings.scale.low(clip.frames.size());
    let by_size = args.run.rungs && args.run.uplink.is_empty();
    let uplinks = if by_size { vec![rates::layer_kbps(size)] } else { args.uplinks() };
    for uplink in uplinks {
        say(format!("{name} at {uplink} kbit/s: encoding the low layer"));
        let mut clip_run =
            ClipRun::new(settings, name, &clip, uplink, args.input.screen || spec.screen)?;
        let (found, kept) = clip_run.rows(upscaler, &SHOWN, &shown)?;
        rows.extend(found);
        interrupt::check()?;
        let mut frame_worths = Vec::new();
        if let Some(folder) = &args.output.gains {
            let frames = clip_run.frame_worths(upscaler)?;
            let path = folder.join(format!("{}_{uplink}k_gains.csv", stem(&spec.path)));
            fs::create_dir_all(folder)?;
            fs::write(&path, frame_worth::csv(&frames))
                .with_context(|| format!("writing {}", path.display()))?;
            note(format!("{name} at {uplink} kbit/s: {}", frame_worth::line(&frames)));
            frame_worths = frames;
        }
        if let Some(folder) = &args.output.codec_traces {
            let trace = codec_trace::of(clip_run.low(), clip.fps, &frame_worths)?;
            let low = settings.scale.low(clip.frames.size());
            let remark = format!("{name}, {low}, {uplink} kbit/s, as Chromium codes it");
            let path = folder.join(format!("{}_{uplink}k.csv", stem(&spec.path)));
            fs::create_dir_all(folder)?;
            fs::write(&path, trace.csv(&remark))
                .with_context(|| format!("writing {}", path.display()))?;
        }
        if let Some(folder) = &args.output.pictures {
            let stem = format!("{}_{uplink}k", stem(&spec.path));
            for path in show(folder, &stem, &clip, &shown, &kept)? {
                note(format!("wrote {}", path.display()));
            }
        }
    }
    Ok(())
}

/// Writes the chosen frames of the shown methods beside the original, and says where.
fn show(
    folder: &Path,
    stem: &str,
    clip: &Clip,
    frames: &[usize],
    kept: &[KeptPictures],
) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let wanted = |(n, _): &(usize, _)| frames.contains(n);
    for (i, (n, original)) in clip.frames.frames()?.enumerate().filter(wanted).enumerate() {
        let original = original?;
        let names = SHOWN.map(|method| method.to_string());
        let mut columns = vec![("original", &original)];
        for (shown, name) in SHOWN.iter().zip(&names) {
            let found = kept
                .iter()
                .find(|kept| kept.method == *shown)
                .and_then(|kept| kept.pictures.get(i));
            columns.extend(found.map(|picture| (name.as_str(), picture)));
        }
        written.push(pictures::write(
            folder,
            &format!("{stem}_f{n:04}"),
            pictures::busiest(&original.y),
            &columns,
        )?);
    }
    Ok(written)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "clip".to_owned(), |s| s.to_string_lossy().into_owned())
}
