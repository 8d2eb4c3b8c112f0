//! What an operator can set: by option, by file, or left at its default.
//!
//! [`Settings`] is what was said, on the command line or in the file, which have the same names.
//! [`Config`] is what follows from it for each part.

mod annotated;
mod file;
mod reach;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Deserialize;
use thiserror::Error;
use windlass_cluster::nats::NatsConfig;
use windlass_cluster::token::ClusterToken;
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::engine::cuda::devices::DeviceName;
use windlass_enhancer::engine::{EngineChoice, NetworkChoice};
use windlass_enhancer::schedule::RegionConfig;
use windlass_sfu::{Limits, SfuConfig, share_of_one};
use windlass_signaling::access::{Access, TokenKey};
use windlass_signaling::webhooks::{WebhookSecret, WebhookUrl};
use windlass_signaling::{
    DoorLimits, Origin, Origins, SignalingConfig, TrustedProxies, TurnSecret, TurnUrl,
};
use windlass_types::AnchorPolicy;

use crate::{logging, tls};

pub use annotated::annotated;
pub use cluster::{Cluster, NodeConfig};
pub use file::File;
pub use values::{Advertise, LayerSize, Named, Proxies, RoomPolicy};

/// Part of the budget that is kept for pacing, network and browser, unless the budget is short.
const DELIVERY: Duration = Duration::from_millis(60);

/// An option whose value is not allowed.
#[derive(Debug, Error)]
#[error("{option} {allowed}")]
pub struct Invalid {
    /// Its name.
    pub option: &'static str,
    /// What it must be, and what it is.
    allowed: String,
}

impl Invalid {
    fn new(option: &'static str, allowed: impl Into<String>) -> Invalid {
        Invalid { option, allowed: allowed.into() }
    }
}

/// Ends with [`Invalid`] unless the condition holds, so that the file's line can be told.
macro_rules! allow {
    ($holds:expr, $option:expr, $($allowed:tt)+) => {
        if !$holds {
            return Err(Invalid::new($option, format!($($allowed)+)).into());
        }
    };
}

mod cluster;
mod memory;
mod turn;

/// Options whose change takes effect while the server runs.
pub const LIVE: [&str; 17] = [
    "compute-cap",
    "max-enhanced",
    "policy",
    "quality-sla-db",
    "room-policy",
    "anchor-fraction",
    "anchor-quality",
    "max-participants",
    "max-total-participants",
    "max-rooms",
    "max-tracks",
    "max-sockets-per-ip",
    "max-joins-per-ip",
    "max-stun-per-ip",
    "token-key",
    "open-rooms",
    "log",
];

/// Whether a change of the option takes effect while the server runs.
pub fn is_live(option: &str) -> bool {
    LIVE.contains(&option)
}

