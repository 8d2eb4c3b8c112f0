//! Measures the gain of anchors in the pictures that the decoder shows, in dB over those without anchors.
//!
//! `cargo run --release -p windlass-lab --example carry_gain [CLIP,…] [SCALE]`
//!
//! Clips from `WINDLASS_CLIPS` are scaled by `ffmpeg`, halved (or made `SCALE` times smaller), and encoded by libvpx
//! in real time at 300 kbit/s with one key frame. Every thirtieth frame is an anchor of the publisher's own pixels,
//! which comes in time. HTJ2K encodes the detail that the built-in filters do not predict (5 kB, or 8 kB above
//! 640×360). Printed for each clip:
//!
//! - the mean gain over ages 1 to 29, and at some ages;
//! - the worst frame against the picture without anchors, and against bicubic;
//! - the worst of thirty frames of another clip after a cut, against the picture without anchors;
//! - milliseconds of a frame beyond VP9's: the mean, and without anchors.

mod clips;

use std::time::Instant;

use clips::{CLIPS, Clip, coded};
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::resample::{Scratch, bicubic};
use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Plane, PlaneSize, Samples, psnr};

/// Number of frames from one anchor to the next.
const INTERVAL: usize = 30;
/// Ages of a picture for which the gain is printed by itself, in frames since the anchor.
const AGES: [usize; 6] = [1, 2, 4, 8, 15, 29];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let names = args.first().map_or("d13,demo2,s18", String::as_str);
    let scale = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(2);
    for clip in CLIPS {
        if names.split(',').any(|n| n == clip.name) {
            measure(clip, scale);
        }
    }
}

fn measure(clip: Clip, scale: usize) {
    let size = PlaneSize::new(clip.size.width / 2, clip.size.height / 2).scaled(scale);
    let clip = Clip { size, ..clip };
    let (name, PlaneSize { width: w, height: h }) = (clip.name, size);
    let budget = if w > 640 { 8000 } else { 5000 };
    let (originals, frames) = coded(clip, scale);
    let config = HybridConfig { scale, ..HybridConfig::default() };
    let (mut with, mut none) = (HybridDecoder::new(config), HybridDecoder::new(config));
    let (mut vp9, mut prior) = (Decoder::new(), Prior::new(Isa::detect(), scale));
    let mut sums = [(0.0, 0); INTERVAL];
    let (mut worst, mut worst_bicubic) = ((f64::MAX, 0), (f64::MAX, 0));
    let mut spent = [0.0f64; 3];
    let mut anchors_ms = 0.0;
    for (n, (data, original)) in
        frames.iter().zip(originals.chunks_exact(w * h * 3 / 2)).enumerate()
    {
        let original = Plane::from_samples(w, h, original[..w * h].to_vec()).expect("the count");
        let at = n as u32 * 3000;
        let start = Instant::now();
        vp9.decode(data).expect("libvpx's stream");
        let decoded = Instant::now();
        none.push_frame(at, data).expect("libvpx's stream");
        let plain = Instant::now();
        with.push_frame(at, data).expect("libvpx's stream");
        let all = Instant::now();
        let times = [decoded - start, plain - decoded, all - plain];
        for (sum, time) in spent.iter_mut().zip(times) {
            *sum += time.as_secs_f64() * 1000.0;
        }
        let age = n % INTERVAL;
        if age == 0 {
            let low = Samples::from(&with.lr().expect("a picture").planes()[0]);
            let mut detail = detail_of(&original, low, scale).expect("sizes fit");
            prior.take_out(low, &mut detail);
            let size = Size::new(w as u16, h as u16);
            let header = AnchorHeader {
                stream: 1,
                beyond_prior: true,
                ..AnchorHeader::new(HTJ2K, AnchorSource::Captured, at, size)
            };
            let payload = Htj2k::fill(&detail, None, budget).expect("a legal size");
            let start = Instant::now();
            let outcome = with.push_anchor(&ReassembledAnchor { header, payload });
            anchors_ms += start.elapsed().as_secs_f64() * 1000.0;
            assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
            continue;
        }
        let low = Samples::from(&with.lr().expect("a picture").planes()[0]);
        let mut cubic = Plane::filled(w, h, 0);
        let rows = 0..low.height;
        bicubic(Isa::detect(), low, scale, rows, w, cubic.samples_mut(), &mut Scratch::default());
        let luma = |d: &HybridDecoder| psnr(&d.hr().expect("a picture").y, &original);
        let (shown, plain, cubic) = (luma(&with), luma(&none), psnr(&cubic, &original));
        sums[age].0 += shown - plain;
        sums[age].1 += 1;
        worst = if shown - plain < worst.0 { (shown - plain, n) } else { worst };
        worst_bicubic =
            if shown - cubic < worst_bicubic.0 { (shown - cubic, n) } else { worst_bicubic };
    }
    let other = CLIPS.iter().find(|other| other.name != name).expect("there are several");
    let (originals, others) = coded(Clip { size, ..*other }, scale);
    let mut cut = f64::MAX;
    for (n, data) in others.iter().take(INTERVAL).enumerate() {
        let original = originals[n * w * h * 3 / 2..][..w * h].to_vec();
        let original = Plane::from_samples(w, h, original).expect("the count");
        let at = (frames.len() + n) as u32 * 3000;
        let [shown, plain] = [&mut with, &mut none].map(|d| {
            d.push_frame(at, data).expect("libvpx's stream");
            psnr(&d.hr().expect("a picture").y, &original)
        });
        cut = cut.min(shown - plain);
    }
    let total: (f64, i32) = sums.iter().fold((0.0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
    let ages: Vec<f64> = AGES.iter().map(|&a| sums[a].0 / f64::from(sums[a].1)).collect();
    let ms = spent.map(|sum| sum / frames.len() as f64);
    println!(
        "{name} {w}×{h} by {scale}: {:+.2} dB, ages {AGES:?} {ages:+.2?}; worst frame {:+.2} ({}), over bicubic {:+.2} ({}), after a cut {cut:+.2}; \
         {:.2} ms a frame, {:.2} without anchors, {:.1} an anchor",
        total.0 / f64::from(total.1),
        worst.0,
        worst.1,
        worst_bicubic.0,
        worst_bicubic.1,
        ms[2] - ms[0],
        ms[1] - ms[0],
        anchors_ms / frames.len().div_ceil(INTERVAL) as f64,
    );
}
