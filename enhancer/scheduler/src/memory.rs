//! Memory per stream by picture size. Admission uses it.
//!
//! A stream holds its decoder's pictures, a history of pictures for late anchors, references, and the twin's picture.
//! All of them grow with the pixels of the low layer, except the history, which keeps fewer large pictures. `cargo run
//! --release -p windlass-lab --example stream_memory` measures all allocations, including a network's: 5.6 MiB at
//! 160×90, 9.6 at 320×180, 35.4 at 640×360 and 53.3 at 960×540. With the publisher's own larger pictures it is 21.1 at
//! 320×180 and 61.5 at 640×360. Admission counts more than that: a twin may have six references, of seven bytes per low
//! pixel each, and those runs had at most three.

/// Bytes of a stream of any size: queues, tables and the used part of a thread's stack. Fitted to the runs above.
const FIXED: u64 = 3_513_000;
/// Bytes per pixel of the low layer, without the history.
const BY_PIXEL: u64 = 94;
/// Bytes per pixel of the history's 48 pictures.
const KEPT_BY_PIXEL: u64 = 72;
/// Maximum bytes of the history's pictures: it keeps fewer of large ones.
const MAX_KEPT: u64 = 16_500_000;
/// Bytes per pixel of the publisher's own larger pictures, where they are decoded.
const BY_LARGER: u64 = 40;

/// Memory of a stream, in bytes. `pixels` is the size of its low pictures, `larger` that of the publisher's own larger
/// ones (0: there are none).
pub const fn of(pixels: u64, larger: u64) -> u64 {
    let kept = pixels.saturating_mul(KEPT_BY_PIXEL);
    let kept = if kept < MAX_KEPT { kept } else { MAX_KEPT };
    FIXED
        .saturating_add(pixels.saturating_mul(BY_PIXEL))
        .saturating_add(kept)
        .saturating_add(larger.saturating_mul(BY_LARGER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_less_is_counted_than_was_measured() {
        for (width, height, larger, mib) in [
            (160, 90, false, 5.6),
            (320, 180, false, 9.6),
            (640, 360, false, 35.4),
            (960, 540, false, 53.3),
            (320, 180, true, 21.1),
            (640, 360, true, 61.5),
        ] {
            let pixels = width * height;
            let counted = of(pixels, if larger { 4 * pixels } else { 0 }) as f64 / 1_048_576.0;
            assert!(counted >= mib && counted < 1.3 * mib, "{width}x{height}: {counted} of {mib}");
        }
    }
}
