//! Convolution of one row of pixels of 16 channels, or of several groups of 16: the inner loop of the network.
//!
//! A pixel's group of channels is one AVX-512 register in single precision, and half of one in the narrower types. A
//! block of neighbouring pixels accumulates at once, one register or several for each: a vector of weights is loaded
//! once for the block, an input is broadcast. The kernels are written once over [`Form`]; plain code in single
//! precision defines the result, the others differ from it by fused rounding, or by that of their type of number.
//!
//! Rows of several groups hold one after the other. Each carries one zero pixel before the picture and at least one
//! after it, and has room for a block that begins inside of the picture: see [`row_len`].

// Everything here must melt into the functions that carry the instruction set.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod narrow;
mod vector;

#[cfg(target_arch = "x86_64")]
use narrow::{Avx512Brain, Avx512Half};
#[cfg(target_arch = "x86_64")]
use vector::{Avx2, Avx512};
use vector::{Cell, Form, Lanes, Plain, Taps, Values};

use crate::number::{F32, LANES, Number, Pixel};
use crate::packed::Layer;

/// Maximum of the block sizes that forms use.
const MAX_BLOCK: usize = 20;

/// Pixels that a row of `width` must hold for any block size in use.
pub(super) fn row_len(width: usize) -> usize {
    width + MAX_BLOCK + 2
}

/// Three neighbouring rows, top to bottom.
pub(super) type Rows<'a, T> = [&'a [T]; 3];

/// What is done with the sums of a convolution.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finish<'a, C> {
    /// The sums stay as they are.
    Plain,
    /// Negative sums become zero (ReLU).
    Relu,
    /// The pixels of a row are added to the sums.
    Add(&'a [C]),
    /// The pixels of two rows are added to the sums.
    AddBoth(&'a [C], &'a [C]),
}

/// Kernel of a first layer on luma: input rows, weights, what to do with the sums, width of the picture, output row.
type HeadKernel<C> = fn(Rows<'_, f32>, &Layer<F32>, Finish<'_, C>, usize, &mut [C]);

/// Kernel of any other layer: input rows, weights, what to do with the sums, width of the picture, output row.
type BodyKernel<N, C> = fn(Rows<'_, C>, &Layer<N>, Finish<'_, C>, usize, &mut [C]);
/// Kernel of a last layer: input rows, the layer or its taps, width of the picture, sums.
type LastKernel<C, L> = fn(Rows<'_, C>, &L, usize, &mut [Pixel]);

/// The row kernels of one instruction set and type of number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels<N: Number> {
    /// First layer: three rows of samples to pixels.
    pub head: HeadKernel<N::Cell>,
    /// Any layer: three rows of pixels to pixels.
    pub body: BodyKernel<N, N::Cell>,
    /// Last layer: three rows of pixels to single precision.
    pub last: LastKernel<N::Cell, Layer<N>>,
    /// Last layer with few outputs: three rows of pixels to the sums of each column's taps
    /// (lane `outputs·column + output`).
    pub tail: LastKernel<N::Cell, [N::Taps]>,
    /// Multiplies and adds in registers alone, for the given rounds; returns the number of multiplications.
    pub peak: fn(usize) -> u64,
}

/// First layer on luma. Output pixel `x` (1-based: the border is first) reads input samples `x − 1 ..= x + 1`.
#[inline(always)]
fn head<F: Form<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, f32>,
    layer: &Layer<F32>,
    finish: Finish<'_, Cell<F, BLOCK>>,
    width: usize,
    out: &mut [Cell<F, BLOCK>],
) {
    let len = row_len(width);
    let groups = layer.taps.chunks_exact(9).zip(&layer.bias);
    for ((group, (taps, bias)), out) in groups.enumerate().zip(out.chunks_exact_mut(len)) {
        let bias = F::Lanes::load(bias);
        let (taps, _) = taps.as_chunks::<3>();
        for x in (1..=width).step_by(BLOCK) {
            let mut sums = [bias; BLOCK];
            for (row, taps) in rows.iter().zip(taps) {
                for (column, tap) in taps.iter().enumerate() {
                    let tap = F::Lanes::load(tap);
                    if let Some(inputs) = row[x - 1 + column..].first_chunk::<BLOCK>() {
                        for (sum, input) in sums.iter_mut().zip(inputs) {
                            *sum = sum.add_product(*input, tap);
                        }
                    }
                }
            }
            store::<F, _, BLOCK>(sums, F::narrow, finish, group * len + x, &mut out[x..]);
        }
        clear_border::<F, BLOCK>(out, width);
    }
}

