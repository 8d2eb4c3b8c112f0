//! The options of `windlass serve`, each declared once: name, help, default, and whether a reload applies it.

use std::fmt::{Display, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use windlass_enhancer::EnhancerConfig;
use windlass_public::PublicName;
use windlass_record::RecordTo;
use windlass_sfu::Limits;
use windlass_signaling::access::TokenKey;
use windlass_signaling::webhooks::{WebhookSecret, WebhookUrl};
use windlass_signaling::{Network, Origin, TurnSecret};
use windlass_sr::NetworkChoice;

use super::cluster::{ClusterFiles, NodeListen};
use super::enhancement::{Captured, Device, Policies};
use super::limits::MaxPerIp;
use super::reach::{Advertise, Tcp};
use super::values::{Parsed, TlsChoice, list};
use crate::cluster::ClusterToken;
use crate::time::Time;

/// Whether a changed option takes effect while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reload {
    /// The change takes effect at once.
    Live,
    /// The change takes effect at the next start.
    Restart,
}

/// Help of an option: its doc comment, and its default if that is a value.
fn help_text(lines: &[&str], default: &[&dyn Display]) -> String {
    let mut text = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    for default in default {
        let _ = write!(text, " [default: {default}]");
    }
    text
}

/// Environment variable of an option, such as `WINDLASS_OPEN_ROOMS` for `open_rooms`.
pub(super) fn variable(option: &str) -> String {
    format!("WINDLASS_{}", option.replace('-', "_").to_uppercase())
}

