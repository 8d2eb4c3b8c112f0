//! The form for SIMD: 16 samples along the edge for each lane, 8-bit arithmetic, 16-bit averages.
//!
//! An edge's samples come as one vector for each distance from the edge: loaded as they lie for
//! horizontal edges, transposed for vertical ones. The filter is computed for a whole vector with
//! masks for what each sample gets; parts that no sample needs are left out.
//!
//! Vectors are passed only to functions that are always inlined, and never through closures:
//! those do not take on the instruction set of the caller.

#![allow(clippy::needless_range_loop)] // no closures, as said above

use super::{Area, Direction, EdgeMasks, Levels, Limits};
use crate::simd::vector::Vector;

/// A plane of a superblock, by pointers.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    /// The first sample of the area.
    pub(super) at: *mut u8,
    pub(super) stride: usize,
    pub(super) units: usize,
}

impl Plane {
    pub(super) fn of(area: &mut Area) -> Self {
        Self {
            // From the whole slice: line 0 reaches back before the area.
            at: area.samples.as_mut_ptr().wrapping_add(area.offset),
            stride: area.stride,
            units: area.units,
        }
    }
}

/// One edge of `16 * LANES` samples.
#[derive(Clone, Copy)]
struct Edge<const VERTICAL: bool> {
    /// The first sample after the edge.
    at: *mut u8,
    stride: usize,
}

/// Where and how strongly one edge is filtered: one bit for 8 samples, one byte for the level of 8.
#[derive(Clone, Copy)]
struct Demand {
    any: u32,
    /// The bits of `any` whose filter has at least medium size.
    medium: u32,
    /// The bits of `medium` whose filter has wide size.
    wide: u32,
    levels: u32,
}

/// Filters all edges of one direction.
///
/// # Safety
///
/// The machine has the instructions of `V` and `H`; the plane's area is valid, and so are the 8 rows above or 8
/// columns before it if line 0 has edges. `H` has half the lanes of `V`, or one lane if `V` has one.
#[inline(always)]
pub(super) unsafe fn filter_edges<V: Vector, H: Vector>(
    direction: Direction,
    masks: &EdgeMasks,
    levels: &Levels,
    limits: &Limits,
    plane: Plane,
) {
    // SAFETY: as the caller's.
    unsafe {
        match direction {
            Direction::Vertical => run::<V, H, true>(masks, levels, limits, plane),
            Direction::Horizontal => run::<V, H, false>(masks, levels, limits, plane),
        }
    }
}

#[inline(always)]
unsafe fn run<V: Vector, H: Vector, const VERTICAL: bool>(
    masks: &EdgeMasks,
    levels: &Levels,
    limits: &Limits,
    plane: Plane,
) {
    let group = 2 * V::LANES;
    let bits = (1u64 << group) - 1;
    let all = masks.wide | masks.medium | masks.narrow | masks.inner;
    for place in (0..plane.units).step_by(group) {
        let mut rest = all & ((0x0101_0101_0101_0101 * bits) << place);
        while rest != 0 {
            let line = rest.trailing_zeros() as usize / 8;
            rest &= !(0xff << (8 * line));
            let of = |mask: u64| ((mask >> (8 * line + place)) & bits) as u32;
            let wide = of(masks.wide);
            let medium = wide | of(masks.medium);
            let any = medium | of(masks.narrow);
            let levels = (levels[line] >> (8 * place)) as u32;
            let (down, right) = if VERTICAL { (place, line) } else { (line, place) };
            // SAFETY: inside the plane.
            unsafe {
                let at = plane.at.add(8 * (down * plane.stride + right));
                let edge = Edge::<VERTICAL> { at, stride: plane.stride };
                if any != 0 {
                    edge.filter_some::<V, H>(Demand { any, medium, wide, levels }, limits);
                }
                let any = of(masks.inner);
                if any != 0 {
                    let at = at.add(if VERTICAL { 4 } else { 4 * plane.stride });
                    let edge = Edge::<VERTICAL> { at, stride: plane.stride };
                    let demand = Demand { any, medium: 0, wide: 0, levels };
                    edge.filter_some::<V, H>(demand, limits);
                }
            }
        }
    }
}

