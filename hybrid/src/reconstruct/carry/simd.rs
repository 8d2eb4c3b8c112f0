//! The SIMD forms of fetching and of the misfit, over any vector.
//!
//! # Safety
//!
//! The caller has checked: `then` has nine rows of nine samples and sixteen bytes can be read at the
//! first eight of each; `now` has eight rows of eight. `from` has three rows and three columns more
//! than the area, and sixteen samples behind the last of those. `out` has the area's rows.

#![allow(clippy::inline_always, clippy::too_many_arguments)] // code takes on the features of its caller

use std::mem::MaybeUninit;

use super::{PATCH_ROWS, TAPS};
use crate::simd::vector::Vector;

/// See the scalar form; a whole cell of 8 × 8.
#[inline(always)]
pub(super) unsafe fn squares<W: Vector, N: Vector>(
    now: (&[u8], usize),
    then: (&[u8], usize),
    (fx, fy): (i16, i16),
    sum: &mut u32,
) {
    unsafe {
        let (x0, x1) = (W::splat16(8 - fx), W::splat16(fx));
        let (y0, y1) = (W::splat16(8 - fy), W::splat16(fy));
        let mut sums = W::zero();
        for j in (0..8).step_by(W::LANES) {
            let (then, stride) = (then.0.as_ptr().add(j * then.1), then.1);
            let above = across(then, stride, x0, x1);
            let below = across(then.add(stride), stride, x0, x1);
            let was = above.mul_low16(y0).add16(below.mul_low16(y1));
            let now = rows_of_eight::<W>(now.0.as_ptr().add(j * now.1), now.1);
            let difference = was.sub16(now.shl16::<6>()).shr_i16::<3>();
            sums = sums.add32(difference.madd_i16(difference));
        }
        let mut parts = [0u32; 8];
        sums.store(parts.as_mut_ptr().cast());
        *sum = parts[..4 * W::LANES].iter().sum();
    }
}

/// Eight samples of as many rows as there are lanes.
#[inline(always)]
unsafe fn rows_of_eight<W: Vector>(p: *const u8, stride: usize) -> W {
    unsafe { W::load_half_lanes(p, stride).widen_low_u8() }
}

/// The same, between two samples.
#[inline(always)]
unsafe fn across<W: Vector>(p: *const u8, stride: usize, x0: W, x1: W) -> W {
    unsafe {
        let (left, right) = (rows_of_eight::<W>(p, stride), rows_of_eight::<W>(p.add(1), stride));
        left.mul_low16(x0).add16(right.mul_low16(x1))
    }
}

/// See the scalar form.
#[inline(always)]
pub(super) unsafe fn add_fetched<W: Vector, N: Vector>(
    from: (&[i16], usize),
    (fx, fy): (usize, usize),
    weight: i16,
    out: &mut [i16],
    stride: usize,
    (width, height): (usize, usize),
) {
    unsafe {
        // Two vectors of one lane, or one of two, make sixteen columns at a time; the last eight of
        // 24 are one lane.
        let mut x = 0;
        while x < width {
            let left = width - x;
            if left >= 8 * W::LANES {
                columns::<W>(from, x, (fx, fy), weight, out, stride, height, None);
                x += 8 * W::LANES;
            } else {
                let few = (left < 8).then_some(left);
                columns::<N>(from, x, (fx, fy), weight, out, stride, height, few);
                x += 8;
            }
        }
    }
}

/// A vector's columns from `x` on; where `few`, only so many of them are written.
#[inline(always)]
unsafe fn columns<V: Vector>(
    from: (&[i16], usize),
    x: usize,
    (fx, fy): (usize, usize),
    weight: i16,
    out: &mut [i16],
    stride: usize,
    height: usize,
    few: Option<usize>,
) {
    const ROW: usize = 16;
    let mut across = MaybeUninit::<[i16; ROW * PATCH_ROWS]>::uninit();
    let across = across.as_mut_ptr().cast::<i16>();
    unsafe {
        let (source, from_stride) = (from.0.as_ptr().add(x), from.1);
        let weight = V::splat16(weight);
        if fx != 0 {
            let taps = Taps::<V>::new(fx);
            // Without a vertical fraction the row before and the two behind are not looked at.
            let rows = if fy == 0 { 1..height + 1 } else { 0..height + 3 };
            for j in rows {
                let p = source.add(j * from_stride);
                taps.filter(p, 1).store(across.add(j * ROW).cast());
            }
        }
        let (lines, line_stride) =
            if fx == 0 { (source.add(1), from_stride) } else { (across.cast_const(), ROW) };
        let taps = Taps::<V>::new(fy);
        for j in 0..height {
            let line = lines.add(j * line_stride);
            let made = if fy == 0 {
                V::load(line.add(line_stride).cast())
            } else {
                taps.filter(line, line_stride)
            };
            let made = made.mul_round_i16(weight);
            let o = out.as_mut_ptr().add(j * stride + x);
            if let Some(few) = few {
                let mut part = [0i16; 8 * 2];
                part[..few].copy_from_slice(std::slice::from_raw_parts(o, few));
                let sum = V::load(part.as_ptr().cast()).adds_i16(made);
                sum.store(part.as_mut_ptr().cast());
                std::slice::from_raw_parts_mut(o, few).copy_from_slice(&part[..few]);
            } else {
                V::load(o.cast_const().cast()).adds_i16(made).store(o.cast());
            }
        }
    }
}

/// The taps of a fraction, in pairs.
struct Taps<V>(V, V);

impl<V: Vector> Taps<V> {
    #[inline(always)]
    unsafe fn new(fraction: usize) -> Self {
        let [a, b, c, d] = TAPS[fraction];
        unsafe { Self(V::splat_pair(a, b), V::splat_pair(c, d)) }
    }

    /// Weighs the vectors at `p` and each `step` samples further.
    #[inline(always)]
    unsafe fn filter(&self, p: *const i16, step: usize) -> V {
        unsafe {
            let (a, b) = (V::load(p.cast()), V::load(p.add(step).cast()));
            let (c, d) = (V::load(p.add(2 * step).cast()), V::load(p.add(3 * step).cast()));
            let round = V::splat32(64);
            let low = a.zip_low16(b).madd_i16(self.0).add32(c.zip_low16(d).madd_i16(self.1));
            let high = a.zip_high16(b).madd_i16(self.0).add32(c.zip_high16(d).madd_i16(self.1));
            let low = low.add32(round).shr_i32::<7>();
            low.pack_i32_i16(high.add32(round).shr_i32::<7>())
        }
    }
}
