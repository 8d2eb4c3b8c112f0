//! `windlass-lab bench anchors`: coding anchors against encoding every frame anew.
//!
//! Source: NeuroScaler §8.2 and appendix B: 2160p at 60 frames a second, 7.5 % of the frames anchors, against encoding
//! every 2160p frame by libvpx at 35.5 Mbit/s. The paper does not say which `-speed` it took; ours is given on the
//! command line. There is no 2160p source: the clip's pictures and the detail of their anchors are
//! [mirrored](super::mirror) to that size, not scaled. Decoding, inference and reading are left out on both sides. One
//! thread, CPU time, one run.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::detail::{Detail, ONE};
use windlass_types::Size;
use windlass_vpx::{Encoder, ReencodeConfig};

use super::mirror;
use crate::eval::clip::{self, Clip, Crop, Fps, Wanted};
use crate::eval::cpu_clock::CpuClock;
use crate::eval::ffmpeg;
use crate::eval::report::Machine;
use crate::eval::scale::Scale;
use crate::interrupt;
use crate::output::Output;
use crate::page::Contents;
use crate::progress::Progress;

/// Size of the frames, in pixels: 2160p, as in NeuroScaler §8.2.
const SIZE: Size = Size::new(3840, 2160);
/// Frames per second, as in NeuroScaler §8.2.
const FPS: f64 = 60.0;
/// Bitrate of the peer's stream in kbit/s, as in NeuroScaler §8.2.
const KBPS: u32 = 35_500;
/// Share of the frames that are anchors: 7.5 %, as in NeuroScaler §8.2.
const FRACTION: f64 = 0.075;
/// Qualities of the anchors: coarse, between, and the paper's for this share of anchors.
const QUALITIES: [u8; 3] = [50, 75, 90];

/// Code the anchors of 2160p60 video, and encode all its frames anew: bytes and CPU time.
#[derive(Debug, Clone, Args)]
pub(super) struct AnchorsArgs {
    /// Video files; anything that ffmpeg reads. The first second of each is used.
    #[arg(required = true, value_name = "CLIP")]
    clips: Vec<PathBuf>,

    /// Part of the picture to use, as width:height:x:y in source pixels.
    #[arg(long, value_name = "W:H:X:Y")]
    crop: Option<Crop>,

    /// Height of the picture that is mirrored; larger sources are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "720", value_name = "LINES")]
    height: NonZeroU32,

    /// libvpx's speed, 0 to 9.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    speed: u8,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,

    /// The ffmpeg that reads the clips.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    ffmpeg: Option<PathBuf>,
}

/// One way to encode a clip: every frame by libvpx, or its anchors at a quality.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    clip: String,
    codec: &'static str,
    /// libvpx's speed, or the quality of the anchors.
    setting: u8,
    /// Number of frames or anchors that were encoded.
    count: usize,
    /// Mean length of a frame or anchor, in bytes.
    bytes: f64,
    /// PSNR of the anchors' detail, in dB.
    psnr_y_db: Option<f64>,
    /// Mean CPU time to encode a frame or anchor, in ms.
    encode_ms: Option<f64>,
    /// Mean CPU time to decode a frame or anchor, in ms.
    decode_ms: Option<f64>,
    /// CPU time of encoding all frames over that of the anchors.
    x_reencode: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &AnchorsArgs) -> Result<()> {
    ensure!(args.height.get() >= 64, "--height must be at least 64 lines, not {}", args.height);
    let tools = ffmpeg::find(args.ffmpeg.as_deref())?;
    let mut rows = Vec::new();
    let progress = Progress::new(args.clips.len(), "clips");
    for path in &args.clips {
        if interrupt::pressed() {
            break;
        }
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        progress.say(format!("{name}: reading"));
        let wanted = Wanted {
            crop: args.crop,
            height: args.height.get(),
            seconds: None,
            fps: Fps::Auto,
            scale: Scale::TWO,
        };
        let clip = clip::read(&tools.reader, path, &wanted)
            .with_context(|| format!("measuring {name}"))?;
        let found = measure(&name, &clip, args.speed, &progress);
        let Some(found) = interrupt::kept(found.with_context(|| format!("measuring {name}")))?
        else {
            break;
        };
        rows.extend(found);
        progress.done();
    }
    let report = Report { command: "bench anchors", machine: Machine::here(), rows };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}

