//! Weights in the order in which `network.cu` loads them: fragments of `mma.m16n8k16`'s second operand in half
//! precision, then the biases in single.
//!
//! A convolution is stored as passes (of up to four tiles of 8 outputs), groups of 16 inputs, columns of taps, rows of
//! taps, and then tiles: in pairs if their number is even. For each of 32 lanes, each tile has two numbers of 32 bits.

use super::pack_strips;
use super::plan::Shape;
use super::strips;
use super::variant::Variant;
use crate::number::half_bits;
use crate::{Architecture, Conv, Model};

/// Factor on the first convolution's weights. The kernel computes inputs as (2 × sample − 255) / 512 instead of sample
/// / 255 − 0.5.
const INPUT_FACTOR: f32 = 512.0 / 510.0;

/// One convolution as the kernel runs it.
struct Layout {
    inputs: usize,
    outputs: usize,
    taps: usize,
    /// Tiles of 8 outputs in each pass.
    tiles: usize,
}

impl Layout {
    fn of(architecture: &Architecture, n: usize) -> Self {
        let shape = Shape::of(architecture);
        let channels = shape.channels;
        if n + 1 == architecture.convs {
            let tiles = shape.out_tiles;
            return Layout { inputs: channels, outputs: 8 * tiles, taps: 9, tiles };
        }
        let tiles = match channels / 8 {
            6 => 3,
            chunks => chunks.min(4),
        };
        let (inputs, taps) = match (n, shape.head_channels) {
            (0, 0) => (16, 1),
            (0, head) => (head, 9),
            _ => (channels, 9),
        };
        Layout { inputs, outputs: channels, taps, tiles }
    }

    fn bytes(&self) -> usize {
        2 * self.taps * self.inputs * self.outputs + 4 * self.outputs
    }
}

/// Bytes of a packed network.
pub(super) fn packed_len(architecture: &Architecture, variant: Variant) -> usize {
    (0..architecture.convs).map(|n| conv_len(architecture, variant, n)).sum()
}

/// Bytes of packed convolution `n`.
fn conv_len(architecture: &Architecture, variant: Variant, n: usize) -> usize {
    if in_strips(architecture, variant, n) {
        return strips::conv_bytes(Shape::of(architecture).channels);
    }
    Layout::of(architecture, n).bytes()
}

fn in_strips(architecture: &Architecture, variant: Variant, n: usize) -> bool {
    variant != Variant::Mma && n > 0 && n + 1 < architecture.convs
}

/// Packs a network's weights.
pub(super) fn pack(model: &Model, variant: Variant) -> Box<[u8]> {
    let architecture = model.architecture();
    let mut packed = vec![0; packed_len(&architecture, variant)].into_boxed_slice();
    let mut out = &mut packed[..];
    for (n, conv) in model.convs().iter().enumerate() {
        let (part, rest) = out.split_at_mut(conv_len(&architecture, variant, n));
        out = rest;
        if in_strips(&architecture, variant, n) {
            pack_strips::pack_conv(model, n, part);
            continue;
        }
        let layout = Layout::of(&architecture, n);
        let (outputs, inputs) = architecture.shape(n);
        let factor = if n == 0 { INPUT_FACTOR } else { 1.0 };
        let weight = |output: usize, input: usize, tap: usize| {
            // One tap of nine channels is nine taps of one channel.
            let (input, tap) = if layout.taps == 1 { (0, input) } else { (input, tap) };
            let held = output < outputs && input < inputs && tap < 9;
            if held { factor * conv.weights[(output * inputs + input) * 9 + tap] } else { 0.0 }
        };
        pack_conv(&layout, conv, weight, part);
    }
    packed
}

fn pack_conv(
    layout: &Layout,
    conv: &Conv,
    weight: impl Fn(usize, usize, usize) -> f32,
    out: &mut [u8],
) {
    let (weights, biases) = out.split_at_mut(2 * layout.taps * layout.inputs * layout.outputs);
    let mut words = weights.as_chunks_mut::<2>().0.iter_mut();
    let side = if layout.taps == 9 { 3 } else { 1 };
    let group = if layout.tiles.is_multiple_of(2) { 2 } else { 1 };
    for pass in 0..layout.outputs / (8 * layout.tiles) {
        for k in 0..layout.inputs / 16 {
            for (column, row) in (0..side * side).map(|tap| (tap / side, tap % side)) {
                for first in (0..layout.tiles).step_by(group) {
                    for index in 0..32 * group * 4 {
                        let (lane, tile) = (index / (4 * group), index / 4 % group);
                        let (register, half) = (index / 2 % 2, index % 2);
                        let output = (pass * layout.tiles + first + tile) * 8 + lane / 4;
                        let input = 16 * k + 2 * (lane % 4) + 8 * register + half;
                        if let Some(word) = words.next() {
                            let value = weight(output, input, row * side + column);
                            *word = half_bits(value).to_le_bytes();
                        }
                    }
                }
            }
        }
    }
    for (n, bias) in biases.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *bias = conv.bias.get(n).copied().unwrap_or(0.0).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_has_its_place() {
        // So many different weights that none is there twice: their sum tells.
        for architecture in [
            Architecture::chain(2, 8, 3),
            Architecture::blocks(3, 48, 1).with_twin(),
            Architecture::chain(4, 64, 2),
        ] {
            let model = Model::random(architecture, 3).unwrap();
            let packed = pack(&model, Variant::Mma);
            let mut at = 0;
            for n in 0..architecture.convs {
                let layout = Layout::of(&architecture, n);
                let halves = layout.taps * layout.inputs * layout.outputs;
                let words = packed[at..at + 2 * halves].as_chunks::<2>().0;
                let sum: f64 = words.iter().map(|w| half(u16::from_le_bytes(*w)).abs()).sum();
                let factor = if n == 0 { f64::from(INPUT_FACTOR) } else { 1.0 };
                let expected: f64 =
                    model.convs()[n].weights.iter().map(|w| factor * f64::from(*w).abs()).sum();
                assert!(
                    (sum / expected - 1.0).abs() < 1e-3,
                    "{architecture} {n}: {sum} {expected}"
                );
                at += layout.bytes();
            }
            assert_eq!(at, packed.len());
        }
    }

    fn half(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let magnitude = if exponent == 0 {
            fraction * (-24f64).exp2()
        } else {
            (1024.0 + fraction) * f64::from(exponent - 25).exp2()
        };
        sign * magnitude
    }
}
