//! Chooses the SIMD form for a block's size, kind and used corner, for each instruction set.
//!
//! Passes over rows and over columns are functions of their own, so that each exists once per transform and class of
//! used coefficients, not once per pair of them.

macro_rules! instance {
    ($(#[$feature:meta])* $name:ident, $narrow:ty, $wide:ty) => {
        pub(super) mod $name {
            use core::mem::MaybeUninit;

            use super::super::lines::{Adst, Dct, Line};
            use super::super::simd::{self, Between, Block, Pairs};
            use super::super::{Shape, TransformKind, TransformSize, scalar};

            type Narrow = $narrow;
            type Wide = $wide;

            $(#[$feature])*
            unsafe fn square4<R: Pairs, C: Pairs, const ADD: bool>(block: &Block) {
                unsafe { simd::square4::<Narrow, R, C, ADD>(block) }
            }

            $(#[$feature])*
            unsafe fn square8<R: Line<8>, C: Line<8>, const USED: usize, const ADD: bool>(
                block: &Block,
            ) {
                unsafe { simd::square8::<Narrow, R, C, USED, ADD>(block) }
            }

            $(#[$feature])*
            #[inline(never)]
            unsafe fn few_rows<const SIDE: usize, T: Line<SIDE>, const USED: usize>(
                block: &Block,
                between: *mut i16,
            ) {
                unsafe { simd::rows::<Narrow, SIDE, T, USED>(block, between) }
            }

            $(#[$feature])*
            #[inline(never)]
            unsafe fn many_rows<const SIDE: usize, T: Line<SIDE>, const USED: usize>(
                block: &Block,
                between: *mut i16,
            ) {
                unsafe { simd::rows::<Wide, SIDE, T, USED>(block, between) }
            }

            $(#[$feature])*
            #[inline(never)]
            unsafe fn columns<
                const SIDE: usize,
                T: Line<SIDE>,
                const USED: usize,
                const ADD: bool,
            >(
                block: &Block,
                between: *const i16,
            ) {
                unsafe { simd::columns::<Wide, SIDE, T, USED, ADD>(block, between) }
            }

            $(#[$feature])*
            unsafe fn rows<const SIDE: usize, T: Line<SIDE>, const USED: usize>(
                block: &Block,
                between: *mut i16,
            ) {
                unsafe {
                    if block.rows <= 8 {
                        few_rows::<SIDE, T, USED>(block, between);
                    } else {
                        many_rows::<SIDE, T, USED>(block, between);
                    }
                }
            }

            $(#[$feature])*
            unsafe fn square16<R: Line<16>, C: Line<16>, const ADD: bool>(block: &Block) {
                let mut between = Between(MaybeUninit::uninit());
                let between = between.0.as_mut_ptr().cast();
                unsafe {
                    match block.cols {
                        ..=4 => rows::<16, R, 4>(block, between),
                        ..=8 => rows::<16, R, 8>(block, between),
                        _ => rows::<16, R, 16>(block, between),
                    }
                    match block.rows {
                        ..=4 => columns::<16, C, 4, ADD>(block, between),
                        ..=8 => columns::<16, C, 8, ADD>(block, between),
                        _ => columns::<16, C, 16, ADD>(block, between),
                    }
                }
            }

            $(#[$feature])*
            unsafe fn square32<const ADD: bool>(block: &Block) {
                let mut between = Between(MaybeUninit::uninit());
                let between = between.0.as_mut_ptr().cast();
                unsafe {
                    match block.cols {
                        ..=8 => rows::<32, Dct, 8>(block, between),
                        ..=16 => rows::<32, Dct, 16>(block, between),
                        _ => rows::<32, Dct, 32>(block, between),
                    }
                    match block.rows {
                        ..=8 => columns::<32, Dct, 8, ADD>(block, between),
                        ..=16 => columns::<32, Dct, 16, ADD>(block, between),
                        _ => columns::<32, Dct, 32, ADD>(block, between),
                    }
                }
            }

            $(#[$feature])*
            unsafe fn constant<const SIDE: usize, const ADD: bool>(block: &Block, value: i16) {
                unsafe { simd::constant::<Narrow, SIDE, ADD>(block, value) }
            }

            $(#[$feature])*
            unsafe fn lossless<const ADD: bool>(block: &Block) {
                unsafe { simd::lossless::<Narrow, ADD>(block) }
            }

            /// Transforms `block` and adds or stores its residual.
            ///
            /// # Safety
            ///
            /// The machine has the instruction set; `block` holds a block of `shape`.
            #[inline]
            pub(in super::super) unsafe fn transform<const ADD: bool>(
                shape: &Shape,
                block: &Block,
            ) {
                use TransformKind::{AdstAdst, AdstDct, DctAdst, DctDct};
                use TransformSize::{Size4, Size8, Size16, Size32};
                unsafe {
                    if shape.lossless {
                        return lossless::<ADD>(block);
                    }
                    if shape.kind == DctDct && shape.rows == 1 && shape.cols == 1 {
                        let value = scalar::constant(shape.size, block.coefs.replace(0));
                        return match shape.size {
                            Size4 => constant::<4, ADD>(block, value),
                            Size8 => constant::<8, ADD>(block, value),
                            Size16 => constant::<16, ADD>(block, value),
                            Size32 => constant::<32, ADD>(block, value),
                        };
                    }
                    match (shape.size, shape.kind) {
                        (Size4, DctDct) => square4::<Dct, Dct, ADD>(block),
                        (Size4, AdstDct) => square4::<Dct, Adst, ADD>(block),
                        (Size4, DctAdst) => square4::<Adst, Dct, ADD>(block),
                        (Size4, AdstAdst) => square4::<Adst, Adst, ADD>(block),
                        (Size8, DctDct) if shape.cols.max(shape.rows) <= 4 => {
                            square8::<Dct, Dct, 4, ADD>(block);
                        }
                        (Size8, DctDct) => square8::<Dct, Dct, 8, ADD>(block),
                        (Size8, AdstDct) => square8::<Dct, Adst, 8, ADD>(block),
                        (Size8, DctAdst) => square8::<Adst, Dct, 8, ADD>(block),
                        (Size8, AdstAdst) => square8::<Adst, Adst, 8, ADD>(block),
                        (Size16, DctDct) => square16::<Dct, Dct, ADD>(block),
                        (Size16, AdstDct) => square16::<Dct, Adst, ADD>(block),
                        (Size16, DctAdst) => square16::<Adst, Dct, ADD>(block),
                        (Size16, AdstAdst) => square16::<Adst, Adst, ADD>(block),
                        (Size32, _) => square32::<ADD>(block),
                    }
                }
            }

            /// Adds a residual of `side * side` values to the square at `dst`.
            ///
            /// # Safety
            ///
            /// The machine has the instruction set; the pointers are valid for such a square.
            $(#[$feature])*
            pub(in super::super) unsafe fn add(
                residual: *const i16,
                side: usize,
                dst: *mut u8,
                stride: usize,
            ) {
                unsafe { simd::add::<Narrow, Wide>(residual, side, dst, stride) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instance!(
    #[target_feature(enable = "avx2")]
    avx2,
    crate::simd::vector::x86::X128,
    crate::simd::vector::x86::X256
);

#[cfg(target_arch = "aarch64")]
instance!(neon, crate::simd::vector::neon::N128, crate::simd::vector::neon::N128);

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
instance!(simd128, crate::simd::vector::wasm::W128, crate::simd::vector::wasm::W128);
