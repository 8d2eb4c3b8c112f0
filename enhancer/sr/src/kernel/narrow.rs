//! Sums of products of 16-bit numbers, two channels at a time, in AVX-512 registers.
//!
//! The methods melt into the kernels of `super`, as those of [`super::vector`] do. The oldest compiler that builds
//! this has no stable names for arithmetic in half precision: the instructions are written out.

use std::arch::asm;
use std::arch::x86_64::{
    __m256bh, __m256i, __m512, __m512bh, __m512i, _mm256_loadu_si256, _mm256_set1_epi16,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm512_add_ps, _mm512_castsi512_ps,
    _mm512_cvtepi32_epi16, _mm512_cvtepu16_epi32, _mm512_cvtneps_pbh, _mm512_cvtph_ps,
    _mm512_cvtps_ph, _mm512_dpbf16_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_max_ps,
    _mm512_set1_epi32, _mm512_setzero_ps, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_ps,
};
use std::mem::transmute;

use super::Pixel;
use super::vector::{Avx512, Form, Values, accumulate, slide};
use crate::number::{Bf16, F16, NarrowPixel, NarrowTaps};

/// Bits of the maximum finite number in half precision, 65504.
const LARGEST: i16 = 0x7bff;
/// Bits of the minimum finite number in half precision, −65504.
const MIN: i16 = 0xfbff_u16 as i16;
/// Rounding mode of conversions: to the nearest, ties to even.
const NEAREST: i32 = 0;

/// Sums in half precision. In each 32 bits, even channels are in the low half and odd channels in the high half.
#[derive(Clone, Copy)]
pub(super) struct Avx512Half(__m512i);

/// Channels of a pixel in half precision.
#[derive(Clone, Copy)]
pub(super) struct HalfValues(__m256i);

/// `sum + a × b` in half precision, rounded once.
#[inline]
#[target_feature(enable = "avx512f,avx512fp16")]
fn add_product(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the instruction touches nothing but the register that is named, and the function has its feature.
    unsafe {
        asm!("vfmadd231ph {sum}, {a}, {b}", sum = inout(zmm_reg) sum, a = in(zmm_reg) a, b = in(zmm_reg) b,
             options(pure, nomem, nostack));
    }
    sum
}

/// Defines an instruction of two registers.
macro_rules! binary {
    ($name:ident, $instruction:literal, $class:ident, $type:ty, $features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn $name(a: $type, b: $type) -> $type {
            let out: $type;
            // SAFETY: as in `add_product`.
            unsafe {
                asm!(concat!($instruction, " {out}, {a}, {b}"), out = lateout($class) out, a = in($class) a,
                     b = in($class) b, options(pure, nomem, nostack));
            }
            out
        }
    };
}
binary!(add_wide, "vaddph", zmm_reg, __m512i, "avx512f,avx512fp16");
binary!(add_halves, "vaddph", ymm_reg, __m256i, "avx512f,avx512vl,avx512fp16");
binary!(greater_of, "vmaxph", ymm_reg, __m256i, "avx512f,avx512vl,avx512fp16");
binary!(lesser_of, "vminph", ymm_reg, __m256i, "avx512f,avx512vl,avx512fp16");

// SAFETY of the blocks below: `NarrowPixel` is 32 and `NarrowTaps` and `Pixel` are 64 readable (or writable) bytes, the
// accesses are unaligned ones; AVX-512 F, BW, VL and FP16 are there, because only functions with these use the form.
impl Form<20> for Avx512Half {
    type Number = F16;
    type Values = HalfValues;
    type Lanes = Avx512;
    type Weights = __m512i;
    type Word = __m512i;

    accumulate!(20 slide: a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7, i 8, j 9, k 10, l 11, m 12, n 13, o 14, p 15, q 16, r 17,
        s 18, t 19);

    #[inline(always)]
    fn start(bias: &NarrowTaps) -> Self {
        Avx512Half(Self::weights(bias))
    }

    #[inline(always)]
    fn weights(taps: &NarrowTaps) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(taps.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn word(pixel: &NarrowPixel, word: usize) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(pixel.0[word] as i32) }
    }

    #[inline(always)]
    fn add_products(self, word: __m512i, weights: __m512i) -> Self {
        // SAFETY: see above.
        Avx512Half(unsafe { add_product(self.0, word, weights) })
    }

    #[inline(always)]
    fn values(self) -> HalfValues {
        // SAFETY: see above.
        unsafe {
            let both = add_wide(self.0, _mm512_srli_epi32::<16>(self.0));
            HalfValues(_mm512_cvtepi32_epi16(both))
        }
    }

    #[inline(always)]
    fn narrow(lanes: Avx512) -> HalfValues {
        // SAFETY: see above.
        HalfValues(unsafe { _mm512_cvtps_ph::<NEAREST>(lanes.0) })
    }

    #[inline(always)]
    fn widen(self, pixel: &mut Pixel) {
        let values = self.values().finite();
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(pixel.0.as_mut_ptr(), _mm512_cvtph_ps(values.0)) }
    }
}

