//! Inverse transforms: the residual of a block from its coefficients, added to its prediction.
//!
//! Source: VP9 specification 8.7.1, 8.7.2 and the last step of 8.6.2. Rows come first, then
//! columns. The result is exact where the stream conforms; elsewhere intermediate values wrap or
//! saturate at 16 bits ([`lines::Samples`] says which), equally in every form.
//!
//! The caller tells how far from the top left corner non-zero coefficients reach. Rows beyond are
//! not transformed, and products with columns beyond are left out; a block of one coefficient is
//! one constant.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod dispatch;
mod lines;
mod scalar;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod simd;

use super::span;
use crate::simd::{Isa, Set};

/// Calls `$function` of the form for `$set`, or `$scalar`.
macro_rules! form {
    ($set:expr, $scalar:expr, $($function:tt)*) => {
        match $set {
            Set::Scalar => $scalar,
            // SAFETY: the set is present, and the caller has checked the slices.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { dispatch::avx2::$($function)* },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => unsafe { dispatch::neon::$($function)* },
            // SAFETY: as above.
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Set::Simd128 => unsafe { dispatch::simd128::$($function)* },
        }
    };
}

/// The size of a square transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum TransformSize {
    /// 4 by 4 samples.
    #[default]
    Size4,
    /// 8 by 8 samples.
    Size8,
    /// 16 by 16 samples.
    Size16,
    /// 32 by 32 samples.
    Size32,
}

impl TransformSize {
    /// Every size, the smallest first.
    pub const ALL: [Self; 4] = [Self::Size4, Self::Size8, Self::Size16, Self::Size32];

    /// Binary logarithm of the side.
    #[inline(always)]
    pub const fn log2(self) -> u32 {
        self as u32 + 2
    }

    /// Number of samples along one side.
    #[inline(always)]
    pub const fn side(self) -> usize {
        4 << self as usize
    }

    /// Number of bits that the last rounding drops.
    #[inline(always)]
    const fn shift(self) -> u32 {
        match self {
            Self::Size4 => 4,
            Self::Size8 => 5,
            Self::Size16 | Self::Size32 => 6,
        }
    }
}

/// The kinds of transform of a block's columns and rows; names have the columns first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum TransformKind {
    /// DCT down the columns and along the rows.
    #[default]
    DctDct,
    /// ADST down the columns, DCT along the rows.
    AdstDct,
    /// DCT down the columns, ADST along the rows.
    DctAdst,
    /// ADST down the columns and along the rows.
    AdstAdst,
}

impl TransformKind {
    /// Every kind in the order of the specification.
    pub const ALL: [Self; 4] = [Self::DctDct, Self::AdstDct, Self::DctAdst, Self::AdstAdst];
}

/// The transform of a block, and the corner that holds all non-zero coefficients.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The size of the block. 32x32 blocks have [`TransformKind::DctDct`] alone.
    pub size: TransformSize,
    /// The kind of transform.
    pub kind: TransformKind,
    /// Whether the Walsh-Hadamard transform takes the place of `kind`; 4x4 blocks alone.
    pub lossless: bool,
    /// Number of first columns that hold all non-zero coefficients, at least 1.
    pub cols: usize,
    /// Number of first rows that hold all non-zero coefficients, at least 1.
    pub rows: usize,
}

impl Shape {
    #[inline(always)]
    fn check(&self, coefs: &[i16]) {
        let side = self.size.side();
        assert!(coefs.len() == side * side, "coefficients of another size");
        assert!(
            (1..=side).contains(&self.cols) && (1..=side).contains(&self.rows),
            "no such corner"
        );
        assert!(!self.lossless || self.size == TransformSize::Size4, "lossless blocks are 4x4");
        assert!(
            self.size != TransformSize::Size32 || self.kind == TransformKind::DctDct,
            "32x32 blocks have the DCT alone"
        );
    }
}

/// Panics if a destination does not hold a square of `side` samples.
#[inline(always)]
fn check_square(side: usize, dst: &[u8], dst_stride: usize) {
    assert!(dst_stride >= side, "rows overlap");
    assert!(dst.len() >= span(side, dst_stride, side), "the block leaves the picture");
}

/// Adds the residual of `coefs` to the samples at the head of `dst`, and clears `coefs`.
///
/// `coefs` has `side * side` dequantised coefficients, one row after another; those outside the
/// corner of `shape` must be zero. All are zero afterwards.
///
/// # Panics
///
/// When a slice is shorter than the block, or the block is none of VP9's.
#[inline]
pub fn inverse_transform_add(
    isa: Isa,
    shape: &Shape,
    coefs: &mut [i16],
    dst: &mut [u8],
    dst_stride: usize,
) {
    shape.check(coefs);
    check_square(shape.size.side(), dst, dst_stride);
    form!(
        isa.set(),
        {
            let mut residual = [0; 32 * 32];
            let residual = &mut residual[..coefs.len()];
            scalar::residual(shape, coefs, residual);
            scalar::add(residual, shape.size.side(), dst, dst_stride);
        },
        transform::<true>(
            shape,
            &simd::Block {
                coefs: coefs.as_mut_ptr(),
                cols: shape.cols,
                rows: shape.rows,
                dst: dst.as_mut_ptr(),
                stride: dst_stride,
                residual: core::ptr::null_mut(),
            },
        )
    );
}

/// The residual of `coefs`, as [`inverse_transform_add`] would add it, one row after another.
///
/// # Panics
///
/// When a slice is not `side * side` long, or the block is none of VP9's.
#[inline]
pub fn inverse_transform(isa: Isa, shape: &Shape, coefs: &mut [i16], residual: &mut [i16]) {
    shape.check(coefs);
    assert!(residual.len() == coefs.len(), "a residual of another size");
    form!(
        isa.set(),
        scalar::residual(shape, coefs, residual),
        transform::<false>(
            shape,
            &simd::Block {
                coefs: coefs.as_mut_ptr(),
                cols: shape.cols,
                rows: shape.rows,
                dst: core::ptr::null_mut(),
                stride: 0,
                residual: residual.as_mut_ptr(),
            },
        )
    );
}

/// Adds a `side * side` residual to the samples at the head of `dst`.
///
/// # Panics
///
/// When a slice is shorter than the block, or `side` is none of 4, 8, 16, 32.
#[inline]
pub fn add_residual(isa: Isa, residual: &[i16], side: usize, dst: &mut [u8], dst_stride: usize) {
    assert!(matches!(side, 4 | 8 | 16 | 32), "no such transform");
    assert!(residual.len() == side * side, "a residual of another size");
    check_square(side, dst, dst_stride);
    form!(
        isa.set(),
        scalar::add(residual, side, dst, dst_stride),
        add(residual.as_ptr(), side, dst.as_mut_ptr(), dst_stride)
    );
}

#[cfg(test)]
mod tests;
