//! Fetching a cell of an anchor's picture from where a vector points, between samples too.
//!
//! Catmull-Rom, in one pass across and one down, in 16 bits: samples across are in 1/128 grey level about
//! the middle of the range, so that no sum of them by the taps overflows. The scalar forms define the results.

mod simd;

#[cfg(test)]
mod tests;

use crate::lines::Lines;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, Samples, by_isa};

use simd::{fetch as fetch_simd, nearer as nearer_simd, squares as squares_simd};

/// Units of a [`Step`] in one sample: steps are in 1/32 sample.
pub(crate) const UNIT: i32 = 32;
/// A share of one, as nearly as 16 bits hold it: it replaces the sample.
pub(crate) const WHOLE: i16 = i16::MAX;

/// Taps of Catmull-Rom over samples −1 to 2, in 1/128, for each 32nd of a sample.
const TAPS: [[i16; 4]; UNIT as usize] = taps();
/// The result of the taps for the middle of the range: the grey level 128, in 1/128.
const MIDDLE: i32 = 128 * 128;
/// Maximum side of a cell, in HR samples.
const MAX_SIDE: usize = 16;
/// Number of rows of a patch: a cell, one row before, two behind, and one that vectors touch.
const PATCH_ROWS: usize = MAX_SIDE + 4;
/// Distance from row to row of a patch, in samples: a cell, one column before, two behind, and those that vectors
/// touch.
const PATCH_STRIDE: usize = 32;

/// Working memory of [`blend`] and [`misfit`].
#[derive(Debug)]
pub(crate) struct Scratch {
    cell: [i16; MAX_SIDE * MAX_SIDE],
    patch: [u8; PATCH_STRIDE * PATCH_ROWS],
}

impl Default for Scratch {
    fn default() -> Self {
        Self { cell: [0; MAX_SIDE * MAX_SIDE], patch: [0; PATCH_STRIDE * PATCH_ROWS] }
    }
}

/// A rectangle of samples, inside its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Area {
    /// An area of the low picture in samples of the HR picture.
    pub(crate) fn scaled(self, scale: usize) -> Self {
        let Self { x, y, width, height } = self;
        Self { x: x * scale, y: y * scale, width: width * scale, height: height * scale }
    }

    /// The area's chroma in the HR picture.
    pub(crate) fn chroma(self, scale: usize) -> Self {
        let Self { x, y, width, height } = self.scaled(scale);
        Self { x: x / 2, y: y / 2, width: width.div_ceil(2), height: height.div_ceil(2) }
    }
}

/// A vector from a sample to its place in another picture, in 1/[`UNIT`] sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Step {
    pub x: i32,
    pub y: i32,
}

/// The vectors of a cell's quarters, row by row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quarters {
    pub steps: [Step; 4],
    /// Side of a quarter, in samples of the picture.
    pub side: usize,
}

impl Quarters {
    /// The vector of all four quarters, if they have the same one.
    fn same(&self) -> Option<Step> {
        self.steps.iter().all(|step| *step == self.steps[0]).then_some(self.steps[0])
    }

    /// Whether the vector of a quarter is half a sample or more from a step.
    pub(crate) fn stray(&self, from: Step) -> bool {
        let far = |a: i32, b: i32| a.abs_diff(b) >= UNIT as u32 / 2;
        self.steps.iter().any(|step| far(step.x, from.x) || far(step.y, from.y))
    }

    /// Fetches a cell to `scratch`, each quarter from where its vector points.
    fn fetch(&self, isa: Isa, from: Samples<'_>, area: Area, scratch: &mut Scratch) {
        let Scratch { cell, patch } = scratch;
        if let Some(step) = self.same() {
            return fetch(isa, from, area, step, cell, patch);
        }
        for (i, &step) in self.steps.iter().enumerate() {
            let (x, y) = (i % 2 * self.side, i / 2 * self.side);
            if x < area.width && y < area.height {
                let width = self.side.min(area.width - x);
                let height = self.side.min(area.height - y);
                let quarter = Area { x: area.x + x, y: area.y + y, width, height };
                fetch(isa, from, quarter, step, &mut cell[y * MAX_SIDE + x..], patch);
            }
        }
    }
}

