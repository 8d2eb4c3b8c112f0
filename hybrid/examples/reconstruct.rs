//! Prints the luma PSNR of Lanczos and of reconstruction for development clips.
//!
//! `cargo run --release -p windlass-hybrid --example reconstruct [CLIP…] [--rates 150,300] [--qualities]`
//!
//! Each clip is scaled to 640×360 by `ffmpeg`, halved by the box, coded by `vpxenc` as a real-time
//! call would be, and rebuilt: without anchors; with a blend of Lanczos and the original (as weak
//! as super-resolution is) on every sixth frame, arriving four frames late; with the original
//! once a second, as late. Each column gives the three gains over Lanczos in dB. With `--qualities`
//! it also prints what anchors cost and keep at several JPEG qualities. Needs `ffmpeg` and `vpxenc`; clips come from `WINDLASS_CLIPS`.

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg, detail_of};
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin, ReassembledAnchor};
use windlass_hybrid::picture::{Picture, Plane, psnr};
use windlass_hybrid::reconstruct::Reconstruction;
use windlass_hybrid::resample::{box_half, lanczos2x, lanczos2x_q4, to_plane};
use windlass_hybrid::vp9::Decoder;
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};

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
#[derive(Clone, Copy)]
struct Feed {
    /// Every how many frames; 0 for never.
    every: usize,
    /// How many frames late.
    late: usize,
    /// Share of the original's detail, the rest being Lanczos.
    share: f64,
    /// JPEG quality.
    quality: u8,
}

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
            let feeds = [
                Feed { every: 0, late: 0, share: 0.0, quality: 0 },
                Feed { every: 6, late: 4, share: 0.15, quality: 60 },
                Feed { every: 30, late: 4, share: 1.0, quality: 60 },
            ];
            print!("{name:<10} {rate:>4} {:>8.2}", lanczos(&high, &stream));
            let base = lanczos(&high, &stream);
            for (_, config) in &variants {
                print!(" ");
                for feed in feeds {
                    print!(" {:>+7.2}", run(&high, &stream, feed, *config) - base);
                }
            }
            println!();
            if measure_qualities {
                qualities(name, &high, &stream);
            }
        }
    }
}

/// The ways to carry detail that the table compares.
fn variants() -> [(&'static str, HybridConfig); 4] {
    let with = |trust_q4, distrust_q4, renewal| HybridConfig {
        reconstruction: Reconstruction { trust_q4, distrust_q4, renewal },
        ..HybridConfig::default()
    };
    let never = 1 << 20;
    [
        ("vectors only", with(never, 2 * never, 0)),
        ("and renewal", with(never, 2 * never, 256)),
        ("and fading", with(40, 128, 256)),
        ("default", HybridConfig::default()),
    ]
}

/// Size of an anchor and luma gain over Lanczos that is left of it, by JPEG quality: for detail as
/// weak as super-resolution's and for the original's.
fn qualities(name: &str, high: &[Picture], stream: &[Vec<u8>]) {
    let mut decoder = Decoder::new();
    let lows: Vec<Plane> = stream
        .iter()
        .filter_map(|data| Some(decoder.decode(data).ok()?.pop()?.picture.y.clone()))
        .collect();
    for share in [0.15, 1.0] {
        print!("{name:<10} anchors of share {share:>4}:");
        for quality in [10, 20, 30, 40, 50, 60, 75, 90, 100] {
            let (mut bytes, mut gain, mut n) = (0, 0.0, 0.0);
            for (high, low) in high.iter().zip(&lows).step_by(30) {
                let feed = Feed { every: 1, late: 0, share, quality };
                let coded = anchor(&high.y, low, 0, feed);
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

fn lanczos(high: &[Picture], stream: &[Vec<u8>]) -> f64 {
    let mut decoder = Decoder::new();
    let each = stream.iter().zip(high).map(|(data, original)| {
        let frames = decoder.decode(data).expect("our own stream");
        let shown = frames.iter().rev().find(|f| f.info.shown).expect("one is shown");
        psnr(&lanczos2x(&shown.picture.y), &original.y)
    });
    mean(each)
}

fn run(high: &[Picture], stream: &[Vec<u8>], feed: Feed, config: HybridConfig) -> f64 {
    let mut decoder = HybridDecoder::new(config);
    let mut lows: Vec<Plane> = Vec::new();
    let mut sum = Vec::new();
    for (i, (data, original)) in stream.iter().zip(high).enumerate() {
        decoder.push_frame(i as u32 * 3000, data).expect("our own stream");
        lows.push(decoder.lr().expect("it was shown").y.clone());
        if feed.every > 0 && i >= feed.late && (i - feed.late).is_multiple_of(feed.every) {
            let of = i - feed.late;
            let anchor = anchor(&high[of].y, &lows[of], of as u32 * 3000, feed);
            let outcome = decoder.push_anchor(&anchor);
            assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
        }
        sum.push(psnr(&decoder.hr().expect("it was shown").y, &original.y));
    }
    mean(sum.into_iter())
}

fn anchor(high: &Plane, low: &Plane, rtp_timestamp: u32, feed: Feed) -> ReassembledAnchor {
    let mut detail = detail_of(high, low).expect("sizes fit");
    for d in detail.samples_mut() {
        *d = (f64::from(*d) * feed.share).round() as i16;
    }
    ReassembledAnchor {
        header: AnchorHeader {
            codec: ResidualJpeg.id(),
            source: AnchorOrigin::Enhanced,
            stream: 0,
            epoch: 0,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 0,
            rtp_timestamp,
            width: WIDTH as u16,
            height: HEIGHT as u16,
        },
        payload: ResidualJpeg.encode(&detail, feed.quality).expect("a legal size"),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v.min(99.0), n + 1.0));
    sum / f64::max(n, 1.0)
}
