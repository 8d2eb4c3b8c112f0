//! The SIMD forms, over any vector: lanes are rows, one below the other.
//!
//! # Safety
//!
//! The caller has checked: a source has four rows more than the area, and three columns more than its width in whole
//! vectors of eight samples; what is written has the area's rows, and where it is fetched to whole vectors of them; an
//! area has an even number of rows, one that is blended is a multiple of four samples wide, and one that is compared
//! has 4 × 4 samples.

#![allow(clippy::inline_always)] // code takes on the features of its caller

use std::mem::MaybeUninit;

use windlass_vp9::simd::vector::Vector;

use crate::lines::Lines;

use super::{MAX_SIDE, MIDDLE, PATCH_ROWS, Ramp, Shares, Source, TAPS, down};

/// Number of samples of a row that are made together: the 16-bit elements of a lane.
const ROW: usize = 8;
/// Side of an area that is compared, in samples: a cell of the low picture.
const COMPARED: usize = 4;

/// Columns that have been filtered across, row by row.
type Columns = MaybeUninit<[i16; ROW * PATCH_ROWS]>;

/// The SIMD form of `each`.
#[inline(always)]
pub(super) unsafe fn fetch<W: Vector, N: Vector>(
    source: Source<'_>,
    width: usize,
    height: usize,
    to: &mut [i16],
) {
    unsafe {
        let Source { lines: from, fx, fy } = source;
        let taps = Taps::<W>::down(fy);
        for x in (0..width).step_by(ROW) {
            let mut columns = Columns::uninit();
            let columns = columns.as_mut_ptr().cast::<i16>();
            across::<W>(from.data.as_ptr().add(x), from.stride, fx, height + 3, columns);
            for j in (0..height).step_by(W::LANES) {
                let to = to.as_mut_ptr().add(j * MAX_SIDE + x);
                sample(columns.add(j * ROW), &taps).store_lanes(to.cast(), 2 * MAX_SIDE);
            }
        }
    }
}

/// The SIMD form of `nearer`.
#[inline(always)]
pub(super) unsafe fn nearer<W: Vector, N: Vector>(
    cell: &[i16; MAX_SIDE * MAX_SIDE],
    width: usize,
    height: usize,
    shares: &Shares,
    ramp: &Ramp,
    out: &mut [i16],
    stride: usize,
) {
    unsafe {
        for x in (0..width).step_by(ROW) {
            let before = W::load_each(ramp.before.as_ptr().add(x).cast());
            let after = W::load_each(ramp.after.as_ptr().add(x).cast());
            let own = between::<W>(shares[1], before, after);
            let above = between::<W>(shares[0], before, after).sub16(own);
            let below = between::<W>(shares[2], before, after).sub16(own);
            let cell = cell.as_ptr().add(x);
            let to = out.as_mut_ptr().add(x).cast::<u8>();
            for j in (0..height).step_by(W::LANES) {
                // The middle lies between whole vectors of rows.
                let other = if 2 * j < ramp.side { above } else { below };
                let way = W::load(ramp.down.as_ptr().add(j).cast());
                let share = own.add16(other.mul_round_i16(way));
                let sample = W::load_lanes(cell.add(j * MAX_SIDE).cast(), 2 * MAX_SIDE);
                let (to, step) = (to.add(2 * j * stride), 2 * stride);
                if width - x >= ROW {
                    brought(W::load_lanes(to, step), sample, share).store_lanes(to, step);
                } else {
                    brought(W::load_half_lanes(to, step), sample, share).store_half_lanes(to, step);
                }
            }
        }
    }
}

/// A row of shares, interpolated between those of three cells.
#[inline(always)]
unsafe fn between<V: Vector>([first, own, last]: [i16; 3], before: V, after: V) -> V {
    unsafe {
        let own = V::splat16(own);
        let first = V::splat16(first).sub16(own).mul_round_i16(before);
        own.add16(first).add16(V::splat16(last).sub16(own).mul_round_i16(after))
    }
}