#[inline(always)]
fn body<F: Form<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Cell<F, BLOCK>>,
    layer: &Layer<F::Number>,
    finish: Finish<'_, Cell<F, BLOCK>>,
    width: usize,
    out: &mut [Cell<F, BLOCK>],
) {
    let len = row_len(width);
    for (group, out) in out.chunks_exact_mut(len).take(layer.outputs).enumerate() {
        for x in (1..=width).step_by(BLOCK) {
            let sums = convolve::<F, BLOCK>(rows, layer, group, width, x);
            store::<F, _, BLOCK>(sums, F::values, finish, group * len + x, &mut out[x..]);
        }
        clear_border::<F, BLOCK>(out, width);
    }
}

#[inline(always)]
fn last<F: Form<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Cell<F, BLOCK>>,
    layer: &Layer<F::Number>,
    width: usize,
    out: &mut [Pixel],
) {
    for (group, out) in out.chunks_exact_mut(row_len(width)).take(layer.outputs).enumerate() {
        for x in (1..=width).step_by(BLOCK) {
            let sums = convolve::<F, BLOCK>(rows, layer, group, width, x);
            for (pixel, sum) in out[x..].iter_mut().zip(sums) {
                sum.widen(pixel);
            }
        }
    }
}

/// Computes the sums of a block of pixels for a group of outputs.
#[inline(always)]
fn convolve<F: Form<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Cell<F, BLOCK>>,
    layer: &Layer<F::Number>,
    group: usize,
    width: usize,
    x: usize,
) -> [F; BLOCK] {
    let len = row_len(width);
    let size = 9 * layer.words;
    let taps = &layer.taps[group * layer.inputs * size..][..layer.inputs * size];
    let mut sums = [F::start(&layer.bias[group]); BLOCK];
    for (from, taps) in taps.chunks_exact(size).enumerate() {
        let window = rows.map(|row| &row[from * len + x - 1..][..BLOCK + 2]);
        sums = F::accumulate(sums, window, taps);
    }
    sums
}

#[inline(always)]
fn tail<F: Form<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Cell<F, BLOCK>>,
    taps: &[Taps<F, BLOCK>],
    width: usize,
    out: &mut [Pixel],
) {
    let len = row_len(width);
    for x in (1..=width).step_by(BLOCK) {
        let mut sums = [F::start(&F::Number::NO_TAPS); BLOCK];
        for (from, taps) in taps.chunks_exact(3 * LANES / F::Number::WORD).enumerate() {
            let inputs = rows.map(|row| &row[from * len + x..][..BLOCK]);
            sums = F::accumulate_columns(sums, inputs, taps);
        }
        for (pixel, sum) in out[x..].iter_mut().zip(sums) {
            sum.widen(pixel);
        }
    }
    out[0] = F32::ZERO;
    out[width + 1..].fill(F32::ZERO);
}

/// Finishes and writes the sums of a row's pixels from `at` on.
#[inline(always)]
fn store<F: Form<BLOCK>, S: Copy, const BLOCK: usize>(
    sums: [S; BLOCK],
    values: impl Fn(S) -> F::Values,
    finish: Finish<'_, Cell<F, BLOCK>>,
    at: usize,
    out: &mut [Cell<F, BLOCK>],
) {
    // Rows hold a whole block after any pixel of the picture.
    let Some(out) = out.first_chunk_mut::<BLOCK>() else { return };
    match finish {
        Finish::Plain => {
            for (pixel, sum) in out.iter_mut().zip(sums) {
                values(sum).store(pixel);
            }
        }
        Finish::Relu => {
            for (pixel, sum) in out.iter_mut().zip(sums) {
                values(sum).relu().store(pixel);
            }
        }
        Finish::Add(row) => {
            for ((pixel, sum), more) in out.iter_mut().zip(sums).zip(&row[at..][..BLOCK]) {
                values(sum).add(F::Values::load(more)).store(pixel);
            }
        }
        Finish::AddBoth(row, other) => {
            let rows = row[at..][..BLOCK].iter().zip(&other[at..][..BLOCK]);
            for ((pixel, sum), (more, most)) in out.iter_mut().zip(sums).zip(rows) {
                let value = values(sum).add(F::Values::load(more));
                value.add(F::Values::load(most)).store(pixel);
            }
        }
    }
}

/// Clears what the blocks wrote beyond the picture: the zero padding.
#[inline(always)]
fn clear_border<F: Form<BLOCK>, const BLOCK: usize>(out: &mut [Cell<F, BLOCK>], width: usize) {
    out[0] = F::Number::ZERO;
    out[width + 1..].fill(F::Number::ZERO);
}

