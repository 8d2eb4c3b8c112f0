//! The command line of `windlass-lab bench hybrid`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::bench::vp9::args::{Preset, Vp9Args};
use crate::output::Output;

/// Rebuild HR pictures in one thread, against libvpx decoding VP9 of the output's size.
///
/// Low layers and their peers are made of a clip as `bench vp9` makes its streams. An anchor a second,
/// of the peer's own detail, is taken in, four frames late. Both take turns, and each frame counts with the
/// least time it took in any pass.
#[derive(Debug, Clone, Args)]
pub(crate) struct HybridArgs {
    /// What to measure.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASE,…",
          default_values_t = Case::ALL)]
    pub cases: Vec<Case>,

    /// How often every stream is decoded.
    #[arg(long, default_value = "5", value_name = "N")]
    pub passes: NonZeroU32,

    /// Length of the streams, at 30 frames per second.
    #[arg(long, default_value = "10", value_name = "S",
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,

    /// Clip to make them from; else LivePortrait__s18.mp4 in the folder WINDLASS_CLIPS.
    #[arg(long, value_name = "FILE")]
    pub clip: Option<PathBuf>,

    /// Folder that keeps made streams; one in the temporary folder unless given.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// The ffmpeg that reads the clip.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

impl HybridArgs {
    /// What makes the streams of a case: the low layer, then its peer.
    pub(crate) fn streams(&self, case: Case) -> Vp9Args {
        let (low, high, _) = case.shape();
        Vp9Args {
            files: Vec::new(),
            streams: vec![low, high],
            passes: self.passes,
            seconds: self.seconds,
            clip: self.clip.clone(),
            crop: None,
            keep: self.keep.clone(),
            wasm: false,
            module: PathBuf::new(),
            node: PathBuf::new(),
            ffmpeg: self.ffmpeg.clone(),
            output: self.output.clone(),
        }
    }
}

/// A low layer and an output size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// 360p at 500 kbit/s to 720p; the peer has 1.5 Mbit/s.
    #[value(name = "360p-720p")]
    To720,
    /// 360p at 500 kbit/s to 1080p; the peer has 3 Mbit/s.
    #[value(name = "360p-1080p")]
    To1080,
    /// 720p at 1.5 Mbit/s to 2160p; the peer has 12 Mbit/s. Both of mirrored pictures.
    #[value(name = "720p-2160p")]
    To2160,
}

impl Case {
    const ALL: [Case; 3] = [Case::To720, Case::To1080, Case::To2160];

    /// The low layer, its peer, and the scale between them.
    pub(crate) fn shape(self) -> (Preset, Preset, usize) {
        match self {
            Case::To720 => (Preset::P360, Preset::P720, 2),
            Case::To1080 => (Preset::P360, Preset::P1080, 3),
            Case::To2160 => (Preset::P2160Third, Preset::P2160, 3),
        }
    }

    /// Name of the case in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Case::To720 => "360p-720p",
            Case::To1080 => "360p-1080p",
            Case::To2160 => "720p-2160p",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_layer_and_its_peer_differ_by_the_scale() {
        for case in Case::ALL {
            let (low, high, scale) = case.shape();
            let ((w, h, _), (hr_w, hr_h, _)) = (low.shape(), high.shape());
            assert_eq!((w * scale, h * scale), (hr_w, hr_h), "{}", case.name());
        }
    }
}
