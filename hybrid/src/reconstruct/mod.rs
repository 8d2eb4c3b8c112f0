//! HR reconstruction: every high picture is `B + w (C − B)`.
//!
//! Source: NeuroScaler §2 and §6.1 (high pictures follow the low layer's motion), changed as
//! `docs/reconstruction.md` says:
//!
//! - `B = Lanczos(LR) + P(LR)` is computed for each frame from the bit-exact low picture, so that it cannot drift.
//!   `P` is the prediction from the low picture: classed filters, built in and refined by anchors ([`learned`]).
//! - `C` is the whole picture of an anchored frame, fetched through dense flow. Its weight `w` says how well the two
//!   low pictures agree ([`carry`]).
//!
//! Pictures are made in strips of low rows that stay in the cache, and only where something has changed since the last
//! one. A cell is skipped if its low samples, those around it, and its samples from references are the same. The result
//! equals that of a whole computation.

pub(crate) mod carry;
pub mod learned;
pub(crate) mod sources;

use std::ops::Range;
use std::sync::Arc;

use crate::cells::{CELL, Cells};
use crate::detail::{Detail, ONE};
use crate::resample::{self, bicubic, lanczos};
use carry::cells::{Cell, SIDE};
use carry::colour::Colour;
use carry::picture::CarriedPicture;
use carry::plan::{Plan, RowCell};
use carry::reference::{Reference, References};
use carry::searches::Searches;
use carry::warp::{self, Shares, Target, blend};
use learned::Learned;
use sources::Sources;
use windlass_types::SCALES;
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Picture, Plane, PlaneBuffer, Samples};

/// Number of a plan's cells in one [`CELL`], in each direction.
const PLANNED: usize = CELL / SIDE;

/// Number of low rows of a strip: two rows of cells.
const STRIP: usize = 2 * CELL;

/// Makes HR pictures, each in place of the last one.
pub(crate) struct Rebuilder {
    isa: Isa,
    scale: usize,
    scratch: Scratch,
    /// For each cell: whether its low samples changed, or what it takes from references.
    differs: Vec<bool>,
    /// For each cell: whether it must be computed, because it or a cell beside it differs.
    changed: Vec<bool>,
    last: Option<Last>,
    plan: Plan,
    /// The plan of the picture on display.
    last_plan: Plan,
    /// Whether every picture is computed completely: for comparisons.
    pub always: bool,
}

/// Working memory of a strip.
#[derive(Default)]
struct Scratch {
    strip: Vec<i16>,
    resample: resample::Scratch,
    learned: learned::Scratch,
    warp: warp::Scratch,
}

/// The inputs that the picture on display was made from.
struct Last {
    id: u64,
    low: Arc<FrameBuffer>,
    /// The count of changes of filters and references with which the picture was made.
    generation: u64,
}

impl Rebuilder {
    pub(crate) fn new(isa: Isa, scale: usize) -> Self {
        Self {
            isa,
            scale,
            scratch: Scratch::default(),
            differs: Vec::new(),
            changed: Vec::new(),
            last: None,
            plan: Plan::default(),
            last_plan: Plan::default(),
            always: false,
        }
    }

    /// Changes the size of pictures; the next one is computed completely.
    pub(crate) fn rescale(&mut self, scale: usize) {
        (self.scale, self.last) = (scale, None);
    }

    /// For each cell of the picture on display, whether it was computed and not kept.
    pub(crate) fn changed(&self) -> &[bool] {
        &self.changed
    }

    /// For each cell of the picture on display, whether no network makes it better. None does where captured pixels
    /// are at rest, and beyond a scale of 2 wherever they fit: a small network guesses too much there
    /// (`models/frames/xs-x3.md`, `xs-x4.md`).
    pub(crate) fn is_best(&self, sources: &Sources) -> Vec<bool> {
        if self.scale > *SCALES.start() {
            self.plan.captured_squares(&sources.references, PLANNED)
        } else {
            self.plan.at_rest(&sources.references, PLANNED)
        }
    }

