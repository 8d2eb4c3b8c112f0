//! Runs every method on every clip and uplink; progress goes to standard error.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use windlass_hybrid::picture::Picture;
use windlass_hybrid::resample::upsample;

use super::anchors::{self, AnchorSettings, AnchorTrack};
use super::args::EvalArgs;
use super::clip::{self, Clip, Wanted};
use super::ffmpeg::{self, Ffmpeg};
use super::low_layer::{self, Coded};
use super::methods::{self, Cost, Method};
use super::pictures;
use super::report::{Machine, Report, Row, Settings};
use super::score::{Quality, Scorer};
use super::sr::Upscaler;

/// Methods whose pictures stand beside the original, in this order.
const SHOWN: [Method; 4] = [Method::Bicubic, Method::Lanczos, Method::Hybrid, Method::PerFrameSr];

/// Runs the command and prints its report on standard output.
pub fn run(args: &EvalArgs) -> Result<()> {
    args.check()?;
    let tools = ffmpeg::find(args.ffmpeg.as_deref())?;
    if tools.vmaf.is_none() {
        eprintln!(
            "note: no ffmpeg with libvmaf here, so VMAF stays empty (the Python package imageio-ffmpeg 0.8 has one; \
             name it with --ffmpeg)"
        );
    }
    let mut upscaler = Upscaler::new()?;
    let mut rows = Vec::new();
    for path in &args.clips {
        let named = || format!("evaluating {}", path.display());
        evaluate(path, args, &tools, &mut upscaler, &mut rows).with_context(named)?;
    }
    let report = Report {
        command: "eval",
        machine: Machine::here(),
        settings: Settings {
            anchor_fraction: args.anchor_fraction,
            anchor_quality: args.anchor_quality,
            delay_ms: args.delay_ms,
            backend: upscaler.backend().to_owned(),
            screen: args.screen,
        },
        rows,
    };
    if args.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.table());
    }
    Ok(())
}

/// All rows of one clip.
fn evaluate(
    path: &Path,
    args: &EvalArgs,
    tools: &Ffmpeg,
    upscaler: &mut Upscaler,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let name = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    eprintln!("{name}: reading");
    let wanted =
        Wanted { crop: args.crop, height: args.height.get(), seconds: args.seconds, fps: args.fps };
    let clip = clip::read(&tools.reader, path, &wanted)?;
    eprintln!(
        "{name}: {} frames of {} at {:.2} fps",
        clip.frames.len(),
        clip.frames.size(),
        clip.fps
    );
    for uplink in args.uplink.iter().map(|k| k.get()) {
        let at = format!("{name} at {uplink} kbit/s");
        eprintln!("{at}: encoding the low layer");
        let low =
            low_layer::encode(&clip, uplink, args.screen, |picture| low_layer::halve(&picture))?;
        let settings = AnchorSettings {
            fraction: args.anchor_fraction,
            quality: args.anchor_quality,
            delay: Duration::from_millis(u64::from(args.delay_ms)),
        };
        eprintln!("{at}: making anchors");
        let track = anchors::make(&low, clip.fps, &settings, upscaler)?;
        let stage =
            Stage { clip: &clip, low: &low, track: &track, args, vmaf: tools.vmaf.as_deref() };
        let shown = if args.pictures.is_some() {
            pictures::chosen_frames(clip.frames.len())
        } else {
            Vec::new()
        };
        let mut panels = Vec::new();
        for method in Method::ALL {
            if !args.methods.is_empty() && !args.methods.contains(&method) {
                continue;
            }
            eprintln!("{at}: {}", method.name());
            let keep = if SHOWN.contains(&method) { shown.as_slice() } else { &[] };
            let (outcome, kept) = stage.play(method, keep, upscaler)?;
            rows.push(stage.row(&name, uplink, method, &outcome));
            panels.push((method, kept));
        }
        if let Some(folder) = &args.pictures {
            show(folder, &format!("{}_{uplink}k", stem(path)), &clip, &shown, &panels)?;
        }
    }
    Ok(())
}

