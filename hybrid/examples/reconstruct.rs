//! Prints the luma PSNR of Lanczos and of reconstruction for development clips.
//!
//! `cargo run --release -p windlass-hybrid --example reconstruct [CLIP…] [--rates 150,300] [--qualities]`
//!
//! Each clip is scaled to 640×360 by `ffmpeg`, halved by the box, coded by `vpxenc` as a real-time
//! call would be, and rebuilt: without anchors; with enhanced anchors (by the network of `models/`, else the original's
//! detail weakened to 15 %) on every sixth frame, arriving four frames late; with captured anchors
//! (the original's detail) once a second, as late. Each column gives the three gains over Lanczos in dB. With `--qualities`
//! it also prints what anchors cost and keep at several JPEG qualities. Needs `ffmpeg` and `vpxenc`; clips come from `WINDLASS_CLIPS`.

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_hybrid::anchor::codec::{AnchorCodec, DEFAULT_QUALITY, ResidualJpeg, detail_of};
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin, ReassembledAnchor};
use windlass_hybrid::picture::{Picture, Plane, psnr};
use windlass_hybrid::reconstruct::Reconstruction;
use windlass_hybrid::resample::{box_half, lanczos2x, lanczos2x_q4, to_plane};
use windlass_hybrid::vp9::Decoder;
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder};

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
const FRAMES: usize = 91;
const CLIPS: [(&str, &str, &str); 6] = [
    ("d13", "LivePortrait__d13.mp4", "crop=720:405:0:300,"),
    ("demo1", "LatentSync__assets_demo1_video.mp4", "crop=1080:608:0:480,"),
    ("demo2", "LatentSync__assets_demo2_video.mp4", "crop=1080:608:0:100,"),
    ("s18", "LivePortrait__s18.mp4", ""),
    ("notebook", "gh-scoped-creds__screencast.mp4", "crop=1616:909:0:300,"),
    ("terminal", "chor2bspl__screencast.mp4", "crop=1066:600:0:0,"),
];

/// How anchors come in one column of the table.
struct Feed {
    /// The coded anchors, by frame.
    anchors: Vec<Option<ReassembledAnchor>>,
}

/// Anchors arrive this many frames after their own: 130 ms at 30 frames a second.
const LATE: usize = 4;
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut rates = vec![150, 300];
    let mut wanted = Vec::new();
    let mut measure_qualities = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--rates" {
            rates = rest
                .next()
                .map_or(rates, |r| r.split(',').filter_map(|k| k.parse().ok()).collect());
        } else if argument == "--qualities" {
            measure_qualities = true;
        } else {
            wanted.push(argument.clone());
        }
    }
    let folder = std::env::var("WINDLASS_CLIPS").unwrap_or_else(|_| "../shared/clips".into());
    let work = std::env::temp_dir().join("windlass-reconstruct");
    std::fs::create_dir_all(&work).expect("a folder for temporary files");
    let variants = variants();
    let network = Network::load(Path::new("models/xs-x2.safetensors"));
    print!("{:<10} {:>4} {:>8}", "clip", "kbps", "lanczos");
    for (name, _) in &variants {
        print!("  {name:>23}");
    }
    println!();
    for (name, file, crop) in CLIPS {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let path = Path::new(&folder).join(file);
        if !path.exists() {
            println!("{name}: {} is missing, skipped", path.display());
            continue;
        }
        let high = originals(&path, crop, &work.join(format!("{name}.yuv")));
        for &rate in &rates {
            let stream = encode(&high, rate, &work.join(format!("{name}-{rate}")));
            let lows = decoded(&stream);
            let base = mean(lows.iter().zip(&high).map(|(l, h)| psnr(&lanczos2x(l), &h.y)));
            let none = Feed { anchors: vec![None; lows.len()] };
            let enhanced =
                Feed::every(6, lows.len(), AnchorOrigin::Enhanced, |of| match &network {
                    Some(network) => network.detail(&lows[of]),
                    None => faded(&high[of].y, &lows[of], 0.15),
                });
            let captured = Feed::every(30, lows.len(), AnchorOrigin::Captured, |of| {
                faded(&high[of].y, &lows[of], 1.0)
            });
            print!("{name:<10} {rate:>4} {base:>8.2}");
            for (_, config) in &variants {
                print!(" ");
                for feed in [&none, &enhanced, &captured] {
                    print!(" {:>+7.2}", run(&high, &stream, feed, *config) - base);
                }
            }
            println!();
            if measure_qualities {
                qualities(name, &high, &lows, network.as_ref());
            }
        }
    }
}

