//! The search for the patches of one level: from the best of a few candidates, inverse compositional
//! descent (Gauss-Newton steps by the gradients of the patch itself, which are computed once).
//!
//! Candidates are the vector of the coarser level and those of the neighbours to the left and above. By
//! these a vector that was found spreads over what moves alike; a second pass from the other corner, as
//! `OpenCV` makes it, was measured to add nothing.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

use windlass_vp9::by_isa;
use windlass_vp9::simd::Isa;
use windlass_vp9::simd::vector::Vector;

use super::FlowVector;
use super::densify::weight;
use super::grid::{Found, Grid};
use super::patch::{
    CELLS, Differences, Gradients, Patches, Place, SIDE, Scalar, Simd, Template, UNIT,
};
use super::pyramid::{Level, PAD};

/// Maximum distance of a descent from its start, in samples: a patch's side, beyond which the patch is out of sight.
const MAX_DISTANCE: i32 = SIDE as i32;

/// Maximum length of a step that ends a descent, in 1/[`UNIT`] sample. The step is taken without a comparison, whose
/// noise would be greater than the gain.
const LAST_STEP: i32 = 8;

/// Damping of the sums of squared gradients at the finest level, in square grey levels: noise of four grey levels
/// between samples that lie two apart. With it flat patches stay where they begin.
const DAMPING: i64 = 4096;

/// Minimum damping, in square grey levels. Each coarser level has a fourth of the damping of the finer one.
const MIN_DAMPING: i64 = 256;

/// Number of fractional bits of the entries of [`Inverse`].
const SHIFT: u32 = 36;

/// The search at one level: the pictures, the settings and the results.
pub(super) struct Task<'a> {
    /// The present picture, and that of the last search, from which vectors may be kept.
    pub now: &'a Level,
    pub former: Option<&'a Level>,
    pub reference: &'a Level,
    /// How often the pictures have been halved.
    pub halved: u32,
    /// The results of the next coarser level, at half the size.
    pub coarser: Option<&'a Grid>,
    /// Maximum number of comparisons after those of the candidates.
    pub iterations: usize,
    /// Whether the vectors' weights in cells are wanted.
    pub weigh: bool,
    /// The results of the last search, which those of this one replace.
    pub grid: &'a mut Grid,
}

impl Task<'_> {
    /// Searches for the vectors of all patches of the level.
    pub(super) fn run(mut self, isa: Isa) {
        let task = &mut self;
        // SAFETY: kernels check their slices.
        by_isa!(
            isa,
            unsafe { level::<Scalar>(task) },
            level_simd(task: &mut Task<'_>)
        );
    }
}

#[inline(always)]
unsafe fn level_simd<W: Vector, N: Vector>(task: &mut Task<'_>) {
    unsafe { level::<Simd<W>>(task) }
}

/// Searches for all patches of a level.
///
/// # Safety
///
/// The machine has the instructions of `P`.
#[inline(always)]
unsafe fn level<P: Patches>(task: &mut Task<'_>) {
    let mut template = Template::default();
    let damping = (DAMPING >> (2 * task.halved)).max(MIN_DAMPING);
    for row in 0..task.grid.rows() {
        for column in 0..task.grid.columns() {
            let (x, y) = (column * task.grid.stride(), row * task.grid.stride());
            let coarser = task.coarser.map(|c| *c.nearest(x / 2 + SIDE / 4, y / 2 + SIDE / 4));
            let left = (column > 0).then(|| *task.grid.at(column - 1, row));
            let above = (row > 0).then(|| *task.grid.at(column, row - 1));
            let known = [coarser, left, above];
            if !known.iter().flatten().any(|f| f.moved) && task.is_same(x, y) {
                task.grid.at_mut(column, row).moved = false;
                continue;
            }
            // SAFETY: as the caller promises.
            unsafe {
                let from = task.now.from(x as i32 - 1, y as i32 - 1);
                let gradients = P::cut(&mut template, from, task.now.stride());
                let start = coarser.map_or(FlowVector::default(), |c| c.vector.doubled());
                let others = [left, above].map(|f| f.map(|f| f.vector));
                let patch = Patch {
                    template: &template,
                    reference: task.reference,
                    x: x as i32,
                    y: y as i32,
                };
                let vector = patch.search::<P>(&gradients, start, others, task.iterations, damping);
                let mut weights = [0; CELLS * CELLS];
                if task.weigh {
                    let errors = P::errors(&template, patch.at(vector));
                    for (to, squares) in weights.iter_mut().zip(errors) {
                        *to = weight(squares);
                    }
                }
                let found = task.grid.at_mut(column, row);
                let moved = task.former.is_none() || found.vector != vector;
                *found = Found { vector, moved, weights };
            }
        }
    }
}

