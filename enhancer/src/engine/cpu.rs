//! The network on the CPU, one thread per picture.
//!
//! The five layers run row by row: as soon as a layer has three rows, the next one takes a row from
//! them. Each layer keeps a ring of three rows, so that all activations of a 640-pixel row fit into
//! L2 (about 0.5 MiB), whatever the height, and nothing is computed twice.
//! Instruction set: chosen once, when the engine is made, from what the CPU has.

use std::sync::Arc;

use super::kernel::{self, Kernels, LANES, Pixel, row_len};
use super::{Engine, InferError, Luma, Model, Residual};

/// Layers whose rows are kept: all but the last.
const KEPT: usize = 4;

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// Plain code; defines the result.
    Scalar,
    /// 128-bit vectors of aarch64.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 256-bit vectors and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// Every form that the running CPU can execute, the fastest last.
    pub fn available() -> Vec<Simd> {
        let mut forms = vec![Simd::Scalar];
        #[cfg(target_arch = "aarch64")]
        forms.push(Simd::Neon);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                forms.push(Simd::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    forms.push(Simd::Avx512);
                }
            }
        }
        forms
    }

    fn name(self) -> &'static str {
        match self {
            Simd::Scalar => "cpu-scalar",
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => "cpu-neon",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => "cpu-avx2",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => "cpu-avx512",
        }
    }

    fn kernels(self) -> Kernels {
        match self {
            Simd::Scalar => kernel::PLAIN,
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => kernel::NEON,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => kernel::avx2::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => kernel::avx512::KERNELS,
        }
    }
}

/// A ring of the last three rows, addressed by picture row.
#[derive(Debug, Default)]
struct Ring<T> {
    rows: [Vec<T>; 3],
    /// What lies above and below the picture.
    zero: Vec<T>,
}

impl<T: Copy> Ring<T> {
    fn reset(&mut self, len: usize, zero: T) {
        for row in self.rows.iter_mut().chain([&mut self.zero]) {
            row.clear();
            row.resize(len, zero);
        }
    }

    fn row_mut(&mut self, y: usize) -> &mut [T] {
        &mut self.rows[y % 3]
    }

    /// Row `y` and its neighbours; rows outside the picture are zero.
    fn around(&self, y: usize, height: usize) -> kernel::Rows<'_, T> {
        let above = if y == 0 { &self.zero } else { &self.rows[(y - 1) % 3] };
        let below = if y + 1 == height { &self.zero } else { &self.rows[(y + 1) % 3] };
        [above, &self.rows[y % 3], below]
    }
}

/// The network on the CPU.
#[derive(Debug)]
pub struct CpuEngine {
    model: Arc<Model>,
    simd: Simd,
    kernels: Kernels,
    input: Ring<f32>,
    layers: [Ring<Pixel>; KEPT],
    sums: Vec<Pixel>,
}

impl CpuEngine {
    /// An engine on the best instruction set that the CPU has.
    pub fn new(model: Arc<Model>) -> Self {
        let best = Simd::available().pop().unwrap_or(Simd::Scalar);
        CpuEngine::with(model, best)
    }

    /// An engine on a given instruction set; `None` if the CPU lacks it.
    pub fn with_simd(model: Arc<Model>, simd: Simd) -> Option<Self> {
        Simd::available().contains(&simd).then(|| CpuEngine::with(model, simd))
    }

    /// The caller has checked that the CPU has `simd`.
    fn with(model: Arc<Model>, simd: Simd) -> Self {
        CpuEngine {
            model,
            simd,
            kernels: simd.kernels(),
            input: Ring::default(),
            layers: Default::default(),
            sums: Vec::new(),
        }
    }

    /// Fills row `y` of the input with samples, scaled as the network was trained.
    fn load_row(&mut self, lr: &Luma<'_>, y: usize) {
        let row = self.input.row_mut(y);
        for (value, sample) in row[1..].iter_mut().zip(lr.row(y)) {
            *value = f32::from(*sample) * (1.0 / 255.0) - 0.5;
        }
    }

    /// Computes row `y` of layer `layer` from the rows of the one before it.
    fn layer_row(&mut self, layer: usize, y: usize, width: usize, height: usize) {
        let model = &*self.model;
        if let Some(inner) = layer.checked_sub(1) {
            let (before, rest) = self.layers.split_at_mut(layer);
            let rows = before[inner].around(y, height);
            let out = rest[0].row_mut(y);
            (self.kernels.body)(rows, &model.body[inner], &model.body_bias[inner], width, out);
        } else {
            let rows = self.input.around(y, height);
            let out = self.layers[0].row_mut(y);
            (self.kernels.head)(rows, &model.head, &model.head_bias, width, out);
        }
    }

