//! Motion compensation over any [`Vector`] of one lane: eight 16-bit products at a time.
//!
//! Rows: each tap loads its eight samples itself. Columns: two rows of results at once, so that
//! each of their nine rows of samples is loaded once for both. Blocks of four columns put
//! two rows into a vector, which a source without gaps between its rows gives for nothing.

use core::mem::MaybeUninit;

use super::{
    AFTER, BEFORE, Block, Filter, Filters, MAX_SIDE, ROWS, Reference, SCALED_ROWS, SLACK, Steps,
};
use crate::simd::vector::Vector;

/// The rows of bytes that a kernel reads.
#[derive(Clone, Copy)]
pub(super) struct From {
    pub(super) at: *const u8,
    pub(super) stride: usize,
}

/// The rows of bytes that a kernel writes.
#[derive(Clone, Copy)]
pub(super) struct To {
    pub(super) at: *mut u8,
    pub(super) stride: usize,
}

/// Memory for `N` bytes between two passes, written before it is read.
#[repr(align(32))]
pub(super) struct Middle<const N: usize>(MaybeUninit<[u8; N]>);

impl<const N: usize> Middle<N> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
    #[inline(always)]
    pub(super) fn to(&mut self, stride: usize) -> To {
        To { at: self.0.as_mut_ptr().cast(), stride }
    }
}

impl To {
    #[inline(always)]
    pub(super) fn read(self) -> From {
        From { at: self.at, stride: self.stride }
    }
}

/// Predicts a block from a reference of the picture's own size.
///
/// # Safety
///
/// The machine has `V`; block and reference are checked; where rows are filtered, [`SLACK`] bytes may be read beyond
/// the samples that count.
#[inline(always)]
pub(super) unsafe fn predict<V: Vector>(
    filters: Filters,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    unsafe {
        match (block.average, filters.two_taps) {
            (false, false) => directions::<V, false, 8>(filters, reference, block),
            (true, false) => directions::<V, true, 8>(filters, reference, block),
            (false, true) => directions::<V, false, 2>(filters, reference, block),
            (true, true) => directions::<V, true, 2>(filters, reference, block),
        }
    }
}

#[cfg_attr(target_arch = "x86_64", inline(always))] // for its target feature
unsafe fn directions<V: Vector, const AVERAGE: bool, const TAPS: usize>(
    filters: Filters,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    let (width, height) = (block.width, block.height);
    let to = To { at: block.dst.as_mut_ptr(), stride: block.stride };
    let stride = reference.stride;
    unsafe {
        let from = From { at: reference.samples.as_ptr().add(reference.offset), stride };
        match (filters.across, filters.down) {
            (None, None) => copy::<V, AVERAGE>(from, to, width, height),
            (Some(across), None) => rows::<V, AVERAGE, TAPS>(across, from, to, width, height),
            (None, Some(down)) if width == 4 => {
                let mut middle = Middle::<{ 4 * ROWS + SLACK }>::new();
                let between = middle.to(4);
                let from = From { at: from.at.sub(BEFORE * stride), stride };
                copy::<V, false>(from, between, 4, height + BEFORE + AFTER);
                columns_of_4::<V, AVERAGE, TAPS>(down, between.read(), to, height);
            }
            (None, Some(down)) => {
                let from = From { at: from.at.sub(BEFORE * stride), stride };
                columns::<V, AVERAGE, TAPS>(down, from, to, width, height);
            }
            (Some(across), Some(down)) => {
                let mut middle = Middle::<{ MAX_SIDE * ROWS + SLACK }>::new();
                let between = middle.to(width);
                let from = From { at: from.at.sub(BEFORE * stride), stride };
                rows::<V, false, TAPS>(across, from, between, width, height + BEFORE + AFTER);
                if width == 4 {
                    columns_of_4::<V, AVERAGE, TAPS>(down, between.read(), to, height);
                } else {
                    columns::<V, AVERAGE, TAPS>(down, between.read(), to, width, height);
                }
            }
        }
    }
}

/// Copies `width` columns of `height` rows to the destination, or averages them in.
#[cfg_attr(target_arch = "x86_64", inline(always))] // for its target feature
pub(super) unsafe fn copy<V: Vector, const AVERAGE: bool>(
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    for y in 0..height {
        unsafe {
            let (p, q) = (from.at.add(y * from.stride), to.at.add(y * to.stride));
            match width {
                4 => {
                    let v = V::load_quarter_lanes(p, 0);
                    let v = if AVERAGE { v.avg_u8(V::load_quarter_lanes(q, 0)) } else { v };
                    v.store_quarter_lanes(q, 0);
                }
                8 => {
                    let v = V::load_half_lanes(p, 0);
                    let v = if AVERAGE { v.avg_u8(V::load_half_lanes(q, 0)) } else { v };
                    v.store_half_lanes(q, 0);
                }
                _ => {
                    for x in (0..width).step_by(16) {
                        let v = V::load(p.add(x));
                        let v = if AVERAGE { v.avg_u8(V::load(q.add(x))) } else { v };
                        v.store(q.add(x));
                    }
                }
            }
        }
    }
}

