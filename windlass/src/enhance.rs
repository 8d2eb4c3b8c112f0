//! `windlass enhance`: an enhancer for SFUs on other machines.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, Server, ServerTlsConfig};
use windlass_cluster::proto::enhancer_server::EnhancerServer;
use windlass_cluster::token::ClusterToken;
use windlass_cluster::worker::{Offered, Worker, WorkerService};
use windlass_enhancer::{Enhancer, EnhancerConfig, EnhancerInput};
use windlass_media::TapInput;

use crate::cli::ServeArgs;
use crate::config::Cluster;
use crate::logging;
use crate::shutdown::Signals;

/// Largest message: a frame, or an anchor.
pub const MOST_BYTES: usize = 4 << 20;

/// Arguments of `windlass enhance`.
#[derive(Debug, Clone, Args)]
pub struct EnhanceArgs {
    /// Address for SFUs
    #[arg(long, default_value = "127.0.0.1:7890", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// What `windlass serve` is told of enhancement, cluster and logs holds here
    #[command(flatten)]
    serve: ServeArgs,
}

/// The enhancer, as the cluster knows it.
struct Offer {
    enhancer: Arc<Enhancer>,
    input: EnhancerInput,
    deadline: Duration,
    look: Mutex<Look>,
}

/// When its load was last looked at, what inference had taken by then, and the load.
struct Look {
    at: Instant,
    compute: Duration,
    load: f64,
}

/// Over which time the load is taken.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Offered for Offer {
    fn push(&self, input: TapInput) {
        self.input.push(input);
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn load(&self) -> f64 {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = look.at.elapsed();
        if passed >= LOOK_EVERY {
            let stats = self.enhancer.stats();
            let taken = stats.compute.saturating_sub(look.compute).as_secs_f64();
            let most = passed.as_secs_f64() * stats.compute_capacity;
            let load = if most > 0.0 { (taken / most).min(1.0) } else { 1.0 };
            *look = Look { at: Instant::now(), compute: stats.compute, load };
        }
        look.load
    }

    fn scale(&self) -> usize {
        self.enhancer.scale()
    }
}

/// Works for others until SIGINT or SIGTERM.
pub fn run(args: &EnhanceArgs) -> Result<()> {
    let config = args.serve.load()?;
    logging::init(&config.log, config.log_json)?;
    let Some(enhancer) = config.enhancer else {
        bail!("--no-enhancer leaves nothing to offer; start it without");
    };
    let open = config.cluster.token.is_none() || config.cluster.files.is_none();
    if !args.listen.ip().is_loopback() && open {
        bail!(
            "{} can be reached by others: --cluster-token and --cluster-ca, --cluster-cert and --cluster-key say who may",
            args.listen
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the worker's threads")?;
    runtime.block_on(serve(args.listen, enhancer, &config.cluster))
}

async fn serve(listen: SocketAddr, config: EnhancerConfig, cluster: &Cluster) -> Result<()> {
    let deadline = config.budget.saturating_sub(config.delivery_allowance);
    let most = config.max_streams;
    let enhancer = Arc::new(Enhancer::start(config)?);
    let (input, outputs) = (enhancer.input(), enhancer.output());
    let look = Look { at: Instant::now(), compute: Duration::ZERO, load: 0.0 };
    let offer = Offer { enhancer, input, deadline, look: Mutex::new(look) };
    let worker = Worker::new(Arc::new(offer), most);
    let speaker = worker.clone();
    let speaking = std::thread::Builder::new().name("worker-outputs".to_owned()).spawn(move || {
        for output in outputs {
            speaker.say(&output);
        }
    });
    speaking.context("cannot start the worker's threads")?;
    let mut server = Server::builder().tcp_nodelay(true);
    if let Some(tls) = server_tls(cluster)? {
        server = server.tls_config(tls).context("the cluster's certificates")?;
    }
    let service = EnhancerServer::new(WorkerService(worker))
        .max_decoding_message_size(MOST_BYTES)
        .max_encoding_message_size(MOST_BYTES);
    let token: Option<ClusterToken> = cluster.token.clone();
    let check = move |request| match &token {
        Some(token) => token.check(request),
        None => Ok(request),
    };
    let signals = Signals::listen()?;
    let router = server.add_service(InterceptedService::new(service, check));
    let listener = tokio::net::TcpListener::bind(listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {listen}"))?;
    println!("Windlass enhances for SFUs that come to {}.", listener.local_addr()?);
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    let ended = router.serve_with_incoming_shutdown(incoming, signals.any()).await;
    eprintln!("Windlass is shutting down.");
    ended.context("the worker's port")
}

fn read(cluster: &Cluster) -> Result<Option<(Certificate, Identity)>> {
    let Some((ca, certificate, key)) = &cluster.files else { return Ok(None) };
    let file = |path: &std::path::PathBuf| {
        fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(Some((Certificate::from_pem(file(ca)?), Identity::from_pem(file(certificate)?, file(key)?))))
}

fn server_tls(cluster: &Cluster) -> Result<Option<ServerTlsConfig>> {
    let known = read(cluster)?;
    Ok(known.map(|(ca, own)| ServerTlsConfig::new().identity(own).client_ca_root(ca)))
}

/// What an SFU shows its workers, and wants of them.
pub fn client_tls(cluster: &Cluster) -> Result<Option<ClientTlsConfig>> {
    let known = read(cluster)?;
    Ok(known.map(|(ca, own)| ClientTlsConfig::new().identity(own).ca_certificate(ca)))
}
