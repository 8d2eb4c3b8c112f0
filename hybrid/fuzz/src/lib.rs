//! What the fuzz targets share: the container of chunks, what a chunk is, changes to it, checks of decoded
//! frames.

pub mod check;
pub mod container;
pub mod hybrid;
pub mod mutate;

use windlass_hybrid::vp9::SizeLimit;

/// Small pictures keep runs fast; the width still allows four tile columns.
pub const LIMIT: SizeLimit = SizeLimit { area: 176 * 128, side: 2048 };
/// Chunks of one input that are looked at.
pub const MOST_CHUNKS: usize = 16;
/// Luma samples of one input after which its remaining chunks are left out.
pub const MOST_SAMPLES: u64 = 24 * LIMIT.area;
