//! State that the handlers of the service share: its configuration, the parts that it talks to, and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use tokio::sync::watch;
use windlass_sfu::SfuHandle;
use windlass_types::SharedLatencies;

use crate::access::Access;
use crate::admission::{AdmissionControl, AdmissionLimits};
use crate::client::TrustedProxies;
use crate::cluster::Cluster;
use crate::directory::Directory;
use crate::families::MetricSource;
use crate::origin::Origins;
use crate::recordings::{Recorder, Recordings};
use crate::reported::Reported;
use crate::rights::{Rights, SeatKey};
use crate::session::config::SessionConfig;
use crate::sfu_stats::SharedStats;
use crate::tls::Tls;
use crate::turn::TurnConfig;
use crate::webhooks::{WebhookConfig, Webhooks};
use crate::whip_whep::open::Sessions;

/// Settings of signalling.
#[derive(Debug, Clone)]
pub struct SignalingConfig {
    /// Keys of access tokens.
    pub access: Access,
    /// Whether programs of this machine administer a server without token keys.
    pub admin_local: bool,
    /// Receivers of webhooks.
    pub webhooks: WebhookConfig,
    /// Origins of pages that may use the server.
    pub origins: Origins,
    /// Bounds and times of each socket.
    pub session: SessionConfig,
    /// Admission control; refused sockets get HTTP 503 or 429.
    pub admission: AdmissionLimits,
    /// Time that a client has to take a message before its socket is closed.
    pub send_timeout: Duration,
    /// Time that a client has to send a request, on a new connection or after an answer.
    pub head_timeout: Duration,
    /// Certificate for HTTPS and secure WebSockets; `None`: the server has HTTP only.
    pub tls: Option<Tls>,
    /// Whether to send HSTS, so that browsers use HTTPS only.
    pub hsts: bool,
    /// Whether `/metrics` and `/openapi.json` are served beside the page.
    pub figures: bool,
    /// Proxies whose forwarding headers are trusted.
    pub proxies: TrustedProxies,
    /// TURN and STUN servers for clients.
    pub turn: TurnConfig,
    /// Key of seat tokens. The servers of a cluster have the same key.
    pub seats: SeatKey,
}

impl Default for SignalingConfig {
    fn default() -> Self {
        Self {
            access: Access::default(),
            admin_local: false,
            webhooks: WebhookConfig::default(),
            origins: Origins::default(),
            session: SessionConfig::default(),
            admission: AdmissionLimits::default(),
            send_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(10),
            tls: None,
            hsts: false,
            figures: true,
            proxies: TrustedProxies::default(),
            turn: TurnConfig::default(),
            seats: SeatKey::default(),
        }
    }
}

/// Switches the enhancer off and on during calls. Returns whether it runs now.
pub type EnhancerSwitch = Arc<dyn Fn(bool) -> bool + Send + Sync>;

/// Begins to end the server, as SIGTERM does. Returns the longest time that rooms have to end.
pub type Drain = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The parts that signalling talks to.
#[derive(Clone)]
pub struct Services {
    /// The SFU.
    pub sfu: SfuHandle,
    /// Switch of the enhancer, behind `/admin/enhancer`.
    pub enhancer_switch: EnhancerSwitch,
    /// Source of the metrics on `/metrics`.
    pub metrics: MetricSource,
    /// Ends the server after its rooms, behind `/admin/drain`.
    pub drain: Drain,
    /// Recorder of rooms; `None`: the server does not record.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// The cluster; `None`: the server is alone.
    pub cluster: Option<Arc<dyn Cluster>>,
}

/// Counters of signalling.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sockets: AtomicU64,
    pub(crate) connections_refused_full: AtomicU64,
    pub(crate) connections_refused_address: AtomicU64,
    pub(crate) sockets_refused_full: AtomicU64,
    pub(crate) sockets_refused_address: AtomicU64,
    pub(crate) sockets_flooded: AtomicU64,
    pub(crate) joins_limited: AtomicU64,
    pub(crate) joins_over_share: AtomicU64,
    pub(crate) messages_in: AtomicU64,
    pub(crate) messages_out: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) rate_limited: AtomicU64,
    pub(crate) joins_unauthorized: AtomicU64,
    pub(crate) replaced: AtomicU64,
    pub(crate) admin_refused: AtomicU64,
    pub(crate) joins: SharedLatencies,
    pub(crate) reported: Reported,
}

pub(crate) struct Shared {
    pub(crate) config: SignalingConfig,
    pub(crate) services: Services,
    pub(crate) stats: SharedStats,
    pub(crate) directory: Directory,
    pub(crate) rights: Arc<Rights>,
    pub(crate) webhooks: Webhooks,
    pub(crate) recordings: Recordings,
    pub(crate) sessions: Sessions,
    pub(crate) counters: Counters,
    pub(crate) admission: Arc<AdmissionControl>,
    /// Whether the server takes no new rooms.
    pub(crate) draining: AtomicBool,
    pub(crate) stop: watch::Sender<bool>,
}
