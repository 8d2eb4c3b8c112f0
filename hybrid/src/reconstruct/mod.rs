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
//! place in its anchor are the same. The result is that of making everything anew. A caller with threads may
//! have parts of a picture made at the same time.

pub(crate) mod captured;
pub(crate) mod carry;
pub(crate) mod field;
pub mod learned;
pub(crate) mod source;

use std::ops::Range;
use std::sync::Arc;

use crate::picture::Picture;
use crate::resample::{self, Samples, bicubic, lanczos};
use crate::simd::Isa;
use crate::vp9::{FrameBuffer, Join, OneThread, PlaneBuffer};
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
    threads: Arc<dyn Join>,
    /// One for each part of a picture that may be made at the same time.
    workers: Vec<Worker>,
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

/// Working memory of one part.
#[derive(Default)]
struct Worker {
    strip: Vec<i16>,
    resample: resample::Scratch,
    learned: learned::Scratch,
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
            threads: Arc::new(OneThread),
            workers: vec![Worker::default()],
            own: Vec::new(),
            changed: Vec::new(),
            skip: Vec::new(),
            last: None,
            field: Field::default(),
            always: false,
        }
    }

    /// Makes pictures of another size from now on, the first of them anew.
    pub fn rescale(&mut self, scale: usize) {
        (self.scale, self.last) = (scale, None);
    }

    /// Makes pictures in so many parts, which `threads` may run at the same time.
    pub fn with_threads(&mut self, threads: Arc<dyn Join>, parts: usize) {
        self.threads = threads;
        self.workers.resize_with(parts.max(1), Worker::default);
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
        let job = Job {
            isa: self.isa,
            scale: self.scale,
            low,
            field,
            sources,
            learned,
            skip: &self.skip,
            threads: &*self.threads,
        };
        let planes = [high.y.samples_mut(), high.u.samples_mut(), high.v.samples_mut()];
        job.rows(&mut self.workers, 0..height, planes);
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
}

/// A picture to be made.
struct Job<'a> {
    isa: Isa,
    scale: usize,
    low: &'a FrameBuffer,
    field: &'a Field,
    sources: &'a Sources,
    learned: &'a Learned,
    /// By cell: whether it is left alone.
    skip: &'a [bool],
    threads: &'a dyn Join,
}

