//! `windlass serve`: SFU, enhancer, signalling and page in one process.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use tokio::net::TcpListener;
use windlass_doctor::RIGHTS;
use windlass_enhancer::{Enhancer, StartError as EnhancerError};
use windlass_logging::Log;
use windlass_record::{RecordTo, ServerRecorder};
use windlass_sfu::{Sfu, Sinks, StartError};
use windlass_signaling::{Metric, MetricSource, Services, Signaling};

use crate::bridge::{self, Bridge};
use crate::cli::ServeArgs;
use crate::cluster::{Connections, has_workers};
use crate::config::Config;
use crate::deliver::deliver;
use crate::devices;
use crate::public;
use crate::reload::{Parts, Reloader, Reloads};
use crate::renderer::ServerRenderer;
use crate::shutdown::{self, Signals};
use crate::supervise;
use crate::tls;
use crate::traces::Traces;

/// Time that clients have to leave when the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// Name of the configuration file that people expect to be read from the folder where the server is started.
const USUAL_FILE: &str = "windlass.yaml";

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let mut config = public::load(args)?;
    config.closed()?;
    let by = public::find_address(&mut config)?;
    let config = &config;
    if !has_workers(config) {
        devices::enter(config)?;
    }
    let log = windlass_logging::init(&config.log, config.log_json)?;
    windlass_sfu::log_panics();
    match args.file() {
        Some(file) => tracing::info!(file = %file.display(), "configuration read"),
        None if Path::new(USUAL_FILE).exists() => tracing::warn!(
            "{USUAL_FILE} lies here but is not read: only a file that is named is; add `--config {USUAL_FILE}`"
        ),
        None => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the server's threads")?;
    runtime.block_on(serve(args, config, by.as_deref(), log))
}

async fn serve(args: &ServeArgs, config: &Config, by: Option<&str>, log: Log) -> Result<()> {
    // Without certificate or port nobody can be served: these errors come before anything else starts.
    let tls = config.tls.as_ref().map(tls::Source::load).transpose()?;
    let listener = listen("--http", config.http).await?;
    let http = listener.local_addr()?;
    let figures = match config.metrics {
        Some(addr) => Some(listen("--metrics", addr).await?),
        None => None,
    };

    let enhancer = start_enhancer(config)?;
    let (sinks, intake) = bridge::intake();
    let cluster = Connections::open(config).await?;
    let sinks = if enhancer.is_some() { sinks } else { cluster.enhancer() };
    let (mut sfu, mut signaling) = (config.sfu.clone(), config.signaling.clone());
    signaling.tls = tls.clone();
    if let Some(seats) = cluster.seats() {
        signaling.seats = seats;
    }
    if let Some(scale) = enhancer.as_ref().and_then(|e| u16::try_from(e.scale()).ok()) {
        (sfu.scale, signaling.session.scale) = (scale, scale.into());
    }
    signaling.session.lr_pixels = sfu.tap_pixels;
    signaling.session.max_sections = u32::try_from(sfu.limits.media_sections).unwrap_or(u32::MAX);
    let recorder = config.record_to.as_ref().map(open_recorder).transpose()?;
    let enhances = enhancer.is_some() || has_workers(config);
    let renderer = ServerRenderer::open(&mut sfu, enhances);
    let takers = Sinks {
        relay: cluster.relay(),
        recorder: recorder.as_ref().map(ServerRecorder::sink),
        renderer: renderer.sink(),
    };
    let sfu = Sfu::start_with(&sfu, &sinks, &takers).map_err(start_error)?;
    renderer.start(sfu.handle());
    let traces = Traces::from_environment()?;
    let to_sfu = deliver(sfu.handle(), traces.clone());
    cluster.start_workers(config, to_sfu.clone())?;
    sfu.handle().set_enhancement(enhancer.is_some() || cluster.has_workers());
    let bridge = match &enhancer {
        Some(enhancer) => Some(Bridge::start(intake, enhancer, to_sfu)?),
        None => None,
    };

    windlass_metrics::start();
    let reloads = Arc::new(Reloads::new());
    let mut services =
        services(&sfu, enhancer.clone(), cluster.clone(), reloads.clone(), config.drain);
    add_metrics(&mut services, move || renderer.metrics());
    if let Some(recorder) = recorder.clone() {
        services.recorder = Some(Arc::new(recorder.clone()));
        add_metrics(&mut services, move || recorder.metrics());
    }
    supervise::start(sfu.handle(), cluster.clone())?;
    let signals = Signals::listen()?;
    let signaling = Signaling::new(signaling, services)?;
    if let Some(recorder) = &recorder {
        let sfu = sfu.handle();
        recorder.start(move |track| sfu.request_recorded_key_frame(track), signaling.clone())?;
    }
    cluster.join(signaling.clone(), sfu.handle());
    let certificate = tls.clone();
    let parts = Parts { sfu: sfu.handle(), signaling: signaling.clone(), enhancer, log, tls };
    let reloader = tokio::spawn(Reloader::new(args, config, parts, reloads)?.run());
    let stopped = signals.rooms_ended(signaling.clone(), sfu.handle(), cluster, config.drain);
    let stop = async move {
        Box::pin(stopped).await;
        windlass_logging::say("Windlass is shutting down.");
    };
    // Whoever reads that the server runs may send it signals: all of them are heard by now.
    match &config.public {
        Some(public) => public::announce(config, public, by, sfu.candidates())?,
        None => announce(config, http, &sfu)?,
    }
    if let (Some(source), Some(tls)) = (&config.tls, &certificate) {
        source.keep(tls);
    }
    if let Some(listener) = figures {
        announce_figures(&listener)?;
        let signaling = signaling.clone();
        tokio::spawn(async move { signaling.serve_figures(listener).await });
    }
    notify_systemd();
    Box::pin(signaling.serve(listener, windlass_page::router(), stop, GRACE)).await;
    if let Some(recorder) = &recorder {
        recorder.stop().await;
    }
    // The reloader holds the enhancer, whose threads end only when nobody holds it.
    reloader.abort();
    let _ = reloader.await;
    drop(bridge);
    drop(sfu);
    traces.stop();
    Ok(())
}

