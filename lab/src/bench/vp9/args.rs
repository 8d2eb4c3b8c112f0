//! The command line of `windlass-lab bench vp9`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::eval::clip::Crop;
use crate::output::Output;

/// Decode VP9 in one thread, natively and as WebAssembly, against libvpx.
///
/// Every decoder decodes every stream in turn, and each frame counts with the least time it took in
/// any pass. Without FILES the streams are made from a clip as Chromium encodes a camera, and kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct Vp9Args {
    /// IVF files of VP9 to use instead of streams made here.
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// Streams to make.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SIZE,…",
          default_values_t = Preset::ALL, conflicts_with = "files")]
    pub streams: Vec<Preset>,

    /// How often every decoder decodes every stream.
    #[arg(long, default_value = "5", value_name = "N")]
    pub passes: NonZeroU32,

    /// Length of the streams to make, at 30 frames per second.
    #[arg(long, default_value = "10", value_name = "S",
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,

    /// Clip to make them from, played again and again when it is shorter; else
    /// LivePortrait__s18.mp4 in the folder WINDLASS_CLIPS.
    #[arg(long, value_name = "FILE")]
    pub clip: Option<PathBuf>,

    /// Part of the clip's picture to use, as width:height:x:y in its pixels; best of the shape 16:9.
    #[arg(long, value_name = "W:H:X:Y")]
    pub crop: Option<Crop>,

    /// Folder that keeps made streams; one in the temporary folder unless given.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// Also run the WebAssembly module in Node.
    #[arg(long)]
    pub wasm: bool,

    /// The WebAssembly module, as `cargo xtask wasm` builds it.
    #[arg(long, default_value = "client-web/dist/windlass.wasm", value_name = "FILE")]
    pub module: PathBuf,

    /// The Node to run it in.
    #[arg(long, default_value = "node", value_name = "PATH")]
    pub node: PathBuf,

    /// The ffmpeg that reads the clip.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

/// A stream to make: size and rate of one rung of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 320x180 at 150 kbit/s.
    #[value(name = "180p")]
    P180,
    /// 640x360 at 500 kbit/s.
    #[value(name = "360p")]
    P360,
    /// 1280x720 at 1.5 Mbit/s.
    #[value(name = "720p")]
    P720,
    /// 1920x1080 at 3 Mbit/s.
    #[value(name = "1080p")]
    P1080,
    /// 3840x2160 at 12 Mbit/s: nine 720p pictures, mirrored, as there is no larger clip.
    #[value(name = "2160p")]
    P2160,
    /// A third of that, 1280x720 at 1.5 Mbit/s.
    #[value(name = "2160p-third")]
    P2160Third,
}

impl Preset {
    const ALL: [Preset; 4] = [Preset::P180, Preset::P360, Preset::P720, Preset::P1080];

    /// Width and height in pixels, and kbit/s.
    pub(crate) fn shape(self) -> (usize, usize, u32) {
        match self {
            Preset::P180 => (320, 180, 150),
            Preset::P360 => (640, 360, 500),
            Preset::P720 | Preset::P2160Third => (1280, 720, 1500),
            Preset::P1080 => (1920, 1080, 3000),
            Preset::P2160 => (3840, 2160, 12_000),
        }
    }

    /// For streams of mirrored pictures side by side: the size of those pictures, and the factor by which the whole
    /// is then made smaller.
    pub(crate) fn mirrored(self) -> Option<((usize, usize), usize)> {
        match self {
            Preset::P2160 => Some(((1280, 720), 1)),
            Preset::P2160Third => Some(((1280, 720), 3)),
            _ => None,
        }
    }

    /// Name of the stream in reports.
    pub(crate) fn name(self) -> String {
        let (_, height, kbps) = self.shape();
        match self {
            Preset::P2160Third => format!("2160p-third{kbps}k"),
            _ => format!("{height}p{kbps}k"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        bench: Vp9Args,
    }

    fn parse(args: &[&str]) -> Result<Vp9Args, clap::Error> {
        Cli::try_parse_from([&["vp9"], args].concat()).map(|cli| cli.bench)
    }

    #[test]
    fn without_arguments_all_four_streams_are_made() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.streams, Preset::ALL);
        assert_eq!((args.passes.get(), args.seconds, args.wasm), (5, 10, false));
    }

    #[test]
    fn some_streams_can_be_chosen_but_not_beside_files() {
        assert_eq!(
            parse(&["--streams", "360p,180p"]).unwrap().streams,
            [Preset::P360, Preset::P180]
        );
        assert!(parse(&["--streams", "360p", "a.ivf"]).is_err());
        assert_eq!(parse(&["a.ivf"]).unwrap().files, [PathBuf::from("a.ivf")]);
        assert!(parse(&["--passes", "0"]).is_err());
    }
}
