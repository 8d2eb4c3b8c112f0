//! `windlass enhance`: an enhancer for SFUs on other machines.

mod children;
mod device_processes;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use clap::Args;
use tokio::sync::watch;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use windlass_cluster::lease::{Lease, MAX_DEVICES};
use windlass_cluster::mutual::{Mutual, Role};
use windlass_cluster::nats;
use windlass_cluster::proto::enhancer::enhancer_server::EnhancerServer;
use windlass_cluster::token::ClusterToken;
use windlass_cluster::worker::{OfferedEnhancer, Worker, WorkerService};
use windlass_enhancer::{Enhancer, EnhancerInput};
use windlass_signaling::metrics_page;
use windlass_sr::{EngineChoice, cuda};
use windlass_types::{EnhancerRequest, StreamId, TapInput};

use super::mutual;
use crate::cli::ServeArgs;
use crate::config::Config;
use crate::devices;
use crate::shutdown::Signals;

/// Maximum bytes of a message: a frame, or an anchor.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Arguments of `windlass enhance`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EnhanceArgs {
    /// Listening address for SFUs
    #[arg(long, default_value = "127.0.0.1:7890", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// URL by which SFUs reach this worker, written to its lease: http://host:port or https://host:port [default: the
    /// listening address]
    #[arg(long, value_name = "URL")]
    address: Option<String>,

    /// Start a process for every GPU without slices and for every slice (MIG) of the others, or only for those that
    /// --device names. Ports count up from those of --listen, --metrics and --address. A process that ends is started
    /// again
    #[arg(long)]
    each_device: bool,

    /// The process that started this one for a device, without which it does not go on
    #[arg(long, hide = true, value_name = "PID")]
    parent: Option<i32>,

    /// The options of `windlass serve`, of which those of enhancement, cluster and logs count here
    #[command(flatten)]
    serve: ServeArgs,
}

/// The enhancer as the cluster sees it.
struct Offer {
    enhancer: Arc<Enhancer>,
    input: EnhancerInput,
    deadline: Duration,
    look: Mutex<Look>,
}

/// Last measurement of the load: its time, the inference time up to then, and the load (0 to 1).
struct Look {
    at: Instant,
    compute: Duration,
    load: f64,
}

/// Minimum time from one measurement of the load to the next.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl OfferedEnhancer for Offer {
    fn push(&self, input: TapInput) {
        self.input.push(input);
    }

    fn request(&self, stream: StreamId, request: EnhancerRequest) {
        self.input.request(stream, request);
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn load(&self) -> f64 {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = look.at.elapsed();
        if passed >= POLL_INTERVAL {
            let stats = self.enhancer.stats();
            let taken = stats.compute.sum().saturating_sub(look.compute).as_secs_f64();
            let max = passed.as_secs_f64() * stats.compute_capacity;
            let load = if max > 0.0 { (taken / max).min(1.0) } else { 1.0 };
            *look = Look { at: Instant::now(), compute: stats.compute.sum(), load };
        }
        look.load
    }

    fn scale(&self) -> usize {
        self.enhancer.scale()
    }
}

