//! VP9 as Chromium codes a camera's layer.

use std::process::Command;

use bytes::Bytes;

use crate::common::coded;

/// Three seconds at 30 frames a second of what `ffmpeg` is told to read, the first frame a key frame; where it cannot,
/// the reason is printed.
pub(crate) fn three_seconds(ffmpeg: &mut Command, kbps: u32) -> Option<Vec<Bytes>> {
    let arguments = format!(
        "-frames:v 90 -pix_fmt yuv420p -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v {kbps}k \
         -minrate {kbps}k -maxrate {kbps}k -g 9999 -lag-in-frames 0 -error-resilient 1 \
         -auto-alt-ref 0 -f ivf pipe:1"
    );
    coded(ffmpeg.args(arguments.split_whitespace()))
}
