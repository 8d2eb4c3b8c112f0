//! Networks on the CPU, one thread per picture.
//!
//! The layers run row by row: as soon as a layer has three rows, the next one takes a row from them. Each layer keeps a
//! ring of three rows, and nothing is computed twice. A block's input is the ring before the last one, which still has
//! the row that the skip needs; only the first layer of a network of blocks keeps more, one row for each of the layers
//! that its skip passes. The rings of `xs-x2` fit into L2 for a row of 640 samples (0.5 MiB), those of 18 layers of 32
//! channels (4.4 MiB) do not. But such a layer does 576 vector multiplications for the 384 bytes that a pixel reads, so
//! that sequential reads from a slower cache cost no measurable time. Strips of columns would compute 18 columns twice
//! on either side.
//!
//! Instruction set and type of number: chosen once, when the engine is made, from what the CPU has.

use std::fmt::Debug;
use std::sync::Arc;

use windlass_hybrid::resample::{Scratch, lanczos};
use windlass_vp9::simd::Isa;

use crate::architecture::Architecture;
use crate::engine::check;
use crate::gate::add_gated;
use crate::kernel::{Finish, Kernels, Rows, row_len};
use crate::number::{F32, LANES, Number, Pixel};
use crate::packed::{Head, Packed, Tail};
use crate::simd::Simd;
use crate::{Engine, InferError, Input, Luma, Model, Residual, SwapError};

/// LR rows whose Lanczos base is made at a time.
const STRIP: usize = 16;

/// A network on the CPU.
///
/// ```
/// use windlass_sr::{CpuEngine, Engine, Luma, Residual, by_four_model, embedded_model};
///
/// let mut engine = CpuEngine::new(embedded_model()?);
/// let edge: Vec<u8> = (0..32 * 18).map(|at| if at % 32 < 16 { 40 } else { 200 }).collect();
/// let mut residual = Residual::default();
/// engine.infer(Luma::packed(&edge, 32, 18)?, &mut residual)?;
/// assert_eq!((residual.width, residual.height), (64, 36));
///
/// // Between two pictures, weights of the same architecture may take the place of the engine's.
/// engine.swap(&embedded_model()?)?;
/// assert!(engine.swap(&by_four_model()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CpuEngine {
    model: Arc<Model>,
    simd: Simd,
    network: Box<dyn Run>,
    /// Whether the engine chose the instruction set itself, so that it may choose again for other weights.
    free: bool,
}

impl CpuEngine {
    /// An engine on the best instruction set that the CPU has, in the narrowest numbers that keep the model's result.
    pub fn new(model: Arc<Model>) -> Self {
        let best = Simd::best_for(&model);
        CpuEngine { free: true, ..CpuEngine::with(model, best) }
    }

    /// An engine on a given instruction set; `None` if the CPU lacks it.
    pub fn with_simd(model: Arc<Model>, simd: Simd) -> Option<Self> {
        Simd::available().contains(&simd).then(|| CpuEngine::with(model, simd))
    }

    /// Weights that the engine runs.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Creates an engine on `simd`. The caller has checked that the CPU has it.
    fn with(model: Arc<Model>, simd: Simd) -> Self {
        CpuEngine { network: simd.network(&model), model, simd, free: false }
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
            self.network.infer(&self.model, input, out);
        }
        Ok(())
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        SwapError::check(self.architecture(), model)?;
        let simd = if self.free { Simd::best_for(model) } else { self.simd };
        if simd == self.simd {
            self.network.prepare(model);
        } else {
            (self.simd, self.network) = (simd, simd.network(model));
        }
        self.model = model.clone();
        Ok(())
    }
}

