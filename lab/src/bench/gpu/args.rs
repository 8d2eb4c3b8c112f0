//! The command line of `windlass-lab bench gpu`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use windlass_sr::Architecture;
use windlass_sr::cuda::Variant;

use crate::bench::networks::{self, Network};
use crate::eval::frames::Size;
use crate::output::Output;

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

/// Streams whose cost is worked out unless others are named: the paper's, and what a call's `h` becomes.
pub(super) const STREAMS: [&str; 2] = ["blocks:8x32x3@1280x720p60", "chain:5x16x2@640x360p30"];

/// Run networks on the GPU at several sizes, beside what the GPU can do.
///
/// Needs an NVIDIA GPU with its driver (of CUDA 11.8 or later) and libnvrtc.
#[derive(Debug, Clone, Args)]
pub(crate) struct GpuArgs {
    /// Networks as KIND:NxCHANNELSxSCALE, with +twin if they look at the viewer's picture: KIND is chain (N
    /// convolutions) or blocks (N residual blocks).
    #[arg(long, value_delimiter = ',', value_name = "NETWORK,…", default_values = NETWORKS)]
    pub networks: Vec<Network>,

    /// Sizes of the low layer.
    #[arg(long, value_parser = networks::size, value_delimiter = ',', value_name = "WxH,…",
          default_values = ["320x180", "640x360", "1280x720"])]
    pub sizes: Vec<Size>,

    /// Pictures of a launch.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["1", "4", "16"],
          value_parser = clap::value_parser!(u8).range(1..=16))]
    pub batches: Vec<u8>,

    /// Variants of the kernels, a row for each that the network and the GPU have: mma (any GPU), wgmma (compute
    /// capability 9.0). Without them the quicker one, which a server would take.
    #[arg(long, value_delimiter = ',', value_name = "VARIANT,…")]
    pub variants: Vec<Variant>,

    /// Workers that share the GPU with a picture each, as in a server; 0 for none.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub workers: u8,

    /// Least time that each measurement takes.
    #[arg(long, default_value_t = 0.5, value_name = "S")]
    pub seconds: f64,

    /// Streams whose cost is worked out, of networks and sizes that are measured: by anchors on 7.5 % of the frames,
    /// and by super-resolving and encoding every frame.
    #[arg(long, value_delimiter = ',', value_name = "NETWORK@WxHpFPS,…", default_values = STREAMS)]
    pub cost: Vec<Stream>,

    /// Euros for an hour of this GPU. The default is an assumption, about what clouds ask for a data centre's GPU; say
    /// what yours costs.
    #[arg(long, default_value_t = 2.5, value_name = "EURO", value_parser = price)]
    pub gpu_euro_hour: f64,

    /// Euros for an hour of one of this machine's cores. The default is an assumption, about what clouds ask for a core
    /// of a machine for computing; say what yours costs.
    #[arg(long, default_value_t = 0.03, value_name = "EURO", value_parser = price)]
    pub core_euro_hour: f64,

    /// libvpx's speed at which every frame is encoded, 0 to 9.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub reencode_speed: u8,

    /// First run every kind of network beside its definition in double precision and the coder beside the CPU's,
    /// and end with an error if a network is too far from it or a byte differs.
    #[arg(long)]
    pub conformance: bool,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

/// A stream of low pictures that a network enlarges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stream {
    pub network: Network,
    pub size: Size,
    pub fps: f64,
}

impl FromStr for Stream {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let shape = || format!("`{text}` is no stream: write blocks:8x32x3@1280x720p60");
        let (network, rest) = text.split_once('@').with_context(shape)?;
        let (size, fps) = rest.split_once('p').with_context(shape)?;
        let fps: f64 = fps.parse().with_context(shape)?;
        ensure!((1.0..=240.0).contains(&fps), "frames a second must be from 1 to 240, not {fps}");
        let size = networks::size(size)?;
        ensure!(
            size.width.min(size.height) >= 16,
            "a stream's sides must be 16 or more: no other is encoded"
        );
        Ok(Stream { network: network.parse()?, size, fps })
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Stream { size: Size { width, height }, fps, .. }, scale) =
            (self, self.network.0.scale);
        write!(f, "{width}x{height}p{fps} to {}x{}", scale * width, scale * height)
    }
}

