//! The part of an anchor's detail that is not coded: what the built-in filters predict from the low picture.
//!
//! Both ends have these filters and, bit for bit, the low picture, so that only the rest is encoded. If the quantiser
//! removes detail, the picture stays as it would be without an anchor, and does not become smoother. No anchor depends
//! on another. Filters amplify the least-squares result by a quarter (`learned::fit`), which is undone here. Measured
//! in `lab/notes/quality.md`.

use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use crate::cells::Cells;
use crate::detail::Detail;
use crate::reconstruct::learned::{Learned, Scratch};

/// The built-in filters for one scale, with working memory.
#[derive(Debug)]
pub struct Prior {
    isa: Isa,
    learned: Learned,
    expected: Vec<i16>,
    scratch: Scratch,
}

impl Prior {
    /// The built-in filters for pictures `scale` times as large.
    ///
    /// # Panics
    ///
    /// Panics if the scale is not 2, 3 or 4.
    pub fn new(isa: Isa, scale: usize) -> Self {
        Self {
            isa,
            learned: Learned::with_prior(scale),
            expected: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// HR size over LR size: 2, 3 or 4.
    pub fn scale(&self) -> usize {
        self.learned.scale()
    }

    /// Subtracts the prediction of the filters from a picture's detail, which leaves what is to be encoded.
    ///
    /// # Panics
    ///
    /// Panics if the detail has not `scale` times the size of the low picture.
    pub fn take_out(&mut self, low: Samples<'_>, detail: &mut Detail) {
        self.expect(low, Cells::All);
        self.combine(detail, i16::saturating_sub);
    }

    /// Adds the prediction of the filters to decoded detail, in these cells.
    ///
    /// # Panics
    ///
    /// Panics if the detail has not `scale` times the size of the low picture.
    pub fn put_back(&mut self, low: Samples<'_>, detail: &mut Detail, cells: Cells<'_>) {
        self.expect(low, cells);
        self.combine(detail, i16::saturating_add);
    }

    /// Predicts the detail of these cells from the low picture.
    fn expect(&mut self, low: Samples<'_>, cells: Cells<'_>) {
        let scale = self.learned.scale();
        self.expected.clear();
        self.expected.resize(scale * low.width * scale * low.height, 0);
        let rows = 0..low.height;
        self.learned.predict_add(self.isa, low, rows, &mut self.expected, cells, &mut self.scratch);
    }

    fn combine(&self, detail: &mut Detail, with: impl Fn(i16, i16) -> i16) {
        assert_eq!(detail.samples().len(), self.expected.len(), "the detail has another size");
        for (d, &e) in detail.samples_mut().iter_mut().zip(&self.expected) {
            *d = with(*d, (i32::from(e) * 4 / 5) as i16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_vp9::Plane;

    #[test]
    fn what_was_taken_out_comes_back_and_is_what_follows_from_the_low_picture() {
        let low = (0..60 * 40).map(|i| if (i % 60 + i / 60) / 7 % 2 == 0 { 60 } else { 190 });
        let low = Plane::from_samples(60, 40, low.collect()).expect("the count is right");
        for scale in 2..=4 {
            let mut prior = Prior::new(Isa::detect(), scale);
            let samples = (0..scale * scale * 2400).map(|i| (i * 37 % 801) as i16 - 400);
            let detail = Detail::from_samples(60 * scale, 40 * scale, samples.collect());
            let detail = detail.expect("the count is right");
            let mut rest = detail.clone();
            prior.take_out((&low).into(), &mut rest);
            assert_ne!(rest, detail);
            prior.put_back((&low).into(), &mut rest, Cells::All);
            assert_eq!(rest, detail);
            prior.put_back((&low).into(), &mut rest, Cells::Only(&[false; 40]));
            assert_eq!(rest, detail, "no cell is chosen");
        }
    }
}