/// Working memory of a network, with its kernels.
pub(super) trait Run: Send + Debug {
    /// Packs the model's weights for the kernels, unless that is done.
    fn prepare(&self, model: &Model);
    /// Super-resolves a picture whose shape was checked, by a model of the network's architecture.
    fn infer(&mut self, model: &Model, input: &Input<'_>, out: &mut Residual);
}

/// The last rows of a layer, addressed by picture row.
#[derive(Debug)]
struct Ring<T> {
    rows: Vec<Vec<T>>,
    /// Row of zeros that lies above and below the picture.
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

/// The working memory of a network in one type of number.
#[derive(Debug)]
pub(super) struct Network<N: Number> {
    kernels: Kernels<N>,
    /// Width of the pictures that the rows are made for.
    width: usize,
    /// Luma, for networks that look at nothing else.
    luma: Ring<f32>,
    /// Luma and the folded twin, for the others.
    pixels: Ring<N::Cell>,
    /// The last rows of each layer's output, but for the last layer's.
    layers: Vec<Ring<N::Cell>>,
    sums: Vec<Pixel>,
    /// The gates of a high row, for gated networks.
    gates: Vec<f32>,
    /// Lanczos of the low rows of a strip, for gated networks.
    base: Vec<i16>,
    scratch: Scratch,
}

/// A sample as the networks were trained with it.
fn unit(sample: u8) -> f32 {
    f32::from(sample) * (1.0 / 255.0) - 0.5
}

impl<N: Number> Network<N> {
    /// Working memory for a model's architecture; the weights are packed.
    pub(crate) fn new(model: &Model, kernels: Kernels<N>) -> Self {
        N::of(model);
        let architecture = model.architecture();
        let kept = architecture.convs - 1;
        // The row that leaves the last block needs the first layer's row of the same number.
        let depth = |layer: usize| {
            let skipped = layer == 0 && (0..kept).any(|n| architecture.ends_blocks(n));
            if skipped { kept.max(3) } else { 3 }
        };
        Network {
            kernels,
            width: 0,
            luma: Ring::new(3),
            pixels: Ring::new(3),
            layers: (0..kept).map(|layer| Ring::new(depth(layer))).collect(),
            sums: Vec::new(),
            gates: Vec::new(),
            base: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Sizes all working memory for pictures of the given width; allocates only for the widest picture so far. Samples
    /// beside the picture are zero and stay so: kernels clear what they write there.
    fn reset(&mut self, packed: &Packed<N>, width: usize) {
        if self.width == width {
            return;
        }
        self.width = width;
        let len = row_len(width);
        let first = match &packed.head {
            Head::Luma(layer) => {
                self.luma.reset(len, 0.0);
                layer.outputs
            }
            Head::Layer(layer) => {
                self.pixels.reset(layer.inputs * len, N::ZERO);
                layer.outputs
            }
        };
        let outputs = [first].into_iter().chain(packed.body.iter().map(|layer| layer.outputs));
        for (ring, groups) in self.layers.iter_mut().zip(outputs) {
            ring.reset(groups * len, N::ZERO);
        }
        let groups = if let Tail::Layer(layer) = &packed.tail { layer.outputs } else { 1 };
        self.sums.clear();
        self.sums.resize(groups * len, F32::ZERO);
    }

    /// Fills row `y` of the input with samples, scaled as the network was trained.
    fn load_row(&mut self, scale: usize, input: &Input<'_>, y: usize) {
        let low = input.low.row(y);
        let Some(twin) = input.twin else {
            for (value, sample) in self.luma.row_mut(y)[1..].iter_mut().zip(low) {
                *value = unit(*sample);
            }
            return;
        };
        let (row, len) = (self.pixels.row_mut(y), row_len(low.len()));
        for (pixel, sample) in row[1..].iter_mut().zip(low) {
            N::set(pixel, 0, unit(*sample));
        }
        for channel in 0..scale * scale {
            let (dy, dx) = (channel / scale, channel % scale);
            let (group, lane) = ((1 + channel) / LANES, (1 + channel) % LANES);
            let high = twin.row(scale * y + dy)[dx..].iter().step_by(scale);
            for (pixel, sample) in row[group * len + 1..].iter_mut().zip(high) {
                N::set(pixel, lane, unit(*sample));
            }
        }
    }

    /// Computes row `y` of layer `layer` from the rows of those before it.
    fn layer_row(&mut self, model: &Model, layer: usize, y: usize, height: usize) {
        let (architecture, packed, width) = (model.architecture(), N::of(model), self.width);
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
            return;
        }
        match &packed.head {
            Head::Luma(layer) => {
                (self.kernels.head)(self.luma.around(y, height), layer, finish, width, out);
            }
            Head::Layer(layer) => {
                (self.kernels.body)(self.pixels.around(y, height), layer, finish, width, out);
            }
        }
    }

    /// Computes the last layer's row `y` and shuffles its channels into rows of the residual.
    fn output_row(&mut self, model: &Model, y: usize, input: &Input<'_>, out: &mut [f32]) {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = model.architecture().scale;
        let Some(rows) = self.layers.last().map(|ring| ring.around(y, height)) else { return };
        match &N::of(model).tail {
            Tail::Columns { taps, bias } => {
                (self.kernels.tail)(rows, taps, width, &mut self.sums);
                // Few outputs are those of scale 2.
                let (top, bottom) = out.split_at_mut(2 * width);
                let pairs =
                    top.as_chunks_mut::<2>().0.iter_mut().zip(bottom.as_chunks_mut::<2>().0);
                for (columns, (top, bottom)) in self.sums.windows(3).zip(pairs) {
                    let [left, middle, right] = [&columns[0].0, &columns[1].0, &columns[2].0];
                    let at = |n: usize| bias[n] + left[n] + middle[4 + n] + right[8 + n];
                    *top = [at(0), at(1)];
                    *bottom = [at(2), at(3)];
                }
            }
            Tail::Layer(layer) => {
                (self.kernels.last)(rows, layer, width, &mut self.sums);
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
            self.gate_rows(scale, y, input.low, twin, out);
        }
    }

    /// Adds `σ(g)·(T − L)` to the rows of the residual that row `y` of the picture has.
    fn gate_rows(
        &mut self,
        scale: usize,
        y: usize,
        low: Luma<'_>,
        twin: &Luma<'_>,
        out: &mut [f32],
    ) {
        let high_width = scale * low.width();
        if y.is_multiple_of(STRIP) {
            let rows = y..(y + STRIP).min(low.height());
            self.base.resize(scale * rows.len() * high_width, 0);
            self.gates.resize(high_width, 0.0);
            let samples = low.samples();
            lanczos(Isa::detect(), samples, scale, rows, &mut self.base, &mut self.scratch);
        }
        let base = &self.base[scale * (y % STRIP) * high_width..];
        let sums = Sums { sums: &self.sums, len: row_len(low.width()) };
        let rows = out.chunks_exact_mut(high_width).zip(base.chunks_exact(high_width));
        for (dy, (out, base)) in rows.enumerate() {
            for dx in 0..scale {
                let gates = sums.channel(scale * (scale + dy) + dx);
                let to = self.gates[dx..].iter_mut().step_by(scale);
                to.zip(gates).for_each(|(to, gate)| *to = gate);
            }
            add_gated(out, &self.gates, twin.row(scale * y + dy), base);
        }
    }
}

impl<N: Number> Run for Network<N> {
    fn prepare(&self, model: &Model) {
        N::of(model);
    }

    fn infer(&mut self, model: &Model, input: &Input<'_>, out: &mut Residual) {
        let (width, height) = (input.low.width(), input.low.height());
        let scale = model.architecture().scale;
        self.reset(N::of(model), width);
        out.resize(scale * width, scale * height);
        let kept = self.layers.len();
        // At step `y`, the input gets row y, layer n row y − 1 − n, the output row y − 1 − kept.
        for y in 0..=height + kept {
            if y < height {
                self.load_row(scale, input, y);
            }
            for layer in 0..kept {
                if let Some(row) = y.checked_sub(1 + layer).filter(|row| *row < height) {
                    self.layer_row(model, layer, row, height);
                }
            }
            if let Some(row) = y.checked_sub(1 + kept) {
                let size = scale * scale * width;
                self.output_row(model, row, input, &mut out.data[row * size..][..size]);
            }
        }
    }
}

/// Sums of one row of the last layer.
struct Sums<'a> {
    sums: &'a [Pixel],
    len: usize,
}

impl<'a> Sums<'a> {
    /// Values of a channel, from the first pixel of the picture on.
    fn channel(&self, channel: usize) -> impl Iterator<Item = f32> + 'a {
        let lane = channel % LANES;
        self.sums[channel / LANES * self.len + 1..].iter().map(move |pixel| pixel.0[lane])
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;
    use crate::conformance::{self, Case};
    use crate::embedded_model;
    use crate::fixtures::scaled;