/// Multiplies and adds in registers alone; returns the number of multiplications.
#[inline(always)]
fn peak<F: Form<BLOCK>, const BLOCK: usize>(rounds: usize) -> u64 {
    let taps = std::hint::black_box(F::Number::NO_TAPS);
    let cell = std::hint::black_box(F::Number::ZERO);
    // Sums that are known to be equal would be made once.
    let mut sums = [F::start(&taps); BLOCK];
    for sum in &mut sums {
        *sum = F::start(&std::hint::black_box(taps));
    }
    let sums = F::repeat(sums, &cell, &taps, rounds);
    for sum in sums {
        let mut pixel = F32::ZERO;
        sum.widen(&mut pixel);
        std::hint::black_box(pixel);
    }
    (rounds * BLOCK * LANES * F::Number::WORD) as u64
}

/// Kernels in plain code, which define the result.
pub(super) const PLAIN: Kernels<F32> = Kernels {
    head: head::<Plain<false>, 4>,
    body: body::<Plain<false>, 4>,
    last: last::<Plain<false>, 4>,
    tail: tail::<Plain<false>, 4>,
    peak: peak::<Plain<false>, 4>,
};

/// Kernels for aarch64. The plain code compiles to 128-bit vectors and fused multiply-add, which every aarch64 CPU has.
#[cfg(target_arch = "aarch64")]
pub(super) const NEON: Kernels<F32> = Kernels {
    head: head::<Plain<true>, 4>,
    body: body::<Plain<true>, 4>,
    last: last::<Plain<true>, 4>,
    tail: tail::<Plain<true>, 4>,
    peak: peak::<Plain<true>, 4>,
};

/// Compiles the generic kernels for one x86-64 feature set and type of number.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_form {
    ($name:ident, $form:ty, $number:ty, $features:literal, $block:literal) => {
        pub(super) mod $name {
            use super::{Finish, Layer, Pixel, Rows};
            use crate::number::{F32, Number};

            type Cell = <$number as Number>::Cell;
            type Taps = <$number as Number>::Taps;

            #[target_feature(enable = $features)]
            fn head(
                r: Rows<'_, f32>,
                l: &Layer<F32>,
                f: Finish<'_, Cell>,
                width: usize,
                out: &mut [Cell],
            ) {
                super::head::<$form, $block>(r, l, f, width, out);
            }

            #[target_feature(enable = $features)]
            fn body(
                r: Rows<'_, Cell>,
                l: &Layer<$number>,
                f: Finish<'_, Cell>,
                width: usize,
                out: &mut [Cell],
            ) {
                super::body::<$form, $block>(r, l, f, width, out);
            }

            #[target_feature(enable = $features)]
            fn last(r: Rows<'_, Cell>, l: &Layer<$number>, width: usize, out: &mut [Pixel]) {
                super::last::<$form, $block>(r, l, width, out);
            }

            #[target_feature(enable = $features)]
            fn tail(r: Rows<'_, Cell>, taps: &[Taps], width: usize, out: &mut [Pixel]) {
                super::tail::<$form, $block>(r, taps, width, out);
            }

            #[target_feature(enable = $features)]
            fn peak(rounds: usize) -> u64 {
                super::peak::<$form, $block>(rounds)
            }

            /// Kernels of this instruction set, to be called only if the CPU was seen to have its features.
            pub(in super::super) const KERNELS: super::Kernels<$number> = super::Kernels {
                // SAFETY: `Simd` hands this table out only for a form that it detected every feature
                // named above for on the running CPU.
                head: |r, l, f, width, out| unsafe { head(r, l, f, width, out) },
                // SAFETY: as above.
                body: |r, l, f, width, out| unsafe { body(r, l, f, width, out) },
                // SAFETY: as above.
                last: |r, l, width, out| unsafe { last(r, l, width, out) },
                // SAFETY: as above.
                tail: |r, taps, width, out| unsafe { tail(r, taps, width, out) },
                // SAFETY: as above.
                peak: |rounds| unsafe { peak(rounds) },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_form!(avx2, super::Avx2, crate::number::F32, "avx2,fma", 6);
#[cfg(target_arch = "x86_64")]
x86_form!(avx512, super::Avx512, crate::number::F32, "avx512f,avx2,fma", 20);
#[cfg(target_arch = "x86_64")]
x86_form!(
    avx512_brain,
    super::Avx512Brain,
    crate::number::Bf16,
    "avx512f,avx512bw,avx512vl,avx512bf16,avx2,fma",
    20
);
#[cfg(target_arch = "x86_64")]
x86_form!(
    avx512_half,
    super::Avx512Half,
    crate::number::F16,
    "avx512f,avx512bw,avx512vl,avx512fp16,avx2,fma",
    20
);
