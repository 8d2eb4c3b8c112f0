//! A small low layer for tests.

/// See `enhancer/examples/low_layer.rs`.
const FRAMES: &[u8] = include_bytes!("../../tests/fixtures/low_layer.bin");

/// Its eight frames, of 96 × 64 samples.
pub(crate) fn low_layer() -> Vec<Vec<u8>> {
    let (mut rest, mut out) = (FRAMES, Vec::new());
    while let Some((size, tail)) = rest.split_first_chunk::<2>() {
        let (frame, next) = tail.split_at(usize::from(u16::from_be_bytes(*size)));
        out.push(frame.to_vec());
        rest = next;
    }
    out
}
