//! The plan of a picture made from references: for each cell, the place in each and how much of it to take.
//!
//! Source: the share is Wiener's: the energy of the wanted signal over that of signal and noise. The signal is what
//! the reference has at that place beyond the filters. The noise is how badly the reference's *low* picture, moved by
//! the same vector, fits the present low picture. Both ends have both pictures, bit for bit. Signal and noise are
//! smoothed over the cells around. A second reference is blended over the first, with the noise that the first
//! leaves, as if the two were independent measurements.

use super::cells::{Cell, LAYERS, LowPlace, SIDE};
use super::reference::{Reference, References};
use super::searches::Searches;
use super::warp::{self, Area, Quarters, Shares, Step, WHOLE, misfit, misfit_of_quarters};
use crate::flow::{self, FlowVector};
use windlass_types::Size;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Plane, PlaneSize, Samples};

/// Side of a cell's quarters, in low samples: each quarter has a vector.
const QUARTER: usize = SIDE / 2;
/// Side of the area around a cell whose variance says whether it has texture, in low samples.
const WINDOW: usize = 8;
/// Noise of a reference that fits perfectly, in 1/256 square grey level. Two such references are averaged.
const MIN_NOISE: u64 = 16;
/// Noise up to which captured pixels are at rest, in 1/256 square grey level: only the encoding changes the low
/// picture.
const REST: u64 = 4 * MIN_NOISE;
/// Divisor of a cell's energy where there is much detail, as of text: the cell is at rest up to the resulting noise.
const REST_SHARE: u64 = 32;
/// Maximum noise at rest where there is much detail, in 1/256 square grey level.
const MAX_REST: u64 = 16 * REST;
/// Minimum gain for which a cell takes anything from a reference, in 1/256 square grey level.
const FLOOR: u64 = 2;
/// Weight of a cell's own misfit, where each cell beside it has 1: the own misfit shows where something moves.
const OWN_MISFIT: u32 = 6;
/// Weight of a cell's own energy, where each cell beside it has 1: energy is a matter of the surroundings.
const OWN_ENERGY: u32 = 2;
/// Minimum variance of the low samples of a cell with texture, in 1/256 square grey level.
const TEXTURE: u32 = 16 * 256;
/// Energy of detail beyond which a cell's loss counts little, in 1/256 square grey level.
const RICH_DETAIL: f64 = 256.0;
/// Minimum share with which captured pixels fit, in 1/[`WHOLE`]: enhanced pixels do not replace pixels that fit.
const FITS: i16 = WHOLE / 8;

/// The place in a reference that a cell is taken from, and its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Carried {
    /// The vector from the cell to its place in the reference: the mean of the quarters' vectors.
    pub vector: FlowVector,
    /// The vectors from each quarter to its place in the reference, row by row.
    pub quarters: [FlowVector; 4],
    /// The share that the reference has in the cell, in 1/[`WHOLE`]; 0: none.
    pub share: i16,
}

impl Carried {
    /// The cell's vector in samples of a picture that is `scale` times as large.
    pub(crate) fn step(self, scale: usize) -> Step {
        step(self.vector, scale)
    }

    /// The vectors of the quarters in samples of a picture that is `scale` times as large.
    pub(crate) fn steps(self, scale: usize) -> Quarters {
        let steps = self.quarters.map(|vector| step(vector, scale));
        Quarters { steps, side: QUARTER * scale }
    }

    /// The cell's vector in the chroma of a picture that is `scale` times as large: the same for all quarters.
    pub(crate) fn chroma_steps(self, scale: usize) -> Quarters {
        let Step { x, y } = self.step(scale);
        let step = Step { x: (x + 1) >> 1, y: (y + 1) >> 1 };
        Quarters { steps: [step; 4], side: QUARTER * scale }
    }

