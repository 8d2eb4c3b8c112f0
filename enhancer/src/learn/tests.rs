//! What learning gains on clips once the larger layer has ended, against that layer: the figures of
//! `lab/notes/networks.md`.
//!
//! Everything as in the server, but without threads and clocks: for the first part of a clip a captured anchor and a
//! sample a second, then nothing captured, and each fifth frame is measured, by generic and by learned weights.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::cells::Cells;
use windlass_hybrid::resample::{Scratch, lanczos, to_plane};
use windlass_sr::{CpuEngine, Engine, Input, Luma, Model, Residual, fused_model};
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, FrameBuffer, Plane, Samples};

use super::*;
use crate::twin::Twin;

const LOW: (usize, usize) = (320, 180);
const HIGH: (usize, usize) = (640, 360);
const FPS: usize = 30;
/// What measured frames of a clip may lose at most, in dB.
const NOTHING: f64 = -0.02;

/// The frames of a clip as Chromium would encode them.
fn encode(clip: &str, crop: &str, size: (usize, usize), kbps: u32) -> Option<Vec<Vec<u8>>> {
    let path = windlass_files::clip(clip);
    let (width, height) = size;
    let rest = format!(
        "-vf {crop}scale={width}:{height} -r {FPS} -frames:v 600 -pix_fmt yuv420p -c:v libvpx-vp9 \
         -deadline realtime -cpu-used 7 -b:v {kbps}k -minrate {kbps}k -maxrate {kbps}k -g 9999 \
         -lag-in-frames 0 -error-resilient 1 -auto-alt-ref 0 -f ivf pipe:1"
    );
    let mut command = Command::new("ffmpeg");
    let command = command.args(["-v", "error", "-nostdin", "-i"]).arg(path);
    let output = command.args(rest.split_whitespace()).output().ok()?;
    let ivf = windlass_files::ivf::read(&output.stdout).ok()?;
    Some(ivf.frames.into_iter().map(<[u8]>::to_vec).collect())
}

fn of_plane(plane: &Plane) -> Luma<'_> {
    Luma::new(plane.samples(), plane.width(), plane.height(), plane.stride()).unwrap()
}

fn of_frame(frame: &FrameBuffer) -> Luma<'_> {
    let plane = &frame.planes()[0];
    Luma::new(plane.samples(), plane.width(), plane.height(), plane.stride()).unwrap()
}

fn base(low: Samples<'_>) -> Detail {
    let mut base = Detail::zero(HIGH.0, HIGH.1);
    lanczos(Isa::detect(), low, 2, 0..LOW.1, base.samples_mut(), &mut Scratch::default());
    base
}

/// PSNR of what the network makes of a picture.
fn psnr(engine: &mut CpuEngine, model: &Arc<Model>, input: &Input<'_>, wanted: Luma<'_>) -> f64 {
    engine.swap(model).unwrap();
    let mut residual = Residual::default();
    engine.infer_batch(&[*input], std::slice::from_mut(&mut residual)).unwrap();
    let base = base(input.low.samples());
    let made = base.samples().iter().zip(&residual.data).map(|(&b, r)| f32::from(b) / 16.0 + r);
    let wanted = (0..HIGH.1).flat_map(|y| wanted.row(y));
    let error = |(made, &wanted): (f32, &u8)| {
        f64::from(made.round().clamp(0.0, 255.0) - f32::from(wanted)).powi(2)
    };
    let mean = made.zip(wanted).map(error).sum::<f64>() / (HIGH.0 * HIGH.1) as f64;
    10.0 * (255.0 * 255.0 / mean.max(1e-9)).log10()
}

/// The publisher's own anchor of a frame, as subscribers are given it.
fn captured(
    high: &FrameBuffer,
    low: &FrameBuffer,
    at: u32,
    prior: &mut Prior,
) -> ReassembledAnchor {
    let (high, low) = (&high.planes()[0], &low.planes()[0]);
    let mut detail = codec::detail_of(high, low, 2).unwrap();
    prior.take_out(low.into(), &mut detail);
    let size = Size::new(HIGH.0 as u16, HIGH.1 as u16);
    let header = AnchorHeader {
        beyond_prior: true,
        ..AnchorHeader::new(windlass_types::message::HTJ2K, AnchorSource::Captured, at, size)
    };
    ReassembledAnchor { header, payload: codec::Htj2k::encode(&detail, 85).unwrap() }
}