/// What was said, on the command line or in the file. The doc comments are the help, from which the annotated file is
/// made too: say the unit by the name of the value, and the default at the end in brackets.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Address of the page, the signalling and the metrics [default: 127.0.0.1:7880]
    #[arg(long, help_heading = "Addresses", value_name = "ADDR")]
    pub http: Option<SocketAddr>,

    /// Address of the one UDP port for all media; [::] takes IPv6 and IPv4, 0.0.0.0 IPv4 alone
    /// [default: 127.0.0.1:7881]
    #[arg(long, help_heading = "Addresses", value_name = "ADDR")]
    pub udp: Option<SocketAddr>,

    /// Address that browsers are told to send media to, where it is not the UDP address itself: that of the NAT
    /// before the server, say. May be given more than once, of IPv4 and of IPv6. Without a port it has the UDP
    /// address's own
    #[arg(long, help_heading = "Addresses", value_name = "IP[:PORT]")]
    pub advertise: Option<Vec<Advertise>>,

    /// Address of the one TCP port for media of browsers whose network lets no UDP through [default: that of UDP]
    #[arg(long, help_heading = "Addresses", value_name = "ADDR")]
    pub tcp: Option<SocketAddr>,

    /// Take no media by TCP
    #[arg(long, help_heading = "Addresses", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_tcp: Option<bool>,

    /// Address that browsers are told to connect to by TCP, where it is none of those of UDP; may be given more than
    /// once. Without a port it has the TCP address's own
    #[arg(long, help_heading = "Addresses", value_name = "IP[:PORT]")]
    pub advertise_tcp: Option<Vec<Advertise>>,

    /// Address of /metrics, /openapi.json, /healthz and /readyz over plain HTTP, for this network's own eyes: the first two are then
    /// nowhere else [default: that of the page; of an enhancer none]
    #[arg(long, help_heading = "Addresses", value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,

    /// TURN (or STUN) servers that clients are told of, for networks that let nothing through to this one
    #[arg(
        long,
        help_heading = "TURN",
        value_name = "turn:HOST[:PORT][?transport=udp|tcp], a list",
        value_delimiter = ','
    )]
    pub turn_url: Option<Vec<TurnUrl>>,

    /// Secret that the TURN servers share with this one (coturn: static-auth-secret), of which each client's name and
    /// password are made
    #[arg(
        long,
        help_heading = "TURN",
        value_name = "SECRET or @FILE",
        env = "WINDLASS_TURN_SECRET",
        hide_env_values = true
    )]
    pub turn_secret: Option<TurnSecret>,

    /// Seconds, 60 to 604800, for which they are good; clients ask for new ones before they need them [default: 3600]
    #[arg(long, help_heading = "TURN", value_name = "S")]
    pub turn_ttl_s: Option<u64>,

    /// Name for all clients at the TURN servers, where these share no secret with this one
    #[arg(long, help_heading = "TURN", value_name = "NAME")]
    pub turn_username: Option<String>,

    /// Password that belongs to it; every client is told it
    #[arg(
        long,
        help_heading = "TURN",
        value_name = "PASSWORD or @FILE",
        env = "WINDLASS_TURN_PASSWORD",
        hide_env_values = true
    )]
    pub turn_password: Option<TurnSecret>,

    /// Serve HTTPS and secure WebSockets by this certificate (PEM, with its chain); read again when it changes and on
    /// SIGHUP
    #[arg(long, help_heading = "HTTPS", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, help_heading = "HTTPS", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Serve HTTPS by a certificate of the server's own making, for localhost and this machine's addresses, kept in
    /// the user's cache folder: for development, since browsers ask before they go on
    #[arg(long, help_heading = "HTTPS", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub tls_self_signed: Option<bool>,

    /// Addresses or networks of proxies that are believed to say whose request they pass on (X-Forwarded-For)
    #[arg(long, help_heading = "HTTPS", value_name = "IP[/PREFIX],...", value_delimiter = ',')]
    pub trusted_proxies: Option<Vec<Proxies>>,

    /// Latency budget in milliseconds, 50 to 2000: from a frame's arrival at the server to its
    /// anchor used in the browser. What comes later is dropped [default: 200]
    #[arg(long, help_heading = "Enhancement", value_name = "MS")]
    pub budget_ms: Option<u32>,

    /// Forward only, without enhancement
    #[arg(long, help_heading = "Enhancement", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_enhancer: Option<bool>,

    /// Workers that enhance instead of this process (`windlass enhance`), as http://host:port or https://host:port; several
    /// are separated by commas
    #[arg(long, help_heading = "Enhancement", value_name = "URL,…", value_delimiter = ',')]
    pub workers: Option<Vec<String>>,

    /// NATS servers through which SFUs learn of workers, as nats://host:4222 or tls://host:4222; several are separated by
    /// commas. User and password, or a token, may come before the host
    #[arg(
        long,
        help_heading = "Enhancement",
        value_name = "URL,…",
        value_delimiter = ',',
        env = "WINDLASS_NATS",
        hide_env_values = true
    )]
    pub nats: Option<Vec<String>>,

    /// Where clients reach this server's signalling, as wss://host/ws: with NATS, rooms are then shared out among servers
    #[arg(long, help_heading = "Rooms", value_name = "URL", requires = "nats")]
    pub node_url: Option<String>,

    /// Address for other servers of the cluster: rooms that have more participants than this one wants are then on several
    #[arg(long, help_heading = "Rooms", value_name = "ADDRESS", requires = "node_url")]
    pub node_listen: Option<SocketAddr>,

    /// Where they reach it: http://host:port or https://host:port [default: what it listens on]
    #[arg(long, help_heading = "Rooms", value_name = "URL", requires = "node_listen")]
    pub node_address: Option<String>,

    /// As many of one room's participants as this server wants; whoever comes then is sent to another, and both forward
    /// what their participants publish to each other [default: max-participants]
    #[arg(long, help_heading = "Rooms", value_name = "N", requires = "node_listen")]
    pub node_room_most: Option<usize>,

    /// Credentials for them (.creds)
    #[arg(long, help_heading = "Enhancement", value_name = "FILE", requires = "nats")]
    pub nats_credentials: Option<PathBuf>,

    /// The authority of their certificates, where the system does not know it (PEM)
    #[arg(long, help_heading = "Enhancement", value_name = "FILE", requires = "nats")]
    pub nats_ca: Option<PathBuf>,

    /// Secret of the cluster: 16 random characters or more, or @FILE. By it servers and workers know each other, and each other's
    /// words in NATS
    #[arg(
        long,
        help_heading = "Enhancement",
        value_name = "SECRET or @FILE",
        env = "WINDLASS_CLUSTER_TOKEN",
        hide_env_values = true
    )]
    pub cluster_token: Option<ClusterToken>,

    /// The cluster's certificate authority: SFU and workers show each other certificates of it (PEM)
    #[arg(long, help_heading = "Enhancement", value_name = "FILE", requires = "cluster_cert")]
    pub cluster_ca: Option<PathBuf>,

    /// This machine's certificate of the cluster's authority (PEM)
    #[arg(long, help_heading = "Enhancement", value_name = "FILE", requires = "cluster_key")]
    pub cluster_cert: Option<PathBuf>,

    /// Its key (PEM)
    #[arg(long, help_heading = "Enhancement", value_name = "FILE", requires = "cluster_ca")]
    pub cluster_key: Option<PathBuf>,

    /// What runs the network: auto (the GPUs where any works, else the processor), cpu or cuda
    /// [default: cpu]
    #[arg(long, help_heading = "Enhancement", value_name = "NAME")]
    pub engine: Option<Named<EngineChoice>>,

    /// GPUs, or the one slice of a GPU (MIG), that the process uses, by ordinal (of a slice CARD:SLICE) or UUID as `windlass
    /// devices` lists them [default: those that CUDA shows]
    #[arg(
        long,
        help_heading = "Enhancement",
        value_name = "UUID or ORDINAL, a list",
        value_delimiter = ','
    )]
    pub device: Option<Vec<Named<DeviceName>>>,

    /// The network: auto (for each publisher the best that the machine can sustain within the budget, of pictures two
    /// or four times as large, as they are watched), xs (the cheapest, twice as large), m (three and a half times its
    /// cost, twice as large), or files of your own with commas between, of whatever factors, of which each publisher
    /// is given the best in the same way [default: auto]
    #[arg(long, help_heading = "Enhancement", value_name = "NAME|FILE,...")]
    pub network: Option<Named<NetworkChoice>>,

    /// Threads for super-resolution [default: half of the machine's]
    #[arg(long, help_heading = "Enhancement", value_name = "N")]
    pub enhancer_threads: Option<usize>,

    /// Share of those threads' time that super-resolution may take, 0 to 1 [default: 1]
    #[arg(long, help_heading = "Enhancement", value_name = "SHARE")]
    pub compute_cap: Option<f64>,

    /// Frames that are decoded and anchors that are coded at once, those with the nearest deadline first; 0: as many as the
    /// machine has cores [default: 0]
    #[arg(long, help_heading = "Enhancement", value_name = "N")]
    pub cpu_tasks: Option<usize>,

    /// How anchors are chosen: latency-sensitive (for calls: every 66 ms, within the budget), cost-effective (for streams
    /// that nobody answers: the best of 666 ms, 7.5 % of all frames, later by as much) or quality-sla (the same quality
    /// for each, and for no more than it can be kept to). While the server runs: POST {"room": NAME, "policy": POLICY} to
    /// /admin/policy
    /// [default: latency-sensitive]
    #[arg(long, help_heading = "Anchors", value_name = "POLICY")]
    pub policy: Option<AnchorPolicy>,

    /// dB, 0 to 20, that a publisher of the policy quality-sla may lose in the mean for want of an accelerator of its own: those to
    /// whom it cannot be kept are refused anchors [default: 0.5]
    #[arg(long, help_heading = "Anchors", value_name = "DB")]
    pub quality_sla_db: Option<f64>,

    /// Rooms whose anchors are chosen otherwise
    #[arg(long, help_heading = "Anchors", value_name = "ROOM=POLICY,…", value_delimiter = ',')]
    pub room_policy: Option<Vec<RoomPolicy>>,

    /// Most anchors per frame of a publisher, 0 to 1 [default: 0.033]
    #[arg(long, help_heading = "Anchors", value_name = "SHARE")]
    pub anchor_fraction: Option<f64>,

    /// Quality of the coded anchors, 1 to 100 [default: 85]
    #[arg(long, help_heading = "Anchors", value_name = "Q", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub anchor_quality: Option<u8>,

    /// Never make anchors of a publisher's own larger pictures, be they of its next larger layer or stills; by
    /// super-resolution alone
    #[arg(long, help_heading = "Publishers' own pictures", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_captured: Option<bool>,

    /// Never learn from a publisher's own larger pictures how to make its enhanced anchors, once these pictures have
    /// ended; by the networks as they are
    #[arg(long, help_heading = "Publishers' own pictures", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_learn: Option<bool>,

    /// Adapt what publishers send (bit and frame rate of the low layer) to their uplinks and pictures, where their users
    /// have agreed to stills
    #[arg(long, help_heading = "Publishers' own pictures", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub adapt: Option<bool>,

    /// Bit rate in kbit/s, 10 to 1000, of the stills that a publisher is asked for where it sends no larger
    /// layer and its user has agreed; 0 asks for none [default: 50]
    #[arg(long, help_heading = "Publishers' own pictures", value_name = "KBPS")]
    pub stills_kbps: Option<u32>,

    /// Publishers that are enhanced at a time [default: 64]
    #[arg(long, help_heading = "Enhancement", value_name = "N")]
    pub max_enhanced: Option<usize>,

    /// Memory in MiB that enhanced publishers may take together, as it is counted by the sizes of their pictures: publishers beyond it
    /// are not enhanced [default: half of what the process may have]
    #[arg(long, help_heading = "Enhancement", value_name = "MIB")]
    pub enhancer_memory_mb: Option<u64>,

    /// Largest picture of a layer that is enhanced, in either orientation; publishers whose layers are larger get none
    /// [default: 960x540]
    #[arg(long, help_heading = "Enhancement", value_name = "WxH")]
    pub max_layer: Option<LayerSize>,

    /// Participants in one room [default: 32]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_participants: Option<usize>,

    /// Participants in all rooms together; one address or identity can be a quarter of them [default: 1000]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_total_participants: Option<usize>,

    /// Rooms at a time; one address or identity can begin a quarter of them. Rooms of one participant's own (loopback) are
    /// counted apart, up to as many [default: 200]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_rooms: Option<usize>,

    /// Pages that may use signalling, WHIP, WHEP and the admin API, by their origins (https://calls.example); the server's own page
    /// may by its address, by its name only if that is here [default: pages of every origin]
    #[arg(long, help_heading = "Access", value_name = "ORIGIN,...", value_delimiter = ',')]
    pub origins: Option<Vec<Origin>>,

    /// Key that access tokens are signed with: a secret of at least 32 bytes, or a file with one or with an Ed25519
    /// public key (PEM); more than one, to change keys (`windlass key` makes one). Rooms then need a token (`windlass
    /// token`); a server without any serves this machine alone, unless open-rooms is said
    #[arg(
        long,
        help_heading = "Access",
        value_name = "ID=SECRET or ID=@FILE, a list",
        env = "WINDLASS_TOKEN_KEY",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub token_key: Option<Vec<TokenKey>>,

    /// Let whoever reaches the server into every room, without tokens
    #[arg(long, help_heading = "Access", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub open_rooms: Option<bool>,

    /// Without token keys, let programs of this machine use /admin/, which else nobody may. Not where something passes strangers'
    /// connections on to the server without a word, as tunnels do
    #[arg(long, help_heading = "Access", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub admin_local: Option<bool>,

    /// Address that is told what happens in rooms, by signed POST requests; more than one are each told everything
    #[arg(long, help_heading = "Access", value_name = "URL, a list", value_delimiter = ',')]
    pub webhook: Option<Vec<WebhookUrl>>,

    /// Secret that webhooks are signed with, 24 to 64 bytes; more than one, to change it
    #[arg(
        long,
        help_heading = "Access",
        value_name = "whsec_BASE64 or @FILE, a list",
        env = "WINDLASS_WEBHOOK_SECRET",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub webhook_secret: Option<Vec<WebhookSecret>>,

    /// Threads that forward media, each with some of the rooms; more than the machine has cores are of no use
    /// [default: half the cores]
    #[arg(long, help_heading = "Network", value_name = "N")]
    pub forwarding_threads: Option<usize>,

    /// Give every subscriber the best that it asks for, whatever its bandwidth estimate says: for
    /// tests and for networks known to be wide
    #[arg(long, help_heading = "Network", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_congestion_control: Option<bool>,

    /// Tracks published in one room [default: 128]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_tracks: Option<usize>,

    /// Signalling sockets of one address at a time (of IPv6: of 64 bits; the machine's own are not bounded), at most a quarter
    /// of all; 0 for no bound on what one address has, where all clients come by one [default: half of max-total-participants]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_sockets_per_ip: Option<usize>,

    /// Joins of one address in a minute; 0 for no bound [default: 600]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_joins_per_ip: Option<u32>,

    /// STUN requests and other datagrams in a second of one address that is in no call yet; 0 for no bound
    /// [default: 500]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_stun_per_ip: Option<u32>,

    /// TCP connections for media at a time; 0 for as many as files may be open, less some [default: 4000]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_tcp_connections: Option<usize>,

    /// TCP connections for media of one address at a time, at most a quarter of all; 0 for no bound [default: 400, or a
    /// quarter of max-tcp-connections where that is less]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    pub max_tcp_per_ip: Option<usize>,

    /// Seconds that rooms have to end after SIGTERM, while no new ones begin; 0 ends them at once, as SIGINT does
    /// [default: 30]
    #[arg(long, help_heading = "Limits", value_name = "S")]
    pub drain_timeout_s: Option<u64>,

    /// What to log: off, error, warn, info, debug, trace, or by part (info,windlass_sfu=debug)
    /// [default: info]
    #[arg(long, help_heading = "Log", value_name = "FILTER", env = "WINDLASS_LOG")]
    pub log: Option<String>,

    /// Log one JSON object a line
    #[arg(long, help_heading = "Log", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub log_json: Option<bool>,
}