    /// What a form may differ by from the definition, over its root mean square.
    fn relative_error(simd: Simd) -> f64 {
        match simd.number() {
            "f32" => 2e-6,
            "f16" => 8e-3,
            _ => 2e-2,
        }
    }

    #[test]
    fn every_form_conforms() {
        for simd in Simd::available() {
            for case in Case::all() {
                let model = Arc::new(case.model());
                let mut engine = CpuEngine::with_simd(model, simd).unwrap();
                let error = conformance::check(&mut engine, &case).unwrap();
                assert!(error < relative_error(simd), "{simd:?}, {case}: {error}");
            }
        }
    }

    /// PSNR of the HR picture that a backend makes of a low one.
    fn psnr(simd: Simd, model: &Arc<Model>, low: Luma<'_>, high: &[u8]) -> f64 {
        let mut engine = CpuEngine::with_simd(model.clone(), simd).unwrap();
        let mut residual = Residual::default();
        engine.infer(low, &mut residual).unwrap();
        let mut base = vec![0; high.len()];
        let (isa, rows) = (Isa::detect(), 0..low.height());
        lanczos(isa, low.samples(), 2, rows, &mut base, &mut Scratch::default());
        let squares = base.iter().zip(&residual.data).zip(high).map(|((base, residual), high)| {
            let made = (f32::from(*base) / 16.0 + residual).round().clamp(0.0, 255.0);
            f64::from(made - f32::from(*high)).powi(2)
        });
        10.0 * (255.0 * 255.0 * high.len() as f64 / squares.sum::<f64>()).log10()
    }

