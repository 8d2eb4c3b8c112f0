//! Dense optical flow between an anchor's low picture and that of now, by dense inverse search (DIS).
//!
//! Source: Kroeger, Timofte, Dai and Van Gool, "Fast Optical Flow using Dense Inverse Search", ECCV 2016.
//! Both pictures are halved some times (`pyramid`); from the coarsest level to the finest each patch of
//! 8 × 8 samples of the picture of *now* is searched for in the *reference* (`search`, `patch`); then
//! each cell of 2 × 2 samples has the mean of the vectors of the patches over it, weighed by how well they
//! fit there (`densify`). Other than in the paper: candidates from neighbours as `OpenCV` has them,
//! no variational refinement, and no normalisation of means, both of which gained nothing in what this
//! is for, to carry an anchor's picture (`lab/examples/flow_gain.rs`).
//!
//! All of it is in integers, and the vectors are the same on every machine. They depend on the two
//! pictures alone: what a [`FlowSearch`] remembers of the last search only saves time.
//!
//! ```
//! use windlass_vp9::Plane;
//! use windlass_hybrid::flow::{FlowSearch, FlowSettings};
//! use windlass_vp9::simd::Isa;
//!
//! // A picture, and the same moved to the left by two samples.
//! let at = |x: usize, y: usize| ((x * x / 7 + 3 * y * y / 5 + x * y / 3) % 200) as u8;
//! let picture = |moved: usize| {
//!     let samples = (0..64 * 48).map(|i| at(i % 64 + moved, i / 64)).collect();
//!     Plane::from_samples(64, 48, samples).expect("the count is right")
//! };
//! let mut search = FlowSearch::new(FlowSettings::default());
//! search.set_reference((&picture(0)).into())?;
//! let flow = search.search(Isa::detect(), (&picture(2)).into())?;
//! assert_eq!((flow.columns(), flow.rows()), (32, 24));
//! assert!((i32::from(flow.row(12)[16].x) - 2 * 64).abs() < 8);
//! # Ok::<_, windlass_hybrid::flow::FlowError>(())
//! ```

mod densify;
mod grid;
mod patch;
mod pyramid;
mod search;

#[cfg(test)]
mod tests;

use thiserror::Error;

use densify::Sums;
use grid::Grid;
use pyramid::{MAX_LEVELS, Pyramid};
use search::Task;
use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

pub use pyramid::{MAX_SIDE, MIN_SIDE};

/// Side of a cell, in samples: each cell has one vector.
pub const CELL: usize = patch::CELL;

/// Units of a [`FlowVector`] in one sample: its parts are in 1/64 sample.
pub const UNIT: i32 = patch::UNIT;

/// Why there is no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FlowError {
    /// A side is below [`MIN_SIDE`] or beyond [`MAX_SIDE`], or there are fewer samples than that.
    #[error("a picture of {0} × {1} samples has no flow: it is too small or too large")]
    Size(usize, usize),
    /// The pictures differ in size, or there is no reference yet.
    #[error("the reference is of another size than the picture, or there is none")]
    Reference,
}

/// A vector from a sample of the present picture to its place in the reference, in 1/[`UNIT`] sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowVector {
    /// Part to the right; negative: to the left.
    pub x: i16,
    /// Part downwards; negative: upwards.
    pub y: i16,
}

impl FlowVector {
    /// The vector at the next finer level: twice as long.
    fn doubled(self) -> Self {
        Self { x: self.x.saturating_mul(2), y: self.y.saturating_mul(2) }
    }
}

/// How thoroughly flow is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSettings {
    /// Distance from one patch to the next: 2, 4, 6 or 8 samples. Other values are rounded down to one of these, and
    /// less than 2 is 2.
    pub stride: usize,
    /// Maximum number of steps of a patch's descent at the finest level; twice as many at others.
    pub iterations: usize,
}