/// The factors of a filter, each in a vector of its own.
#[derive(Clone, Copy)]
struct Factors<V>([V; 8]);

impl<V: Vector> Factors<V> {
    #[inline(always)]
    unsafe fn new(filter: &Filter) -> Self {
        let mut factors = [unsafe { V::zero() }; 8];
        for (to, &factor) in factors.iter_mut().zip(filter) {
            *to = unsafe { V::splat16(factor) };
        }
        Self(factors)
    }
}

/// The two partial sums of eight results, which the head of the module `convolve` explains.
#[derive(Clone, Copy)]
struct Sum<V>([V; 2]);

impl<V: Vector> Sum<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        unsafe { Self([V::splat16(64), V::zero()]) }
    }
    #[inline(always)]
    unsafe fn add(&mut self, factors: &Factors<V>, tap: usize, samples: V) {
        let part = &mut self.0[(tap >> 1) & 1];
        *part = unsafe { part.add16(samples.mul_low16(factors.0[tap])) };
    }
    /// The eight results, still to be clipped to bytes.
    #[inline(always)]
    unsafe fn end(self) -> V {
        unsafe { self.0[0].adds_i16(self.0[1]).shr_i16::<7>() }
    }
}

/// Whether a filter with `taps` taps has tap `tap`.
#[inline(always)]
const fn has(taps: usize, tap: usize) -> bool {
    taps == 8 || tap == 3 || tap == 4
}

/// Clips eight results to bytes and writes them in a row.
#[inline(always)]
unsafe fn put<V: Vector, const AVERAGE: bool>(v: V, q: *mut u8) {
    unsafe {
        if AVERAGE {
            v.pack_i16_u8(v).avg_u8(V::load_half_lanes(q, 0)).store_half_lanes(q, 0);
        } else {
            v.store_narrow(q);
        }
    }
}

/// Clips four results to bytes and writes them in a row.
#[inline(always)]
unsafe fn put_4<V: Vector, const AVERAGE: bool>(v: V, q: *mut u8) {
    unsafe {
        let v = v.pack_i16_u8(v);
        let v = if AVERAGE { v.avg_u8(V::load_quarter_lanes(q, 0)) } else { v };
        v.store_quarter_lanes(q, 0);
    }
}

/// Filters along rows.
#[cfg_attr(target_arch = "x86_64", inline(always))] // for its target feature
unsafe fn rows<V: Vector, const AVERAGE: bool, const TAPS: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let factors = Factors::<V>::new(filter);
        let eight = |p: *const u8| {
            let mut sum = Sum::<V>::new();
            for tap in 0..8 {
                if has(TAPS, tap) {
                    sum.add(&factors, tap, V::load_widen(p.add(tap)));
                }
            }
            sum.end()
        };
        for y in 0..height {
            let (p, q) = (from.at.add(y * from.stride).sub(BEFORE), to.at.add(y * to.stride));
            if width == 4 {
                put_4::<V, AVERAGE>(eight(p), q);
            } else {
                for x in (0..width).step_by(8) {
                    put::<V, AVERAGE>(eight(p.add(x)), q.add(x));
                }
            }
        }
    }
}

/// Filters along columns, eight at a time; `from` begins [`BEFORE`] rows above the block.
#[cfg_attr(target_arch = "x86_64", inline(always))] // for its target feature
unsafe fn columns<V: Vector, const AVERAGE: bool, const TAPS: usize>(
    filter: &Filter,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let factors = Factors::<V>::new(filter);
        for x in (0..width).step_by(8) {
            for y in (0..height).step_by(2) {
                let p = from.at.add(y * from.stride + x);
                let (mut upper, mut lower) = (Sum::<V>::new(), Sum::<V>::new());
                for row in 0..9 {
                    if TAPS == 2 && !(3..=5).contains(&row) {
                        continue;
                    }
                    let samples = V::load_widen(p.add(row * from.stride));
                    if row < 8 && has(TAPS, row) {
                        upper.add(&factors, row, samples);
                    }
                    if row > 0 && has(TAPS, row - 1) {
                        lower.add(&factors, row - 1, samples);
                    }
                }
                let q = to.at.add(y * to.stride + x);
                put::<V, AVERAGE>(upper.end(), q);
                put::<V, AVERAGE>(lower.end(), q.add(to.stride));
            }
        }
    }
}

