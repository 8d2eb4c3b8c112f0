//! The enhancers on other machines that an SFU uses, where it does: those of its configuration and those whose leases it reads.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Context, Result};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};
use windlass_cluster::nats::{self, Client, Heard};
use windlass_cluster::remote::{Remote, RemoteConfig};
use windlass_media::TapInput;
use windlass_sfu::SfuHandle;
use windlass_signaling::Metric;

use crate::config::{Cluster, Config};
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
    ) -> Result<()> {
        let Some(enhancer) = &config.enhancer else { return Ok(()) };
        let remote = RemoteConfig {
            workers: config.workers.clone(),
            token: config.cluster.token.clone(),
            tls: client_tls(&config.cluster)?,
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
                    Heard::Begins | Heard::Cut => {}
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

/// What a machine of the cluster shows others: the authority, and its own certificate.
fn certificates(cluster: &Cluster) -> Result<Option<(Certificate, Identity)>> {
    let Some((ca, certificate, key)) = &cluster.files else { return Ok(None) };
    let file =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    Ok(Some((Certificate::from_pem(file(ca)?), Identity::from_pem(file(certificate)?, file(key)?))))
}

/// The same for whoever is dialled.
pub fn server_tls(cluster: &Cluster) -> Result<Option<ServerTlsConfig>> {
    let known = certificates(cluster)?;
    Ok(known.map(|(ca, own)| ServerTlsConfig::new().identity(own).client_ca_root(ca)))
}

/// The same for whoever dials.
pub fn client_tls(cluster: &Cluster) -> Result<Option<ClientTlsConfig>> {
    let known = certificates(cluster)?;
    Ok(known.map(|(ca, own)| ClientTlsConfig::new().identity(own).ca_certificate(ca)))
}
