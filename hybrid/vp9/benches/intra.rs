//! Times of intra prediction: `cargo bench -p windlass-vp9 --bench intra`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windlass_vp9::kernels::intra::{Edges, IntraMode, predict_intra};
use windlass_vp9::simd::Isa;

fn intra(c: &mut Criterion) {
    let edge: Vec<u8> = (0..65u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut dst = vec![0; 32 * 32];
    for isa in Isa::available() {
        for side in [4, 8, 16, 32] {
            let mut group = c.benchmark_group(format!("intra {isa:?} {side}x{side}"));
            group.throughput(Throughput::Elements((side * side) as u64));
            for mode in IntraMode::ALL {
                group.bench_function(format!("{mode:?}"), |b| {
                    b.iter(|| {
                        let (above, left) = (&edge[..=2 * side], &edge[..side]);
                        let edges = Edges { above, left, have_left: true, have_above: true };
                        predict_intra(*isa, mode, side, edges, &mut dst, 32);
                    });
                });
            }
        }
    }
}

criterion_group!(benches, intra);
criterion_main!(benches);