/// What is done with every option alike; one that is missing here does not compile.
macro_rules! each_option {
    ($($option:ident)*) => {
        impl Settings {
            /// These settings, and where they say nothing, `others`.
            #[must_use]
            pub fn over(self, others: Settings) -> Settings {
                Settings { $($option: self.$option.or(others.$option),)* }
            }

            /// Names of the options that the two do not agree on.
            pub fn differing(&self, other: &Settings) -> Vec<String> {
                let mut names = Vec::new();
                $(if self.$option != other.$option {
                    names.push(stringify!($option).replace('_', "-"));
                })*
                names
            }

            /// These settings, but for the live ones, which are as in `other`.
            #[must_use]
            pub fn with_live_of(&self, other: &Settings) -> Settings {
                let live = |name: &str| is_live(&name.replace('_', "-"));
                Settings {
                    $($option: if live(stringify!($option)) { &other.$option } else { &self.$option }.clone(),)*
                }
            }
        }
    };
}

each_option! {
    metrics open_rooms admin_local
    http udp advertise tcp no_tcp advertise_tcp turn_url turn_secret turn_ttl_s turn_username turn_password tls_cert tls_key tls_self_signed trusted_proxies origins budget_ms no_enhancer workers nats node_url node_listen node_address node_room_most nats_credentials nats_ca cluster_token cluster_ca cluster_cert cluster_key engine device network enhancer_threads compute_cap
    cpu_tasks policy room_policy quality_sla_db
    anchor_fraction anchor_quality no_captured
    no_learn adapt stills_kbps max_enhanced enhancer_memory_mb max_layer max_participants
    max_total_participants max_rooms token_key webhook webhook_secret forwarding_threads no_congestion_control max_tracks max_sockets_per_ip max_joins_per_ip max_stun_per_ip max_tcp_connections max_tcp_per_ip drain_timeout_s log log_json
}

