//! The parts that fuzz targets of VP9 share: the container of chunks, changes to it, checks of decoded frames, and
//! streams that seeds are cut from.

pub mod check;
pub mod container;
pub mod mutate;
pub mod streams;

use windlass_vp9::SizeLimit;

/// The size limit of the decoders. Small pictures keep runs fast; the width still allows four tile columns.
pub const LIMIT: SizeLimit = SizeLimit { area: 176 * 128, side: 2048 };
/// Maximum number of chunks of one input that are decoded.
pub const MAX_CHUNKS: usize = 16;
/// Number of luma samples of one input after which its remaining chunks are left out.
pub const MAX_SAMPLES: u64 = 24 * LIMIT.area;
