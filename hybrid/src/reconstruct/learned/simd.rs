//! The inner loops of learning and predicting over any [`Vector`].
//!
//! # Safety
//!
//! Every function needs a machine that has its types; what else it needs, its text says.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

use std::ops::Range;

use windlass_vp9::simd::vector::Vector;

use super::classes::{Band, DIRECTIONS, REACH, SLACK, STRENGTHS, grow};
use super::filters::{Filters, MAX_PREDICTION, SIDE, WEIGHT_BITS};
use super::fit::{BATCH, Batch, Products};
use super::{FLAT, TAPS};
use crate::resample::add_saturating;

/// Largest energy of samples that are flat in any direction, in square grey levels. With the tensor's length, at most
/// 1.07 times the energy by the estimate, it stays below the first strength.
const SURELY_FLAT: i32 = STRENGTHS[0] * 100 / 207;

/// Classifies the samples of a span: the SIMD form of `classes::classify`.
///
/// # Safety
///
/// The machine has both types. The span is within the band, and the band has its slack.
#[inline(always)]
pub(super) unsafe fn classify<V: Vector, O: Vector>(band: &mut Band, span: Range<usize>) {
    let (stride, width) = (band.stride, span.len());
    assert!(span.end <= band.width && band.width + 2 * REACH + SLACK <= stride);
    assert!(band.padded.len() >= (band.rows + 2 * REACH) * stride);
    assert!(band.tensors.len() >= 12 * stride && band.classes.len() >= band.rows * stride);
    let padded = band.padded.as_ptr().wrapping_add(span.start);
    let ring = band.tensors.as_mut_ptr();
    let products = ring.wrapping_add(9 * stride);
    let classes = band.classes.as_mut_ptr().wrapping_add(span.start);
    for y in 0..band.rows + 2 {
        unsafe {
            let (above, row) = (padded.add(y * stride), padded.add((y + 1) * stride));
            let below = padded.add((y + 2) * stride);
            for x in (0..width + 2).step_by(8 * V::LANES) {
                let (left, right) = (V::load(row.add(x).cast()), V::load(row.add(x + 2).cast()));
                let up = V::load(above.add(x + 1).cast());
                let gx = right.sub16(left);
                let gy = V::load(below.add(x + 1).cast()).sub16(up);
                let minus = V::zero().sub16(gy);
                // Four of each lane, then the other four.
                let to = products.add(x);
                let pair = gx.zip_low16(gy);
                pair.madd_i16(pair).store_lanes(to.cast(), 32);
                pair.madd_i16(gx.zip_low16(minus)).store_lanes(to.add(stride).cast(), 32);
                pair.madd_i16(gy.zip_low16(gx)).store_lanes(to.add(2 * stride).cast(), 32);
                let to = to.add(4);
                let pair = gx.zip_high16(gy);
                pair.madd_i16(pair).store_lanes(to.cast(), 32);
                pair.madd_i16(gx.zip_high16(minus)).store_lanes(to.add(stride).cast(), 32);
                pair.madd_i16(gy.zip_high16(gx)).store_lanes(to.add(2 * stride).cast(), 32);
            }
            for part in 0..3 {
                let from = products.add(part * stride);
                let to = ring.add((3 * part + y % 3) * stride);
                for x in (0..width).step_by(4 * V::LANES) {
                    three::<V>(from.add(x), 1).store(to.add(x).cast());
                }
            }
            let Some(out) = y.checked_sub(2) else { continue };
            let classes = classes.add(out * stride);
            for x in (0..width).step_by(4 * V::LANES) {
                let from = ring.add(x);
                let energy = three::<V>(from, stride);
                let class = if energy.gt_i32(V::splat32(SURELY_FLAT)).any() {
                    let a = three(from.add(3 * stride), stride);
                    class_of(energy, a, three(from.add(6 * stride), stride))
                } else {
                    V::splat32(FLAT.into())
                };
                class.store_narrow32(classes.add(x));
            }
        }
    }
}

/// The sum of three vectors.
#[inline(always)]
unsafe fn three<V: Vector>(from: *const i32, step: usize) -> V {
    unsafe {
        let (a, b) = (V::load(from.cast()), V::load(from.add(step).cast()));
        a.add32(b).add32(V::load(from.add(2 * step).cast()))
    }
}

