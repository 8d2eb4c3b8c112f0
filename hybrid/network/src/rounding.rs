//! Rounds a file's weights to the integers of a network.
//!
//! An activation `a` of channel `c` is the integer `round(a · A[c])`, a weight from channel `i` to channel `o` is
//! `round(w · B[o] / A[i])`, where `B[o] = A[o] · 2^shift`. A convolution sums products in 32 bits, adds the bias and
//! half a unit, shifts to the right by `shift` and saturates to 16 bits.
//!
//! - Inputs: `2·Y − 255`, which is exact: `A` is 510.
//! - Between convolutions: `A[c]` makes the channel's usual range [`USUAL`], a quarter of what fits. Ranges below a
//!   sixteenth of the layer's largest count as that.
//! - Outputs: grey levels: `A` is 1.
//! - `shift` of a convolution is the largest with which no sum of products overflows: the magnitudes of a channel's
//!   weights add up to at most [`MAX_SUM`], so that weights are as exact as can be.
//!
//! Only `+ − × ÷` on `f64` make the integers, in a fixed order: they are the same on every machine.

use crate::Network;

use thiserror::Error;

/// The weights of a convolution, by its number, do not fit in 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the weights of convolution {0} are too large for the ranges of its channels")]
pub struct RoundingError(usize);
use crate::file::{Conv, Weights};
use crate::integers::{Layer, MAX_SHIFT};
use crate::size::Size;

/// A channel's usual range in integers: a quarter of what 16 bits hold.
const USUAL: f64 = 8192.0;
/// Maximum ratio of the ranges of two channels of a convolution.
const MAX_RATIO: f32 = 16.0;
/// Minimum of a layer's largest range, for layers whose ranges are all 0.
const MIN_RANGE: f32 = 1e-3;
/// The integer that stands for an input range of 1.
const INPUT: f64 = 510.0;
/// Maximum sum of the magnitudes of a channel's weights: 2¹⁵ times it fits in 32 bits.
const MAX_SUM: f64 = 65_000.0;
/// Maximum magnitude of a bias. It brings a sum beyond 32 bits only where nearly all inputs are saturated. Sums wrap
/// then, on all machines alike.
const MAX_BIAS: f64 = (1 << 30) as f64;

impl Network {
    /// Rounds a network's weights to integers. Weights too small for integers become 0; the largest are kept exactly.
    ///
    /// # Errors
    ///
    /// Fails if a convolution's weights are too large for its channels' ranges.
    pub fn new(weights: &Weights) -> Result<Self, RoundingError> {
        let size = weights.size();
        let mut unit = vec![INPUT; size.shape(0).0];
        let layers = weights.convs().iter().enumerate().map(|(n, conv)| {
            let out: Vec<f64> =
                if size.is_last(n) { vec![1.0; conv.bias.len()] } else { units(&conv.range) };
            let layer = rounded_layer(size, n, conv, &unit, &out);
            unit = out;
            layer
        });
        Ok(Self::of(size, layers.collect::<Result<_, _>>()?))
    }
}

/// The integer that stands for 1, for each channel. A channel with a far smaller range than others counts as if it
/// had a larger one. Otherwise its weights would leave no room for theirs.
fn units(range: &[f32]) -> Vec<f64> {
    let min = range.iter().copied().fold(MIN_RANGE, f32::max) / MAX_RATIO;
    range.iter().map(|&r| USUAL / f64::from(r.max(min))).collect()
}

/// Convolution `n` in integers. `unit` and `out` have the integers that stand for 1, by input and by output.
fn rounded_layer(
    size: Size,
    n: usize,
    conv: &Conv,
    unit: &[f64],
    out: &[f64],
) -> Result<Layer, RoundingError> {
    let (inputs, outputs) = size.shape(n);
    let exact =
        |at: usize| f64::from(conv.weights[at]) * out[at / (9 * inputs)] / unit[at / 9 % inputs];
    let magnitude = |o: usize| -> f64 {
        (o * 9 * inputs..(o + 1) * 9 * inputs).map(|at| exact(at).abs()).sum()
    };
    // Rounding adds half a unit to each magnitude at most.
    let room = MAX_SUM - (inputs * 9) as f64 / 2.0;
    let largest = (0..outputs).map(magnitude).fold(0.0, f64::max);
    let fits = |shift: &u32| largest * f64::from(1u32 << shift) <= room;
    let shift = (1..=MAX_SHIFT).rev().find(fits).ok_or(RoundingError(n))?;
    let factor = f64::from(1u32 << shift);
    let rounded_weight = |at| rounded(exact(at) * factor, f64::from(i16::MAX)) as i16;
    let weights: Vec<i16> = (0..size.count(n)).map(rounded_weight).collect();
    let half = 1 << (shift - 1);
    let rounded_bias = |(&bias, &out): (&f32, &f64)| {
        rounded(f64::from(bias) * out * factor, MAX_BIAS) as i32 + half
    };
    let bias: Vec<i32> = conv.bias.iter().zip(out).map(rounded_bias).collect();
    Ok(Layer::new(size, n, &weights, &bias, shift))
}

