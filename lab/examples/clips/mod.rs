//! Clips for measurements: the original, and the low layer as a publisher would send it.

use std::process::Command;

use windlass_vp9::PlaneSize;

/// A clip.
#[derive(Clone, Copy)]
pub(crate) struct Clip {
    pub name: &'static str,
    pub file: &'static str,
    /// The filter that crops it, with a comma behind it.
    pub crop: &'static str,
    /// Size in HR samples.
    pub size: PlaneSize,
}

const fn clip(
    name: &'static str,
    file: &'static str,
    crop: &'static str,
    width: usize,
    height: usize,
) -> Clip {
    Clip { name, file, crop, size: PlaneSize::new(width, height) }
}

/// Clips with people, cropped as the probe of flow and the training of the built-in filters had them.
pub(crate) const CLIPS: [Clip; 5] = [
    clip("d13", "LivePortrait__d13.mp4", "crop=720:405:0:300,", 640, 360),
    clip("demo2", "LatentSync__assets_demo2_video.mp4", "crop=1080:608:0:100,", 640, 360),
    clip("demo1", "LatentSync__assets_demo1_video.mp4", "crop=1080:608:0:480,", 640, 360),
    clip("d6", "LivePortrait__d6.mp4", "crop=480:272:0:60,", 480, 272),
    clip("s18", "LivePortrait__s18.mp4", "", 960, 540),
];

/// The first six seconds: the originals as I420, one behind the other, and the low layer's VP9 frames
/// (`scale` times smaller, libvpx in real time at 300 kbit/s, one key frame).
pub(crate) fn coded(clip: Clip, scale: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let Clip { file, crop, size: PlaneSize { width: w, height: h }, .. } = clip;
    let clip = windlass_files::clip(file);
    let ffmpeg = |filter: &str, more: &str| {
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-threads", "1", "-t", "6", "-i"])
            .arg(&clip)
            .args(["-vf", filter, "-an"])
            .args(more.split(' '))
            .arg("-")
            .output()
            .expect("ffmpeg runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    let high = format!("{crop}scale={w}:{h}:flags=area,format=yuv420p");
    let low = format!("{high},scale={}:{}:flags=area", w / scale, h / scale);
    let originals = ffmpeg(&high, "-f rawvideo");
    let ivf = ffmpeg(
        &low,
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v 300k -lag-in-frames 0 -g 9999 -f ivf",
    );
    let frames = windlass_files::ivf::frames(&ivf).into_iter().map(<[u8]>::to_vec).collect();
    (originals, frames)
}
