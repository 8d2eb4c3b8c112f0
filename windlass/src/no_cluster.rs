//! Replaces the module `cluster` in a build without that feature: this server has no connections to other machines.
//!
//! Options of a cluster are parsed in every build, and refused in this one ([`Config::resolve`]).

#![allow(clippy::unused_self, clippy::unused_async, clippy::unnecessary_wraps)]

use std::convert::Infallible;
use std::future::Ready;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use windlass_sfu::{EnhancerSinks, RelaySink, SfuHandle};
use windlass_signaling::cluster::Cluster;
use windlass_signaling::rights::SeatKey;
use windlass_signaling::{Metric, Signaling};

use crate::config::Config;
use crate::deliver::Deliver;

pub(crate) mod enhance {
    //! Replaces `windlass enhance`, which this build refuses.

    use std::ffi::OsString;

    use anyhow::{Result, bail};
    use clap::Args;

    use crate::config::NO_CLUSTER;

    /// Arguments of `windlass enhance`, which are not read.
    #[derive(Debug, Clone, Args)]
    pub(crate) struct EnhanceArgs {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<OsString>,
    }

    pub(crate) fn run(_: &EnhanceArgs) -> Result<()> {
        bail!("{NO_CLUSTER}")
    }
}

/// Returns `None`, as there is no NATS to ask.
pub(crate) fn nats_answers(_: &Config, _: Duration) -> Option<Result<()>> {
    None
}

/// Token of a cluster. This build does not keep its text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) struct ClusterToken;

impl FromStr for ClusterToken {
    type Err = Infallible;

    fn from_str(_: &str) -> Result<Self, Infallible> {
        Ok(ClusterToken)
    }
}

impl From<String> for ClusterToken {
    fn from(_: String) -> Self {
        ClusterToken
    }
}

/// Files of CA certificate, certificate and private key (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// NATS servers and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NatsConfig {
    pub servers: Vec<String>,
    pub credentials: Option<PathBuf>,
    pub ca: Option<PathBuf>,
}

pub(crate) fn has_workers(_: &Config) -> bool {
    false
}

/// Connections of a server that is alone; the methods are those of `cluster::Connections`.
#[derive(Clone)]
pub(crate) struct Connections;

impl Connections {
    pub(crate) async fn open(_: &Config) -> Result<Connections> {
        Ok(Connections)
    }

    pub(crate) fn relay(&self) -> Option<RelaySink> {
        None
    }

    pub(crate) fn enhancer(&self) -> EnhancerSinks {
        EnhancerSinks::none()
    }

    pub(crate) fn seats(&self) -> Option<SeatKey> {
        None
    }

    pub(crate) fn start_workers(&self, _: &Config, _: Deliver) -> Result<()> {
        Ok(())
    }

    pub(crate) fn has_workers(&self) -> bool {
        false
    }

    pub(crate) fn placement(&self) -> Option<Arc<dyn Cluster>> {
        None
    }

    pub(crate) fn join(&self, _: Signaling, _: SfuHandle) {}

    pub(crate) async fn drain(&self) {}

    pub(crate) fn stop(&self) {}

    pub(crate) fn leave(&self) -> Option<Ready<()>> {
        None
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}
