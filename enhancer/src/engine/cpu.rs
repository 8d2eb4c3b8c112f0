//! Networks on the CPU, one thread per picture.
//!
//! The layers run row by row: as soon as a layer has three rows, the next one takes a row from
//! them. Each layer keeps a ring of three rows, and nothing is computed twice. A block's input is the ring before the
//! last one, which still has the row that the skip needs; only the first layer of a network of blocks keeps more, one
//! row for each of the layers that its skip passes.
//! The rings of `xs-x2` fit into L2 for a row of 640 samples (0.5 MiB), those of 18 layers of 32 channels (4.4 MiB) do
//! not; but such a layer takes 576 multiplications of a vector for the 384 bytes that a pixel reads, so that what comes
//! from a farther cache, in order, costs nothing to be seen. Strips of columns would compute 18 columns twice on either side.
//!
//! Instruction set: chosen once, when the engine is made, from what the CPU has.

use std::sync::Arc;

use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_hybrid::simd::Isa;

use super::architecture::Architecture;
use super::kernel::{Finish, Kernels, LANES, Pixel, Rows, row_len};
use super::packed::Tail;
use super::simd::Simd;
use super::{Engine, InferError, Input, Luma, Model, Residual, SwapError, check};

/// LR rows whose Lanczos base is made at a time.
const STRIP: usize = 16;

/// The last rows of a layer, addressed by picture row.
#[derive(Debug)]
struct Ring<T> {
    rows: Vec<Vec<T>>,
    /// What lies above and below the picture.
    zero: Vec<T>,
}

impl<T: Copy> Ring<T> {
    fn new(depth: usize) -> Self {
        Ring { rows: (0..depth).map(|_| Vec::new()).collect(), zero: Vec::new() }
    }

    fn reset(&mut self, len: usize, zero: T) {
        for row in self.rows.iter_mut().chain([&mut self.zero]) {
            row.clear();
            row.resize(len, zero);
        }
    }

    fn row(&self, y: usize) -> &[T] {
        &self.rows[y % self.rows.len()]
    }

    fn row_mut(&mut self, y: usize) -> &mut [T] {
        let depth = self.rows.len();
        &mut self.rows[y % depth]
    }

    /// Row `y` and its neighbours; rows outside the picture are zero.
    fn around(&self, y: usize, height: usize) -> Rows<'_, T> {
        let above = if y == 0 { &self.zero } else { self.row(y - 1) };
        let below = if y + 1 == height { &self.zero } else { self.row(y + 1) };
        [above, self.row(y), below]
    }
}

/// What goes into the first layer.
#[derive(Debug)]
enum InputRing {
    Luma(Ring<f32>),
    /// Luma and the folded twin.
    Pixels(Ring<Pixel>),
}

