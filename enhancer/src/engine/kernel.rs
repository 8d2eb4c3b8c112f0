//! Convolution of one row of 16-channel pixels: the inner loop of the network.
//!
//! Pixels are `[f32; 16]` (NHWC), so one pixel's channels are one AVX-512 register or two AVX ones.
//! A block of neighbouring pixels accumulates at once: each vector of weights is loaded once per
//! block, each input value is broadcast. The kernels are written once over [`Vector`]; the scalar
//! vector defines the result, the others differ from it by fused rounding only.
//!
//! Rows carry one zero pixel before the picture and at least one after it, and are padded to a
//! whole number of blocks: see [`row_len`].

// Everything here must melt into the functions that carry the instruction set.
#![allow(clippy::inline_always)]

mod vector;

#[cfg(target_arch = "x86_64")]
use vector::{Avx2, Avx512};
use vector::{Plain, Vector};

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

/// The row kernels of one instruction set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    /// First layer: three rows of samples to pixels, with ReLU.
    pub head: fn(Rows<'_, f32>, &[Pixel], &Pixel, usize, &mut [Pixel]),
    /// Inner layer: three rows of pixels to pixels, with ReLU.
    pub body: fn(Rows<'_, Pixel>, &[Pixel], &Pixel, usize, &mut [Pixel]),
    /// Last layer: three rows of pixels to the sums of each column's taps (lane `4·column + output`).
    pub tail: fn(Rows<'_, Pixel>, &[Pixel], usize, &mut [Pixel]),
}

/// Output pixel `x` (1-based: border first) reads input samples `x − 1 ..= x + 1`.
#[inline(always)]
fn head<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, f32>,
    weights: &[Pixel],
    bias: &Pixel,
    width: usize,
    out: &mut [Pixel],
) {
    let bias = V::load(bias);
    let (taps, _) = weights.as_chunks::<3>();
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
        store_relu(&sums, &mut out[x..]);
    }
    clear_border(out, width);
}

#[inline(always)]
fn body<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Pixel>,
    weights: &[Pixel],
    bias: &Pixel,
    width: usize,
    out: &mut [Pixel],
) {
    let bias = V::load(bias);
    let (taps, _) = weights.as_chunks::<LANES>();
    for x in (1..=width).step_by(BLOCK) {
        let window = rows.map(|row| &row[x - 1..][..BLOCK + 2]);
        let inputs: [_; 9] = std::array::from_fn(|tap| &window[tap / 3][tap % 3..][..BLOCK]);
        store_relu(&V::accumulate(bias, inputs, taps), &mut out[x..]);
    }
    clear_border(out, width);
}

#[inline(always)]
fn tail<V: Vector<BLOCK>, const BLOCK: usize>(
    rows: Rows<'_, Pixel>,
    weights: &[Pixel],
    width: usize,
    out: &mut [Pixel],
) {
    let zero = V::load(&[0.0; LANES]);
    let (taps, _) = weights.as_chunks::<LANES>();
    for x in (1..=width).step_by(BLOCK) {
        let sums = V::accumulate(zero, rows.map(|row| &row[x..][..BLOCK]), taps);
        for (pixel, sum) in out[x..].iter_mut().zip(&sums) {
            sum.store(pixel);
        }
    }
    clear_border(out, width);
}

#[inline(always)]
fn store_relu<V: Vector<BLOCK>, const BLOCK: usize>(sums: &[V; BLOCK], out: &mut [Pixel]) {
    for (pixel, sum) in out.iter_mut().zip(sums) {
        sum.relu().store(pixel);
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
            use super::{Pixel, Rows};

            #[target_feature(enable = $features)]
            fn head(r: Rows<'_, f32>, w: &[Pixel], b: &Pixel, width: usize, out: &mut [Pixel]) {
                super::head::<$vector, $block>(r, w, b, width, out);
            }

            #[target_feature(enable = $features)]
            fn body(r: Rows<'_, Pixel>, w: &[Pixel], b: &Pixel, width: usize, out: &mut [Pixel]) {
                super::body::<$vector, $block>(r, w, b, width, out);
            }

            #[target_feature(enable = $features)]
            fn tail(r: Rows<'_, Pixel>, w: &[Pixel], width: usize, out: &mut [Pixel]) {
                super::tail::<$vector, $block>(r, w, width, out);
            }

            /// To be called only where the CPU was seen to have the features.
            pub(in super::super) const KERNELS: super::Kernels = super::Kernels {
                // SAFETY: `CpuEngine` hands this table out only after it detected every feature
                // named above on the running CPU.
                head: |r, w, b, width, out| unsafe { head(r, w, b, width, out) },
                // SAFETY: as above.
                body: |r, w, b, width, out| unsafe { body(r, w, b, width, out) },
                // SAFETY: as above.
                tail: |r, w, width, out| unsafe { tail(r, w, width, out) },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_form!(avx2, super::Avx2, "avx2,fma", 6);
#[cfg(target_arch = "x86_64")]
x86_form!(avx512, super::Avx512, "avx512f,avx2,fma", 12);
