//! Times of upsampling in strips: `cargo bench -p windlass-hybrid --bench resample`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, criterion_group, criterion_main};
use windlass_hybrid::resample::{Scratch, add_saturating, bicubic, lanczos, narrow};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// Number of low rows in a strip.
const STRIP: usize = 16;

fn plane(width: usize, height: usize) -> Plane {
    let samples = (0..width * height).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    Plane::from_samples(width, height, samples.collect()).expect("the count")
}

fn resample(c: &mut Criterion) {
    let (low, chroma) = (plane(640, 360), plane(320, 180));
    let mut scratch = Scratch::default();
    for scale in 2..=4 {
        let mut strip = vec![0; scale * scale * 640 * STRIP];
        let mut high = vec![0; scale * scale * 640 * 360];
        let more = strip.clone();
        for isa in Isa::available() {
            let mut group = c.benchmark_group(format!("resample 640x360 by {scale} {isa:?}"));
            group.bench_function("lanczos", |b| {
                b.iter(|| {
                    for y in (0..360).step_by(STRIP) {
                        let rows = y..(y + STRIP).min(360);
                        let out = &mut strip[..scale * scale * 640 * rows.len()];
                        lanczos(*isa, (&low).into(), scale, rows, out, &mut scratch);
                    }
                });
            });
            group.bench_function("add", |b| {
                b.iter(|| {
                    for _ in (0..360).step_by(STRIP) {
                        add_saturating(&mut strip, &more);
                    }
                });
            });
            group.bench_function("narrow", |b| {
                b.iter(|| {
                    for out in high.chunks_mut(strip.len()) {
                        narrow(*isa, &strip[..out.len()], out);
                    }
                });
            });
            group.bench_function("bicubic of both chroma planes", |b| {
                let wide = scale * 320;
                b.iter(|| {
                    for out in high.chunks_exact_mut(wide * scale * 180).take(2) {
                        bicubic(*isa, (&chroma).into(), scale, 0..180, wide, out, &mut scratch);
                    }
                });
            });
        }
    }
}

criterion_group!(benches, resample);
criterion_main!(benches);