/// Tells systemd that the server serves, if systemd has started it and waits for that (`Type=notify`).
fn notify_systemd() {
    #[cfg(target_os = "linux")]
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!(%error, "systemd not notified that the server is ready: systemd may end the server; check NOTIFY_SOCKET, or use another `Type` than `notify`");
    }
}

/// Waits for connections at an option's address.
async fn listen(option: &str, addr: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(addr).await.map_err(|e| socket_error(option, "TCP", addr, &e))
}

/// The enhancer of this process; `None`: workers enhance, or enhancement is off.
fn start_enhancer(config: &Config) -> Result<Option<Arc<Enhancer>>> {
    let own = config.enhancer.clone().filter(|_| !has_workers(config));
    match own.map(Enhancer::start).transpose() {
        Ok(enhancer) => Ok(enhancer.map(Arc::new)),
        // What was asked for cannot be done: the operator is there to be told.
        Err(error @ (EnhancerError::Config(_) | EnhancerError::Network(_))) => Err(error.into()),
        Err(error @ EnhancerError::Thread(_)) => {
            tracing::error!(%error, "enhancement is off, and calls have plain video until the server is started again");
            Ok(None)
        }
    }
}

/// Why the SFU does not start, in the words of the options.
fn start_error(error: StartError) -> Error {
    match error {
        StartError::Socket { addr, source } => socket_error("--udp", "UDP", addr, &source),
        StartError::Tcp { addr, source } => {
            let error = socket_error("--tcp", "TCP", addr, &source);
            error.context("cannot take media over TCP; `--tcp off` turns it off")
        }
        other @ StartError::Thread(_) => other.into(),
    }
}

fn services(
    sfu: &Sfu,
    enhancer: Option<Arc<Enhancer>>,
    cluster: Connections,
    reloads: Arc<Reloads>,
    drain: Duration,
) -> Services {
    let (switched, handle) = (enhancer.clone(), sfu.handle());
    let (placement, switched_cluster) = (cluster.placement(), cluster.clone());
    Services {
        sfu: sfu.handle(),
        enhancer_switch: Arc::new(move |on| {
            if let Some(enhancer) = &switched {
                enhancer.set_enabled(on);
            } else if !switched_cluster.has_workers() {
                // An enhancer that was not started stays off.
                return false;
            }
            handle.set_enhancement(on);
            on
        }),
        metrics: MetricSource {
            families: windlass_metrics::families,
            read: Arc::new(move || {
                let mut all = windlass_metrics::of_process(windlass_logging::lost());
                all.extend(reloads.metrics());
                all.extend(enhancer.as_deref().into_iter().flat_map(windlass_metrics::of_enhancer));
                all.extend(cluster.metrics());
                all
            }),
        },
        drain: shutdown::on_order(drain),
        recorder: None,
        cluster: placement,
    }
}

/// The folder in which recordings wait for a store.
pub(crate) fn spool() -> Option<PathBuf> {
    windlass_public::folder().map(|folder| folder.join("recordings"))
}

/// A recorder of recordings that go there. Those for a store wait in the server's folder.
fn open_recorder(to: &RecordTo) -> Result<ServerRecorder> {
    ServerRecorder::open(to, spool().as_deref()).with_context(|| format!("--record-to {to}"))
}