    #[test]
    fn on_decoded_pictures_no_form_loses_a_twentieth_of_a_decibel() {
        let path = "../../hybrid/vp9/tests/fixtures/realtime.ivf";
        let file = std::fs::read(path).unwrap();
        let size = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut decoder) = (32, windlass_vp9::Decoder::new());
        let model = embedded_model().unwrap();
        for _ in 0..3 {
            let frames = decoder.decode(&file[at + 12..at + 12 + size(at)]).unwrap();
            at += 12 + size(at);
            let plane = &frames.last().unwrap().picture.planes()[0];
            // Halved, the decoded picture is a low one whose high one is known.
            let (width, height) = (plane.width() / 2, plane.height() / 2);
            let high: Vec<u8> =
                (0..2 * height).flat_map(|y| &plane.row(y)[..2 * width]).copied().collect();
            let four = |x: usize, y: usize| {
                [0, 1, 2 * width, 2 * width + 1].map(|n| u16::from(high[4 * width * y + 2 * x + n]))
            };
            let low: Vec<u8> = (0..width * height)
                .map(|n| ((four(n % width, n / width).iter().sum::<u16>() + 2) / 4) as u8)
                .collect();
            let low = Luma::packed(&low, width, height).unwrap();
            let plain = psnr(Simd::Scalar, &model, low, &high);
            for simd in Simd::available() {
                let loss = plain - psnr(simd, &model, low, &high);
                assert!(loss.abs() < 0.05, "{simd:?}: {loss} dB of {plain}");
            }
        }
    }

