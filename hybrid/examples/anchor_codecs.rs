//! What the still codecs of anchors cost and keep, for `docs/anchor-codecs.md`.
//!
//! `cargo run --release -p windlass-hybrid --example anchor_codecs [BUDGETS]`
//!
//! Clips from `WINDLASS_CLIPS` are scaled to 640×360 by `ffmpeg`, halved, and coded by `vpxenc` at
//! 150 kbit/s as a real-time call would be. Coded is, at every budget in bytes, the detail that the
//! network of `models/` adds to the decoded pictures, and that of the originals over them. Given is
//! the PSNR between pictures with coded and with uncoded detail, in dB, as the mean over clips.
//! Times are those of one thread at 1280×720, the best of several in milliseconds.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{ALL, detail_of};
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::resample::box_half;
use windlass_hybrid::vp9::Decoder;

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
const FRAMES: usize = 91;
/// Of these every thirtieth is coded.
const STEP: usize = 30;
const BUDGETS: [usize; 6] = [1000, 2000, 4000, 8000, 16_000, 32_000];
/// None of these is enlarged.
const CLIPS: [(&str, &str); 5] = [
    ("LivePortrait__d13.mp4", "crop=720:405:0:300,"),
    ("LatentSync__assets_demo1_video.mp4", "crop=1080:608:0:480,"),
    ("LatentSync__assets_demo2_video.mp4", "crop=1080:608:0:100,"),
    ("gh-scoped-creds__screencast.mp4", "crop=1616:909:0:300,"),
    ("chor2bspl__screencast.mp4", "crop=1066:600:0:0,"),
];

fn main() {
    let given = std::env::args().nth(1);
    let budgets: Vec<usize> = given
        .map_or(BUDGETS.to_vec(), |list| list.split(',').filter_map(|b| b.parse().ok()).collect());
    let folder = std::env::var("WINDLASS_CLIPS").unwrap_or_else(|_| "../shared/clips".into());
    let network = Network::load(Path::new("models/xs-x2.safetensors"));
    let (mut enhanced, mut captured) = (Vec::new(), Vec::new());
    let mut large = None;
    for (file, crop) in CLIPS {
        let path = Path::new(&folder).join(file);
        if !path.exists() {
            println!("{} is missing, skipped", path.display());
            continue;
        }
        let high = originals(&path, crop, (WIDTH, HEIGHT), FRAMES);
        let lows = coded_low(&high);
        let detail = |of: usize| detail_of(&high[of].y, &lows[of], 2).expect("sizes fit");
        captured.push((0..lows.len()).step_by(STEP).map(detail).collect::<Vec<_>>());
        if let Some(network) = &network {
            let detail = |of: usize| network.detail(&lows[of]);
            enhanced.push((0..lows.len()).step_by(STEP).map(detail).collect::<Vec<_>>());
        }
        if crop.starts_with("crop=1616") {
            let high = originals(&path, crop, (1280, 720), 1);
            large = detail_of(&high[0].y, &box_half(&high[0].y), 2).ok();
        }
    }
    for (name, clips) in [("enhanced", &enhanced), ("captured", &captured)] {
        for &budget in &budgets {
            print!("{name} {budget:>6}:");
            for codec in ALL {
                let (mut quality, mut bytes, mut least, mut n) = (0.0, 0, usize::MAX, 0);
                for detail in clips.iter().flatten() {
                    let Ok(code) = codec.encode_within(detail, budget) else { continue };
                    let back = codec.decode(&code, WIDTH as u16, HEIGHT as u16);
                    quality += psnr(detail, &back.expect("our own"));
                    bytes += code.len();
                    least = least.min(code.len());
                    n += 1;
                }
                if n == 0 {
                    print!("  {} does not fit", codec.name());
                    continue;
                }
                let (quality, bytes) = (quality / n as f64, bytes / n);
                print!("  {} {quality:.2} dB, {bytes} B, least {least} ({n})", codec.name());
            }
            println!();
        }
    }
    let Some(detail) = large else { return };
    for &budget in &budgets {
        print!("1280x720 {budget:>6}:");
        for codec in ALL {
            let Ok(code) = codec.encode_within(&detail, budget) else { continue };
            let fixed = best(|| drop(codec.encode(&detail, 60)));
            let within = best(|| drop(codec.encode_within(&detail, budget)));
            let decode = best(|| drop(codec.decode(&code, 1280, 720)));
            print!("  {} q60 {fixed:.1}, within {within:.1}, decode {decode:.1} ms", codec.name());
        }
        println!();
    }
}

/// PSNR between two planes of detail, in dB of whole grey levels.
fn psnr(a: &Detail, b: &Detail) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: f64 = pairs.map(|(a, b)| f64::from(i32::from(*a) - i32::from(*b)).powi(2)).sum();
    let mean = sum / a.samples().len() as f64 / 256.0;
    (10.0 * (255.0 * 255.0 / mean).log10()).min(99.0)
}

fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..9).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1000.0
    });
    times.fold(f64::INFINITY, f64::min)
}

