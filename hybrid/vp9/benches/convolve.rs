//! Times of motion compensation: `cargo bench -p windlass-vp9 --bench convolve`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windlass_vp9::kernels::convolve::{Block, Reference, Steps, predict, predict_scaled};
use windlass_vp9::simd::Isa;

/// Distance from row to row of the destination, in samples.
const STRIDE: usize = 64;

/// A square at the head of the destination.
fn block(dst: &mut [u8], side: usize, average: bool) -> Block<'_> {
    Block { dst, stride: STRIDE, width: side, height: side, average }
}

fn convolve(c: &mut Criterion) {
    let samples: Vec<u8> =
        (0..256 * 256).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let reference = Reference { samples: &samples, offset: 10 * 256 + 13, stride: 256 };
    let mut dst = vec![0; STRIDE * 64];
    for isa in Isa::available() {
        for side in [4, 8, 16, 32, 64] {
            let mut group = c.benchmark_group(format!("convolve {isa:?} {side}x{side}"));
            group.throughput(Throughput::Elements((side * side) as u64));
            for (name, fx, fy, average) in [
                ("whole", 0, 0, false),
                ("whole, averaged", 0, 0, true),
                ("across", 5, 0, false),
                ("down", 0, 5, false),
                ("both", 5, 9, false),
                ("both, averaged", 5, 9, true),
            ] {
                group.bench_function(name, |b| {
                    b.iter(|| {
                        predict(*isa, 0, fx, fy, reference, block(&mut dst, side, average));
                    });
                });
            }
            group.bench_function("both, bilinear", |b| {
                b.iter(|| predict(*isa, 3, 5, 9, reference, block(&mut dst, side, false)));
            });
            group.bench_function("scaled 2:1", |b| {
                let steps = Steps { fx: 5, fy: 9, step_x: 32, step_y: 32 };
                b.iter(|| {
                    predict_scaled(*isa, 0, steps, reference, block(&mut dst, side, false));
                });
            });
        }
    }
}

criterion_group!(benches, convolve);
criterion_main!(benches);