    /// How badly the reference's low picture fits the present one, in 1/256 square grey level. It is the greater of
    /// the misfits at the mean vector and at the vectors of the quarters. Quarters follow the noise of the low
    /// picture, and so fit better than their detail does. But the misfit at the mean does not show one that goes
    /// astray.
    fn misfit(
        self,
        isa: Isa,
        now: Samples<'_>,
        then: Samples<'_>,
        area: Area,
        scratch: &mut warp::Scratch,
    ) -> u32 {
        let (mean, quarters) = (self.step(1), self.steps(1));
        let of_mean = misfit(isa, now, then, area, mean, scratch);
        if quarters.stray(mean) {
            return of_mean.max(misfit_of_quarters(isa, now, then, area, quarters, scratch));
        }
        of_mean
    }
}

/// A reference, and what each cell of a picture takes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    id: u64,
    cells: Vec<Carried>,
}

/// A cell in its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCell {
    /// Column of the cell, counted from 0 at the left.
    pub column: usize,
    /// The place in the reference that the cell is taken from, and its share.
    pub carried: Carried,
    /// The share of the cell, and those of the cells around it; edges repeat.
    pub shares: Shares,
}

impl Layer {
    /// The cells of a row, for a picture of this size in low samples.
    pub(crate) fn row(&self, row: usize, low: PlaneSize) -> impl Iterator<Item = RowCell> {
        let (columns, rows) = (low.width.div_ceil(SIDE), low.height.div_ceil(SIDE));
        let around = [row.saturating_sub(1), row, (row + 1).min(rows - 1)];
        let around = around.map(|row| &self.cells[row * columns..][..columns]);
        let at = move |column: usize| around.map(|cells| cells[column.min(columns - 1)].share);
        let (mut before, mut own) = (at(0), at(0));
        (0..columns).map(move |column| {
            let after = at(column + 1);
            let shares = std::array::from_fn(|y| [before[y], own[y], after[y]]);
            (before, own) = (own, after);
            RowCell { column, carried: around[1][column], shares }
        })
    }
}

/// The plan of a picture. For each cell: the references that it is made from, the places in them and the shares.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    size: PlaneSize,
    used: usize,
    layers: [Layer; LAYERS],
    /// For each cell: the noise that is left by the references so far, in 1/256 square grey level.
    noise: Vec<u64>,
    /// For each cell: the misfit of the low pictures, in 1/256 square grey level.
    misfits: Vec<u32>,
    /// For each cell: the energy of the reference's detail at its place, in 1/256 square grey level.
    energies: Vec<u32>,
    /// Working memory.
    rows: [Vec<u32>; 2],
    scratch: warp::Scratch,
}

impl Plan {
    /// Removes all references from the plan.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Makes the plan of frame `id` from references of frames before frame `end`.
    pub(crate) fn make(
        &mut self,
        isa: Isa,
        id: u64,
        end: u64,
        low: &FrameBuffer,
        references: &References,
        searches: &mut Searches,
    ) {
        self.size = low.size();
        let known = references.before(end);
        // A reference of the frame itself is better than all others.
        let max = if known.last().is_some_and(|r| r.id == id) {
            1
        } else {
            searches.effort().references()
        };
        let known = &known[known.len().saturating_sub(max)..];
        self.used = 0;
        self.noise.clear();
        for reference in known {
            if reference.low.size() == self.size {
                self.lay(isa, id, low, reference, known, searches);
            }
        }
    }

