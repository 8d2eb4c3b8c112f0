//! Sixteen lanes, as each instruction set holds them, and sums of products in single precision.
//!
//! The methods melt into the kernels of `super`, which carry the instruction set. An
//! implementation for an instruction set must be used inside such a function only.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_max_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

use crate::number::{F32, LANES, Number, Pixel};

/// One pixel's channels in registers, between the sums and the rings.
pub(super) trait Values<C>: Copy {
    fn load(pixel: &C) -> Self;
    fn store(self, pixel: &mut C);
    /// `self + other`, in each lane.
    fn add(self, other: Self) -> Self;
    /// The greater of each lane and zero.
    fn relu(self) -> Self;
}

/// One pixel's channels in single precision, with the operations that the first layer needs.
pub(super) trait Lanes: Values<Pixel> {
    /// `self + factor × other`, in each lane.
    fn add_product(self, factor: f32, other: Self) -> Self;
}

/// One pixel's sums in registers; `BLOCK` of them accumulate at once.
pub(super) trait Form<const BLOCK: usize>: Copy {
    type Number: Number;
    /// Type of the finished sums.
    type Values: Values<<Self::Number as Number>::Cell>;
    /// The pixel's channels in single precision, for the first layer.
    type Lanes: Lanes;
    /// Type of a vector of weights.
    type Weights: Copy;
    /// Type of a word of an input, broadcast to every lane.
    type Word: Copy;

    /// Sums that start from a bias.
    fn start(bias: &<Self::Number as Number>::Taps) -> Self;
    fn weights(taps: &<Self::Number as Number>::Taps) -> Self::Weights;
    fn word(pixel: &<Self::Number as Number>::Cell, word: usize) -> Self::Word;
    /// Adds the products of a word's channels and their weights, in each lane.
    fn add_products(self, word: Self::Word, weights: Self::Weights) -> Self;
    fn values(self) -> Self::Values;
    /// Converts the first layer's values to this form.
    fn narrow(lanes: Self::Lanes) -> Self::Values;
    /// Writes the sums in single precision.
    fn widen(self, pixel: &mut Pixel);

    /// From `start`, adds for every row, word and column: the input's word × the tap's weights.
    /// Rows have `BLOCK + 2` pixels, the first is that before the first output's; weights lie as `Layer` has them.
    fn accumulate(
        start: [Self; BLOCK],
        rows: [&[<Self::Number as Number>::Cell]; 3],
        taps: &[<Self::Number as Number>::Taps],
    ) -> [Self; BLOCK];
    /// From `start`, adds the products of one column of taps, at the output's own place; rows have `BLOCK` pixels.
    fn accumulate_columns(
        start: [Self; BLOCK],
        rows: [&[<Self::Number as Number>::Cell]; 3],
        taps: &[<Self::Number as Number>::Taps],
    ) -> [Self; BLOCK];
    /// From `start`, adds the products of one pixel and one tap `rounds` times: the speed of the instructions alone,
    /// for measurements.
    fn repeat(
        start: [Self; BLOCK],
        pixel: &<Self::Number as Number>::Cell,
        taps: &<Self::Number as Number>::Taps,
        rounds: usize,
    ) -> [Self; BLOCK];
}

/// A pixel of a form's type of number.
pub(super) type Cell<F, const BLOCK: usize> = <<F as Form<BLOCK>>::Number as Number>::Cell;
/// Weights of a form's type of number.
pub(super) type Taps<F, const BLOCK: usize> = <<F as Form<BLOCK>>::Number as Number>::Taps;

