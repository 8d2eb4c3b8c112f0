//! The options of a sweep, and of the comparisons that run in place of the methods.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use windlass_network::Tier;

use crate::eval::controller::Trace;
use crate::eval::display::DisplaySize;
use crate::eval::method::Method;

/// The options of `--sweep`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SweepArgs {
    /// Run every anchor fraction with every quality or budget at every uplink, and compare the methods by BD-rate.
    #[arg(long, conflicts_with = "comparison")]
    pub sweep: bool,

    /// Anchor fractions to sweep over, 0 to 1 [default: 0.015,0.033,0.1].
    #[arg(long, value_delimiter = ',', value_name = "F,…", requires = "sweep")]
    pub fractions: Vec<f64>,

    /// Anchor qualities to sweep over, 1 to 100 [default: 60,85, unless there are budgets].
    #[arg(long, value_delimiter = ',', value_name = "Q,…", requires = "sweep",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub qualities: Vec<u8>,

    /// Anchor sizes in bytes to sweep over.
    #[arg(long, value_delimiter = ',', value_name = "BYTES,…", requires = "sweep")]
    pub budgets: Vec<NonZeroU32>,

    /// Method that the others are compared with by BD-rate.
    #[arg(long, default_value = "lanczos", value_name = "METHOD", requires = "sweep")]
    pub bd_reference: Method,
}

/// The options of `--controller`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ControllerArgs {
    /// Adapt the publisher's knobs by gradient, and compare with fixed settings and exhaustive search.
    #[arg(long, group = "comparison")]
    pub controller: bool,

    /// Play the clips one after the other as one scene: changes of content.
    #[arg(long, requires = "controller")]
    pub chain: bool,

    /// Uplinks that change, instead of --uplink: bit rate in kbit/s from a time in seconds on, as 300@0/100@6.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "K@S/K@S,…",
        requires = "controller",
        conflicts_with = "uplink"
    )]
    pub trace: Vec<Trace>,

    /// Largest layer that the publisher can send: q, h or f.
    #[arg(long = "most-layer", default_value = "f", value_name = "LAYER", requires = "controller")]
    pub max_layer: String,

    /// Folder that keeps the runs of fixed settings for the next command.
    #[arg(long, value_name = "DIR", requires = "controller")]
    pub cache: Option<PathBuf>,
}

/// The options of `--display`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DisplayArgs {
    /// Compare Windlass with plain VP9 of every size, sharpened, for equal bits at this size in pixels: BD-rate and
    /// quality. Smaller clips are shown at their own size.
    #[arg(long, value_name = "WxH", group = "comparison")]
    pub display: Option<DisplaySize>,

    /// Run this network (xxs or xs) on every picture of Windlass's, at the scales that there is one for.
    #[arg(long, requires = "display", value_name = "NAME")]
    pub frame_network: Option<Tier>,
}