    fn lay(
        &mut self,
        isa: Isa,
        id: u64,
        low: &FrameBuffer,
        reference: &Reference,
        known: &[Reference],
        searches: &mut Searches,
    ) {
        let size = self.size;
        let (columns, rows) = (size.width.div_ceil(SIDE), size.height.div_ceil(SIDE));
        let now = Samples::from(&low.planes()[0]);
        let then = Samples::from(&reference.low.planes()[0]);
        let same = reference.id == id;
        let flow = if same { None } else { searches.search(isa, now, reference, known) };
        let layer = &mut self.layers[self.used];
        layer.id = reference.id;
        layer.cells.clear();
        self.misfits.clear();
        self.energies.clear();
        for cell in (0..columns * rows).map(|i| Cell::numbered(i, columns)) {
            let vector =
                flow.map_or(FlowVector::default(), |flow| mean(flow, cell.column, cell.row));
            let quarters = flow.map_or([vector; 4], |flow| quarters(flow, cell.column, cell.row));
            let carried = Carried { vector, quarters, share: 0 };
            layer.cells.push(carried);
            self.energies.push(reference.energy(place(cell, vector, size)));
            if !same {
                let misfit = carried.misfit(isa, now, then, cell.area(size), &mut self.scratch);
                self.misfits.push(misfit);
            }
        }
        smooth(&mut self.misfits, columns, OWN_MISFIT, &mut self.rows);
        smooth(&mut self.energies, columns, OWN_ENERGY, &mut self.rows);
        if !same && is_another_scene(now, &self.misfits) {
            return;
        }
        self.used += 1;
        self.noise.resize(columns * rows, u64::MAX);
        for (i, (carried, before)) in layer.cells.iter_mut().zip(&mut self.noise).enumerate() {
            let energy = u64::from(self.energies[i]);
            let noise = self.misfits.get(i).map_or(0, |&misfit| noise(misfit.into(), energy));
            // What this reference can add to those before it.
            let signal = joint(energy, *before);
            let share = (signal * WHOLE as u64 / (signal + noise).max(1)) as i16;
            if signal * share as u64 / WHOLE as u64 >= FLOOR {
                *before = joint(noise, *before);
                carried.share = share;
            }
        }
    }