/// Adds a word's products by three columns of taps. A word is broadcast once, and used for the three outputs that see
/// it, so that loads are a third of the products; all sums stay in registers.
macro_rules! slide {
    ($block:literal, $row:ident, $word:ident, $taps:ident; $p:ident $q:ident $($rest:ident)+) => {
        let word = <Self as Form<$block>>::word(&$row[0], $word);
        $p = <Self as Form<$block>>::add_products($p, word, $taps[0]);
        let word = <Self as Form<$block>>::word(&$row[1], $word);
        $p = <Self as Form<$block>>::add_products($p, word, $taps[1]);
        $q = <Self as Form<$block>>::add_products($q, word, $taps[0]);
        slide!(@ $block, $row, $word, $taps, 2; $p $q $($rest)+);
    };
    (@ $block:literal, $row:ident, $word:ident, $taps:ident, $at:expr; $p:ident $q:ident $r:ident $($rest:ident)*) => {
        let word = <Self as Form<$block>>::word(&$row[$at], $word);
        $p = <Self as Form<$block>>::add_products($p, word, $taps[2]);
        $q = <Self as Form<$block>>::add_products($q, word, $taps[1]);
        $r = <Self as Form<$block>>::add_products($r, word, $taps[0]);
        slide!(@ $block, $row, $word, $taps, $at + 1; $q $r $($rest)*);
    };
    (@ $block:literal, $row:ident, $word:ident, $taps:ident, $at:expr; $p:ident $q:ident) => {
        let word = <Self as Form<$block>>::word(&$row[$at], $word);
        $p = <Self as Form<$block>>::add_products($p, word, $taps[2]);
        $q = <Self as Form<$block>>::add_products($q, word, $taps[1]);
        let word = <Self as Form<$block>>::word(&$row[$at + 1], $word);
        $q = <Self as Form<$block>>::add_products($q, word, $taps[2]);
    };
}

/// Adds a word's products as `slide!` does, with one column's weights in registers at a time: for CPUs with few
/// registers.
macro_rules! by_column {
    ($block:literal, $row:ident, $word:ident, $taps:ident; $($sum:ident $at:literal),+) => {
        for (column, taps) in $taps.into_iter().enumerate() {
            $($sum = <Self as Form<$block>>::add_products(
                $sum,
                <Self as Form<$block>>::word(&$row[$at + column], $word),
                taps,
            );)+
        }
    };
}

/// Writes the sums of a form with one variable for each: as an array, compilers keep them in memory, at a third of the
/// speed.
macro_rules! accumulate {
    ($block:literal $way:ident: $($sum:ident $at:literal),+) => {
        accumulate!(@ $block $way ($($sum $at),+) $($sum $at),+);
    };
    (@ $block:literal slide $all:tt $($sum:ident $at:literal),+) => {
        accumulate!(@ $block $all (slide $($sum)+) $($sum $at),+);
    };
    (@ $block:literal by_column $all:tt $($sum:ident $at:literal),+) => {
        accumulate!(@ $block $all (by_column $($sum $at),+) $($sum $at),+);
    };
    (@ $block:literal $all:tt ($way:ident $($way_sums:tt)+) $($sum:ident $at:literal),+) => {
        #[inline(always)]
        fn accumulate(
            start: [Self; $block],
            rows: [&[$crate::kernel::vector::Cell<Self, $block>]; 3],
            taps: &[$crate::kernel::vector::Taps<Self, $block>],
        ) -> [Self; $block] {
            let [$(mut $sum),+] = start;
            for (row, taps) in rows.iter().zip(taps.chunks_exact(taps.len() / 3)) {
                let Some(row) = row.first_chunk::<{ $block + 2 }>() else { break };
                for (word, taps) in taps.as_chunks::<3>().0.iter().enumerate() {
                    let taps = [
                        <Self as Form<$block>>::weights(&taps[0]),
                        <Self as Form<$block>>::weights(&taps[1]),
                        <Self as Form<$block>>::weights(&taps[2]),
                    ];
                    $way!($block, row, word, taps; $($way_sums)+);
                }
            }
            [$($sum),+]
        }

        #[inline(always)]
        fn accumulate_columns(
            start: [Self; $block],
            rows: [&[$crate::kernel::vector::Cell<Self, $block>]; 3],
            taps: &[$crate::kernel::vector::Taps<Self, $block>],
        ) -> [Self; $block] {
            let [$(mut $sum),+] = start;
            for (row, taps) in rows.iter().zip(taps.chunks_exact(taps.len() / 3)) {
                let Some(row) = row.first_chunk::<$block>() else { break };
                for (word, taps) in taps.iter().enumerate() {
                    let taps = <Self as Form<$block>>::weights(taps);
                    $($sum = <Self as Form<$block>>::add_products(
                        $sum,
                        <Self as Form<$block>>::word(&row[$at], word),
                        taps,
                    );)+
                }
            }
            [$($sum),+]
        }

        #[inline(always)]
        fn repeat(
            start: [Self; $block],
            pixel: &$crate::kernel::vector::Cell<Self, $block>,
            taps: &$crate::kernel::vector::Taps<Self, $block>,
            rounds: usize,
        ) -> [Self; $block] {
            let [$(mut $sum),+] = start;
            let word = <Self as Form<$block>>::word(pixel, 0);
            let taps = <Self as Form<$block>>::weights(taps);
            for _ in 0..rounds {
                $($sum = <Self as Form<$block>>::add_products($sum, word, taps);)+
            }
            [$($sum),+]
        }
    };
}
pub(super) use {accumulate, slide};

