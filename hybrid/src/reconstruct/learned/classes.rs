//! The class of every low sample, by the structure tensor of the 3×3 samples around it.
//!
//! Gradients `gx`, `gy` are central differences; edges repeat, and there is one gradient beyond
//! every edge. With the sums of their products over 3×3, energy is `xx + yy`, and `(xx − yy, 2·xy)`
//! points in twice the direction: its length over the energy is the coherence.

use std::ops::Range;

use windlass_vp9::simd::Isa;
use windlass_vp9::{Samples, by_isa};

use super::TAPS;
use crate::cells::{CELL, Cells};

/// Reach of a window to each side, in low samples.
pub(super) const REACH: usize = 2;
/// Number of gradient directions in half a turn.
pub(super) const DIRECTIONS: usize = 8;
/// Gradient energies that divide classes, weak to strong, in square grey levels; below the first there is no filter.
pub(super) const STRENGTHS: [i32; 5] = [72, 288, 1152, 4608, 18_432];
/// Number of classes with a filter: by strength, coherence and direction.
pub(super) const CLASSES: usize = STRENGTHS.len() * 2 * DIRECTIONS;
/// The class of flat samples and of those that are left out. The filter of this class is zero.
pub(super) const FLAT: u8 = CLASSES as u8;
/// Number of elements behind the end of a line that SIMD vectors may touch.
pub(super) const SLACK: usize = 48;

/// The memory of an example: a window, then the values, with room for vectors.
pub(super) type Record = [i16; 48];

/// Some rows of a low picture, at most [`CELL`], with their classes.
#[derive(Debug, Default)]
pub(super) struct Band {
    pub width: usize,
    pub rows: usize,
    /// The band's low rows and [`REACH`] more on either side, with edges repeated.
    pub padded: Vec<i16>,
    /// Distance from one row of `padded` to the next, in elements.
    pub stride: usize,
    /// The class of each low sample, row by row, `stride` elements to a row.
    pub classes: Vec<u8>,
    /// Ranges of columns that the chosen cells cover.
    spans: Vec<Range<usize>>,
    /// Sums over three columns of the three last rows, and the products of one row: energy,
    /// difference, twice the mixed product, `stride` each.
    pub tensors: Vec<i32>,
    /// High rows of one low row, for kernels that make them apart from the strip.
    pub high: Vec<i16>,
}

impl Band {
    /// Classifies some rows of one row of cells. Returns whether any cell of the row is among `cells`.
    pub(super) fn classify(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        rows: Range<usize>,
        cells: Cells<'_>,
    ) -> bool {
        self.width = low.width;
        self.rows = rows.len();
        self.stride = (low.width + 2 * REACH).next_multiple_of(16) + SLACK;
        self.mark(low, rows.start / CELL, cells);
        if self.spans.is_empty() {
            return false;
        }
        self.pad(low, rows);
        grow(&mut self.tensors, 12 * self.stride);
        grow(&mut self.classes, self.rows * self.stride);
        for row in self.classes.chunks_exact_mut(self.stride).take(self.rows) {
            row.fill(FLAT);
        }
        for i in 0..self.spans.len() {
            self.classify_span(isa, self.spans[i].clone());
        }
        true
    }

    fn classify_span(&mut self, isa: Isa, span: Range<usize>) {
        use super::simd::classify as simd;
        let band = self;
        // SAFETY: the band was made for its width and rows, with slack behind every line; spans
        // are within its width.
        by_isa!(isa, classify(band, span), simd(band: &mut Band, span: Range<usize>));
    }

    /// The ranges of columns that are classified: whole cells, except for the last.
    pub(super) fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The class of the sample at (`x`, `y`); `y` is counted in the band.
    #[inline]
    pub(super) fn class(&self, x: usize, y: usize) -> u8 {
        self.classes[y * self.stride + x]
    }

    /// Writes the neighbours of a sample, each minus the sample, row by row, to the head of a record. `y` is counted
    /// in the band.
    #[inline]
    pub(super) fn window(&self, x: usize, y: usize, to: &mut Record) {
        let row = |k: usize| &self.padded[(y + k) * self.stride + x..][..11];
        // Eight at a time, each over the end of the one before; the centre is left out.
        to[..8].copy_from_slice(&row(0)[..8]);
        to[5..13].copy_from_slice(&row(1)[..8]);
        to[10..18].copy_from_slice(&row(2)[..8]);
        to[12..20].copy_from_slice(&row(2)[3..]);
        to[14..22].copy_from_slice(&row(3)[..8]);
        to[19..27].copy_from_slice(&row(4)[..8]);
        let centre = row(2)[REACH];
        for v in &mut to[..TAPS] {
            *v = v.wrapping_sub(centre);
        }
    }

