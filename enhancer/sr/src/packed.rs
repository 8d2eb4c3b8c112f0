//! A network's weights in the order in which the CPU's kernels read them.
//!
//! Channels lie in groups of [`LANES`], the last one padded with zeros, and inputs in words of [`Number::WORD`]
//! channels. Each group of outputs is stored as groups of inputs, rows of taps, words of the group and columns of taps,
//! with a vector of outputs each.

use crate::architecture::Architecture;
use crate::model::Conv;
use crate::number::{F32, LANES, Number};

/// Maximum outputs whose three columns of taps fit into one vector.
const PACKED_OUTPUTS: usize = 5;

/// Packed weights of one convolution.
#[derive(Debug, Clone)]
pub(super) struct Layer<N: Number> {
    /// Number of groups of input channels.
    pub inputs: usize,
    /// Number of words of each group that hold a channel.
    pub words: usize,
    /// Number of groups of output channels.
    pub outputs: usize,
    pub taps: Vec<N::Taps>,
    /// Initial sums: one vector for each group of outputs.
    pub bias: Vec<N::Taps>,
}

/// Packed weights of the first convolution.
#[derive(Debug, Clone)]
pub(super) enum Head<N: Number> {
    /// A convolution of luma alone, which is in single precision whatever `N` is.
    Luma(Layer<F32>),
    /// A convolution in `N`.
    Layer(Layer<N>),
}

/// Packed weights of the last convolution.
#[derive(Debug, Clone)]
pub(super) enum Tail<N: Number> {
    /// A convolution with few outputs. Each group of inputs has 3 rows × words; lane `outputs × column + output` holds
    /// that column's tap.
    Columns { taps: Vec<N::Taps>, bias: [f32; PACKED_OUTPUTS] },
    /// A convolution in `N` whose sums are the residual.
    Layer(Layer<N>),
}

/// Packed weights of all convolutions of a network.
#[derive(Debug, Clone)]
pub(super) struct Packed<N: Number> {
    pub head: Head<N>,
    pub body: Vec<Layer<N>>,
    pub tail: Tail<N>,
}

impl<N: Number> Packed<N> {
    /// Packs convolutions whose shapes have been checked; there are at least two.
    pub(crate) fn new(architecture: &Architecture, convs: &[Conv]) -> Self {
        let last = convs.len() - 1;
        let shaped = |n: usize| {
            let (outputs, inputs) = architecture.shape(n);
            layer(&convs[n], outputs, inputs)
        };
        let outputs = architecture.output_channels();
        let tail = if outputs <= PACKED_OUTPUTS {
            columns(&convs[last], outputs, architecture.channels)
        } else {
            Tail::Layer(shaped(last))
        };
        let head = if architecture.has_twin() {
            Head::Layer(shaped(0))
        } else {
            Head::Luma(layer(&convs[0], architecture.channels, 1))
        };
        Packed { head, body: (1..last).map(shaped).collect(), tail }
    }
}

/// Packs a convolution.
fn layer<N: Number>(conv: &Conv, outputs: usize, inputs: usize) -> Layer<N> {
    let groups = inputs.div_ceil(LANES);
    let words = inputs.min(LANES).div_ceil(N::WORD);
    let mut layer = Layer {
        inputs: groups,
        words,
        outputs: outputs.div_ceil(LANES),
        taps: vec![N::NO_TAPS; outputs.div_ceil(LANES) * groups * 9 * words],
        bias: vec![N::NO_TAPS; outputs.div_ceil(LANES)],
    };
    for (index, value) in conv.weights.iter().enumerate() {
        let (tap, input, output) = (index % 9, index / 9 % inputs, index / 9 / inputs);
        let group = output / LANES * groups + input / LANES;
        let (word, part) = (input % LANES / N::WORD, input % N::WORD);
        let at = ((group * 3 + tap / 3) * words + word) * 3 + tap % 3;
        N::set_tap(&mut layer.taps[at], output % LANES, part, *value);
    }
    for (output, value) in conv.bias.iter().enumerate() {
        N::set_bias(&mut layer.bias[output / LANES], output % LANES, *value);
    }
    layer
}

/// Packs a convolution's columns into the lanes of one vector.
fn columns<N: Number>(conv: &Conv, outputs: usize, inputs: usize) -> Tail<N> {
    let words = LANES / N::WORD;
    let mut taps = vec![N::NO_TAPS; inputs.div_ceil(LANES) * 3 * words];
    for (index, value) in conv.weights.iter().enumerate() {
        let (tap, input, output) = (index % 9, index / 9 % inputs, index / 9 / inputs);
        let row = input / LANES * 3 + tap / 3;
        let (word, part) = (input % LANES / N::WORD, input % N::WORD);
        N::set_tap(&mut taps[row * words + word], outputs * (tap % 3) + output, part, *value);
    }
    let mut bias = [0.0; PACKED_OUTPUTS];
    bias.iter_mut().zip(&conv.bias).for_each(|(to, from)| *to = *from);
    Tail::Columns { taps, bias }
}
