//! The server's configuration. [`Settings`] are what was given on the command line or in the file, with the same names.
//! [`Config`] is what each part starts with.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use thiserror::Error;
use windlass_enhancer::EnhancerConfig;
use windlass_public::Acme;
use windlass_record::RecordTo;
use windlass_sfu::{Limits, SfuConfig};
use windlass_signaling::access::Access;
use windlass_signaling::{Origin, Origins, SignalingConfig, TrustedProxies};
use windlass_sr::cuda::devices::DeviceName;

use self::enhancement::Use;
use self::reach::Reach;
use self::values::{Parsed, TlsChoice};
use crate::cluster::NatsConfig;
use crate::tls;

pub(crate) use self::annotated::annotated;
pub(crate) use self::cluster::{Cluster, NodeConfig};
pub(crate) use self::file::File;
pub(crate) use self::public::Public;
pub(crate) use self::settings::{Settings, is_live};

/// Error text for options of a cluster and `windlass enhance` in a build without the feature `cluster`.
pub(crate) const NO_CLUSTER: &str = "this build has no cluster support: it was built without the feature `cluster`; build with \
                              `cargo build --release -p windlass`";

/// An option whose value is not allowed.
#[derive(Debug, Error)]
#[error("{option} {allowed}")]
pub(crate) struct Invalid {
    /// Name of the option.
    pub option: &'static str,
    /// The values that are allowed, and the value that was given.
    allowed: String,
}

impl Invalid {
    fn new(option: &'static str, allowed: impl Into<String>) -> Invalid {
        Invalid { option, allowed: allowed.into() }
    }
}

/// Returns [`Invalid`] unless the condition holds. The option's name finds the line of the file.
macro_rules! allow {
    ($holds:expr, $option:expr, $($allowed:tt)+) => {
        if !$holds {
            return Err($crate::config::Invalid::new($option, format!($($allowed)+)).into());
        }
    };
}

mod annotated;
mod cluster;
pub(crate) mod enhancement;
mod file;
mod former;
mod limits;
mod public;
mod reach;
mod settings;
pub(crate) mod shown;
mod turn;
mod values;

/// Latency budgets that are allowed.
const BUDGET: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(2);

/// Configuration of each part of the server.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The server's public name and what goes with it, if it has one.
    pub public: Option<Public>,
    /// Listening address of page and signalling.
    pub http: SocketAddr,
    /// Listening address of the metrics, if they have one of their own.
    pub metrics: Option<SocketAddr>,
    /// Whether a server that others reach may do without token keys.
    pub open_rooms: bool,
    /// Configuration of the SFU.
    pub sfu: SfuConfig,
    /// Configuration of signalling. Its certificate is loaded at the start, from `tls`.
    pub signaling: SignalingConfig,
    /// Source of the certificate; `None` serves plain HTTP.
    pub tls: Option<tls::Source>,
    /// Configuration of the enhancer; `None` only forwards.
    pub enhancer: Option<EnhancerConfig>,
    /// GPUs, or the slice of a GPU, that the process uses; empty for all that CUDA shows.
    pub devices: Vec<DeviceName>,
    /// URLs of workers on other machines, which enhance instead of this process.
    pub workers: Vec<String>,
    /// NATS, where workers keep their leases. Such workers enhance instead of this process as well.
    pub nats: Option<NatsConfig>,
    /// Configuration as one server of several; `None` if the server is alone.
    pub node: Option<NodeConfig>,
    /// Secret and certificates by which servers and workers authenticate each other.
    pub cluster: Cluster,
    /// Maximum time for which rooms may go on after SIGTERM.
    pub drain: Duration,
    /// Where recordings go; `None` if nothing is recorded.
    pub record_to: Option<RecordTo>,
    /// Log filter.
    pub log: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

impl Config {
    /// Fills in the defaults and checks the values.
    pub(crate) fn resolve(settings: Settings) -> Result<Config> {
        cluster::supported(&settings, cfg!(feature = "cluster"))?;
        let (settings, public) = public::filled(settings, windlass_public::folder().as_deref())?;
        let budget = settings.budget().0;
        allow!(BUDGET.contains(&budget.0), "budget", "must be from 50ms to 2s, not {budget}");
        let budget = budget.0;
        let limits = limits::limits(&settings)?;
        let tls = tls_source(&settings, public.as_ref());
        let node = cluster::node(&settings, limits.participants_per_room)?;
        let mut signaling = signaling(&settings, &limits, budget, tls.as_ref(), node.as_ref())?;
        if let (Origins::Only(origins), Some(public)) = (&mut signaling.origins, &public) {
            origins.extend(format!("https://{}", public.name).parse::<Origin>());
        }
        let open_rooms = settings.open_rooms == Some(true);
        let closed = !open_rooms || signaling.access.is_open();
        allow!(closed, "open-rooms", "must not stand beside token-key");
        let log = settings.log();
        if let Err(error) = windlass_logging::filter(&log) {
            allow!(false, "log", "must be a log filter: {error}");
        }
        Ok(Config {
            public,
            http: settings.http(),
            metrics: settings.metrics,
            open_rooms,
            sfu: sfu(&settings, limits, budget)?,
            signaling,
            tls,
            enhancer: enhancement::enhancer(&settings, budget)?,
            devices: settings.device().0.gpus(),
            nats: cluster::nats(&settings)?,
            node,
            cluster: cluster::cluster(&settings),
            drain: settings.drain_timeout().0.0,
            log,
            log_json: settings.log_json == Some(true),
            record_to: settings.record_to.map(|Parsed(to)| to),
            workers: settings.workers.unwrap_or_default(),
        })
    }
}

