//! The one-dimensional transforms of one row or column, as flow graphs over any [`Samples`].
//!
//! Source: VP9 specification 8.7.1.2 to 8.7.1.10. Written once: the scalar form runs them on one
//! `i16`, the SIMD forms on eight or sixteen neighbouring rows or columns at a time. A graph is
//! told how many of its first inputs can be non-zero (`used`, a constant after inlining), and
//! leaves out the products of the others.

/// The cosines `round(16384 * cos(i * pi / 64))`.
pub(super) const COS: [i16; 32] = [
    16384, 16364, 16305, 16207, 16069, 15893, 15679, 15426, 15137, 14811, 14449, 14053, 13623,
    13160, 12665, 12140, 11585, 11003, 10394, 9760, 9102, 8423, 7723, 7005, 6270, 5520, 4756, 3981,
    3196, 2404, 1606, 804,
];

/// The factors of the 4-point ADST: `round(16384 * sqrt(8) / 3 * sin(i * pi / 9))`.
pub(super) const SIN: [i16; 5] = [0, 5283, 9929, 13377, 15212];

/// 16-bit samples at the same place of one or more rows or columns.
///
/// Sums and differences wrap at 16 bits. Products are exact; a sum of products is rounded as
/// `(x + 8192) >> 14` and saturated to 16 bits. Streams that conform reach neither bound.
///
/// # Safety
///
/// Every method is `unsafe`: the machine must have the instruction set of the type.
#[allow(clippy::missing_safety_doc)] // said above for all
pub(super) trait Samples: Copy {
    unsafe fn zero() -> Self;
    unsafe fn plus(self, o: Self) -> Self;
    unsafe fn minus(self, o: Self) -> Self;
    /// Half of each sample, rounded down.
    unsafe fn half(self) -> Self;
    /// The product `self * c`; the magnitude of `c` is below 16384.
    unsafe fn scale(self, c: i16) -> Self;
    /// The rotation `a * f[0] + b * f[1]` and `a * g[0] + b * g[1]`.
    unsafe fn rotate(a: Self, b: Self, f: [i16; 2], g: [i16; 2]) -> [Self; 2];
    /// Sums and differences of two rotations. With `(s, t)` the products that [`Self::rotate`] makes of `a`, `b`, and
    /// `(u, v)` those of `c`, `d`, not yet rounded: `s + u`, `t + v`, `s - u`, `t - v`.
    unsafe fn cross(ab: [Self; 2], f: [[i16; 2]; 2], cd: [Self; 2], g: [[i16; 2]; 2]) -> [Self; 4];
    /// The sums over `x` of the products with each row of factors.
    unsafe fn matrix4(x: [Self; 4], rows: [[i16; 4]; 4]) -> [Self; 4];
}

/// A one-dimensional transform of `N` samples.
pub(super) trait Line<const N: usize> {
    /// The transform of `x`, of which only the first `used` can be non-zero.
    ///
    /// # Safety
    ///
    /// The machine has the instruction set of `S`.
    unsafe fn run<S: Samples>(x: [S; N], used: usize) -> [S; N];
}

/// The inverse discrete cosine transform (DCT).
pub(super) struct Dct;
/// The inverse asymmetric discrete sine transform (ADST).
pub(super) struct Adst;

/// The rotation of inputs `i`, `j` by the angle whose cosine is `COS[32 - c]`: what each odd half
/// of a DCT begins with.
#[inline(always)]
unsafe fn first<S: Samples, const N: usize>(
    x: &[S; N],
    used: usize,
    i: usize,
    j: usize,
    c: usize,
) -> [S; 2] {
    let (cos, sin) = (COS[32 - c], COS[c]);
    unsafe {
        match (i < used, j < used) {
            (true, true) => S::rotate(x[i], x[j], [cos, -sin], [sin, cos]),
            (true, false) => [x[i].scale(cos), x[i].scale(sin)],
            (false, true) => [x[j].scale(-sin), x[j].scale(cos)],
            (false, false) => [S::zero(); 2],
        }
    }
}

/// The products `(b - a) * cos(pi / 4)` and `(b + a) * cos(pi / 4)`.
#[inline(always)]
unsafe fn eighth<S: Samples>(a: S, b: S) -> [S; 2] {
    unsafe { S::rotate(a, b, [-COS[16], COS[16]], [COS[16], COS[16]]) }
}