fn price(text: &str) -> Result<f64> {
    let euro: f64 = text.parse()?;
    ensure!((0.0..=1e6).contains(&euro), "a price is from 0 to a million euros");
    Ok(euro)
}

/// The parameters of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub network: Architecture,
    pub size: Size,
    pub batch: usize,
    /// Variant to measure; `None`: the one that a server would choose.
    pub variant: Option<Variant>,
}

/// A batch of pictures that are encoded at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    /// Size of an anchor.
    pub size: Size,
    pub batch: usize,
}

impl GpuArgs {
    /// The batches to encode: the sizes of the networks' output.
    pub(crate) fn codings(&self) -> Vec<Coding> {
        let mut sizes = Vec::new();
        for &Size { width, height } in &self.sizes {
            for &Network(Architecture { scale, .. }) in &self.networks {
                let size = Size::new(scale * width, scale * height);
                if !sizes.contains(&size) {
                    sizes.push(size);
                }
            }
        }
        let batches = |size| self.batches.iter().map(move |&n| Coding { size, batch: n.into() });
        sizes.into_iter().flat_map(batches).collect()
    }

    /// The variants to run; if none is named, the one that a server would take.
    pub(crate) fn variants(&self) -> Vec<Option<Variant>> {
        let named = self.variants.iter().copied().map(Some);
        if self.variants.is_empty() { vec![None] } else { named.collect() }
    }

    /// The parameters of all rows, network by network.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &Network(network) in &self.networks {
            for &size in &self.sizes {
                for batch in self.batches.iter().copied().map(usize::from) {
                    let variants = self.variants().into_iter();
                    cases.extend(variants.map(|variant| Case { network, size, batch, variant }));
                }
            }
        }
        cases
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, batch {}", self.network, self.size, self.batch)?;
        self.variant.map_or(Ok(()), |variant| write!(f, ", {variant}"))
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "coding {}, batch {}", self.size, self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_that_the_networks_make_is_coded_once_a_batch() {
        let args = GpuArgs {
            networks: vec!["chain:5x16x2".parse().unwrap(), "chain:5x32x2".parse().unwrap()],
            sizes: vec![Size::new(320, 180), Size::new(640, 360)],
            batches: vec![1, 4],
            variants: vec![Variant::Mma, Variant::Wgmma],
            workers: 0,
            cost: Vec::new(),
            gpu_euro_hour: 2.5,
            core_euro_hour: 0.03,
            reencode_speed: 8,
            conformance: false,
            seconds: 0.0,
            output: Output::default(),
        };
        let named: Vec<String> = args.codings().iter().map(ToString::to_string).collect();
        assert_eq!(named.len(), 4);
        assert_eq!(named[1], "coding 640x360, batch 4");
        let cases: Vec<String> = args.cases().iter().map(ToString::to_string).collect();
        assert_eq!(cases.len(), 16);
        assert!(cases[1].ends_with(", 320x180, batch 1, wgmma"), "{}", cases[1]);
    }

    #[test]
    fn the_networks_that_run_unless_others_are_named_are_networks() {
        for name in NETWORKS {
            assert!(name.parse::<Network>().is_ok(), "{name}");
        }
        let known = |stream: Stream| {
            NETWORKS.iter().any(|name| name.parse::<Network>().unwrap() == stream.network)
        };
        assert!(STREAMS.iter().all(|name| known(name.parse().unwrap())), "{STREAMS:?}");
    }

    #[test]
    fn streams_and_prices_are_read_and_anything_else_is_refused() {
        let stream: Stream = "blocks:8x32x3@1280x720p60".parse().unwrap();
        assert_eq!(stream.to_string(), "1280x720p60 to 3840x2160");
        for wrong in [
            "",
            "1280x720p60",
            "chain:5x16x2@640x360",
            "chain:5x16x2@640x360p0",
            "chain:5x16x2@p30",
            "chain:5x16x2@16x8p30",
        ] {
            assert!(wrong.parse::<Stream>().is_err(), "{wrong}");
        }
        assert!(price("0.5").is_ok() && price("-1").is_err() && price("NaN").is_err());
    }
}