/// One riffle of the bytes of `N` vectors in a row: the halves of the row alternate. Vectors of `2^n` rows of bytes
/// are transposed by `n` riffles.
#[inline(always)]
unsafe fn riffle<V: Vector, const N: usize>(x: [V; N]) -> [V; N] {
    let mut out = x;
    for i in 0..N / 2 {
        // SAFETY: as the caller's.
        unsafe {
            out[2 * i] = x[i].zip_low8(x[i + N / 2]);
            out[2 * i + 1] = x[i].zip_high8(x[i + N / 2]);
        }
    }
    out
}

/// Transposes 16 rows of 8 bytes in each lane to columns.
#[inline(always)]
unsafe fn columns<V: Vector>(rows: [V; 16]) -> [V; 8] {
    // SAFETY: as the caller's.
    unsafe {
        let mut pairs = [V::zero(); 8];
        for i in 0..8 {
            pairs[i] = rows[i].zip_low8(rows[i + 8]);
        }
        riffle(riffle(riffle(pairs)))
    }
}

impl<const VERTICAL: bool> Edge<VERTICAL> {
    /// A pointer to the samples `i` steps after the edge.
    #[inline(always)]
    unsafe fn row(self, i: isize) -> *mut u8 {
        // SAFETY: the caller stays within 8 samples of the edge.
        unsafe { self.at.offset(i * self.stride as isize) }
    }

    /// Loads the 4 samples on either side of the edge.
    #[inline(always)]
    unsafe fn near<V: Vector>(self) -> [V; 8] {
        // SAFETY: as the caller's.
        unsafe {
            if VERTICAL {
                let mut rows = [V::zero(); 16];
                for i in 0..16 {
                    let row = self.row(i as isize);
                    rows[i] = V::load_half_lanes(row.sub(4), 16 * self.stride);
                }
                columns(rows)
            } else {
                let mut x = [V::zero(); 8];
                for i in 0..8 {
                    x[i] = V::load(self.row(i as isize - 4));
                }
                x
            }
        }
    }

    /// Loads the 4 samples beyond those that [`near`](Self::near) loads, on either side.
    #[inline(always)]
    unsafe fn far<V: Vector>(self) -> [V; 8] {
        // SAFETY: as the caller's.
        unsafe {
            if VERTICAL {
                let mut rows = [V::zero(); 16];
                for i in 0..16 {
                    let row = self.row(i as isize);
                    let before = V::load_quarter_lanes(row.sub(8), 16 * self.stride);
                    let after = V::load_quarter_lanes(row.add(4), 16 * self.stride);
                    rows[i] = before.zip_low32(after);
                }
                columns(rows)
            } else {
                let mut x = [V::zero(); 8];
                for i in 0..4 {
                    x[i] = V::load(self.row(i as isize - 8));
                    x[i + 4] = V::load(self.row(i as isize + 4));
                }
                x
            }
        }
    }

    /// Stores the 2 samples on either side of the edge.
    #[inline(always)]
    unsafe fn put_narrow<V: Vector>(self, x: [V; 4]) {
        // SAFETY: as the caller's.
        unsafe {
            if VERTICAL {
                let stride = 16 * self.stride;
                let fours = riffle(riffle(x));
                for i in 0..4 {
                    let to = self.row(4 * i as isize).sub(2);
                    fours[i].store_element_lanes::<0>(to, stride);
                    fours[i].store_element_lanes::<1>(to.add(self.stride), stride);
                    fours[i].store_element_lanes::<2>(to.add(2 * self.stride), stride);
                    fours[i].store_element_lanes::<3>(to.add(3 * self.stride), stride);
                }
            } else {
                for i in 0..4 {
                    x[i].store(self.row(i as isize - 2));
                }
            }
        }
    }

    /// Stores the 3 samples on either side of the edge; the outermost of `x` are unchanged.
    #[inline(always)]
    unsafe fn put_medium<V: Vector>(self, x: [V; 8]) {
        // SAFETY: as the caller's.
        unsafe {
            if VERTICAL {
                let stride = 16 * self.stride;
                let twos = riffle(riffle(riffle(x)));
                for i in 0..8 {
                    let to = self.row(2 * i as isize).sub(4);
                    twos[i].store_half_lanes(to, stride);
                    twos[i].store_high_half_lanes(to.add(self.stride), stride);
                }
            } else {
                for i in 1..7 {
                    x[i].store(self.row(i as isize - 4));
                }
            }
        }
    }

