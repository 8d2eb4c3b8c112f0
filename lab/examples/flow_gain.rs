//! Measures the gain of carrying an anchor's picture by dense flow, in dB over the picture without anchors.
//!
//! `cargo run --release -p windlass-lab --example flow_gain [CLIP,…] [STRIDE,ITERATIONS…]`
//!
//! Clips from `WINDLASS_CLIPS` are scaled by `ffmpeg`, halved, and encoded by libvpx in real time at
//! 300 kbit/s with one key frame. Every thirtieth frame is an anchor, uncoded, and encoded by HTJ2K beyond
//! what the built-in filters say (5 kB, or 8 kB above 640×360); the others are
//! `B + w (warp(anchor) − B)`, where `B` is what the built-in filters make of the low picture, and
//! `w = s² / (s² + 2 e²)` of the local energy s² of the anchor's detail and the local misfit e² of
//! the low pictures. Given is the mean of PSNR-Y over that of `B`, at ages 1 to 29 and at some of
//! them, and the time of a search. Arithmetic is in `f32`: this is about the vectors.

mod clips;

use std::time::Instant;

use clips::{CLIPS, Clip};
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::flow::{CELL, Flow, FlowSearch, FlowSettings, FlowVector, UNIT};
use windlass_hybrid::resample::{lanczos2x, to_plane};
use windlass_hybrid::{Detail, HybridConfig, HybridDecoder};
use windlass_types::Size;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, PlaneSize, psnr};

/// Number of frames from one anchor to the next.
const INTERVAL: usize = 30;
/// Ages of a picture for which the gain is printed by itself, in frames since the anchor.
const AGES: [usize; 6] = [1, 2, 4, 8, 15, 29];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let names = args.first().map_or("d13,demo2", String::as_str);
    let list = |s: &String| -> Vec<usize> { s.split(',').filter_map(|v| v.parse().ok()).collect() };
    let mut settings: Vec<FlowSettings> = args
        .iter()
        .skip(1)
        .map(list)
        .map(|v| FlowSettings { stride: v[0], iterations: v[1] })
        .collect();
    if settings.is_empty() {
        settings.push(FlowSettings::default());
    }
    for clip in CLIPS {
        let Clip { name, size, .. } = clip;
        if !names.split(',').any(|n| n == name) {
            continue;
        }
        let frames = frames(clip);
        let budget = if size.width > 640 { 8000 } else { 5000 };
        for &s in &settings {
            for budget in [None, Some(budget)] {
                let (gain, ages, ms) = gain(&frames, s, budget);
                println!(
                    "{name} stride {} iterations {} {}: {gain:.2} dB {ages:.2?}, {ms:.2} ms",
                    s.stride,
                    s.iterations,
                    budget.map_or("uncoded".into(), |b| format!("{b} bytes")),
                );
            }
        }
    }
}

/// One frame: the original, the picture that is shown without anchors, and the low picture.
struct Frame {
    original: Plane,
    base: Plane,
    low: Plane,
}