/// Sums and differences of an even half and an odd one. The last sample of the odd half meets the first of the even
/// one.
#[inline(always)]
unsafe fn mirror<S: Samples, const H: usize, const N: usize>(even: [S; H], odd: [S; H]) -> [S; N] {
    unsafe {
        let mut out = [S::zero(); N];
        for i in 0..H {
            out[i] = even[i].plus(odd[H - 1 - i]);
            out[N - 1 - i] = even[i].minus(odd[H - 1 - i]);
        }
        out
    }
}

/// Every second input, from the first on.
#[inline(always)]
unsafe fn evens<S: Samples, const H: usize, const N: usize>(x: &[S; N]) -> [S; H] {
    unsafe {
        let mut out = [S::zero(); H];
        for i in 0..H {
            out[i] = x[2 * i];
        }
        out
    }
}

impl Line<4> for Dct {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 4], used: usize) -> [S; 4] {
        unsafe {
            let even = if used > 2 {
                S::rotate(x[0], x[2], [COS[16], COS[16]], [COS[16], -COS[16]])
            } else {
                [x[0].scale(COS[16]); 2]
            };
            mirror(even, first(&x, used, 1, 3, 8))
        }
    }
}

impl Line<8> for Dct {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 8], used: usize) -> [S; 8] {
        unsafe {
            let even = <Dct as Line<4>>::run(evens(&x), used.div_ceil(2));
            let [s4, s7] = first(&x, used, 1, 7, 4);
            let [s5, s6] = first(&x, used, 5, 3, 20);
            let (a, b) = (s4.plus(s5), s7.plus(s6));
            let [c, d] = eighth(s4.minus(s5), s7.minus(s6));
            mirror(even, [a, c, d, b])
        }
    }
}

impl Line<16> for Dct {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 16], used: usize) -> [S; 16] {
        unsafe {
            let even = <Dct as Line<8>>::run(evens(&x), used.div_ceil(2));
            let [a8, a15] = first(&x, used, 1, 15, 2);
            let [a9, a14] = first(&x, used, 9, 7, 18);
            let [a10, a13] = first(&x, used, 5, 11, 10);
            let [a11, a12] = first(&x, used, 13, 3, 26);

            let (b8, b9) = (a8.plus(a9), a8.minus(a9));
            let (b11, b10) = (a11.plus(a10), a11.minus(a10));
            let (b12, b13) = (a12.plus(a13), a12.minus(a13));
            let (b15, b14) = (a15.plus(a14), a15.minus(a14));

            let [c9, c14] = S::rotate(b9, b14, [-COS[8], COS[24]], [COS[24], COS[8]]);
            let [c10, c13] = S::rotate(b10, b13, [-COS[24], -COS[8]], [-COS[8], COS[24]]);

            let (d8, d11) = (b8.plus(b11), b8.minus(b11));
            let (d9, d10) = (c9.plus(c10), c9.minus(c10));
            let (d15, d12) = (b15.plus(b12), b15.minus(b12));
            let (d14, d13) = (c14.plus(c13), c14.minus(c13));

            let [e10, e13] = eighth(d10, d13);
            let [e11, e12] = eighth(d11, d12);
            mirror(even, [d8, d9, e10, e11, e12, e13, d14, d15])
        }
    }
}

impl Line<32> for Dct {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 32], used: usize) -> [S; 32] {
        unsafe {
            let even = <Dct as Line<16>>::run(evens(&x), used.div_ceil(2));
            let odd = odd32(&x, used);
            mirror(even, odd)
        }
    }
}

