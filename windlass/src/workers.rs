//! Connects the SFU with enhancers on other machines: those of its configuration, and those whose leases it reads.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::Client;
use windlass_cluster::remote::{Remote, RemoteConfig};
use windlass_sfu::SfuHandle;
use windlass_signaling::Metric;
use windlass_types::TapInput;

use crate::config::Config;
use crate::metrics;

/// Empty before [`Workers::start`], and in a process that enhances itself.
#[derive(Default)]
pub struct Workers {
    remote: OnceLock<Remote>,
}

impl Workers {
    /// Whether the configuration asks for remote enhancers.
    pub fn wanted(config: &Config) -> bool {
        config.enhancer.is_some() && (!config.workers.is_empty() || config.nats.is_some())
    }

    /// Starts to exchange inputs and outputs between the SFU and the workers.
    pub fn start(
        self: &Arc<Self>,
        config: &Config,
        sfu: SfuHandle,
        nats: Option<Client>,
        tls: Option<Mutual>,
    ) -> Result<()> {
        let Some(enhancer) = &config.enhancer else { return Ok(()) };
        let remote = RemoteConfig {
            workers: config.workers.clone(),
            token: config.cluster.token.clone(),
            tls,
            within: enhancer.budget.saturating_sub(enhancer.delivery_allowance),
        };
        let output = Arc::new(move |output| {
            // What the SFU's queue does not take is dropped and counted there.
            sfu.push(output);
        });
        let _ = self.remote.set(Remote::new(&remote, output)?);
        let Some(client) = nats else { return Ok(()) };
        let workers = self.clone();
        tokio::spawn(async move {
            if let Some(remote) = workers.remote.get() {
                remote.watch_leases(client).await;
            }
        });
        Ok(())
    }

    /// Takes a tap's input; `false`: a queue is full. Without workers inputs are ignored.
    pub fn push(&self, input: TapInput) -> bool {
        self.remote.get().is_none_or(|remote| remote.push(input))
    }

    /// Whether remote enhancers are in use.
    pub fn started(&self) -> bool {
        self.remote.get().is_some()
    }

    /// Figures of the workers.
    pub fn metrics(&self) -> Vec<Metric> {
        self.remote.get().map_or_else(Vec::new, |remote| metrics::of_remote(&remote.stats()))
    }
}
