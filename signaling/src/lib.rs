//! WebSocket signalling for Windlass rooms, and the HTTP service around it.
//!
//! [`Signaling::router`] serves `/ws` (the protocol of `docs/signaling.md`, its types in `windlass-protocol`),
//! `/whip/…` and `/whep/…` (for encoders and players that are not ours), `/healthz`, `/readyz`, `/metrics` (Prometheus
//! text), `/admin/…` (by an admin's access token; without token keys this machine only, if that is allowed),
//! `/openapi.json`, which describes them all, and, for everything else, the page that the caller passes in.
//!
//! Each socket has one [`session::Session`], which is sans-I/O: texts, events and time go in,
//! messages and requests to the SFU come out. `socket` is the thin shell around it. Nothing that a
//! client sends ends more than its own socket: what cannot be used is answered by an `error`
//! message and counted.

pub mod access;
mod admin;
mod admission;
pub mod at_file;
mod client;
mod clock;
pub mod cluster;
mod convert;
mod directory;
mod effects;
mod entry;
mod families;
mod health;
mod host;
mod hsts;
mod http;
mod intake;
mod metric;
mod metrics;
mod openapi;
mod origin;
mod rate;
mod record;
mod recordings;
mod redact;
mod reported;
pub mod rights;
mod rules;
pub mod session;
mod sfu_stats;
mod shared;
mod socket;
mod tls;
mod turn;
pub mod webhooks;
mod whip_whep;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio::sync::watch;
use windlass_protocol::Attributes;
use windlass_sfu::ParticipantId;

pub use admission::{AdmissionLimits, Refused};
pub use client::{ClientAddr, Network, NoNetwork, TrustedProxies};
pub use families::{MetricSource, families};
pub use metric::{Family, Metric, MetricKind, Value};
pub use metrics::metrics_page;
pub use openapi::document as openapi_document;
pub use origin::{NotAnOrigin, Origin, Origins};
pub use recordings::{EventFile, EventRecording, Recorder, RecordingEnd, RecordingOrder};
pub use redact::{Pseudonym, pseudonym};
pub use session::ParticipantInfo;
pub use shared::{Drain, EnhancerSwitch, Services, SignalingConfig};
pub use tls::{Tls, TlsError};
pub use turn::{BadTurnSecret, BadTurnUrl, TurnAccess, TurnConfig, TurnSecret, TurnUrl};

use crate::access::Access;
use crate::admission::AdmissionControl;
use crate::clock::unix_now;
use crate::directory::Directory;
use crate::recordings::Recordings;
use crate::rights::Rights;
use crate::sfu_stats::SharedStats;
use crate::shared::{Counters, Shared};
use crate::webhooks::{WebhookError, Webhooks};
use crate::whip_whep::open::Sessions;

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The signalling service. Cheap to clone; clones are the same service.
///
/// ```
/// use axum::{Router, body::Body, http::Request};
/// use tower::ServiceExt;
/// use windlass_signaling::{MetricSource, Services, Signaling, SignalingConfig};
/// # use std::{sync::Arc, time::Duration};
/// # use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let media = SfuConfig { udp: ([127, 0, 0, 1], 0).into(), ..SfuConfig::default() };
/// # let sfu = Sfu::start(&media, &EnhancerSinks::none())?;
/// let services = Services {
///     sfu: sfu.handle(),
///     enhancer_switch: Arc::new(|_| false),
///     metrics: MetricSource::default(),
///     drain: Arc::new(|| Duration::ZERO),
///     recorder: None,
///     cluster: None,
/// };
/// let signaling = Signaling::new(SignalingConfig::default(), services)?;
/// let app = signaling.router(Router::new());
/// let is_ready = || app.clone().oneshot(Request::get("/readyz").body(Body::empty()).unwrap());
/// assert_eq!(is_ready().await?.status(), 200);
/// signaling.drain().await;
/// assert_eq!(is_ready().await?.status(), 503);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Signaling {
    shared: Arc<Shared>,
}

impl Signaling {
    /// Makes the service. It serves nothing yet. Its background tasks (webhooks, rights) run in the current tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// The webhooks' configuration cannot be used.
    pub fn new(config: SignalingConfig, services: Services) -> Result<Self, WebhookError> {
        let webhooks = Webhooks::start(&config.webhooks)?;
        let admission = AdmissionControl::new(config.admission);
        let rights = Rights::new(config.seats.clone(), services.cluster.is_some());
        let shared = Shared {
            config,
            services,
            stats: SharedStats::default(),
            rights,
            directory: Directory::new(webhooks.clone()),
            webhooks,
            recordings: Recordings::default(),
            sessions: Sessions::default(),
            counters: Counters::default(),
            admission,
            draining: AtomicBool::new(false),
            stop: watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        tokio::spawn(effects::run_effects(Arc::downgrade(&shared)));
        Ok(Self { shared })
    }

    /// Takes no new rooms from now on: `/readyz` says so, and a `join` of a new room is refused with `shutting_down`.
    /// Participants of existing rooms may come and go.
    pub async fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
        // A stopped SFU takes no rooms either.
        let _ = self.shared.services.sfu.drain().await;
    }

    /// Rooms with participants on this server, and the number of these. Loopback rooms are left out.
    pub fn rooms(&self) -> Vec<(String, usize)> {
        let rooms = self.shared.directory.occupied();
        rooms.into_iter().filter(|(room, _)| !room.starts_with(entry::LOOPBACK)).collect()
    }

    /// Name and identity of a participant on this server, and its time in the room in whole seconds.
    pub fn participant(&self, id: ParticipantId) -> Option<(ParticipantInfo, Duration)> {
        let (info, since) = self.shared.directory.local(id)?;
        Some((info, Duration::from_secs(unix_now().saturating_sub(since))))
    }