/// The odd half of the 32-point DCT: its samples 16 to 31 before they meet the even half.
#[inline(always)]
unsafe fn odd32<S: Samples>(x: &[S; 32], used: usize) -> [S; 16] {
    unsafe {
        // Two of the four groups of four at a time: (16..20, 28..32), then (20..24, 24..28).
        let [a16, a31] = first(x, used, 1, 31, 1);
        let [a17, a30] = first(x, used, 17, 15, 17);
        let [a18, a29] = first(x, used, 9, 23, 9);
        let [a19, a28] = first(x, used, 25, 7, 25);

        let (b16, b17) = (a16.plus(a17), a16.minus(a17));
        let (b19, b18) = (a19.plus(a18), a19.minus(a18));
        let (b28, b29) = (a28.plus(a29), a28.minus(a29));
        let (b31, b30) = (a31.plus(a30), a31.minus(a30));

        let [c17, c30] = S::rotate(b17, b30, [-COS[4], COS[28]], [COS[28], COS[4]]);
        let [c18, c29] = S::rotate(b18, b29, [-COS[28], -COS[4]], [-COS[4], COS[28]]);

        let (d16, d19) = (b16.plus(b19), b16.minus(b19));
        let (d17, d18) = (c17.plus(c18), c17.minus(c18));
        let (d31, d28) = (b31.plus(b28), b31.minus(b28));
        let (d30, d29) = (c30.plus(c29), c30.minus(c29));

        let [e18, e29] = S::rotate(d18, d29, [-COS[8], COS[24]], [COS[24], COS[8]]);
        let [e19, e28] = S::rotate(d19, d28, [-COS[8], COS[24]], [COS[24], COS[8]]);

        let [a20, a27] = first(x, used, 5, 27, 5);
        let [a21, a26] = first(x, used, 21, 11, 21);
        let [a22, a25] = first(x, used, 13, 19, 13);
        let [a23, a24] = first(x, used, 29, 3, 29);

        let (b20, b21) = (a20.plus(a21), a20.minus(a21));
        let (b23, b22) = (a23.plus(a22), a23.minus(a22));
        let (b24, b25) = (a24.plus(a25), a24.minus(a25));
        let (b27, b26) = (a27.plus(a26), a27.minus(a26));

        let [c21, c26] = S::rotate(b21, b26, [-COS[20], COS[12]], [COS[12], COS[20]]);
        let [c22, c25] = S::rotate(b22, b25, [-COS[12], -COS[20]], [-COS[20], COS[12]]);

        let (d23, d20) = (b23.plus(b20), b23.minus(b20));
        let (d22, d21) = (c22.plus(c21), c22.minus(c21));
        let (d24, d27) = (b24.plus(b27), b24.minus(b27));
        let (d25, d26) = (c25.plus(c26), c25.minus(c26));

        let [e20, e27] = S::rotate(d20, d27, [-COS[24], -COS[8]], [-COS[8], COS[24]]);
        let [e21, e26] = S::rotate(d21, d26, [-COS[24], -COS[8]], [-COS[8], COS[24]]);

        let (f16, f23) = (d16.plus(d23), d16.minus(d23));
        let (f17, f22) = (d17.plus(d22), d17.minus(d22));
        let (f18, f21) = (e18.plus(e21), e18.minus(e21));
        let (f19, f20) = (e19.plus(e20), e19.minus(e20));
        let (f31, f24) = (d31.plus(d24), d31.minus(d24));
        let (f30, f25) = (d30.plus(d25), d30.minus(d25));
        let (f29, f26) = (e29.plus(e26), e29.minus(e26));
        let (f28, f27) = (e28.plus(e27), e28.minus(e27));

        let [g20, g27] = eighth(f20, f27);
        let [g21, g26] = eighth(f21, f26);
        let [g22, g25] = eighth(f22, f25);
        let [g23, g24] = eighth(f23, f24);
        [f16, f17, f18, f19, g20, g21, g22, g23, g24, g25, g26, g27, f28, f29, f30, f31]
    }
}

/// Factors of a rotation by an angle of [`COS`] that keeps the order of its inputs.
#[inline(always)]
fn turn(c: usize) -> [[i16; 2]; 2] {
    [[COS[c], COS[32 - c]], [COS[32 - c], -COS[c]]]
}

/// Factors of the rotation that stands across from [`turn`] of the same angle.
#[inline(always)]
fn back(c: usize) -> [[i16; 2]; 2] {
    [[-COS[32 - c], COS[c]], [COS[c], COS[32 - c]]]
}

/// The products `(a + b) * cos(pi / 4)` and `(a - b) * cos(pi / 4)`.
#[inline(always)]
unsafe fn sum_and_difference<S: Samples>(a: S, b: S) -> [S; 2] {
    unsafe { S::rotate(a, b, [COS[16], COS[16]], [COS[16], -COS[16]]) }
}