    /// Finds the columns of the chosen cells in a row of cells.
    fn mark(&mut self, low: Samples<'_>, cell_row: usize, cells: Cells<'_>) {
        self.spans.clear();
        let Cells::Only(mask) = cells else {
            self.spans.push(0..low.width);
            return;
        };
        let columns = low.width.div_ceil(CELL);
        self.spans.reserve(columns);
        for (i, _) in mask[cell_row * columns..][..columns].iter().enumerate().filter(|c| *c.1) {
            let (start, end) = (i * CELL, low.width.min((i + 1) * CELL));
            match self.spans.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => self.spans.push(start..end),
            }
        }
    }

    fn pad(&mut self, low: Samples<'_>, rows: Range<usize>) {
        let count = rows.len() + 2 * REACH;
        grow(&mut self.padded, count * self.stride);
        for (k, line) in self.padded.chunks_exact_mut(self.stride).take(count).enumerate() {
            let row = low.row((rows.start + k).saturating_sub(REACH).min(low.height - 1));
            let inner = &mut line[REACH..][..low.width];
            for (to, &from) in inner.iter_mut().zip(row) {
                *to = i16::from(from);
            }
            line[..REACH].fill(row[0].into());
            line[REACH + low.width..][..REACH].fill(row[low.width - 1].into());
        }
    }
}

/// Makes `v` at least `len` elements long and keeps its contents.
pub(super) fn grow<T: Default + Clone>(v: &mut Vec<T>, len: usize) {
    if v.len() < len {
        v.resize(len, T::default());
    }
}

/// The scalar form, for the columns of a span.
fn classify(band: &mut Band, span: Range<usize>) {
    let Band { rows, padded, stride, classes, tensors, .. } = band;
    let stride = *stride;
    let (ring, products) = tensors.split_at_mut(9 * stride);
    let (start, width) = (span.start, span.len());
    // Row y of gradients is row y + 1 of the padded ones.
    for y in 0..*rows + 2 {
        let at = |dx: usize, dy: usize| &padded[(y + dy) * stride + start + dx..];
        let (above, below, left, right) = (at(1, 0), at(1, 2), at(0, 1), at(2, 1));
        for x in 0..width + 2 {
            let gx = i32::from(right[x]) - i32::from(left[x]);
            let gy = i32::from(below[x]) - i32::from(above[x]);
            products[x] = gx * gx + gy * gy;
            products[stride + x] = gx * gx - gy * gy;
            products[2 * stride + x] = 2 * gx * gy;
        }
        for part in 0..3 {
            let from = &products[part * stride..][..width + 2];
            let to = &mut ring[(3 * part + y % 3) * stride..][..width];
            for (to, three) in to.iter_mut().zip(from.windows(3)) {
                *to = three[0] + three[1] + three[2];
            }
        }
        let Some(out) = y.checked_sub(2) else { continue };
        for (x, class) in classes[out * stride + start..][..width].iter_mut().enumerate() {
            let [energy, a, b] = [0, 3, 6]
                .map(|part: usize| (0..3).map(|row| ring[(part + row) * stride + x]).sum::<i32>());
            *class = class_of(energy, a, b);
        }
    }
}

/// The class of a structure tensor: strength, coherence, direction.
fn class_of(energy: i32, a: i32, b: i32) -> u8 {
    let (long, short) = (a.abs().max(b.abs()), a.abs().min(b.abs()));
    // The length of (a, b), within 7 %.
    let length = long + short * 3 / 8;
    let Some(strength) = STRENGTHS.iter().rposition(|&s| energy + length >= s) else {
        return FLAT;
    };
    let coherent = usize::from(2 * length > energy);
    let direction =
        4 * usize::from(a < 0) + 2 * usize::from(b < 0) + usize::from(b.abs() > a.abs());
    ((strength * 2 + coherent) * DIRECTIONS + direction) as u8
}

const _: () = assert!(TAPS == (2 * REACH + 1) * (2 * REACH + 1) - 1);
