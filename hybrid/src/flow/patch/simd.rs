//! The SIMD forms, over any vector: a row of a patch is a lane, and lanes share a patch's rows in equal
//! parts, so that each row's neighbour is in the same lane of the next vector.

use std::marker::PhantomData;

use windlass_vp9::simd::vector::Vector;

use super::{CELLS, Differences, Gradients, Patches, Place, SIDE, Template};

/// The kernels over vectors of a type.
pub(in super::super) struct Simd<W>(PhantomData<W>);

impl<W: Vector> Patches for Simd<W> {
    #[inline(always)]
    unsafe fn cut(template: &mut Template, from: &[u8], stride: usize) -> Gradients {
        assert!(from.len() > (SIDE + 1) * stride + SIDE + 1);
        unsafe {
            let (mut xx, mut xy, mut yy) = (W::zero(), W::zero(), W::zero());
            for j in 0..rows::<W>() {
                // Of the row above.
                let p = from.as_ptr().add(j * stride);
                let at = |x, y: usize| eight::<W>(p.add(y * stride + x), stride);
                let (x, y) = (at(2, 1).sub16(at(0, 1)), at(1, 2).sub16(at(1, 0)));
                put(&mut template.samples, j, at(1, 1).shl16::<6>());
                put(&mut template.across, j, x);
                put(&mut template.down, j, y);
                xx = xx.add32(x.madd_i16(x));
                xy = xy.add32(x.madd_i16(y));
                yy = yy.add32(y.madd_i16(y));
            }
            let [xx, xy, yy, _] = totals([xx, xy, yy, W::zero()]);
            Gradients { xx, xy, yy }
        }
    }

    #[inline(always)]
    unsafe fn compare(template: &Template, place: Place<'_>) -> Differences {
        unsafe {
            let (mut by_x, mut by_y, mut squares) = (W::zero(), W::zero(), W::zero());
            each::<W>(template, place, |j, d| {
                by_x = by_x.add32(d.madd_i16(get(&template.across, j)));
                by_y = by_y.add32(d.madd_i16(get(&template.down, j)));
                squares = squares.add32(d.madd_i16(d));
            });
            let [by_x, by_y, squares, _] = totals([by_x, by_y, squares, W::zero()]);
            Differences { by_x, by_y, squares }
        }
    }

    #[inline(always)]
    unsafe fn errors(template: &Template, place: Place<'_>) -> [i32; CELLS * CELLS] {
        unsafe {
            let mut sums = [0i32; CELLS * CELLS];
            let mut even = W::zero();
            each::<W>(template, place, |j, d| {
                let pairs = d.madd_i16(d);
                if j % 2 == 0 {
                    even = pairs;
                } else {
                    let to = sums.as_mut_ptr().add(j / 2 * CELLS);
                    even.add32(pairs).store_lanes(to.cast(), rows::<W>() / 2 * CELLS * 4);
                }
            });
            sums
        }
    }
}

/// Number of a patch's rows in each lane.
const fn rows<W: Vector>() -> usize {
    SIDE / W::LANES
}

/// Eight samples of each lane's row, as 16-bit elements.
#[inline(always)]
unsafe fn eight<W: Vector>(p: *const u8, stride: usize) -> W {
    unsafe { W::load_half_lanes(p, rows::<W>() * stride).widen_low_u8() }
}

/// Loads row `j` of each lane's rows: eight elements.
#[inline(always)]
unsafe fn get<W: Vector>(from: &[i16; SIDE * SIDE], j: usize) -> W {
    unsafe { W::load_lanes(from.as_ptr().add(j * SIDE).cast(), rows::<W>() * SIDE * 2) }
}

/// Stores row `j` of each lane's rows: eight elements.
#[inline(always)]
unsafe fn put<W: Vector>(to: &mut [i16; SIDE * SIDE], j: usize, v: W) {
    unsafe { v.store_lanes(to.as_mut_ptr().add(j * SIDE).cast(), rows::<W>() * SIDE * 2) }
}

/// Calls `give` with the differences of each lane's row, in 1/16 grey level.
#[inline(always)]
unsafe fn each<W: Vector>(template: &Template, place: Place<'_>, mut give: impl FnMut(usize, W)) {
    place.check();
    unsafe {
        let (p, stride) = (place.from.as_ptr(), place.stride);
        let (x, y) = (W::splat16(place.fraction.0), W::splat16(place.fraction.1 << 9));
        let mut above = across(p, stride, x);
        for j in 0..rows::<W>() {
            let below = across(p.add((j + 1) * stride), stride, x);
            let was = above.add16(below.sub16(above).mul_round_i16(y));
            give(j, was.sub16(get(&template.samples, j)).shr_i16::<2>());
            above = below;
        }
    }
}

/// Eight samples of each lane's row, each between two samples, in 1/64 grey level.
#[inline(always)]
unsafe fn across<W: Vector>(p: *const u8, stride: usize, fraction: W) -> W {
    unsafe {
        let (left, right) = (eight::<W>(p, stride), eight::<W>(p.add(1), stride));
        left.shl16::<6>().add16(right.sub16(left).mul_low16(fraction))
    }
}

/// The sums of the 32-bit elements of each of four vectors.
#[inline(always)]
unsafe fn totals<W: Vector>([a, b, c, d]: [W; 4]) -> [i32; 4] {
    unsafe {
        let ab = a.zip_low32(b).add32(a.zip_high32(b));
        let cd = c.zip_low32(d).add32(c.zip_high32(d));
        let lanes = ab.zip_low64(cd).add32(ab.zip_high64(cd));
        let mut parts = [0i32; 4 * 2];
        lanes.store(parts.as_mut_ptr().cast());
        std::array::from_fn(|i| (0..W::LANES).map(|lane| parts[4 * lane + i]).sum())
    }
}
