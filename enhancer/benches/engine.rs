#![allow(missing_docs)] // The criterion macros define items of their own.
//! Time per inference, one thread, by picture size and instruction set.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use windlass_enhancer::engine::{CpuEngine, Engine, Luma, Residual, Simd, embedded_model};

fn infer(c: &mut Criterion) {
    let model = embedded_model().expect("the embedded model is valid");
    let mut group = c.benchmark_group("infer");
    group.sample_size(20);
    for (width, height) in [(160, 90), (320, 180), (640, 360)] {
        let lr: Vec<u8> = (0..width * height).map(|n| (n * 31 % 251) as u8).collect();
        let luma = Luma::packed(&lr, width, height).expect("the plane covers the picture");
        group.throughput(Throughput::Elements((width * height) as u64));
        for simd in Simd::available() {
            let mut engine = CpuEngine::with_simd(model.clone(), simd).expect("it is available");
            let mut out = Residual::default();
            let id = BenchmarkId::new(engine.backend(), format!("{width}x{height}"));
            group.bench_function(id, |b| b.iter(|| engine.infer(luma, &mut out)));
        }
    }
    group.finish();
}

criterion_group!(benches, infer);
criterion_main!(benches);
