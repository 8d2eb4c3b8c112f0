#![allow(missing_docs)] // The criterion macros define items of their own.
//! Time per inference, one thread, by picture size and instruction set.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;
use windlass_sr::{Architecture, CpuEngine, Engine, Luma, Model, Residual, Simd, embedded_model};

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

/// Measures networks of the family with random weights, on the best instruction set.
fn family(c: &mut Criterion) {
    let mut group = c.benchmark_group("family");
    group.sample_size(10);
    let (width, height) = (320, 180);
    let lr: Vec<u8> = (0..width * height).map(|n| (n * 31 % 251) as u8).collect();
    let luma = Luma::packed(&lr, width, height).expect("the plane covers the picture");
    for architecture in [
        Architecture::chain(2, 16, 5),
        Architecture::chain(3, 16, 5),
        Architecture::blocks(2, 16, 8),
        Architecture::blocks(2, 32, 8),
        Architecture::blocks(3, 32, 8),
    ] {
        let model = Model::random(architecture, 1).expect("it runs");
        let mut engine = CpuEngine::new(Arc::new(model));
        let mut out = Residual::default();
        let samples = (width * height) as u64;
        // Elements are multiplications with addition.
        group.throughput(Throughput::Elements(samples * architecture.macs()));
        let id = BenchmarkId::new(engine.backend(), architecture);
        group.bench_function(id, |b| b.iter(|| engine.infer(luma, &mut out)));
    }
    group.finish();
}

criterion_group!(benches, infer, family);
criterion_main!(benches);
