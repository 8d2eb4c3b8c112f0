//! The class of every low sample, by the structure tensor of the 3×3 samples around it.
//!
//! Gradients `gx`, `gy` are central differences; edges repeat, and there is one gradient beyond
//! every edge. With the sums of their products over 3×3, energy is `xx + yy`, and `(xx − yy, 2·xy)`
//! points in twice the direction: its length over the energy is the coherence.

use std::ops::Range;

use super::{CELL, Samples, TAPS, Window};
use crate::simd::Isa;

/// Reach of a window.
pub(super) const REACH: usize = 2;
/// Directions, of half a turn.
const DIRECTIONS: usize = 8;
/// Gradient energies that divide weak from medium from strong; below the first there is no filter.
pub(super) const STRENGTHS: [i32; 3] = [288, 2592, 18_432];
/// Classes with a filter: strength, coherence, direction.
pub(super) const CLASSES: usize = STRENGTHS.len() * 2 * DIRECTIONS;
/// The class of a flat sample, and of one that is left out; its filter is zero.
pub(super) const FLAT: u8 = CLASSES as u8;
/// Elements behind the last one of a line that vectors may touch.
pub(super) const SLACK: usize = 48;

/// Some rows of a low picture, at most [`CELL`], with their classes.
#[derive(Debug, Default)]
pub(super) struct Band {
    pub width: usize,
    pub rows: usize,
    /// The rows and [`REACH`] more on either side, edges repeated.
    pub padded: Vec<i16>,
    /// From one padded row to the next.
    pub stride: usize,
    /// A row of these, too, has `stride` elements.
    pub classes: Vec<u8>,
    /// Columns that are not left out.
    spans: Vec<Range<usize>>,
    /// Sums over three columns of the three last rows, and the products of one row: energy,
    /// difference, twice the mixed product, `stride` each.
    pub tensors: Vec<i32>,
}

impl Band {
    /// Classifies rows of one row of cells; whether any of it is not left out.
    pub fn classify(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        rows: Range<usize>,
        skip: Option<&[bool]>,
    ) -> bool {
        self.width = low.width;
        self.rows = rows.len();
        self.stride = (low.width + 2 * REACH).next_multiple_of(16) + SLACK;
        self.mark(low, rows.start / CELL, skip);
        if self.spans.is_empty() {
            return false;
        }
        self.pad(low, rows);
        grow(&mut self.tensors, 12 * self.stride);
        grow(&mut self.classes, self.rows * self.stride);
        for row in self.classes.chunks_exact_mut(self.stride).take(self.rows) {
            row.fill(FLAT);
        }
        let _ = isa;
        for i in 0..self.spans.len() {
            classify(self, self.spans[i].clone());
        }
        true
    }

    /// Columns that are not left out, in whole cells but for the last.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The class of a sample, `y` counted in the band.
    #[inline]
    pub fn class(&self, x: usize, y: usize) -> u8 {
        self.classes[y * self.stride + x]
    }

    /// The neighbours of a sample less itself, row by row; `y` is counted in the band.
    #[inline]
    pub fn window(&self, x: usize, y: usize, to: &mut Window) {
        let row = |k: usize| &self.padded[(y + k) * self.stride + x..][..5];
        let centre = row(2)[2];
        let middle = row(2);
        for (to, from) in to[..10].chunks_exact_mut(5).zip([row(0), row(1)]) {
            to.copy_from_slice(from);
        }
        to[10..12].copy_from_slice(&middle[..2]);
        to[12..14].copy_from_slice(&middle[3..]);
        for (to, from) in to[14..].chunks_exact_mut(5).zip([row(3), row(4)]) {
            to.copy_from_slice(from);
        }
        for v in to {
            *v -= centre;
        }
    }

    fn mark(&mut self, low: Samples<'_>, cell_row: usize, skip: Option<&[bool]>) {
        self.spans.clear();
        let Some(skip) = skip else {
            self.spans.push(0..low.width);
            return;
        };
        let columns = low.width.div_ceil(CELL);
        self.spans.reserve(columns);
        for (i, _) in skip[cell_row * columns..][..columns].iter().enumerate().filter(|c| !c.1) {
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

/// At least `len` long; what is there already stays.
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
