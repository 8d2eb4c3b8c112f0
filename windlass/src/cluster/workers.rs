//! Connects the SFU with enhancers on other machines: those of the configuration, and those whose leases it reads.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::Client;
use windlass_cluster::remote::{Remote, RemoteConfig, RemoteStats};
use windlass_signaling::{Metric, Value};
use windlass_types::{EnhancerRequest, StreamId, TapInput};

use crate::config::Config;
use crate::deliver::Deliver;

/// Workers on other machines. Empty before [`Workers::start`], and in a process that enhances itself.
#[derive(Default)]
pub(super) struct Workers {
    remote: OnceLock<Remote>,
}

impl Workers {
    /// Whether the configuration asks for remote enhancers.
    pub(super) fn wanted(config: &Config) -> bool {
        config.enhancer.is_some() && (!config.workers.is_empty() || config.nats.is_some())
    }

    /// Starts to exchange inputs and outputs between the SFU and the workers.
    pub(super) fn start(
        self: &Arc<Self>,
        config: &Config,
        to_sfu: Deliver,
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
        let _ = self.remote.set(Remote::new(&remote, to_sfu)?);
        let Some(client) = nats else { return Ok(()) };
        let workers = self.clone();
        tokio::spawn(async move {
            if let Some(remote) = workers.remote.get() {
                remote.watch_leases(client).await;
            }
        });
        Ok(())
    }

    /// Takes a tap's input. Returns `false` if a queue is full. Without workers, inputs are ignored.
    pub(super) fn push(&self, input: TapInput) -> bool {
        self.remote.get().is_none_or(|remote| remote.push(input))
    }

    /// Takes a request to a stream's enhancement. Returns `false` if a queue is full. Without workers, requests are
    /// ignored.
    pub(super) fn request(&self, stream: StreamId, request: EnhancerRequest) -> bool {
        self.remote.get().is_none_or(|remote| remote.request(stream, request))
    }

    /// Whether remote enhancers are in use.
    pub(super) fn started(&self) -> bool {
        self.remote.get().is_some()
    }

    /// Metrics of the workers.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        self.remote.get().map_or_else(Vec::new, |remote| figures(&remote.stats()))
    }
}

/// Metrics of the work that workers on other machines did for this SFU.
fn figures(stats: &RemoteStats) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::new("windlass_worker_frames_dropped_total", stats.dropped),
        Metric::new("windlass_worker_frames_skipped_total", stats.skipped),
        Metric::new("windlass_worker_anchors_total", stats.anchors),
        Metric::new("windlass_worker_anchors_late_total", stats.late),
        Metric::new("windlass_worker_moves_total", stats.moved),
        Metric::new("windlass_worker_balanced_total", stats.balanced),
        Metric::new("windlass_worker_leases_refused_total", stats.leases_refused),
        Metric::new("windlass_worker_malformed_total", stats.malformed),
    ];
    for worker in &stats.workers {
        let of = |name, value: Value| Metric::new(name, value).label("worker", &*worker.address);
        metrics.extend([
            of("windlass_worker_streams", worker.own_streams.into()),
            of("windlass_worker_load", worker.load.into()),
            of("windlass_worker_up", worker.available.into()),
        ]);
        // What a dashboard joins the others by.
        metrics.extend(
            worker
                .devices
                .iter()
                .map(|device| of("windlass_worker_device", 1u64.into()).label("device", &**device)),
        );
    }
    metrics
}