    /// Stores the 7 samples on either side of the edge; the outermost of `x` are unchanged.
    #[inline(always)]
    unsafe fn put_wide<V: Vector>(self, x: [V; 16]) {
        // SAFETY: as the caller's.
        unsafe {
            if VERTICAL {
                let rows = riffle(riffle(riffle(riffle(x))));
                for i in 0..16 {
                    rows[i].store_lanes(self.row(i as isize).sub(8), 16 * self.stride);
                }
            } else {
                for i in 1..15 {
                    x[i].store(self.row(i as isize - 8));
                }
            }
        }
    }

    /// Filters the whole vector, or the half that has edges if only one half of vertical edges has any.
    #[inline(always)]
    unsafe fn filter_some<V: Vector, H: Vector>(self, demand: Demand, limits: &Limits) {
        // SAFETY: as the caller's.
        unsafe {
            if !VERTICAL || V::LANES == H::LANES || (demand.any & 3 != 0 && demand.any >> 2 != 0) {
                self.filter::<V>(demand, limits);
            } else if demand.any >> 2 == 0 {
                self.filter::<H>(demand, limits);
            } else {
                let Demand { any, medium, wide, levels } = demand;
                let demand = Demand {
                    any: any >> 2,
                    medium: medium >> 2,
                    wide: wide >> 2,
                    levels: levels >> 16,
                };
                Self { at: self.row(16), ..self }.filter::<H>(demand, limits);
            }
        }
    }

    #[inline(always)]
    unsafe fn filter<V: Vector>(self, demand: Demand, limits: &Limits) {
        // SAFETY: as the caller's.
        unsafe {
            let x: [V; 8] = self.near();
            let [p3, p2, p1, p0, q0, q1, q2, q3] = x;
            let [limit, blimit, thresh] = limits.vectors::<V>(demand.levels);

            let inner = p1.abs_diff_u8(p0).max_u8(q1.abs_diff_u8(q0));
            let outer = p3.abs_diff_u8(p2).max_u8(q3.abs_diff_u8(q2));
            let middle = p2.abs_diff_u8(p1).max_u8(q2.abs_diff_u8(q1));
            let across = p0.abs_diff_u8(q0);
            let half = p1.abs_diff_u8(q1).shr_u16::<1>().and(V::splat8(0x7f));
            let across = across.adds_u8(across).adds_u8(half);
            let beyond = inner.max_u8(outer).max_u8(middle).subs_u8(limit);
            let mask = beyond.or(across.subs_u8(blimit)).eq8(V::zero()).and(spread(demand.any));
            if !mask.any() {
                return;
            }

            let mut flat = V::zero();
            if demand.medium != 0 {
                let second = p2.abs_diff_u8(p0).max_u8(q2.abs_diff_u8(q0));
                let third = p3.abs_diff_u8(p0).max_u8(q3.abs_diff_u8(q0));
                flat = flat_where(inner.max_u8(second).max_u8(third));
                flat = flat.and(mask).and(spread(demand.medium));
            }
            let some_flat = demand.medium != 0 && flat.any();
            let mut out = x;
            if !some_flat || mask.and_not(flat).any() {
                let even = inner.subs_u8(thresh).eq8(V::zero());
                let four = narrow([p1, p0, q0, q1], mask, even);
                if !some_flat {
                    self.put_narrow(four);
                    return;
                }
                [out[2], out[3], out[4], out[5]] = four;
            }
            if demand.wide != 0 {
                let y: [V; 8] = self.far();
                let mut most = y[0].abs_diff_u8(p0);
                for i in 1..8 {
                    most = most.max_u8(y[i].abs_diff_u8(if i < 4 { p0 } else { q0 }));
                }
                let flat_far = flat_where(most).and(flat).and(spread(demand.wide));
                if flat_far.any() {
                    if flat.and_not(flat_far).any() {
                        average::<V, 4, 8>(&x, &mut out, flat);
                    }
                    let [p7, p6, p5, p4, q4, q5, q6, q7] = y;
                    let all = [p7, p6, p5, p4, p3, p2, p1, p0, q0, q1, q2, q3, q4, q5, q6, q7];
                    let [_, o2, o1, o0, r0, r1, r2, _] = out;
                    let mut wide = [p7, p6, p5, p4, p3, o2, o1, o0, r0, r1, r2, q3, q4, q5, q6, q7];
                    average::<V, 8, 16>(&all, &mut wide, flat_far);
                    self.put_wide(wide);
                    return;
                }
            }
            average::<V, 4, 8>(&x, &mut out, flat);
            self.put_medium(out);
        }
    }
}

