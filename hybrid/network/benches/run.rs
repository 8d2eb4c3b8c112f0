//! Times of frame networks of untrained weights: `cargo bench -p windlass-network --bench run`. Beside each is the form
//! that defines its result.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{Criterion, criterion_group, criterion_main};
use safetensors::tensor::{Dtype, TensorView};
use windlass_network::{Changed, Network, Runner, Weights};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

/// Width of the low picture, in samples.
const WIDTH: usize = 320;
/// Height of the low picture, in samples.
const HEIGHT: usize = 180;

/// A chain whose weights are all the same: the time does not depend on them.
fn network(scale: usize, channels: usize, convs: usize) -> Network {
    let mut tensors = Vec::new();
    for n in 0..convs {
        let inputs = if n == 0 { 1 + scale * scale } else { channels };
        let outputs = if n + 1 == convs { scale * scale } else { channels };
        tensors.push((format!("conv{n}.weight"), vec![outputs, inputs, 3, 3], 0.01f32));
        tensors.push((format!("conv{n}.bias"), vec![outputs], 0.0));
        if n + 1 < convs {
            tensors.push((format!("conv{n}.range"), vec![outputs], 1.0));
        }
    }
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, shape, v)| v.to_le_bytes().repeat(shape.iter().product()))
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("the length is right"))
    });
    let scale = scale.to_string();
    let fields = [("arch", "chain"), ("inputs", "luma+twin"), ("base", "twin"), ("scale", &scale)];
    let fields = fields.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let file = safetensors::serialize(views, Some(fields)).expect("tensors");
    Network::new(&Weights::from_safetensors(&file).expect("a network")).expect("small weights")
}

fn run(c: &mut Criterion) {
    for (name, scale, channels, convs) in
        [("xxs", 2, 8, 4), ("xs", 2, 16, 5), ("xs", 4, 16, 5), ("m", 2, 32, 5)]
    {
        let network = network(scale, channels, convs);
        let low = Plane::filled(WIDTH, HEIGHT, 120);
        let high = Plane::filled(scale * WIDTH, scale * HEIGHT, 120);
        let mut group = c.benchmark_group(format!("{name} by {scale} of {WIDTH}x{HEIGHT}"));
        group.sample_size(20);
        for &isa in Isa::available() {
            let mut runner = Runner::new(isa);
            let mut shown = high.clone();
            group.bench_function(format!("{isa:?}"), |b| {
                b.iter(|| {
                    runner.run(&network, (&low).into(), (&high).into(), Changed::All, &mut shown);
                });
            });
        }
    }
}

criterion_group!(benches, run);
criterion_main!(benches);
