//! What a stream takes of the memory, by the size of its pictures: measured, and what is counted for it when it is admitted.
//!
//! Its decoder's pictures, those that its history keeps for late anchors, fields and infos, and what its twin paints: all grow with the
//! pixels of the low layer. Measured by `cargo run --release -p windlass-enhancer --example stream_memory`, which counts what is allocated.

/// Bytes of a stream whatever its size: threads' stacks, queues, tables.
const FIXED: u64 = 2 << 20;
/// Bytes for each pixel of the low layer.
const BY_PIXEL: u64 = 100;
/// Bytes for each pixel of the publisher's own larger pictures, where they are decoded.
const BY_LARGER: u64 = 50;

/// Bytes that a stream takes whose low pictures and own larger ones have so many pixels (0: there are none).
pub const fn of(pixels: u64, larger: u64) -> u64 {
    FIXED
        .saturating_add(pixels.saturating_mul(BY_PIXEL))
        .saturating_add(larger.saturating_mul(BY_LARGER))
}
