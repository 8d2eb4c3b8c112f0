//! Convolution of one row of pixels of 16 channels, or of several groups of 16: the inner loop of the network.
//!
//! Pixels are `[f32; 16]`, so one pixel's group of channels is one AVX-512 register or two AVX ones.
//! A block of neighbouring pixels accumulates at once: each vector of weights is loaded once per
//! block, each input value is broadcast. The kernels are written once over [`Vector`]; the scalar
//! vector defines the result, the others differ from it by fused rounding only.
//!
//! Rows of several groups hold one after the other. Each carries one zero pixel before the picture and at least one
//! after it, and is padded to a whole number of blocks: see [`row_len`].

// Everything here must melt into the functions that carry the instruction set.
#![allow(clippy::inline_always)]

mod vector;

#[cfg(target_arch = "x86_64")]
use vector::{Avx2, Avx512};
use vector::{Plain, Vector};

use super::packed::Layer;

/// Channels of a pixel.
pub(super) const LANES: usize = 16;

/// One pixel's channels.
pub(super) type Pixel = [f32; LANES];

/// A multiple of every block size below.
const MOST_BLOCK: usize = 24;

/// Pixels that a row of `width` must hold for any block size in use: zero border, whole blocks.
pub(super) fn row_len(width: usize) -> usize {
    width.next_multiple_of(MOST_BLOCK) + MOST_BLOCK + 2
}

/// Three neighbouring rows, top to bottom.
pub(super) type Rows<'a, T> = [&'a [T]; 3];

/// What becomes of the sums of a convolution.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finish<'a> {
    /// Nothing.
    Plain,
    /// The greater of each and zero.
    Relu,
    /// The pixels of a row are added.
    Add(&'a [Pixel]),
    /// Those of two rows are.
    AddBoth(&'a [Pixel], &'a [Pixel]),
}

/// The row kernels of one instruction set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    /// First layer: three rows of samples to pixels.
    pub head: fn(Rows<'_, f32>, &Layer, Finish<'_>, usize, &mut [Pixel]),
    /// Any layer: three rows of pixels to pixels.
    pub body: fn(Rows<'_, Pixel>, &Layer, Finish<'_>, usize, &mut [Pixel]),
    /// Last layer with few outputs: three rows of pixels to the sums of each column's taps
    /// (lane `outputs·column + output`).
    pub tail: fn(Rows<'_, Pixel>, &[Pixel], usize, &mut [Pixel]),
}

/// Output pixel `x` (1-based: border first) reads input samples `x − 1 ..= x + 1`.
#[inline(always)]
fn head<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, f32>,
    layer: &Layer,
    finish: Finish<'_>,
    width: usize,
    out: &mut [Pixel],
) {
    let len = row_len(width);
    let groups = layer.taps.chunks_exact(9).zip(&layer.bias);
    for ((group, (taps, bias)), out) in groups.enumerate().zip(out.chunks_exact_mut(len)) {
        let bias = V::load(bias);
        let (taps, _) = taps.as_chunks::<3>();
        for x in (1..=width).step_by(BLOCK) {
            let mut sums = [bias; BLOCK];
            for (row, taps) in rows.iter().zip(taps) {
                for (column, tap) in taps.iter().enumerate() {
                    let tap = V::load(tap);
                    if let Some(inputs) = row[x - 1 + column..].first_chunk::<BLOCK>() {
                        for (sum, input) in sums.iter_mut().zip(inputs) {
                            *sum = sum.add_product(*input, tap);
                        }
                    }
                }
            }
            store(sums, finish, group * len + x, &mut out[x..]);
        }
        clear_border(out, width);
    }
}

#[inline(always)]
fn body<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Pixel>,
    layer: &Layer,
    finish: Finish<'_>,
    width: usize,
    out: &mut [Pixel],
) {
    let len = row_len(width);
    let groups = layer.taps.chunks_exact(layer.inputs * 9 * LANES).zip(&layer.bias);
    for ((group, (taps, bias)), out) in groups.enumerate().zip(out.chunks_exact_mut(len)) {
        let bias = V::load(bias);
        let (taps, _) = taps.as_chunks::<LANES>();
        for x in (1..=width).step_by(BLOCK) {
            let mut sums = [bias; BLOCK];
            for (from, taps) in taps.chunks_exact(9).enumerate() {
                let window = rows.map(|row| &row[from * len + x - 1..][..BLOCK + 2]);
                let inputs: [_; 9] =
                    std::array::from_fn(|tap| &window[tap / 3][tap % 3..][..BLOCK]);
                sums = V::accumulate(sums, inputs, taps);
            }
            store(sums, finish, group * len + x, &mut out[x..]);
        }
        clear_border(out, width);
    }
}

