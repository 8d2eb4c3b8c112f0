//! Weights of the convolutions between a network's first and last in the order in which `wgmma.cu` reads them: matrices
//! of 8 outputs by 16 bytes of inputs, then biases in single precision.
//!
//! A convolution is stored as passes (of 32 outputs, or 24 where there are 48), columns of taps, 32 bytes of inputs,
//! their halves, rows of taps (2, 1, 0, 2, 1), groups of eight outputs, and then the inputs of each output.

use super::plan::Shape;
use super::strips::weight_bytes;
use crate::Model;
use crate::number::half_bits;

/// Rows of taps in the order in which they are stored.
const ROWS: [usize; 5] = [2, 1, 0, 2, 1];
/// Packs convolution `n`.
pub(super) fn pack_conv(model: &Model, n: usize, out: &mut [u8]) {
    let conv = &model.convs()[n];
    let channels = Shape::of(&model.architecture()).channels;
    let (outputs, inputs) = model.architecture().shape(n);
    let (weights, biases) = out.split_at_mut(weight_bytes(channels));
    let mut words = weights.as_chunks_mut::<2>().0.iter_mut();
    each(channels, |output, input, tap| {
        let held = output < outputs && input < inputs;
        let weight = if held { conv.weights[(output * inputs + input) * 9 + tap] } else { 0.0 };
        if let Some(word) = words.next() {
            *word = half_bits(weight).to_le_bytes();
        }
    });
    for (n, slot) in biases.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *slot = conv.bias.get(n).copied().unwrap_or(0.0).to_le_bytes();
    }
}

/// Calls `call` with output, input and tap of each weight, in the order of storage.
fn each(channels: usize, mut call: impl FnMut(usize, usize, usize)) {
    let pass = if channels == 48 { 24 } else { 32 };
    let half = 8;
    for first in (0..channels).step_by(pass) {
        for column in 0..3 {
            for inputs in (0..channels).step_by(half) {
                for row in ROWS {
                    for output in first..first + pass {
                        for input in inputs..inputs + half {
                            call(output, input, 3 * row + column);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::strips::conv_bytes;
    use super::*;
    use crate::Architecture;

    #[test]
    fn a_weight_lies_where_the_kernel_looks_for_it() {
        for architecture in [Architecture::chain(4, 64, 3), Architecture::blocks(3, 40, 1)] {
            let model = Model::random(architecture, 3).unwrap();
            let channels = Shape::of(&architecture).channels;
            let mut packed = vec![0; conv_bytes(channels)];
            pack_conv(&model, 1, &mut packed);
            let (tiles, width) = if channels == 48 { (3, 24) } else { (4, 32) };
            let half_step = 5 * tiles * 128;
            let conv = &model.convs()[1];
            let count = architecture.channels;
            for (output, input, tap) in
                [(0, 0, 0), (31, 9, 5), (count - 1, count - 1, 8), (7, 20, 3)]
            {
                for (slot, row) in ROWS.into_iter().enumerate().filter(|(_, row)| *row == tap / 3) {
                    let step = ((output / width * 3 + tap % 3) * (channels / 16) + input / 16) * 2;
                    let at = (step + input / 8 % 2) * half_step
                        + slot * tiles * 128
                        + output % width / 8 * 128
                        + output % 8 * 16
                        + input % 8 * 2;
                    let expected = conv.weights[(output * count + input) * 9 + 3 * row + tap % 3];
                    let bits = u16::from_le_bytes([packed[at], packed[at + 1]]);
                    assert_eq!(bits, half_bits(expected), "{architecture} {output} {input} {tap}");
                }
            }
            let biases = &packed[weight_bytes(channels)..];
            assert_eq!(biases[..4], conv.bias[0].to_le_bytes());
        }
    }
}
