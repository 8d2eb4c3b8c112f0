//! A network in 16-bit integers, as it is run.
//!
//! A convolution sums products in 32 bits, adds the bias and half a unit, shifts to the right and saturates to 16 bits.
//! `rounding` makes the integers of a file's weights.

use crate::size::Size;

/// Maximum shift of a convolution's sums, in bits.
pub(crate) const MAX_SHIFT: u32 = 24;

/// A network that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    size: Size,
    layers: Vec<Layer>,
}

/// A convolution in integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Number of input channels, padded to an even number.
    pub inputs: usize,
    /// Number of output channels, padded to a multiple of 8.
    pub outputs: usize,
    /// Number of the `outputs` that are used; the others are padding.
    pub used: usize,
    /// The weights, two for each output: by row of the window, then by pair of neighbouring inputs along the row
    /// (from left to right, by channel), then by output.
    pub weights: Vec<i16>,
    /// The bias of each output channel, with half a unit added for rounding.
    pub bias: Vec<i32>,
    pub shift: u32,
    pub relu: bool,
}

impl Network {
    pub(crate) fn of(size: Size, layers: Vec<Layer>) -> Self {
        Self { size, layers }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// HR size over LR size: 2, 3 or 4.
    pub fn scale(&self) -> usize {
        self.size.scale()
    }

    /// How far around a low sample the network looks, in low samples in each direction.
    pub fn reach(&self) -> usize {
        self.layers.len()
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The same network with another last convolution.
    pub(crate) fn ending_in(&self, last: Layer) -> Self {
        let before = &self.layers[..self.layers.len() - 1];
        Self { size: self.size, layers: before.iter().cloned().chain([last]).collect() }
    }
}

impl Layer {
    /// Convolution `n` of a network, from weights `[out, in, 3, 3]` and biases `[out]`, which include half a unit.
    pub(crate) fn new(size: Size, n: usize, weights: &[i16], bias: &[i32], shift: u32) -> Self {
        let (inputs, outputs) = size.shape(n);
        let padded = (inputs.next_multiple_of(2), outputs.next_multiple_of(8));
        let mut layer = Self {
            inputs: padded.0,
            outputs: padded.1,
            used: outputs,
            weights: vec![0; 9 * padded.0 * padded.1],
            bias: vec![0; padded.1],
            shift,
            relu: !size.is_last(n),
        };
        layer.bias[..outputs].copy_from_slice(bias);
        for (at, &weight) in weights.iter().enumerate() {
            let place = layer.place(at / (9 * inputs), at / 9 % inputs, at % 9);
            layer.weights[place] = weight;
        }
        layer
    }

    /// The index of the weight from input `i` to output `o`, at place `at` of the window, row by row.
    pub(crate) fn place(&self, o: usize, i: usize, at: usize) -> usize {
        let tap = at % 3 * self.inputs + i;
        let pair = at / 3 * (3 * self.inputs / 2) + tap / 2;
        (pair * self.outputs + o) * 2 + tap % 2
    }
}
