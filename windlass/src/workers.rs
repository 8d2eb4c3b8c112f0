//! The enhancers on other machines that an SFU uses, where it does: those of its configuration and those whose leases it reads.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::Result;
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::{self, Client, Heard};
use windlass_cluster::remote::{Remote, RemoteConfig};
use windlass_sfu::SfuHandle;
use windlass_signaling::Metric;
use windlass_types::TapInput;

use crate::config::Config;
use crate::metrics;

/// Empty until they are [started](Workers::start), and for good in a process that enhances itself.
#[derive(Default)]
pub struct Workers {
    remote: OnceLock<Remote>,
}

impl Workers {
    /// Whether a configuration has any.
    pub fn wanted(config: &Config) -> bool {
        config.enhancer.is_some() && (!config.workers.is_empty() || config.nats.is_some())
    }

    /// Begins to hand them what the SFU's taps say, and the SFU what they say.
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
        let hear = move |heard: Heard<'_>| {
            if let Some(remote) = workers.remote.get() {
                let now = Instant::now();
                match heard {
                    Heard::Written { name, bytes, .. } => remote.lease_renewed(name, bytes, now),
                    Heard::GivenUp { name, .. } => remote.lease_given_up(name),
                    Heard::Readable { since } => remote.leases_can_be_read(since, now),
                    Heard::Refused { .. } | Heard::Begins | Heard::Cut => {}
                }
            }
        };
        tokio::spawn(nats::watch_leases(client, hear));
        Ok(())
    }

    /// Takes what a tap says. Without workers nothing is full: it is just not looked at.
    pub fn push(&self, input: TapInput) -> bool {
        self.remote.get().is_none_or(|remote| remote.push(input))
    }

    /// Whether there may be any.
    pub fn started(&self) -> bool {
        self.remote.get().is_some()
    }

    /// What they did for this SFU.
    pub fn metrics(&self) -> Vec<Metric> {
        self.remote.get().map_or_else(Vec::new, |remote| metrics::of_remote(&remote.stats()))
    }
}
