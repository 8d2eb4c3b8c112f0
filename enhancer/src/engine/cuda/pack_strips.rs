//! Weights of the convolutions between a network's first and last in the order in which `wgmma.cu` reads them: matrices
//! of 8 outputs by 16 bytes of inputs, then biases in single precision.
//!
//! Of a convolution there follow: passes (of 32 outputs, or 24 where there are 48), columns of taps, 32 bytes of inputs, their
//! halves, rows of taps (2, 1, 0, 2, 1), eights of outputs, and then for each output its inputs.
//!
//! In e4m3 an output's weights are scaled so that the greatest is e4m3's, and a convolution's inputs by a power of two that
//! leaves [`ROOM`] above the greatest that [`Scales`] has seen. Biases are in the sums' scale; by output follows what brings
//! sums back, and then the inputs' factor and twelve bytes.

use super::plan::Shape;
use super::strips::weight_bytes;
use crate::engine::conformance::{Pictures, reference_with};
use crate::engine::number::half_bits;
use crate::engine::{Conv, Model};

/// Rows of taps as they lie in memory.
const ROWS: [usize; 5] = [2, 1, 0, 2, 1];
/// The greatest number of e4m3.
const GREATEST: f64 = 448.0;
/// How much greater inputs may be than those of the trial before they are clamped. Numbers of e4m3 are as exact at an eighth
/// of their range, so room costs nothing but the smallest ones.
const ROOM: f64 = 8.0;
/// Side of the picture that scales are taken from: edges, ramps and noise.
const TRIAL: usize = 16;

/// Factors of each convolution's inputs.
pub struct Scales(Vec<f32>);

impl Scales {
    /// From what a picture makes of the network.
    pub fn of(model: &Model) -> Scales {
        let most = std::cell::RefCell::new(vec![0.0_f64; model.convs().len()]);
        let pictures = Pictures::new(&model.architecture(), (TRIAL, TRIAL), 3);
        if let Ok(input) = pictures.input() {
            reference_with(model, &input, |n, planes, _| {
                let greatest = planes.iter().flatten().fold(0.0, |most: f64, v| most.max(v.abs()));
                most.borrow_mut()[n] = greatest;
            });
        }
        let scale = |most: f64| {
            let exponent = (GREATEST / ROOM / most.max(1e-3)).log2().floor();
            exponent.clamp(-14.0, 14.0).exp2() as f32
        };
        Scales(most.into_inner().into_iter().map(scale).collect())
    }
}

/// Packs convolution `n`, with factors of inputs in e4m3.
pub fn pack_conv(model: &Model, n: usize, scales: Option<&Scales>, out: &mut [u8]) {
    let conv = &model.convs()[n];
    let channels = Shape::of(&model.architecture()).channels;
    let (outputs, inputs) = model.architecture().shape(n);
    let weight = |output: usize, input: usize, tap: usize| {
        let held = output < outputs && input < inputs;
        if held { conv.weights[(output * inputs + input) * 9 + tap] } else { 0.0 }
    };
    let (weights, numbers) = out.split_at_mut(weight_bytes(channels, scales.is_some()));
    if let Some(Scales(scales)) = scales {
        let by_output: Vec<f64> = (0..channels).map(|output| weight_scale(conv, output)).collect();
        let mut bytes = weights.iter_mut();
        each(channels, 1, |output, input, tap| {
            if let Some(byte) = bytes.next() {
                *byte = e4m3(f64::from(weight(output, input, tap)) * by_output[output]);
            }
        });
        let scale = f64::from(scales[n]);
        let biases = by_output.iter().enumerate();
        let biases = biases.map(|(n, by)| bias(conv, n) * (by * scale) as f32);
        let back = by_output.iter().map(|by| (1.0 / (by * scale)) as f32);
        let last = [scale as f32, 0.0, 0.0, 0.0];
        put(numbers, biases.chain(back).chain(last));
    } else {
        let mut words = weights.as_chunks_mut::<2>().0.iter_mut();
        each(channels, 2, |output, input, tap| {
            if let Some(word) = words.next() {
                *word = half_bits(weight(output, input, tap)).to_le_bytes();
            }
        });
        put(numbers, (0..channels).map(|n| bias(conv, n)));
    }
}