/// Frames after the end of the larger layer, PSNR by generic weights, and what learned ones gain, in dB.
struct Gains {
    rows: Vec<(usize, f64, f64)>,
    /// By sample: `U`, weights were put into use; `X`, given up.
    story: String,
}

fn call(low: &[Vec<u8>], high: &[Vec<u8>]) -> Gains {
    let frames = low.len().min(high.len());
    let end = frames * 3 / 5;
    let generic = fused_model().unwrap();
    let (mut engine, mut trainer) =
        (CpuEngine::new(generic.clone()), Trainer::new(generic.clone(), None));
    let (mut low_decoder, mut high_decoder) = (Decoder::new(), Decoder::new());
    let (twin, mut prior) = (Twin::new(2), Prior::new(Isa::detect(), 2));
    let mut used = None;
    let mut gains = Gains { rows: Vec::new(), story: String::new() };
    for n in 0..frames {
        let at = n as u32 * 3000;
        let decoded = low_decoder.decode(&low[n]).unwrap().to_vec();
        twin.follow(at, &decoded);
        let picture = decoded.last().unwrap().picture.clone();
        let truth = high_decoder.decode(&high[n]).unwrap().last().unwrap().picture.clone();
        let (low, wanted) = (of_frame(&picture), of_frame(&truth));
        let seen = twin.start(at).unwrap();
        let view = Input { low, twin: Some(of_plane(&seen)) };
        if n < end && n % FPS == 0 {
            let mut bare = base(low.samples());
            prior.put_back(low.samples(), &mut bare, Cells::All);
            let bare = to_plane(&bare);
            let views = [view, Input { low, twin: Some(of_plane(&bare)) }];
            let (letter, now) = match trainer.train(&mut engine, &views, wanted).unwrap() {
                Report::Same => ('.', used),
                Report::Use(weights) => ('U', Some(weights)),
                Report::GivenUp => ('X', None),
            };
            used = now;
            gains.story.push(letter);
            twin.give(&captured(&truth, &picture, at, &mut prior));
        }
        if n >= end && n % 5 == 0 {
            let before = psnr(&mut engine, &generic, &view, wanted);
            let weights = used.as_ref();
            let after = weights.map(|weights| psnr(&mut engine, weights, &view, wanted));
            gains.rows.push((n - end, before, after.unwrap_or(before) - before));
        }
    }
    gains
}

#[test]
#[ignore = "takes some minutes, ffmpeg and the clips of WINDLASS_CLIPS"]
fn learned_weights_are_never_worse_on_clips_once_the_larger_layer_has_ended() {
    let mut table = String::from(
        "| clip, kbit/s | generic | first second | to 3 s | later | least | lessons |\n",
    );
    let mut worst = f64::INFINITY;
    for (clip, crop) in [
        ("LivePortrait__d13.mp4", "crop=720:405:0:300,"),
        ("LivePortrait__s18.mp4", ""),
        ("LivePortrait__d6.mp4", ""),
        ("gh-scoped-creds__screencast.mp4", "crop=1616:908:0:300,"),
        ("chor2bspl__screencast.mp4", ""),
    ] {
        for kbps in [150, 300] {
            let streams = encode(clip, crop, LOW, kbps).zip(encode(clip, crop, HIGH, 900));
            let Some((low, high)) = streams else { continue };
            let Gains { rows, story } = call(&low, &high);
            let mean = |from: usize, to: usize, of: fn(&(usize, f64, f64)) -> f64| {
                let rows: Vec<f64> =
                    rows.iter().filter(|row| (from..to).contains(&row.0)).map(of).collect();
                rows.iter().sum::<f64>() / rows.len().max(1) as f64
            };
            let min = rows.iter().map(|row| row.2).fold(f64::INFINITY, f64::min);
            worst = worst.min(min);
            let gain = |from, to| mean(from, to, |row| row.2);
            writeln!(
                table,
                "| {clip}, {kbps} | {:.2} | {:+.2} | {:+.2} | {:+.2} | {min:+.2} | `{story}` |",
                mean(0, usize::MAX, |row| row.1),
                gain(0, FPS),
                gain(FPS, 3 * FPS),
                gain(3 * FPS, usize::MAX),
            )
            .unwrap();
        }
    }
    println!("{table}");
    assert!(worst < f64::INFINITY, "WINDLASS_CLIPS names no clips, or there is no ffmpeg");
    assert!(worst > NOTHING, "{worst:+.3} dB");
}
