//! The SIMD form, over any vector: a block of samples by four outputs of each lane is summed in registers. A pair of
//! inputs of one sample is the same factor for all outputs, whose pairs of weights are a vector.
//!
//! # Safety
//!
//! The caller has checked that the rows hold the span and its neighbours, and the layer all weights.

use std::ops::Range;

use windlass_vp9::simd::vector::Vector;

use crate::integers::Layer;

/// Number of sums that are held at a time: with more, registers run out on WebAssembly's engines.
const SUMS: usize = 8;

/// Makes one row of a convolution's output: the SIMD form of `convolve`.
#[inline(always)]
pub(super) unsafe fn row<W: Vector>(
    layer: &Layer,
    rows: [&[i16]; 3],
    span: Range<usize>,
    out: &mut [i16],
) {
    let vectors = layer.used.div_ceil(4 * W::LANES);
    let mut first = 0;
    while first < vectors {
        unsafe {
            match vectors - first {
                1 => first += columns::<W, 1, SUMS>(layer, rows, &span, out, first),
                2 | 3 => first += columns::<W, 2, { SUMS / 2 }>(layer, rows, &span, out, first),
                _ => first += columns::<W, 4, { SUMS / 4 }>(layer, rows, &span, out, first),
            }
        }
    }
}

/// Makes `Q` vectors of outputs from vector `first` on, `P` samples at a time. Returns `Q`.
#[inline(always)]
unsafe fn columns<W: Vector, const Q: usize, const P: usize>(
    layer: &Layer,
    rows: [&[i16]; 3],
    span: &Range<usize>,
    out: &mut [i16],
    first: usize,
) -> usize {
    let mut x = span.start;
    unsafe {
        while x + P <= span.end {
            block::<W, Q, P>(layer, rows, x, out, first);
            x += P;
        }
        while x < span.end {
            block::<W, Q, 1>(layer, rows, x, out, first);
            x += 1;
        }
    }
    Q
}

/// Makes `P` samples from `x` on.
#[inline(always)]
unsafe fn block<W: Vector, const Q: usize, const P: usize>(
    layer: &Layer,
    rows: [&[i16]; 3],
    x: usize,
    out: &mut [i16],
    first: usize,
) {
    unsafe {
        let Layer { inputs, outputs, .. } = *layer;
        let lane = 4 * W::LANES;
        let bias = layer.bias.as_ptr().add(first * lane);
        let mut sums = [[W::zero(); P]; Q];
        for (q, sums) in sums.iter_mut().enumerate() {
            *sums = [W::load(bias.add(q * lane).cast()); P];
        }
        let mut weights = layer.weights.as_ptr().add(first * 2 * lane);
        for row in rows {
            let row = row.as_ptr().add(x * inputs);
            for k in 0..3 * inputs / 2 {
                let mut factors = [W::zero(); Q];
                for (q, factor) in factors.iter_mut().enumerate() {
                    *factor = W::load(weights.add(q * 2 * lane).cast());
                }
                for p in 0..P {
                    let pair =
                        W::splat32(row.add(p * inputs + 2 * k).cast::<i32>().read_unaligned());
                    for (sums, &factor) in sums.iter_mut().zip(&factors) {
                        sums[p] = sums[p].add32(pair.madd_i16(factor));
                    }
                }
                weights = weights.add(2 * outputs);
            }
        }
        let to = out.as_mut_ptr().add((x + 1) * outputs + first * lane);
        for (q, sums) in sums.iter().enumerate() {
            for p in (0..P).step_by(2) {
                let shifted = |p: usize| sums[p].shr_i32_by(layer.shift);
                let even = shifted(p);
                let mut pair = even.pack_i32_i16(if P > 1 { shifted(p + 1) } else { even });
                if layer.relu {
                    pair = pair.max_i16(W::zero());
                }
                let to = to.add(p * outputs + q * lane);
                pair.store_half_lanes(to.cast(), 8);
                if P > 1 {
                    pair.store_high_half_lanes(to.add(outputs).cast(), 8);
                }
            }
        }
    }
}
