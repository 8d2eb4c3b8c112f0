//! The command line of `windlass eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;
use windlass_enhancer::EnhancerConfig;

/// Run the product's pipeline over recorded clips and score it against the original.
///
/// Every clip is scaled down to an HR size, halved, encoded as Chromium encodes a camera, decoded,
/// enhanced and rebuilt. Runs repeat exactly: nothing depends on the clock but the `…_ms` columns.
#[derive(Debug, Clone, Args)]
pub struct EvalArgs {
    /// Video files; anything that ffmpeg reads.
    #[arg(required = true, value_name = "CLIP")]
    pub clips: Vec<PathBuf>,

    /// Part of the picture to use, as width:height:x:y in source pixels.
    #[arg(long, value_name = "W:H:X:Y")]
    pub crop: Option<Crop>,

    /// Height of the original (HR) picture; larger sources are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "540", value_name = "LINES")]
    pub height: NonZeroU32,

    /// Use only the first seconds of each clip.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Frames per second of the call: `auto` takes the clip's own. Frames are never dropped or doubled.
    #[arg(long, default_value = "auto", value_name = "auto|N")]
    pub fps: Fps,

    /// Bit rates of the low (LR) layer in kbit/s.
    #[arg(long, value_delimiter = ',', default_value = "150,300", value_name = "K,…")]
    pub uplink: Vec<NonZeroU32>,

    /// Share of frames that become anchors; as `serve` has it unless given.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_fraction, value_name = "F")]
    pub anchor_fraction: f64,

    /// Quality (1 to 100) of the coded anchors; as `serve` has it unless given.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_quality, value_name = "Q",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub anchor_quality: u8,

    /// How long after its frame an anchor can be used.
    #[arg(long, default_value_t = 130, value_name = "MS")]
    pub delay_ms: u32,

    /// The clips show shared screens: encode them as Chromium encodes a screen.
    #[arg(long)]
    pub screen: bool,

    /// Run only these methods.
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…")]
    pub methods: Vec<super::methods::Method>,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,

    /// Write crops side by side (PNG) into this folder.
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,

    /// The ffmpeg to use; one with libvmaf adds the VMAF columns.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,
}

impl EvalArgs {
    /// Checks what clap cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(
            (0.0..=1.0).contains(&self.anchor_fraction),
            "--anchor-fraction is a share of the frames, from 0 to 1, not {}",
            self.anchor_fraction
        );
        if let Some(seconds) = self.seconds {
            ensure!(
                seconds > 0.0 && seconds.is_finite(),
                "--seconds must be more than 0, not {seconds}"
            );
        }
        ensure!(self.height.get() >= 64, "--height must be at least 64 lines, not {}", self.height);
        Ok(())
    }
}

/// A rectangle of the source picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// Left edge.
    pub x: u32,
    /// Top edge.
    pub y: u32,
}

impl FromStr for Crop {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Crop> {
        let numbers: Vec<u32> =
            text.split(':').map(str::parse).collect::<Result<_, _>>().with_context(|| {
                format!("a crop is width:height:x:y in pixels, as 1080:608:0:100, not {text:?}")
            })?;
        let &[width, height, x, y] = numbers.as_slice() else {
            bail!("a crop has four numbers, width:height:x:y, not {}", numbers.len());
        };
        ensure!(
            width >= 64 && height >= 64,
            "a crop of {width}x{height} is too small: both sides must be at least 64"
        );
        Ok(Crop { width, height, x, y })
    }
}

/// Frame rate of the simulated call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fps {
    /// The clip's own.
    Auto,
    /// Frames per second, whatever the clip says.
    Fixed(f64),
}

impl FromStr for Fps {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Fps> {
        if text == "auto" {
            return Ok(Fps::Auto);
        }
        let fps: f64 =
            text.parse().with_context(|| format!("--fps is `auto` or a number, not {text:?}"))?;
        ensure!((1.0..=120.0).contains(&fps), "--fps must be from 1 to 120, not {fps}");
        Ok(Fps::Fixed(fps))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        eval: EvalArgs,
    }

    fn parse(args: &[&str]) -> Result<EvalArgs, clap::Error> {
        Cli::try_parse_from([&["eval"], args].concat()).map(|cli| cli.eval)
    }

    #[test]
    fn a_crop_is_four_numbers() {
        assert_eq!(
            "720:405:0:300".parse::<Crop>().unwrap(),
            Crop { width: 720, height: 405, x: 0, y: 300 }
        );
        for wrong in ["", "720:405:0", "720:405:0:300:1", "a:b:c:d", "-1:405:0:0", "10:10:0:0"] {
            assert!(wrong.parse::<Crop>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_product() {
        let args = parse(&["a.mp4"]).unwrap();
        assert_eq!(args.uplink.iter().map(|k| k.get()).collect::<Vec<_>>(), [150, 300]);
        assert_eq!((args.height.get(), args.delay_ms, args.fps), (540, 130, Fps::Auto));
        assert!(args.check().is_ok());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a.mp4", "--fps", "0"]).is_err());
        assert!(parse(&["a.mp4", "--uplink", "0"]).is_err());
        assert!(parse(&["a.mp4", "--anchor-quality", "0"]).is_err());
        assert!(parse(&["a.mp4", "--anchor-fraction", "1.5"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4", "--seconds", "0"]).unwrap().check().is_err());
        assert!(parse(&["a.mp4", "--height", "10"]).unwrap().check().is_err());
    }
}