/// The nearest integer, halves upwards, with a magnitude of at most `max`.
fn rounded(v: f64, max: f64) -> f64 {
    (v + 0.5).floor().clamp(-max, max)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{BTreeMap, HashMap};

    use safetensors::tensor::{Dtype, TensorView};
    use windlass_vp9::Plane;
    use windlass_vp9::simd::Isa;

    use super::*;
    use crate::{Changed, Runner};

    /// A file of weights to be changed.
    pub(crate) struct Tensors {
        metadata: HashMap<String, String>,
        tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
    }

    impl Tensors {
        /// A chain with weights that depend on the seed alone.
        pub(crate) fn random(scale: usize, channels: usize, convs: usize, seed: u64) -> Self {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = move || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            let words = [("arch", "chain"), ("inputs", "luma+twin"), ("base", "twin")];
            let mut out = Self {
                metadata: words.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
                tensors: BTreeMap::new(),
            };
            out.set("scale", &scale.to_string());
            for n in 0..convs {
                let inputs = if n == 0 { 1 + scale * scale } else { channels };
                let outputs = if n + 1 == convs { scale * scale } else { channels };
                let gain = if n + 1 == convs { 4.0 } else { (2.0 / (9 * inputs) as f32).sqrt() };
                let mut fill = |name: &str, shape: &[usize], map: &dyn Fn(f32) -> f32| {
                    let count = shape.iter().product();
                    let bytes = (0..count).flat_map(|_: usize| map(next()).to_le_bytes()).collect();
                    out.tensors.insert(format!("conv{n}.{name}"), (shape.to_vec(), bytes));
                };
                fill("weight", &[outputs, inputs, 3, 3], &|v| v * gain);
                fill("bias", &[outputs], &|v| v * 0.1);
                if n + 1 < convs {
                    fill("range", &[outputs], &|v| 0.5 + 0.4 * v);
                }
            }
            out
        }

        pub(crate) fn set(&mut self, key: &str, value: &str) {
            self.metadata.insert(key.to_owned(), value.to_owned());
        }

        pub(crate) fn put(&mut self, name: &str, shape: &[usize], value: f32) {
            let count = shape.iter().product();
            let bytes = (0..count).flat_map(|_: usize| value.to_le_bytes()).collect();
            self.tensors.insert(name.to_owned(), (shape.to_vec(), bytes));
        }

        /// Changes one number of a tensor.
        pub(crate) fn change(&mut self, name: &str, at: usize, value: f32) {
            let (_, bytes) = self.tensors.get_mut(name).unwrap();
            bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        }

        pub(crate) fn remove(&mut self, name: &str) {
            self.tensors.remove(name);
        }

        pub(crate) fn file(&self) -> Vec<u8> {
            let views = self.tensors.iter().map(|(name, (shape, bytes))| {
                (name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
            });
            safetensors::serialize(views, Some(self.metadata.clone())).unwrap()
        }
    }

    /// Runs a network on a small picture.
    pub(crate) fn run(network: &Network) {
        let scale = network.scale();
        let (low, high) = (Plane::filled(9, 5, 200), Plane::filled(9 * scale, 5 * scale, 10));
        let mut shown = high.clone();
        let mut runner = Runner::new(Isa::detect());
        runner.run(network, (&low).into(), (&high).into(), Changed::All, &mut shown);
    }

    /// A network with weights that depend on the seed alone.
    pub(crate) fn random(scale: usize, channels: usize, convs: usize, seed: u64) -> Weights {
        Weights::from_safetensors(&Tensors::random(scale, channels, convs, seed).file()).unwrap()
    }

    #[test]
    fn no_sum_of_products_overflows() {
        for (scale, channels, convs) in [(2, 8, 4), (2, 16, 5), (4, 16, 5), (3, 64, 3)] {
            for layer in Network::new(&random(scale, channels, convs, 7)).unwrap().layers() {
                for o in 0..layer.outputs {
                    let pairs = layer.weights.chunks_exact(2 * layer.outputs);
                    let sum: i64 = pairs
                        .flat_map(|pair| &pair[2 * o..2 * o + 2])
                        .map(|&w| i64::from(w).abs())
                        .sum();
                    assert!(sum <= MAX_SUM as i64);
                }
            }
        }
    }

    #[test]
    fn weights_use_most_of_the_room() {
        let network = Network::new(&random(2, 16, 5, 3)).unwrap();
        for layer in network.layers() {
            let pairs = layer.weights.chunks_exact(2 * layer.outputs);
            let mut sums = vec![0i64; layer.outputs];
            for pair in pairs {
                for (sum, pair) in sums.iter_mut().zip(pair.chunks_exact(2)) {
                    *sum += i64::from(pair[0]).abs() + i64::from(pair[1]).abs();
                }
            }
            assert!(sums.iter().any(|&sum| sum > MAX_SUM as i64 / 2 - 200), "{sums:?}");
        }
    }

    #[test]
    fn a_channel_that_is_always_zero_leaves_the_others_their_precision() {
        let mut tensors = Tensors::random(2, 16, 3, 3);
        let whole = Network::new(&Weights::from_safetensors(&tensors.file()).unwrap()).unwrap();
        tensors.change("conv0.range", 3, 0.0);
        let dead = Network::new(&Weights::from_safetensors(&tensors.file()).unwrap()).unwrap();
        let shifts =
            |network: &Network| network.layers().iter().map(|l| l.shift).collect::<Vec<_>>();
        assert!(
            shifts(&dead)[0] + 4 >= shifts(&whole)[0],
            "{:?} {:?}",
            shifts(&dead),
            shifts(&whole)
        );
        assert_eq!(shifts(&dead)[2], shifts(&whole)[2]);
    }

    #[test]
    fn weights_far_beyond_the_ranges_are_refused() {
        let mut tensors = Tensors::random(2, 8, 3, 3);
        tensors.put("conv1.weight", &[8, 8, 3, 3], 9e5);
        let weights = Weights::from_safetensors(&tensors.file()).unwrap();
        assert_eq!(Network::new(&weights), Err(RoundingError(1)));
    }
}
