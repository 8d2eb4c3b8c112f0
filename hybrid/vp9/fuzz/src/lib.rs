//! What fuzz targets of VP9 share: the container of chunks, changes to it, checks of decoded frames, streams that
//! seeds are cut from.

pub mod check;
pub mod container;
pub mod mutate;
pub mod streams;

use windlass_vp9::SizeLimit;

/// Small pictures keep runs fast; the width still allows four tile columns.
pub const LIMIT: SizeLimit = SizeLimit { area: 176 * 128, side: 2048 };
/// Chunks of one input that are looked at.
pub const MAX_CHUNKS: usize = 16;
/// Luma samples of one input after which its remaining chunks are left out.
pub const MAX_SAMPLES: u64 = 24 * LIMIT.area;
