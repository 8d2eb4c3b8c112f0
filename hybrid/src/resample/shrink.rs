//! Detail of one scale made smaller, to another: for viewers whose tile is smaller than the largest that anchors are
//! made for.
//!
//! Means over areas, centre-aligned as everything in [`resample`](super) is. From 4 to 3, from 4 to 2 and from 3 to 2,
//! each sample lies over two of the larger picture in each direction.

use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use super::{Scratch, lanczos};
use crate::cells::{CELL, Cells};
use crate::detail::Detail;

/// Makes pictures smaller: from one scale to another, at least half as large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shrink {
    from: usize,
    to: usize,
}

impl Shrink {
    /// A converter from scale `from` to `to`. `None` where the picture would not get smaller, or would by more than
    /// half.
    pub(crate) fn new(from: usize, to: usize) -> Option<Self> {
        (to < from && from <= 2 * to).then_some(Self { from, to })
    }

    /// The first of the two samples that sample `i` lies over, and its parts of both, in 1/`from`.
    fn over(self, i: usize) -> (usize, [i32; 2]) {
        let first = i * self.from / self.to;
        let part = (first + 1) * self.to - i * self.from;
        (first, [part as i32, (self.from - part) as i32])
    }

    /// Fills rows of `width` samples from rows of another width. Beyond the edge the last sample repeats.
    fn apply(self, source: &[i16], source_width: usize, out: &mut [i16], width: usize) {
        let rows = source.len() / source_width.max(1);
        let area = (self.from * self.from) as i32;
        if width == 0 || rows == 0 {
            return;
        }
        for (y, row) in out.chunks_exact_mut(width).enumerate() {
            let (top, down) = self.over(y);
            let line = |y: usize| &source[y.min(rows - 1) * source_width..][..source_width];
            let (above, below) = (line(top), line(top + 1));
            for (x, out) in row.iter_mut().enumerate() {
                let (left, across) = self.over(x);
                let mean = |line: &[i16]| {
                    let at = |x: usize| i32::from(line[x.min(source_width - 1)]);
                    at(left) * across[0] + at(left + 1) * across[1]
                };
                let sum = mean(above) * down[0] + mean(below) * down[1];
                *out = (sum + area / 2).div_euclid(area) as i16;
            }
        }
    }
}

/// Converts detail to a smaller scale. The HR picture of `detail` is made smaller, and Lanczos of the low picture is
/// subtracted from it. Outside `cells` the result is 0.
///
/// # Panics
///
/// Panics if the detail has not the larger size.
pub(crate) fn shrink_detail(
    isa: Isa,
    low: Samples<'_>,
    detail: &Detail,
    shrink: Shrink,
    cells: Cells<'_>,
) -> Detail {
    let (from, to) = (shrink.from, shrink.to);
    let (width, height) = (to * low.width, to * low.height);
    assert_eq!((detail.width(), detail.height()), (from * low.width, from * low.height));
    let mut scratch = Scratch::default();
    let mut whole = vec![0; detail.samples().len()];
    lanczos(isa, low, from, 0..low.height, &mut whole, &mut scratch);
    super::add_saturating(&mut whole, detail.samples());
    let mut out = Detail::zero(width, height);
    shrink.apply(&whole, detail.width(), out.samples_mut(), width);
    whole.truncate(width * height);
    lanczos(isa, low, to, 0..low.height, &mut whole, &mut scratch);
    for (out, &base) in out.samples_mut().iter_mut().zip(&whole) {
        *out = out.saturating_sub(base);
    }
    if let Cells::Only(mask) = cells {
        let columns = low.width.div_ceil(CELL);
        for y in 0..height {
            let flags = &mask[y / (to * CELL) * columns..][..columns];
            for (part, &covered) in out.row_mut(y).chunks_mut(to * CELL).zip(flags) {
                if !covered {
                    part.fill(0);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use windlass_vp9::Plane;

    const PAIRS: [(usize, usize); 3] = [(4, 3), (4, 2), (3, 2)];

    fn low(width: usize, height: usize) -> Plane {
        let samples = (0..width * height).map(|i| (i % width * 4 + i / width * 3) as u8);
        Plane::from_samples(width, height, samples.collect()).expect("the count is right")
    }

    #[test]
    fn only_what_gets_smaller_by_at_most_half_can_be_made() {
        for (from, to) in PAIRS {
            assert!(Shrink::new(from, to).is_some());
        }
        for (from, to) in [(2, 2), (2, 3), (4, 1), (3, 1)] {
            assert_eq!(Shrink::new(from, to), None);
        }
    }

    #[test]
    fn half_the_size_is_the_mean_of_four() {
        let source: Vec<i16> = (0..8 * 4).map(|i| i * 37 % 401 - 200).collect();
        let mut out = vec![0; 4 * 2];
        Shrink::new(4, 2).expect("half").apply(&source, 8, &mut out, 4);
        for (i, &mean) in out.iter().enumerate() {
            let at = i / 4 * 16 + i % 4 * 2;
            let sum: i16 = [at, at + 1, at + 8, at + 9].iter().map(|&at| source[at]).sum();
            assert!((mean * 4 - sum).abs() <= 2, "{mean} of {sum}");
        }
    }

    #[test]
    fn no_detail_stays_almost_none() {
        let low = low(40, 30);
        for (from, to) in PAIRS {
            let shrink = Shrink::new(from, to).expect("smaller");
            let none = Detail::zero(40 * from, 30 * from);
            let isa = Isa::detect();
            let out = shrink_detail(isa, (&low).into(), &none, shrink, Cells::All);
            // Away from the edges, where Lanczos of a ramp is the ramp.
            for y in 4 * to..26 * to {
                for &d in &out.row(y)[4 * to..36 * to] {
                    assert!(d.abs() <= crate::detail::ONE, "{d} from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn cells_that_are_not_chosen_have_none() {
        let low = low(16, 16);
        let shrink = Shrink::new(4, 2).expect("half");
        let detail = Detail::from_samples(64, 64, vec![160; 64 * 64]).expect("the count is right");
        let cells = Cells::Only(&[true, false, false, false]);
        let out = shrink_detail(Isa::detect(), (&low).into(), &detail, shrink, cells);
        for y in 0..32 {
            for (x, &d) in out.row(y).iter().enumerate() {
                assert_eq!(d == 0, x >= 16 || y >= 16, "{d} at {x}, {y}");
            }
        }
    }

    proptest! {
        #[test]
        fn means_lie_between_what_they_are_of(
            (width, height) in (1usize..40, 1usize..40), values in proptest::collection::vec(any::<i16>(), 64),
        ) {
            for (from, to) in PAIRS {
                let count = width * from * height * from;
                let source: Vec<i16> = (0..count).map(|i| values[i % values.len()]).collect();
                let mut out = vec![0; width * to * height * to];
                let shrink = Shrink::new(from, to).expect("smaller");
                shrink.apply(&source, width * from, &mut out, width * to);
                let (least, most) = (source.iter().min(), source.iter().max());
                prop_assert!(out.iter().all(|v| Some(v) >= least && Some(v) <= most));
            }
        }
    }
}
