//! Times of the inverse transforms: `cargo bench -p windlass-vp9 --bench inverse_transform`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, criterion_group, criterion_main};
use windlass_vp9::kernels::inverse_transform::{
    Shape, TransformKind, TransformSize, inverse_transform_add,
};
use windlass_vp9::simd::Isa;

/// Distance from row to row of the destination, in samples.
const STRIDE: usize = 64;

/// Blocks whose coefficients fill the first `used` rows and columns. The work does not depend on
/// their values, so the cleared ones are not written anew.
fn blocks(c: &mut Criterion) {
    let mut coefs = [0; 32 * 32];
    let mut dst = [128; STRIDE * 32];
    for &isa in Isa::available() {
        for size in TransformSize::ALL {
            let side = size.side();
            for kind in [TransformKind::DctDct, TransformKind::AdstAdst] {
                for used in [1, 4, 8, 16, 32].into_iter().filter(|&used| used <= side) {
                    if kind != TransformKind::DctDct && (side == 32 || used < side) {
                        continue;
                    }
                    let name = format!("inverse transform/{side}x{side} {kind:?} {used} {isa:?}");
                    let coefs = &mut coefs[..side * side];
                    let shape = Shape { size, kind, lossless: false, cols: used, rows: used };
                    c.bench_function(&name, |b| {
                        b.iter(|| {
                            inverse_transform_add(isa, &shape, coefs, &mut dst, STRIDE);
                        });
                    });
                }
            }
        }
    }
}

criterion_group!(benches, blocks);
criterion_main!(benches);