/// What each part is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of page and signalling.
    pub http: SocketAddr,
    /// Of the metrics, if they have one of their own.
    pub metrics: Option<SocketAddr>,
    /// Whether others may be let in without tokens.
    pub open_rooms: bool,
    /// The SFU.
    pub sfu: SfuConfig,
    /// Signalling. Its certificate is loaded at the start, from `tls`.
    pub signaling: SignalingConfig,
    /// Where the certificate comes from; `None` serves HTTP.
    pub tls: Option<tls::Source>,
    /// The enhancer; `None` forwards only.
    pub enhancer: Option<EnhancerConfig>,
    /// The GPUs, or the slice of one, that it has; none: those that CUDA shows.
    pub devices: Vec<DeviceName>,
    /// Those on other machines that work in its place.
    pub workers: Vec<String>,
    /// Where workers' leases are; those that have one work in its place as well.
    pub nats: Option<NatsConfig>,
    /// How it is one of several; `None`: it is alone.
    pub node: Option<NodeConfig>,
    /// What SFU and workers show each other.
    pub cluster: Cluster,
    /// How long rooms may go on after SIGTERM.
    pub drain: Duration,
    /// Log filter.
    pub log: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

impl Config {
    /// Fills in the defaults and checks what was said.
    pub fn resolve(said: Settings) -> Result<Config> {
        let budget = said.budget_ms.unwrap_or(200);
        allow!((50..=2000).contains(&budget), "budget-ms", "must be from 50 to 2000, not {budget}");
        let budget = Duration::from_millis(budget.into());
        for (name, count) in [
            ("max-participants", said.max_participants),
            ("max-total-participants", said.max_total_participants),
            ("max-rooms", said.max_rooms),
            ("max-tracks", said.max_tracks),
        ] {
            allow!(count != Some(0), name, "must be at least 1");
        }
        let limits = Limits::default();
        let limits = Limits {
            rooms: said.max_rooms.unwrap_or(limits.rooms),
            participants: said.max_total_participants.unwrap_or(limits.participants),
            participants_per_room: said.max_participants.unwrap_or(limits.participants_per_room),
            tracks_per_room: said.max_tracks.unwrap_or(limits.tracks_per_room),
            unauthenticated_per_second: said
                .max_stun_per_ip
                .unwrap_or(limits.unauthenticated_per_second),
            ..limits
        };
        let enhancer = match said.no_enhancer {
            Some(true) => None,
            _ => Some(enhancer(&said, budget)?),
        };
        let mut signaling = SignalingConfig::default();
        signaling.session.budget = budget;
        signaling.webhooks.urls = said.webhook.clone().unwrap_or_default();
        signaling.webhooks.secrets = said.webhook_secret.clone().unwrap_or_default();
        let signed = said.webhook.is_none() || said.webhook_secret.is_some();
        allow!(signed, "webhook", "needs a webhook-secret, which its requests are signed with");
        signaling.access =
            Access::new(said.token_key.clone().unwrap_or_default()).map_err(|e| Invalid {
                option: "token-key",
                allowed: format!("cannot be used: {e}"),
            })?;
        let open_rooms = said.open_rooms.unwrap_or(false);
        allow!(
            !open_rooms || signaling.access.is_open(),
            "open-rooms",
            "must not stand beside token-key"
        );
        signaling.admin_local = said.admin_local.unwrap_or(false);
        signaling.figures = said.metrics.is_none();
        signaling.proxies =
            TrustedProxies(said.trusted_proxies.iter().flatten().map(|p| p.0).collect());
        signaling.origins = said.origins.clone().map_or(Origins::Any, Origins::Only);
        signaling.turn = turn::turn(&said)?;
        let (nats, cluster) = (cluster::nats(&said)?, cluster::cluster(&said)?);
        let node = cluster::node(&said, limits.participants_per_room)?;
        if let (Origins::Only(origins), Some(node)) = (&mut signaling.origins, &node) {
            origins.extend(node.page());
        }
        signaling.door = door(&said, &limits)?;
        let log = said.log.clone().unwrap_or_else(|| "info".to_owned());
        if let Err(error) = logging::filter(&log) {
            allow!(false, "log", "must be a log filter: {error}");
        }
        let captured = !said.no_captured.unwrap_or(false);
        let http = said.http.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7880)));
        let tls = tls_source(&said, http)?;
        signaling.hsts = matches!(tls, Some(tls::Source::Files(..)));
        let reach = reach::Reach::of(&said)?;
        let sfu = SfuConfig {
            captured,
            adapt: said.adapt.unwrap_or(false),
            regions: captured && stills_kbps(&said)? > 0,
            udp: reach.udp,
            threads: reach.threads,
            tcp: reach.tcp,
            advertise: reach.advertise,
            budget,
            policy: said.policy.unwrap_or_default(),
            room_policies: room_policies(said.room_policy.unwrap_or_default())?,
            limits,
            tap_pixels: said.max_layer.map_or(SfuConfig::default().tap_pixels, LayerSize::pixels),
            congestion_control: !said.no_congestion_control.unwrap_or(false),
            ..SfuConfig::default()
        };
        let devices: Vec<DeviceName> =
            said.device.iter().flatten().map(|device| device.0.clone()).collect();
        let engine = said.engine.map_or_else(EngineChoice::default, |engine| engine.0);
        let on_gpus = devices.is_empty() || engine != EngineChoice::Cpu;
        allow!(on_gpus, "device", "needs an engine that runs on GPUs: auto or cuda, not {engine}");
        Ok(Config {
            http,
            metrics: said.metrics,
            open_rooms,
            sfu,
            signaling,
            tls,
            drain: Duration::from_secs(said.drain_timeout_s.unwrap_or(30)),
            enhancer,
            devices,
            workers: said.workers.unwrap_or_default(),
            node,
            nats,
            cluster,
            log,
            log_json: said.log_json.unwrap_or(false),
        })
    }
}