#[inline(always)]
fn tail<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Pixel>,
    taps: &[Pixel],
    width: usize,
    out: &mut [Pixel],
) {
    let len = row_len(width);
    let (taps, _) = taps.as_chunks::<LANES>();
    for x in (1..=width).step_by(BLOCK) {
        let mut sums = [V::load(&[0.0; LANES]); BLOCK];
        for (from, taps) in taps.chunks_exact(3).enumerate() {
            let inputs = rows.map(|row| &row[from * len + x..][..BLOCK]);
            sums = V::accumulate(sums, inputs, taps);
        }
        for (pixel, sum) in out[x..].iter_mut().zip(&sums) {
            sum.store(pixel);
        }
    }
    clear_border(out, width);
}

/// Finishes the sums of the pixels from `at` on of a row.
#[inline(always)]
fn store<V: Vector<BLOCK>, const BLOCK: usize>(
    sums: [V; BLOCK],
    finish: Finish<'_>,
    at: usize,
    out: &mut [Pixel],
) {
    match finish {
        Finish::Plain => each(sums, out, |sum, _| sum),
        Finish::Relu => each(sums, out, |sum, _| sum.relu()),
        Finish::Add(row) => {
            let row = &row[at..][..BLOCK];
            each(sums, out, |sum, n| sum.add(V::load(&row[n])));
        }
        Finish::AddBoth(row, other) => {
            let (row, other) = (&row[at..][..BLOCK], &other[at..][..BLOCK]);
            each(sums, out, |sum, n| sum.add(V::load(&row[n])).add(V::load(&other[n])));
        }
    }
}

#[inline(always)]
fn each<V: Vector<BLOCK>, const BLOCK: usize>(
    sums: [V; BLOCK],
    out: &mut [Pixel],
    finish: impl Fn(V, usize) -> V,
) {
    for (n, (pixel, sum)) in out.iter_mut().zip(sums).enumerate() {
        finish(sum, n).store(pixel);
    }
}

/// Zero padding: whatever the blocks wrote beyond the picture is cleared.
#[inline(always)]
fn clear_border(out: &mut [Pixel], width: usize) {
    out[0] = [0.0; LANES];
    out[width + 1..].fill([0.0; LANES]);
}

/// The form that defines the result.
pub(super) const PLAIN: Kernels = Kernels {
    head: head::<Plain<false>, 4>,
    body: body::<Plain<false>, 4>,
    tail: tail::<Plain<false>, 4>,
};

/// aarch64 always has 128-bit vectors and fused multiply-add, so plain code compiles to them.
#[cfg(target_arch = "aarch64")]
pub(super) const NEON: Kernels = Kernels {
    head: head::<Plain<true>, 4>,
    body: body::<Plain<true>, 4>,
    tail: tail::<Plain<true>, 4>,
};

/// Compiles the generic kernels for one x86-64 feature set.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_form {
    ($name:ident, $vector:ty, $features:literal, $block:literal) => {
        pub(super) mod $name {
            use super::{Finish, Layer, Pixel, Rows};

            #[target_feature(enable = $features)]
            fn head(r: Rows<'_, f32>, l: &Layer, f: Finish<'_>, width: usize, out: &mut [Pixel]) {
                super::head::<$vector, $block>(r, l, f, width, out);
            }

            #[target_feature(enable = $features)]
            fn body(r: Rows<'_, Pixel>, l: &Layer, f: Finish<'_>, width: usize, out: &mut [Pixel]) {
                super::body::<$vector, $block>(r, l, f, width, out);
            }

            #[target_feature(enable = $features)]
            fn tail(r: Rows<'_, Pixel>, taps: &[Pixel], width: usize, out: &mut [Pixel]) {
                super::tail::<$vector, $block>(r, taps, width, out);
            }

            /// To be called only where the CPU was seen to have the features.
            pub(in super::super) const KERNELS: super::Kernels = super::Kernels {
                // SAFETY: `CpuEngine` hands this table out only after it detected every feature
                // named above on the running CPU.
                head: |r, l, f, width, out| unsafe { head(r, l, f, width, out) },
                // SAFETY: as above.
                body: |r, l, f, width, out| unsafe { body(r, l, f, width, out) },
                // SAFETY: as above.
                tail: |r, taps, width, out| unsafe { tail(r, taps, width, out) },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_form!(avx2, super::Avx2, "avx2,fma", 6);
#[cfg(target_arch = "x86_64")]
x86_form!(avx512, super::Avx512, "avx512f,avx2,fma", 12);
