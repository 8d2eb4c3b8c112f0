//! Intra prediction over any [`Vector`].
//!
//! Every directional mode is rows cut out of one or two lines of smoothed edge samples, each row a
//! little further along: the lines are made once, then copied.

use super::{Edges, IntraMode};
use crate::simd::vector::Vector;

/// Length of a line in bytes: three sides of 32 samples, and a vector that is read beyond.
const LINE: usize = 160;

/// One line of samples. What a vector reads beyond the samples that count is never shown.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Line([u8; LINE]);

impl Line {
    #[inline(always)]
    fn at(&self, i: usize) -> *const u8 {
        self.0.as_ptr().wrapping_add(i)
    }
    #[inline(always)]
    fn at_mut(&mut self, i: usize) -> *mut u8 {
        self.0.as_mut_ptr().wrapping_add(i)
    }
}

/// The destination of a block.
#[derive(Clone, Copy)]
pub(super) struct To {
    pub(super) at: *mut u8,
    pub(super) stride: usize,
}

/// Predicts a block of `SIDE` × `SIDE` samples from its edges.
///
/// # Safety
///
/// The machine has `V`, which has two lanes only if `SIDE` is 32; all slices are checked.
#[inline(always)]
pub(super) unsafe fn predict<V: Vector, const SIDE: usize>(
    mode: IntraMode,
    edges: Edges<'_>,
    to: To,
) {
    let Edges { above, left, have_left, have_above } = edges;
    unsafe {
        let (corner, above) = (above[0], &above[1..=2 * SIDE]);
        let left = &left[..SIDE];
        match mode {
            IntraMode::Dc => {
                let level = mean::<V, SIDE>(have_left, have_above, above.as_ptr(), left.as_ptr());
                let v = V::splat8(level);
                for y in 0..SIDE {
                    put::<V, SIDE>([v; 2], to, y);
                }
            }
            IntraMode::V => {
                let row = get::<V, SIDE>(above.as_ptr());
                for y in 0..SIDE {
                    put::<V, SIDE>(row, to, y);
                }
            }
            IntraMode::H => {
                for (y, &v) in left.iter().enumerate() {
                    put::<V, SIDE>([V::splat8(v); 2], to, y);
                }
            }
            IntraMode::Tm => {
                let corner = V::splat16(i16::from(corner));
                let [a, b] = get::<V, SIDE>(above.as_ptr());
                let slopes =
                    [a.widen_low_u8(), a.widen_high_u8(), b.widen_low_u8(), b.widen_high_u8()];
                for (y, &v) in left.iter().enumerate() {
                    let level = V::splat16(i16::from(v)).sub16(corner);
                    let [a, b, c, d] = slopes;
                    let row = [
                        a.add16(level).pack_i16_u8(b.add16(level)),
                        c.add16(level).pack_i16_u8(d.add16(level)),
                    ];
                    put::<V, SIDE>(row, to, y);
                }
            }
            IntraMode::D45 => {
                let mut line = Line([0; LINE]);
                line.0[..2 * SIDE].copy_from_slice(above);
                let (_, mut three) = smooth::<V>(&line, 2 * SIDE);
                three.0[2 * SIDE - 2] = above[2 * SIDE - 1];
                for y in 0..SIDE {
                    cut::<V, SIDE>(&three, y, to, y);
                }
            }
            IntraMode::D63 => {
                let mut line = Line([0; LINE]);
                line.0[..2 * SIDE].copy_from_slice(above);
                let (two, three) = smooth::<V>(&line, SIDE + SIDE / 2);
                for y in (0..SIDE).step_by(2) {
                    cut::<V, SIDE>(&two, y / 2, to, y);
                    cut::<V, SIDE>(&three, y / 2, to, y + 1);
                }
            }
            IntraMode::D207 => {
                let mut line = Line([left[SIDE - 1]; LINE]);
                line.0[..SIDE].copy_from_slice(left);
                let (two, three) = smooth::<V>(&line, SIDE + SIDE / 2);
                let mixed = interleave::<V>(&two, &three, SIDE + SIDE / 2);
                for y in 0..SIDE {
                    cut::<V, SIDE>(&mixed, 2 * y, to, y);
                }
            }
            IntraMode::D135 => {
                let line = round_the_corner::<SIDE>(corner, above, left);
                let (_, three) = smooth::<V>(&line, 2 * SIDE);
                for y in 0..SIDE {
                    cut::<V, SIDE>(&three, SIDE - 1 - y, to, y);
                }
            }
            IntraMode::D117 => {
                let line = round_the_corner::<SIDE>(corner, above, left);
                let (even, odd) = d117_rows::<V, SIDE>(&line);
                for y in (0..SIDE).step_by(2) {
                    cut::<V, SIDE>(&even, SIDE / 2 - y / 2, to, y);
                    cut::<V, SIDE>(&odd, SIDE / 2 - y / 2, to, y + 1);
                }
            }
            IntraMode::D153 => {
                let line = round_the_corner::<SIDE>(corner, above, left);
                let (two, three) = smooth::<V>(&line, 2 * SIDE);
                let mut mixed = interleave::<V>(&two, &three, SIDE);
                mixed.0[2 * SIDE..3 * SIDE - 2].copy_from_slice(&three.0[SIDE..2 * SIDE - 2]);
                for y in 0..SIDE {
                    cut::<V, SIDE>(&mixed, 2 * (SIDE - 1 - y), to, y);
                }
            }
        }
    }
}

