//! Times of learning and predicting detail: `cargo bench -p windlass-hybrid --bench learned`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, criterion_group, criterion_main};
use windlass_hybrid::Detail;
use windlass_hybrid::cells::Cells;
use windlass_hybrid::reconstruct::learned::{Learned, Scratch};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Plane};

/// An IVF file whose first frame is the low picture.
const STREAM: &[u8] = include_bytes!("../vp9/tests/fixtures/realtime.ivf");
/// Number of low rows in a strip.
const STRIP: usize = 16;

/// A decoded picture, repeated to 640 × 360 samples.
fn picture() -> Plane {
    let size = u32::from_le_bytes([STREAM[32], STREAM[33], STREAM[34], STREAM[35]]) as usize;
    let mut decoder = Decoder::new();
    let frames = decoder.decode(&STREAM[44..44 + size]).expect("a key frame");
    let small = frames[0].picture.to_picture().y;
    let samples = (0..640 * 360).map(|i| small.row(i / 640 % 90)[i % 640 % 160]);
    Plane::from_samples(640, 360, samples.collect()).expect("the count")
}

fn learned(c: &mut Criterion) {
    let low = picture();
    for scale in 2..=4 {
        let (wide, high) = (scale * 640, scale * 360);
        let samples = (0..wide * high).map(|i| {
            let (x, y) = (i % wide, i / wide);
            let at = |x: usize| i16::from(low.row(y / scale)[x / scale]);
            (at(x) - at(x.saturating_sub(1))) * 4 + (i * 31 % 7) as i16
        });
        let detail = Detail::from_samples(wide, high, samples.collect()).expect("the count");
        let mut learned = Learned::new(scale);
        learned.learn(&low, &detail);
        let mut strip = vec![0; scale * wide * STRIP];
        let (mut scratch, mut rest) = (Scratch::default(), detail.clone());
        for isa in Isa::available() {
            let mut group = c.benchmark_group(format!("learned 640x360 by {scale} {isa:?}"));
            group.bench_function("predict", |b| {
                b.iter(|| {
                    for y in (0..360).step_by(STRIP) {
                        let rows = y..(y + STRIP).min(360);
                        let out = &mut strip[..scale * wide * rows.len()];
                        learned.predict_add(
                            *isa,
                            (&low).into(),
                            rows,
                            out,
                            Cells::All,
                            &mut scratch,
                        );
                    }
                });
            });
            group.bench_function("take out", |b| {
                b.iter(|| {
                    learned.take_out(*isa, (&low).into(), &mut rest, Cells::All, &mut scratch);
                });
            });
            group.bench_function("learn", |b| {
                b.iter(|| {
                    learned.learn_from(*isa, (&low).into(), &detail, Cells::All, &mut scratch);
                });
            });
        }
    }
}

criterion_group!(benches, learned);
criterion_main!(benches);