/// The picture that is being made, in 1/16 grey level, from the first sample of a cell on.
pub(crate) struct Target<'a> {
    pub samples: &'a mut [i16],
    /// Distance from row to row, in samples.
    pub stride: usize,
}

/// The share of a cell, in the middle, and those of the eight cells around it, in 1/[`WHOLE`].
pub(crate) type Shares = [[i16; 3]; 3];

/// How far the samples of a cell lie on the way from its centre to those of the cells beside it, in 1/[`WHOLE`].
struct Ramp {
    side: usize,
    /// For each column: how far it lies towards the cell to the left.
    before: [i16; MAX_SIDE],
    /// For each column: how far it lies towards the cell to the right.
    after: [i16; MAX_SIDE],
    /// For each row: how far it lies towards the nearer cell above or below, repeated in a whole vector.
    down: [[i16; 8]; MAX_SIDE],
}

/// The ramps of cells with sides of 8, 12 and 16 samples: scales of 2, 3 and 4.
static RAMPS: [Ramp; 3] = [ramp(8), ramp(12), ramp(16)];

const fn ramp(side: usize) -> Ramp {
    let (mut before, mut after) = ([0; MAX_SIDE], [0; MAX_SIDE]);
    let mut down = [[0; 8]; MAX_SIDE];
    let mut i = 0;
    while i < side / 2 {
        let part = ((side - 2 * i - 1) * (1 << 14) / side) as i16;
        (before[i], after[side - 1 - i]) = (part, part);
        (down[i], down[side - 1 - i]) = ([part; 8], [part; 8]);
        i += 1;
    }
    Ramp { side, before, after, down }
}

const fn taps() -> [[i16; 4]; UNIT as usize] {
    const fn rounded(v: i32) -> i16 {
        ((v + 256) >> 9) as i16
    }
    let mut all = [[0; 4]; UNIT as usize];
    let mut p = 0;
    while p < UNIT {
        let (p2, p3) = (p * p, p * p * p);
        let before = rounded(-1024 * p + 64 * p2 - p3);
        let behind = rounded(1024 * p + 128 * p2 - 3 * p3);
        let last = rounded(p3 - 32 * p2);
        all[p as usize] = [before, 128 - before - behind - last, behind, last];
        p += 1;
    }
    all
}

/// Blends samples of another picture into a cell, from where the vector of each quarter points. At the cell's centre
/// the samples have the share in the middle of `shares`. From there to the centres of the cells around it, the share
/// changes evenly to theirs, so that cells leave no edges.
pub(crate) fn blend(
    isa: Isa,
    from: &Plane,
    area: Area,
    quarters: Quarters,
    shares: &Shares,
    target: Target<'_>,
    scratch: &mut Scratch,
) {
    let Target { samples: out, stride } = target;
    quarters.fetch(isa, from.into(), area, scratch);
    let Area { width, height, .. } = area;
    let ramp = &RAMPS[quarters.side / 2 - 2];
    assert!(height == 0 || out.len() >= (height - 1) * stride + width);
    // Other sizes lie at edges.
    let isa = if width.is_multiple_of(4) && height.is_multiple_of(2) { isa } else { Isa::SCALAR };
    let cell = &scratch.cell;
    // SAFETY: the area's rows are there, and `fetch` has checked that the cell holds the area.
    by_isa!(
        isa,
        nearer(cell, width, height, shares, ramp, out, stride),
        nearer_simd(
            cell: &[i16; MAX_SIDE * MAX_SIDE],
            width: usize,
            height: usize,
            shares: &Shares,
            ramp: &Ramp,
            out: &mut [i16],
            stride: usize,
        )
    );
}

