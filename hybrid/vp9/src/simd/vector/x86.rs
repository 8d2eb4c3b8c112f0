//! [`Vector`] on x86-64: one lane (VEX-encoded 128 bits) and two (AVX2).
//!
//! # Safety
//!
//! Both types need AVX2.

// All that this module uses comes from `core::arch`.
#![allow(clippy::wildcard_imports)]

use core::arch::x86_64::*;

use super::Vector;

/// A vector of one 128-bit lane.
#[derive(Clone, Copy)]
pub struct X128(pub(crate) __m128i);

/// A vector of two 128-bit lanes.
#[derive(Clone, Copy)]
pub struct X256(pub(crate) __m256i);

macro_rules! binary {
    ($($name:ident = $op:ident;)*) => {
        $(#[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            unsafe { Self($op(self.0, o.0)) }
        })*
    };
}

macro_rules! shift {
    ($($name:ident = $op:ident;)*) => {
        $(#[inline(always)]
        unsafe fn $name<const N: i32>(self) -> Self {
            unsafe { Self($op::<N>(self.0)) }
        })*
    };
}

impl Vector for X128 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm_setzero_si128()) }
    }
    #[inline(always)]
    unsafe fn splat8(v: u8) -> Self {
        unsafe { Self(_mm_set1_epi8(v as i8)) }
    }
    #[inline(always)]
    unsafe fn splat16(v: i16) -> Self {
        unsafe { Self(_mm_set1_epi16(v)) }
    }
    #[inline(always)]
    unsafe fn splat32(v: i32) -> Self {
        unsafe { Self(_mm_set1_epi32(v)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self {
        unsafe { Self(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        unsafe {
            _mm_storeu_si128(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            _mm_storeu_si128(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_half_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(_mm_loadl_epi64(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            _mm_storel_epi64(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_quarter_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(_mm_cvtsi32_si128(p.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn store_quarter_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(self.0));
        }
    }
    #[inline(always)]
    unsafe fn store_high_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            _mm_storeh_pd(p.cast(), _mm_castsi128_pd(self.0));
        }
    }
    #[inline(always)]
    unsafe fn store_element_lanes<const I: i32>(self, p: *mut u8, _stride: usize) {
        unsafe {
            p.cast::<i32>().write_unaligned(_mm_extract_epi32::<I>(self.0));
        }
    }
    #[inline(always)]
    unsafe fn splat_halves(bytes: u32) -> Self {
        unsafe {
            let places = _mm_set_epi64x(0x0101_0101_0101_0101, 0);
            Self(_mm_shuffle_epi8(_mm_cvtsi32_si128(bytes as i32), places))
        }
    }
    #[inline(always)]
    unsafe fn load_widen(p: *const u8) -> Self {
        unsafe { Self(_mm_cvtepu8_epi16(_mm_loadl_epi64(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store_narrow(self, p: *mut u8) {
        unsafe {
            _mm_storel_epi64(p.cast(), _mm_packus_epi16(self.0, self.0));
        }
    }
    #[inline(always)]
    unsafe fn store_narrow32(self, p: *mut u8) {
        unsafe {
            let words = _mm_packs_epi32(self.0, self.0);
            Self(_mm_packs_epi16(words, words)).store_quarter_lanes(p, 0);
        }
    }
    #[inline(always)]
    unsafe fn load_each(p: *const u8) -> Self {
        unsafe { Self::load(p) }
    }
    binary! {
        add8 = _mm_add_epi8;
        sub8 = _mm_sub_epi8;
        adds_u8 = _mm_adds_epu8;
        subs_u8 = _mm_subs_epu8;
        adds_i8 = _mm_adds_epi8;
        subs_i8 = _mm_subs_epi8;
        min_u8 = _mm_min_epu8;
        max_u8 = _mm_max_epu8;
        avg_u8 = _mm_avg_epu8;
        eq8 = _mm_cmpeq_epi8;
        gt_i8 = _mm_cmpgt_epi8;
        add16 = _mm_add_epi16;
        sub16 = _mm_sub_epi16;
        adds_i16 = _mm_adds_epi16;
        subs_i16 = _mm_subs_epi16;
        min_i16 = _mm_min_epi16;
        max_i16 = _mm_max_epi16;
        mul_low16 = _mm_mullo_epi16;
        mul_round_i16 = _mm_mulhrs_epi16;
        madd_i16 = _mm_madd_epi16;
        gt_i16 = _mm_cmpgt_epi16;
        eq16 = _mm_cmpeq_epi16;
        add32 = _mm_add_epi32;
        sub32 = _mm_sub_epi32;
        min_i32 = _mm_min_epi32;
        max_i32 = _mm_max_epi32;
        gt_i32 = _mm_cmpgt_epi32;
        and = _mm_and_si128;
        or = _mm_or_si128;
        xor = _mm_xor_si128;
        zip_low8 = _mm_unpacklo_epi8;
        zip_high8 = _mm_unpackhi_epi8;
        zip_low16 = _mm_unpacklo_epi16;
        zip_high16 = _mm_unpackhi_epi16;
        zip_low32 = _mm_unpacklo_epi32;
        zip_high32 = _mm_unpackhi_epi32;
        zip_low64 = _mm_unpacklo_epi64;
        zip_high64 = _mm_unpackhi_epi64;
        pack_i32_i16 = _mm_packs_epi32;
        pack_i16_u8 = _mm_packus_epi16;
        pack_i16_i8 = _mm_packs_epi16;
    }
    #[inline(always)]
    unsafe fn and_not(self, o: Self) -> Self {
        unsafe { Self(_mm_andnot_si128(o.0, self.0)) }
    }
    shift! {
        shl16 = _mm_slli_epi16;
        shr_i16 = _mm_srai_epi16;
        shr_u16 = _mm_srli_epi16;
        shl32 = _mm_slli_epi32;
        shr_i32 = _mm_srai_epi32;
    }
    #[inline(always)]
    unsafe fn shr_i32_by(self, count: u32) -> Self {
        unsafe { Self(_mm_sra_epi32(self.0, _mm_cvtsi32_si128(count as i32))) }
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        unsafe { _mm_testz_si128(self.0, self.0) == 0 }
    }
    #[inline(always)]
    unsafe fn select(self, a: Self, b: Self) -> Self {
        unsafe { Self(_mm_blendv_epi8(b.0, a.0, self.0)) }
    }
}

impl Vector for X256 {
    const LANES: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm256_setzero_si256()) }
    }
    #[inline(always)]
    unsafe fn splat8(v: u8) -> Self {
        unsafe { Self(_mm256_set1_epi8(v as i8)) }
    }
    #[inline(always)]
    unsafe fn splat16(v: i16) -> Self {
        unsafe { Self(_mm256_set1_epi16(v)) }
    }
    #[inline(always)]
    unsafe fn splat32(v: i32) -> Self {
        unsafe { Self(_mm256_set1_epi32(v)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self {
        unsafe { Self(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        unsafe {
            _mm256_storeu_si256(p.cast(), self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_lanes(p: *const u8, stride: usize) -> Self {
        unsafe {
            Self(_mm256_inserti128_si256::<1>(
                _mm256_castsi128_si256(_mm_loadu_si128(p.cast())),
                _mm_loadu_si128(p.add(stride).cast()),
            ))
        }
    }
    #[inline(always)]
    unsafe fn store_lanes(self, p: *mut u8, stride: usize) {
        unsafe {
            _mm_storeu_si128(p.cast(), _mm256_castsi256_si128(self.0));
            _mm_storeu_si128(p.add(stride).cast(), _mm256_extracti128_si256::<1>(self.0));
        }
    }
    #[inline(always)]
    unsafe fn load_half_lanes(p: *const u8, stride: usize) -> Self {
        unsafe {
            Self(_mm256_set_m128i(_mm_loadl_epi64(p.add(stride).cast()), _mm_loadl_epi64(p.cast())))
        }
    }
    #[inline(always)]
    unsafe fn store_half_lanes(self, p: *mut u8, stride: usize) {
        unsafe {
            _mm_storel_epi64(p.cast(), _mm256_castsi256_si128(self.0));
            _mm_storel_epi64(p.add(stride).cast(), _mm256_extracti128_si256::<1>(self.0));
        }
    }
    #[inline(always)]
    unsafe fn load_quarter_lanes(p: *const u8, stride: usize) -> Self {
        unsafe {
            Self(_mm256_set_m128i(
                X128::load_quarter_lanes(p.add(stride), 0).0,
                X128::load_quarter_lanes(p, 0).0,
            ))
        }
    }
    #[inline(always)]
    unsafe fn store_quarter_lanes(self, p: *mut u8, stride: usize) {
        unsafe {
            X128(_mm256_castsi256_si128(self.0)).store_quarter_lanes(p, 0);
            X128(_mm256_extracti128_si256::<1>(self.0)).store_quarter_lanes(p.add(stride), 0);
        }
    }
    #[inline(always)]
    unsafe fn store_high_half_lanes(self, p: *mut u8, stride: usize) {
        unsafe {
            X128(_mm256_castsi256_si128(self.0)).store_high_half_lanes(p, 0);
            X128(_mm256_extracti128_si256::<1>(self.0)).store_high_half_lanes(p.add(stride), 0);
        }
    }
    #[inline(always)]
    unsafe fn store_element_lanes<const I: i32>(self, p: *mut u8, stride: usize) {
        unsafe {
            let high = X128(_mm256_extracti128_si256::<1>(self.0));
            X128(_mm256_castsi256_si128(self.0)).store_element_lanes::<I>(p, 0);
            high.store_element_lanes::<I>(p.add(stride), 0);
        }
    }
    #[inline(always)]
    unsafe fn splat_halves(bytes: u32) -> Self {
        unsafe {
            let each = 0x0101_0101_0101_0101;
            let places = _mm256_set_epi64x(3 * each, 2 * each, each, 0);
            Self(_mm256_shuffle_epi8(_mm256_set1_epi32(bytes as i32), places))
        }
    }
    #[inline(always)]
    unsafe fn load_widen(p: *const u8) -> Self {
        unsafe { Self(_mm256_cvtepu8_epi16(_mm_loadu_si128(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store_narrow(self, p: *mut u8) {
        unsafe {
            let packed = _mm_packus_epi16(
                _mm256_castsi256_si128(self.0),
                _mm256_extracti128_si256::<1>(self.0),
            );
            _mm_storeu_si128(p.cast(), packed);
        }
    }
    #[inline(always)]
    unsafe fn store_narrow32(self, p: *mut u8) {
        unsafe {
            let words = _mm_packs_epi32(
                _mm256_castsi256_si128(self.0),
                _mm256_extracti128_si256::<1>(self.0),
            );
            _mm_storel_epi64(p.cast(), _mm_packs_epi16(words, words));
        }
    }
    #[inline(always)]
    unsafe fn load_each(p: *const u8) -> Self {
        unsafe { Self(_mm256_broadcastsi128_si256(_mm_loadu_si128(p.cast()))) }
    }
    binary! {
        add8 = _mm256_add_epi8;
        sub8 = _mm256_sub_epi8;
        adds_u8 = _mm256_adds_epu8;
        subs_u8 = _mm256_subs_epu8;
        adds_i8 = _mm256_adds_epi8;
        subs_i8 = _mm256_subs_epi8;
        min_u8 = _mm256_min_epu8;
        max_u8 = _mm256_max_epu8;
        avg_u8 = _mm256_avg_epu8;
        eq8 = _mm256_cmpeq_epi8;
        gt_i8 = _mm256_cmpgt_epi8;
        add16 = _mm256_add_epi16;
        sub16 = _mm256_sub_epi16;
        adds_i16 = _mm256_adds_epi16;
        subs_i16 = _mm256_subs_epi16;
        min_i16 = _mm256_min_epi16;
        max_i16 = _mm256_max_epi16;
        mul_low16 = _mm256_mullo_epi16;
        mul_round_i16 = _mm256_mulhrs_epi16;
        madd_i16 = _mm256_madd_epi16;
        gt_i16 = _mm256_cmpgt_epi16;
        eq16 = _mm256_cmpeq_epi16;
        add32 = _mm256_add_epi32;
        sub32 = _mm256_sub_epi32;
        min_i32 = _mm256_min_epi32;
        max_i32 = _mm256_max_epi32;
        gt_i32 = _mm256_cmpgt_epi32;
        and = _mm256_and_si256;
        or = _mm256_or_si256;
        xor = _mm256_xor_si256;
        zip_low8 = _mm256_unpacklo_epi8;
        zip_high8 = _mm256_unpackhi_epi8;
        zip_low16 = _mm256_unpacklo_epi16;
        zip_high16 = _mm256_unpackhi_epi16;
        zip_low32 = _mm256_unpacklo_epi32;
        zip_high32 = _mm256_unpackhi_epi32;
        zip_low64 = _mm256_unpacklo_epi64;
        zip_high64 = _mm256_unpackhi_epi64;
        pack_i32_i16 = _mm256_packs_epi32;
        pack_i16_u8 = _mm256_packus_epi16;
        pack_i16_i8 = _mm256_packs_epi16;
    }
    #[inline(always)]
    unsafe fn and_not(self, o: Self) -> Self {
        unsafe { Self(_mm256_andnot_si256(o.0, self.0)) }
    }
    shift! {
        shl16 = _mm256_slli_epi16;
        shr_i16 = _mm256_srai_epi16;
        shr_u16 = _mm256_srli_epi16;
        shl32 = _mm256_slli_epi32;
        shr_i32 = _mm256_srai_epi32;
    }
    #[inline(always)]
    unsafe fn shr_i32_by(self, count: u32) -> Self {
        unsafe { Self(_mm256_sra_epi32(self.0, _mm_cvtsi32_si128(count as i32))) }
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        unsafe { _mm256_testz_si256(self.0, self.0) == 0 }
    }
    #[inline(always)]
    unsafe fn select(self, a: Self, b: Self) -> Self {
        unsafe { Self(_mm256_blendv_epi8(b.0, a.0, self.0)) }
    }
}