/// Factors of the 4-point ADST, a row for each output.
pub(super) const ADST4: [[i16; 4]; 4] = [
    [SIN[1], SIN[3], SIN[4], SIN[2]],
    [SIN[2], SIN[3], -SIN[1], -SIN[4]],
    [SIN[3], 0, -SIN[3], SIN[3]],
    [SIN[4], -SIN[3], SIN[2], -SIN[1]],
];

impl Line<4> for Adst {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 4], _used: usize) -> [S; 4] {
        unsafe { S::matrix4(x, ADST4) }
    }
}

impl Line<8> for Adst {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 8], _used: usize) -> [S; 8] {
        unsafe {
            let [a0, a1, a4, a5] = S::cross([x[7], x[0]], turn(2), [x[3], x[4]], turn(18));
            let [a2, a3, a6, a7] = S::cross([x[5], x[2]], turn(10), [x[1], x[6]], turn(26));

            let (b0, b2) = (a0.plus(a2), a0.minus(a2));
            let (b1, b3) = (a1.plus(a3), a1.minus(a3));
            let [b4, b5, b6, b7] = S::cross([a4, a5], turn(8), [a6, a7], back(8));

            let [c2, c3] = sum_and_difference(b2, b3);
            let [c6, c7] = sum_and_difference(b6, b7);
            let z = S::zero();
            [b0, z.minus(b4), c6, z.minus(c2), c3, z.minus(c7), b5, z.minus(b1)]
        }
    }
}

impl Line<16> for Adst {
    #[inline(always)]
    unsafe fn run<S: Samples>(x: [S; 16], _used: usize) -> [S; 16] {
        unsafe {
            let [a0, a1, a8, a9] = S::cross([x[15], x[0]], turn(1), [x[7], x[8]], turn(17));
            let [a2, a3, a10, a11] = S::cross([x[13], x[2]], turn(5), [x[5], x[10]], turn(21));
            let [a4, a5, a12, a13] = S::cross([x[11], x[4]], turn(9), [x[3], x[12]], turn(25));
            let [a6, a7, a14, a15] = S::cross([x[9], x[6]], turn(13), [x[1], x[14]], turn(29));

            let (b0, b4) = (a0.plus(a4), a0.minus(a4));
            let (b1, b5) = (a1.plus(a5), a1.minus(a5));
            let (b2, b6) = (a2.plus(a6), a2.minus(a6));
            let (b3, b7) = (a3.plus(a7), a3.minus(a7));
            let [b8, b9, b12, b13] = S::cross([a8, a9], turn(4), [a12, a13], back(4));
            let [b10, b11, b14, b15] = S::cross([a10, a11], turn(20), [a14, a15], back(20));

            let (c0, c2) = (b0.plus(b2), b0.minus(b2));
            let (c1, c3) = (b1.plus(b3), b1.minus(b3));
            let [c4, c5, c6, c7] = S::cross([b4, b5], turn(8), [b6, b7], back(8));
            let (c8, c10) = (b8.plus(b10), b8.minus(b10));
            let (c9, c11) = (b9.plus(b11), b9.minus(b11));
            let [c12, c13, c14, c15] = S::cross([b12, b13], turn(8), [b14, b15], back(8));

            let half = COS[16];
            let [d2, d3] = S::rotate(c2, c3, [-half, -half], [half, -half]);
            let [d6, d7] = S::rotate(c6, c7, [half, half], [-half, half]);
            let [d10, d11] = S::rotate(c10, c11, [half, half], [-half, half]);
            let [d14, d15] = S::rotate(c14, c15, [-half, -half], [half, -half]);
            let z = S::zero();
            [
                c0,
                z.minus(c8),
                c12,
                z.minus(c4),
                d6,
                d14,
                d10,
                d2,
                d3,
                d11,
                d15,
                d7,
                c5,
                z.minus(c13),
                c9,
                z.minus(c1),
            ]
        }
    }
}

/// The inverse Walsh-Hadamard transform, for lossless blocks.
///
/// # Safety
///
/// The machine has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn hadamard<S: Samples>(x: [S; 4]) -> [S; 4] {
    unsafe {
        let a = x[0].plus(x[1]);
        let d = x[2].minus(x[3]);
        let e = a.minus(d).half();
        let b = e.minus(x[3]);
        let c = e.minus(x[1]);
        [a.minus(b), b, c, d.plus(c)]
    }
}