impl Default for FlowSettings {
    /// The defaults: compared with them, a stride of 2 gains 2 % more in four times the time. One of 6 loses 2 to 5 %
    /// in half the time.
    fn default() -> Self {
        Self { stride: 4, iterations: 4 }
    }
}

/// The flow of a picture: one vector for each cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flow {
    columns: usize,
    rows: usize,
    vectors: Vec<FlowVector>,
}

impl Flow {
    /// Number of cells in a row; the last one may reach beyond the picture's edge.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows of cells; the last one may reach beyond the picture's edge.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The vectors, row by row.
    pub fn vectors(&self) -> &[FlowVector] {
        &self.vectors
    }

    /// The vectors of a row of cells.
    pub fn row(&self, row: usize) -> &[FlowVector] {
        &self.vectors[row * self.columns..][..self.columns]
    }

    fn resize(&mut self, width: usize, height: usize) {
        (self.columns, self.rows) = (width.div_ceil(CELL), height.div_ceil(CELL));
        self.vectors.resize(self.columns * self.rows, FlowVector::default());
    }
}

/// Searches for the flow of pictures to one reference. Nothing is allocated once there has been a picture of the
/// size.
#[derive(Debug, Clone, Default)]
pub struct FlowSearch {
    settings: FlowSettings,
    reference: Pyramid,
    now: Pyramid,
    /// The pyramid of the last picture that was searched for.
    former: Pyramid,
    /// Whether `former` and `grids` are of a search in this reference.
    searched: bool,
    grids: [Grid; MAX_LEVELS],
    sums: Sums,
    flow: Flow,
}

impl FlowSearch {
    /// A search without a reference.
    pub fn new(settings: FlowSettings) -> Self {
        let mut search = Self::default();
        search.set(settings);
        search
    }

    /// Searches with these settings from now on. If they differ from the former ones, nothing of the last search is
    /// reused.
    pub fn set(&mut self, settings: FlowSettings) {
        let settings = FlowSettings { stride: settings.stride.clamp(2, 8) & !1, ..settings };
        self.searched &= settings == self.settings;
        self.settings = settings;
    }

    /// Sets the reference: the picture to search in.
    ///
    /// # Errors
    ///
    /// Fails if a side is below [`MIN_SIDE`] or beyond [`MAX_SIDE`], or there are fewer samples than the size says.
    pub fn set_reference(&mut self, picture: Samples<'_>) -> Result<(), FlowError> {
        self.searched = false;
        self.reference.fill(picture)
    }

    /// The flow from the picture `now` to the reference: one vector for each cell.
    ///
    /// # Errors
    ///
    /// Fails if there is no reference of this size, or there are fewer samples than the size says.
    pub fn search(&mut self, isa: Isa, now: Samples<'_>) -> Result<&Flow, FlowError> {
        if now.size() != self.reference.size() {
            return Err(FlowError::Reference);
        }
        std::mem::swap(&mut self.now, &mut self.former);
        if let Err(e) = self.now.fill(now) {
            self.searched = false;
            return Err(e);
        }
        let levels = self.now.levels().iter().zip(self.reference.levels()).enumerate();
        for (n, (now, reference)) in levels.rev() {
            let (finer, coarser) = self.grids.split_at_mut(n + 1);
            let grid = &mut finer[n];
            if !self.searched {
                grid.lay(now, self.settings.stride);
            }
            let task = Task {
                now,
                former: self.searched.then(|| &self.former.levels()[n]),
                reference,
                halved: n as u32,
                coarser: (n + 1 < self.now.levels().len()).then(|| &coarser[0]),
                // Large motion is found where patches are few.
                iterations: self.settings.iterations.saturating_mul(if n > 0 { 2 } else { 1 }),
                weigh: n == 0,
                grid,
            };
            task.run(isa);
        }
        self.searched = true;
        self.flow.resize(now.width, now.height);
        self.sums.densify(&self.grids[0], self.flow.columns, &mut self.flow.vectors);
        Ok(&self.flow)
    }
}