    /// The references that have a part in the picture, oldest first, and what cells take from each.
    pub(crate) fn layers<'a>(
        &'a self,
        references: &'a References,
    ) -> impl Iterator<Item = (&'a Reference, &'a Layer)> + 'a {
        let layers = self.layers[..self.used].iter();
        layers.filter_map(|layer| Some((references.get(layer.id)?, layer)))
    }

    /// The references that have a part in a cell, oldest first.
    pub(crate) fn cell<'a>(
        &'a self,
        references: &'a References,
        cell: usize,
    ) -> impl Iterator<Item = (&'a Reference, Carried)> + 'a {
        self.layers[..self.used].iter().filter_map(move |layer| {
            let carried = layer.cells[cell];
            let reference = (carried.share > 0).then(|| references.get(layer.id));
            Some((reference.flatten()?, carried))
        })
    }

    /// The colours that have a part in a cell, oldest first.
    pub(crate) fn colours<'a>(
        &'a self,
        references: &'a References,
        cell: usize,
    ) -> impl Iterator<Item = (&'a [Plane; 2], Carried)> + 'a {
        let columns = self.size.width.div_ceil(SIDE);
        self.cell(references, cell).filter_map(move |(reference, carried)| {
            let place = place(Cell::numbered(cell, columns), carried.vector, self.size);
            Some((reference.colour(place)?, carried))
        })
    }

    /// Whether references have a part in the picture.
    pub(crate) fn any(&self) -> bool {
        self.layers[..self.used].iter().any(|l| l.cells.iter().any(|c| c.share > 0))
    }

    /// Whether this plan takes from the same references as another.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let ids = |plan: &Self| -> [Option<u64>; LAYERS] {
            std::array::from_fn(|i| (i < plan.used).then(|| plan.layers[i].id))
        };
        self.size == other.size && ids(self) == ids(other)
    }

    /// For each cell, whether it differs from another plan that [is like it](Self::is_like).
    pub(crate) fn differences<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = bool> + 'a {
        let cells = self.size.width.div_ceil(SIDE) * self.size.height.div_ceil(SIDE);
        let layers = move || self.layers[..self.used].iter().zip(&other.layers);
        (0..cells).map(move |i| layers().any(|(a, b)| a.cells[i] != b.cells[i]))
    }

    /// For each square of `side` × `side` cells, row by row: whether it is all captured pixels at rest, which fit as
    /// well as they can.
    pub(crate) fn at_rest(&self, references: &References, side: usize) -> Vec<bool> {
        let columns = self.size.width.div_ceil(SIDE);
        let mut rest = self.squares(side, self.used > 0);
        for i in (0..columns * self.size.height.div_ceil(SIDE)).filter(|_| self.used > 0) {
            let energy = self.energies.get(i).map_or(0, |&energy| u64::from(energy));
            let bound = (energy / REST_SHARE).clamp(REST, MAX_REST);
            let fits = self.noise.get(i).is_some_and(|&noise| noise <= bound)
                && self.cell(references, i).any(|(reference, carried)| {
                    let place = place(Cell::numbered(i, columns), carried.vector, self.size);
                    reference.is_captured(place)
                });
            rest[self.square(i, side)] &= fits;
        }
        rest
    }

    /// For each square of `side` × `side` cells, row by row: whether captured pixels fit somewhere in it.
    pub(crate) fn captured_squares(&self, references: &References, side: usize) -> Vec<bool> {
        let mut squares = self.squares(side, false);
        for (i, fits) in self.captured(references).into_iter().enumerate() {
            squares[self.square(i, side)] |= fits;
        }
        squares
    }

    /// A mask of `value` with a flag for each square of `side` × `side` cells of the picture.
    fn squares(&self, side: usize, value: bool) -> Vec<bool> {
        let across = |size: usize| size.div_ceil(SIDE).div_ceil(side);
        vec![value; across(self.size.width) * across(self.size.height)]
    }

    /// The square that a cell belongs to.
    fn square(&self, cell: usize, side: usize) -> usize {
        let columns = self.size.width.div_ceil(SIDE);
        cell / columns / side * columns.div_ceil(side) + cell % columns / side
    }

    /// For each cell, whether captured pixels fit.
    pub(crate) fn captured(&self, references: &References) -> Vec<bool> {
        self.fits(references, Reference::is_captured)
    }

    /// For each cell, whether the colour of a reference fits.
    pub(crate) fn coloured(&self, references: &References) -> Vec<bool> {
        self.fits(references, |reference, place| reference.colour(place).is_some())
    }

    /// For each tile, the share of captured detail that is lost to this picture, from the energy and the misfits of
    /// its cells.
    pub(crate) fn lost(&self, references: &References) -> Vec<f64> {
        let columns = self.size.width.div_ceil(SIDE);
        let tiles = TileMap::empty(Size::saturating(self.size.width, self.size.height));
        let mut sums = vec![(0.0, 0.0); tiles.columns() * tiles.rows()];
        for i in 0..columns * self.size.height.div_ceil(SIDE) {
            let (mut largest, mut kept) = (0.0f64, 0.0f64);
            for layer in &self.layers[..self.used] {
                let Some(reference) = references.get(layer.id) else { continue };
                let carried = layer.cells[i];
                let place = place(Cell::numbered(i, columns), carried.vector, self.size);
                let energy = f64::from(reference.energy(place));
                largest = largest.max(energy);
                if reference.is_captured(place) {
                    // Where there is no detail to be carried, none is lost.
                    let share = f64::from(carried.share) / f64::from(WHOLE);
                    kept = kept.max(share * energy + RICH_DETAIL);
                }
            }
            let misfit = self.misfits.get(i).map_or(0.0, |&misfit| f64::from(misfit));
            let tile = i / columns * SIDE / TILE * tiles.columns() + i % columns * SIDE / TILE;
            sums[tile].0 += kept;
            sums[tile].1 += largest + misfit + RICH_DETAIL;
        }
        sums.iter().map(|(kept, all)| 1.0 - kept / all).collect()
    }

    fn fits(
        &self,
        references: &References,
        has: impl Fn(&Reference, LowPlace) -> bool,
    ) -> Vec<bool> {
        let columns = self.size.width.div_ceil(SIDE);
        let cells = columns * self.size.height.div_ceil(SIDE);
        let fits = |i: usize| {
            self.cell(references, i).any(|(reference, carried)| {
                let place = place(Cell::numbered(i, columns), carried.vector, self.size);
                carried.share >= FITS && has(reference, place)
            })
        };
        (0..cells).map(fits).collect()
    }
}

/// A vector in samples of a picture that is `scale` times as large.
fn step(vector: FlowVector, scale: usize) -> Step {
    let step =
        |v: i16| (i32::from(v) * scale as i32 * warp::UNIT + flow::UNIT / 2) >> flow::UNIT.ilog2();
    Step { x: step(vector.x), y: step(vector.y) }
}