/// A former sample, brought nearer to a new one by a share.
#[inline(always)]
unsafe fn brought<V: Vector>(was: V, sample: V, share: V) -> V {
    unsafe { was.adds_i16(sample.subs_i16(was).mul_round_i16(share)) }
}

/// The SIMD form of `squares`.
#[inline(always)]
pub(super) unsafe fn squares<W: Vector, N: Vector>(
    now: Lines<'_>,
    source: Source<'_>,
    sum: &mut u32,
) {
    unsafe {
        let Source { lines: from, fx, fy } = source;
        let taps = Taps::<W>::down(fy);
        let mut columns = Columns::uninit();
        let columns = columns.as_mut_ptr().cast::<i16>();
        across::<W>(from.data.as_ptr(), from.stride, fx, COMPARED + 3, columns);
        let mut sums = W::zero();
        for j in (0..COMPARED).step_by(W::LANES) {
            let is = W::load_quarter_lanes(now.data.as_ptr().add(j * now.stride), now.stride);
            let difference = sample(columns.add(j * ROW), &taps);
            let difference = difference.sub16(is.widen_low_u8().shl16::<4>());
            let difference = difference.zip_low64(W::zero());
            sums = sums.add32(difference.madd_i16(difference));
        }
        let mut parts = [0u32; 4 * 2];
        sums.store(parts.as_mut_ptr().cast());
        *sum = parts[..4 * W::LANES].iter().sum();
    }
}

/// The four taps of a fraction, each in all elements of a vector.
struct Taps<V>(V, V, V, V);

impl<V: Vector> Taps<V> {
    #[inline(always)]
    unsafe fn across(fraction: usize) -> Self {
        let [a, b, c, d] = TAPS[fraction];
        unsafe { Self(V::splat16(a), V::splat16(b), V::splat16(c), V::splat16(d)) }
    }

    #[inline(always)]
    unsafe fn down(fraction: usize) -> Self {
        let [a, b, c, d] = TAPS[fraction];
        unsafe {
            Self(V::splat16(down(a)), V::splat16(down(b)), V::splat16(down(c)), V::splat16(down(d)))
        }
    }
}

/// Filters eight columns across, in `rows` rows and those that complete the last vector.
#[inline(always)]
unsafe fn across<V: Vector>(
    from: *const u8,
    stride: usize,
    fraction: usize,
    rows: usize,
    to: *mut i16,
) {
    unsafe {
        let taps = Taps::<V>::across(fraction);
        let middle = V::splat16(MIDDLE as i16);
        for j in (0..rows).step_by(V::LANES) {
            let p = from.add(j * stride);
            // Sums of two may wrap around; that of all does not, less the middle.
            let first = eight::<V>(p, stride).mul_low16(taps.0);
            let second = eight::<V>(p.add(1), stride).mul_low16(taps.1);
            let third = eight::<V>(p.add(2), stride).mul_low16(taps.2);
            let fourth = eight::<V>(p.add(3), stride).mul_low16(taps.3);
            let sum = first.add16(second).add16(third.add16(fourth));
            sum.sub16(middle).store(to.add(j * ROW).cast());
        }
    }
}

/// Loads eight samples of each lane's row.
#[inline(always)]
unsafe fn eight<V: Vector>(p: *const u8, stride: usize) -> V {
    unsafe { V::load_half_lanes(p, stride).widen_low_u8() }
}

/// Filters down: samples in 1/16 grey level. `columns` begin one row above.
#[inline(always)]
unsafe fn sample<V: Vector>(columns: *const i16, taps: &Taps<V>) -> V {
    unsafe {
        let first = V::load(columns.cast()).mul_round_i16(taps.0);
        let second = V::load(columns.add(ROW).cast()).mul_round_i16(taps.1);
        let third = V::load(columns.add(2 * ROW).cast()).mul_round_i16(taps.2);
        let fourth = V::load(columns.add(3 * ROW).cast()).mul_round_i16(taps.3);
        let sum = first.add16(second).add16(third.add16(fourth));
        sum.add16(V::splat16(4)).shr_i16::<3>().add16(V::splat16(2048))
    }
}