/// A clip's first frames at HR.
fn originals(
    clip: &Path,
    crop: &str,
    (width, height): (usize, usize),
    frames: usize,
) -> Vec<Picture> {
    let filter = format!("{crop}scale={width}:{height}:flags=lanczos,format=yuv420p");
    let done = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(clip)
        .args(["-vf", &filter, "-frames:v", &frames.to_string(), "-f", "rawvideo", "-"])
        .output()
        .expect("ffmpeg runs");
    done.stdout
        .chunks_exact(width * height * 3 / 2)
        .filter_map(|frame| Picture::from_i420(width, height, frame))
        .collect()
}

/// The low luma that a player would display.
fn coded_low(high: &[Picture]) -> Vec<Plane> {
    let stem = std::env::temp_dir().join(format!("windlass-codecs-{}", std::process::id()));
    let (raw, ivf) = (stem.with_extension("yuv"), stem.with_extension("ivf"));
    let low = high.iter().flat_map(|picture| picture.planes().map(box_half));
    let bytes: Vec<u8> = low.flat_map(|plane| plane.samples().to_vec()).collect();
    std::fs::write(&raw, bytes).expect("a temporary file");
    let done = Command::new("vpxenc")
        .args(["--codec=vp9", "--rt", "--cpu-used=7", "--end-usage=cbr", "--lag-in-frames=0"])
        .args(["--min-q=2", "--max-q=56", "--undershoot-pct=50", "--overshoot-pct=50"])
        .args(["--buf-sz=1000", "--buf-initial-sz=500", "--buf-optimal-sz=600", "--aq-mode=3"])
        .args(["--kf-max-dist=9999", "--passes=1", "--fps=30/1", "--ivf", "--quiet", "--i420"])
        .arg(format!("--width={}", WIDTH / 2))
        .arg(format!("--height={}", HEIGHT / 2))
        .arg("--target-bitrate=150")
        .arg("-o")
        .arg(&ivf)
        .arg(&raw)
        .status();
    assert!(done.is_ok_and(|s| s.success()), "vpxenc failed");
    let bytes = std::fs::read(&ivf).expect("what vpxenc wrote");
    let _ = (std::fs::remove_file(&raw), std::fs::remove_file(&ivf));
    let mut decoder = Decoder::new();
    let mut planes = Vec::new();
    let mut rest = &bytes[32..];
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (data, next) = tail.split_at(length);
        let frames = decoder.decode(data).expect("vpxenc's stream");
        let shown = frames.iter().rev().find(|f| f.info.shown).expect("one is shown");
        planes.push(shown.picture.to_picture().y);
        rest = next;
    }
    planes
}

/// The super-resolution network of `models/`, plainly: 3×3 convolutions with ReLU between.
struct Network {
    layers: Vec<(Vec<f32>, Vec<f32>)>,
}

impl Network {
    /// Reads the weights; `None` when the file is not there.
    fn load(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("a sound file");
        let read = |name: String| -> Option<Vec<f32>> {
            let data = tensors.tensor(&name).ok()?;
            let words = data.data().chunks_exact(4);
            Some(words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        };
        let layers = (0..).map_while(|i| {
            Some((read(format!("conv{i}.weight"))?, read(format!("conv{i}.bias"))?))
        });
        Some(Self { layers: layers.collect() })
    }

    /// The residual over Lanczos.
    fn detail(&self, low: &Plane) -> Detail {
        let (w, h) = (low.width(), low.height());
        let mut planes = vec![low.samples().iter().map(|&v| f32::from(v) / 255.0 - 0.5).collect()];
        for (i, (weights, bias)) in self.layers.iter().enumerate() {
            planes = convolve(&planes, weights, bias, w, h, i + 1 < self.layers.len());
        }
        let mut detail = Detail::zero(2 * w, 2 * h);
        for y in 0..2 * h {
            for (x, d) in detail.row_mut(y).iter_mut().enumerate() {
                *d = (planes[y % 2 * 2 + x % 2][y / 2 * w + x / 2] * 16.0).round() as i16;
            }
        }
        detail
    }
}

fn convolve(
    input: &[Vec<f32>],
    weights: &[f32],
    bias: &[f32],
    w: usize,
    h: usize,
    relu: bool,
) -> Vec<Vec<f32>> {
    let convolve_one = |(o, &bias): (usize, &f32)| {
        let mut out = vec![bias; w * h];
        for (c, plane) in input.iter().enumerate() {
            for k in 0..9 {
                let weight = weights[(o * input.len() + c) * 9 + k];
                let (dx, dy) = (k % 3, k / 3);
                for y in 1usize.saturating_sub(dy)..(h + 1 - dy).min(h) {
                    let from = &plane[(y + dy - 1) * w..][..w];
                    let to = &mut out[y * w..][..w];
                    let (to, from) = match dx {
                        0 => (&mut to[1..], &from[..w - 1]),
                        1 => (to, from),
                        _ => (&mut to[..w - 1], &from[1..]),
                    };
                    for (t, f) in to.iter_mut().zip(from) {
                        *t += weight * f;
                    }
                }
            }
        }
        if relu {
            for v in &mut out {
                *v = v.max(0.0);
            }
        }
        out
    };
    bias.iter().enumerate().map(convolve_one).collect()
}
