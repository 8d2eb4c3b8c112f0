//! Counts of how often each symbol was decoded in a frame (specification §8.4.1, §9.3.4).

/// Counts of tokens by band and context: tokens zero, one, more, and "no more tokens".
pub(crate) type TokenCounts = [[[u32; 4]; 6]; 6];

/// Counts of coefficient tokens for one transform size, plane type and kind of prediction.
#[derive(Debug, Clone, Default)]
pub(crate) struct CoefficientCounts {
    pub(crate) tokens: TokenCounts,
    /// How often the question "more tokens?" was asked, by band and context.
    pub(crate) asked: [[u32; 6]; 6],
}

/// Counts of one component of motion vectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct MotionCounts {
    pub(crate) sign: [u32; 2],
    pub(crate) class: [u32; 11],
    pub(crate) class0: [u32; 2],
    pub(crate) bits: [[u32; 2]; 10],
    pub(crate) class0_fraction: [[u32; 4]; 2],
    pub(crate) fraction: [u32; 4],
    pub(crate) class0_high: [u32; 2],
    pub(crate) high: [u32; 2],
}

/// All counts of a frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Counts of tokens by transform size, plane type, intra or inter.
    pub(crate) coefficients: [[[CoefficientCounts; 2]; 2]; 4],
    pub(crate) tx_8x8: [[u32; 2]; 2],
    pub(crate) tx_16x16: [[u32; 3]; 2],
    pub(crate) tx_32x32: [[u32; 4]; 2],
    pub(crate) skip: [[u32; 2]; 3],
    pub(crate) inter_mode: [[u32; 4]; 7],
    pub(crate) interp_filter: [[u32; 3]; 4],
    pub(crate) is_inter: [[u32; 2]; 4],
    pub(crate) compound: [[u32; 2]; 5],
    pub(crate) single_reference: [[[u32; 2]; 2]; 5],
    pub(crate) compound_reference: [[u32; 2]; 5],
    pub(crate) y_mode: [[u32; 10]; 4],
    pub(crate) uv_mode: [[u32; 10]; 10],
    pub(crate) partition: [[u32; 4]; 16],
    pub(crate) motion_joint: [u32; 4],
    pub(crate) motion: [MotionCounts; 2],
}