impl Limits {
    /// Loads limit, blimit and thresh for up to four levels of 8 samples each.
    #[inline(always)]
    unsafe fn vectors<V: Vector>(&self, levels: u32) -> [V; 3] {
        let [a, b, c, d] = levels.to_le_bytes();
        // SAFETY: as the caller's.
        unsafe {
            if levels == u32::from(a) * 0x0101_0101 {
                let [limit, blimit, thresh, _] = self.packed(a).to_le_bytes();
                return [V::splat8(limit), V::splat8(blimit), V::splat8(thresh)];
            }
            let [a, b] = [self.packed(a), self.packed(b)];
            let [c, d] = if V::LANES > 1 { [self.packed(c), self.packed(d)] } else { [0, 0] };
            [
                V::splat_halves(transposed::<0>([a, b, c, d])),
                V::splat_halves(transposed::<1>([a, b, c, d])),
                V::splat_halves(transposed::<2>([a, b, c, d])),
            ]
        }
    }
}

/// A word of byte `I` of each of the four words.
#[inline(always)]
fn transposed<const I: u32>([a, b, c, d]: [u32; 4]) -> u32 {
    u32::from_le_bytes([a, b, c, d].map(|v| (v >> (8 * I)) as u8))
}

/// A mask of all ones in the 8 samples of each set bit.
#[inline(always)]
unsafe fn spread<V: Vector>(bits: u32) -> V {
    let bytes = (bits.wrapping_mul(0x0020_4081) & 0x0101_0101) * 0xff;
    // SAFETY: as the caller's.
    unsafe { V::splat_halves(bytes) }
}

/// A mask of the bytes whose difference is at most 1.
#[inline(always)]
unsafe fn flat_where<V: Vector>(difference: V) -> V {
    // SAFETY: as the caller's.
    unsafe { difference.subs_u8(V::splat8(1)).eq8(V::zero()) }
}

/// The narrow filter (specification 8.8.5.2); `even` is the inverse of the high edge variance mask.
#[inline(always)]
unsafe fn narrow<V: Vector>(x: [V; 4], mask: V, even: V) -> [V; 4] {
    // SAFETY: as the caller's.
    unsafe {
        let sign = V::splat8(0x80);
        let [p1, p0, q0, q1] = [x[0].xor(sign), x[1].xor(sign), x[2].xor(sign), x[3].xor(sign)];
        let step = q0.subs_i8(p0);
        let base = p1.subs_i8(q1).and_not(even);
        let filter = base.adds_i8(step).adds_i8(step).adds_i8(step).and(mask);
        let filter1 = eighth(filter.adds_i8(V::splat8(4)));
        let filter2 = eighth(filter.adds_i8(V::splat8(3))).sub8(V::splat8(16));
        let outer = filter1.avg_u8(V::zero()).sub8(V::splat8(8)).and(even);
        let filter1 = filter1.sub8(V::splat8(16));
        [
            p1.adds_i8(outer).xor(sign),
            p0.adds_i8(filter2).xor(sign),
            q0.subs_i8(filter1).xor(sign),
            q1.subs_i8(outer).xor(sign),
        ]
    }
}

/// Each byte shifted to the right by 3 with the sign, plus 16.
#[inline(always)]
unsafe fn eighth<V: Vector>(v: V) -> V {
    // SAFETY: as the caller's.
    unsafe { v.xor(V::splat8(0x80)).shr_u16::<3>().and(V::splat8(0x1f)) }
}

