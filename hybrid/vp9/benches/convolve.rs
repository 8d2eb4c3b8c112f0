//! Times of motion compensation: `cargo bench -p windlass-vp9 --bench convolve`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windlass_vp9::kernels::convolve::{Reference, predict, predict_scaled};
use windlass_vp9::simd::Isa;

fn convolve(c: &mut Criterion) {
    let samples: Vec<u8> =
        (0..256 * 256).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let reference = Reference { samples: &samples, offset: 10 * 256 + 13, stride: 256 };
    let mut dst = vec![0; 64 * 64];
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
                        predict(*isa, 0, fx, fy, reference, &mut dst, 64, side, side, average);
                    });
                });
            }
            group.bench_function("both, bilinear", |b| {
                b.iter(|| predict(*isa, 3, 5, 9, reference, &mut dst, 64, side, side, false));
            });
            group.bench_function("scaled 2:1", |b| {
                b.iter(|| {
                    predict_scaled(
                        *isa, 0, 5, 9, 32, 32, reference, &mut dst, 64, side, side, false,
                    );
                });
            });
        }
    }
}

criterion_group!(benches, convolve);
criterion_main!(benches);
