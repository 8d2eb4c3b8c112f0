//! Probabilities: the tables that frames pass on (specification §10.5), the trees that use them (§9.3.1), the counts
//! of decoded symbols (§8.4.1) and the adaptation by them (§8.4.2 – §8.4.4).

mod adaptation;
mod counts;
pub(crate) mod defaults;
mod pareto;
pub(crate) mod trees;

pub(crate) use counts::{CoefficientCounts, Counts, MotionCounts};
pub(crate) use pareto::PARETO;

/// Probabilities of the first three nodes of the token tree, by transform size, plane type (luma, chroma), intra or
/// inter, band and context.
pub(crate) type CoefficientProbs = [[[[[[u8; 3]; 6]; 6]; 2]; 2]; 4];

/// Probabilities of one component of a motion vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MotionProbs {
    pub(crate) sign: u8,
    pub(crate) class: [u8; 10],
    pub(crate) class0: u8,
    pub(crate) bits: [u8; 10],
    pub(crate) class0_fraction: [[u8; 3]; 2],
    pub(crate) fraction: [u8; 3],
    pub(crate) class0_high: u8,
    pub(crate) high: u8,
}

/// Every probability that is saved and loaded between frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameContext {
    pub(crate) tx_8x8: [[u8; 1]; 2],
    pub(crate) tx_16x16: [[u8; 2]; 2],
    pub(crate) tx_32x32: [[u8; 3]; 2],
    pub(crate) coefficients: CoefficientProbs,
    pub(crate) skip: [u8; 3],
    pub(crate) inter_mode: [[u8; 3]; 7],
    pub(crate) interp_filter: [[u8; 2]; 4],
    pub(crate) is_inter: [u8; 4],
    pub(crate) compound: [u8; 5],
    pub(crate) single_reference: [[u8; 2]; 5],
    pub(crate) compound_reference: [u8; 5],
    pub(crate) y_mode: [[u8; 9]; 4],
    pub(crate) uv_mode: [[u8; 9]; 10],
    pub(crate) partition: [[u8; 3]; 16],
    pub(crate) motion_joint: [u8; 3],
    /// Probabilities of rows (vertical components), then of columns.
    pub(crate) motion: [MotionProbs; 2],
}

impl Default for FrameContext {
    fn default() -> Self {
        defaults::DEFAULT_CONTEXT.clone()
    }
}
