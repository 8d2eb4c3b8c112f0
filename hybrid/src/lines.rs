//! Rows of samples in memory.

/// The rows of a picture from some sample on, up to the end of the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub data: &'a [u8],
    /// Distance from row to row, in samples.
    pub stride: usize,
}