    /// Lets the next picture be computed completely.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Turns `high` into the HR picture of frame `id`, from the frame's low picture. Returns whether references have
    /// a part in it. `high` must be the picture of the last call.
    pub(crate) fn rebuild(
        &mut self,
        id: u64,
        low: &Arc<FrameBuffer>,
        sources: &Sources,
        searches: &mut Searches,
        high: &mut Picture,
    ) -> bool {
        let size = low.size().scaled(self.scale);
        if high.size() != size {
            *high = Picture::grey(size.width, size.height);
            self.last = None;
        }
        let still = self.is_still(id, low, sources);
        if !still {
            std::mem::swap(&mut self.plan, &mut self.last_plan);
            self.plan.make(self.isa, id, id + 1, low, &sources.references, searches);
        }
        self.find_changes(low, sources.generation, still);
        let job = Job {
            isa: self.isa,
            scale: self.scale,
            low,
            plan: &self.plan,
            references: &sources.references,
            learned: &sources.learned,
            rest: None,
            changed: &self.changed,
        };
        let planes = [high.y.samples_mut(), high.u.samples_mut(), high.v.samples_mut()];
        job.strips(&mut self.scratch, planes);
        self.last = Some(Last { id, low: low.clone(), generation: sources.generation });
        self.plan.any()
    }

    /// The picture of frame `id` from the references before it. The next picture is computed completely.
    pub(crate) fn carried_picture(
        &mut self,
        id: u64,
        low: &FrameBuffer,
        sources: &Sources,
        searches: &mut Searches,
    ) -> CarriedPicture {
        let Sources { references, learned, .. } = sources;
        self.plan.make(self.isa, id, id, low, references, searches);
        let coloured = references.before(id).iter().any(Reference::has_colour);
        let mut colour = coloured.then(|| Colour::none(low.size(), self.scale));
        let luma = self.luma(low, references, learned, None, colour.as_mut());
        if let Some(colour) = &mut colour {
            colour.known = self.plan.coloured(references);
        }
        CarriedPicture { luma, colour, captured: self.plan.captured(references) }
    }

    /// For each tile, the share of captured detail that is lost to frame `id`. The next picture is computed completely.
    pub(crate) fn lost(
        &mut self,
        id: u64,
        low: &FrameBuffer,
        sources: &Sources,
        searches: &mut Searches,
    ) -> Vec<f64> {
        self.last = None;
        self.plan.make(self.isa, id, id + 1, low, &sources.references, searches);
        self.plan.lost(&sources.references)
    }

    /// The luma that filters make of a low picture, with `rest` added where there is some. The next picture is computed
    /// completely.
    pub(crate) fn base(
        &mut self,
        low: &FrameBuffer,
        learned: &Learned,
        rest: Option<&Detail>,
    ) -> Plane {
        self.plan.clear();
        self.luma(low, &References::default(), learned, rest, None)
    }

    /// Makes a luma plane by the plan, and its colour where there is a place for it.
    fn luma(
        &mut self,
        low: &FrameBuffer,
        references: &References,
        learned: &Learned,
        rest: Option<&Detail>,
        colour: Option<&mut Colour>,
    ) -> Plane {
        let (width, height) = (low.width(), low.height());
        let mut luma = Plane::filled(width * self.scale, height * self.scale, 0);
        self.last = None;
        self.changed.clear();
        self.changed.resize(width.div_ceil(CELL) * height.div_ceil(CELL), true);
        let job = Job {
            isa: self.isa,
            scale: self.scale,
            low,
            plan: &self.plan,
            references,
            learned,
            rest,
            changed: &self.changed,
        };
        let [u, v]: [&mut [u8]; 2] = match colour {
            Some(colour) => colour.planes.each_mut().map(Plane::samples_mut),
            None => [&mut [], &mut []],
        };
        let planes = [luma.samples_mut(), u, v];
        job.strips(&mut self.scratch, planes);
        luma
    }

    /// Whether the plan of the picture on display is that of frame `id` too: the same luma and the same references, of
    /// which none is one of the two frames.
    fn is_still(&self, id: u64, low: &FrameBuffer, sources: &Sources) -> bool {
        let Some(last) = self.last.as_ref().filter(|_| !self.always) else { return false };
        let before = |id: u64| sources.references.before(id + 1);
        let (was, is) = (before(last.id), before(id));
        last.generation == sources.generation
            && was.len() == is.len()
            && is.last().is_none_or(|r| r.id != id && r.id != last.id)
            && last.low.planes()[0].shows_the_same(&low.planes()[0])
    }