/// The ways to carry detail that the table compares.
fn variants() -> [(&'static str, HybridConfig); 4] {
    let with = |trust_q4, distrust_q4, renewal| {
        let same = Reconstruction { trust_q4, distrust_q4, renewal, kept: 256 };
        HybridConfig { enhanced: same, captured: same, ..HybridConfig::default() }
    };
    let never = 1 << 20;
    [
        ("vectors only", with(never, 2 * never, 0)),
        ("and renewal", with(never, 2 * never, 256)),
        ("and fading", with(40, 128, 256)),
        ("default", HybridConfig::default()),
    ]
}

/// Size of an anchor and luma gain over Lanczos that is left of it, by JPEG quality: for the
/// network's detail and for the original's.
fn qualities(name: &str, high: &[Picture], lows: &[Plane], network: Option<&Network>) {
    for captured in [false, true] {
        print!("{name:<10} {}:", if captured { "captured" } else { "enhanced" });
        for quality in [10, 20, 30, 40, 50, 60, 75, 90, 100] {
            let (mut bytes, mut gain, mut n) = (0, 0.0, 0.0);
            for (high, low) in high.iter().zip(lows).step_by(30) {
                let detail = match network {
                    Some(network) if !captured => network.detail(low),
                    _ => faded(&high.y, low, if captured { 1.0 } else { 0.15 }),
                };
                let coded = anchor(&detail, AnchorOrigin::Enhanced, 0, quality);
                let kept = ResidualJpeg.decode(&coded.payload, WIDTH as u16, HEIGHT as u16);
                let mut base = lanczos2x_q4(low);
                let before = psnr(&to_plane(&base), &high.y);
                for (b, d) in base.samples_mut().iter_mut().zip(kept.expect("our own").samples()) {
                    *b += d;
                }
                bytes += coded.payload.len();
                gain += psnr(&to_plane(&base), &high.y) - before;
                n += 1.0;
            }
            print!("  q{quality} {:.1}kB {:+.2}", bytes as f64 / n / 1000.0, gain / n);
        }
        println!();
    }
}

/// The clip's first frames at HR.
fn originals(clip: &Path, crop: &str, cache: &Path) -> Vec<Picture> {
    if !cache.exists() {
        let filter = format!("{crop}scale={WIDTH}:{HEIGHT}:flags=lanczos,format=yuv420p");
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-y", "-i"])
            .arg(clip)
            .args(["-vf", &filter, "-frames:v", &FRAMES.to_string(), "-f", "rawvideo"])
            .arg(cache)
            .status();
        assert!(done.is_ok_and(|s| s.success()), "ffmpeg failed");
    }
    let bytes = std::fs::read(cache).expect("what ffmpeg wrote");
    bytes
        .chunks_exact(WIDTH * HEIGHT * 3 / 2)
        .filter_map(|frame| Picture::from_i420(WIDTH, HEIGHT, frame))
        .collect()
}

/// The low layer as a real-time encoder makes it: its frames.
fn encode(high: &[Picture], rate: u32, stem: &Path) -> Vec<Vec<u8>> {
    let (raw, ivf): (PathBuf, PathBuf) =
        (stem.with_extension("low.yuv"), stem.with_extension("ivf"));
    if !ivf.exists() {
        let mut bytes = Vec::new();
        for picture in high {
            for plane in picture.planes() {
                bytes.extend_from_slice(box_half(plane).samples());
            }
        }
        std::fs::write(&raw, bytes).expect("a temporary file");
        let done = Command::new("vpxenc")
            .args(["--codec=vp9", "--rt", "--cpu-used=7", "--end-usage=cbr", "--lag-in-frames=0"])
            .args(["--min-q=2", "--max-q=56", "--undershoot-pct=50", "--overshoot-pct=50"])
            .args(["--buf-sz=1000", "--buf-initial-sz=500", "--buf-optimal-sz=600", "--aq-mode=3"])
            .args(["--kf-max-dist=9999", "--passes=1", "--fps=30/1", "--ivf", "--quiet", "--i420"])
            .arg(format!("--width={}", WIDTH / 2))
            .arg(format!("--height={}", HEIGHT / 2))
            .arg(format!("--target-bitrate={rate}"))
            .arg("-o")
            .arg(&ivf)
            .arg(&raw)
            .status();
        assert!(done.is_ok_and(|s| s.success()), "vpxenc failed");
        let _ = std::fs::remove_file(&raw);
    }
    let bytes = std::fs::read(&ivf).expect("what vpxenc wrote");
    let mut frames = Vec::new();
    let mut rest = &bytes[32..];
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let (frame, next) =
            tail.split_at(u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize);
        frames.push(frame.to_vec());
        rest = next;
    }
    frames
}

