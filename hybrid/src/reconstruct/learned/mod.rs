//! Filters that predict detail from the low picture itself, learned from the anchors.
//!
//! Source: the classed linear filters of RAISR (Romano, Isidoro, Milanfar 2016), here fitted by the
//! decoder, while it runs, to the anchors that it gets: they are examples of what the server's
//! network (or the original) adds to a low picture. Every low sample belongs to a class by the
//! strength, coherence and direction of its gradient (`classes`); each class has one filter of 24
//! neighbours for each of the `S²` high samples (`filters`). The filters cost no bits, and what they
//! predict is never late: only what an anchor has beyond it must be carried.
//!
//! Filters begin as a prior where there is one, and are fitted towards it (`fit`).
//!
//! Bit for bit the same everywhere: sums are integers, and the solver uses only `+ − × ÷` on `f64`
//! in a fixed order.
//!
//! `unsafe` lives in `simd` and where it is called, by the invariants of [`windlass_vp9::simd`]: strips,
//! bands and tables are checked or made with the sizes that `simd` names.

mod classes;
mod filters;
mod fit;
mod simd;

#[cfg(test)]
mod tests;

use std::ops::Range;

use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, Samples};

use crate::cells::{CELL, Cells};
use crate::detail::Detail;
use classes::{Band, CLASSES, FLAT, Record};
use filters::Filters;
use fit::Fit;

/// Number of neighbours that a filter weighs: a 5×5 window without its centre.
const TAPS: usize = 24;
/// Maximum number of high samples for one low sample: a scale of 4, squared.
const MAX_PHASES: usize = 16;

/// A row-by-row window: weights, or differences of samples from the window's centre.
type Window = [i16; TAPS];

/// The filters of one stream, and the sums that they are fitted from; without filters at first.
#[derive(Debug)]
pub struct Learned {
    scale: usize,
    prior: Option<Filters>,
    filters: Option<Filters>,
    fit: Fit,
}

/// Working memory; grows to what the largest picture needs and is used again.
#[derive(Debug, Default)]
pub struct Scratch {
    band: Band,
    strip: Vec<i16>,
}

impl Default for Learned {
    fn default() -> Self {
        Self::new(2)
    }
}

impl Learned {
    /// No filters, for pictures `scale` times as large.
    ///
    /// # Panics
    ///
    /// Panics if the scale is not 2, 3 or 4.
    pub fn new(scale: usize) -> Self {
        assert!(matches!(scale, 2..=4), "scale {scale}");
        Self { scale, prior: None, filters: None, fit: Fit::default() }
    }

    /// The built-in filters for a scale, or none where there are none.
    ///
    /// # Panics
    ///
    /// Panics if the scale is not 2, 3 or 4.
    pub fn with_prior(scale: usize) -> Self {
        let table = filters::built_in(scale);
        table.and_then(Self::from_table).unwrap_or_else(|| Self::new(scale))
    }

    /// Filters that were [exported](Self::export), as prior; the length of the table tells its
    /// scale. `None` where it fits none.
    pub fn from_table(table: &[u8]) -> Option<Self> {
        let prior = Filters::from_table(table)?;
        let (scale, filters) = (prior.scale(), Some(prior.clone()));
        Some(Self { scale, prior: Some(prior), filters, fit: Fit::default() })
    }

    /// No filters yet, to be taught a prior: examples do not fade.
    ///
    /// # Panics
    ///
    /// Panics if the scale is not 2, 3 or 4.
    pub fn for_training(scale: usize) -> Self {
        Self { fit: Fit::for_training(), ..Self::new(scale) }
    }

    /// The current filters: for each of 80 classes and each high sample, row by row, 24 weights of
    /// 16 bits, little-endian, in 1/1024 of the detail's unit. `None` where there are none.
    pub fn export(&self) -> Option<Vec<u8>> {
        self.filters.as_ref().map(Filters::to_table)
    }

    /// HR size over LR size: 2, 3 or 4.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Whether there are no filters, neither learned nor built in.
    pub fn is_empty(&self) -> bool {
        self.filters.is_none()
    }

    /// Forgets what anchors taught; the prior stays.
    pub fn forget(&mut self) {
        self.fit.forget();
        match (&mut self.filters, &self.prior) {
            (Some(filters), Some(prior)) => filters.clone_from(prior),
            (filters, _) => *filters = None,
        }
    }