impl Task<'_> {
    /// Whether nothing has changed in a patch and around it since the last search.
    fn is_same(&self, x: usize, y: usize) -> bool {
        let Some(former) = self.former else { return false };
        let (x, y) = (x as i32 - 1, y as i32 - 1);
        let (now, was) = (self.now.from(x, y), former.from(x, y));
        let rows = now.chunks(self.now.stride()).zip(was.chunks(former.stride()));
        rows.take(SIDE + 2).all(|(now, was)| now[..SIDE + 2] == was[..SIDE + 2])
    }
}

/// A patch that is searched for.
struct Patch<'a> {
    template: &'a Template,
    reference: &'a Level,
    x: i32,
    y: i32,
}

impl<'a> Patch<'a> {
    #[inline(always)]
    fn at(&self, vector: FlowVector) -> Place<'a> {
        Place::new(self.reference, self.x, self.y, vector)
    }

    /// Searches for the patch's vector.
    #[inline(always)]
    unsafe fn search<P: Patches>(
        &self,
        gradients: &Gradients,
        start: FlowVector,
        others: [Option<FlowVector>; 2],
        iterations: usize,
        damping: i64,
    ) -> FlowVector {
        let limits = Limits::new(self.reference, self.x, self.y);
        // SAFETY: as the caller promises.
        let compare = |v: FlowVector| unsafe { P::compare(self.template, self.at(v)) };
        let mut best = limits.clamp(start.x.into(), start.y.into());
        let mut found = compare(best);
        let mut seen = best;
        for other in others.into_iter().flatten() {
            let other = limits.clamp(other.x.into(), other.y.into());
            if other == best || other == seen {
                continue;
            }
            seen = other;
            let differences = compare(other);
            if differences.squares < found.squares {
                (best, found) = (other, differences);
            }
        }
        let (begin, inverse) = (best, Inverse::new(gradients, damping));
        for i in 0..=iterations {
            let (x, y) = inverse.step(&found);
            let next = limits.clamp(i32::from(best.x) + x, i32::from(best.y) + y);
            let far = |a: i16, b: i16| (i32::from(a) - i32::from(b)).abs() > MAX_DISTANCE * UNIT;
            if next == best || far(next.x, begin.x) || far(next.y, begin.y) {
                break;
            }
            if x.abs().max(y.abs()) <= LAST_STEP {
                return next;
            }
            if i == iterations {
                break;
            }
            let differences = compare(next);
            if differences.squares >= found.squares {
                break;
            }
            (best, found) = (next, differences);
        }
        best
    }
}

/// The inverse of the damped matrix of a patch's gradients, with [`SHIFT`] bits of a fraction.
struct Inverse {
    xx: i64,
    xy: i64,
    yy: i64,
}

impl Inverse {
    #[inline(always)]
    fn new(sums: &Gradients, damping: i64) -> Self {
        // Sums of squares are at most 2²², so the determinant is at least 2¹⁶ and at most 2⁴⁵.
        let (xx, xy, yy) =
            (i64::from(sums.xx) + damping, i64::from(sums.xy), i64::from(sums.yy) + damping);
        let determinant = xx * yy - xy * xy;
        let entry = |v: i64| (v << SHIFT) / determinant;
        Self { xx: entry(yy), xy: entry(-xy), yy: entry(xx) }
    }

    /// The step from this place that lowers the differences most, to the right and down, in 1/[`UNIT`] sample.
    #[inline(always)]
    fn step(&self, d: &Differences) -> (i32, i32) {
        // Differences are in 1/16, gradients twice the slope: UNIT · 4 / (2 · 16) is 8. Entries are below 2²⁹ and
        // sums below 2²⁷.
        /// Shift from the products of entries and sums to 1/[`UNIT`] sample.
        const DOWN: u32 = SHIFT - 3;
        let (x, y) = (i64::from(d.by_x), i64::from(d.by_y));
        let step = |a: i64, b: i64| -((a * x + b * y + (1 << (DOWN - 1))) >> DOWN);
        (step(self.xx, self.xy) as i32, step(self.xy, self.yy) as i32)
    }
}

/// The bounds of a patch's vectors: none leads further beyond an edge than the edge is repeated.
struct Limits {
    min: (i32, i32),
    max: (i32, i32),
}

impl Limits {
    #[inline(always)]
    fn new(reference: &Level, x: i32, y: i32) -> Self {
        /// Maximum number of samples by which a place may begin before a level.
        const BEFORE: i32 = PAD as i32;
        /// Maximum number of samples by which a place may begin behind a level. One sample more is read there.
        const BEHIND: i32 = PAD as i32 - SIDE as i32 - 1;
        let (width, height) = (reference.width() as i32, reference.height() as i32);
        Self {
            min: ((-BEFORE - x) * UNIT, (-BEFORE - y) * UNIT),
            max: ((width + BEHIND - x) * UNIT, (height + BEHIND - y) * UNIT),
        }
    }

    #[inline(always)]
    fn clamp(&self, x: i32, y: i32) -> FlowVector {
        let limit = |v: i32| v.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        FlowVector {
            x: limit(x.clamp(self.min.0, self.max.0)),
            y: limit(y.clamp(self.min.1, self.max.1)),
        }
    }
}