/// Methods that are the same for every form in single precision.
macro_rules! single {
    ($block:literal $way:ident: $($sum:ident $at:literal),+) => {
        type Number = F32;
        type Values = Self;
        type Lanes = Self;
        type Weights = Self;
        type Word = f32;

        accumulate!($block $way: $($sum $at),+);

        #[inline(always)]
        fn start(bias: &Pixel) -> Self {
            Self::load(bias)
        }

        #[inline(always)]
        fn weights(taps: &Pixel) -> Self {
            Self::load(taps)
        }

        #[inline(always)]
        fn word(pixel: &Pixel, word: usize) -> f32 {
            pixel.0[word]
        }

        #[inline(always)]
        fn add_products(self, word: f32, weights: Self) -> Self {
            self.add_product(word, weights)
        }

        #[inline(always)]
        fn values(self) -> Self {
            self
        }

        #[inline(always)]
        fn narrow(lanes: Self) -> Self {
            lanes
        }

        #[inline(always)]
        fn widen(self, pixel: &mut Pixel) {
            self.store(pixel);
        }
    };
}

/// Plain code, with the target's fused multiply-add where `FUSED` (elsewhere the call is slow).
#[derive(Clone, Copy)]
pub(super) struct Plain<const FUSED: bool>([f32; LANES]);

impl<const FUSED: bool> Form<4> for Plain<FUSED> {
    single!(4 by_column: a 0, b 1, c 2, d 3);
}

impl<const FUSED: bool> Lanes for Plain<FUSED> {
    #[inline(always)]
    fn add_product(mut self, factor: f32, other: Self) -> Self {
        for lane in 0..LANES {
            let (sum, weight) = (&mut self.0[lane], other.0[lane]);
            *sum = if FUSED { factor.mul_add(weight, *sum) } else { factor * weight + *sum };
        }
        self
    }
}

impl<const FUSED: bool> Values<Pixel> for Plain<FUSED> {
    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        Plain(pixel.0)
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        pixel.0 = self.0;
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

/// Sixteen lanes in two AVX registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256, __m256);

#[cfg(target_arch = "x86_64")]
impl Form<6> for Avx2 {
    single!(6 by_column: a 0, b 1, c 2, d 3, e 4, f 5);
}

// SAFETY of the blocks below: a `Pixel` is 64 readable (or writable) bytes and the accesses are
// unaligned ones; AVX2 and FMA are there, because only functions with these features use `Avx2`.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn add_product(self, factor: f32, other: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let factor = _mm256_set1_ps(factor);
            Avx2(_mm256_fmadd_ps(factor, other.0, self.0), _mm256_fmadd_ps(factor, other.1, self.1))
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Values<Pixel> for Avx2 {
    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        let at = pixel.0.as_ptr();
        // SAFETY: see above.
        unsafe { Avx2(_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))) }
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        let at = pixel.0.as_mut_ptr();
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_ps(at, self.0);
            _mm256_storeu_ps(at.add(8), self.1);
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

/// Sixteen lanes in one AVX-512 register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(pub __m512);

#[cfg(target_arch = "x86_64")]
impl Form<20> for Avx512 {
    single!(20 slide: a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7, i 8, j 9, k 10, l 11, m 12, n 13, o 14, p 15, q 16, r 17,
        s 18, t 19);
}

// SAFETY of the blocks below: as for `Avx2`, with AVX-512F.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    #[inline(always)]
    fn add_product(self, factor: f32, other: Self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_fmadd_ps(_mm512_set1_ps(factor), other.0, self.0) })
    }
}

#[cfg(target_arch = "x86_64")]
impl Values<Pixel> for Avx512 {
    #[inline(always)]
    fn load(pixel: &Pixel) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_loadu_ps(pixel.0.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, pixel: &mut Pixel) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(pixel.0.as_mut_ptr(), self.0) }
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
