//! Intra prediction of one transform block from the samples above it and to its left.
//!
//! Source: VP9 bitstream specification v0.7 §8.5.1. The caller fills the two edges by the
//! specification's rules of availability; then every mode but [`IntraMode::Dc`] is a function of
//! the edges alone.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

mod scalar;
mod simd;

#[cfg(test)]
mod tests;

use super::span;
use crate::simd::vector::Vector;
use crate::simd::{Isa, Set};

/// Intra modes, numbered as in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IntraMode {
    /// Mean of the edges that are available.
    Dc = 0,
    /// The row above, repeated.
    V = 1,
    /// The column to the left, repeated.
    H = 2,
    /// Prediction along 45 degrees, from above right.
    D45 = 3,
    /// Prediction along 135 degrees, from above left.
    D135 = 4,
    /// Prediction along 117 degrees.
    D117 = 5,
    /// Prediction along 153 degrees.
    D153 = 6,
    /// Prediction along 207 degrees, from below left.
    D207 = 7,
    /// Prediction along 63 degrees.
    D63 = 8,
    /// The left sample plus the one above, minus the corner (true motion).
    Tm = 9,
}

impl IntraMode {
    /// All modes in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Dc,
        Self::V,
        Self::H,
        Self::D45,
        Self::D135,
        Self::D117,
        Self::D153,
        Self::D207,
        Self::D63,
        Self::Tm,
    ];
}

/// The samples beside a square block.
#[derive(Debug, Clone, Copy)]
pub struct Edges<'a> {
    /// The corner above left, then the row above: twice the block's side.
    pub above: &'a [u8],
    /// The column to the left, top to bottom.
    pub left: &'a [u8],
    /// Whether the column to the left is in the picture; [`IntraMode::Dc`] alone reads it.
    pub have_left: bool,
    /// Whether the row above is in the picture; [`IntraMode::Dc`] alone reads it.
    pub have_above: bool,
}

/// Predicts a square block, whose side is 4, 8, 16 or 32.
pub fn predict_intra(
    isa: Isa,
    mode: IntraMode,
    side: usize,
    edges: Edges<'_>,
    dst: &mut [u8],
    stride: usize,
) {
    assert!(matches!(side, 4 | 8 | 16 | 32), "side {side}");
    let long_enough = edges.above.len() > 2 * side && edges.left.len() >= side;
    assert!(long_enough, "the edges are too short");
    assert!(stride >= side && dst.len() >= span(side, stride, side), "destination");
    let to = simd::To { at: dst.as_mut_ptr(), stride };
    match isa.set() {
        Set::Scalar => scalar::predict(mode, side, edges, dst, stride),
        // SAFETY: the set says that the instructions are there; the slices are checked.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { avx2(mode, side, edges, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Set::Neon => unsafe {
            use crate::simd::vector::neon::N128;
            by_side::<N128, N128>(mode, side, edges, to);
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Set::Simd128 => unsafe {
            use crate::simd::vector::wasm::W128;
            by_side::<W128, W128>(mode, side, edges, to);
        },
    }
}

/// Predicts a block with AVX2.
///
/// # Safety
///
/// The machine has AVX2; the slices are checked.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(mode: IntraMode, side: usize, edges: Edges<'_>, to: simd::To) {
    use crate::simd::vector::x86::{X128, X256};
    unsafe { by_side::<X128, X256>(mode, side, edges, to) }
}

/// Calls the form for the side: over `V`, which has one lane, or the wider `W` where it fits.
///
/// # Safety
///
/// The machine has both; the slices are checked.
#[inline(always)]
unsafe fn by_side<V: Vector, W: Vector>(
    mode: IntraMode,
    side: usize,
    edges: Edges<'_>,
    to: simd::To,
) {
    unsafe {
        match side {
            4 => simd::predict::<V, 4>(mode, edges, to),
            8 => simd::predict::<V, 8>(mode, edges, to),
            16 => simd::predict::<V, 16>(mode, edges, to),
            _ => simd::predict::<W, 32>(mode, edges, to),
        }
    }
}
