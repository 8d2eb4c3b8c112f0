//! One register type for every SIMD instruction set, so that a kernel is written once.
//!
//! A [`Vector`] is one or more independent 128-bit *lanes*; every operation works within lanes,
//! as the wide x86 instructions do. A kernel that treats a lane as its unit of work therefore
//! runs unchanged on NEON, WebAssembly `simd128` (one lane) and AVX2 (two). Operations name the
//! element they see: `8`, `16`, `32` bits; `i` signed, `u` unsigned, no letter where it is equal.
//!
//! Operations are `#[inline(always)]`, so they take on the target features of the function that
//! they are inlined into.
//!
//! # Safety
//!
//! Every method is `unsafe`: the caller must run on a machine that has the instruction set of the
//! type, and pointers must be valid for the bytes that a method's text names.

#[cfg(target_arch = "aarch64")]
pub mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub mod wasm;
#[cfg(target_arch = "x86_64")]
pub mod x86;

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*);)*) => {
        $($(#[$doc])* unsafe fn $name(self $(, $arg: Self)*) -> Self;)*
    };
}

/// One or more 128-bit lanes. The head of the module says what makes the methods safe.
// The text of the module has the safety of all; each method only makes a value.
#[allow(clippy::missing_safety_doc, clippy::return_self_not_must_use)]
pub trait Vector: Copy {
    /// Number of 128-bit lanes.
    const LANES: usize;

    /// A vector whose bits are all clear.
    unsafe fn zero() -> Self;
    /// A vector whose bytes are all `v`.
    unsafe fn splat8(v: u8) -> Self;
    /// A vector whose 16-bit elements are all `v`.
    unsafe fn splat16(v: i16) -> Self;
    /// A vector whose 32-bit elements are all `v`.
    unsafe fn splat32(v: i32) -> Self;
    /// A vector that repeats two 16-bit elements (even, odd) in every 32 bits: a factor for `madd16`.
    #[inline(always)]
    unsafe fn splat_pair(even: i16, odd: i16) -> Self {
        unsafe { Self::splat32((i32::from(odd) << 16) | (i32::from(even) & 0xffff)) }
    }
    /// Loads `16 * LANES` bytes in a row from `p`.
    unsafe fn load(p: *const u8) -> Self;
    /// Stores `16 * LANES` bytes in a row at `p`.
    unsafe fn store(self, p: *mut u8);
    /// Loads lane `i` from the 16 bytes at `p + i * stride`.
    unsafe fn load_lanes(p: *const u8, stride: usize) -> Self;
    /// Stores lane `i` in the 16 bytes at `p + i * stride`.
    unsafe fn store_lanes(self, p: *mut u8, stride: usize);
    /// Loads the low half of lane `i` from the 8 bytes at `p + i * stride`; the high half is clear.
    unsafe fn load_half_lanes(p: *const u8, stride: usize) -> Self;
    /// Stores the low half of lane `i` in the 8 bytes at `p + i * stride`.
    unsafe fn store_half_lanes(self, p: *mut u8, stride: usize);
    /// Loads the low 4 bytes of lane `i` from the 4 bytes at `p + i * stride`; the rest is clear.
    unsafe fn load_quarter_lanes(p: *const u8, stride: usize) -> Self;
    /// Stores the low 4 bytes of lane `i` in the 4 bytes at `p + i * stride`.
    unsafe fn store_quarter_lanes(self, p: *mut u8, stride: usize);
    /// Stores the high half of lane `i` in the 8 bytes at `p + i * stride`.
    unsafe fn store_high_half_lanes(self, p: *mut u8, stride: usize);
    /// Stores 32-bit element `I` of lane `i` in the 4 bytes at `p + i * stride`.
    unsafe fn store_element_lanes<const I: i32>(self, p: *mut u8, stride: usize);
    /// A vector with byte `h` of `bytes`, the lowest first, in all of half `h`; halves count through the lanes.
    unsafe fn splat_halves(bytes: u32) -> Self;
    /// Loads `8 * LANES` bytes in a row from `p`, each widened to 16 bits.
    unsafe fn load_widen(p: *const u8) -> Self;
    /// Stores 16-bit elements as bytes with unsigned saturation: `8 * LANES` bytes in a row at `p`.
    unsafe fn store_narrow(self, p: *mut u8);
    /// Stores 32-bit elements as bytes with signed saturation: `4 * LANES` bytes in a row at `p`.
    unsafe fn store_narrow32(self, p: *mut u8);
    /// Loads the 16 bytes at `p` into every lane.
    unsafe fn load_each(p: *const u8) -> Self;

    declare! {
        /// Wrapping sum.
        add8(o); /// Wrapping difference.
        sub8(o); /// Saturating sum, unsigned.
        adds_u8(o); /// Saturating difference, unsigned.
        subs_u8(o); /// Saturating sum, signed.
        adds_i8(o); /// Saturating difference, signed.
        subs_i8(o); /// Smaller one, unsigned.
        min_u8(o); /// Greater one, unsigned.
        max_u8(o); /// Mean rounded up, unsigned.
        avg_u8(o); /// All ones where equal.
        eq8(o); /// All ones where greater, signed.
        gt_i8(o);
        /// Wrapping sum.
        add16(o); /// Wrapping difference.
        sub16(o); /// Saturating sum, signed.
        adds_i16(o); /// Saturating difference, signed.
        subs_i16(o); /// Smaller one, signed.
        min_i16(o); /// Greater one, signed.
        max_i16(o); /// Low half of the product.
        mul_low16(o);
        /// The products `(a * b + 0x4000) >> 15`, signed. The caller must not multiply -32768 by itself: the result
        /// differs from machine to machine.
        mul_round_i16(o);
        /// Products of signed 16-bit elements summed in pairs to 32 bits.
        madd_i16(o);
        /// All ones where greater, signed.
        gt_i16(o); /// All ones where equal.
        eq16(o);
        /// Wrapping sum.
        add32(o); /// Wrapping difference.
        sub32(o); /// Smaller one, signed.
        min_i32(o); /// Greater one, signed.
        max_i32(o); /// All ones where greater, signed.
        gt_i32(o);
        /// Bitwise and.
        and(o); /// Bitwise or.
        or(o); /// Bitwise exclusive or.
        xor(o); /// `self & !o`.
        and_not(o);
        /// Bytes of the low halves, alternating.
        zip_low8(o); /// Bytes of the high halves, alternating.
        zip_high8(o); /// 16-bit elements of the low halves, alternating.
        zip_low16(o); /// 16-bit elements of the high halves, alternating.
        zip_high16(o); /// 32-bit elements of the low halves, alternating.
        zip_low32(o); /// 32-bit elements of the high halves, alternating.
        zip_high32(o); /// Low half of `self`, then low half of `o`.
        zip_low64(o); /// High half of `self`, then high half of `o`.
        zip_high64(o);
        /// 32-bit elements to 16 bits with signed saturation: `self` in the low half, `o` in the high.
        pack_i32_i16(o); /// 16-bit elements to unsigned bytes with saturation, likewise.
        pack_i16_u8(o); /// 16-bit elements to signed bytes with saturation, likewise.
        pack_i16_i8(o);
    }

    /// Shifts 16-bit elements to the left.
    unsafe fn shl16<const N: i32>(self) -> Self;
    /// Shifts 16-bit elements to the right with the sign.
    unsafe fn shr_i16<const N: i32>(self) -> Self;
    /// Shifts 16-bit elements to the right with zeros.
    unsafe fn shr_u16<const N: i32>(self) -> Self;
    /// Shifts 32-bit elements to the left.
    unsafe fn shl32<const N: i32>(self) -> Self;
    /// Shifts 32-bit elements to the right with the sign.
    unsafe fn shr_i32<const N: i32>(self) -> Self;
    /// Shifts 32-bit elements to the right with the sign, by 0 to 31.
    unsafe fn shr_i32_by(self, count: u32) -> Self;
    /// Whether any bit is set in any lane.
    unsafe fn any(self) -> bool;

    /// The low 8 bytes of each lane, widened to 16 bits, unsigned.
    #[inline(always)]
    unsafe fn widen_low_u8(self) -> Self {
        unsafe { self.zip_low8(Self::zero()) }
    }
    /// The high 8 bytes of each lane, widened to 16 bits, unsigned.
    #[inline(always)]
    unsafe fn widen_high_u8(self) -> Self {
        unsafe { self.zip_high8(Self::zero()) }
    }
    /// The low 8 bytes of each lane, widened to 16 bits, signed.
    #[inline(always)]
    unsafe fn widen_low_i8(self) -> Self {
        unsafe { self.zip_low8(self).shr_i16::<8>() }
    }
    /// The high 8 bytes of each lane, widened to 16 bits, signed.
    #[inline(always)]
    unsafe fn widen_high_i8(self) -> Self {
        unsafe { self.zip_high8(self).shr_i16::<8>() }
    }
    /// The bytes of `a` where `self` is all ones, of `b` where it is clear.
    #[inline(always)]
    unsafe fn select(self, a: Self, b: Self) -> Self {
        unsafe { self.and(a).or(b.and_not(self)) }
    }
    /// The magnitudes of signed 32-bit elements.
    #[inline(always)]
    unsafe fn abs32(self) -> Self {
        unsafe { self.max_i32(Self::zero().sub32(self)) }
    }
    /// The absolute differences of unsigned bytes.
    #[inline(always)]
    unsafe fn abs_diff_u8(self, o: Self) -> Self {
        unsafe { self.subs_u8(o).or(o.subs_u8(self)) }
    }
}

#[cfg(test)]
mod tests {
    use super::Vector;

    /// Two vectors' bytes, and the same as 16-bit and 32-bit elements.
    struct Operands {
        a: Vec<u8>,
        b: Vec<u8>,
        aw: Vec<i16>,
        bw: Vec<i16>,
        al: Vec<i32>,
        bl: Vec<i32>,
    }

    impl Operands {
        fn new<V: Vector>() -> Self {
            let n = 16 * V::LANES;
            let a: Vec<u8> = (0..n).map(|i| (i * 89 + 13) as u8).collect();
            let b: Vec<u8> = (0..n).map(|i| (i * 151 + 200) as u8).collect();
            let words = |v: &[u8]| -> Vec<i16> {
                v.chunks_exact(2).map(|c| i16::from_le_bytes([c[0], c[1]])).collect()
            };
            let longs = |v: &[u8]| -> Vec<i32> {
                v.chunks_exact(4).map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
            };
            let (aw, bw, al, bl) = (words(&a), words(&b), longs(&a), longs(&b));
            Self { a, b, aw, bw, al, bl }
        }

        fn load<V: Vector>(&self) -> (V, V) {
            unsafe { (V::load(self.a.as_ptr()), V::load(self.b.as_ptr())) }
        }

        fn each8(&self, f: &dyn Fn(u8, u8) -> u8) -> Vec<u8> {
            self.a.iter().zip(&self.b).map(|(&x, &y)| f(x, y)).collect()
        }

        fn each16(&self, f: &dyn Fn(i16, i16) -> i16) -> Vec<u8> {
            self.aw.iter().zip(&self.bw).flat_map(|(&x, &y)| f(x, y).to_le_bytes()).collect()
        }

        fn each32(&self, f: &dyn Fn(i32, i32) -> i32) -> Vec<u8> {
            self.al.iter().zip(&self.bl).flat_map(|(&x, &y)| f(x, y).to_le_bytes()).collect()
        }
    }

    /// The bytes of a vector.
    #[inline(always)]
    fn out<V: Vector>(v: V) -> Vec<u8> {
        let mut bytes = vec![0u8; 16 * V::LANES];
        unsafe { v.store(bytes.as_mut_ptr()) };
        bytes
    }

    /// Every operation of `V` against the same in plain Rust, lane by lane.
    #[inline(always)]
    unsafe fn check<V: Vector>() {
        unsafe {
            check_bytes_and_words::<V>();
            check_longs_and_halves::<V>();
            check_shuffles::<V>();
            check_memory::<V>();
        }
    }

    #[inline(always)]
    unsafe fn check_bytes_and_words<V: Vector>() {
        let operands = Operands::new::<V>();
        let (va, vb) = operands.load::<V>();
        let Operands { aw, bw, .. } = &operands;
        let each8 = |f: &dyn Fn(u8, u8) -> u8| operands.each8(f);
        let each16 = |f: &dyn Fn(i16, i16) -> i16| operands.each16(f);
        let ones = |c: bool| if c { 0xff } else { 0 };
        unsafe {
            assert_eq!(out(va.add8(vb)), each8(&u8::wrapping_add));
            assert_eq!(out(va.sub8(vb)), each8(&u8::wrapping_sub));
            assert_eq!(out(va.adds_u8(vb)), each8(&u8::saturating_add));
            assert_eq!(out(va.subs_u8(vb)), each8(&u8::saturating_sub));
            assert_eq!(out(va.adds_i8(vb)), each8(&|x, y| (x as i8).saturating_add(y as i8) as u8));
            assert_eq!(out(va.subs_i8(vb)), each8(&|x, y| (x as i8).saturating_sub(y as i8) as u8));
            assert_eq!(out(va.min_u8(vb)), each8(&u8::min));
            assert_eq!(out(va.max_u8(vb)), each8(&u8::max));
            assert_eq!(out(va.avg_u8(vb)), each8(&|x, y| ((x as u16 + y as u16 + 1) >> 1) as u8));
            assert_eq!(out(va.eq8(va)), vec![0xff; 16 * V::LANES]);
            assert_eq!(out(va.gt_i8(vb)), each8(&|x, y| ones((x as i8) > (y as i8))));
            assert_eq!(out(va.abs_diff_u8(vb)), each8(&u8::abs_diff));
            assert_eq!(out(va.add16(vb)), each16(&i16::wrapping_add));
            assert_eq!(out(va.sub16(vb)), each16(&i16::wrapping_sub));
            assert_eq!(out(va.adds_i16(vb)), each16(&i16::saturating_add));
            assert_eq!(out(va.subs_i16(vb)), each16(&i16::saturating_sub));
            assert_eq!(out(va.min_i16(vb)), each16(&i16::min));
            assert_eq!(out(va.max_i16(vb)), each16(&i16::max));
            assert_eq!(out(va.mul_low16(vb)), each16(&i16::wrapping_mul));
            assert_eq!(
                out(va.mul_round_i16(vb)),
                each16(&|x, y| ((x as i32 * y as i32 + 0x4000) >> 15) as i16)
            );
            assert_eq!(out(va.gt_i16(vb)), each16(&|x, y| -i16::from(x > y)));
            assert_eq!(out(va.eq16(vb)), each16(&|x, y| -i16::from(x == y)));
            assert_eq!(out(va.and(vb)), each8(&|x, y| x & y));
            assert_eq!(out(va.or(vb)), each8(&|x, y| x | y));
            assert_eq!(out(va.xor(vb)), each8(&|x, y| x ^ y));
            assert_eq!(out(va.and_not(vb)), each8(&|x, y| x & !y));
            assert_eq!(out(va.shl16::<3>()), each16(&|x, _| x << 3));
            assert_eq!(out(va.shr_i16::<3>()), each16(&|x, _| x >> 3));
            assert_eq!(out(va.shr_u16::<3>()), each16(&|x, _| ((x as u16) >> 3) as i16));
            let madd: Vec<u8> = aw
                .chunks_exact(2)
                .zip(bw.chunks_exact(2))
                .flat_map(|(x, y)| {
                    (x[0] as i32 * y[0] as i32 + x[1] as i32 * y[1] as i32).to_le_bytes()
                })
                .collect();
            assert_eq!(out(va.madd_i16(vb)), madd);
        }
    }

    #[inline(always)]
    unsafe fn check_longs_and_halves<V: Vector>() {
        let operands = Operands::new::<V>();
        let (va, vb) = operands.load::<V>();
        let a = &operands.a;
        let each32 = |f: &dyn Fn(i32, i32) -> i32| operands.each32(f);
        unsafe {
            assert_eq!(out(va.add32(vb)), each32(&i32::wrapping_add));
            assert_eq!(out(va.sub32(vb)), each32(&i32::wrapping_sub));
            assert_eq!(out(va.min_i32(vb)), each32(&i32::min));
            assert_eq!(out(va.max_i32(vb)), each32(&i32::max));
            assert_eq!(out(va.gt_i32(vb)), each32(&|x, y| -i32::from(x > y)));
            assert_eq!(out(va.abs32()), each32(&|x, _| x.wrapping_abs()));
            assert_eq!(out(va.shl32::<5>()), each32(&|x, _| x << 5));
            assert_eq!(out(va.shr_i32::<5>()), each32(&|x, _| x >> 5));
            for count in [0, 1, 17, 31] {
                assert_eq!(out(va.shr_i32_by(count)), each32(&|x, _| x >> count));
            }
            assert!(va.any() && !V::zero().any());
            let halves = out(V::splat_halves(u32::from_le_bytes([1, 200, 3, 77])));
            assert!(halves.iter().enumerate().all(|(i, &x)| x == [1, 200, 3, 77][i / 8]));
            let mut back = vec![0u8; 100];
            va.store_high_half_lanes(back.as_mut_ptr(), 40);
            va.store_element_lanes::<0>(back.as_mut_ptr().add(8), 40);
            va.store_element_lanes::<1>(back.as_mut_ptr().add(12), 40);
            va.store_element_lanes::<2>(back.as_mut_ptr().add(16), 40);
            va.store_element_lanes::<3>(back.as_mut_ptr().add(20), 40);
            for l in 0..V::LANES {
                let lane = &a[l * 16..][..16];
                assert_eq!(back[l * 40..][..24], [&lane[8..], lane].concat());
            }
        }
    }

    /// Shuffles within each lane, by element size.
    #[inline(always)]
    unsafe fn check_shuffles<V: Vector>() {
        let operands = Operands::new::<V>();
        let (va, vb) = operands.load::<V>();
        let Operands { a, b, aw, bw, al, bl } = &operands;
        unsafe {
            let zip = |size: usize, high: bool| -> Vec<u8> {
                let mut o = Vec::new();
                for lane in 0..V::LANES {
                    let base = lane * 16 + if high { 8 } else { 0 };
                    for e in 0..8 / size {
                        o.extend_from_slice(&a[base + e * size..][..size]);
                        o.extend_from_slice(&b[base + e * size..][..size]);
                    }
                }
                o
            };
            assert_eq!(out(va.zip_low8(vb)), zip(1, false));
            assert_eq!(out(va.zip_high8(vb)), zip(1, true));
            assert_eq!(out(va.zip_low16(vb)), zip(2, false));
            assert_eq!(out(va.zip_high16(vb)), zip(2, true));
            assert_eq!(out(va.zip_low32(vb)), zip(4, false));
            assert_eq!(out(va.zip_high32(vb)), zip(4, true));
            assert_eq!(out(va.zip_low64(vb)), zip(8, false));
            assert_eq!(out(va.zip_high64(vb)), zip(8, true));
            let pack = |f: &dyn Fn(i16) -> u8| -> Vec<u8> {
                (0..V::LANES)
                    .flat_map(|l| aw[l * 8..][..8].iter().chain(&bw[l * 8..][..8]))
                    .map(|&w| f(w))
                    .collect()
            };
            assert_eq!(out(va.pack_i16_u8(vb)), pack(&|w| w.clamp(0, 255) as u8));
            assert_eq!(out(va.pack_i16_i8(vb)), pack(&|w| w.clamp(-128, 127) as i8 as u8));
            let pack32: Vec<u8> = (0..V::LANES)
                .flat_map(|l| al[l * 4..][..4].iter().chain(&bl[l * 4..][..4]))
                .flat_map(|&w| (w.clamp(-32768, 32767) as i16).to_le_bytes())
                .collect();
            assert_eq!(out(va.pack_i32_i16(vb)), pack32);
        }
    }

    #[inline(always)]
    unsafe fn check_memory<V: Vector>() {
        let operands = Operands::new::<V>();
        let (va, _) = operands.load::<V>();
        let Operands { a, aw, al, .. } = &operands;
        unsafe {
            let wide: Vec<u8> =
                a[..8 * V::LANES].iter().flat_map(|&x| i16::from(x).to_le_bytes()).collect();
            assert_eq!(out(V::load_widen(a.as_ptr())), wide);
            let mut narrow = vec![0u8; 8 * V::LANES];
            va.store_narrow(narrow.as_mut_ptr());
            assert_eq!(narrow, aw.iter().map(|&w| w.clamp(0, 255) as u8).collect::<Vec<_>>());
            let small = va.shr_i32::<24>().add32(va.shr_i32::<31>());
            let bytes = al.iter().map(|&w| ((w >> 24) + (w >> 31)).clamp(-128, 127) as i8 as u8);
            narrow.truncate(4 * V::LANES);
            small.store_narrow32(narrow.as_mut_ptr());
            assert_eq!(narrow, bytes.collect::<Vec<_>>());
            assert_eq!(out(V::load_each(a.as_ptr())), a[..16].repeat(V::LANES));
            let field: Vec<u8> = (0..200).map(|i| (i * 7) as u8).collect();
            for (bytes, v) in [
                (16, V::load_lanes(field.as_ptr(), 19)),
                (8, V::load_half_lanes(field.as_ptr(), 19)),
                (4, V::load_quarter_lanes(field.as_ptr(), 19)),
            ] {
                let o = out(v);
                let mut back = vec![0u8; 200];
                match bytes {
                    16 => v.store_lanes(back.as_mut_ptr(), 19),
                    8 => v.store_half_lanes(back.as_mut_ptr(), 19),
                    _ => v.store_quarter_lanes(back.as_mut_ptr(), 19),
                }
                for l in 0..V::LANES {
                    assert_eq!(o[l * 16..][..bytes], field[l * 19..][..bytes]);
                    assert!(o[l * 16 + bytes..][..16 - bytes].iter().all(|&x| x == 0));
                    assert_eq!(back[l * 19..][..bytes], field[l * 19..][..bytes]);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2_operations_do_what_their_text_says() {
        #[target_feature(enable = "avx2")]
        unsafe fn run() {
            unsafe {
                check::<super::x86::X128>();
                check::<super::x86::X256>();
            }
        }
        if crate::simd::Isa::detect() != crate::simd::Isa::SCALAR {
            // SAFETY: AVX2 was detected.
            unsafe { run() };
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon_operations_do_what_their_text_says() {
        // SAFETY: NEON is part of aarch64.
        unsafe { check::<super::neon::N128>() };
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[test]
    fn simd128_operations_do_what_their_text_says() {
        // SAFETY: `simd128` is enabled at compile time.
        unsafe { check::<super::wasm::W128>() };
    }
}
