//! Rows of samples in memory.

/// Samples that begin at a place in a picture, and what lies behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub data: &'a [u8],
    /// Samples from row to row.
    pub stride: usize,
}