/// Serves SFUs until SIGINT, or after SIGTERM until its streams have gone to other workers.
pub(crate) fn run(args: &EnhanceArgs) -> Result<()> {
    let config = args.serve.load()?;
    if let Some(parent) = args.parent {
        children::end_with(parent)?;
    }
    if !args.each_device {
        devices::enter(&config)?;
    }
    windlass_logging::init(&config.log, config.log_json)?;
    let Some(enhancer) = &config.enhancer else {
        bail!("--device off leaves nothing to offer: name a device, or leave the option out");
    };
    if args.each_device && enhancer.engine == EngineChoice::Cpu {
        bail!("--each-device needs GPUs: add --device auto or cuda");
    }
    let open = config.cluster.token.is_none() || config.cluster.files.is_none();
    if !args.listen.ip().is_loopback() && open {
        bail!(
            "{} can be reached by others: --cluster-token and --cluster-tls are needed, which authenticate servers",
            args.listen
        );
    }
    if args.listen.ip().is_unspecified() && config.nats.is_some() && args.address.is_none() {
        bail!(
            "--address is missing: SFUs cannot connect to {}; name a URL that reaches this worker",
            args.listen
        );
    }
    if args.each_device {
        return device_processes::run(args, &config);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the worker's threads")?;
    runtime.block_on(serve(args, config))
}

async fn serve(args: &EnhanceArgs, config: Config) -> Result<()> {
    let Some(enhancer) = config.enhancer else { return Ok(()) };
    let supervised = args.parent.is_some();
    let deadline = enhancer.budget.saturating_sub(enhancer.delivery_allowance);
    let max = enhancer.max_streams;
    let enhancer = Arc::new(Enhancer::start(enhancer)?);
    let (input, outputs) = (enhancer.input(), enhancer.output());
    let look = Look { at: Instant::now(), compute: Duration::ZERO, load: 0.0 };
    let offer =
        Arc::new(Offer { enhancer: enhancer.clone(), input, deadline, look: Mutex::new(look) });
    let worker = Worker::new(offer.clone(), max);
    let speaker = worker.clone();
    let speaking = std::thread::Builder::new().name("worker-outputs".to_owned()).spawn(move || {
        for output in outputs {
            speaker.send(&output);
        }
    });
    speaking.context("cannot start the worker's threads")?;
    let mut server = Server::builder().tcp_nodelay(true);
    let tls = mutual::start(config.cluster.files.as_ref(), Role::Enhancer)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let service = EnhancerServer::new(WorkerService(worker.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let token = config.cluster.token.as_ref().map(ClusterToken::of_enhancers);
    let check = move |request| match &token {
        Some(token) => token.check(request),
        None => Ok(request),
    };
    let signals = Signals::listen()?;
    let router = server.add_service(InterceptedService::new(service, check));
    let listener = tokio::net::TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", args.listen))?;
    let own = listener.local_addr()?;
    windlass_logging::announce(&format!("Windlass enhances for SFUs that come to {own}."))?;
    if let Some(address) = config.metrics {
        let asked = tokio::net::TcpListener::bind(address).await;
        let asked = asked.with_context(|| format!("cannot listen on {address}"))?;
        let at = asked.local_addr()?;
        windlass_logging::announce(&format!("Its figures are at http://{at}/metrics."))?;
        let router = figures(&enhancer, &worker, tls.clone());
        tokio::spawn(async move { axum::serve(asked, router).await });
    }
    let (stop, stopped) = watch::channel(false);
    let leasing = match config.nats.as_ref().zip(config.cluster.token.as_ref()) {
        None => None,
        Some((nats, token)) => {
            let client = nats::connect(nats, "windlass enhance", token).await?;
            let address = args.address.clone().unwrap_or_else(|| format!("{scheme}://{own}"));
            let worker = worker.clone();
            let lease = move || lease(&address, &offer, &worker);
            // Another process at the same address is another worker.
            let name = format!("{:016x}", rand::random::<u64>());
            Some(tokio::spawn(nats::keep_worker_lease(client, name, lease, stopped)))
        }
    };
    let ending = async move {
        let (streams, give_away) = (|| worker.stats().streams, || worker.drain());
        signals.streams_left(streams, give_away, config.drain, supervised).await;
        windlass_logging::say("Windlass is shutting down.");
        let _ = stop.send(true);
    };
    let served = async move {
        if let Some(tls) = tls {
            router.serve_with_incoming(tls.incoming(listener, Role::Server)).await
        } else {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router.serve_with_incoming(incoming).await
        }
    };
    // What is left of streams is not waited for.
    let ended = tokio::select! {
        ended = served => ended.context("the worker stopped serving SFUs"),
        () = ending => Ok(()),
    };
    if let Some(leasing) = leasing {
        let _ = tokio::time::timeout(Duration::from_secs(1), leasing).await;
    }
    ended
}

/// Routes for monitoring a worker: metrics, whether it lives, and whether it takes streams.
fn figures(enhancer: &Arc<Enhancer>, worker: &Arc<Worker>, tls: Option<Mutual>) -> Router {
    let (enhancer, worker) = (enhancer.clone(), worker.clone());
    let page = move |request: HeaderMap| async move {
        let mut all = windlass_metrics::of_process(windlass_logging::lost());
        all.extend(windlass_metrics::of_enhancer(&enhancer));
        all.extend(tls.iter().flat_map(mutual::metrics));
        metrics_page(&request, windlass_metrics::families(), all)
    };
    let ready = move || async move {
        if worker.is_draining() {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned())
        } else {
            (
                StatusCode::OK,
                [vec!["ready".to_owned()], devices_at_work()].concat().join("\n") + "\n",
            )
        }
    };
    Router::new()
        .route("/metrics", get(page))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
}

/// UUIDs of the GPUs, or of the slice of one, that this process uses and that have not failed.
fn devices_at_work() -> Vec<String> {
    let working = cuda::gpus().into_iter().filter(|card| card.failed.is_none());
    working.take(MAX_DEVICES).map(|card| format!("{} ({})", card.name, card.uuid)).collect()
}

/// Present content of the worker's lease.
fn lease(address: &str, offer: &Offer, worker: &Worker) -> Lease {
    let (stats, own) = (offer.enhancer.stats(), worker.stats());
    let number = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
    Lease {
        address: address.to_owned(),
        capacity: stats.compute_capacity,
        load: offer.load(),
        streams: number(own.streams),
        max_streams: number(worker.max_streams()),
        networks: stats.networks.iter().map(|network| network.name.to_string()).collect(),
        devices: devices_at_work(),
        draining: worker.is_draining(),
    }
}