/// Brings an area nearer to a fetched cell: the form that defines the result.
fn nearer(
    cell: &[i16; MAX_SIDE * MAX_SIDE],
    width: usize,
    height: usize,
    shares: &Shares,
    ramp: &Ramp,
    out: &mut [i16],
    stride: usize,
) {
    for x in 0..width {
        let [above, own, below] = shares.map(|[before, own, after]| {
            own + weighed(before - own, ramp.before[x]) + weighed(after - own, ramp.after[x])
        });
        for y in 0..height {
            let other = if 2 * y < ramp.side { above } else { below };
            let share = own + weighed(other - own, ramp.down[y][0]);
            let o = &mut out[y * stride + x];
            *o = o.saturating_add(weighed(cell[y * MAX_SIDE + x].saturating_sub(*o), share));
        }
    }
}

/// Fetches an area from where a vector points, in 1/16 grey level, to rows of [`MAX_SIDE`]. It writes whole groups of
/// eight samples.
fn fetch(
    isa: Isa,
    from: Samples<'_>,
    area: Area,
    step: Step,
    to: &mut [i16],
    patch: &mut [u8; PATCH_STRIDE * PATCH_ROWS],
) {
    let source = Source::at(from, area, step, patch);
    let Area { width, height, .. } = area;
    let isa = if height.is_multiple_of(2) { isa } else { Isa::SCALAR };
    assert!(height == 0 || to.len() >= (height - 1) * MAX_SIDE + width.next_multiple_of(8));
    // SAFETY: `to` is checked, and `Source::at` gives what is read.
    by_isa!(
        isa,
        each(source, width, height, |x, y, sample| to[y * MAX_SIDE + x] = sample),
        fetch_simd(
            source: Source<'_>,
            width: usize,
            height: usize,
            to: &mut [i16],
        )
    );
}

/// Mean square difference of an area of a picture from the place that a vector points to in another, in 1/256 square
/// grey level.
pub(crate) fn misfit(
    isa: Isa,
    now: Samples<'_>,
    then: Samples<'_>,
    area: Area,
    step: Step,
    Scratch { patch, .. }: &mut Scratch,
) -> u32 {
    let source = Source::at(then, area, step, patch);
    let Area { width, height, .. } = area;
    let now = lines(now, area);
    let isa = if (width, height) == (4, 4) { isa } else { Isa::SCALAR };
    let mut sum = 0;
    let to = &mut sum;
    // SAFETY: `lines` has checked that the area's rows are there, and `Source::at` gives what is read.
    by_isa!(
        isa,
        squares(now, source, width, height, to),
        squares_simd(
            now: Lines<'_>,
            source: Source<'_>,
            to: &mut u32,
        )
    );
    sum / (width * height).max(1) as u32
}

/// Mean square difference of an area from what [`blend`] takes for it: each quarter from where its own vector points.
pub(crate) fn misfit_of_quarters(
    isa: Isa,
    now: Samples<'_>,
    then: Samples<'_>,
    area: Area,
    quarters: Quarters,
    scratch: &mut Scratch,
) -> u32 {
    let Area { width, height, .. } = area;
    let now = lines(now, area);
    quarters.fetch(isa, then, area, scratch);
    let mut sum = 0;
    for (row, from) in scratch.cell.chunks_exact(MAX_SIDE).take(height).enumerate() {
        let now = &now.data[row * now.stride..][..width];
        sum += now.iter().zip(from).map(|(&now, &then)| square(then, now)).sum::<u32>();
    }
    sum / (width * height).max(1) as u32
}