/// The noise of a reference's picture, from the misfit of the low pictures and the energy of the reference's detail.
/// If they differ by more than there is detail, the place likely shows another thing, and its detail is wrong as
/// well: so that part counts in squares. The bound leaves room for products of two.
fn noise(misfit: u64, energy: u64) -> u64 {
    let noise = misfit * 3 / 4 + misfit * misfit / (2 * energy.max(1)) + MIN_NOISE;
    noise.min(u32::MAX.into())
}

/// The variance of two independent measurements together; `u64::MAX` stands for no measurement.
fn joint(one: u64, other: u64) -> u64 {
    if other == u64::MAX { one } else { one * other / (one + other).max(1) }
}

/// Whether a picture is of another scene than the reference with these misfits. It is if, in more than three of
/// four cells with texture, the misfit is beyond a quarter of the variance. The reference's detail is then wrong even
/// where low pictures happen to agree. On three clips, at most 23 in 100 such cells are beyond it up to 59 frames on,
/// and 97 after a cut.
fn is_another_scene(now: Samples<'_>, misfits: &[u32]) -> bool {
    let columns = now.width.div_ceil(SIDE);
    let (mut unlike, mut textured) = (0, 0);
    // One cell of four is enough, and their windows do not overlap.
    for (row, misfits) in misfits.chunks_exact(columns).enumerate().step_by(2) {
        for (column, &misfit) in misfits.iter().enumerate().step_by(2) {
            let variance = variance(now, window(Cell { column, row }, now.size()));
            if variance > TEXTURE {
                textured += 1;
                unlike += u32::from(misfit > variance / 4);
            }
        }
    }
    4 * unlike > 3 * textured
}

/// The variance of an area's samples, in 1/256 square grey level.
fn variance(samples: Samples<'_>, Area { x, y, width, height }: Area) -> u32 {
    let (mut sum, mut squares) = (0, 0);
    for row in y..y + height {
        for &v in &samples.row(row)[x..x + width] {
            sum += u32::from(v);
            squares += u32::from(v).pow(2);
        }
    }
    let count = (width * height).max(1) as u32;
    let (sum, squares) = (u64::from(sum), u64::from(squares));
    ((squares * u64::from(count) - sum * sum) * 256 / u64::from(count).pow(2)) as u32
}

/// The area around a cell by whose variance the cell has texture or not.
fn window(cell: Cell, PlaneSize { width, height }: PlaneSize) -> Area {
    let first = |at: usize, size: usize| {
        (at * SIDE).saturating_sub((WINDOW - SIDE) / 2).min(size.saturating_sub(WINDOW))
    };
    let (x, y) = (first(cell.column, width), first(cell.row, height));
    Area { x, y, width: WINDOW.min(width), height: WINDOW.min(height) }
}

/// The low sample in the reference that the centre of a cell comes from.
fn place(cell: Cell, vector: FlowVector, low: PlaneSize) -> LowPlace {
    let at = |cell: usize, v: i16, size: usize| {
        let centre = (cell * SIDE + SIDE / 2) as i32 + (i32::from(v) >> flow::UNIT.ilog2());
        centre.clamp(0, size as i32 - 1) as usize
    };
    LowPlace { x: at(cell.column, vector.x, low.width), y: at(cell.row, vector.y, low.height) }
}

/// Brings the values of cells nearer to those around them, across and down: `own` parts of each to one of either
/// beside it. Edges repeat. One cell is too small a sample: alone, both measures are too rough for good shares.
fn smooth(values: &mut [u32], columns: usize, own: u32, rows: &mut [Vec<u32>; 2]) {
    if values.is_empty() {
        return;
    }
    let [above, sums] = rows;
    above.clear();
    above.extend_from_slice(&values[..columns]);
    for at in (0..values.len()).step_by(columns) {
        let below = if at + columns < values.len() { at + columns } else { at };
        sums.clear();
        sums.extend((0..columns).map(|x| above[x] + own * values[at + x] + values[below + x]));
        above.copy_from_slice(&values[at..at + columns]);
        for (x, value) in values[at..at + columns].iter_mut().enumerate() {
            let (left, right) = (sums[x.saturating_sub(1)], sums[(x + 1).min(columns - 1)]);
            *value = (left + own * sums[x] + right) / (own + 2).pow(2);
        }
    }
}

