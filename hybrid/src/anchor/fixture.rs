//! Fixtures for tests.

/// A small low layer: eight frames of 96 × 64 samples. `lab/examples/low_layer.rs` makes the file, which has
/// each frame behind its length (u16, big endian).
pub(crate) fn low_layer() -> Vec<Vec<u8>> {
    let mut rest: &[u8] = include_bytes!("../../tests/fixtures/low_layer.bin");
    let mut out = Vec::new();
    while let Some((size, tail)) = rest.split_first_chunk::<2>() {
        let (part, next) = tail.split_at(usize::from(u16::from_be_bytes(*size)));
        out.push(part.to_vec());
        rest = next;
    }
    out
}