/// The rows of an area, from the area's first sample on.
fn lines(from: Samples<'_>, Area { x, y, width, height }: Area) -> Lines<'_> {
    let lines = Lines { data: &from.data[y * from.stride + x..], stride: from.stride };
    assert!(height == 0 || lines.data.len() >= (height - 1) * lines.stride + width);
    lines
}

/// The squared difference of a sample in 1/16 grey level from one in grey levels, in 1/256 square grey level.
fn square(then: i16, now: u8) -> u32 {
    (i32::from(then) - 16 * i32::from(now)).pow(2) as u32
}

/// Sum of the squared differences of two areas, in 1/256 square grey level.
fn squares(now: Lines<'_>, source: Source<'_>, width: usize, height: usize, sum: &mut u32) {
    each(source, width, height, |x, y, sample| {
        *sum += square(sample, now.data[y * now.stride + x]);
    });
}

/// What a vector points to, between samples too.
#[derive(Clone, Copy)]
struct Source<'a> {
    /// The samples: they begin one before and one row above the place.
    lines: Lines<'a>,
    /// Fraction of the vector to the right, in 1/[`UNIT`] sample.
    fx: usize,
    /// Fraction of the vector down, in 1/[`UNIT`] sample.
    fy: usize,
}

impl<'a> Source<'a> {
    /// The place that a vector points to from an area. Where its samples reach beyond the picture, whose edges
    /// repeat, they are put together in `patch`.
    fn at(
        from: Samples<'a>,
        area: Area,
        step: Step,
        patch: &'a mut [u8; PATCH_STRIDE * PATCH_ROWS],
    ) -> Self {
        assert!(area.width <= MAX_SIDE && area.height <= MAX_SIDE && from.height > 0);
        assert!(from.data.len() >= (from.height - 1) * from.stride + from.width);
        let (fx, fy) = ((step.x & (UNIT - 1)) as usize, (step.y & (UNIT - 1)) as usize);
        let left = area.x as isize + (step.x >> 5) as isize - 1;
        let top = area.y as isize + (step.y >> 5) as isize - 1;
        let inside = |first: isize, len: usize, size: usize| {
            first >= 0 && (first as usize).saturating_add(len) <= size
        };
        // Vectors are eight samples wide and two rows high.
        let (columns, rows) = (area.width.next_multiple_of(8) + 3, area.height + 4);
        if inside(left, columns, from.width) && inside(top, rows, from.height) {
            let data = &from.data[top as usize * from.stride + left as usize..];
            return Self { lines: Lines { data, stride: from.stride }, fx, fy };
        }
        let (right, bottom) = (from.width as isize - 1, from.height as isize - 1);
        for (j, row) in patch.chunks_exact_mut(PATCH_STRIDE).take(rows).enumerate() {
            let line = from.row((top + j as isize).clamp(0, bottom) as usize);
            for (i, v) in row[..columns].iter_mut().enumerate() {
                *v = line[(left + i as isize).clamp(0, right) as usize];
            }
        }
        Self { lines: Lines { data: &patch[..], stride: PATCH_STRIDE }, fx, fy }
    }
}

/// Calls `give` with each sample of an area of this size, in 1/16 grey level.
fn each(source: Source<'_>, width: usize, height: usize, mut give: impl FnMut(usize, usize, i16)) {
    let Source { lines: from, fx, fy } = source;
    let mut across = [0i16; MAX_SIDE * PATCH_ROWS];
    for (j, row) in across.chunks_exact_mut(MAX_SIDE).take(height + 3).enumerate() {
        let line = &from.data[j * from.stride..][..width + 3];
        for (i, v) in row[..width].iter_mut().enumerate() {
            let taps = line[i..i + 4].iter().zip(TAPS[fx]);
            let sum: i32 = taps.map(|(&s, t)| i32::from(s) * i32::from(t)).sum();
            *v = (sum - MIDDLE) as i16;
        }
    }
    for y in 0..height {
        for x in 0..width {
            let at = |k: usize| across[(y + k) * MAX_SIDE + x];
            let sum: i16 = (0..4).map(|k| weighed(at(k), down(TAPS[fy][k]))).sum();
            give(x, y, ((sum + 4) >> 3) + 2048);
        }
    }
}

/// A tap in 1/[`WHOLE`].
const fn down(tap: i16) -> i16 {
    if tap == 128 { WHOLE } else { tap << 8 }
}

/// A sample by a weight in 1/[`WHOLE`], rounded.
fn weighed(sample: i16, weight: i16) -> i16 {
    ((i32::from(sample) * i32::from(weight) + 0x4000) >> 15) as i16
}