fn measure(name: &str, clip: &Clip, speed: u8, progress: &Progress) -> Result<Vec<Row>> {
    let (width, height) = (usize::from(SIZE.width), usize::from(SIZE.height));
    let count = clip.frames.len().min(FPS as usize);
    let interval = (1.0 / FRACTION).round() as usize;
    let mut details = Vec::new();
    let mut whole = Encoder::reencoder(ReencodeConfig {
        width,
        height,
        fps: FPS,
        kbps: KBPS,
        cpu_used: speed,
    })?;
    let (mut clock, mut bytes) = (CpuClock::default(), 0);
    for (n, picture) in clip.frames.frames()?.take(count).enumerate() {
        let picture = picture?;
        if n % interval == 0 {
            let low = Scale::TWO.shrink(&picture);
            details.push(mirror::detail(&detail_of(&picture.y, &low.y, 2)?, width, height));
        }
        let large = mirror::picture(&picture, width, height);
        bytes += clock.measure(|| whole.push(&large))?.len();
        progress.begin(format!("{name}: {} of {count} frames encoded", n + 1))?;
    }
    bytes += clock.measure(|| whole.finish())?.len();
    ensure!(details.len() > 1, "{name} is too short");
    let frame_ms = clock.mean_ms(count);
    let mut rows = vec![Row {
        clip: name.to_owned(),
        codec: "libvpx, every frame",
        setting: speed,
        count,
        bytes: bytes as f64 / count as f64,
        psnr_y_db: None,
        encode_ms: frame_ms,
        decode_ms: None,
        x_reencode: None,
    }];
    for quality in QUALITIES {
        let (mut encode, mut decode) = (CpuClock::default(), CpuClock::default());
        let (mut error, mut bytes) = (0.0, 0);
        for detail in &details {
            let payload = encode.measure(|| Htj2k::encode(detail, quality))?;
            let back = decode.measure(|| Htj2k::decode(&payload, SIZE))?;
            error += mse(detail, &back);
            bytes += payload.len();
        }
        let anchors = details.len() as f64;
        let encode_ms = encode.mean_run_ms();
        rows.push(Row {
            clip: name.to_owned(),
            codec: "anchors, htj2k",
            setting: quality,
            count: details.len(),
            bytes: bytes as f64 / anchors,
            psnr_y_db: Some(10.0 * (255.0 * 255.0 * anchors / error).log10()),
            encode_ms,
            decode_ms: decode.mean_run_ms(),
            x_reencode: frame_ms.zip(encode_ms).map(|(frame, anchor)| frame / (anchor * FRACTION)),
        });
    }
    Ok(rows)
}

/// Mean square error of two details, in square grey levels.
fn mse(a: &Detail, b: &Detail) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: f64 = pairs.map(|(&a, &b)| f64::from(i32::from(a) - i32::from(b)).powi(2)).sum();
    sum / (f64::from(ONE).powi(2) * a.samples().len().max(1) as f64)
}

impl Report {
    fn table(&self) -> String {
        let Machine { cpu, threads, platform } = &self.machine;
        let mut out = format!("{cpu}, {threads} threads, {platform}; one thread, CPU time\n\n");
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:<28} {:<20} {:>7} {:>9} {:>8} {:>9} {:>9} {:>10}",
            "clip", "codec", "setting", "bytes", "psnr dB", "enc ms", "dec ms", "x reencode"
        );
        let figure = |v: Option<f64>| v.map_or_else(|| "–".to_owned(), |v| format!("{v:.2}"));
        for row in &self.rows {
            let _ = writeln!(
                out,
                "{:<28} {:<20} {:>7} {:>9.0} {:>8} {:>9} {:>9} {:>10}",
                row.clip,
                row.codec,
                row.setting,
                row.bytes,
                figure(row.psnr_y_db),
                figure(row.encode_ms),
                figure(row.decode_ms),
                figure(row.x_reencode)
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_grey_level_everywhere_is_a_quarter_of_mse() {
        let b = Detail::from_samples(4, 4, vec![ONE / 2; 16]).unwrap();
        assert!((mse(&Detail::zero(4, 4), &b) - 0.25).abs() < 1e-12);
    }
}