/// Adds metrics to those of the server.
fn add_metrics(services: &mut Services, more: impl Fn() -> Vec<Metric> + Send + Sync + 'static) {
    let read = services.metrics.read.clone();
    services.metrics.read = Arc::new(move || {
        let mut all = read();
        all.extend(more());
        all
    });
}

/// Announces on standard output where the page is, and what else an operator needs to know.
fn announce(config: &Config, http: SocketAddr, sfu: &Sfu) -> Result<()> {
    let secure = config.tls.is_some();
    let url = url(http, secure);
    windlass_logging::announce(&format!("Windlass is running: {url}"))?;
    if matches!(config.tls, Some(tls::Source::SelfSigned(_))) {
        windlass_logging::announce("Its certificate is its own: browsers ask before they go on.")?;
    }
    if !config.signaling.access.is_open() {
        windlass_logging::announce(&format!(
            "Rooms need access tokens. A link to one: windlass token --key KEY --room tea-room --identity NAME --page {url}"
        ))?;
    }
    if http.ip().is_loopback() {
        return Ok(());
    }
    if !secure {
        windlass_logging::announce(
            "Browsers on other machines need HTTPS for camera and microphone: put a proxy with a \
             certificate before this port, or use --tls CERT,KEY (--tls self-signed to try it).",
        )?;
    }
    let others: Vec<_> = sfu.candidates().iter().filter(|a| !a.ip().is_loopback()).collect();
    if others.is_empty() {
        windlass_logging::announce(&format!(
            "Media reaches this machine only. For others, add `--udp 0.0.0.0:{} --advertise PUBLIC_IP`.",
            sfu.local_addr().port()
        ))?;
    } else if config.sfu.advertise.is_empty() && config.sfu.udp.ip().is_unspecified() {
        let others = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        windlass_logging::announce(&format!(
            "Others get media at {others}. If they reach this machine by another address, add `--advertise PUBLIC_IP`."
        ))?;
    }
    Ok(())
}

fn announce_figures(listener: &TcpListener) -> Result<()> {
    windlass_logging::announce(&format!(
        "Its figures are at http://{}/metrics.",
        listener.local_addr()?
    ))
}

fn url(http: SocketAddr, secure: bool) -> String {
    let scheme = if secure { "https" } else { "http" };
    if http.ip().is_loopback() || http.ip().is_unspecified() {
        format!("{scheme}://localhost:{}", http.port())
    } else {
        format!("{scheme}://{http}")
    }
}

/// Error of a socket, with advice on what to do next.
fn socket_error(
    option: &str,
    protocol: &str,
    addr: SocketAddr,
    error: &std::io::Error,
) -> anyhow::Error {
    let other = SocketAddr::new(addr.ip(), addr.port().saturating_add(10));
    let advice = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "another program has it, perhaps another Windlass; stop that one, or choose another \
             port with `{option} {other}`"
        ),
        ErrorKind::AddrNotAvailable => format!(
            "this machine has no such address; `{option} 0.0.0.0:{}` takes them all",
            addr.port()
        ),
        ErrorKind::PermissionDenied => {
            format!("it needs special rights: {RIGHTS}; or a port above 1023 with `{option}`")
        }
        _ => format!("{error}; choose another address with `{option}`"),
    };
    anyhow!("cannot use {protocol} address {addr}: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_one_that_a_browser_opens() {
        for (addr, expected) in [
            ("127.0.0.1:7880", "http://localhost:7880"),
            ("0.0.0.0:80", "http://localhost:80"),
            ("[::]:80", "http://localhost:80"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
            ("[2001:db8::1]:80", "http://[2001:db8::1]:80"),
        ] {
            assert_eq!(url(addr.parse().unwrap(), false), expected);
            let secure = url(addr.parse().unwrap(), true);
            assert_eq!(secure, expected.replace("http:", "https:"));
        }
    }

    #[test]
    fn socket_errors_say_what_to_do_next() {
        let addr = "127.0.0.1:7880".parse().unwrap();
        let error = socket_error("--http", "TCP", addr, &ErrorKind::AddrInUse.into());
        assert!(error.to_string().contains("--http 127.0.0.1:7890"), "{error}");
        let error = socket_error("--udp", "UDP", addr, &ErrorKind::AddrNotAvailable.into());
        assert!(error.to_string().contains("--udp 0.0.0.0:7880"), "{error}");
        let addr = "0.0.0.0:443".parse().unwrap();
        let error = socket_error("--http", "TCP", addr, &ErrorKind::PermissionDenied.into());
        assert!(error.to_string().contains("AmbientCapabilities="), "{error}");
    }
}
