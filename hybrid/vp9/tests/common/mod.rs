//! What the tests of this crate share: reading IVF files.

/// The frames of an IVF file.
pub(crate) fn ivf(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = &bytes[32..];
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (frame, next) = tail.split_at(size);
        frames.push(frame);
        rest = next;
    }
    frames
}

/// As in a call: 161×91, real-time settings.
pub(crate) const REALTIME: &[u8] = include_bytes!("../fixtures/realtime.ivf");
/// Hidden frames and compound prediction: 160×96, two passes with alternate references.
pub(crate) const ALTREF: &[u8] = include_bytes!("../fixtures/altref.ivf");