/// Who may come in. No address has more than a quarter of what there is for all.
fn door(said: &Settings, limits: &Limits) -> Result<DoorLimits> {
    let sockets = limits.participants.saturating_mul(2);
    let share = share_of_one(sockets);
    let of_one = said.max_sockets_per_ip.unwrap_or(share);
    allow!(
        of_one <= share,
        "max-sockets-per-ip",
        "must be at most {share}, a quarter of all (which are twice max-total-participants), not {of_one}; 0 for no bound, \
         where all clients come by one address"
    );
    let usual = DoorLimits::default();
    Ok(DoorLimits {
        sockets,
        sockets_per_address: of_one,
        joins_per_address: said.max_joins_per_ip.unwrap_or(usual.joins_per_address),
        participants: limits.participants,
        rooms: limits.rooms,
    })
}

/// Others reach the server, and every room would be open to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "others reach {0}, and without a token key every room would be open to them. Make a key, and start with it:\n  \
     windlass key windlass.key\n  \
     windlass serve … --token-key k1=@windlass.key\n\
     Or say --open-rooms, where all who reach the server are trusted"
)]
pub struct OpenToOthers(SocketAddr);

impl Config {
    /// Refuses to serve others without token keys, unless that was asked for.
    pub fn closed(&self) -> Result<(), OpenToOthers> {
        let alone = self.http.ip().to_canonical().is_loopback();
        if alone || self.open_rooms || !self.signaling.access.is_open() {
            return Ok(());
        }
        Err(OpenToOthers(self.http))
    }
}

