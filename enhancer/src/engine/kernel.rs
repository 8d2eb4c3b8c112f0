//! Convolution of one row of 16-channel pixels: the inner loop of the network.
//!
//! Pixels are `[f32; 16]` (NHWC), so one pixel's channels are one AVX-512 register or two AVX ones.
//! A block of neighbouring pixels accumulates at once: each vector of weights is loaded once per
//! block, each input value is broadcast. Written once as plain Rust; every SIMD form is that same
//! code compiled for more instructions, and differs from the scalar form only by fused rounding.
//!
//! Rows carry one zero pixel before the picture and at least one after it, and are padded to a
//! whole number of blocks: see [`row_len`].

/// Channels of a pixel.
pub(super) const LANES: usize = 16;

/// One pixel's channels.
pub(super) type Pixel = [f32; LANES];

/// Pixels that a row of `width` must hold for any block size in use: zero border, whole blocks.
pub(super) fn row_len(width: usize) -> usize {
    width.next_multiple_of(MOST_BLOCK) + MOST_BLOCK + 2
}

/// A multiple of every block size below.
const MOST_BLOCK: usize = 24;

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

/// `a × b + c`, fused where the instruction set has it (without, the call would be a slow one).
#[inline(always)]
fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn relu(mut p: Pixel) -> Pixel {
    p.iter_mut().for_each(|v| *v = v.max(0.0));
    p
}

/// Output pixel `x` (1-based: border first) reads input pixels `x − 1 ..= x + 1`.
#[inline(always)]
fn head<const BLOCK: usize, const FUSED: bool>(
    rows: Rows<'_, f32>,
    weights: &[Pixel],
    bias: &Pixel,
    width: usize,
    out: &mut [Pixel],
) {
    let mut x = 1;
    while x <= width {
        let mut sums = [*bias; BLOCK];
        for (row, taps) in rows.iter().zip(weights.as_chunks::<3>().0) {
            let inputs = &row[x - 1..][..BLOCK + 2];
            for (column, tap) in taps.iter().enumerate() {
                for (sum, input) in sums.iter_mut().zip(&inputs[column..]) {
                    for (s, w) in sum.iter_mut().zip(tap) {
                        *s = fma::<FUSED>(*input, *w, *s);
                    }
                }
            }
        }
        for (o, sum) in out[x..][..BLOCK].iter_mut().zip(&sums) {
            *o = relu(*sum);
        }
        x += BLOCK;
    }
    clear_border(out, width);
}

/// Adds one input pixel column's taps to a block of sums.
#[inline(always)]
fn add_taps<const BLOCK: usize, const FUSED: bool>(
    sums: &mut [Pixel; BLOCK],
    inputs: &[Pixel; BLOCK],
    taps: &[Pixel; LANES],
) {
    for (channel, tap) in taps.iter().enumerate() {
        for (sum, input) in sums.iter_mut().zip(inputs) {
            let input = input[channel];
            for (s, w) in sum.iter_mut().zip(tap) {
                *s = fma::<FUSED>(input, *w, *s);
            }
        }
    }
}

#[inline(always)]
fn body<const BLOCK: usize, const FUSED: bool>(
    rows: Rows<'_, Pixel>,
    weights: &[Pixel],
    bias: &Pixel,
    width: usize,
    out: &mut [Pixel],
) {
    let (taps, _) = weights.as_chunks::<LANES>();
    let mut x = 1;
    while x <= width {
        let mut sums = [*bias; BLOCK];
        for (row, taps) in rows.iter().zip(taps.as_chunks::<3>().0) {
            for (column, tap) in taps.iter().enumerate() {
                if let Some(inputs) = row[x - 1 + column..].first_chunk::<BLOCK>() {
                    add_taps::<BLOCK, FUSED>(&mut sums, inputs, tap);
                }
            }
        }
        for (o, sum) in out[x..][..BLOCK].iter_mut().zip(&sums) {
            *o = relu(*sum);
        }
        x += BLOCK;
    }
    clear_border(out, width);
}

#[inline(always)]
fn tail<const BLOCK: usize, const FUSED: bool>(
    rows: Rows<'_, Pixel>,
    weights: &[Pixel],
    width: usize,
    out: &mut [Pixel],
) {
    let (taps, _) = weights.as_chunks::<LANES>();
    let mut x = 1;
    while x <= width {
        let mut sums = [[0.0; LANES]; BLOCK];
        for (row, tap) in rows.iter().zip(taps) {
            if let Some(inputs) = row[x..].first_chunk::<BLOCK>() {
                add_taps::<BLOCK, FUSED>(&mut sums, inputs, tap);
            }
        }
        out[x..][..BLOCK].copy_from_slice(&sums);
        x += BLOCK;
    }
    clear_border(out, width);
}

/// Zero padding: whatever the blocks wrote beyond the picture is cleared.
#[inline(always)]
fn clear_border(out: &mut [Pixel], width: usize) {
    out[0] = [0.0; LANES];
    out[width + 1..].fill([0.0; LANES]);
}

/// The form that defines the result.
pub(super) const SCALAR: Kernels = Kernels {
    head: |rows, weights, bias, width, out| head::<4, false>(rows, weights, bias, width, out),
    body: |rows, weights, bias, width, out| body::<4, false>(rows, weights, bias, width, out),
    tail: |rows, weights, width, out| tail::<4, false>(rows, weights, width, out),
};

/// aarch64 always has fused multiply-add and 128-bit vectors.
#[cfg(target_arch = "aarch64")]
pub(super) const NEON: Kernels = Kernels {
    head: |rows, weights, bias, width, out| head::<6, true>(rows, weights, bias, width, out),
    body: |rows, weights, bias, width, out| body::<6, true>(rows, weights, bias, width, out),
    tail: |rows, weights, width, out| tail::<6, true>(rows, weights, width, out),
};

/// Compiles the generic kernels for one x86-64 feature set.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_form {
    ($name:ident, $features:literal, $block:literal) => {
        pub(super) mod $name {
            use super::{Pixel, Rows};

            #[target_feature(enable = $features)]
            fn head(r: Rows<'_, f32>, w: &[Pixel], b: &Pixel, width: usize, out: &mut [Pixel]) {
                super::head::<$block, true>(r, w, b, width, out);
            }

            #[target_feature(enable = $features)]
            fn body(r: Rows<'_, Pixel>, w: &[Pixel], b: &Pixel, width: usize, out: &mut [Pixel]) {
                super::body::<$block, true>(r, w, b, width, out);
            }

            #[target_feature(enable = $features)]
            fn tail(r: Rows<'_, Pixel>, w: &[Pixel], width: usize, out: &mut [Pixel]) {
                super::tail::<$block, true>(r, w, width, out);
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
x86_form!(avx2, "avx2,fma", 6);
#[cfg(target_arch = "x86_64")]
x86_form!(avx512, "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma", 12);