/// A network on the CPU.
#[derive(Debug)]
pub struct CpuEngine {
    model: Arc<Model>,
    simd: Simd,
    kernels: Kernels,
    input: InputRing,
    /// Of all layers but the last.
    layers: Vec<Ring<Pixel>>,
    sums: Vec<Pixel>,
    /// Lanczos of the low rows of a strip, for gated networks.
    base: Vec<i16>,
    scratch: Scratch,
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
        let architecture = model.architecture();
        let kept = architecture.convs - 1;
        // The row that leaves the last block needs the first layer's row of the same number.
        let depth = |layer: usize| {
            let skipped = layer == 0 && (0..kept).any(|n| architecture.ends_blocks(n));
            if skipped { kept.max(3) } else { 3 }
        };
        CpuEngine {
            simd,
            kernels: simd.kernels(),
            input: if architecture.has_twin() {
                InputRing::Pixels(Ring::new(3))
            } else {
                InputRing::Luma(Ring::new(3))
            },
            layers: (0..kept).map(|layer| Ring::new(depth(layer))).collect(),
            sums: Vec::new(),
            base: Vec::new(),
            scratch: Scratch::default(),
            model,
        }
    }

    /// Sizes all working memory; allocates only for the largest picture so far.
    fn reset(&mut self, width: usize) {
        let (len, zero) = (row_len(width), [0.0; LANES]);
        let packed = self.model.packed();
        match &mut self.input {
            InputRing::Luma(ring) => ring.reset(len, 0.0),
            InputRing::Pixels(ring) => ring.reset(packed.head.inputs * len, zero),
        }
        let outputs = [&packed.head].into_iter().chain(&packed.body).map(|layer| layer.outputs);
        for (ring, groups) in self.layers.iter_mut().zip(outputs) {
            ring.reset(groups * len, zero);
        }
        let groups = if let Tail::Layer(layer) = &packed.tail { layer.outputs } else { 1 };
        self.sums.clear();
        self.sums.resize(groups * len, zero);
    }

    /// Fills row `y` of the input with samples, scaled as the network was trained.
    fn load_row(&mut self, input: &Input<'_>, y: usize) {
        let unit = |sample: u8| f32::from(sample) * (1.0 / 255.0) - 0.5;
        let low = input.low.row(y);
        match &mut self.input {
            InputRing::Luma(ring) => {
                for (value, sample) in ring.row_mut(y)[1..].iter_mut().zip(low) {
                    *value = unit(*sample);
                }
            }
            InputRing::Pixels(ring) => {
                let (row, len) = (ring.row_mut(y), row_len(low.len()));
                for (pixel, sample) in row[1..].iter_mut().zip(low) {
                    pixel[0] = unit(*sample);
                }
                let scale = self.model.architecture().scale;
                let Some(twin) = input.twin else { return };
                for channel in 0..scale * scale {
                    let (dy, dx) = (channel / scale, channel % scale);
                    let (group, lane) = ((1 + channel) / LANES, (1 + channel) % LANES);
                    let high = twin.row(scale * y + dy)[dx..].iter().step_by(scale);
                    for (pixel, sample) in row[group * len + 1..].iter_mut().zip(high) {
                        pixel[lane] = unit(*sample);
                    }
                }
            }
        }
    }

    /// Computes row `y` of layer `layer` from the rows of those before it.
    fn layer_row(&mut self, layer: usize, y: usize, width: usize, height: usize) {
        let architecture = self.model.architecture();
        let packed = self.model.packed();
        let (before, rest) = self.layers.split_at_mut(layer);
        let out = rest[0].row_mut(y);
        let finish = if architecture.has_relu(layer) {
            Finish::Relu
        } else if architecture.ends_blocks(layer) {
            Finish::AddBoth(before[layer - 2].row(y), before[0].row(y))
        } else if architecture.ends_block(layer) {
            Finish::Add(before[layer - 2].row(y))
        } else {
            Finish::Plain
        };
        if let Some(last) = before.last() {
            let rows = last.around(y, height);
            (self.kernels.body)(rows, &packed.body[layer - 1], finish, width, out);
        } else {
            match &self.input {
                InputRing::Luma(ring) => {
                    (self.kernels.head)(ring.around(y, height), &packed.head, finish, width, out);
                }
                InputRing::Pixels(ring) => {
                    (self.kernels.body)(ring.around(y, height), &packed.head, finish, width, out);
                }
            }
        }
    }

    /// Computes the last layer's row `y` and shuffles its channels into rows of the residual.
    fn output_row(&mut self, y: usize, input: &Input<'_>, out: &mut [f32]) {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = self.model.architecture().scale;
        let Some(rows) = self.layers.last().map(|ring| ring.around(y, height)) else { return };
        match &self.model.packed().tail {
            Tail::Columns { taps, bias } => {
                (self.kernels.tail)(rows, taps, width, &mut self.sums);
                // Few outputs are those of scale 2.
                let (top, bottom) = out.split_at_mut(2 * width);
                let pairs =
                    top.as_chunks_mut::<2>().0.iter_mut().zip(bottom.as_chunks_mut::<2>().0);
                for (columns, (top, bottom)) in self.sums.windows(3).zip(pairs) {
                    let at =
                        |n: usize| bias[n] + columns[0][n] + columns[1][4 + n] + columns[2][8 + n];
                    *top = [at(0), at(1)];
                    *bottom = [at(2), at(3)];
                }
            }
            Tail::Layer(layer) => {
                (self.kernels.body)(rows, layer, Finish::Plain, width, &mut self.sums);
                let sums = Sums { sums: &self.sums, len: row_len(width) };
                for (dy, out) in out.chunks_exact_mut(scale * width).enumerate() {
                    for dx in 0..scale {
                        let values = sums.channel(scale * dy + dx);
                        out[dx..].iter_mut().step_by(scale).zip(values).for_each(|(o, v)| *o = v);
                    }
                }
            }
        }
        if let Some(twin) = &input.twin {
            self.gate_rows(y, input.low, twin, out);
        }
    }

    /// Adds `σ(g)·(T − L)` to the rows of the residual that row `y` of the picture has.
    fn gate_rows(&mut self, y: usize, low: Luma<'_>, twin: &Luma<'_>, out: &mut [f32]) {
        let scale = self.model.architecture().scale;
        let high_width = scale * low.width();
        if y.is_multiple_of(STRIP) {
            let rows = y..(y + STRIP).min(low.height());
            self.base.resize(scale * rows.len() * high_width, 0);
            let samples = low.samples();
            lanczos(Isa::detect(), samples, scale, rows, &mut self.base, &mut self.scratch);
        }
        let base = &self.base[scale * (y % STRIP) * high_width..];
        let sums = Sums { sums: &self.sums, len: row_len(low.width()) };
        let rows = out.chunks_exact_mut(high_width).zip(base.chunks_exact(high_width));
        for (dy, (out, base)) in rows.enumerate() {
            let twin = twin.row(scale * y + dy);
            for dx in 0..scale {
                let gates = sums.channel(scale * (scale + dy) + dx);
                let high = (dx..high_width).step_by(scale);
                for (x, gate) in high.zip(gates) {
                    let difference = f32::from(twin[x]) - f32::from(base[x]) * (1.0 / 16.0);
                    out[x] += difference / (1.0 + (-gate).exp());
                }
            }
        }
    }

    fn infer_one(&mut self, input: &Input<'_>, out: &mut Residual) {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = self.model.architecture().scale;
        self.reset(width);
        out.resize(scale * width, scale * height);
        let kept = self.layers.len();
        // At step `y`, the input gets row y, layer n row y − 1 − n, the output row y − 1 − kept.
        for y in 0..=height + kept {
            if y < height {
                self.load_row(input, y);
            }
            for layer in 0..kept {
                if let Some(row) = y.checked_sub(1 + layer).filter(|row| *row < height) {
                    self.layer_row(layer, row, width, height);
                }
            }
            if let Some(row) = y.checked_sub(1 + kept) {
                let size = scale * scale * width;
                self.output_row(row, input, &mut out.data[row * size..][..size]);
            }
        }
    }
}

