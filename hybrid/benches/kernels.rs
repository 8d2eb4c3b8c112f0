//! Times of the codec's stages: `cargo bench -p windlass-hybrid`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use windlass_hybrid::reconstruct::motion::{Area, MotionScratch, compensate};
use windlass_hybrid::resample::{box_half_signed, lanczos2x_q4, lanczos2x_signed, upsample};
use windlass_hybrid::vp9::{Decoder, MotionVector};
use windlass_hybrid::{HybridConfig, HybridDecoder, Picture};

const STREAM: &[u8] = include_bytes!("../tests/fixtures/realtime.ivf");

fn frames() -> Vec<&'static [u8]> {
    let (mut out, mut rest) = (Vec::new(), &STREAM[32..]);
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        out.push(&tail[..size]);
        rest = &tail[size..];
    }
    out
}

fn resample(c: &mut Criterion) {
    let mut low = Picture::grey(320, 180);
    for (i, v) in low.y.samples_mut().iter_mut().enumerate() {
        *v = (i * 31 % 251) as u8;
    }
    let high = lanczos2x_q4(&low.y);
    let small = box_half_signed(&high);
    c.bench_function("resample/picture 320x180 to 640x360", |b| b.iter(|| upsample(&low)));
    c.bench_function("resample/signed 320x180 to 640x360", |b| b.iter(|| lanczos2x_signed(&small)));
    c.bench_function("resample/box 640x360", |b| b.iter(|| box_half_signed(&high)));
    let mut out = vec![0; 64 * 64];
    let mut scratch = MotionScratch::default();
    let area = Area { x: 100, y: 100, width: 64, height: 64 };
    for (name, vector) in
        [("whole", MotionVector { x: 4, y: 8 }), ("both halves", MotionVector { x: 2, y: 6 })]
    {
        c.bench_function(&format!("motion/64x64 {name}"), |b| {
            b.iter(|| compensate(&high, area, vector, &mut scratch, &mut out));
        });
    }
}

fn decode(c: &mut Criterion) {
    let frames = frames();
    c.bench_function("decode/40 frames 161x91, vp9 alone", |b| {
        b.iter_batched(
            Decoder::new,
            |mut d| frames.iter().filter(|f| d.decode(f).is_ok()).count(),
            BatchSize::SmallInput,
        );
    });
    c.bench_function("decode/40 frames 161x91, hybrid", |b| {
        b.iter_batched(
            || HybridDecoder::new(HybridConfig::default()),
            |mut d| frames.iter().filter(|f| d.push_frame(0, f).is_ok()).count(),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, resample, decode);
criterion_main!(benches);