fn tls_source(said: &Settings, http: SocketAddr) -> Result<Option<tls::Source>> {
    let own = said.tls_self_signed.unwrap_or(false);
    let files = match (&said.tls_cert, &said.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(tls::Source::Files(certificate.clone(), key.clone()))
        }
        (None, None) => None,
        (Some(_), None) => return Err(Invalid::new("tls-cert", "needs tls-key beside it").into()),
        (None, Some(_)) => return Err(Invalid::new("tls-key", "needs tls-cert beside it").into()),
    };
    allow!(!own || files.is_none(), "tls-self-signed", "must not stand beside tls-cert");
    let advertised = said.advertise.iter().flatten().map(|a| a.0.ip());
    let addresses = || advertised.chain([http.ip()]).collect();
    Ok(files.or_else(|| own.then(|| tls::Source::SelfSigned(addresses()))))
}

/// The rooms' policies; a room that is named twice is an error.
fn room_policies(said: Vec<RoomPolicy>) -> Result<BTreeMap<String, AnchorPolicy>> {
    let mut policies = BTreeMap::new();
    for RoomPolicy { room, policy } in said {
        let former = policies.insert(room.clone(), policy);
        allow!(former.is_none(), "room-policy", "names the room {room:?} twice");
    }
    Ok(policies)
}