/// A row of the last layer.
struct Sums<'a> {
    sums: &'a [Pixel],
    len: usize,
}

impl<'a> Sums<'a> {
    /// The values of a channel, from the first pixel of the picture on.
    fn channel(&self, channel: usize) -> impl Iterator<Item = f32> + 'a {
        let lane = channel % LANES;
        self.sums[channel / LANES * self.len + 1..].iter().map(move |pixel| pixel[lane])
    }
}

impl Engine for CpuEngine {
    fn backend(&self) -> &'static str {
        self.simd.name()
    }

    fn architecture(&self) -> Architecture {
        self.model.architecture()
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        check(&self.architecture(), inputs, out)?;
        for (input, out) in inputs.iter().zip(out) {
            self.infer_one(input, out);
        }
        Ok(())
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        SwapError::check(self.architecture(), model)?;
        self.model = model.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;
    use crate::engine::conformance::{self, Case};
    use crate::engine::embedded_model;

    #[test]
    fn every_form_conforms() {
        for simd in Simd::available() {
            for case in Case::all() {
                let model = Arc::new(case.model());
                let mut engine = CpuEngine::with_simd(model, simd).unwrap();
                let error = conformance::check(&mut engine, &case).unwrap();
                assert!(error < 2e-6, "{simd:?}, {case}: {error}");
            }
        }
    }

    #[test]
    fn the_trained_network_gives_what_its_training_program_computed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/xs-x2.fixture.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (lr, expected) = (file.tensor("lr").unwrap(), file.tensor("residual").unwrap());
        let &[height, width] = lr.shape() else { panic!("lr is {:?}", lr.shape()) };
        let model = embedded_model().unwrap();
        for simd in Simd::available() {
            let mut engine = CpuEngine::with_simd(model.clone(), simd).unwrap();
            let mut got = Residual::default();
            engine.infer(Luma::packed(lr.data(), width, height).unwrap(), &mut got).unwrap();
            assert_eq!(expected.shape(), [got.height, got.width]);
            let words = expected.data().chunks_exact(4);
            let expected = words.map(|w| f32::from_le_bytes(w.try_into().unwrap()));
            let error =
                got.data.iter().zip(expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
            assert!(error < 0.02, "{simd:?}: {error} grey levels");
        }
    }
}