impl HalfValues {
    /// Clamps infinite sums to finite numbers, because products of infinities are not numbers.
    #[inline(always)]
    fn finite(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let least = greater_of(self.0, _mm256_set1_epi16(MIN));
            HalfValues(lesser_of(least, _mm256_set1_epi16(LARGEST)))
        }
    }
}

// SAFETY of the blocks below: as above.
impl Values<NarrowPixel> for HalfValues {
    #[inline(always)]
    fn load(pixel: &NarrowPixel) -> Self {
        // SAFETY: see above.
        HalfValues(unsafe { _mm256_loadu_si256(pixel.0.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, pixel: &mut NarrowPixel) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(pixel.0.as_mut_ptr().cast(), self.finite().0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        HalfValues(unsafe { add_halves(self.0, other.0) })
    }

    #[inline(always)]
    fn relu(self) -> Self {
        // SAFETY: see above.
        HalfValues(unsafe { greater_of(self.0, _mm256_setzero_si256()) })
    }
}

/// Sums of even and odd channels together, in single precision, of products of bfloat16 numbers.
#[derive(Clone, Copy)]
pub(super) struct Avx512Brain(__m512);

/// Channels of a pixel that is stored as bfloat16; in single precision until then.
#[derive(Clone, Copy)]
pub(super) struct Bf16Values(__m512);

// SAFETY of the blocks below: as above, with AVX-512 BF16 instead of FP16. The types of the instructions' operands are
// all of 512 (256) bits without invalid values.
impl Form<20> for Avx512Brain {
    type Number = Bf16;
    type Values = Bf16Values;
    type Lanes = Avx512;
    type Weights = __m512bh;
    type Word = __m512bh;

    accumulate!(20 slide: a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7, i 8, j 9, k 10, l 11, m 12, n 13, o 14, p 15, q 16, r 17,
        s 18, t 19);

    #[inline(always)]
    fn start(bias: &NarrowTaps) -> Self {
        // SAFETY: see above.
        Avx512Brain(unsafe { _mm512_loadu_ps(bias.0.as_ptr().cast()) })
    }

    #[inline(always)]
    fn weights(taps: &NarrowTaps) -> __m512bh {
        // SAFETY: see above.
        unsafe { transmute(_mm512_loadu_si512(taps.0.as_ptr().cast())) }
    }

    #[inline(always)]
    fn word(pixel: &NarrowPixel, word: usize) -> __m512bh {
        // SAFETY: see above.
        unsafe { transmute(_mm512_set1_epi32(pixel.0[word] as i32)) }
    }

    #[inline(always)]
    fn add_products(self, word: __m512bh, weights: __m512bh) -> Self {
        // SAFETY: see above.
        Avx512Brain(unsafe { _mm512_dpbf16_ps(self.0, word, weights) })
    }

    #[inline(always)]
    fn values(self) -> Bf16Values {
        Bf16Values(self.0)
    }

    #[inline(always)]
    fn narrow(lanes: Avx512) -> Bf16Values {
        Bf16Values(lanes.0)
    }

    #[inline(always)]
    fn widen(self, pixel: &mut Pixel) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(pixel.0.as_mut_ptr(), self.0) }
    }
}

// SAFETY of the blocks below: as above.
impl Values<NarrowPixel> for Bf16Values {
    #[inline(always)]
    fn load(pixel: &NarrowPixel) -> Self {
        // SAFETY: see above.
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(pixel.0.as_ptr().cast()));
            Bf16Values(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)))
        }
    }

    #[inline(always)]
    fn store(self, pixel: &mut NarrowPixel) {
        // SAFETY: see above.
        unsafe {
            let narrow: __m256i = transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(self.0));
            _mm256_storeu_si256(pixel.0.as_mut_ptr().cast(), narrow);
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Bf16Values(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn relu(self) -> Self {
        // SAFETY: see above.
        Bf16Values(unsafe { _mm512_max_ps(self.0, _mm512_setzero_ps()) })
    }
}
