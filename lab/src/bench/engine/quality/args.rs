//! The part of `windlass-lab bench engine`'s command line that is about quality.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::eval::args::ClipSpec;
use crate::eval::clip::{Fps, Wanted};
use crate::eval::scale::Scale;

/// What is compared on clips.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Quality")]
pub(crate) struct QualityArgs {
    /// Run trained networks on every frame of these clips, coded and decoded as in a call. Clips are written as in
    /// `windlass-lab eval`: a file, then after an @ crop=W:H:X:Y, height=LINES, screen, name=NAME.
    #[arg(long, num_args = 1.., value_name = "CLIP[@OPTION,…]")]
    pub quality: Vec<ClipSpec>,

    /// The networks (safetensors) [default: models/*.safetensors and those that are built in].
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "quality")]
    pub models: Vec<PathBuf>,

    /// Bit rates of the low layer in kbit/s.
    #[arg(long, value_delimiter = ',', value_name = "K,…", default_values = ["150", "300"], requires = "quality")]
    pub uplink: Vec<NonZeroU32>,

    /// Height of the original picture; larger clips are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "360", value_name = "LINES", requires = "quality")]
    pub height: NonZeroU32,

    /// Use only the first seconds of each clip.
    #[arg(long, default_value_t = 4.0, value_name = "S", requires = "quality")]
    pub clip_seconds: f64,

    /// Write a picture (PNG) of each clip into this folder, with a text that says what stands where: the part with the
    /// most detail of the frame in the middle, at the highest uplink, as source, bicubic, lanczos@0.3 and every network
    /// show it.
    #[arg(long, value_name = "FOLDER", requires = "quality")]
    pub crops: Option<PathBuf>,

    /// Show the part that begins here, in samples of the original picture, instead.
    #[arg(long, value_name = "X,Y", requires = "crops")]
    pub crop_at: Option<At>,

    /// The ffmpeg to use; one with libvmaf adds VMAF.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,
}

/// A place in a picture, in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub x: usize,
    pub y: usize,
}

impl QualityArgs {
    /// Checks the arguments that clap cannot check.
    pub(crate) fn check(&self) -> Result<()> {
        let seconds = self.clip_seconds;
        ensure!(
            seconds > 0.0 && seconds.is_finite(),
            "--clip-seconds must be more than 0, not {seconds}"
        );
        let own = self.quality.iter().filter_map(|clip| clip.height);
        for height in own.chain([self.height]) {
            ensure!(height.get() >= 64, "--height must be at least 64 lines, not {height}");
        }
        Ok(())
    }

    /// The part of a clip that is used, at a scale.
    pub(crate) fn wanted(&self, spec: &ClipSpec, scale: Scale) -> Wanted {
        Wanted {
            crop: spec.crop,
            height: spec.height.unwrap_or(self.height).get(),
            seconds: Some(self.clip_seconds),
            fps: Fps::Auto,
            scale,
        }
    }

    /// Bitrates in kbit/s, each once, the lowest first.
    pub(crate) fn uplinks(&self) -> Vec<u32> {
        let mut uplinks: Vec<u32> = self.uplink.iter().map(|kbps| kbps.get()).collect();
        uplinks.sort_unstable();
        uplinks.dedup();
        uplinks
    }
}

impl FromStr for At {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<At> {
        let shape = || format!("a place is X,Y in samples, as 240,96, not {text:?}");
        let (x, y) = text.split_once(',').with_context(shape)?;
        Ok(At { x: x.parse().with_context(shape)?, y: y.parse().with_context(shape)? })
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::engine::EngineArgs;

    fn checked(more: &[&str]) -> anyhow::Result<Vec<u32>> {
        let args = EngineArgs::parsed(&[&["--quality", "a.mp4"], more].concat())?.quality;
        args.check().map(|()| args.uplinks())
    }

    #[test]
    fn rates_are_sorted_and_what_makes_no_sense_is_refused_by_its_option() {
        assert_eq!(checked(&[]).unwrap(), [150, 300]);
        assert_eq!(checked(&["--uplink", "300,80,300"]).unwrap(), [80, 300]);
        let error = |more: &[&str]| checked(more).unwrap_err().to_string();
        assert!(error(&["--clip-seconds", "0"]).contains("--clip-seconds"));
        assert!(error(&["--height", "20"]).contains("--height"));
    }
}
