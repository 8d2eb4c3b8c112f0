//! A network's weights in the order in which the CPU's kernels read them.
//!
//! Channels lie in groups of [`LANES`], the last one padded with zeros. Of each group of outputs
//! there follow: groups of inputs, 9 taps (row by row), inputs of the group; a vector of outputs each.

use super::architecture::Architecture;
use super::kernel::{LANES, Pixel};
use super::model::Conv;

/// Most outputs whose three columns of taps fit into one vector.
const PACKED_OUTPUTS: usize = 5;

/// One convolution.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// Groups of input channels.
    pub inputs: usize,
    /// Groups of output channels.
    pub outputs: usize,
    pub taps: Vec<Pixel>,
    /// One vector for each group of outputs.
    pub bias: Vec<Pixel>,
}

/// The last convolution.
#[derive(Debug, Clone)]
pub(super) enum Tail {
    /// Few outputs: for each group of inputs 3 rows × inputs; lane `outputs × column + output` holds that column's tap.
    Columns { taps: Vec<Pixel>, bias: [f32; PACKED_OUTPUTS] },
    /// As any other.
    Layer(Layer),
}

/// All convolutions.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    /// 9 taps of one input for each group of outputs where luma alone goes in; else as any other.
    pub head: Layer,
    pub body: Vec<Layer>,
    pub tail: Tail,
}

impl Packed {
    /// The shapes have been checked, and there are two convolutions or more.
    pub fn new(architecture: &Architecture, convs: &[Conv]) -> Self {
        let last = convs.len() - 1;
        let layer = |n: usize, lanes: usize| {
            let (outputs, inputs) = architecture.shape(n);
            layer(&convs[n], outputs, inputs, lanes)
        };
        let outputs = architecture.output_channels();
        let tail = if outputs <= PACKED_OUTPUTS {
            columns(&convs[last], outputs, architecture.channels)
        } else {
            Tail::Layer(layer(last, LANES))
        };
        let lanes = if architecture.has_twin() { LANES } else { 1 };
        Packed { head: layer(0, lanes), body: (1..last).map(|n| layer(n, LANES)).collect(), tail }
    }
}

/// Packs a convolution; inputs lie in groups of `lanes`.
fn layer(conv: &Conv, outputs: usize, inputs: usize, lanes: usize) -> Layer {
    let groups = inputs.div_ceil(lanes);
    let mut layer = Layer {
        inputs: groups,
        outputs: outputs.div_ceil(LANES),
        taps: vec![[0.0; LANES]; outputs.div_ceil(LANES) * groups * 9 * lanes],
        bias: vec![[0.0; LANES]; outputs.div_ceil(LANES)],
    };
    for (index, value) in conv.weights.iter().enumerate() {
        let (tap, input, output) = (index % 9, index / 9 % inputs, index / 9 / inputs);
        let group = output / LANES * groups + input / lanes;
        layer.taps[(group * 9 + tap) * lanes + input % lanes][output % LANES] = *value;
    }
    for (output, value) in conv.bias.iter().enumerate() {
        layer.bias[output / LANES][output % LANES] = *value;
    }
    layer
}

/// Packs a convolution's columns into the lanes of one vector.
fn columns(conv: &Conv, outputs: usize, inputs: usize) -> Tail {
    let mut taps = vec![[0.0; LANES]; inputs.div_ceil(LANES) * 3 * LANES];
    for (index, value) in conv.weights.iter().enumerate() {
        let (tap, input, output) = (index % 9, index / 9 % inputs, index / 9 / inputs);
        let row = input / LANES * 3 + tap / 3;
        taps[row * LANES + input % LANES][outputs * (tap % 3) + output] = *value;
    }
    let mut bias = [0.0; PACKED_OUTPUTS];
    bias.iter_mut().zip(&conv.bias).for_each(|(to, from)| *to = *from);
    Tail::Columns { taps, bias }
}