/// The vectors of a cell's four quarters; edges repeat.
fn quarters(flow: &flow::Flow, column: usize, row: usize) -> [FlowVector; 4] {
    const { assert!(SIDE == 2 * flow::CELL) };
    std::array::from_fn(|i| {
        let x = (2 * column + i % 2).min(flow.columns() - 1);
        let y = (2 * row + i / 2).min(flow.vectors().len() / flow.columns() - 1);
        flow.vectors()[y * flow.columns() + x]
    })
}

/// The mean vector of a cell.
fn mean(flow: &flow::Flow, column: usize, row: usize) -> FlowVector {
    /// Number of the flow's vectors along a side of a cell.
    const EACH: usize = SIDE / flow::CELL;
    let (mut x, mut y, mut count) = (0, 0, 0);
    for row in flow.vectors().chunks_exact(flow.columns()).skip(row * EACH).take(EACH) {
        for v in row.iter().skip(column * EACH).take(EACH) {
            (x, y, count) = (x + i32::from(v.x), y + i32::from(v.y), count + 1);
        }
    }
    let mean = |sum: i32| (2 * sum + count).div_euclid(2 * count.max(1)) as i16;
    FlowVector { x: mean(x), y: mean(y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest mean square of differences of samples.
    const MAX_SQUARE: u64 = 5500 * 5500;

    #[test]
    fn extremes_of_misfit_and_energy_do_not_overflow() {
        for (misfit, energy) in [(MAX_SQUARE, 0), (MAX_SQUARE, MAX_SQUARE), (0, MAX_SQUARE), (0, 0)]
        {
            let one = noise(misfit, energy);
            assert!(joint(one, one) <= one && joint(MAX_SQUARE, one) <= MAX_SQUARE);
            assert_eq!(joint(one, u64::MAX), one);
        }
    }

    #[test]
    fn a_quarter_that_goes_astray_is_a_misfit_of_its_cell() {
        // Dark here; there too, but for a light stripe that one quarter's vector leads to, and the mean of all four
        // does not.
        let now = Plane::filled(48, 32, 40);
        let stripe = |i: usize| if (20..24).contains(&(i % 48)) { 210 } else { 40 };
        let then = Plane::from_samples(48, 32, (0..48 * 32).map(stripe).collect()).unwrap();
        let at = |x: i16| FlowVector { x: x * flow::UNIT as i16, y: 0 };
        let misfit = |stray: i16| {
            let quarters = [at(stray), at(0), at(0), at(0)];
            let carried = Carried { vector: at(stray / 4), quarters, share: 0 };
            let area = Area { x: 8, y: 8, width: 4, height: 4 };
            let scratch = &mut warp::Scratch::default();
            carried.misfit(Isa::detect(), (&now).into(), (&then).into(), area, scratch)
        };
        assert_eq!(misfit(4), 0);
        assert_eq!(misfit(12), (170 * 16u32).pow(2) / 4);
    }

    #[test]
    fn noise_grows_faster_than_misfit_where_that_exceeds_the_detail() {
        let over = |misfit| noise(misfit, 1000) / misfit;
        assert_eq!((over(500), over(1000), over(8000)), (1, 1, 4));
    }

    #[test]
    fn smoothing_keeps_what_is_the_same_everywhere_and_spreads_the_rest_to_the_cells_around() {
        let mut rows = Default::default();
        let mut even = vec![1000; 15];
        smooth(&mut even, 5, 6, &mut rows);
        assert_eq!(even, [1000; 15]);
        let mut one = vec![0; 25];
        one[12] = 6400;
        smooth(&mut one, 5, 6, &mut rows);
        assert_eq!(&one[5..15], [0, 100, 600, 100, 0, 0, 600, 3600, 600, 0]);
        assert_eq!((&one[..5], &one[15..20]), (&[0; 5][..], &[0, 100, 600, 100, 0][..]));
    }

    #[test]
    fn smoothing_the_greatest_misfits_does_not_overflow() {
        let mut values = vec![MAX_SQUARE as u32; 9];
        smooth(&mut values, 3, OWN_MISFIT.max(OWN_ENERGY), &mut Default::default());
        assert_eq!(values, [MAX_SQUARE as u32; 9]);
    }
}
