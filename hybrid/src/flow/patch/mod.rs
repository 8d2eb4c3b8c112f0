//! The kernels for a patch of 8 × 8 samples: its gradients and their products, and its comparison with a
//! place in the reference.
//!
//! Fixed point: samples between samples are in 1/64 grey level, differences of pictures in 1/16, gradients
//! are differences over two samples; places are in 1/[`UNIT`] sample.
//!
//! `unsafe` here follows the invariants of [`windlass_vp9::simd`]: each method of [`Patches`] checks the slice that
//! it is given, and the machine has the instructions of the type that it is called on.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

mod scalar;
mod simd;

use super::FlowVector;
use super::pyramid::Level;

pub(super) use scalar::Scalar;
pub(super) use simd::Simd;

/// Side of a patch, in samples.
pub(super) const SIDE: usize = 8;

/// Units of a vector in one sample: vectors are in 1/64 sample.
pub(super) const UNIT: i32 = 64;

/// Side of a cell, in samples: each cell gets one vector.
pub(super) const CELL: usize = 2;

/// Number of cells along a patch's side.
pub(super) const CELLS: usize = SIDE / CELL;

/// A patch of the present picture, and its gradients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    /// Samples in 1/64 grey level.
    samples: [i16; SIDE * SIDE],
    /// Difference of the samples to the right and to the left of each sample.
    across: [i16; SIDE * SIDE],
    /// Difference of the samples below and above each sample.
    down: [i16; SIDE * SIDE],
}

/// Sums of a patch's products of gradients: across by across, across by down, down by down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Gradients {
    pub xx: i32,
    pub xy: i32,
    pub yy: i32,
}

/// Sums over the differences between a place in the reference and the patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Sums of the differences' products with the patch's gradients, to the right (`by_x`) and down (`by_y`).
    pub by_x: i32,
    pub by_y: i32,
    /// Sum of the squared differences, at most 2³⁰.
    pub squares: i32,
}

impl Default for Template {
    fn default() -> Self {
        let none = [0; SIDE * SIDE];
        Self { samples: none, across: none, down: none }
    }
}

/// A place of a patch in a level of the reference. Its samples begin at the patch's first, or at the whole sample
/// just before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    from: &'a [u8],
    stride: usize,
    /// Distance from that whole sample to the patch's first sample, to the right and down, in 1/[`UNIT`] sample.
    fraction: (i16, i16),
}

impl<'a> Place<'a> {
    /// The place that a vector leads to from a sample. The place must lie within the repeated edges of the level.
    #[inline(always)]
    pub(super) fn new(level: &'a Level, x: i32, y: i32, vector: FlowVector) -> Self {
        let (x, y) = (x * UNIT + i32::from(vector.x), y * UNIT + i32::from(vector.y));
        Self {
            from: level.from(x.div_euclid(UNIT), y.div_euclid(UNIT)),
            stride: level.stride(),
            fraction: (x.rem_euclid(UNIT) as i16, y.rem_euclid(UNIT) as i16),
        }
    }

    /// Panics if the place has fewer samples than a comparison with a patch reads.
    #[inline(always)]
    fn check(&self) {
        assert!(self.from.len() > SIDE * self.stride + SIDE);
    }
}

/// The kernels for one instruction set.
pub(super) trait Patches {
    /// Cuts out a patch. `from` begins a sample before and a row above it.
    unsafe fn cut(template: &mut Template, from: &[u8], stride: usize) -> Gradients;

    /// Compares a patch with a place.
    unsafe fn compare(template: &Template, place: Place<'_>) -> Differences;

    /// The sums of squared differences of each cell, in 1/256 square grey level.
    unsafe fn errors(template: &Template, place: Place<'_>) -> [i32; CELLS * CELLS];
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines::Lines;
    use windlass_vp9::by_isa;
    use windlass_vp9::simd::Isa;
    use windlass_vp9::simd::vector::Vector;

    /// All that the kernels say of a patch and a place.
    type All = (Template, Gradients, Differences, [i32; CELLS * CELLS]);

    #[inline(always)]
    unsafe fn all<P: Patches>(now: Lines<'_>, place: Place<'_>, out: &mut All) {
        unsafe {
            out.1 = P::cut(&mut out.0, now.data, now.stride);
            out.2 = P::compare(&out.0, place);
            out.3 = P::errors(&out.0, place);
        }
    }

    #[inline(always)]
    unsafe fn all_simd<W: Vector, N: Vector>(now: Lines<'_>, place: Place<'_>, out: &mut All) {
        unsafe { all::<Simd<W>>(now, place, out) }
    }

    fn run(isa: Isa, now: Lines<'_>, place: Place<'_>) -> All {
        let mut made = All::default();
        let out = &mut made;
        // SAFETY: the kernels check what they are given.
        by_isa!(
            isa,
            unsafe { all::<Scalar>(now, place, out) },
            all_simd(now: Lines<'_>, place: Place<'_>, out: &mut All)
        );
        made
    }

    proptest! {
        #[test]
        fn every_set_of_instructions_says_the_same(
            now in prop::collection::vec(any::<u8>(), 10 * 13), then in prop::collection::vec(any::<u8>(), 9 * 17),
            fraction in (0i16..64, 0i16..64), extreme: bool,
        ) {
            let steep = |v: Vec<u8>| -> Vec<u8> {
                v.into_iter().map(|s| if extreme { s / 128 * 255 } else { s }).collect()
            };
            let (now, then) = (steep(now), steep(then));
            // No sample more than is needed.
            let (now, then) = (&now[..9 * 13 + 10], &then[..8 * 17 + 9]);
            let now = Lines { data: now, stride: 13 };
            let place = Place { from: then, stride: 17, fraction };
            let defined = run(Isa::SCALAR, now, place);
            for &isa in Isa::available() {
                prop_assert_eq!(&run(isa, now, place), &defined);
            }
            prop_assert_eq!(defined.3.iter().sum::<i32>(), defined.2.squares);
        }
    }

    #[test]
    fn a_patch_differs_from_itself_by_nothing_and_from_its_neighbour_by_its_gradient() {
        let now: Vec<u8> = (0..12 * 12).map(|i| (i % 12 * 6) as u8).collect();
        let whole = Place { from: &now[13..], stride: 12, fraction: (0, 0) };
        let now = Lines { data: &now, stride: 12 };
        let (_, gradients, none, _) = run(Isa::SCALAR, now, whole);
        assert_eq!((gradients.xx, gradients.xy, gradients.yy), (64 * 144, 0, 0));
        assert_eq!(none, Differences::default());
        let half = Place { fraction: (32, 17), ..whole };
        let (_, _, found, errors) = run(Isa::SCALAR, now, half);
        // Half a sample is three grey levels.
        assert_eq!((found.by_x, found.squares), (64 * 48 * 12, 64 * 48 * 48));
        assert!(errors.iter().all(|&e| e == 4 * 48 * 48));
    }
}
