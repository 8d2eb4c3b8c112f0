//! Streams that tests have coded.

use std::process::Command;

use bytes::Bytes;

/// What to say where `ffmpeg` cannot make a stream.
pub(crate) const NO_ENCODER: &str = "no ffmpeg with libvpx-vp9 (Debian's package ffmpeg)";

/// The frames of the IVF file that a command writes; where it cannot, the test counts as skipped.
pub(crate) fn coded(command: &mut Command) -> Option<Vec<Bytes>> {
    let output = command.output();
    let frames = output.ok().filter(|o| o.status.success()).map(|o| ivf_frames(&o.stdout));
    if frames.is_none() {
        windlass_skips::skip(NO_ENCODER);
    }
    frames
}

/// The frames of an IVF file: a header of 32 bytes, then 12 bytes before each frame.
fn ivf_frames(file: &[u8]) -> Vec<Bytes> {
    let mut rest = &file[32..];
    let mut frames = Vec::new();
    while let Some((header, data)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        frames.push(Bytes::copy_from_slice(&data[..size]));
        rest = &data[size..];
    }
    frames
}
