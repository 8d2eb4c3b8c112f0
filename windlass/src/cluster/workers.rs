//! Connects the SFU with enhancers on other machines: those of its configuration, and those whose leases it reads.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::Client;
use windlass_cluster::remote::{Remote, RemoteConfig, RemoteStats};
use windlass_sfu::SfuHandle;
use windlass_signaling::Metric;
use windlass_types::{EnhancerRequest, StreamId, TapInput};

use crate::config::Config;
use crate::metrics::label_value;

/// Empty before [`Workers::start`], and in a process that enhances itself.
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
    pub(super) fn push(&self, input: TapInput) -> bool {
        self.remote.get().is_none_or(|remote| remote.push(input))
    }

    /// Takes a request to a stream's enhancement; `false`: a queue is full. Without workers requests are ignored.
    pub(super) fn request(&self, stream: StreamId, request: EnhancerRequest) -> bool {
        self.remote.get().is_none_or(|remote| remote.request(stream, request))
    }

    /// Whether remote enhancers are in use.
    pub(super) fn started(&self) -> bool {
        self.remote.get().is_some()
    }

    /// Figures of the workers.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        self.remote.get().map_or_else(Vec::new, |remote| figures(&remote.stats()))
    }
}

/// What workers on other machines did for this SFU.
fn figures(stats: &RemoteStats) -> Vec<Metric> {
    let counters = [
        ("worker_frames_dropped", stats.dropped, "Frames that found a worker's stream full."),
        (
            "worker_frames_skipped",
            stats.skipped,
            "Frames left out while a key frame was waited for.",
        ),
        ("worker_anchors", stats.anchors, "Anchors of workers that came in time."),
        ("worker_anchors_late", stats.late, "Anchors of workers that came too late."),
        ("worker_moves", stats.moved, "Streams that left a worker that failed or was silent."),
        ("worker_balanced", stats.balanced, "Streams that went to a worker with less to do."),
        ("worker_leases_refused", stats.leases_refused, "Workers' leases that made no sense."),
        ("worker_malformed", stats.malformed, "Messages of workers that made no sense."),
    ];
    let counters =
        counters.into_iter().map(|(name, value, help)| Metric::counter(name, value).help(help));
    let gauges = stats.workers.iter().flat_map(|worker| {
        let address = label_value(&worker.address);
        let figures = [
            ("worker_streams", worker.own_streams as f64, "Streams that the worker has."),
            ("worker_load", worker.load, "Share of its time that is taken, as it says."),
            (
                "worker_up",
                f64::from(u8::from(worker.available)),
                "Whether it may be given streams.",
            ),
        ];
        figures.map(|(name, value, help)| {
            let metric = Metric::gauge(name, value);
            metric.labelled(format!("worker=\"{address}\"")).help(help)
        })
    });
    // What a dashboard joins the others by.
    let devices = stats.workers.iter().flat_map(|worker| {
        let address = label_value(&worker.address);
        worker.devices.iter().map(move |device| {
            let metric = Metric::gauge("worker_device", 1.0);
            let device = label_value(device);
            let labels = format!("worker=\"{address}\",device=\"{device}\"");
            metric.labelled(labels).help("A GPU, or a slice of one, that the worker's lease names.")
        })
    });
    counters.chain(gauges).chain(devices).collect()
}