impl Job<'_> {
    /// Makes the low `rows`, which begin with a strip; `planes` begin with their first high rows.
    fn rows(&self, workers: &mut [Worker], rows: Range<usize>, planes: [&mut [u8]; 3]) {
        match workers {
            [] => {}
            [worker] => self.strips(worker, rows, planes),
            _ => {
                let (few, more) = workers.split_at_mut(workers.len() / 2);
                let middle = self.divide(&rows, few.len(), few.len() + more.len());
                let (first, cut) = (self.planes_to(rows.start), self.planes_to(middle));
                let [y, u, v] = planes;
                let at = |i: usize, len: usize| (cut[i] - first[i]).min(len);
                let (y, u, v) = (
                    y.split_at_mut(at(0, y.len())),
                    u.split_at_mut(at(1, u.len())),
                    v.split_at_mut(at(2, v.len())),
                );
                let (mut above, mut below) = ([y.0, u.0, v.0], [y.1, u.1, v.1]);
                self.threads.join(
                    &mut || self.rows(few, rows.start..middle, above.each_mut().map(|p| &mut **p)),
                    &mut || self.rows(more, middle..rows.end, below.each_mut().map(|p| &mut **p)),
                );
            }
        }
    }

    /// Where a strip begins before which `share` of `all` changed strips lie.
    fn divide(&self, rows: &Range<usize>, share: usize, all: usize) -> usize {
        let changed = || rows.clone().step_by(STRIP).filter(|&top| self.has_changed(top));
        let before = changed().count() * share / all;
        changed().nth(before).unwrap_or(rows.end)
    }

    fn has_changed(&self, top: usize) -> bool {
        self.skip[self.cells(top, (top + STRIP).min(self.low.height()))].contains(&false)
    }

    /// The cells of some low rows.
    fn cells(&self, top: usize, bottom: usize) -> Range<usize> {
        let columns = self.low.width().div_ceil(CELL);
        top / CELL * columns..bottom.div_ceil(CELL) * columns
    }

    /// High samples of each plane before the strip at a low row.
    fn planes_to(&self, top: usize) -> [usize; 3] {
        let width = self.scale * self.low.width();
        let chroma = self.scale * (top / 2) * width.div_ceil(2);
        [self.scale * top * width, chroma, chroma]
    }

    /// The same as [`rows`](Self::rows), one strip after the other.
    fn strips(&self, worker: &mut Worker, rows: Range<usize>, planes: [&mut [u8]; 3]) {
        let height = self.low.height();
        let first = self.planes_to(rows.start);
        let [y, u, v] = planes;
        for top in rows.clone().step_by(STRIP).filter(|&top| self.has_changed(top)) {
            let bottom = (top + STRIP).min(height);
            let to = self.planes_to(top);
            self.luma(worker, top..bottom, &mut y[to[0] - first[0]..]);
            let [_, low_u, low_v] = self.low.planes();
            // The last rows of an odd number have no chroma of their own.
            let at = (to[1] - first[1]).min(u.len());
            self.chroma(worker, low_u, top, &mut u[at..]);
            self.chroma(worker, low_v, top, &mut v[at..]);
        }
    }

    /// Makes the luma of a strip, where it has changed; `high` begins with it.
    fn luma(&self, worker: &mut Worker, rows: Range<usize>, high: &mut [u8]) {
        let Self { isa, scale, low, field, sources, learned, skip, .. } = *self;
        let samples = Samples::from(&low.planes()[0]);
        let stride = scale * samples.width;
        let columns = samples.width.div_ceil(CELL);
        let cells = self.cells(rows.start, rows.end);
        worker.strip.resize(stride * scale * rows.len(), 0);
        let strip = &mut worker.strip[..];
        lanczos(isa, samples, scale, rows.clone(), strip, &mut worker.resample);
        learned.predict_add(isa, samples, rows.clone(), strip, Some(skip), &mut worker.learned);
        for i in cells.clone().filter(|&i| !skip[i]) {
            let cell = field.cells()[i];
            if cell.source == 0 {
                continue;
            }
            let place = sources.at(isa, low, i % columns, i / columns, cell);
            if let Some((source, weight)) = place.from {
                let area = place.area.scaled(scale);
                let out = &mut strip[(area.y - scale * rows.start) * stride + area.x..];
                fetch_add(isa, &source.rest, area, cell.vector, scale, weight, out, stride);
            }
        }
        // Runs of changed cells go to the picture.
        let side = CELL * scale;
        for (row, skip) in skip[cells].chunks(columns).enumerate() {
            let mut column = 0;
            for run in skip.chunk_by(|a, b| a == b) {
                let span = column * side..((column + run.len()) * side).min(stride);
                column += run.len();
                if run[0] {
                    continue;
                }
                for y in row * side..((row + 1) * side).min(strip.len() / stride) {
                    let made = &strip[y * stride..][span.clone()];
                    resample::narrow(isa, made, &mut high[y * stride..][span.clone()]);
                }
            }
        }
    }

    /// Makes the rows of a chroma plane that belong to the strip beginning at low luma row `top`; `high`
    /// begins with them.
    fn chroma(&self, worker: &mut Worker, low: &PlaneBuffer, top: usize, high: &mut [u8]) {
        let first = top / 2;
        let last = top + STRIP >= self.low.height();
        let end = if last { low.height() } else { first + STRIP / 2 };
        let width = (self.scale * self.low.width()).div_ceil(2);
        if first >= end || width == 0 {
            return;
        }
        let rows = (self.scale * (end - first)).min(high.len() / width);
        let out = &mut high[..rows * width];
        let low = Samples::from(low);
        bicubic(self.isa, low, self.scale, first..end, width, out, &mut worker.resample);
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