/// The lines along which even and odd rows of [`IntraMode::D117`] slide.
///
/// Even rows slide along the means of two, odd ones along those of three. What slides in from the left is every other
/// mean of three along the left column.
///
/// # Safety
///
/// As for [`predict`].
#[inline(always)]
unsafe fn d117_rows<V: Vector, const SIDE: usize>(line: &Line) -> (Line, Line) {
    let (two, three) = unsafe { smooth::<V>(line, 2 * SIDE) };
    let (mut even, mut odd) = (Line([0; LINE]), Line([0; LINE]));
    let half = SIDE / 2;
    even.0[half..half + SIDE].copy_from_slice(&two.0[SIDE..2 * SIDE]);
    odd.0[half..half + SIDE].copy_from_slice(&three.0[SIDE - 1..2 * SIDE - 1]);
    for m in 1..half {
        even.0[half - m] = three.0[SIDE - 2 * m];
        odd.0[half - m] = three.0[SIDE - 1 - 2 * m];
    }
    (even, odd)
}

/// Loads the samples of a row; the second vector counts only where one does not hold the row.
#[inline(always)]
unsafe fn get<V: Vector, const SIDE: usize>(p: *const u8) -> [V; 2] {
    unsafe {
        match SIDE {
            4 => [V::load_quarter_lanes(p, 0); 2],
            8 => [V::load_half_lanes(p, 0); 2],
            _ if SIDE == 16 * V::LANES => [V::load(p); 2],
            _ => [V::load(p), V::load(p.add(16))],
        }
    }
}

#[inline(always)]
unsafe fn put<V: Vector, const SIDE: usize>(row: [V; 2], to: To, y: usize) {
    unsafe {
        let q = to.at.add(y * to.stride);
        match SIDE {
            4 => row[0].store_quarter_lanes(q, 0),
            8 => row[0].store_half_lanes(q, 0),
            _ if SIDE == 16 * V::LANES => row[0].store(q),
            _ => {
                row[0].store(q);
                row[1].store(q.add(16));
            }
        }
    }
}

/// Writes row `y` of the block: the line from `start` on.
#[inline(always)]
unsafe fn cut<V: Vector, const SIDE: usize>(line: &Line, start: usize, to: To, y: usize) {
    unsafe { put::<V, SIDE>(get::<V, SIDE>(line.at(start)), to, y) }
}

/// The mean of the available edges in all bytes; mid-grey where there are none.
#[inline(always)]
unsafe fn mean<V: Vector, const SIDE: usize>(
    have_left: bool,
    have_above: bool,
    above: *const u8,
    left: *const u8,
) -> u8 {
    let edges = u32::from(have_left) + u32::from(have_above);
    if edges == 0 {
        return 128;
    }
    unsafe {
        let mut sum = V::zero();
        for (have, edge) in [(have_left, left), (have_above, above)] {
            if !have {
                continue;
            }
            let row = get::<V, SIDE>(edge);
            sum = sum.add16(row[0].widen_low_u8()).add16(row[0].widen_high_u8());
            if SIDE > 16 * V::LANES {
                sum = sum.add16(row[1].widen_low_u8()).add16(row[1].widen_high_u8());
            }
        }
        let mut parts = [0i32; 8];
        sum.madd_i16(V::splat16(1)).store(parts.as_mut_ptr().cast());
        let total = parts.iter().sum::<i32>() as u32;
        // One edge has `SIDE` samples, two have twice as many.
        let shift = SIDE.ilog2() + edges - 1;
        ((total + (1 << shift >> 1)) >> shift) as u8
    }
}

/// The line round the corner: the left column upwards, the corner, the row above.
#[inline(always)]
fn round_the_corner<const SIDE: usize>(corner: u8, above: &[u8], left: &[u8]) -> Line {
    let mut line = Line([0; LINE]);
    for (to, &v) in line.0[..SIDE].iter_mut().rev().zip(left) {
        *to = v;
    }
    line.0[SIDE] = corner;
    line.0[SIDE + 1..=2 * SIDE].copy_from_slice(&above[..SIDE]);
    line
}

/// Smooths a line. For each of its first `count` samples: the mean with the next one, and the weighted mean of the
/// next one with its two neighbours.
#[inline(always)]
unsafe fn smooth<V: Vector>(line: &Line, count: usize) -> (Line, Line) {
    let (mut two, mut three) = (Line([0; LINE]), Line([0; LINE]));
    for i in (0..count).step_by(16 * V::LANES) {
        unsafe {
            let (a, b, c) = (V::load(line.at(i)), V::load(line.at(i + 1)), V::load(line.at(i + 2)));
            a.avg_u8(b).store(two.at_mut(i));
            let down = a.avg_u8(c).sub8(a.xor(c).and(V::splat8(1)));
            b.avg_u8(down).store(three.at_mut(i));
        }
    }
    (two, three)
}

/// The first `count` samples of both lines, alternating.
#[inline(always)]
unsafe fn interleave<V: Vector>(two: &Line, three: &Line, count: usize) -> Line {
    let mut mixed = Line([0; LINE]);
    for i in (0..count).step_by(16 * V::LANES) {
        unsafe {
            let (a, b) = (V::load(two.at(i)), V::load(three.at(i)));
            a.zip_low8(b).store_lanes(mixed.at_mut(2 * i), 32);
            a.zip_high8(b).store_lanes(mixed.at_mut(2 * i + 16), 32);
        }
    }
    mixed
}
