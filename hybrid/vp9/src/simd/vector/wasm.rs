//! [`Vector`] on WebAssembly `simd128`: one lane.

// All that this module uses comes from `core::arch`.
#![allow(clippy::wildcard_imports)]

use core::arch::wasm32::*;

use super::Vector;

/// A vector of one 128-bit lane.
#[derive(Clone, Copy)]
pub struct W128(pub(crate) v128);

macro_rules! binary {
    ($($name:ident = $op:ident;)*) => {
        $(#[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            Self($op(self.0, o.0))
        })*
    };
}

macro_rules! shift {
    ($($name:ident = $op:ident;)*) => {
        $(#[inline(always)]
        unsafe fn $name<const N: i32>(self) -> Self {
            Self($op(self.0, N as u32))
        })*
    };
}

impl Vector for W128 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(i32x4_splat(0))
    }
    #[inline(always)]
    unsafe fn splat8(v: u8) -> Self {
        Self(u8x16_splat(v))
    }
    #[inline(always)]
    unsafe fn splat16(v: i16) -> Self {
        Self(i16x8_splat(v))
    }
    #[inline(always)]
    unsafe fn splat32(v: i32) -> Self {
        Self(i32x4_splat(v))
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self {
        unsafe { Self(v128_load(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        unsafe {
            v128_store(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(v128_load(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            v128_store(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_half_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(v128_load64_zero(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            v128_store64_lane::<0>(self.0, p.cast());
        }
    }
    #[inline(always)]
    unsafe fn load_quarter_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(v128_load32_zero(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_quarter_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            v128_store32_lane::<0>(self.0, p.cast());
        }
    }
    #[inline(always)]
    unsafe fn store_high_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            v128_store64_lane::<1>(self.0, p.cast());
        }
    }
    #[inline(always)]
    unsafe fn store_element_lanes<const I: i32>(self, p: *mut u8, _stride: usize) {
        unsafe {
            match I {
                0 => v128_store32_lane::<0>(self.0, p.cast()),
                1 => v128_store32_lane::<1>(self.0, p.cast()),
                2 => v128_store32_lane::<2>(self.0, p.cast()),
                _ => v128_store32_lane::<3>(self.0, p.cast()),
            }
        }
    }
    #[inline(always)]
    unsafe fn splat_halves(bytes: u32) -> Self {
        let v = u32x4_splat(bytes);
        Self(i8x16_shuffle::<0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1>(v, v))
    }
    #[inline(always)]
    unsafe fn load_widen(p: *const u8) -> Self {
        unsafe { Self(i16x8_load_extend_u8x8(p)) }
    }
    #[inline(always)]
    unsafe fn store_narrow(self, p: *mut u8) {
        unsafe {
            v128_store64_lane::<0>(u8x16_narrow_i16x8(self.0, self.0), p.cast());
        }
    }
    #[inline(always)]
    unsafe fn store_narrow32(self, p: *mut u8) {
        unsafe {
            let words = self.pack_i32_i16(self);
            words.pack_i16_i8(words).store_quarter_lanes(p, 0);
        }
    }
    #[inline(always)]
    unsafe fn load_each(p: *const u8) -> Self {
        unsafe { Self::load(p) }
    }
    binary! {
        add8 = i8x16_add;
        sub8 = i8x16_sub;
        adds_u8 = u8x16_add_sat;
        subs_u8 = u8x16_sub_sat;
        adds_i8 = i8x16_add_sat;
        subs_i8 = i8x16_sub_sat;
        min_u8 = u8x16_min;
        max_u8 = u8x16_max;
        avg_u8 = u8x16_avgr;
        eq8 = i8x16_eq;
        gt_i8 = i8x16_gt;
        add16 = i16x8_add;
        sub16 = i16x8_sub;
        adds_i16 = i16x8_add_sat;
        subs_i16 = i16x8_sub_sat;
        min_i16 = i16x8_min;
        max_i16 = i16x8_max;
        mul_low16 = i16x8_mul;
        mul_round_i16 = i16x8_q15mulr_sat;
        madd_i16 = i32x4_dot_i16x8;
        gt_i16 = i16x8_gt;
        eq16 = i16x8_eq;
        add32 = i32x4_add;
        sub32 = i32x4_sub;
        min_i32 = i32x4_min;
        max_i32 = i32x4_max;
        gt_i32 = i32x4_gt;
        and = v128_and;
        or = v128_or;
        xor = v128_xor;
        and_not = v128_andnot;
        pack_i32_i16 = i16x8_narrow_i32x4;
        pack_i16_u8 = u8x16_narrow_i16x8;
        pack_i16_i8 = i8x16_narrow_i16x8;
    }
    #[inline(always)]
    unsafe fn zip_low8(self, o: Self) -> Self {
        Self(i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_high8(self, o: Self) -> Self {
        Self(i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(
            self.0, o.0,
        ))
    }
    #[inline(always)]
    unsafe fn zip_low16(self, o: Self) -> Self {
        Self(i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_high16(self, o: Self) -> Self {
        Self(i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_low32(self, o: Self) -> Self {
        Self(i32x4_shuffle::<0, 4, 1, 5>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_high32(self, o: Self) -> Self {
        Self(i32x4_shuffle::<2, 6, 3, 7>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_low64(self, o: Self) -> Self {
        Self(i64x2_shuffle::<0, 2>(self.0, o.0))
    }
    #[inline(always)]
    unsafe fn zip_high64(self, o: Self) -> Self {
        Self(i64x2_shuffle::<1, 3>(self.0, o.0))
    }
    shift! {
        shl16 = i16x8_shl;
        shr_i16 = i16x8_shr;
        shr_u16 = u16x8_shr;
        shl32 = i32x4_shl;
        shr_i32 = i32x4_shr;
    }
    #[inline(always)]
    unsafe fn shr_i32_by(self, count: u32) -> Self {
        Self(i32x4_shr(self.0, count))
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        v128_any_true(self.0)
    }
    #[inline(always)]
    unsafe fn select(self, a: Self, b: Self) -> Self {
        Self(v128_bitselect(a.0, b.0, self.0))
    }
    #[inline(always)]
    unsafe fn widen_low_u8(self) -> Self {
        Self(i16x8_extend_low_u8x16(self.0))
    }
    #[inline(always)]
    unsafe fn widen_high_u8(self) -> Self {
        Self(i16x8_extend_high_u8x16(self.0))
    }
    #[inline(always)]
    unsafe fn widen_low_i8(self) -> Self {
        Self(i16x8_extend_low_i8x16(self.0))
    }
    #[inline(always)]
    unsafe fn widen_high_i8(self) -> Self {
        Self(i16x8_extend_high_i8x16(self.0))
    }
}
