//! Streams that tests have coded.

use std::process::Command;

use bytes::Bytes;

/// What to say where `ffmpeg` cannot make a stream.
pub(crate) const NO_ENCODER: &str = "no ffmpeg with libvpx-vp9 (Debian's package ffmpeg)";

/// The frames of the IVF file that a command writes; where it cannot, the test counts as skipped.
pub(crate) fn coded(command: &mut Command) -> Option<Vec<Bytes>> {
    let output = command.output();
    let frames = output.ok().filter(|o| o.status.success()).map(|o| {
        let frames = windlass_files::ivf::frames(&o.stdout);
        frames.into_iter().map(Bytes::copy_from_slice).collect()
    });
    if frames.is_none() {
        windlass_skips::skip(NO_ENCODER);
    }
    frames
}
