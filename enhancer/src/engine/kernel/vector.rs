//! Sixteen lanes of f32, as each instruction set holds them.
//!
//! The methods melt into the kernels of `super`, which carry the instruction set. An
//! implementation for an instruction set must be used inside such a function only.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_max_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

use super::{LANES, Pixel};

/// One pixel's channels in registers; `BLOCK` of them accumulate at once.
pub(super) trait Vector<const BLOCK: usize>: Copy {
    fn load(pixel: &Pixel) -> Self;
    fn store(self, pixel: &mut Pixel);
    /// `self + factor × other`, in each lane.
    fn add_product(self, factor: f32, other: Self) -> Self;
    /// `self + other`, in each lane.
    fn add(self, other: Self) -> Self;
    /// The greater of each lane and zero.
    fn relu(self) -> Self;
    /// From `start`, adds for every tap and channel: the input's channel × the tap's weights.
    /// `inputs` has one row of `BLOCK` pixels for each of `taps`.
    fn accumulate<const TAPS: usize>(
        start: [Self; BLOCK],
        inputs: [&[Pixel]; TAPS],
        taps: &[[Pixel; LANES]],
    ) -> [Self; BLOCK];
}

/// Writes `accumulate` with one variable for each sum: as an array, compilers keep them in memory,
/// at a third of the speed.
macro_rules! accumulate {
    ($block:literal: $($sum:ident $at:literal),+) => {
        #[inline(always)]
        fn accumulate<const TAPS: usize>(
            start: [Self; $block],
            inputs: [&[Pixel]; TAPS],
            taps: &[[Pixel; LANES]],
        ) -> [Self; $block] {
            let [$(mut $sum),+] = start;
            for (inputs, tap) in inputs.iter().zip(taps) {
                let Some(inputs) = inputs.first_chunk::<$block>() else { break };
                for channel in 0..LANES {
                    let weights = <Self as Vector<$block>>::load(&tap[channel]);
                    $($sum = <Self as Vector<$block>>::add_product(
                        $sum,
                        inputs[$at][channel],
                        weights,
                    );)+
                }
            }
            [$($sum),+]
        }
    };
}

/// Plain code, with the target's fused multiply-add where `FUSED` (elsewhere the call is slow).
#[derive(Clone, Copy)]
pub(super) struct Plain<const FUSED: bool>(Pixel);

impl<const FUSED: bool> Vector<4> for Plain<FUSED> {
    accumulate!(4: a 0, b 1, c 2, d 3);

    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        Plain(*pixel)
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        *pixel = self.0;
    }

    #[inline(always)]
    fn add_product(mut self, factor: f32, other: Self) -> Self {
        for lane in 0..LANES {
            let (sum, weight) = (&mut self.0[lane], other.0[lane]);
            *sum = if FUSED { factor.mul_add(weight, *sum) } else { factor * weight + *sum };
        }
        self
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (lane, more) in self.0.iter_mut().zip(other.0) {
            *lane += more;
        }
        self
    }

    #[inline(always)]
    fn relu(mut self) -> Self {
        for lane in &mut self.0 {
            *lane = lane.max(0.0);
        }
        self
    }
}

/// Two AVX registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256, __m256);

// SAFETY of the blocks below: a `Pixel` is 64 readable (or writable) bytes and the accesses are
// unaligned ones; AVX2 and FMA are there, because only functions with these features use `Avx2`.
#[cfg(target_arch = "x86_64")]
impl Vector<6> for Avx2 {
    accumulate!(6: a 0, b 1, c 2, d 3, e 4, f 5);

    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        let at = pixel.as_ptr();
        // SAFETY: see above.
        unsafe { Avx2(_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))) }
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        let at = pixel.as_mut_ptr();
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_ps(at, self.0);
            _mm256_storeu_ps(at.add(8), self.1);
        }
    }

    #[inline(always)]
    fn add_product(self, factor: f32, other: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let factor = _mm256_set1_ps(factor);
            Avx2(_mm256_fmadd_ps(factor, other.0, self.0), _mm256_fmadd_ps(factor, other.1, self.1))
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Avx2(_mm256_add_ps(self.0, other.0), _mm256_add_ps(self.1, other.1)) }
    }

    #[inline(always)]
    fn relu(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let zero = _mm256_setzero_ps();
            Avx2(_mm256_max_ps(self.0, zero), _mm256_max_ps(self.1, zero))
        }
    }
}

/// One AVX-512 register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

// SAFETY of the blocks below: as for `Avx2`, with AVX-512F.
#[cfg(target_arch = "x86_64")]
impl Vector<12> for Avx512 {
    accumulate!(12: a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7, i 8, j 9, k 10, l 11);

    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_loadu_ps(pixel.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(pixel.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add_product(self, factor: f32, other: Self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_fmadd_ps(_mm512_set1_ps(factor), other.0, self.0) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn relu(self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_max_ps(self.0, _mm512_setzero_ps()) })
    }
}
