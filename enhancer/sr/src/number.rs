//! The types of number that networks run in on the CPU: what a pixel is between the layers, and what weights are.
//!
//! Kernels multiply *words*, of one channel in single precision and of two in the narrower types, and add them up in 16
//! lanes, one for each output channel.

use crate::model::{Model, Packs};
use crate::packed::Packed;

/// Channels per group in a pixel.
pub(super) const LANES: usize = 16;

/// One pixel's channels in single precision.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Pixel(pub [f32; LANES]);

/// Maximum finite number in half precision.
const MAX_HALF: f32 = 65_504.0;

/// A type of number.
pub(super) trait Number: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Channels of a word.
    const WORD: usize;
    /// A pixel's channels, 16 of them.
    type Cell: Copy + Send + Sync + std::fmt::Debug + 'static;
    /// A word of weights for each of 16 outputs, or the initial sums of a kernel.
    type Taps: Copy + Send + Sync + std::fmt::Debug + 'static;

    /// A pixel of zeros.
    const ZERO: Self::Cell;
    /// Weights that are all zero.
    const NO_TAPS: Self::Taps;

    /// Sets a channel of a pixel.
    fn set(cell: &mut Self::Cell, channel: usize, value: f32);
    /// Sets the weight of a channel of the word for an output.
    fn set_tap(taps: &mut Self::Taps, output: usize, channel: usize, weight: f32);
    /// Sets the initial sum of an output.
    fn set_bias(taps: &mut Self::Taps, output: usize, bias: f32);
    /// The place in which a model keeps its weights of this type; they are made when first asked for.
    fn packed(packs: &Packs, make: impl FnOnce() -> Packed<Self>) -> &Packed<Self>;
    /// Packs a model's weights, or returns them if that is done.
    fn of(model: &Model) -> &Packed<Self> {
        Self::packed(model.packs(), || Packed::new(&model.architecture(), model.convs()))
    }
}

/// Single precision, which the other types are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct F32;

impl Number for F32 {
    const WORD: usize = 1;
    type Cell = Pixel;
    type Taps = Pixel;
    const ZERO: Pixel = Pixel([0.0; LANES]);
    const NO_TAPS: Pixel = Pixel([0.0; LANES]);

    fn set(cell: &mut Pixel, channel: usize, value: f32) {
        cell.0[channel] = value;
    }

    fn set_tap(taps: &mut Pixel, output: usize, _: usize, weight: f32) {
        taps.0[output] = weight;
    }

    fn set_bias(taps: &mut Pixel, output: usize, bias: f32) {
        taps.0[output] = bias;
    }

    fn packed(packs: &Packs, make: impl FnOnce() -> Packed<Self>) -> &Packed<Self> {
        packs.f32.get_or_init(make)
    }
}

/// A pixel's channels in 16 bits each, two in a word, the first one in its low half.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct NarrowPixel(pub [u32; LANES / 2]);

/// Two weights of 16 bits for each output, the first one in the low half; or the bits of a sum.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct NarrowTaps(pub [u32; LANES]);

/// Sets the low half of a word (0) or the high one (1).
#[cfg(target_arch = "x86_64")]
fn set_part(word: &mut u32, part: usize, bits: u16) {
    let shift = 16 * part;
    *word = *word & !(0xffff << shift) | u32::from(bits) << shift;
}

/// Makes a type of 16-bit number: the bits of a value, those of an initial sum, and where a model keeps its weights.
#[cfg(target_arch = "x86_64")]
macro_rules! narrow {
    ($number:ident, $bits:expr, $sum_bits:expr, $pack:ident) => {
        impl Number for $number {
            const WORD: usize = 2;
            type Cell = NarrowPixel;
            type Taps = NarrowTaps;
            const ZERO: NarrowPixel = NarrowPixel([0; LANES / 2]);
            const NO_TAPS: NarrowTaps = NarrowTaps([0; LANES]);

            fn set(cell: &mut NarrowPixel, channel: usize, value: f32) {
                set_part(&mut cell.0[channel / 2], channel % 2, $bits(value));
            }

            fn set_tap(taps: &mut NarrowTaps, output: usize, channel: usize, weight: f32) {
                set_part(&mut taps.0[output], channel, $bits(weight));
            }

            fn set_bias(taps: &mut NarrowTaps, output: usize, bias: f32) {
                taps.0[output] = ($sum_bits)(bias);
            }

            fn packed(packs: &Packs, make: impl FnOnce() -> Packed<Self>) -> &Packed<Self> {
                packs.$pack.get_or_init(make)
            }
        }
    };
}

/// Half precision: 11 significant bits, up to 65 504. Sums are in half precision too, apart for even and odd channels.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct F16;

#[cfg(target_arch = "x86_64")]
narrow!(F16, half_bits, |bias| u32::from(half_bits(bias)), f16);

/// bfloat16: 8 significant bits, with the range of single precision. Sums are in single precision.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16;

#[cfg(target_arch = "x86_64")]
narrow!(Bf16, bf16_bits, f32::to_bits, bf16);

/// Bits of a number in half precision, rounded to the nearest, ties to even. Larger magnitudes become the maximum.
pub(super) fn half_bits(value: f32) -> u16 {
    let value = value.clamp(-MAX_HALF, MAX_HALF);
    let (bits, sign) = (value.to_bits() & 0x7fff_ffff, (value.to_bits() >> 16 & 0x8000) as u16);
    let magnitude = if bits < 0x3880_0000 {
        // Below the least normal number: a multiple of 2⁻²⁴.
        (value.abs() * f32::from(1u16 << 12) * f32::from(1u16 << 12)).round_ties_even() as u16
    } else {
        let rounded = bits + 0x0fff + (bits >> 13 & 1);
        ((rounded >> 13) - (112 << 10)) as u16
    };
    sign | magnitude
}

/// Bits of a finite number as bfloat16 ("brain floating point"), rounded to the nearest, ties to even.
#[cfg(target_arch = "x86_64")]
fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_the_nearest_even_one() {
        for (value, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.5, 0xc100),
            (65_504.0, 0x7bff),
            (1e9, 0x7bff),
            (-1e9, 0xfbff),
            (1.0 + 1.0 / 2_048.0, 0x3c00),
            (1.0 + 3.0 / 2_048.0, 0x3c02),
            (1.0 + 1.1 / 2_048.0, 0x3c01),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 0x0001),
            (2.9e-8, 0x0000),
            (6.1e-5, 0x03ff),
            (0.099_975_586, 0x2e66),
        ] {
            assert_eq!(half_bits(value), bits, "{value}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn bfloat16_values_are_rounded_to_the_nearest_even_one() {
        for (value, bits) in [
            (0.0, 0x0000),
            (1.0, 0x3f80),
            (-2.5, 0xc020),
            (1.0 + 1.0 / 256.0, 0x3f80),
            (1.0 + 3.0 / 256.0, 0x3f82),
            (1.0 + 1.1 / 256.0, 0x3f81),
            (1e6, 0x4974),
        ] {
            assert_eq!(bf16_bits(value), bits, "{value}");
        }
    }
}