#[inline(always)]
unsafe fn class_of<V: Vector>(energy: V, a: V, b: V) -> V {
    unsafe {
        let (across, up) = (a.abs32(), b.abs32());
        let (long, short) = (across.max_i32(up), across.min_i32(up));
        let length = long.add32(short.add32(short).add32(short).shr_i32::<3>());
        let total = energy.add32(length);
        let reaches = |s: i32| total.gt_i32(V::splat32(s - 1));
        let [weak, stronger @ ..] = STRENGTHS.map(reaches);
        let bit = |mask: V, bit: i32| mask.and(V::splat32(bit));
        let mut strength = V::zero();
        for reached in stronger {
            strength = strength.add32(bit(reached, 2));
        }
        let coherent = bit(length.add32(length).gt_i32(energy), 1);
        let direction =
            bit(a.shr_i32::<31>(), 4).or(bit(b.shr_i32::<31>(), 2)).or(bit(up.gt_i32(across), 1));
        const { assert!(DIRECTIONS == 8) };
        let class = strength.add32(coherent).shl32::<3>().add32(direction);
        weak.select(class, V::splat32(FLAT.into()))
    }
}

/// Adds the predictions to the high rows of a band: the SIMD form of `filters`.
///
/// # Safety
///
/// The machine has both types. The band is classified, and the strip has `scale * rows` rows of `scale * width`
/// samples.
#[inline(always)]
pub(super) unsafe fn add<V: Vector, O: Vector>(
    filters: &Filters,
    band: &mut Band,
    strip: &mut [i16],
) {
    let mut high = std::mem::take(&mut band.high);
    unsafe {
        match filters.scale() {
            2 => add_scale::<V, 2>(filters, band, strip, &mut high),
            3 => add_scale::<V, 3>(filters, band, strip, &mut high),
            _ => add_scale::<V, 4>(filters, band, strip, &mut high),
        }
    }
    band.high = high;
}

/// Number of low samples that are predicted together.
const GROUP: usize = 4;

/// Does what [`add`] does, for one scale. Two or four high samples of a row make whole vectors. Three do not: they
/// are written to `high`, four at a time, each over the end of the ones before, then added.
#[inline(always)]
unsafe fn add_scale<V: Vector, const S: usize>(
    filters: &Filters,
    band: &Band,
    strip: &mut [i16],
    high: &mut Vec<i16>,
) {
    let wide = S * band.width;
    let line = if S == 3 { wide + 16 } else { wide };
    if S == 3 {
        grow(high, 4 * line);
    }
    for y in 0..band.rows {
        let rows = &mut strip[S * wide * y..][..S * wide];
        let to = if S == 3 {
            high[..4 * line].fill(0);
            high.as_mut_ptr()
        } else {
            rows.as_mut_ptr()
        };
        for span in band.spans() {
            let end = span.start + span.len() / GROUP * GROUP;
            for x in (span.start..end).step_by(GROUP) {
                let at = band.classes.as_ptr().wrapping_add(y * band.stride + x);
                // SAFETY: spans are within the band, whose classes have rows of `stride`, and so
                // are the samples of the strip that belong to them.
                unsafe {
                    let classes = at.cast::<[u8; GROUP]>().read();
                    if classes != [FLAT; GROUP] {
                        add_group::<V, S>(filters, band, x, y, classes, to.add(S * x), line);
                    }
                }
            }
        }
        if S == 3 {
            for (row, more) in rows.chunks_exact_mut(wide).zip(high.chunks_exact(line)) {
                add_saturating(row, &more[..wide]);
            }
        }
        for span in band.spans() {
            for x in span.start + span.len() / GROUP * GROUP..span.end {
                filters.add_at(band, x, y, rows);
            }
        }
    }
}

/// Adds the high samples of [`GROUP`] low ones to rows of `line` samples; where the scale is 3, stores them instead.
#[inline(always)]
unsafe fn add_group<V: Vector, const S: usize>(
    filters: &Filters,
    band: &Band,
    x: usize,
    y: usize,
    classes: [u8; GROUP],
    to: *mut i16,
    line: usize,
) {
    for row in (0..S).step_by(V::LANES) {
        unsafe {
            let to = to.add(row * line);
            let mut k = 0;
            while k < GROUP {
                let a = weigh::<V, S>(filters, band, x + k, y, classes[k], row);
                let b = weigh::<V, S>(filters, band, x + k + 1, y, classes[k + 1], row);
                if S == 2 {
                    let c = weigh::<V, S>(filters, band, x + k + 2, y, classes[k + 2], row);
                    let d = weigh::<V, S>(filters, band, x + k + 3, y, classes[k + 3], row);
                    let low = fold([a[0], a[1], b[0], b[1]]);
                    let high = fold([c[0], c[1], d[0], d[1]]);
                    add_to(level(low, high), to, line);
                    k += 4;
                } else if S == 3 {
                    let both = level(fold(a), fold(b));
                    both.store_half_lanes(to.add(3 * k).cast(), 2 * line);
                    both.store_high_half_lanes(to.add(3 * k + 3).cast(), 2 * line);
                    k += 2;
                } else {
                    add_to(level(fold(a), fold(b)), to.add(4 * k), line);
                    k += 2;
                }
            }
        }
    }
}

