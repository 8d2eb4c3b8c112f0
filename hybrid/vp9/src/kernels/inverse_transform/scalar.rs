//! The scalar form of the inverse transforms, which defines the result: one row, then one column at a time.

use super::lines::{Adst, COS, Dct, Line, Samples, hadamard};
use super::{Shape, TransformKind, TransformSize};

#[inline(always)]
fn round(x: i32) -> i16 {
    ((x + 8192) >> 14).clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

#[inline(always)]
fn dot(a: i16, b: i16, f: [i16; 2]) -> i32 {
    i32::from(a) * i32::from(f[0]) + i32::from(b) * i32::from(f[1])
}

impl Samples for i16 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }
    #[inline(always)]
    unsafe fn plus(self, o: Self) -> Self {
        self.wrapping_add(o)
    }
    #[inline(always)]
    unsafe fn minus(self, o: Self) -> Self {
        self.wrapping_sub(o)
    }
    #[inline(always)]
    unsafe fn half(self) -> Self {
        self >> 1
    }
    #[inline(always)]
    unsafe fn scale(self, c: i16) -> Self {
        round(i32::from(self) * i32::from(c))
    }
    #[inline(always)]
    unsafe fn rotate(a: Self, b: Self, f: [i16; 2], g: [i16; 2]) -> [Self; 2] {
        [round(dot(a, b, f)), round(dot(a, b, g))]
    }
    #[inline(always)]
    unsafe fn cross(ab: [Self; 2], f: [[i16; 2]; 2], cd: [Self; 2], g: [[i16; 2]; 2]) -> [Self; 4] {
        let (s, t) = (dot(ab[0], ab[1], f[0]), dot(ab[0], ab[1], f[1]));
        let (u, v) = (dot(cd[0], cd[1], g[0]), dot(cd[0], cd[1], g[1]));
        [round(s + u), round(t + v), round(s - u), round(t - v)]
    }
    #[inline(always)]
    unsafe fn matrix4(x: [Self; 4], rows: [[i16; 4]; 4]) -> [Self; 4] {
        rows.map(|r| round(dot(x[0], x[1], [r[0], r[1]]) + dot(x[2], x[3], [r[2], r[3]])))
    }
}

/// Transforms one row or column of `N` samples, from `at` on and `step` apart.
fn line<const N: usize, T: Line<N>>(samples: &mut [i16], at: usize, step: usize) {
    let mut x = [0; N];
    for (i, x) in x.iter_mut().enumerate() {
        *x = samples[at + i * step];
    }
    // SAFETY: plain integers need no instruction set.
    let out = unsafe { T::run(x, N) };
    for (i, out) in out.into_iter().enumerate() {
        samples[at + i * step] = out;
    }
}

fn lossless(block: &mut [i16]) {
    for i in 0..4 {
        let row = [0, 1, 2, 3].map(|j| block[4 * i + j] >> 2);
        // SAFETY: plain integers need no instruction set.
        block[4 * i..4 * i + 4].copy_from_slice(&unsafe { hadamard(row) });
    }
    for j in 0..4 {
        let column = [0, 1, 2, 3].map(|i| block[4 * i + j]);
        // SAFETY: plain integers need no instruction set.
        for (i, v) in unsafe { hadamard(column) }.into_iter().enumerate() {
            block[4 * i + j] = v;
        }
    }
}

/// A transform of the samples from an index on, `step` apart.
type Transform = fn(&mut [i16], usize, usize);

/// Makes the residual of `coefs`, row after row, and clears their used corner.
pub(super) fn residual(shape: &Shape, coefs: &mut [i16], residual: &mut [i16]) {
    let side = shape.size.side();
    residual.copy_from_slice(coefs);
    for row in coefs.chunks_exact_mut(side).take(shape.rows) {
        row[..shape.cols].fill(0);
    }
    if shape.lossless {
        return lossless(residual);
    }
    let (column_adst, row_adst) = match shape.kind {
        TransformKind::DctDct => (false, false),
        TransformKind::AdstDct => (true, false),
        TransformKind::DctAdst => (false, true),
        TransformKind::AdstAdst => (true, true),
    };
    let (dct, adst): (Transform, Transform) = match shape.size {
        TransformSize::Size4 => (line::<4, Dct>, line::<4, Adst>),
        TransformSize::Size8 => (line::<8, Dct>, line::<8, Adst>),
        TransformSize::Size16 => (line::<16, Dct>, line::<16, Adst>),
        TransformSize::Size32 => (line::<32, Dct>, line::<32, Dct>),
    };
    for i in 0..shape.rows {
        if row_adst { adst(residual, i * side, 1) } else { dct(residual, i * side, 1) }
    }
    for j in 0..side {
        if column_adst { adst(residual, j, side) } else { dct(residual, j, side) }
    }
    let shift = shape.size.shift();
    for v in residual {
        *v = ((i32::from(*v) + (1 << (shift - 1))) >> shift) as i16;
    }
}

/// The residual of a block whose only coefficient is the first: the same value everywhere.
#[allow(dead_code)] // where there are no SIMD forms
#[inline(always)]
pub(super) fn constant(size: TransformSize, coef: i16) -> i16 {
    let once = |x: i16| round(i32::from(x) * i32::from(COS[16]));
    let shift = size.shift();
    ((i32::from(once(once(coef))) + (1 << (shift - 1))) >> shift) as i16
}

/// Adds `residual` to the picture.
pub(super) fn add(residual: &[i16], side: usize, dst: &mut [u8], stride: usize) {
    for (dst, row) in dst.chunks_mut(stride).zip(residual.chunks_exact(side)) {
        for (d, r) in dst.iter_mut().zip(row) {
            *d = i16::from(*d).saturating_add(*r).clamp(0, 255) as u8;
        }
    }
}
