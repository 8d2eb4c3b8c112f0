//! [`Vector`] on aarch64 NEON: one lane.

// All that this module uses comes from `core::arch`.
#![allow(clippy::wildcard_imports)]

use core::arch::aarch64::*;

use super::Vector;

/// A vector of one 128-bit lane.
#[derive(Clone, Copy)]
pub struct N128(pub(crate) uint8x16_t);

/// Binary operations on elements of one shape: views in, operation, view out.
macro_rules! binary {
    ($view:ident, $back:ident: $($name:ident = $op:ident;)*) => {
        $(#[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            unsafe { Self($back($op($view(self.0), $view(o.0)))) }
        })*
    };
}

impl Vector for N128 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(vdupq_n_u8(0)) }
    }
    #[inline(always)]
    unsafe fn splat8(v: u8) -> Self {
        unsafe { Self(vdupq_n_u8(v)) }
    }
    #[inline(always)]
    unsafe fn splat16(v: i16) -> Self {
        unsafe { Self(vreinterpretq_u8_s16(vdupq_n_s16(v))) }
    }
    #[inline(always)]
    unsafe fn splat32(v: i32) -> Self {
        unsafe { Self(vreinterpretq_u8_s32(vdupq_n_s32(v))) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8) -> Self {
        unsafe { Self(vld1q_u8(p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        unsafe {
            vst1q_u8(p, self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(vld1q_u8(p)) }
    }
    #[inline(always)]
    unsafe fn store_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            vst1q_u8(p, self.0);
        }
    }
    #[inline(always)]
    unsafe fn load_half_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe { Self(vcombine_u8(vld1_u8(p), vdup_n_u8(0))) }
    }
    #[inline(always)]
    unsafe fn store_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            vst1_u8(p, vget_low_u8(self.0));
        }
    }
    #[inline(always)]
    unsafe fn load_quarter_lanes(p: *const u8, _stride: usize) -> Self {
        unsafe {
            Self(vreinterpretq_u8_u32(vsetq_lane_u32::<0>(
                p.cast::<u32>().read_unaligned(),
                vdupq_n_u32(0),
            )))
        }
    }
    #[inline(always)]
    unsafe fn store_quarter_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            p.cast::<u32>().write_unaligned(vgetq_lane_u32::<0>(vreinterpretq_u32_u8(self.0)));
        }
    }
    #[inline(always)]
    unsafe fn store_high_half_lanes(self, p: *mut u8, _stride: usize) {
        unsafe {
            vst1_u8(p, vget_high_u8(self.0));
        }
    }
    #[inline(always)]
    unsafe fn store_element_lanes<const I: i32>(self, p: *mut u8, _stride: usize) {
        unsafe {
            p.cast::<u32>().write_unaligned(vgetq_lane_u32::<I>(vreinterpretq_u32_u8(self.0)));
        }
    }
    #[inline(always)]
    unsafe fn splat_halves(bytes: u32) -> Self {
        unsafe { Self(vcombine_u8(vdup_n_u8(bytes as u8), vdup_n_u8((bytes >> 8) as u8))) }
    }
    #[inline(always)]
    unsafe fn load_widen(p: *const u8) -> Self {
        unsafe { Self(vreinterpretq_u8_u16(vmovl_u8(vld1_u8(p)))) }
    }
    #[inline(always)]
    unsafe fn store_narrow(self, p: *mut u8) {
        unsafe {
            vst1_u8(p, vqmovun_s16(vreinterpretq_s16_u8(self.0)));
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
    binary! { vreinterpretq_u8_u8_same, vreinterpretq_u8_u8_same:
        add8 = vaddq_u8;
        sub8 = vsubq_u8;
        adds_u8 = vqaddq_u8;
        subs_u8 = vqsubq_u8;
        min_u8 = vminq_u8;
        max_u8 = vmaxq_u8;
        avg_u8 = vrhaddq_u8;
        eq8 = vceqq_u8;
        and = vandq_u8;
        or = vorrq_u8;
        xor = veorq_u8;
        and_not = vbicq_u8;
        zip_low8 = vzip1q_u8;
        zip_high8 = vzip2q_u8;
        abs_diff_u8 = vabdq_u8;
    }
    binary! { vreinterpretq_s8_u8, vreinterpretq_u8_s8:
        adds_i8 = vqaddq_s8;
        subs_i8 = vqsubq_s8;
    }
    binary! { vreinterpretq_s8_u8, vreinterpretq_u8_u8_same:
        gt_i8 = vcgtq_s8;
    }
    binary! { vreinterpretq_s16_u8, vreinterpretq_u8_s16:
        add16 = vaddq_s16;
        sub16 = vsubq_s16;
        adds_i16 = vqaddq_s16;
        subs_i16 = vqsubq_s16;
        min_i16 = vminq_s16;
        max_i16 = vmaxq_s16;
        mul_low16 = vmulq_s16;
        mul_round_i16 = vqrdmulhq_s16;
        zip_low16 = vzip1q_s16;
        zip_high16 = vzip2q_s16;
    }
    binary! { vreinterpretq_s16_u8, vreinterpretq_u8_u16:
        gt_i16 = vcgtq_s16;
        eq16 = vceqq_s16;
    }
    binary! { vreinterpretq_s32_u8, vreinterpretq_u8_s32:
        add32 = vaddq_s32;
        sub32 = vsubq_s32;
        min_i32 = vminq_s32;
        max_i32 = vmaxq_s32;
        zip_low32 = vzip1q_s32;
        zip_high32 = vzip2q_s32;
    }
    binary! { vreinterpretq_s32_u8, vreinterpretq_u8_u32:
        gt_i32 = vcgtq_s32;
    }
    binary! { vreinterpretq_s64_u8, vreinterpretq_u8_s64:
        zip_low64 = vzip1q_s64;
        zip_high64 = vzip2q_s64;
    }
    #[inline(always)]
    unsafe fn madd_i16(self, o: Self) -> Self {
        unsafe {
            let (a, b) = (vreinterpretq_s16_u8(self.0), vreinterpretq_s16_u8(o.0));
            let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
            Self(vreinterpretq_u8_s32(vpaddq_s32(low, vmull_high_s16(a, b))))
        }
    }
    #[inline(always)]
    unsafe fn pack_i32_i16(self, o: Self) -> Self {
        unsafe {
            let low = vqmovn_s32(vreinterpretq_s32_u8(self.0));
            Self(vreinterpretq_u8_s16(vqmovn_high_s32(low, vreinterpretq_s32_u8(o.0))))
        }
    }
    #[inline(always)]
    unsafe fn pack_i16_u8(self, o: Self) -> Self {
        unsafe {
            let low = vqmovun_s16(vreinterpretq_s16_u8(self.0));
            Self(vqmovun_high_s16(low, vreinterpretq_s16_u8(o.0)))
        }
    }
    #[inline(always)]
    unsafe fn pack_i16_i8(self, o: Self) -> Self {
        unsafe {
            let low = vqmovn_s16(vreinterpretq_s16_u8(self.0));
            Self(vreinterpretq_u8_s8(vqmovn_high_s16(low, vreinterpretq_s16_u8(o.0))))
        }
    }
    #[inline(always)]
    unsafe fn shl16<const N: i32>(self) -> Self {
        unsafe {
            Self(vreinterpretq_u8_s16(vshlq_s16(vreinterpretq_s16_u8(self.0), vdupq_n_s16(N as _))))
        }
    }
    #[inline(always)]
    unsafe fn shr_i16<const N: i32>(self) -> Self {
        unsafe {
            Self(vreinterpretq_u8_s16(vshlq_s16(
                vreinterpretq_s16_u8(self.0),
                vdupq_n_s16(-N as _),
            )))
        }
    }
    #[inline(always)]
    unsafe fn shr_u16<const N: i32>(self) -> Self {
        unsafe {
            Self(vreinterpretq_u8_u16(vshlq_u16(
                vreinterpretq_u16_u8(self.0),
                vdupq_n_s16(-N as _),
            )))
        }
    }
    #[inline(always)]
    unsafe fn shl32<const N: i32>(self) -> Self {
        unsafe {
            Self(vreinterpretq_u8_s32(vshlq_s32(vreinterpretq_s32_u8(self.0), vdupq_n_s32(N as _))))
        }
    }
    #[inline(always)]
    unsafe fn shr_i32<const N: i32>(self) -> Self {
        unsafe {
            Self(vreinterpretq_u8_s32(vshlq_s32(
                vreinterpretq_s32_u8(self.0),
                vdupq_n_s32(-N as _),
            )))
        }
    }
    #[inline(always)]
    unsafe fn shr_i32_by(self, count: u32) -> Self {
        unsafe {
            Self(vreinterpretq_u8_s32(vshlq_s32(
                vreinterpretq_s32_u8(self.0),
                vdupq_n_s32(-(count as i32)),
            )))
        }
    }
    #[inline(always)]
    unsafe fn any(self) -> bool {
        unsafe { vmaxvq_u32(vreinterpretq_u32_u8(self.0)) != 0 }
    }
    #[inline(always)]
    unsafe fn select(self, a: Self, b: Self) -> Self {
        unsafe { Self(vbslq_u8(self.0, a.0, b.0)) }
    }
}

/// The view that changes nothing, to fit the macro.
#[inline(always)]
unsafe fn vreinterpretq_u8_u8_same(v: uint8x16_t) -> uint8x16_t {
    v
}
