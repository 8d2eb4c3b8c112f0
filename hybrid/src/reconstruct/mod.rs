//! HR reconstruction: every high picture is `Lanczos(LR) + P(LR) + D`.
//!
//! Source: seed 000 §4 and §6.2 (the high picture follows the low layer's vectors), changed as
//! `docs/reconstruction.md` measures:
//!
//! - The base is made anew from the bit-exact low picture, so that nothing can drift in it.
//! - `P` is what the low picture itself lets expect: classed filters, built in and refined by anchors ([`learned`]).
//! - `D` is what anchors said beyond that. It is fetched from the anchor itself by composed motion
//!   ([`field`]) and weighed by how well the low pictures of now and then agree ([`carry`]).
//!
//! Pictures are made in strips of low rows that stay in the cache, and only where something has changed
//! since the last one: a cell is left alone when its low samples, those around it, and its
//! place in its anchor are the same. The result is that of making everything anew.

pub(crate) mod carry;
pub(crate) mod field;
pub mod learned;
pub(crate) mod source;

use std::sync::Arc;

use crate::picture::{Picture, Plane};
use crate::resample::{self, Samples, bicubic, lanczos};
use crate::simd::Isa;
use crate::vp9::{FrameBuffer, PlaneBuffer};
use carry::fetch_add;
use field::{CELL, Field};
use learned::Learned;
use source::Sources;

/// Low rows of a strip: two rows of cells.
const STRIP: usize = 2 * CELL;

/// Makes HR pictures, each in place of the last one.
pub(crate) struct Rebuilder {
    isa: Isa,
    scale: usize,
    strip: Vec<i16>,
    resample: resample::Scratch,
    learned: learned::Scratch,
    /// By cell: whether its low samples or its place in an anchor changed; then also those beside.
    own: Vec<bool>,
    changed: Vec<bool>,
    /// By cell: whether it can be left alone.
    skip: Vec<bool>,
    last: Option<Last>,
    field: Field,
    /// Whether every picture is made anew: for comparisons.
    pub always: bool,
}

/// What the picture on display was made from.
struct Last {
    low: Arc<FrameBuffer>,
    /// Of filters and sources.
    generation: u64,
}

impl Rebuilder {
    pub fn new(isa: Isa, scale: usize) -> Self {
        Self {
            isa,
            scale,
            strip: Vec::new(),
            resample: resample::Scratch::default(),
            learned: learned::Scratch::default(),
            own: Vec::new(),
            changed: Vec::new(),
            skip: Vec::new(),
            last: None,
            field: Field::default(),
            always: false,
        }
    }

    /// Turns `high` into the HR picture of a low one. `high` must be the picture of the last call;
    /// `generation` says whether filters and sources are still those of then.
    pub fn rebuild(
        &mut self,
        low: &Arc<FrameBuffer>,
        field: &Field,
        sources: &Sources,
        learned: &Learned,
        generation: u64,
        high: &mut Picture,
    ) {
        let (width, height) = (low.width(), low.height());
        let size = (width * self.scale, height * self.scale);
        if (high.width(), high.height()) != size {
            *high = Picture::grey(size.0, size.1);
            self.last = None;
        }
        self.find_changes(low, field, generation);
        self.skip.clear();
        self.skip.extend(self.changed.iter().map(|c| !c));
        let columns = width.div_ceil(CELL);
        for top in (0..height).step_by(STRIP) {
            let bottom = (top + STRIP).min(height);
            let cells = top / CELL * columns..bottom.div_ceil(CELL) * columns;
            if self.changed[cells].contains(&true) {
                self.luma(low, field, sources, learned, top..bottom, &mut high.y);
                let [_, u, v] = low.planes();
                self.chroma(u, top, bottom == height, &mut high.u);
                self.chroma(v, top, bottom == height, &mut high.v);
            }
        }
        self.field.copy_from(field);
        self.last = Some(Last { low: low.clone(), generation });
    }

