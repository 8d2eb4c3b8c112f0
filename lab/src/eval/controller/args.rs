//! Options of `--controller`.

use std::path::PathBuf;

use clap::Args;

use super::trace::Trace;

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