    /// Computes the last layer's row `y` and shuffles its channels into two rows of the residual.
    fn output_row(&mut self, y: usize, width: usize, height: usize, out: &mut Residual) {
        let rows = self.layers[KEPT - 1].around(y, height);
        (self.kernels.tail)(rows, &self.model.tail, width, &mut self.sums);
        let bias = &self.model.tail_bias;
        let (top, bottom) = out.data[y * 4 * width..][..4 * width].split_at_mut(2 * width);
        let pairs = top.as_chunks_mut::<2>().0.iter_mut().zip(bottom.as_chunks_mut::<2>().0);
        for (columns, (top, bottom)) in self.sums.windows(3).zip(pairs) {
            let at = |n: usize| bias[n] + columns[0][n] + columns[1][4 + n] + columns[2][8 + n];
            *top = [at(0), at(1)];
            *bottom = [at(2), at(3)];
        }
    }
}

impl Engine for CpuEngine {
    fn backend(&self) -> &'static str {
        self.simd.name()
    }

    fn scale(&self) -> usize {
        2
    }

    fn reach(&self) -> usize {
        // One sample for each 3×3 layer.
        KEPT + 1
    }

    fn infer(&mut self, lr: Luma<'_>, out: &mut Residual) -> Result<(), InferError> {
        let (width, height) = (lr.width(), lr.height());
        let len = row_len(width);
        self.input.reset(len, 0.0);
        for ring in &mut self.layers {
            ring.reset(len, [0.0; LANES]);
        }
        self.sums.clear();
        self.sums.resize(len, [0.0; LANES]);
        (out.width, out.height) = (2 * width, 2 * height);
        out.data.resize(4 * width * height, 0.0);
        // At step `y`, the input gets row y, layer n row y − 1 − n, the output row y − 1 − KEPT.
        for y in 0..=height + KEPT {
            if y < height {
                self.load_row(&lr, y);
            }
            for layer in 0..KEPT {
                if let Some(row) = y.checked_sub(1 + layer).filter(|row| *row < height) {
                    self.layer_row(layer, row, width, height);
                }
            }
            if let Some(row) = y.checked_sub(1 + KEPT) {
                self.output_row(row, width, height, out);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use safetensors::tensor::TensorView;
    use safetensors::{Dtype, SafeTensors};

    use super::*;

    /// Weights as they are stored, to build models and to convolve naively.
    pub struct Weights {
        pub tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
        pub scale: String,
    }

    impl Weights {
        /// Small pseudo-random weights.
        pub fn random(seed: u64) -> Self {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
            };
            let mut tensors = Vec::new();
            for (n, (outputs, inputs)) in
                [(16, 1), (16, 16), (16, 16), (16, 16), (4, 16)].into_iter().enumerate()
            {
                let scale = (2.0 / (9.0 * inputs as f32)).sqrt();
                let count = outputs * inputs * 9;
                let values = (0..count).map(|_| next() * scale).collect();
                tensors.push((format!("conv{n}.weight"), vec![outputs, inputs, 3, 3], values));
                let bias = (0..outputs).map(|_| next() * 0.1).collect();
                tensors.push((format!("conv{n}.bias"), vec![outputs], bias));
            }
            Weights { tensors, scale: "2".to_owned() }
        }

        pub fn to_bytes(&self) -> Vec<u8> {
            let data: Vec<(String, Vec<usize>, Vec<u8>)> = self
                .tensors
                .iter()
                .map(|(name, shape, values)| {
                    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                    (name.clone(), shape.clone(), bytes)
                })
                .collect();
            let views = data.iter().map(|(name, shape, bytes)| {
                (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
            });
            let metadata = HashMap::from([("scale".to_owned(), self.scale.clone())]);
            safetensors::serialize(views, Some(metadata)).unwrap()
        }

        fn get(&self, name: &str) -> &[f32] {
            &self.tensors.iter().find(|t| t.0 == name).unwrap().2
        }

        /// The network as its definition reads, in f64.
        fn naive(&self, lr: &[u8], width: usize, height: usize) -> Vec<f64> {
            let mut planes = vec![lr.iter().map(|&v| f64::from(v) / 255.0 - 0.5).collect()];
            for layer in 0..5 {
                let bias = self.get(&format!("conv{layer}.bias"));
                let weight = self.get(&format!("conv{layer}.weight"));
                let inputs: Vec<Vec<f64>> = planes;
                planes = (0..bias.len())
                    .map(|o| {
                        let kernels = &weight[o * inputs.len() * 9..];
                        let mut plane = Vec::with_capacity(width * height);
                        for y in 0..height {
                            for x in 0..width {
                                let mut sum = f64::from(bias[o]);
                                for (input, kernel) in inputs.iter().zip(kernels.chunks(9)) {
                                    for (tap, w) in kernel.iter().enumerate() {
                                        let (sy, sx) = (y + tap / 3, x + tap % 3);
                                        if (1..=height).contains(&sy) && (1..=width).contains(&sx) {
                                            sum += f64::from(*w) * input[(sy - 1) * width + sx - 1];
                                        }
                                    }
                                }
                                plane.push(if layer < 4 { sum.max(0.0) } else { sum });
                            }
                        }
                        plane
                    })
                    .collect();
            }
            let mut out = vec![0.0; 4 * width * height];
            for (channel, plane) in planes.iter().enumerate() {
                for (at, v) in plane.iter().enumerate() {
                    let (y, x) = (2 * (at / width) + channel / 2, 2 * (at % width) + channel % 2);
                    out[y * 2 * width + x] = *v;
                }
            }
            out
        }
    }

    fn noise(count: usize, seed: u32) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    fn run(engine: &mut CpuEngine, lr: &[u8], width: usize, height: usize) -> Residual {
        let mut out = Residual::default();
        engine.infer(Luma::packed(lr, width, height).unwrap(), &mut out).unwrap();
        out
    }

    fn engines(weights: &Weights) -> Vec<CpuEngine> {
        let model = Arc::new(Model::from_safetensors(&weights.to_bytes()).unwrap());
        let forms = Simd::available().into_iter();
        forms.map(|simd| CpuEngine::with_simd(model.clone(), simd).unwrap()).collect()
    }

    #[test]
    fn every_form_equals_the_naive_convolution_at_odd_and_tiny_sizes() {
        let weights = Weights::random(3);
        for mut engine in engines(&weights) {
            for (w, h) in [(1, 1), (2, 1), (1, 7), (3, 2), (5, 3), (12, 12), (13, 11), (49, 5)] {
                let lr = noise(w * h, 7);
                let expected = weights.naive(&lr, w, h);
                let got = run(&mut engine, &lr, w, h);
                assert_eq!((got.width, got.height, got.data.len()), (2 * w, 2 * h, 4 * w * h));
                for (g, e) in got.data.iter().zip(&expected) {
                    let error = (f64::from(*g) - e).abs();
                    assert!(error < 1e-4, "{} {w}x{h}: {error}", engine.backend());
                }
            }
        }
    }

    #[test]
    fn an_engine_used_again_remembers_nothing() {
        let weights = Weights::random(4);
        for mut engine in engines(&weights) {
            let (large, small) = (noise(60 * 20, 1), noise(9 * 9, 2));
            let fresh = run(&mut engine, &small, 9, 9);
            run(&mut engine, &large, 60, 20);
            assert_eq!(run(&mut engine, &small, 9, 9), fresh);
        }
    }

    #[test]
    fn a_stride_does_not_change_the_result() {
        let weights = Weights::random(5);
        let mut engine = engines(&weights).pop().unwrap();
        let padded = noise(20 * 8, 3);
        let packed: Vec<u8> = padded.chunks(20).flat_map(|r| &r[..13]).copied().collect();
        let expected = run(&mut engine, &packed, 13, 8);
        let mut out = Residual::default();
        engine.infer(Luma::new(&padded, 13, 8, 20).unwrap(), &mut out).unwrap();
        assert_eq!(out, expected);
    }

    #[test]
    fn pictures_without_area_or_samples_are_refused() {
        assert!(matches!(Luma::packed(&[], 0, 4), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[], 4, 0), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[0; 15], 4, 4), Err(InferError::TooShort { .. })));
        assert!(matches!(Luma::new(&[0; 64], 8, 8, 7), Err(InferError::Size { .. })));
        assert!(matches!(Luma::packed(&[0; 64], usize::MAX, 2), Err(InferError::Size { .. })));
    }

    #[test]
    fn the_trained_network_gives_what_its_training_program_computed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/xs-x2.fixture.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (lr, expected) = (file.tensor("lr").unwrap(), file.tensor("residual").unwrap());
        let &[height, width] = lr.shape() else { panic!("lr is {:?}", lr.shape()) };
        let model = super::super::embedded_model().unwrap();
        for simd in Simd::available() {
            let mut engine = CpuEngine::with_simd(model.clone(), simd).unwrap();
            let got = run(&mut engine, lr.data(), width, height);
            assert_eq!(expected.shape(), [got.height, got.width]);
            let words = expected.data().chunks_exact(4);
            let expected = words.map(|w| f32::from_le_bytes(w.try_into().unwrap()));
            let error =
                got.data.iter().zip(expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
            assert!(error < 0.02, "{simd:?}: {error} grey levels");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn simd_forms_agree_with_the_scalar_one(
            seed in 1u64..1_000, w in 1usize..64, h in 1usize..24, pixels in any::<u32>(),
        ) {
            let mut engines = engines(&Weights::random(seed));
            let lr = noise(w * h, pixels);
            let scalar = run(&mut engines[0], &lr, w, h);
            for engine in &mut engines[1..] {
                let other = run(engine, &lr, w, h);
                for (a, b) in scalar.data.iter().zip(&other.data) {
                    prop_assert!((a - b).abs() < 1e-4, "{}", engine.backend());
                }
            }
        }
    }
}
