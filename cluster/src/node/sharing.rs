//! The relay of a node: its listener, its links, and the participants that other servers have in shared rooms.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Receiver};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use windlass_types::relay::Relayed;
use windlass_types::{NodeId, ParticipantId};

use super::{Host, NodeError};
use crate::mutual::{Mutual, Role};
use crate::proto::relay::Message;
use crate::proto::relay::relay_server::RelayServer;
use crate::relay::links::{
    LinkEvent, LinkService, LinkStats, Links, LinksConfig, MAX_MESSAGE_BYTES, server,
};
use crate::relay::messages::{self, RoomMessage};
use crate::token::ClusterToken;

/// Capacity of the queue of link events, in messages of all links.
const EVENT_QUEUE: usize = 1_024;
/// Maximum number of participants of one room on other servers whose names are kept.
const MAX_REMOTE_PARTICIPANTS: usize = 10_000;

/// Settings by which a node shares rooms.
#[derive(Clone)]
pub struct SharingConfig {
    /// Address to listen on for other servers.
    pub listen: SocketAddr,
    /// URL of this server for other servers; `None`: that of the listener.
    pub address: Option<String>,
    /// The cluster's token.
    pub token: Option<ClusterToken>,
    /// Certificates for mutual TLS; `None`: links are plaintext.
    pub tls: Option<Mutual>,
}

/// Counters of the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharingStats {
    /// Counters of the relay's links.
    pub links: LinkStats,
    /// Number of malformed messages. Each closed its link.
    pub malformed: u64,
}

/// The relay of a node: its links, and the participants that other servers have in shared rooms.
pub(super) struct Sharing {
    pub links: Links,
    /// URL for other servers.
    pub address: String,
    /// Parts that the start of the node takes.
    pending: Mutex<Option<Pending>>,
    remote: Mutex<RemoteParticipants>,
    malformed: AtomicU64,
}

/// The server of each participant on other servers, by room.
type RemoteParticipants = HashMap<Arc<str>, HashMap<ParticipantId, NodeId>>;

struct Pending {
    events: Receiver<LinkEvent>,
    listener: TcpListener,
    token: Option<ClusterToken>,
    tls: Option<Mutual>,
}

impl Sharing {
    /// Opens the listener; accepts nothing yet.
    pub(super) async fn new(me: NodeId, config: SharingConfig) -> Result<Sharing, NodeError> {
        let SharingConfig { listen, address, token, tls } = config;
        let failed = |source| NodeError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        tracing::info!(%local, "relay listener ready");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        let links = LinksConfig { me, token: token.clone(), tls: tls.clone() };
        Ok(Sharing {
            links: Links::new(&links, sender)?,
            address: address.unwrap_or_else(|| format!("{scheme}://{local}")),
            pending: Mutex::new(Some(Pending { events, listener, token, tls })),
            remote: Mutex::default(),
            malformed: AtomicU64::new(0),
        })
    }

    /// Accepts links from now on. Returns the events of all links; `None`: it was started before.
    pub(super) fn start(&self) -> Option<Receiver<LinkEvent>> {
        let Pending { events, listener, token, tls } = self.pending.lock().take()?;
        let links = self.links.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(links, listener, token, tls).await {
                tracing::error!(%error, "relay listener failed: other servers cannot link to this one; restart this server");
            }
        });
        Some(events)
    }

    /// Number of participants of a room on each other server, by the server's name.
    pub(super) fn remote_load(&self, room: &str) -> HashMap<Arc<str>, usize> {
        let mut load: HashMap<Arc<str>, usize> = HashMap::new();
        for node in self.remote.lock().get(room).into_iter().flat_map(HashMap::values) {
            *load.entry(node.to_string().into()).or_default() += 1;
        }
        load
    }

    /// Sends a message of this server's SFU to another server. Never blocks.
    pub(super) fn send(
        &self,
        host: Option<&impl Host>,
        to: NodeId,
        room: &Arc<str>,
        relayed: &Relayed,
    ) {
        let who = match relayed {
            Relayed::Joined { participant } | Relayed::Changed { participant } => {
                host.and_then(|host| host.participant(*participant))
            }
            // What the other server has said of the room before no longer holds.
            Relayed::Begin | Relayed::End => {
                self.forget(host, |of, _, at| of == room && at == to);
                None
            }
            _ => None,
        };
        if who.is_none() && matches!(relayed, Relayed::Changed { .. }) {
            // The participant has left: the next message says so.
            return;
        }
        let message = messages::encode(room, relayed, who, Instant::now());
        self.links.send(to, message, relayed.may_drop());
    }

    /// Handles a message of another server. `shares`: whether this server shares a room with that one.
    pub(super) async fn on_message(
        &self,
        host: &impl Host,
        node: NodeId,
        message: Message,
        shares: impl Fn(&str) -> bool,
    ) {
        let RoomMessage { room, relayed, who } = match messages::decode(message, Instant::now()) {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(why) => {
                tracing::warn!(%node, %why, "malformed relay message: closing the link; check that both servers have the same version");
                self.malformed.fetch_add(1, Ordering::Relaxed);
                return self.links.close(node);
            }
        };
        let left = match &relayed {
            Relayed::Joined { participant } => {
                if !shares(&room) {
                    return;
                }
                let remote = &mut *self.remote.lock();
                let participants = remote.entry(room.clone()).or_default();
                if participants.len() < MAX_REMOTE_PARTICIPANTS
                    && let Some(who) = who
                {
                    participants.insert(*participant, node);
                    host.remote_joined(*participant, &room, who);
                }
                None
            }
            Relayed::Changed { participant } => {
                let remote = self.remote.lock();
                let is_there =
                    remote.get(&room).is_some_and(|there| there.get(participant) == Some(&node));
                if let Some(who) = who.filter(|_| is_there) {
                    host.remote_changed(*participant, who);
                }
                None
            }
            Relayed::Left { participant } => Some(*participant),
            _ => None,
        };
        host.on_relayed(node, &room, relayed).await;
        if let Some(left) = left {
            self.forget(Some(host), |of, id, at| *of == room && id == left && at == node);
        }
    }

    /// Forgets the participants of a server to which the link is lost.
    pub(super) fn forget_node(&self, host: &impl Host, node: NodeId) {
        self.forget(Some(host), |_, _, at| at == node);
    }

    fn forget(
        &self,
        host: Option<&impl Host>,
        is_gone: impl Fn(&Arc<str>, ParticipantId, NodeId) -> bool,
    ) {
        let mut remote = self.remote.lock();
        for (room, participants) in remote.iter_mut() {
            participants.retain(|&id, &mut node| {
                let gone = is_gone(room, id, node);
                if let Some(host) = host.filter(|_| gone) {
                    host.remote_left(id);
                }
                !gone
            });
        }
        remote.retain(|_, participants| !participants.is_empty());
    }

    /// The relay's counters.
    pub(super) fn stats(&self) -> SharingStats {
        let malformed = self.malformed.load(Ordering::Relaxed);
        SharingStats { links: self.links.stats(), malformed }
    }
}

async fn serve(
    links: Links,
    listener: TcpListener,
    token: Option<ClusterToken>,
    tls: Option<Mutual>,
) -> Result<(), tonic::transport::Error> {
    let service = RelayServer::new(LinkService(links))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let check = move |request| match &token {
        Some(token) => token.check(request),
        None => Ok(request),
    };
    let router = server().add_service(InterceptedService::new(service, check));
    if let Some(tls) = tls {
        router.serve_with_incoming(tls.incoming(listener, Role::Server)).await
    } else {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        router.serve_with_incoming(incoming).await
    }
}