fn sfu(settings: &Settings, limits: Limits, budget: Duration) -> Result<SfuConfig> {
    let (captured, policies) = (settings.captured().0, settings.policy().0);
    let reach = Reach::of(settings, limits.participants)?;
    Ok(SfuConfig {
        captured: captured.has(Use::Layers),
        regions: captured.has(Use::Stills),
        adapt: captured.has(Use::Adapt),
        udp: reach.udp,
        threads: reach.threads,
        tcp: reach.tcp,
        advertise: reach.advertise,
        budget,
        policy: policies.usual,
        room_policies: policies.rooms,
        limits,
        congestion_control: settings.no_congestion_control != Some(true),
        ..SfuConfig::default()
    })
}

fn signaling(
    settings: &Settings,
    limits: &Limits,
    budget: Duration,
    tls: Option<&tls::Source>,
    node: Option<&NodeConfig>,
) -> Result<SignalingConfig> {
    let mut signaling = SignalingConfig::default();
    signaling.session.budget = budget;
    signaling.webhooks.urls = settings.webhook.clone().unwrap_or_default();
    signaling.webhooks.secrets = settings.webhook_secret.clone().unwrap_or_default();
    let signed = settings.webhook.is_none() || settings.webhook_secret.is_some();
    allow!(signed, "webhook", "needs a webhook-secret, which its requests are signed with");
    let keys = settings.token_key.clone().unwrap_or_default();
    signaling.access =
        Access::new(keys).map_err(|e| Invalid::new("token-key", format!("cannot be used: {e}")))?;
    signaling.admin_local = settings.admin_local == Some(true);
    signaling.figures = settings.metrics.is_none();
    signaling.proxies =
        TrustedProxies(settings.trusted_proxies.iter().flatten().map(|p| p.0).collect());
    signaling.origins = settings.origins.clone().map_or(Origins::Any, Origins::Only);
    if let (Origins::Only(origins), Some(node)) = (&mut signaling.origins, node) {
        origins.extend(node.page());
    }
    signaling.turn = turn::turn(settings)?;
    signaling.admission = limits::admission(settings, limits)?;
    signaling.hsts = matches!(tls, Some(tls::Source::Files(..) | tls::Source::Acme(_)));
    Ok(signaling)
}

fn tls_source(settings: &Settings, public: Option<&Public>) -> Option<tls::Source> {
    let addresses = || {
        let advertised = settings.advertise.iter().flatten().filter(|a| !a.0.tcp);
        advertised.map(|a| a.0.addr.ip()).chain([settings.http().ip()]).collect()
    };
    Some(match &settings.tls.as_ref()?.0 {
        TlsChoice::Files(certificate, key) => tls::Source::Files(certificate.clone(), key.clone()),
        TlsChoice::SelfSigned => tls::Source::SelfSigned(addresses()),
        TlsChoice::Acme(directory) => {
            let public = public?;
            tls::Source::Acme(Acme::new(&public.name, directory, &public.folder))
        }
    })
}

/// Error: others reach the server, and every room would be open to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "others reach {0}, and without a token key every room would be open to them. Make a key, and start with it:\n  \
     windlass key windlass.key\n  \
     windlass serve … --token-key k1=@windlass.key\n\
     Or add --open-rooms, where everybody who reaches the server is trusted"
)]
pub(crate) struct OpenToOthers(SocketAddr);

impl Config {
    /// Refuses to serve others without token keys, unless that was asked for.
    pub(crate) fn closed(&self) -> Result<(), OpenToOthers> {
        let alone = self.http.ip().to_canonical().is_loopback();
        if alone || self.open_rooms || !self.signaling.access.is_open() {
            return Ok(());
        }
        Err(OpenToOthers(self.http))
    }
}

#[cfg(test)]
mod tests;