    /// Marks the cells whose HR samples may differ from those on display.
    fn find_changes(&mut self, low: &FrameBuffer, field: &Field, generation: u64) {
        let (columns, rows) = (low.width().div_ceil(CELL), low.height().div_ceil(CELL));
        self.own.clear();
        self.changed.clear();
        let size = (low.width(), low.height());
        let last = self.last.as_ref().filter(|last| {
            !self.always
                && last.generation == generation
                && (last.low.width(), last.low.height()) == size
        });
        let Some(last) = last else {
            self.changed.resize(columns * rows, true);
            return;
        };
        self.own.extend(field.cells().iter().zip(self.field.cells()).map(|(a, b)| a != b));
        let (was, is) = (last.low.planes(), low.planes());
        compare::<CELL>(&was[0], &is[0], columns, &mut self.own);
        compare::<{ CELL / 2 }>(&was[1], &is[1], columns, &mut self.own);
        compare::<{ CELL / 2 }>(&was[2], &is[2], columns, &mut self.own);
        // Filters look up to three samples to every side: at most into the cells beside.
        let own = &self.own;
        self.changed.extend((0..columns * rows).map(|i| {
            let (column, row) = (i % columns, i / columns);
            (row.saturating_sub(1)..(row + 2).min(rows)).any(|y| {
                own[y * columns..][column.saturating_sub(1)..(column + 2).min(columns)]
                    .contains(&true)
            })
        }));
    }

    /// Makes the luma of a strip, where it has changed.
    fn luma(
        &mut self,
        low: &FrameBuffer,
        field: &Field,
        sources: &Sources,
        learned: &Learned,
        rows: std::ops::Range<usize>,
        high: &mut Plane,
    ) {
        let scale = self.scale;
        let samples = Samples::from(&low.planes()[0]);
        let stride = scale * samples.width;
        let columns = samples.width.div_ceil(CELL);
        let cells = rows.start / CELL * columns..rows.end.div_ceil(CELL) * columns;
        self.strip.resize(stride * scale * rows.len(), 0);
        let strip = &mut self.strip[..];
        lanczos(self.isa, samples, scale, rows.clone(), strip, &mut self.resample);
        learned.predict_add(
            self.isa,
            samples,
            rows.clone(),
            strip,
            Some(&self.skip),
            &mut self.learned,
        );
        for i in cells.clone().filter(|&i| self.changed[i]) {
            let cell = field.cells()[i];
            if cell.source == 0 {
                continue;
            }
            let place = sources.at(self.isa, low, i % columns, i / columns, cell);
            if let Some((source, weight)) = place.from {
                let area = place.area.scaled(scale);
                let out = &mut strip[(area.y - scale * rows.start) * stride + area.x..];
                fetch_add(self.isa, &source.rest, area, cell.vector, scale, weight, out, stride);
            }
        }
        // Runs of changed cells go to the picture.
        let side = CELL * scale;
        for (row, skip) in self.skip[cells].chunks(columns).enumerate() {
            let mut column = 0;
            for run in skip.chunk_by(|a, b| a == b) {
                let span = column * side..((column + run.len()) * side).min(stride);
                column += run.len();
                if run[0] {
                    continue;
                }
                for y in row * side..((row + 1) * side).min(strip.len() / stride) {
                    let out = (scale * rows.start + y) * stride;
                    resample::narrow(
                        self.isa,
                        &strip[y * stride..][span.clone()],
                        &mut high.samples_mut()[out..][span.clone()],
                    );
                }
            }
        }
    }

    /// Makes the rows of a chroma plane that belong to the strip beginning at low luma row `top`.
    fn chroma(&mut self, low: &PlaneBuffer, top: usize, last: bool, high: &mut Plane) {
        let first = top / 2;
        let end = if last { low.height() } else { first + STRIP / 2 };
        if first >= end || high.width() == 0 {
            return;
        }
        let width = high.width();
        let rows = (self.scale * end).min(high.height()) - (self.scale * first).min(high.height());
        let out = &mut high.samples_mut()[self.scale * first * width..][..rows * width];
        let low = Samples::from(low);
        bicubic(self.isa, low, self.scale, first..end, width, out, &mut self.resample);
    }
}

/// Marks the cells of `SIDE` × `SIDE` samples in which two planes of one size differ.
fn compare<const SIDE: usize>(
    a: &PlaneBuffer,
    b: &PlaneBuffer,
    columns: usize,
    differ: &mut [bool],
) {
    for y in 0..a.height() {
        let (a, b) = (a.row(y), b.row(y));
        let Some(row) = differ.get_mut(y / SIDE * columns..) else { return };
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SIDE>(), b.as_chunks::<SIDE>());
        for ((a, b), differ) in a.iter().zip(b).zip(row.iter_mut()) {
            *differ |= a != b;
        }
        if let Some(differ) = row.get_mut(a.len()) {
            *differ |= a_rest != b_rest;
        }
    }
}