    /// Learns from the detail of an anchor over its low picture; `detail` has `scale` times its size. `cells` are those
    /// that the anchor covers: they alone teach the filters, and older examples fade by the share of the picture that
    /// they are.
    ///
    /// # Panics
    ///
    /// Panics if sizes do not fit each other.
    pub fn learn_from(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        detail: &Detail,
        cells: Cells<'_>,
        scratch: &mut Scratch,
    ) {
        self.check(low, detail, cells);
        let (samples, share) = match cells {
            Cells::All => (low.width * low.height, 1.0),
            Cells::Only(mask) => {
                let count = mask.iter().filter(|&&covered| covered).count();
                (count * CELL * CELL, count as f64 / mask.len().max(1) as f64)
            }
        };
        self.fit.begin(self.scale);
        for y in (0..low.height).step_by(fit::step(samples)) {
            let band = &mut scratch.band;
            if !band.classify(isa, low, y..y + 1, cells) {
                continue;
            }
            for x in 0..low.width {
                let class = band.class(x, 0);
                if class != FLAT {
                    self.fit.add(isa, class, |to| band.window(x, 0, to), detail, x, y);
                }
            }
        }
        self.fit.end(isa, share);
        let filters = self.filters.get_or_insert_with(|| Filters::none(self.scale));
        self.fit.solve(self.prior.as_ref(), filters);
    }

    /// Adds the prediction from the low picture to the HR strip of some LR `rows`, with saturation.
    /// `strip` is `scale * rows.len()` rows of `scale * low.width` samples, as
    /// [`lanczos`](crate::resample::lanczos) makes them. Samples outside `cells` need not be right.
    ///
    /// # Panics
    ///
    /// Panics if sizes do not fit each other.
    pub fn predict_add(
        &self,
        isa: Isa,
        low: Samples<'_>,
        rows: Range<usize>,
        strip: &mut [i16],
        cells: Cells<'_>,
        scratch: &mut Scratch,
    ) {
        let wide = self.scale * low.width;
        assert!(rows.start <= rows.end && rows.end <= low.height, "rows {rows:?}");
        assert_eq!(strip.len(), wide * self.scale * rows.len(), "the strip has another size");
        cells.check(low);
        let Some(filters) = &self.filters else {
            return;
        };
        let mut strip = strip;
        for rows in bands(rows) {
            let (part, rest) = strip.split_at_mut(wide * self.scale * rows.len());
            strip = rest;
            if scratch.band.classify(isa, low, rows, cells) {
                filters.add(isa, &mut scratch.band, part);
            }
        }
    }

    /// Subtracts the prediction from an anchor's detail.
    /// Nothing changes outside `cells`, nor while there are no filters.
    ///
    /// # Panics
    ///
    /// Panics if sizes do not fit each other.
    pub fn take_out(
        &self,
        isa: Isa,
        low: Samples<'_>,
        detail: &mut Detail,
        cells: Cells<'_>,
        scratch: &mut Scratch,
    ) {
        self.check(low, detail, cells);
        let Some(filters) = &self.filters else {
            return;
        };
        let wide = self.scale * low.width;
        let Scratch { band, strip } = scratch;
        for rows in bands(0..low.height) {
            let first = rows.start * self.scale;
            strip.clear();
            strip.resize(wide * self.scale * rows.len(), 0);
            if !band.classify(isa, low, rows, cells) {
                continue;
            }
            filters.add(isa, band, strip);
            for (y, predicted) in strip.chunks_exact(wide).enumerate() {
                let row = detail.row_mut(first + y);
                for span in band.spans() {
                    let span = self.scale * span.start..self.scale * span.end;
                    for (d, &p) in row[span.clone()].iter_mut().zip(&predicted[span]) {
                        *d = d.saturating_sub(p);
                    }
                }
            }
        }
    }

    fn check(&self, low: Samples<'_>, detail: &Detail, cells: Cells<'_>) {
        let size = (self.scale * low.width, self.scale * low.height);
        assert_eq!((detail.width(), detail.height()), size, "the detail has another size");
        cells.check(low);
    }

    /// Learns from a key anchor, as [`learn_from`](Self::learn_from) does from any.
    pub fn learn(&mut self, low: &Plane, detail: &Detail) {
        self.learn_from(Isa::detect(), low.into(), detail, Cells::All, &mut Scratch::default());
    }

    /// The detail that is predicted from the low picture; `None` where there are no filters.
    pub fn predict(&self, low: &Plane) -> Option<Detail> {
        self.filters.as_ref()?;
        let mut detail = Detail::zero(self.scale * low.width(), self.scale * low.height());
        let (isa, mut scratch) = (Isa::detect(), Scratch::default());
        let rows = 0..low.height();
        self.predict_add(isa, low.into(), rows, detail.samples_mut(), Cells::All, &mut scratch);
        Some(detail)
    }
}

/// Rows, cut into parts where rows of cells begin.
fn bands(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let first = rows.start / CELL;
    let count = if rows.is_empty() { 0 } else { rows.end.div_ceil(CELL) - first };
    (first..first + count).map(move |c| rows.start.max(c * CELL)..rows.end.min((c + 1) * CELL))
}