/// Calls with output, input and tap of each weight in order, of so many bytes.
fn each(channels: usize, bytes: usize, mut call: impl FnMut(usize, usize, usize)) {
    let pass = if channels == 48 { 24 } else { 32 };
    let half = 16 / bytes;
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

fn put(to: &mut [u8], numbers: impl Iterator<Item = f32>) {
    for (slot, number) in to.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *slot = number.to_le_bytes();
    }
}

fn bias(conv: &Conv, output: usize) -> f32 {
    conv.bias.get(output).copied().unwrap_or(0.0)
}

/// Brings an output's greatest weight to e4m3's greatest.
fn weight_scale(conv: &Conv, output: usize) -> f64 {
    let inputs = conv.weights.len() / conv.bias.len();
    let own = conv.weights.chunks_exact(inputs).nth(output).unwrap_or_default();
    let most = own.iter().fold(0.0, |most: f64, w| most.max(f64::from(w.abs())));
    GREATEST / most.max(1e-6)
}

/// The nearest number of e4m3: three bits of fraction, exponents from 2⁻⁶, below them steps of 2⁻⁹.
fn e4m3(value: f64) -> u8 {
    let magnitude = value.abs().min(GREATEST);
    let exponent = if magnitude > 0.0 { magnitude.log2().floor().max(-6.0) } else { -6.0 };
    // Eighths of the power of two; eight of them are the next power.
    let steps = (magnitude / (exponent - 3.0).exp2()).round_ties_even();
    let bits = (exponent + 6.0) * 8.0 + steps;
    (bits as u8).min(126) | if value.is_sign_negative() { 128 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::strips::conv_bytes;
    use super::*;
    use crate::engine::Architecture;

    #[test]
    fn numbers_of_eight_bits_are_those_of_e4m3() {
        for (value, bits) in [
            (0.0, 0),
            (1.0, 0x38),
            (1.125, 0x39),
            (-1.875, 0xbf),
            (448.0, 126),
            (1e9, 126),
            (0.015_625, 8),
            (0.001_953_125, 1),
            (1.97, 0x40),
        ] {
            assert_eq!(e4m3(value), bits, "{value}");
        }
    }

    #[test]
    fn a_weight_lies_where_the_kernel_looks_for_it() {
        for architecture in [Architecture::chain(4, 64, 3), Architecture::blocks(3, 40, 1)] {
            let model = Model::random(architecture, 3).unwrap();
            let channels = Shape::of(&architecture).channels;
            let mut packed = vec![0; conv_bytes(channels, false)];
            pack_conv(&model, 1, None, &mut packed);
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
            let biases = &packed[weight_bytes(channels, false)..];
            assert_eq!(biases[..4], conv.bias[0].to_le_bytes());
        }
    }

    #[test]
    fn scales_leave_room_and_bring_sums_back() {
        let model = Model::random(Architecture::blocks(2, 32, 2), 3).unwrap();
        let scales = Scales::of(&model);
        assert!(scales.0[1..5].iter().all(|s| *s > 0.0 && s.log2().fract() == 0.0));
        let mut packed = vec![0; conv_bytes(32, true)];
        pack_conv(&model, 1, Some(&scales), &mut packed);
        let weights = &packed[..weight_bytes(32, true)];
        // Each output's greatest is e4m3's greatest.
        assert!(
            weights.iter().any(|bits| bits & 127 == 126) && weights.iter().all(|b| b & 127 < 127)
        );
        let number = |n: usize| {
            let at = weight_bytes(32, true) + 4 * n;
            f32::from_le_bytes([packed[at], packed[at + 1], packed[at + 2], packed[at + 3]])
        };
        assert_eq!(number(64).to_bits(), scales.0[1].to_bits());
        let bias = number(5) * number(32 + 5);
        assert!((bias - model.convs()[1].bias[5]).abs() < 1e-6);
    }
}
