//! The command line of `windlass-lab bench engine`.

use std::fmt;
use std::num::NonZeroU32;

use clap::Args;
use windlass_sr::{Architecture, Simd};

use super::choose::ChooseArgs;
use super::quality::QualityArgs;
use crate::bench::networks::{self, Network};
use crate::eval::frames::Size;
use crate::output::Output;

/// Networks that run unless others are named: those that are built in, and larger ones.
const NETWORKS: [&str; 5] =
    ["chain:5x16x2", "chain:5x16x2+twin", "chain:5x32x2+twin", "blocks:8x16x2", "blocks:8x32x2"];

/// Run networks on the CPU at several sizes, beside what the CPU can do.
///
/// Two threads are two engines on different pictures at once: a picture's network never waits for other threads. With
/// --quality, trained networks instead: what each costs, and what it gains on coded clips. With --choose, what the
/// server would make of so many publishers.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EngineArgs {
    /// Networks as KIND:NxCHANNELSxSCALE, with +twin if they look at the viewer's picture: KIND is chain (N
    /// convolutions) or blocks (N residual blocks).
    #[arg(long, value_delimiter = ',', value_name = "NETWORK,…", default_values = NETWORKS, conflicts_with = "quality")]
    pub networks: Vec<Network>,

    /// Sizes of the low layer.
    #[arg(long, value_parser = networks::size, value_delimiter = ',', value_name = "WxH,…",
          default_values = ["320x180", "640x360"], conflicts_with = "quality")]
    pub sizes: Vec<Size>,

    /// Engines at once.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values = ["1", "2"],
          value_parser = clap::value_parser!(u8).range(1..=64), conflicts_with = "quality")]
    pub threads: Vec<u8>,

    /// Backends, as the table names them; all that the CPU has unless named, with --quality the fastest.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub backends: Vec<String>,

    /// How often backends and peaks take turns.
    #[arg(long, default_value = "5", value_name = "N")]
    pub passes: NonZeroU32,

    /// Least time that a backend runs in a pass.
    #[arg(long, default_value_t = 0.3, value_name = "S")]
    pub seconds: f64,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub quality: QualityArgs,

    #[command(flatten)]
    pub choose: ChooseArgs,
}

/// Text at the end of the command's long help.
const EXAMPLES: &str = "\
Examples:
  windlass-lab bench engine --networks chain:5x16x2,blocks:8x32x2 --threads 1
  windlass-lab bench engine --choose 1,10,50,200 --sizes 160x90,320x180
  windlass-lab bench engine --quality clip.mp4 --models models/xs-x2.safetensors --crops crops
  windlass-lab bench engine --quality d13.mp4@crop=720:405:0:300,name=d13 screen.mp4@screen --uplink 200 --json";

/// A network at a size, with a number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub network: Architecture,
    pub size: Size,
    pub threads: usize,
}

impl EngineArgs {
    /// Parses arguments as the command line has them.
    #[cfg(test)]
    pub(crate) fn parsed(args: &[&str]) -> Result<EngineArgs, clap::Error> {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            engine: EngineArgs,
        }
        let parsed: Result<Cli, _> = clap::Parser::try_parse_from([&["engine"], args].concat());
        parsed.map(|cli| cli.engine)
    }

    /// All cases, network by network.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &Network(network) in &self.networks {
            for &size in &self.sizes {
                for &threads in &self.threads {
                    cases.push(Case { network, size, threads: usize::from(threads) });
                }
            }
        }
        cases
    }

    /// The instruction sets that are measured.
    pub(crate) fn forms(&self) -> Vec<Simd> {
        let wanted = |simd: &Simd| {
            self.backends.is_empty() || self.backends.iter().any(|name| name == simd.name())
        };
        Simd::available().into_iter().filter(wanted).collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { network, size: Size { width, height }, threads } = self;
        write!(f, "{network}, {width}x{height}, {threads} at once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_that_run_unless_others_are_named_are_networks() {
        for name in NETWORKS {
            assert!(name.parse::<Network>().is_ok(), "{name}");
        }
    }

    #[test]
    fn quality_is_of_trained_networks_at_the_sizes_of_the_clips() {
        let args = ["--quality", "a.mp4", "b.mp4@screen", "--uplink", "200", "--crop-at", "8,16"];
        let args = EngineArgs::parsed(&[&args[..], &["--crops", "out"]].concat()).unwrap();
        assert_eq!((args.quality.quality.len(), args.quality.uplink[0].get()), (2, 200));
        for wrong in [
            &["--quality", "a.mp4", "--sizes", "320x180"][..],
            &["--quality", "a.mp4", "--networks", "chain:5x16x2"],
            &["--quality"],
            &["--quality", "a.mp4", "--crop-at", "8,16"],
            &["--quality", "a.mp4", "--crops", "out", "--crop-at", "8"],
            &["--uplink", "200"],
            &["--crops", "out"],
            &["--models", "a.safetensors"],
        ] {
            assert!(EngineArgs::parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
