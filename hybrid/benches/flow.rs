//! Times of dense flow: `cargo bench -p windlass-hybrid --bench flow`. Beside it is the doubling of the same
//! picture by Lanczos, to compare with.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, criterion_group, criterion_main};
use windlass_hybrid::flow::{FlowSearch, FlowSettings};
use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// Width of the low picture, in samples.
const WIDTH: usize = 320;
/// Height of the low picture, in samples.
const HEIGHT: usize = 180;

/// A test plane of waves, with noise as an encoded picture has it, moved to the left by `moved` samples.
fn plane(moved: f64, noise: usize) -> Plane {
    let at = |i: usize| {
        let (x, y) = ((i % WIDTH) as f64 + moved, (i / WIDTH) as f64 + moved / 3.0);
        let waves =
            (x * 0.31 + y * 0.07).sin() + (x * 0.05 - y * 0.37).cos() + (x * x * 0.002).sin();
        let noise = ((i + noise).wrapping_mul(2_654_435_761) >> 24) % 5;
        (128.0 + 35.0 * waves) as u8 + noise as u8
    };
    Plane::from_samples(WIDTH, HEIGHT, (0..WIDTH * HEIGHT).map(at).collect()).expect("the count")
}

fn flow(c: &mut Criterion) {
    // Two pictures in turn, so that nothing can be kept of the last search.
    let (reference, now) = (plane(0.0, 0), [plane(2.4, 7), plane(2.6, 9)]);
    let (mut scratch, mut high) = (Scratch::default(), vec![0; 4 * WIDTH * HEIGHT]);
    for isa in Isa::available() {
        let mut group = c.benchmark_group(format!("flow {WIDTH}x{HEIGHT} {isa:?}"));
        group.bench_function("lanczos by 2", |b| {
            b.iter(|| lanczos(*isa, (&now[0]).into(), 2, 0..HEIGHT, &mut high, &mut scratch));
        });
        for stride in [2, 4, 6, 8] {
            let mut search = FlowSearch::new(FlowSettings { stride, ..FlowSettings::default() });
            search.set_reference((&reference).into()).expect("a legal size");
            let mut turn = 0;
            group.bench_function(format!("search, stride {stride}"), |b| {
                b.iter(|| {
                    turn ^= 1;
                    search.search(*isa, (&now[turn]).into()).expect("of one size").columns()
                });
            });
        }
    }
}

criterion_group!(benches, flow);
criterion_main!(benches);