    /// Marks the cells whose HR samples may differ from those on display; `still`: by their chroma alone.
    fn find_changes(&mut self, low: &FrameBuffer, generation: u64, still: bool) {
        let (columns, rows) = (low.width().div_ceil(CELL), low.height().div_ceil(CELL));
        self.differs.clear();
        self.changed.clear();
        let last = self.last.as_ref().filter(|last| {
            !self.always
                && last.generation == generation
                && last.low.size() == low.size()
                && (still || self.plan.is_like(&self.last_plan))
        });
        let Some(last) = last else {
            self.changed.resize(columns * rows, true);
            return;
        };
        self.differs.resize(columns * rows, false);
        let across = low.width().div_ceil(SIDE);
        if !still {
            for (i, differs) in self.plan.differences(&self.last_plan).enumerate() {
                self.differs[i / across / PLANNED * columns + i % across / PLANNED] |= differs;
            }
        }
        let (was, is) = (last.low.planes(), low.planes());
        compare::<CELL>(&was[0], &is[0], columns, &mut self.differs);
        compare::<{ CELL / 2 }>(&was[1], &is[1], columns, &mut self.differs);
        compare::<{ CELL / 2 }>(&was[2], &is[2], columns, &mut self.differs);
        // Filters look up to three samples to every side, and shares lead to those of the plan's cells around:
        // at most into the cells beside.
        let differs = &self.differs;
        self.changed.extend((0..columns * rows).map(|i| {
            let (column, row) = (i % columns, i / columns);
            (row.saturating_sub(1)..(row + 2).min(rows)).any(|y| {
                differs[y * columns..][column.saturating_sub(1)..(column + 2).min(columns)]
                    .contains(&true)
            })
        }));
    }
}

/// The inputs of a picture to be made.
struct Job<'a> {
    isa: Isa,
    scale: usize,
    low: &'a FrameBuffer,
    plan: &'a Plan,
    references: &'a References,
    learned: &'a Learned,
    /// Detail to add to what filters make, where there is some.
    rest: Option<&'a Detail>,
    /// For each cell: whether the job computes it. The job does not change the other cells.
    changed: &'a [bool],
}