fn gain(frames: &[Frame], settings: FlowSettings, budget: Option<usize>) -> (f64, Vec<f64>, f64) {
    let (mut search, mut spent, mut n) = (FlowSearch::new(settings), 0.0, 0);
    let mut sums = [(0.0, 0); INTERVAL];
    for group in frames.chunks(INTERVAL) {
        let (anchor, coded) = (&group[0], budget.map(|b| coded(&group[0], b)));
        let high = coded.as_ref().unwrap_or(&anchor.original);
        let up = lanczos2x(&anchor.low);
        search.set_reference((&anchor.low).into()).expect("a legal size");
        for (age, frame) in group.iter().enumerate().skip(1) {
            let start = Instant::now();
            let flow = search.search(Isa::detect(), (&frame.low).into()).expect("of one size");
            spent += start.elapsed().as_secs_f64() * 1000.0;
            n += 1;
            let out = carry((high, &anchor.low), &up, frame, flow);
            sums[age].0 += psnr(&out, &frame.original) - psnr(&frame.base, &frame.original);
            sums[age].1 += 1;
        }
    }
    let total: (f64, i32) = sums.iter().fold((0.0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
    let ages = AGES.iter().map(|&a| sums[a].0 / f64::from(sums[a].1)).collect();
    (total.0 / f64::from(total.1), ages, spent / f64::from(n))
}

/// An anchor's picture as a viewer has it: encoded by HTJ2K in at most `budget` bytes, and decoded.
fn coded(anchor: &Frame, budget: usize) -> Plane {
    let (w, h) = (anchor.base.width(), anchor.base.height());
    let pairs = anchor.original.samples().iter().zip(anchor.base.samples());
    let beyond = pairs.map(|(&a, &b)| (i16::from(a) - i16::from(b)) * 16).collect();
    let beyond = Detail::from_samples(w, h, beyond).expect("the count");
    let code = Htj2k::fill(&beyond, None, budget).expect("a legal size");
    let mut out = Htj2k::decode(&code, Size::saturating(w, h)).expect("our own");
    for (d, &b) in out.samples_mut().iter_mut().zip(anchor.base.samples()) {
        *d += i16::from(b) * 16;
    }
    to_plane(&out)
}

/// The anchor's picture, moved along the flow to the frame `now`.
fn carry((high, low): (&Plane, &Plane), up: &Plane, now: &Frame, flow: &Flow) -> Plane {
    let (lw, lh) = (now.low.width(), now.low.height());
    let (w, h) = (2 * lw, 2 * lh);
    let (columns, rows) = (flow.columns(), flow.rows());
    // Both the result and the place are in LR samples.
    let vector = |x: f32, y: f32| -> (f32, f32) {
        let place = |v: f32, count: usize| {
            let v = ((v + 0.5) / CELL as f32 - 0.5).clamp(0.0, count as f32 - 1.0);
            (v as usize, (v as usize + 1).min(count - 1), v.fract())
        };
        let ((x0, x1, fx), (y0, y1, fy)) = (place(x, columns), place(y, rows));
        let mix = |of: fn(&FlowVector) -> i16| {
            let at = |x: usize, y: usize| f32::from(of(&flow.row(y)[x])) / UNIT as f32;
            let (a, b) = (
                at(x0, y0) * (1.0 - fx) + at(x1, y0) * fx,
                at(x0, y1) * (1.0 - fx) + at(x1, y1) * fx,
            );
            a * (1.0 - fy) + b * fy
        };
        (mix(|v| v.x), mix(|v| v.y))
    };
    let mut misfit = vec![0.0f32; lw * lh];
    for y in 0..lh {
        for x in 0..lw {
            let v = vector(x as f32, y as f32);
            let was = cubic(low, x as f32 + v.0, y as f32 + v.1);
            misfit[y * lw + x] = (was - f32::from(now.low.row(y)[x])).powi(2);
        }
    }
    let misfit = boxed(&misfit, lw, lh, 2);
    let (mut carried, mut energy) = (vec![0.0f32; w * h], vec![0.0f32; w * h]);
    for y in 0..h {
        for x in 0..w {
            let v = vector((x as f32 - 0.5) / 2.0, (y as f32 - 0.5) / 2.0);
            let (px, py) = (x as f32 + 2.0 * v.0, y as f32 + 2.0 * v.1);
            carried[y * w + x] = cubic(high, px, py);
            let (ix, iy) = (
                px.round().clamp(0.0, w as f32 - 1.0) as usize,
                py.round().clamp(0.0, h as f32 - 1.0) as usize,
            );
            energy[y * w + x] = (f32::from(high.row(iy)[ix]) - f32::from(up.row(iy)[ix])).powi(2);
        }
    }
    let energy = boxed(&energy, w, h, 4);
    let mut out = now.base.clone();
    for y in 0..h {
        for x in 0..w {
            let (k, base) = (y * w + x, f32::from(now.base.row(y)[x]));
            let weight = energy[k] / (energy[k] + 2.0 * misfit[y / 2 * lw + x / 2]).max(1e-6);
            out.samples_mut()[k] = (base + weight * (carried[k] - base)).round() as u8;
        }
    }
    out
}

/// The sample at a place between samples, by Catmull-Rom; edges repeat.
fn cubic(plane: &Plane, x: f32, y: f32) -> f32 {
    let taps = |f: f32| {
        let (f2, f3) = (f * f, f * f * f);
        [
            -0.5 * f + f2 - 0.5 * f3,
            1.0 - 2.5 * f2 + 1.5 * f3,
            0.5 * f + 2.0 * f2 - 1.5 * f3,
            -0.5 * f2 + 0.5 * f3,
        ]
    };
    let (x0, y0) = (x.floor(), y.floor());
    let (tx, ty) = (taps(x - x0), taps(y - y0));
    let (right, bottom) = (plane.width() as i32 - 1, plane.height() as i32 - 1);
    let mut sum = 0.0;
    for (j, ty) in (-1..).zip(ty) {
        let row = plane.row((y0 as i32 + j).clamp(0, bottom) as usize);
        let at = |i: i32| f32::from(row[(x0 as i32 + i).clamp(0, right) as usize]);
        sum += ty * (at(-1) * tx[0] + at(0) * tx[1] + at(1) * tx[2] + at(2) * tx[3]);
    }
    sum
}

/// A plane of means, each over a square with a side of `2 * radius + 1` samples.
fn boxed(plane: &[f32], w: usize, h: usize, radius: usize) -> Vec<f32> {
    let mean = |count: usize, at: &dyn Fn(usize) -> f32, out: &mut dyn FnMut(usize, f32)| {
        let mut sum: f32 = (0..radius.min(count)).map(at).sum();
        let mut n = radius.min(count);
        for i in 0..count {
            if i + radius < count {
                sum += at(i + radius);
                n += 1;
            }
            if i > radius {
                sum -= at(i - radius - 1);
                n -= 1;
            }
            out(i, sum / n as f32);
        }
    };
    let mut across = vec![0.0; w * h];
    for y in 0..h {
        mean(w, &|i| plane[y * w + i], &mut |i, v| across[y * w + i] = v);
    }
    let mut out = vec![0.0; w * h];
    for x in 0..w {
        mean(h, &|i| across[i * w + x], &mut |i, v| out[i * w + x] = v);
    }
    out
}

/// The first six seconds of a clip, at HR and as the low layer shows them.
fn frames(clip: Clip) -> Vec<Frame> {
    let Clip { size: PlaneSize { width: w, height: h }, .. } = clip;
    let (originals, coded) = clips::coded(clip, 2);
    let mut decoder = HybridDecoder::new(HybridConfig::default());
    let mut originals = originals.chunks_exact(w * h * 3 / 2);
    let mut frames = Vec::new();
    for data in coded {
        decoder.push_frame(frames.len() as u32 * 3000, &data).expect("libvpx's stream");
        let luma = originals.next().expect("as many as the stream has")[..w * h].to_vec();
        frames.push(Frame {
            original: Plane::from_samples(w, h, luma).expect("the count"),
            base: decoder.hr().expect("a picture").y.clone(),
            low: decoder.lr().expect("a picture").to_picture().y,
        });
    }
    frames
}