/// The sums for one low sample. For each high column they are four sums that together make the high sample of `row`;
/// the second lane has those of the row below it. With a scale of 3 the fourth column is zero.
#[inline(always)]
unsafe fn weigh<V: Vector, const S: usize>(
    filters: &Filters,
    band: &Band,
    x: usize,
    y: usize,
    class: u8,
    row: usize,
) -> [V; 4] {
    let pairs = S.div_ceil(2);
    let table = filters.packed().as_ptr().wrapping_add(usize::from(class) * SIDE * pairs * S);
    let window = band.padded.as_ptr().wrapping_add(y * band.stride + x);
    unsafe {
        let mut sums = [V::zero(); 4];
        for k in 0..SIDE {
            let samples = V::load_each(window.add(k * band.stride).cast());
            for (column, sum) in sums.iter_mut().enumerate().take(S) {
                let at = table.add((k * pairs + row / 2) * S + column);
                let weights = V::load(at.cast::<u8>().add(16 * (row % 2)));
                *sum = sum.add32(samples.madd_i16(weights));
            }
        }
        sums
    }
}

/// Four sums: of the elements of each of four vectors.
#[inline(always)]
unsafe fn fold<V: Vector>([a, b, c, d]: [V; 4]) -> V {
    unsafe {
        let ab = a.zip_low32(b).add32(a.zip_high32(b));
        let cd = c.zip_low32(d).add32(c.zip_high32(d));
        ab.zip_low64(cd).add32(ab.zip_high64(cd))
    }
}

/// Rounds sums of weighted samples to predictions.
#[inline(always)]
unsafe fn level<V: Vector>(low: V, high: V) -> V {
    /// Number of fractional bits of the weights, as a shift takes it.
    const BITS: i32 = WEIGHT_BITS as i32;
    unsafe {
        let half = V::splat32(1 << (BITS - 1));
        let low = low.add32(half).shr_i32::<BITS>();
        let both = low.pack_i32_i16(high.add32(half).shr_i32::<BITS>());
        both.min_i16(V::splat16(MAX_PREDICTION)).max_i16(V::splat16(-MAX_PREDICTION))
    }
}

/// Adds eight predictions to a row, and those of the second lane to the row below.
#[inline(always)]
unsafe fn add_to<V: Vector>(more: V, to: *mut i16, line: usize) {
    unsafe {
        V::load_lanes(to.cast(), 2 * line).adds_i16(more).store_lanes(to.cast(), 2 * line);
    }
}

/// Adds the products of a batch of examples to the sums: the SIMD form of `fit`. Of the taps with each other, at
/// least the lower triangle is added.
///
/// # Safety
///
/// The machine has both types.
#[inline(always)]
pub(super) unsafe fn accumulate<V: Vector, O: Vector>(
    batch: &Batch,
    phases: usize,
    sums: &mut Products,
) {
    /// Number of values of a record, rounded up to whole vectors.
    const VALUES: usize = 40;
    /// The values of two examples at a time, alternating.
    #[repr(align(32))]
    struct Pairs([[i32; VALUES]; BATCH / 2]);
    let mut pairs = Pairs([[0; VALUES]; BATCH / 2]);
    let values = (TAPS + phases).next_multiple_of(8);
    let step = 4 * V::LANES;
    unsafe {
        for (to, examples) in pairs.0.iter_mut().zip(batch.chunks_exact(2)) {
            for k in (0..values).step_by(step) {
                let a = V::load_half_lanes(examples[0].as_ptr().add(k).cast(), 8);
                let b = V::load_half_lanes(examples[1].as_ptr().add(k).cast(), 8);
                a.zip_low16(b).store(to.as_mut_ptr().add(k).cast());
            }
        }
        for (i, sums) in sums.iter_mut().enumerate().take(TAPS + phases) {
            let mut factors = [V::zero(); BATCH / 2];
            for (factor, pairs) in factors.iter_mut().zip(&pairs.0) {
                *factor = V::splat32(pairs[i]);
            }
            for k in (0..TAPS.min(i + 1)).step_by(step) {
                let to = sums.as_mut_ptr().add(k).cast::<u8>();
                let mut sum = V::load(to);
                for (factor, pairs) in factors.iter().zip(&pairs.0) {
                    sum = sum.add32(V::load(pairs.as_ptr().add(k).cast()).madd_i16(*factor));
                }
                sum.store(to);
            }
        }
    }
}