impl Job<'_> {
    fn has_changed(&self, top: usize) -> bool {
        self.changed[self.cells(top, (top + STRIP).min(self.low.height()))].contains(&true)
    }

    /// The cells of some low rows, as a range of their indices.
    fn cells(&self, top: usize, bottom: usize) -> Range<usize> {
        let columns = self.low.width().div_ceil(CELL);
        top / CELL * columns..bottom.div_ceil(CELL) * columns
    }

    /// Number of high samples of each plane before the strip at a low row.
    fn planes_to(&self, top: usize) -> [usize; 3] {
        let width = self.scale * self.low.width();
        let chroma = self.scale * (top / 2) * width.div_ceil(2);
        [self.scale * top * width, chroma, chroma]
    }

    /// Makes the picture, one strip after the other. Chroma planes may be empty.
    fn strips(&self, scratch: &mut Scratch, planes: [&mut [u8]; 3]) {
        let height = self.low.height();
        let [y, u, v] = planes;
        for top in (0..height).step_by(STRIP).filter(|&top| self.has_changed(top)) {
            let bottom = (top + STRIP).min(height);
            let to = self.planes_to(top);
            self.luma(scratch, top..bottom, &mut y[to[0]..]);
            let [_, low_u, low_v] = self.low.planes();
            // The last rows of an odd number have no chroma of their own.
            let at = to[1].min(u.len());
            self.chroma(scratch, low_u, top, &mut u[at..]);
            self.chroma(scratch, low_v, top, &mut v[at..]);
            self.carry_colour(scratch, top..bottom, [&mut u[at..], &mut v[at..]]);
        }
    }

    /// Makes the luma of a strip, where it has changed; `high` begins with it.
    fn luma(&self, scratch: &mut Scratch, rows: Range<usize>, high: &mut [u8]) {
        let Self { isa, scale, low, learned, changed, .. } = *self;
        let samples = Samples::from(&low.planes()[0]);
        let stride = scale * samples.width;
        let columns = samples.width.div_ceil(CELL);
        let cells = self.cells(rows.start, rows.end);
        scratch.strip.resize(stride * scale * rows.len(), 0);
        let strip = &mut scratch.strip[..];
        lanczos(isa, samples, scale, rows.clone(), strip, &mut scratch.resample);
        let wanted = Cells::Only(changed);
        learned.predict_add(isa, samples, rows.clone(), strip, wanted, &mut scratch.learned);
        if let Some(rest) = self.rest {
            let first = stride * scale * rows.start;
            resample::add_saturating(strip, &rest.samples()[first..first + strip.len()]);
        }
        self.carry(&rows, strip, stride, &mut scratch.warp);
        // Runs of changed cells go to the picture.
        let side = CELL * scale;
        for (row, changed) in changed[cells].chunks(columns).enumerate() {
            let mut column = 0;
            for run in changed.chunk_by(|a, b| a == b) {
                let span = column * side..((column + run.len()) * side).min(stride);
                column += run.len();
                if !run[0] {
                    continue;
                }
                for y in row * side..((row + 1) * side).min(strip.len() / stride) {
                    let made = &strip[y * stride..][span.clone()];
                    resample::narrow(isa, made, &mut high[y * stride..][span.clone()]);
                }
            }
        }
    }

    /// Blends references into the changed parts of a strip.
    fn carry(
        &self,
        rows: &Range<usize>,
        strip: &mut [i16],
        stride: usize,
        scratch: &mut warp::Scratch,
    ) {
        let (low, scale) = (self.low, self.scale);
        let size = low.size();
        let columns = size.width.div_ceil(CELL);
        for (reference, layer) in self.plan.layers(self.references) {
            for row in rows.start / SIDE..rows.end.div_ceil(SIDE) {
                let changed = &self.changed[row / PLANNED * columns..][..columns];
                for RowCell { column, carried, shares } in layer.row(row, size) {
                    if !changed[column / PLANNED] || shares == Shares::default() {
                        continue;
                    }
                    let area = Cell { column, row }.area(size).scaled(scale);
                    let out = &mut strip[(area.y - scale * rows.start) * stride + area.x..];
                    let (steps, target) = (carried.steps(scale), Target { samples: out, stride });
                    blend(self.isa, &reference.high, area, steps, &shares, target, scratch);
                }
            }
        }
    }

    /// Blends the chroma of references into a strip.
    fn carry_colour(&self, scratch: &mut Scratch, rows: Range<usize>, mut high: [&mut [u8]; 2]) {
        /// Maximum side of a cell's chroma, in HR samples: at the largest scale.
        const MAX_SIDE: usize = SIDE * *SCALES.end() / 2;
        let scratch = &mut scratch.warp;
        if high[0].is_empty() {
            return;
        }
        let (scale, size) = (self.scale, self.low.size());
        let (width, across) = (size.scaled(scale).chroma().width, size.width.div_ceil(SIDE));
        for row in rows.start / SIDE..rows.end.div_ceil(SIDE) {
            for column in 0..across {
                let mut area = Cell { column, row }.area(size).chroma(scale);
                let first = area.y - scale * (rows.start / 2);
                let lines = (high[0].len() / width).saturating_sub(first);
                (area.width, area.height) =
                    (area.width.min(width - area.x), area.height.min(lines));
                let mut cells = [[0; MAX_SIDE * MAX_SIDE]; 2];
                let mut any = false;
                for (planes, carried) in self.plan.colours(self.references, row * across + column) {
                    for (n, cell) in cells.iter_mut().enumerate() {
                        if !any {
                            for y in 0..area.height {
                                let from = &high[n][(first + y) * width + area.x..][..area.width];
                                for (to, &v) in cell[y * MAX_SIDE..].iter_mut().zip(from) {
                                    *to = i16::from(v) * ONE;
                                }
                            }
                        }
                        let (steps, shares) =
                            (carried.chroma_steps(scale), [[carried.share; 3]; 3]);
                        let target = Target { samples: &mut cell[..], stride: MAX_SIDE };
                        blend(self.isa, &planes[n], area, steps, &shares, target, scratch);
                    }
                    any = true;
                }
                if any {
                    for (cell, high) in cells.iter().zip(&mut high) {
                        for y in 0..area.height {
                            let to = &mut high[(first + y) * width + area.x..][..area.width];
                            resample::narrow(self.isa, &cell[y * MAX_SIDE..][..area.width], to);
                        }
                    }
                }
            }
        }
    }

    /// Makes the rows of a chroma plane that belong to the strip beginning at low luma row `top`; `high`
    /// begins with them.
    fn chroma(&self, scratch: &mut Scratch, low: &PlaneBuffer, top: usize, high: &mut [u8]) {
        let first = top / 2;
        let last = top + STRIP >= self.low.height();
        let end = if last { low.height() } else { first + STRIP / 2 };
        let width = (self.scale * self.low.width()).div_ceil(2);
        if first >= end || width == 0 || high.is_empty() {
            return;
        }
        let rows = (self.scale * (end - first)).min(high.len() / width);
        let out = &mut high[..rows * width];
        let low = Samples::from(low);
        bicubic(self.isa, low, self.scale, first..end, width, out, &mut scratch.resample);
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