/// What all methods of one clip and uplink share.
struct Stage<'a> {
    clip: &'a Clip,
    low: &'a Coded,
    track: &'a AnchorTrack,
    args: &'a EvalArgs,
    vmaf: Option<&'a Path>,
}

/// What a method gave.
struct Outcome {
    quality: Quality,
    cost: Cost,
    video_kbps: f64,
    decode_ms: f64,
}

impl Stage<'_> {
    fn play(
        &self,
        method: Method,
        keep: &[usize],
        upscaler: &mut Upscaler,
    ) -> Result<(Outcome, Vec<Picture>)> {
        let mut scorer = Scorer::new(&self.clip.frames, self.vmaf, keep)?;
        let (mut video_kbps, mut decode_ms) = (self.low.kbps, self.low.decode_ms);
        let cost = match method {
            Method::Direct => {
                let coded = low_layer::encode_at(
                    self.clip,
                    self.low.kbps + self.track.kbps,
                    self.args.screen,
                )?;
                (video_kbps, decode_ms) = (coded.kbps, coded.decode_ms);
                methods::plain(&coded, &mut scorer)?
            }
            Method::Bicubic => methods::upscaled(self.low, &mut scorer, methods::bicubic)?,
            Method::Lanczos => methods::upscaled(self.low, &mut scorer, upsample)?,
            Method::LanczosSharp => {
                methods::upscaled(self.low, &mut scorer, methods::lanczos_sharp)?
            }
            Method::PerFrameSr => methods::per_frame_sr(self.low, &mut scorer, upscaler)?,
            Method::NoAnchors => methods::hybrid(self.low, self.clip.fps, None, &mut scorer)?,
            Method::Hybrid => {
                methods::hybrid(self.low, self.clip.fps, Some(self.track), &mut scorer)?
            }
        };
        let (quality, kept) = scorer.finish()?;
        Ok((Outcome { quality, cost, video_kbps, decode_ms }, kept))
    }

    fn row(&self, clip: &str, uplink_kbps: u32, method: Method, outcome: &Outcome) -> Row {
        let anchored = method == Method::Hybrid;
        let Outcome { quality, cost, video_kbps, decode_ms } = outcome;
        Row {
            clip: clip.to_owned(),
            size: self.clip.frames.size().to_string(),
            fps: self.clip.fps,
            uplink_kbps,
            method: method.name(),
            psnr_y_db: quality.psnr_y_db,
            ssim: quality.ssim,
            vmaf: quality.vmaf,
            vmaf_neg: quality.vmaf_neg,
            video_kbps: *video_kbps,
            anchor_kbps: if anchored { self.track.kbps } else { 0.0 },
            frames: self.clip.frames.len(),
            anchors: cost.anchors,
            decode_ms: *decode_ms,
            reconstruct_ms: cost.reconstruct_ms,
            infer_ms: if anchored { self.track.infer_ms } else { cost.infer_ms },
            anchor_encode_ms: if anchored { self.track.encode_ms } else { None },
        }
    }
}

/// Writes the chosen frames of the shown methods beside the original.
fn show(
    folder: &Path,
    stem: &str,
    clip: &Clip,
    frames: &[usize],
    panels: &[(Method, Vec<Picture>)],
) -> Result<()> {
    let wanted = |(n, _): &(usize, _)| frames.contains(n);
    for (i, (n, original)) in clip.frames.frames()?.enumerate().filter(wanted).enumerate() {
        let original = original?;
        let mut columns = vec![("original", &original)];
        for shown in SHOWN {
            let found = panels
                .iter()
                .find(|(method, _)| *method == shown)
                .and_then(|(_, kept)| kept.get(i));
            columns.extend(found.map(|picture| (shown.name(), picture)));
        }
        let path = pictures::write(
            folder,
            &format!("{stem}_f{n:04}"),
            pictures::busiest(&original.y),
            &columns,
        )?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "clip".to_owned(), |s| s.to_string_lossy().into_owned())
}