    /// Notes that a participant is in a shared room on another server, for `age`. An earlier one here with the same
    /// identity is commanded to leave.
    pub fn remote_joined(
        &self,
        id: ParticipantId,
        room: &str,
        info: ParticipantInfo,
        age: Duration,
    ) {
        let since = unix_now().saturating_sub(age.as_secs());
        self.shared.directory.remote_joined(id, room, info, since);
    }

    /// Takes another name or other attributes of a participant on another server.
    pub fn remote_changed(&self, id: ParticipantId, name: String, attributes: Attributes) {
        self.shared.directory.remote_changed(id, name, attributes);
    }

    /// Notes that a participant on another server has left.
    pub fn remote_left(&self, id: ParticipantId) {
        self.shared.directory.remote_left(id);
    }

    /// Sends all participants of a room to another server. They are served until they have arrived there. If they
    /// `must` move, they are served for `SessionConfig::moving` at most. Returns whether this is new to any of them.
    pub fn send_away(&self, room: &str, url: &str, must: bool) -> bool {
        self.shared.directory.send_away(room, url, must)
    }

    /// Carries out an order of another server of the cluster ([`cluster::Cluster::order`]). Returns the answer.
    pub async fn on_order(&self, order: &[u8]) -> Vec<u8> {
        admin::everywhere::carry_out(&self.shared, order).await
    }

    /// Notifies participants and webhooks that a recording ended here, by an order or by itself.
    pub async fn recording_ended(&self, room: &str, recording: EventRecording) {
        record::ended(&self.shared, room, recording).await;
    }

    /// Tells webhooks that the enhanced pictures of a recording, which has ended before, are made or cannot be made.
    pub fn recording_enhanced(&self, room: &str, recording: EventRecording) {
        record::enhanced(&self.shared, room, recording);
    }

    /// Tells webhooks that a store has a recording, which has ended before.
    pub fn recording_stored(&self, room: &str, recording: EventRecording) {
        record::stored(&self.shared, room, recording);
    }

    /// Replaces the keys of access tokens. Participants stay.
    pub fn set_access(&self, access: &Access) {
        self.shared.config.access.replace(access);
    }

    /// Replaces the bounds of admission control. Participants stay.
    pub fn set_admission(&self, limits: AdmissionLimits) {
        self.shared.admission.set_limits(limits);
    }

    /// The HTTP routes; `page` answers every path that is not signalling's own.
    ///
    /// `/admin/…` needs the client's address: serve with
    /// `into_make_service_with_connect_info::<SocketAddr>()`, or by [`Signaling::serve`].
    pub fn router(&self, page: Router) -> Router {
        let config = &self.shared.config;
        let mut routes = openapi::routes();
        if config.figures {
            routes = routes.merge(openapi::figures());
        }
        let (routes, _) = routes.split_for_parts();
        let origins = Arc::new(config.origins.clone());
        let check = middleware::from_fn_with_state(origins, origin::check);
        let everywhere =
            middleware::from_fn_with_state(self.shared.clone(), admin::everywhere::pass_on);
        let routes = routes.with_state(self.shared.clone()).layer(everywhere);
        let app = routes.layer(check).fallback_service(page);
        if config.hsts { app.layer(middleware::from_fn(hsts::add_header)) } else { app }
    }

    /// Serves `/metrics`, `/openapi.json` and the server's health alone, over plain HTTP, for as long as
    /// [`Signaling::serve`] does.
    pub async fn serve_figures(&self, listener: TcpListener) {
        let (routes, _) = openapi::figures().merge(openapi::health_routes()).split_for_parts();
        let serving = http::Serving { tls: None, ..self.serving() };
        let app = routes.with_state(self.shared.clone());
        http::serve(listener, app, serving, self.shared.stop.subscribe()).await;
    }

    fn serving(&self) -> http::Serving {
        let config = &self.shared.config;
        http::Serving {
            head_timeout: config.head_timeout,
            tls: config.tls.clone(),
            proxies: config.proxies.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Serves until `stop` is ready, then notifies every client, and waits up to `grace` until they have left.
    pub async fn serve(
        &self,
        listener: TcpListener,
        page: Router,
        stop: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) {
        let app = self.router(page);
        self.log_access(&listener);
        let mut stopping = self.shared.stop.subscribe();
        let shared = self.shared.clone();
        let stop = async move {
            stop.await;
            shared.stop.send_replace(true);
        };
        let server = http::serve(listener, app, self.serving(), self.shared.stop.subscribe());
        let deadline = async move {
            // The sender lives in `self.shared`, so waiting ends only when the flag is set.
            let _ = stopping.wait_for(|stop| *stop).await;
            tokio::time::sleep(grace).await;
        };
        let served = async {
            tokio::join!(stop, server);
            self.all_sockets_closed().await;
            self.shared.sessions.closed().await;
            self.shared.webhooks.flushed().await;
        };
        tokio::select! {
            () = served => {}
            () = deadline => {}
        }
    }

    /// Logs at the start who may enter rooms.
    fn log_access(&self, listener: &TcpListener) {
        let local = listener.local_addr().is_ok_and(|addr| addr.ip().is_loopback());
        match (self.shared.config.access.is_open(), local) {
            (false, _) => tracing::info!("rooms need access tokens"),
            (true, true) => tracing::info!("no token keys: every room is open"),
            (true, false) => {
                tracing::warn!(
                    "no token keys: every room is open to all clients that reach this server; set `token-key`"
                );
            }
        }
    }

    async fn all_sockets_closed(&self) {
        while self.shared.admission.open() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