/// The low luma that a player would display.
fn decoded(stream: &[Vec<u8>]) -> Vec<Plane> {
    let mut decoder = Decoder::new();
    stream
        .iter()
        .map(|data| {
            let frames = decoder.decode(data).expect("our own stream");
            let shown = frames.iter().rev().find(|f| f.info.shown).expect("one is shown");
            shown.picture.to_picture().y
        })
        .collect()
}

fn run(high: &[Picture], stream: &[Vec<u8>], feed: &Feed, config: HybridConfig) -> f64 {
    let mut decoder = HybridDecoder::new(config);
    mean(stream.iter().zip(high).enumerate().map(|(i, (data, original))| {
        decoder.push_frame(i as u32 * 3000, data).expect("our own stream");
        if let Some(anchor) = i.checked_sub(LATE).and_then(|of| feed.anchors[of].as_ref()) {
            let outcome = decoder.push_anchor(anchor);
            assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
        }
        psnr(&decoder.hr().expect("it was shown").y, &original.y)
    }))
}

impl Feed {
    /// An anchor on every `step`th of `count` frames.
    fn every(
        step: usize,
        count: usize,
        source: AnchorOrigin,
        detail: impl Fn(usize) -> Detail,
    ) -> Self {
        let one = |of| anchor(&detail(of), source, of as u32 * 3000, DEFAULT_QUALITY);
        let anchors = (0..count).map(|of| of.is_multiple_of(step).then(|| one(of)));
        Self { anchors: anchors.collect() }
    }
}

/// The detail of the original, weakened to a share.
fn faded(high: &Plane, low: &Plane, share: f64) -> Detail {
    let mut detail = detail_of(high, low).expect("sizes fit");
    for d in detail.samples_mut() {
        *d = (f64::from(*d) * share).round() as i16;
    }
    detail
}

fn anchor(
    detail: &Detail,
    source: AnchorOrigin,
    rtp_timestamp: u32,
    quality: u8,
) -> ReassembledAnchor {
    ReassembledAnchor {
        header: AnchorHeader {
            codec: ResidualJpeg.id(),
            source,
            stream: 0,
            epoch: 0,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 0,
            rtp_timestamp,
            width: WIDTH as u16,
            height: HEIGHT as u16,
        },
        payload: ResidualJpeg.encode(detail, quality).expect("a legal size"),
    }
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

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v.min(99.0), n + 1.0));
    sum / f64::max(n, 1.0)
}