/// Bit rate of the stills that publishers are asked for; 0: none.
fn stills_kbps(said: &Settings) -> Result<u32> {
    let kbps = said.stills_kbps.unwrap_or(50);
    allow!(
        kbps == 0 || (10..=1000).contains(&kbps),
        "stills-kbps",
        "must be 0 or from 10 to 1000, not {kbps}"
    );
    Ok(kbps)
}

fn enhancer(said: &Settings, budget: Duration) -> Result<EnhancerConfig> {
    let share = |name: &'static str, value: Option<f64>, default: f64| -> Result<f64> {
        let value = value.unwrap_or(default);
        allow!((0.0..=1.0).contains(&value), name, "must be from 0 to 1, not {value}");
        Ok(value)
    };
    let default = EnhancerConfig::default();
    let threads = said.enhancer_threads.unwrap_or(default.threads);
    allow!(
        (1..=256).contains(&threads),
        "enhancer-threads",
        "must be from 1 to 256, not {threads}"
    );
    let quality = said.anchor_quality.unwrap_or(default.anchor_quality);
    allow!((1..=100).contains(&quality), "anchor-quality", "must be from 1 to 100, not {quality}");
    Ok(EnhancerConfig {
        budget,
        delivery_allowance: DELIVERY.min(budget * 3 / 10),
        engine: said.engine.map_or(default.engine, |engine| engine.0),
        network: said.network.clone().map_or(default.network, |network| network.0),
        threads,
        cpu_tasks: said.cpu_tasks.unwrap_or(default.cpu_tasks),
        compute_cap: share("compute-cap", said.compute_cap, default.compute_cap)?,
        promise_db: {
            let db = said.quality_sla_db.unwrap_or(default.promise_db);
            allow!((0.0..=20.0).contains(&db), "quality-sla-db", "must be from 0 to 20, not {db}");
            db
        },
        anchor_fraction: share("anchor-fraction", said.anchor_fraction, default.anchor_fraction)?,
        anchor_quality: quality,
        regions: RegionConfig {
            bytes_per_s: f64::from(stills_kbps(said)?) * 125.0,
            ..default.regions
        },
        max_streams: said.max_enhanced.unwrap_or(default.max_streams),
        memory: {
            let mib = said.enhancer_memory_mb.unwrap_or_else(|| memory::allowed_mib() / 2);
            allow!(
                said.enhancer_memory_mb.is_none() || mib >= 64,
                "enhancer-memory-mb",
                "must be 64 or more, not {mib}"
            );
            mib.max(64) << 20
        },
        max_pixels: said.max_layer.map_or(default.max_pixels, LayerSize::pixels),
        learn: !said.no_learn.unwrap_or(!default.learn),
        ..default
    })
}

#[cfg(test)]
mod tests;