/// The wide filters (specification 8.8.5.3) with `N` samples on either side, `M = 2 * N`, into `out` where `mask` is
/// set. The outermost samples stay.
#[inline(always)]
unsafe fn average<V: Vector, const N: usize, const M: usize>(
    x: &[V; M],
    out: &mut [V; M],
    mask: V,
) {
    // SAFETY: as the caller's.
    unsafe {
        let most = if N == 4 { 38 } else { 14 };
        let across = x[N - 1].abs_diff_u8(x[N]).subs_u8(V::splat8(most));
        if !across.and(mask).any() {
            small_averages::<V, N, M>(x, out, mask);
            return;
        }
        let (mut low, mut high) = (*x, *x);
        for i in 0..M {
            low[i] = x[i].widen_low_u8();
            high[i] = x[i].widen_high_u8();
        }
        let (low, high) = (averages::<V, N, M>(low), averages::<V, N, M>(high));
        for i in 1..M - 1 {
            out[i] = mask.select(low[i].pack_i16_u8(high[i]), out[i]);
        }
    }
}

/// The filter's moving averages in 8 bits, for a small step across the edge.
///
/// On each side of the edge no sample differs from the one at the edge by more than 1. So the sum of the 16 (8)
/// weighted samples less 16 (8) times the one at the edge stays within 16 + 7 * 14 (8 + 3 * 38). This fits a signed
/// byte also after rounding is added.
#[inline(always)]
unsafe fn small_averages<V: Vector, const N: usize, const M: usize>(
    x: &[V; M],
    out: &mut [V; M],
    mask: V,
) {
    // SAFETY: as the caller's.
    unsafe {
        let (p0, q0) = (x[N - 1], x[N]);
        // The sum plus 128, so that shifts see no sign.
        let first = times::<V, N>(x[0]).sub8(x[0]).add8(x[1]).sub8(times::<V, M>(p0));
        let mut sum = first.add8(V::splat8(128 + N as u8));
        for i in 1..=N {
            sum = sum.add8(x[i]);
        }
        let offset = V::splat8(if N == 4 { 16 } else { 8 });
        let mut base = p0.sub8(offset);
        for i in 1..M - 1 {
            if i > 1 {
                let new = x[i].add8(x[(i + N - 1).min(M - 1)]);
                let old = x[i - 1].add8(x[i.saturating_sub(N)]);
                sum = sum.add8(new).sub8(old);
            }
            if i == N {
                sum = sum.sub8(times::<V, M>(q0.sub8(p0)));
                base = q0.sub8(offset);
            }
            let part = if N == 4 {
                sum.shr_u16::<3>().and(V::splat8(0x1f))
            } else {
                sum.shr_u16::<4>().and(V::splat8(0x0f))
            };
            out[i] = mask.select(part.add8(base), out[i]);
        }
    }
}

/// Each byte times 4, 8 or 16, wrapping.
#[inline(always)]
unsafe fn times<V: Vector, const N: usize>(v: V) -> V {
    // SAFETY: as the caller's.
    unsafe {
        let four = v.add8(v).add8(v.add8(v));
        match N {
            4 => four,
            8 => four.add8(four),
            _ => four.add8(four).add8(four.add8(four)),
        }
    }
}

/// The filter's moving averages in 16 bits, which no difference between samples overflows.
#[inline(always)]
unsafe fn averages<V: Vector, const N: usize, const M: usize>(x: [V; M]) -> [V; M] {
    let mut out = x;
    // SAFETY: as the caller's.
    unsafe {
        let first = if N == 4 { x[0].shl16::<2>() } else { x[0].shl16::<3>() };
        let mut sum = first.sub16(x[0]).add16(x[1]).add16(V::splat16(N as i16));
        for i in 1..=N {
            sum = sum.add16(x[i]);
        }
        for i in 1..M - 1 {
            if i > 1 {
                let new = x[i].add16(x[(i + N - 1).min(M - 1)]);
                let old = x[i - 1].add16(x[i.saturating_sub(N)]);
                sum = sum.add16(new).sub16(old);
            }
            out[i] = if N == 4 { sum.shr_u16::<3>() } else { sum.shr_u16::<4>() };
        }
    }
    out
}
