//! The SIMD forms: eight rows or columns to a lane.
//!
//! A pass over rows turns 8x8 squares on their diagonal, so that a register holds one column's
//! samples of its rows, and turns the result back. Sides of 16 and 32 keep it on the stack between
//! the passes; smaller blocks stay in registers. Blocks of 4x4 have two rows to a register.
//!
//! # Safety
//!
//! Every function needs the instruction set of its vectors and a [`Block`] as it says.

use super::lines::{ADST4, Adst, COS, Dct, Line, Samples, hadamard};
use crate::simd::vector::Vector;

/// Rounds the sums in the low and high half of each lane to 16-bit samples.
#[inline(always)]
unsafe fn narrow<V: Vector>(low: V, high: V) -> V {
    unsafe {
        let half = V::splat32(8192);
        low.add32(half).shr_i32::<14>().pack_i32_i16(high.add32(half).shr_i32::<14>())
    }
}

#[inline(always)]
unsafe fn pair<V: Vector>(f: [i16; 2]) -> V {
    unsafe { V::splat_pair(f[0], f[1]) }
}

impl<V: Vector> Samples for V {
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { <V as Vector>::zero() }
    }
    #[inline(always)]
    unsafe fn plus(self, o: Self) -> Self {
        unsafe { self.add16(o) }
    }
    #[inline(always)]
    unsafe fn minus(self, o: Self) -> Self {
        unsafe { self.sub16(o) }
    }
    #[inline(always)]
    unsafe fn half(self) -> Self {
        unsafe { self.shr_i16::<1>() }
    }
    #[inline(always)]
    unsafe fn scale(self, c: i16) -> Self {
        // (x * 2c + 2^14) >> 15 is (x * c + 2^13) >> 14.
        unsafe { self.mul_round_i16(V::splat16(2 * c)) }
    }
    #[inline(always)]
    unsafe fn rotate(a: Self, b: Self, f: [i16; 2], g: [i16; 2]) -> [Self; 2] {
        unsafe {
            let (low, high) = (a.zip_low16(b), a.zip_high16(b));
            let (f, g) = (pair::<V>(f), pair::<V>(g));
            [narrow(low.madd_i16(f), high.madd_i16(f)), narrow(low.madd_i16(g), high.madd_i16(g))]
        }
    }
    #[inline(always)]
    unsafe fn cross(ab: [Self; 2], f: [[i16; 2]; 2], cd: [Self; 2], g: [[i16; 2]; 2]) -> [Self; 4] {
        unsafe {
            let (p, q) = (ab[0].zip_low16(ab[1]), ab[0].zip_high16(ab[1]));
            let (r, s) = (cd[0].zip_low16(cd[1]), cd[0].zip_high16(cd[1]));
            let mut out = [<V as Vector>::zero(); 4];
            for i in 0..2 {
                let (f, g) = (pair::<V>(f[i]), pair::<V>(g[i]));
                let half = V::splat32(8192);
                let (a, b) = (p.madd_i16(f).add32(half), q.madd_i16(f).add32(half));
                let (c, d) = (r.madd_i16(g), s.madd_i16(g));
                out[i] = a.add32(c).shr_i32::<14>().pack_i32_i16(b.add32(d).shr_i32::<14>());
                out[i + 2] = a.sub32(c).shr_i32::<14>().pack_i32_i16(b.sub32(d).shr_i32::<14>());
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn matrix4(x: [Self; 4], rows: [[i16; 4]; 4]) -> [Self; 4] {
        unsafe {
            let (p, q) = (x[0].zip_low16(x[1]), x[0].zip_high16(x[1]));
            let (r, s) = (x[2].zip_low16(x[3]), x[2].zip_high16(x[3]));
            rows.map(|f| {
                let (f, g) = (pair::<V>([f[0], f[1]]), pair::<V>([f[2], f[3]]));
                narrow(p.madd_i16(f).add32(r.madd_i16(g)), q.madd_i16(f).add32(s.madd_i16(g)))
            })
        }
    }
}

/// A block's coefficients, and the destination of its residual.
///
/// `coefs` points to `side * side` values. With `ADD`, `dst` points to a square of `side` samples, `stride` apart
/// from row to row; otherwise `residual` points to `side * side` values.
pub(super) struct Block {
    pub coefs: *mut i16,
    pub cols: usize,
    pub rows: usize,
    pub dst: *mut u8,
    pub stride: usize,
    pub residual: *mut i16,
}

/// The coefficients between the two passes.
#[repr(align(32))]
pub(super) struct Between(pub core::mem::MaybeUninit<[i16; 32 * 32]>);

/// Mirrors the 8×8 square of each lane on its diagonal.
#[inline(always)]
unsafe fn transpose<V: Vector>(x: [V; 8]) -> [V; 8] {
    unsafe {
        let (a0, a1) = (x[0].zip_low16(x[1]), x[0].zip_high16(x[1]));
        let (a2, a3) = (x[2].zip_low16(x[3]), x[2].zip_high16(x[3]));
        let (a4, a5) = (x[4].zip_low16(x[5]), x[4].zip_high16(x[5]));
        let (a6, a7) = (x[6].zip_low16(x[7]), x[6].zip_high16(x[7]));
        let (b0, b1) = (a0.zip_low32(a2), a0.zip_high32(a2));
        let (b2, b3) = (a4.zip_low32(a6), a4.zip_high32(a6));
        let (b4, b5) = (a1.zip_low32(a3), a1.zip_high32(a3));
        let (b6, b7) = (a5.zip_low32(a7), a5.zip_high32(a7));
        [
            b0.zip_low64(b2),
            b0.zip_high64(b2),
            b1.zip_low64(b3),
            b1.zip_high64(b3),
            b4.zip_low64(b6),
            b4.zip_high64(b6),
            b5.zip_low64(b7),
            b5.zip_high64(b7),
        ]
    }
}

/// Rounds `SIDE` rows of `8 * LANES` columns from `column` on, and adds or stores them.
#[inline(always)]
unsafe fn finish<V: Vector, const SIDE: usize, const ADD: bool>(
    block: &Block,
    column: usize,
    rows: [V; SIDE],
) {
    unsafe {
        // (x * 2^(15 - n) + 2^14) >> 15 is the rounded shift by n bits.
        let factor = V::splat16(if SIDE == 8 { 1 << 10 } else { 1 << 9 });
        for (i, row) in rows.into_iter().enumerate() {
            let row = row.mul_round_i16(factor);
            if ADD {
                let p = block.dst.add(i * block.stride + column);
                V::load_widen(p).adds_i16(row).store_narrow(p);
            } else {
                row.store(block.residual.add(i * SIDE + column).cast());
            }
        }
    }
}

/// Transforms the rows of a block of side 16 or 32, in which the first `USED` coefficients can be non-zero.
#[inline(always)]
pub(super) unsafe fn rows<V: Vector, const SIDE: usize, T: Line<SIDE>, const USED: usize>(
    block: &Block,
    between: *mut i16,
) {
    unsafe {
        let lane = 8 * SIDE * 2;
        let mut row = 0;
        while row < block.rows {
            let mut x = [<V as Vector>::zero(); SIDE];
            for c in 0..USED.div_ceil(8) {
                let mut square = [<V as Vector>::zero(); 8];
                for (i, v) in square.iter_mut().enumerate() {
                    let p = block.coefs.add((row + i) * SIDE + 8 * c).cast::<u8>();
                    *v = V::load_lanes(p, lane);
                    <V as Vector>::zero().store_lanes(p, lane);
                }
                let square = transpose(square);
                for i in 0..USED.min(8) {
                    x[8 * c + i] = square[i];
                }
            }
            let y = T::run(x, USED);
            for c in 0..SIDE / 8 {
                let square = transpose([
                    y[8 * c],
                    y[8 * c + 1],
                    y[8 * c + 2],
                    y[8 * c + 3],
                    y[8 * c + 4],
                    y[8 * c + 5],
                    y[8 * c + 6],
                    y[8 * c + 7],
                ]);
                for (i, v) in square.into_iter().enumerate() {
                    v.store_lanes(between.add((row + i) * SIDE + 8 * c).cast(), lane);
                }
            }
            row += 8 * V::LANES;
        }
        // The pass over columns reads a class of rows, up to all of them.
        if row > 16 && row < SIDE {
            between.add(row * SIDE).write_bytes(0, (SIDE - row) * SIDE);
        }
    }
}

/// Transforms the columns of a block of side 16 or 32, in which the first `USED` samples can be non-zero.
#[inline(always)]
pub(super) unsafe fn columns<
    V: Vector,
    const SIDE: usize,
    T: Line<SIDE>,
    const USED: usize,
    const ADD: bool,
>(
    block: &Block,
    between: *const i16,
) {
    unsafe {
        let mut column = 0;
        while column < SIDE {
            let mut x = [<V as Vector>::zero(); SIDE];
            for (i, x) in x.iter_mut().enumerate().take(USED) {
                *x = V::load(between.add(i * SIDE + column).cast());
            }
            finish::<V, SIDE, ADD>(block, column, T::run(x, USED));
            column += 8 * V::LANES;
        }
    }
}

/// Transforms a block of side 8, whose coefficients lie within the first `USED` columns and rows.
#[inline(always)]
pub(super) unsafe fn square8<
    V: Vector,
    R: Line<8>,
    C: Line<8>,
    const USED: usize,
    const ADD: bool,
>(
    block: &Block,
) {
    unsafe {
        let mut x = [<V as Vector>::zero(); 8];
        for (i, x) in x.iter_mut().enumerate().take(USED) {
            let p = block.coefs.add(8 * i).cast::<u8>();
            *x = V::load(p);
            <V as Vector>::zero().store(p);
        }
        let y = transpose(R::run(transpose(x), USED));
        finish::<V, 8, ADD>(block, 0, C::run(y, USED));
    }
}

/// A transform of four lines, with two of them in a register: `[0 | 1]`, `[2 | 3]`.
pub(super) trait Pairs {
    /// The transform of `x`.
    unsafe fn pairs<V: Vector>(x: [V; 2]) -> [V; 2];
}

#[inline(always)]
unsafe fn swap_halves<V: Vector>(x: V) -> V {
    unsafe { x.zip_high64(x).zip_low64(x) }
}

impl Pairs for Dct {
    #[inline(always)]
    unsafe fn pairs<V: Vector>(x: [V; 2]) -> [V; 2] {
        unsafe {
            let (even, odd) = (x[0].zip_low16(x[1]), x[0].zip_high16(x[1]));
            let a = narrow(
                even.madd_i16(pair([COS[16], COS[16]])),
                even.madd_i16(pair([COS[16], -COS[16]])),
            );
            let b = narrow(
                odd.madd_i16(pair([COS[8], COS[24]])),
                odd.madd_i16(pair([COS[24], -COS[8]])),
            );
            [a.add16(b), swap_halves(a.sub16(b))]
        }
    }
}

impl Pairs for Adst {
    #[inline(always)]
    unsafe fn pairs<V: Vector>(x: [V; 2]) -> [V; 2] {
        unsafe {
            let (even, odd) = (x[0].zip_low16(x[1]), x[0].zip_high16(x[1]));
            let out = ADST4
                .map(|f| even.madd_i16(pair([f[0], f[2]])).add32(odd.madd_i16(pair([f[1], f[3]]))));
            [narrow(out[0], out[1]), narrow(out[2], out[3])]
        }
    }
}

/// Transposes four rows in pairs to four columns in pairs.
#[inline(always)]
unsafe fn transpose_pairs<V: Vector>(x: [V; 2]) -> [V; 2] {
    unsafe {
        let (a, b) = (x[0].zip_low16(x[1]), x[0].zip_high16(x[1]));
        [a.zip_low16(b), a.zip_high16(b)]
    }
}

/// Adds or stores four rows that are in pairs.
#[inline(always)]
unsafe fn finish_pairs<V: Vector, const ADD: bool>(block: &Block, x: [V; 2]) {
    unsafe {
        if ADD {
            add_pairs(x, block.dst, block.stride);
        } else {
            x[0].store(block.residual.cast());
            x[1].store(block.residual.add(8).cast());
        }
    }
}

#[inline(always)]
unsafe fn add_pairs<V: Vector>(x: [V; 2], dst: *mut u8, stride: usize) {
    unsafe {
        let d = [0, 1, 2, 3].map(|i| V::load_quarter_lanes(dst.add(i * stride), 0));
        let low = d[0].zip_low32(d[1]).widen_low_u8().adds_i16(x[0]);
        let high = d[2].zip_low32(d[3]).widen_low_u8().adds_i16(x[1]);
        let all = low.pack_i16_u8(high);
        let (a, b) = (all.zip_low32(all), all.zip_high32(all));
        a.store_quarter_lanes(dst, 0);
        a.zip_high64(a).store_quarter_lanes(dst.add(stride), 0);
        b.store_quarter_lanes(dst.add(2 * stride), 0);
        b.zip_high64(b).store_quarter_lanes(dst.add(3 * stride), 0);
    }
}

#[inline(always)]
unsafe fn take_pairs<V: Vector>(block: &Block) -> [V; 2] {
    unsafe {
        let p = block.coefs.cast::<u8>();
        let x = [V::load(p), V::load(p.add(16))];
        <V as Vector>::zero().store(p);
        <V as Vector>::zero().store(p.add(16));
        x
    }
}

/// Transforms a block of side 4.
#[inline(always)]
pub(super) unsafe fn square4<V: Vector, R: Pairs, C: Pairs, const ADD: bool>(block: &Block) {
    unsafe {
        let x = take_pairs::<V>(block);
        let y = C::pairs(transpose_pairs(R::pairs(transpose_pairs(x))));
        let factor = V::splat16(1 << 11);
        finish_pairs::<V, ADD>(block, y.map(|y| y.mul_round_i16(factor)));
    }
}

/// Transforms a lossless block of side 4.
#[inline(always)]
pub(super) unsafe fn lossless<V: Vector, const ADD: bool>(block: &Block) {
    unsafe {
        let mut x = take_pairs::<V>(block).map(|x| x.shr_i16::<2>());
        for _ in 0..2 {
            let [a, b] = transpose_pairs(x);
            let y = hadamard([a, a.zip_high64(a), b, b.zip_high64(b)]);
            x = [y[0].zip_low64(y[1]), y[2].zip_low64(y[3])];
        }
        finish_pairs::<V, ADD>(block, x);
    }
}

/// Adds or stores the residual of a block of side `SIDE` that is `value` everywhere.
#[inline(always)]
pub(super) unsafe fn constant<V: Vector, const SIDE: usize, const ADD: bool>(
    block: &Block,
    value: i16,
) {
    unsafe {
        if !ADD {
            return core::slice::from_raw_parts_mut(block.residual, SIDE * SIDE).fill(value);
        }
        // One of the two is zero.
        let value = V::splat16(value);
        let up = value.pack_i16_u8(value);
        let down = <V as Vector>::zero().subs_i16(value);
        let down = down.pack_i16_u8(down);
        let shift = |v: V| v.adds_u8(up).subs_u8(down);
        for i in 0..SIDE {
            let p = block.dst.add(i * block.stride);
            match SIDE {
                4 => shift(V::load_quarter_lanes(p, 0)).store_quarter_lanes(p, 0),
                8 => shift(V::load_half_lanes(p, 0)).store_half_lanes(p, 0),
                16 => shift(V::load(p)).store(p),
                _ => {
                    shift(V::load(p)).store(p);
                    shift(V::load(p.add(16))).store(p.add(16));
                }
            }
        }
    }
}

/// Adds a residual of `side * side` values to the square at `dst`.
#[inline(always)]
pub(super) unsafe fn add<V: Vector, W: Vector>(
    residual: *const i16,
    side: usize,
    dst: *mut u8,
    stride: usize,
) {
    unsafe {
        if side == 4 {
            let p = residual.cast::<u8>();
            return add_pairs([V::load(p), V::load(p.add(16))], dst, stride);
        }
        for i in 0..side {
            let (r, d) = (residual.add(i * side), dst.add(i * stride));
            if side == 8 {
                V::load_widen(d).adds_i16(V::load(r.cast())).store_narrow(d);
                continue;
            }
            for c in (0..side).step_by(8 * W::LANES) {
                let (r, d) = (r.add(c), d.add(c));
                W::load_widen(d).adds_i16(W::load(r.cast())).store_narrow(d);
            }
        }
    }
}