/// Makes [`Settings`] from a list of options under their headings.
///
/// `Live name: Type = default;` is the field `name: Option<Type>`, the flag `--name`, the variable `WINDLASS_NAME`, the
/// key `name:` of the file, and a method `name()` that falls back on the default. An option without a default has the
/// field alone.
macro_rules! settings {
    ($($heading:literal { $(
        $(#[doc = $help:literal])+
        $(#[arg($($arg:tt)+)])?
        $(#[serde($($serde:tt)+)])?
        $reload:ident $option:ident: $type:ty $(= $default:expr)?;
    )+ })+) => {
        /// What was given on the command line or in the file.
        #[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        // These are help texts as well, where `[::]` is an address.
        #[allow(rustdoc::broken_intra_doc_links, rustdoc::bare_urls)]
        pub(crate) struct Settings { $($(
            $(#[doc = $help])+
            #[arg(
                long,
                help_heading = $heading,
                help = help_text(&[$($help),+], &[$(&$default)?]),
                env = variable(stringify!($option)),
                hide_env = true
                $(, $($arg)+)?
            )]
            $(#[serde($($serde)+)])?
            pub $option: Option<$type>,
        )+)+ }

        impl Settings {
            $($($(
                /// The given value, or the default.
                pub(crate) fn $option(&self) -> $type {
                    self.$option.clone().unwrap_or_else(|| $default)
                }
            )?)+)+

            /// These settings, and `others` for the options that are not given here.
            #[must_use]
            pub(crate) fn over(self, others: Settings) -> Settings {
                Settings { $($($option: self.$option.or(others.$option),)+)+ }
            }

            /// Names of the options whose values differ.
            pub(crate) fn differing(&self, other: &Settings) -> Vec<String> {
                let mut names = Vec::new();
                $($(if self.$option != other.$option {
                    names.push(stringify!($option).replace('_', "-"));
                })+)+
                names
            }

            /// These settings, with the live options of `other`.
            #[must_use]
            pub(crate) fn with_live_of(&self, other: &Settings) -> Settings {
                Settings { $($($option: match Reload::$reload {
                    Reload::Live => other.$option.clone(),
                    Reload::Restart => self.$option.clone(),
                },)+)+ }
            }
        }

        /// Whether a changed option takes effect while the server runs.
        pub(crate) fn is_live(option: &str) -> bool {
            let options = [$($((stringify!($option), Reload::$reload),)+)+];
            options.iter().any(|(name, reload)| {
                *reload == Reload::Live && name.replace('_', "-") == option
            })
        }
    };
}

/// Default address of the HTTP server, for a machine that serves only itself.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7880);
/// Default address of media. Firefox pairs no loopback address with another: such a machine must be reachable by its
/// own address. Nobody gets media without joining by the HTTP server.
const UDP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7881);

settings! {
    "Network" {
        /// Public DNS name of this server, which then serves everybody at https://NAME. It listens at port 443, finds
        /// its address, and makes a token key. It gets a certificate from Let's Encrypt; by using it you agree to their
        /// terms. It prints a link to a room. Other options take precedence. Behind a proxy,
        /// which then has the certificate, set http to a loopback address, or set trusted-proxies
        #[arg(value_name = "NAME")]
        Restart public: Parsed<PublicName>;

        /// Listening address of the HTTP server: web page, signalling, admin API, and metrics unless --metrics moves
        /// them. With public: all addresses, port 443
        #[arg(value_name = "IP:PORT")]
        Restart http: SocketAddr = HTTP;

        /// Listening address for media over UDP; all participants share this port. [::] takes IPv6 and IPv4, 0.0.0.0
        /// only IPv4
        #[arg(value_name = "IP:PORT")]
        Restart udp: SocketAddr = UDP;

        /// Listening address for media over TCP, for networks that block UDP; off: UDP only [default: the address of
        /// udp]
        #[arg(value_name = "IP:PORT|off")]
        Restart tcp: Parsed<Tcp>;

        /// Public addresses for ICE candidates, where they are not the listening addresses, as behind a NAT. No other
        /// address is announced. Without PORT, the listening port is used. With tcp: in front, an address is for TCP
        /// only, and the others are for UDP only [default: the listening address, or where that is 0.0.0.0 or ::,
        /// loopback and this machine's address]
        #[arg(value_name = "[tcp:]IP[:PORT],...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart advertise: Vec<Parsed<Advertise>>;

        /// TLS for the HTTP server: certificate chain and private key (PEM files, read again when they change). Or
        /// acme, a certificate for the public name, from Let's Encrypt or from the ACME server with this directory. Or
        /// self-signed, a certificate for development [default: plain HTTP; acme with public]
        #[arg(value_name = "CERT,KEY|acme|acme:URL|self-signed")]
        Restart tls: Parsed<TlsChoice>;

        /// Reverse proxies, by address or network, whose X-Forwarded-For header is trusted
        #[arg(value_name = "IP[/PREFIX],...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart trusted_proxies: Vec<Parsed<Network>>;

        /// TURN and STUN servers for clients that cannot reach this server directly. A static user and password stand
        /// before the host (turn:USER:PASSWORD@HOST or turn:USER:@FILE@HOST); every client sees them. Write special
        /// characters as in URLs (%3A for a colon, %2C for a comma)
        #[arg(
            value_name = "turn:HOST[:PORT][?transport=udp|tcp],...",
            value_delimiter = ','
        )]
        #[serde(default, deserialize_with = "list")]
        Restart turn_url: Vec<String>;

        /// Secret shared with the TURN servers (coturn: static-auth-secret), from which each client's user and password
        /// are derived
        #[arg(value_name = "SECRET|@FILE")]
        Restart turn_secret: TurnSecret;
    }

    "Rooms and tokens" {
        /// Keys that verify access tokens, each a secret of at least 32 bytes or a file with a secret or an Ed25519
        /// public key (PEM). Rooms then need a token (see windlass key, windlass token). Without a key, only this
        /// machine is served, unless --open-rooms
        #[arg(
            value_name = "ID=SECRET|ID=@FILE,...",
            value_delimiter = ','
        )]
        #[serde(default, deserialize_with = "list")]
        Live token_key: Vec<TokenKey>;

        /// Let everybody who reaches the server enter every room, without access tokens
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        Live open_rooms: bool;

        /// Let programs on this machine use /admin/ without a token, where there is no token key. Unsafe behind a
        /// tunnel or sidecar that forwards connections from elsewhere
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        Restart admin_local: bool;

        /// Origins of the web pages that may use signalling, WHIP, WHEP and the admin API (https://calls.example). The
        /// server's own page is allowed at an IP address or localhost [default: all origins]
        #[arg(value_name = "ORIGIN,...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart origins: Vec<Origin>;

        /// Where recordings go, which operators order by the admin API or windlass record: a folder, or an
        /// S3-compatible store (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). Without it,
        /// nothing is recorded
        #[arg(value_name = "FOLDER|s3://BUCKET[/PREFIX]")]
        Restart record_to: Parsed<RecordTo>;

        /// Webhooks: URLs that get a signed POST request for each event of a room
        #[arg(value_name = "URL,...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart webhook: Vec<WebhookUrl>;

        /// Secrets that sign webhooks, 24 to 64 bytes each; more than one while secrets change
        #[arg(
            value_name = "whsec_BASE64|@FILE,...",
            value_delimiter = ','
        )]
        #[serde(default, deserialize_with = "list")]
        Restart webhook_secret: Vec<WebhookSecret>;
    }

    "Limits" {
        /// Maximum number of participants in a room on this server
        #[arg(value_name = "N")]
        Live max_participants: usize = Limits::default().participants_per_room;

        /// Maximum number of participants in all rooms. The maximum number of rooms is a fifth of it, or 200 where that
        /// is more, but never more than participants; loopback rooms count separately. One address or identity may have
        /// a quarter of the participants, and begin a quarter of the rooms
        #[arg(value_name = "N")]
        Live max_total_participants: usize = Limits::default().participants;

        /// Limits of one IP address (IPv6: /64): signalling sockets at a time, joins a minute, and STUN requests a
        /// second before a call. 0: no limit. For clients that share one address: sockets=0, which also lifts the limit
        /// of media TCP connections (400, at the next start) [default: sockets=half of
        /// max-total-participants,joins=600,stun=500]
        #[arg(value_name = "sockets=N,joins=N,stun=N")]
        Live max_per_ip: Parsed<MaxPerIp>;

        /// Time that rooms have to end after SIGTERM; meanwhile no room begins. 0s: end at once, as after SIGINT
        #[arg(value_name = "TIME")]
        Restart drain_timeout: Parsed<Time> = Parsed(Time(Duration::from_secs(30)));
    }

    "Enhancement" {
        /// Hardware for neural enhancement: off (forward only), cpu, auto (GPUs where one works, else the CPU), cuda
        /// (all GPUs). Or a list of GPUs, or one MIG slice, by ordinal or UUID, as windlass devices lists them
        #[arg(value_name = "off|cpu|auto|cuda|GPU,...")]
        Restart device: Parsed<Device> = Parsed(Device::default());

        /// Latency budget, 50ms to 2s: from a frame's arrival at the server to its anchor's use in the browser.
        /// Later anchors are dropped
        #[arg(value_name = "TIME")]
        Restart budget: Parsed<Time> = Parsed(Time(Duration::from_millis(200)));

        /// Super-resolution network: auto (for each publisher the best that the hardware sustains), xs (the cheapest),
        /// m (3.5 times the cost of xs). Or a list of your own network files
        #[arg(value_name = "auto|xs|m|FILE,...")]
        Restart network: Parsed<NetworkChoice> = Parsed(NetworkChoice::default());

        /// Policy that chooses which frames become anchors: latency-sensitive (calls), cost-effective (broadcasts: up
        /// to 666 ms later), quality-sla (equal quality for all). ROOM=POLICY sets the policy of a room. Set the mean
        /// quality that a publisher may lose to shared computing time by quality-sla:DB (0 to 20; 0.5 by default)
        #[arg(value_name = "POLICY,ROOM=POLICY,...")]
        Live policy: Parsed<Policies> = Parsed(Policies::default());

        /// Uses of a publisher's own larger pictures, as a list; off: none. With layers, anchors are made from a larger
        /// layer. With stills, they are requested from publishers who agree. With learn, networks learn from these
        /// pictures. With adapt, publishers who agree to stills are told which layer, bitrate and frame rate to send
        #[arg(value_name = "off|layers,stills,learn,adapt")]
        Restart captured: Parsed<Captured> = Parsed(Captured::default());

        /// Maximum number of publishers that are enhanced at a time
        #[arg(value_name = "N")]
        Live max_enhanced: usize = EnhancerConfig::default().max_streams;

        /// Enhancement workers on other machines (windlass enhance), instead of this process: http://host:port or
        /// https://host:port
        #[arg(value_name = "URL,...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart workers: Vec<String>;
    }

    "Cluster" {
        /// NATS servers with JetStream, which connect servers and workers: nats://host:4222 or tls://host:4222. User
        /// and password, or a token, may stand before the host
        #[arg(value_name = "URL,...", value_delimiter = ',')]
        #[serde(default, deserialize_with = "list")]
        Restart nats: Vec<String>;

        /// NATS credentials file (.creds)
        #[arg(value_name = "FILE", requires = "nats")]
        Restart nats_credentials: PathBuf;

        /// CA certificate of the NATS servers (PEM), where the system does not trust it
        #[arg(value_name = "FILE", requires = "nats")]
        Restart nats_ca: PathBuf;

        /// Shared secret of the cluster, 16 random characters or more: authenticates servers, workers, and their
        /// messages in NATS
        #[arg(value_name = "SECRET|@FILE")]
        Restart cluster_token: ClusterToken;

        /// Mutual TLS between servers and workers: the cluster's CA certificate, this machine's certificate, and its
        /// private key (PEM files)
        #[arg(value_name = "CA,CERT,KEY")]
        Restart cluster_tls: Parsed<ClusterFiles>;

        /// Public URL of this server's signalling (wss://host/ws). With --nats, rooms are then distributed over the
        /// servers
        #[arg(value_name = "URL", requires = "nats")]
        Restart node_url: String;

        /// Listening address for other servers of the cluster, so that a room can span servers. URL: where they reach
        /// it, if not at the listening address
        #[arg(value_name = "IP:PORT[,URL]", requires = "node_url")]
        Restart node_listen: Parsed<NodeListen>;

        /// Number of a room's participants on this server above which new participants go to another server
        /// [default: max-participants]
        #[arg(value_name = "N", requires = "node_listen")]
        Restart node_max_participants: usize;
    }

    "Observability" {
        /// Listening address for /metrics, /openapi.json, /healthz and /readyz over plain HTTP. The HTTP server then no
        /// longer serves /metrics and /openapi.json [default: the HTTP server; 127.0.0.1:7889 with public; none for
        /// windlass enhance]
        #[arg(value_name = "IP:PORT")]
        Restart metrics: SocketAddr;

        /// Log filter: off, error, warn, info, debug, trace, also by module (info,windlass_sfu=debug)
        #[arg(value_name = "FILTER")]
        Live log: String = "info".to_owned();

        /// Log in JSON, one object a line
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        Restart log_json: bool;
    }

    "Expert" {
        /// Lifetime of TURN credentials made from turn-secret, 1m to 7days
        #[arg(value_name = "TIME")]
        Restart turn_ttl: Parsed<Time> = Parsed(Time(Duration::from_secs(3600)));

        /// Number of threads that forward media, 1 to 64; each room is on one thread [default: half of the CPU cores]
        #[arg(value_name = "N")]
        Restart forwarding_threads: usize;

        /// Ignore the bandwidth estimate and send each subscriber the best layers that it asks for: for tests
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        Restart no_congestion_control: bool;

        /// Number of CPU threads for enhancement, 1 to 256: for inference, and for decoding and encoding [default: half
        /// of the CPU cores for inference, all for decoding and encoding]
        #[arg(value_name = "N")]
        Restart enhancer_threads: usize;

        /// Share, 0 to 1, of the inference threads' or GPUs' time that enhancement may take; 0: no inference
        #[arg(value_name = "SHARE")]
        Live compute_cap: f64 = EnhancerConfig::default().compute_cap;

        /// Maximum share, 0 to 1, of a publisher's frames that become anchors with the policy latency-sensitive
        #[arg(value_name = "SHARE")]
        Live anchor_fraction: f64 = EnhancerConfig::default().anchor_fraction;

        /// Memory in MiB, at least 64, for all enhanced publishers, as estimated from their picture sizes
        /// [default: half of the memory that the process may use]
        #[arg(value_name = "MIB")]
        Restart enhancer_memory_mb: u64;
    }
}
