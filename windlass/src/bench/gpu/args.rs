//! The command line of `windlass bench gpu`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, ensure};
use clap::Args;
use windlass_enhancer::engine::Architecture;

/// Networks that run unless others are named: those that are trained, and the large tiers.
const NETWORKS: [&str; 7] = [
    "chain:5x16x2",
    "chain:5x16x2+twin",
    "chain:5x32x2+twin",
    "chain:5x16x3",
    "blocks:8x32x2",
    "blocks:8x32x3",
    "blocks:8x32x3+twin",
];

/// Run networks on the GPU at several sizes, beside what the GPU can do.
///
/// Needs an NVIDIA GPU with its driver (of CUDA 11.8 or later) and libnvrtc.
#[derive(Debug, Clone, Args)]
pub struct GpuArgs {
    /// Networks as KIND:NxCHANNELSxSCALE, with +twin if they look at the viewer's picture: KIND is chain (N convolutions)
    /// or blocks (N residual blocks).
    #[arg(long, value_delimiter = ',', value_name = "NETWORK,…", default_values = NETWORKS)]
    pub networks: Vec<Network>,

    /// Sizes of the low layer.
    #[arg(long, value_delimiter = ',', value_name = "WxH,…", default_values = ["320x180", "640x360", "1280x720"])]
    pub sizes: Vec<Size>,

    /// Pictures of a launch.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["1", "4", "16"],
          value_parser = clap::value_parser!(u8).range(1..=16))]
    pub batches: Vec<u8>,

    /// Least time that each measurement takes.
    #[arg(long, default_value_t = 0.5, value_name = "S")]
    pub seconds: f64,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub Architecture);

/// Width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize, pub usize);

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub network: Architecture,
    pub size: Size,
    pub batch: usize,
}

impl GpuArgs {
    /// All rows, network by network.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &Network(network) in &self.networks {
            for &size in &self.sizes {
                for &batch in &self.batches {
                    cases.push(Case { network, size, batch: usize::from(batch) });
                }
            }
        }
        cases
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}x{}, batch {}", self.network, self.size.0, self.size.1, self.batch)
    }
}

impl FromStr for Network {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, anyhow::Error> {
        let shape = || format!("`{text}` is no network: write chain:5x16x2 or blocks:8x32x3+twin");
        let (kind, rest) = text.split_once(':').with_context(shape)?;
        let (numbers, twin) = match rest.strip_suffix("+twin") {
            Some(numbers) => (numbers, true),
            None => (rest, false),
        };
        let numbers: Result<Vec<usize>, _> = numbers.split('x').map(str::parse).collect();
        let &[count, channels, scale] = &numbers.with_context(shape)?[..] else {
            anyhow::bail!(shape());
        };
        ensure!(count <= 64, "{count} are too many");
        let plain = match kind {
            "chain" => Architecture::chain(scale, channels, count),
            "blocks" => Architecture::blocks(scale, channels, count),
            _ => anyhow::bail!(shape()),
        };
        let network = if twin { plain.with_twin() } else { plain };
        network.check()?;
        Ok(Network(network))
    }
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, anyhow::Error> {
        let shape = || format!("`{text}` is no size: write 640x360");
        let (width, height) = text.split_once('x').with_context(shape)?;
        let size = Size(width.parse().with_context(shape)?, height.parse().with_context(shape)?);
        let sane = 1..=2_048;
        ensure!(sane.contains(&size.0) && sane.contains(&size.1), "sides must be from 1 to 2048");
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_sizes_are_read_and_anything_else_is_refused() {
        let network = |text: &str| text.parse::<Network>().map(|network| network.0);
        assert_eq!(network("chain:5x16x2").unwrap(), Architecture::chain(2, 16, 5));
        let fused = Architecture::blocks(3, 32, 8).with_twin();
        assert_eq!(network("blocks:8x32x3+twin").unwrap(), fused);
        for wrong in [
            "",
            "chain",
            "chain:5x16",
            "chain:5x16x9",
            "chain:5x15x2",
            "blocks:99x32x2",
            "net:5x16x2",
        ] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        assert_eq!("640x360".parse::<Size>().unwrap(), Size(640, 360));
        for wrong in ["640", "0x360", "640x9999", "ax2"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
        for name in NETWORKS {
            assert!(network(name).is_ok(), "{name}");
        }
    }
}