    #[test]
    fn sums_beyond_a_type_of_number_stay_numbers() {
        let architecture = Architecture::blocks(2, 32, 2).with_twin();
        let random = Model::random(architecture, 3).unwrap();
        let model = scaled(&random, 300.0);
        let samples: Vec<u8> = (0..30 * 8 * 4).map(|n| (n * 31 % 256) as u8).collect();
        let input = Input {
            low: Luma::packed(&samples[..30 * 8], 30, 8).unwrap(),
            twin: Some(Luma::packed(&samples, 60, 16).unwrap()),
        };
        for simd in Simd::available() {
            let mut engine = CpuEngine::with_simd(model.clone(), simd).unwrap();
            let mut out = [Residual::default()];
            engine.infer_batch(&[input], &mut out).unwrap();
            assert!(out[0].data.iter().all(|sample| sample.is_finite()), "{simd:?}");
        }
    }

    #[test]
    fn the_trained_networks_give_what_their_training_program_computed() {
        let folder = std::path::Path::new("../../models");
        let mut tried = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy();
            if !name.ends_with(".fixture.safetensors") {
                continue;
            }
            let weights = name.replace(".fixture.", ".");
            let bytes = std::fs::read(&path).unwrap();
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let model = Model::from_safetensors(&std::fs::read(weights).unwrap()).unwrap();
            check_fixture(&Arc::new(model), &file, &path);
            tried += 1;
        }
        assert!(tried >= 3, "{tried} networks");
    }

    fn floats(file: &SafeTensors<'_>, name: &str) -> Option<Vec<f32>> {
        let tensor = file.tensor(name).ok()?;
        let (words, _) = tensor.data().as_chunks::<4>();
        Some(words.iter().map(|w| f32::from_le_bytes(*w)).collect())
    }

    /// Compares the residual; where there is a twin, with what the program's gates let in of that over this crate's own
    /// base.
    fn check_fixture(model: &Arc<Model>, file: &SafeTensors<'_>, path: &std::path::Path) {
        let (lr, residual) = (file.tensor("lr").unwrap(), file.tensor("residual").unwrap());
        let (&[height, width], &[high, wide]) = (lr.shape(), residual.shape()) else {
            panic!("{:?}, {:?}", lr.shape(), residual.shape())
        };
        let low = Luma::packed(lr.data(), width, height).unwrap();
        let mut expected = floats(file, "residual").unwrap();
        let twin = file.tensor("twin").ok();
        if let Some((twin, gates)) = twin.as_ref().zip(floats(file, "gate")) {
            let mut base = vec![0; wide * high];
            let (scale, samples) = (model.architecture().scale, low.samples());
            let mut scratch = Scratch::default();
            lanczos(Isa::detect(), samples, scale, 0..height, &mut base, &mut scratch);
            for (((sum, gate), twin), base) in
                expected.iter_mut().zip(gates).zip(twin.data()).zip(base)
            {
                *sum += (f32::from(*twin) - f32::from(base) / 16.0) / (1.0 + (-gate).exp());
            }
        }
        let seen = twin.as_ref().map(|twin| Luma::packed(twin.data(), wide, high).unwrap());
        for simd in Simd::available() {
            let mut engine = CpuEngine::with_simd(model.clone(), simd).unwrap();
            let mut got = [Residual::default()];
            engine.infer_batch(&[Input { low, twin: seen }], &mut got).unwrap();
            assert_eq!([got[0].height, got[0].width], [high, wide]);
            let differences = got[0].data.iter().zip(&expected).map(|(g, e)| (g - e).abs());
            let error = differences.fold(0.0, f32::max);
            let max = match simd.number() {
                "f32" => 0.02,
                "f16" => 0.5,
                _ => 1.5,
            };
            assert!(error < max, "{simd:?}, {}: {error} grey levels", path.display());
        }
    }
}
