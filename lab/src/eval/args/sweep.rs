//! Options of a sweep.

use std::num::NonZeroU32;

use clap::Args;

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
