//! Reduces a plane to any size: each sample is the mean of the area that it covers, as browsers make their lower
//! layers.
//!
//! In integers and exact but for one rounding, so that it is the same on every machine.

use std::ops::Range;

use windlass_vp9::{Plane, PlaneSize, Samples};

/// A plane of this size: each sample is the mean of the area of `from` that it covers. `from` must not be
/// empty.
pub fn area(from: Samples<'_>, PlaneSize { width, height }: PlaneSize) -> Plane {
    let columns: Vec<Span> = (0..width).map(|x| Span::new(x, from.width, width)).collect();
    // An area is counted in pieces of which a sample of `from` has `width * height`.
    let whole = (from.width * from.height) as u64;
    let mut sums = vec![0u32; from.width];
    let mut out = Vec::with_capacity(width * height);
    for y in 0..height {
        sums.fill(0);
        Span::new(y, from.height, height).each(|row, weight| {
            for (sum, &v) in sums.iter_mut().zip(from.row(row)) {
                *sum += u32::from(v) * weight as u32;
            }
        });
        out.extend(columns.iter().map(|column| {
            let mut sum = whole / 2;
            column.each(|x, weight| sum += u64::from(sums[x]) * weight as u64);
            (sum / whole) as u8
        }));
    }
    Plane::from_samples(width, height, out).expect("one sample for each place")
}

/// The part of a side that a sample covers, in pieces. A sample of the larger side has as many pieces as the smaller
/// side has samples.
struct Span {
    pieces: Range<usize>,
    by: usize,
}

impl Span {
    fn new(at: usize, from: usize, to: usize) -> Self {
        Span { pieces: at * from..(at + 1) * from, by: to }
    }

    /// Each sample that the span covers, with the number of its pieces in the span.
    fn each(&self, mut take: impl FnMut(usize, usize)) {
        let Range { start, end } = self.pieces;
        for sample in start / self.by..end.div_ceil(self.by) {
            let covered = end.min((sample + 1) * self.by) - start.max(sample * self.by);
            take(sample, covered);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plane(width: usize, height: usize, samples: Vec<u8>) -> Plane {
        Plane::from_samples(width, height, samples).expect("the count is right")
    }

    #[test]
    fn a_sample_is_the_mean_of_the_area_that_it_covers() {
        let all = plane(3, 2, vec![0, 90, 30, 0, 30, 90]);
        let made = area((&all).into(), PlaneSize::new(2, 1));
        // One and a half columns each: (0 + 0 + 45 + 15) / 3 and (45 + 15 + 30 + 90) / 3.
        assert_eq!(made.samples(), [20, 60]);
    }

    proptest! {
        #[test]
        fn no_change_of_size_changes_nothing(
            width in 1usize..40, height in 1usize..40, seed: u32,
        ) {
            let samples = (0..width * height).map(|i| (i as u32).wrapping_mul(seed | 1) as u8);
            let all = plane(width, height, samples.collect());
            prop_assert_eq!(&area((&all).into(), all.size()), &all);
        }

        #[test]
        fn an_even_plane_stays_even_at_any_size(
            (width, height) in (1usize..60, 1usize..60), (w, h) in (1usize..60, 1usize..60), value: u8,
        ) {
            let to = PlaneSize::new(w, h);
            let made = area((&Plane::filled(width, height, value)).into(), to);
            prop_assert_eq!(made.size(), to);
            prop_assert!(made.samples().iter().all(|&v| v == value));
        }
    }
}
