//! The command line of `windlass bench anchors`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::eval::args::{Crop, Fps};

/// Code the anchors of clips by every codec: bytes, processor time and quality of the detail.
#[derive(Debug, Clone, Args)]
pub struct AnchorsArgs {
    /// Video files; anything that ffmpeg reads.
    #[arg(required = true, value_name = "CLIP")]
    pub clips: Vec<PathBuf>,

    /// Part of the picture to use, as width:height:x:y in source pixels.
    #[arg(long, value_name = "W:H:X:Y")]
    pub crop: Option<Crop>,

    /// Height of the original (HR) picture; larger sources are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "360", value_name = "LINES")]
    pub height: NonZeroU32,

    /// Use only the first seconds of each clip.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Frames per second of the call: `auto` takes the clip's own.
    #[arg(long, default_value = "auto", value_name = "auto|N")]
    pub fps: Fps,

    /// Bit rates of the low (LR) layer in kbit/s.
    #[arg(long, value_delimiter = ',', default_value = "150,300", value_name = "K,…")]
    pub uplink: Vec<NonZeroU32>,

    /// Anchors per second.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N,…")]
    pub rate: Vec<f64>,

    /// Whose detail the anchors give.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Source::Sr, Source::Original],
          value_name = "SOURCE,…")]
    pub detail: Vec<Source>,

    /// libvpx's speed for the anchor stream, 0 to 9.
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub speed: u8,

    /// Binary logarithm of the stream's gain, 0 to 3; chosen by content unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub gain: Option<u8>,

    /// Bytes of every anchor; qualities are swept unless given.
    #[arg(long, value_delimiter = ',', value_name = "BYTES,…")]
    pub budget: Vec<usize>,

    /// The clips show shared screens.
    #[arg(long)]
    pub screen: bool,

    /// Measure what lost anchors cost instead, at this share of anchors lost.
    #[arg(long)]
    pub loss: bool,

    /// Share of anchors that `--loss` loses.
    #[arg(long, default_value_t = 0.05, value_name = "F")]
    pub lost: f64,

    /// Measure the work against encoding all HR frames anew instead, at 3840x2160 and 60 frames/s:
    /// the clip is mirrored and repeated side by side to that size, not scaled.
    #[arg(long)]
    pub reencode: bool,

    /// libvpx's speed for that, 0 to 9.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub reencode_speed: u8,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,

    /// The ffmpeg that reads the clips.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,
}

impl AnchorsArgs {
    /// Checks what clap cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.height.get() >= 64, "--height must be at least 64 lines, not {}", self.height);
        ensure!(
            self.rate.iter().all(|r| (0.01..=60.0).contains(r)),
            "--rate is anchors per second, from 0.01 to 60"
        );
        ensure!((0.0..=1.0).contains(&self.lost), "--lost is a share, from 0 to 1");
        Ok(())
    }
}

/// Whose detail anchors give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// The network's.
    Sr,
    /// The original picture's.
    Original,
}

impl Source {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sr => "sr",
            Self::Original => "original",
        }
    }
}
