//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use windlass_sr::Architecture;

/// Run the same networks with Windlass's engines and with inference libraries, by turns in one process.
///
/// Every engine's residual is compared with that of plain single-precision code. With T threads there are two ways to
/// use them: one picture after the other on all threads (1xT), and T pictures at once on a thread each (Tx1).
/// Windlass's engine has only the second; libraries are measured in both.
#[derive(Debug, Clone, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    /// Networks as KIND:NxCHANNELSxSCALE: KIND is chain (N convolutions) or blocks (N residual blocks). chain:5x16x2
    /// has the trained weights of models/xs-x2, others random ones.
    #[arg(long, value_delimiter = ',', value_name = "NETWORK,…",
          default_values = ["chain:5x16x2", "blocks:8x32x2"])]
    pub(crate) networks: Vec<Network>,

    /// Sizes of the pictures that go in.
    #[arg(long, value_delimiter = ',', value_name = "WxH,…", default_values = ["320x180", "640x360"])]
    pub(crate) sizes: Vec<Size>,

    /// Threads.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["1", "2"],
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Vec<u8>,

    /// Engines to run; all unless named. Ratios need `ours`.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) engines: Vec<Maker>,

    /// How often the engines take turns; figures are medians of the rounds.
    #[arg(long, default_value = "15", value_name = "N")]
    pub(crate) rounds: NonZeroU32,

    /// Least time that an engine runs in a turn.
    #[arg(long, default_value_t = 60, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(crate) turn_ms: u64,

    /// The shared library of onnxruntime (libonnxruntime.so.1.x): the PyPI wheel `onnxruntime` has it in its folder
    /// `capi`; `onnxruntime-gpu` has one that finds its CUDA and TensorRT providers beside it.
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "PATH")]
    pub(crate) onnxruntime: Option<PathBuf>,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who made an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Maker {
    /// Windlass.
    Ours,
    /// Windlass on a GPU.
    OursGpu,
    /// onnxruntime through the crate `ort`.
    Ort,
    /// onnxruntime's CUDA provider: cuDNN.
    OrtCuda,
    /// onnxruntime's TensorRT provider.
    OrtTensorrt,
    /// rten.
    Rten,
    /// tract.
    Tract,
    /// candle.
    Candle,
}

impl Maker {
    /// All makers of engines.
    pub(crate) const ALL: [Maker; 8] = [
        Maker::Ours,
        Maker::OursGpu,
        Maker::Ort,
        Maker::OrtCuda,
        Maker::OrtTensorrt,
        Maker::Rten,
        Maker::Tract,
        Maker::Candle,
    ];
}

/// A network that takes luma alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network(pub(crate) Architecture);

/// Width and height of a picture, in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Width, in samples.
    pub(crate) width: usize,
    /// Height, in rows.
    pub(crate) height: usize,
}

impl Size {
    /// Number of samples of a picture.
    pub(crate) fn area(self) -> usize {
        self.width * self.height
    }
}

impl FromStr for Network {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let shape = || format!("`{text}` is no network: write chain:5x16x2 or blocks:8x32x2");
        let (kind, numbers) = text.split_once(':').with_context(shape)?;
        let numbers: Result<Vec<usize>, _> = numbers.split('x').map(str::parse).collect();
        let &[count, channels, scale] = &numbers.with_context(shape)?[..] else {
            bail!(shape());
        };
        ensure!(count <= 64, "{count} are too many");
        let network = match kind {
            "chain" => Architecture::chain(scale, channels, count),
            "blocks" => Architecture::blocks(scale, channels, count),
            _ => bail!(shape()),
        };
        network.check()?;
        Ok(Network(network))
    }
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let shape = || format!("`{text}` is no size: write 640x360");
        let (width, height) = text.split_once('x').with_context(shape)?;
        let (width, height) =
            (width.parse().with_context(shape)?, height.parse().with_context(shape)?);
        let sane = 1..=2_048;
        ensure!(sane.contains(&width) && sane.contains(&height), "sides must be from 1 to 2048");
        Ok(Size { width, height })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
        let args = Args::parse_from(["engines"]);
        assert_eq!(args.networks[0], Network(Architecture::chain(2, 16, 5)));
        assert_eq!(args.sizes[1], Size { width: 640, height: 360 });
    }

    #[test]
    fn what_is_no_network_or_size_is_refused() {
        for wrong in ["", "chain", "chain:5x16", "chain:5x15x2", "net:5x16x2", "chain:5x16x2+twin"]
        {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        for wrong in ["640", "0x360", "640x9999", "ax2"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
