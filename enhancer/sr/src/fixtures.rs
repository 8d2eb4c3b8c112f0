//! Pictures and networks that tests of learning use, here and in `windlass-enhancer`.

use std::sync::Arc;

use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_vp9::simd::Isa;

use crate::{CpuEngine, Engine, Input, Model, Residual};

/// Width and height of the LR pictures, in samples.
pub const LOW: (usize, usize) = (48, 32);

/// Low luma and twin's luma of picture `n`.
pub fn pictures(n: usize, scale: usize) -> (Vec<u8>, Vec<u8>) {
    let texture = |i: usize, width: usize| {
        let (x, y) = ((i % width) as f64, (i / width) as f64);
        (120.0
            + 60.0 * (x * 0.31 + n as f64).sin() * (y * 0.23).cos()
            + 20.0 * (x * y * 0.01).sin()) as u8
    };
    let low = (0..LOW.0 * LOW.1).map(|i| texture(i, LOW.0)).collect();
    let high = (0..LOW.0 * LOW.1 * scale * scale).map(|i| texture(i, scale * LOW.0)).collect();
    (low, high)
}

/// HR luma that the engine's network makes of the input.
pub fn made(engine: &mut CpuEngine, input: &Input<'_>) -> Vec<u8> {
    let scale = engine.scale();
    let mut residual = Residual::default();
    engine.infer_batch(&[*input], std::slice::from_mut(&mut residual)).expect("a residual");
    let mut base = vec![0; residual.data.len()];
    lanczos(
        Isa::detect(),
        input.low.samples(),
        scale,
        0..LOW.1,
        &mut base,
        &mut Scratch::default(),
    );
    let sums = base.iter().zip(&residual.data).map(|(&b, r)| f32::from(b) / 16.0 + r);
    sums.map(|v| v.round().clamp(0.0, 255.0) as u8).collect()
}

/// Copy of `model` with some weights of its last layer changed.
pub fn changed(model: &Model) -> Arc<Model> {
    let architecture = model.architecture();
    let mut convs = model.convs().to_vec();
    let last = convs.last_mut().expect("it has layers");
    let own = architecture.scale * architecture.scale * architecture.channels * 9;
    for (i, weight) in last.weights[..own].iter_mut().enumerate() {
        *weight += if i % 7 == 0 { 1.5 } else { -0.2 };
    }
    last.bias[0] += 2.0;
    Arc::new(Model::from_convs(architecture, convs))
}

/// Copy of `model` with every weight multiplied by `factor`.
pub fn scaled(model: &Model, factor: f32) -> Arc<Model> {
    let mut convs = model.convs().to_vec();
    convs.iter_mut().flat_map(|conv| &mut conv.weights).for_each(|weight| *weight *= factor);
    Arc::new(Model::from_convs(model.architecture(), convs))
}
