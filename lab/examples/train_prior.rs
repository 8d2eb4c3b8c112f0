//! Trains the filters that the hybrid decoder begins with (`hybrid/src/reconstruct/learned/prior-x*.bin`).
//!
//! `cargo run --release -p windlass-lab --example train_prior -- FOLDER` reads the training clips from
//! `WINDLASS_CLIPS`, makes low layers of them with `vpxenc` as a real-time call would, and fits the
//! filters to what is missing in the decoded low pictures: by two, the mean of what the network adds and
//! what the original has beyond Lanczos; by three and four, where there is no network, the original's.
//! Writes `prior-x2.bin`, `prior-x3.bin` and `prior-x4.bin` into FOLDER. Needs `ffmpeg` and `vpxenc`.
//! The model card is `models/prior.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_hybrid::Detail;
use windlass_hybrid::cells::Cells;
use windlass_hybrid::reconstruct::learned::{Learned, Scratch};
use windlass_hybrid::resample::{self, box_down, lanczos};
use windlass_sr::{CpuEngine, Engine, Luma, Residual, embedded_model};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Picture, Samples};

/// File, crop, and whether it is used at all sizes. None of these people is in the evaluation.
const CLIPS: [(&str, &str); 3] = [
    ("LatentSync__assets_demo1_video.mp4", "crop=1080:608:0:480,"),
    ("LatentSync__assets_demo2_video.mp4", "crop=1080:608:0:100,"),
    ("LivePortrait__d6.mp4", "crop=480:272:0:60,"),
];
/// HR sizes, with the low layer's kbit/s; every side is a multiple of 24.
const SIZES: [(usize, usize, [u32; 3]); 2] =
    [(480, 264, [80, 160, 320]), (1056, 600, [150, 300, 600])];
/// Number of frames of each clip.
const FRAMES: usize = 130;
/// Number of frames from one that gives examples to the next.
const STEP: usize = 13;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: train_prior FOLDER"));
    let work = std::env::temp_dir().join("windlass-prior");
    std::fs::create_dir_all(&work).expect("a folder for temporary files");
    let mut engine = CpuEngine::new(embedded_model().expect("the network that is built in"));
    for scale in 2..=4 {
        let mut learned = Learned::for_training(scale);
        let mut scratch = Scratch::default();
        for (file, crop) in CLIPS {
            for (width, height, rates) in SIZES {
                if file.contains("d6") && width > 480 {
                    continue;
                }
                let path = windlass_files::clip(file);
                let high = originals(&path, crop, width, height, &work);
                for rate in rates {
                    eprintln!("x{scale}: {file} {width}x{height} at {rate} kbit/s");
                    // Three times smaller needs fewer bits than half the size.
                    let rate = rate * 2 / scale as u32;
                    let mut decoder = Decoder::new();
                    for (n, data) in encode(&high, scale, rate, &work).iter().enumerate() {
                        let frames = decoder.decode(data).expect("our own stream");
                        let shown = frames.iter().rfind(|f| f.info.shown).expect("one is shown");
                        if n % STEP != 0 {
                            continue;
                        }
                        let low = Samples::from(&shown.picture.planes()[0]);
                        let mut detail = missing(&high[n], low, scale);
                        if scale == 2 {
                            let packed = shown.picture.to_picture().y;
                            let mut made = Residual::default();
                            let luma = Luma::packed(packed.samples(), low.width, low.height);
                            engine.infer(luma.expect("a size"), &mut made).expect("a legal size");
                            let made = made.to_detail().expect("twice the size");
                            for (d, m) in detail.samples_mut().iter_mut().zip(made.samples()) {
                                *d = i16::midpoint(*d, *m);
                            }
                        }
                        learned.learn_from(Isa::detect(), low, &detail, Cells::All, &mut scratch);
                    }
                }
            }
        }
        let table = learned.export().expect("it has learned");
        let path = folder.join(format!("prior-x{scale}.bin"));
        std::fs::write(&path, &table).expect("a writable folder");
        eprintln!("{}: {} bytes", path.display(), table.len());
    }
}

/// The clip's first frames at HR.
fn originals(clip: &Path, crop: &str, width: usize, height: usize, work: &Path) -> Vec<Picture> {
    let raw = work.join("high.yuv");
    let filter = format!("{crop}scale={width}:{height}:flags=lanczos,format=yuv420p");
    let done = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-i"])
        .arg(clip)
        .args(["-vf", &filter, "-frames:v", &FRAMES.to_string(), "-f", "rawvideo"])
        .arg(&raw)
        .status();
    assert!(done.is_ok_and(|s| s.success()), "ffmpeg failed on {}", clip.display());
    let bytes = std::fs::read(&raw).expect("what ffmpeg wrote");
    bytes
        .chunks_exact(width * height * 3 / 2)
        .filter_map(|frame| Picture::from_i420(width, height, frame))
        .collect()
}

/// The frames of a low layer as a real-time encoder makes it.
fn encode(high: &[Picture], scale: usize, rate: u32, work: &Path) -> Vec<Vec<u8>> {
    let (raw, ivf) = (work.join("low.yuv"), work.join("low.ivf"));
    let bytes: Vec<u8> = high
        .iter()
        .flat_map(|p| p.planes().map(|plane| box_down(plane, scale).samples().to_vec()))
        .flatten()
        .collect();
    std::fs::write(&raw, bytes).expect("a temporary file");
    let done = Command::new("vpxenc")
        .args(["--codec=vp9", "--rt", "--cpu-used=7", "--end-usage=cbr", "--lag-in-frames=0"])
        .args(["--min-q=2", "--max-q=56", "--undershoot-pct=50", "--overshoot-pct=50"])
        .args(["--buf-sz=1000", "--buf-initial-sz=500", "--buf-optimal-sz=600", "--aq-mode=3"])
        .args(["--kf-max-dist=9999", "--passes=1", "--fps=30/1", "--ivf", "--quiet", "--i420"])
        .arg(format!("--width={}", high[0].width() / scale))
        .arg(format!("--height={}", high[0].height() / scale))
        .arg(format!("--target-bitrate={rate}"))
        .arg("-o")
        .arg(&ivf)
        .arg(&raw)
        .status();
    assert!(done.is_ok_and(|s| s.success()), "vpxenc failed");
    let bytes = std::fs::read(&ivf).expect("what vpxenc wrote");
    windlass_files::ivf::frames(&bytes).into_iter().map(<[u8]>::to_vec).collect()
}

/// Difference between the original and the Lanczos-enlarged low picture.
fn missing(high: &Picture, low: Samples<'_>, scale: usize) -> Detail {
    let mut detail = Detail::zero(scale * low.width, scale * low.height);
    let rows = 0..low.height;
    let mut scratch = resample::Scratch::default();
    lanczos(Isa::detect(), low, scale, rows, detail.samples_mut(), &mut scratch);
    for (d, &h) in detail.samples_mut().iter_mut().zip(high.y.samples()) {
        *d = i16::from(h) * 16 - *d;
    }
    detail
}