/// Filters down as [`columns`] does, for a block of four columns whose source has no gaps between its rows.
#[cfg_attr(target_arch = "x86_64", inline(always))] // for its target feature
unsafe fn columns_of_4<V: Vector, const AVERAGE: bool, const TAPS: usize>(
    filter: &Filter,
    from: From,
    to: To,
    height: usize,
) {
    unsafe {
        let factors = Factors::<V>::new(filter);
        for y in (0..height).step_by(2) {
            let p = from.at.add(4 * y);
            let mut sum = Sum::<V>::new();
            for tap in 0..8 {
                if has(TAPS, tap) {
                    sum.add(&factors, tap, V::load_widen(p.add(4 * tap)));
                }
            }
            let (v, q) = (sum.end(), to.at.add(y * to.stride));
            put_4::<V, AVERAGE>(v, q);
            put_4::<V, AVERAGE>(v.zip_high64(v), q.add(to.stride));
        }
    }
}

/// Predicts a block from a reference of another size.
///
/// # Safety
///
/// The machine has `V`; block and reference are checked.
#[inline(always)]
pub(super) unsafe fn predict_scaled<V: Vector>(
    filters: &[Filter; 16],
    steps: Steps,
    reference: Reference<'_>,
    block: Block<'_>,
) {
    let (width, height) = (block.width, block.height);
    let stride = reference.stride;
    let mut middle = Middle::<{ MAX_SIDE * SCALED_ROWS + SLACK }>::new();
    let between = middle.to(width);
    let to = To { at: block.dst.as_mut_ptr(), stride: block.stride };
    unsafe {
        let first = reference.samples.as_ptr().add(reference.offset).sub(BEFORE * stride + BEFORE);
        let rows = steps.rows(height) + BEFORE + AFTER;
        scaled_rows::<V>(filters, steps, From { at: first, stride }, between, width, rows);
        if block.average {
            scaled_columns::<V, true>(filters, steps, between.read(), to, width, height);
        } else {
            scaled_columns::<V, false>(filters, steps, between.read(), to, width, height);
        }
    }
}

/// Filters along rows, each column by its own filter: products in pairs, four columns at a time.
#[inline(always)]
unsafe fn scaled_rows<V: Vector>(
    filters: &[Filter; 16],
    steps: Steps,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    unsafe {
        let half = V::splat32(64);
        for x in (0..width).step_by(4) {
            let at = |i: usize| steps.fx + (x + i) * steps.step_x;
            let start = |i: usize| from.at.add(at(i) >> 4);
            let factors = |i: usize| V::load(filters[at(i) & 15].as_ptr().cast());
            let starts = [start(0), start(1), start(2), start(3)];
            let factors = [factors(0), factors(1), factors(2), factors(3)];
            for y in 0..height {
                let pairs =
                    |i: usize| V::load_widen(starts[i].add(y * from.stride)).madd_i16(factors[i]);
                let (a, b, c, d) = (pairs(0), pairs(1), pairs(2), pairs(3));
                let ab = a.zip_low32(b).add32(a.zip_high32(b));
                let cd = c.zip_low32(d).add32(c.zip_high32(d));
                let sum = ab.zip_low64(cd).add32(ab.zip_high64(cd)).add32(half).shr_i32::<7>();
                put_4::<V, false>(sum.pack_i32_i16(sum), to.at.add(y * to.stride + x));
            }
        }
    }
}

/// Filters along columns, each row by its own filter.
#[inline(always)]
unsafe fn scaled_columns<V: Vector, const AVERAGE: bool>(
    filters: &[Filter; 16],
    steps: Steps,
    from: From,
    to: To,
    width: usize,
    height: usize,
) {
    for y in 0..height {
        unsafe {
            let position = steps.fy + y * steps.step_y;
            let factors = Factors::<V>::new(&filters[position & 15]);
            let (p, q) = (from.at.add((position >> 4) * from.stride), to.at.add(y * to.stride));
            for x in (0..width).step_by(8) {
                let mut sum = Sum::<V>::new();
                for tap in 0..8 {
                    sum.add(&factors, tap, V::load_widen(p.add(tap * from.stride + x)));
                }
                if width == 4 {
                    put_4::<V, AVERAGE>(sum.end(), q);
                } else {
                    put::<V, AVERAGE>(sum.end(), q.add(x));
                }
            }
        }
    }
}
