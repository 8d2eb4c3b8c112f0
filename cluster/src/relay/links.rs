//! Links between SFUs that share rooms: one gRPC stream for each pair of SFUs, for all rooms that the two share.
//!
//! The server with the smaller name dials. Each link has a bounded queue. Media and data that may be lost, without room
//! in it or after too long a wait, are dropped and counted. Where anything else has no room, the link is closed, so
//! that both sides start over. Incoming messages have back-pressure: the sender waits while the receiver does not read.
//!
//! Source: decision 014.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use windlass_types::NodeId;

use crate::mutual::{Mutual, Role};
use crate::proto::relay::Message;
use crate::proto::relay::relay_client::RelayClient;
use crate::proto::relay::relay_server::Relay as Service;
use crate::remote::RemoteError;
use crate::token::{ClusterToken, HEADER};

/// Metadata key of the dialling server's name, in hexadecimal.
const NODE_HEADER: &str = "windlass-node";
/// Capacity of a link's queue, in messages: half a second of ten cameras.
const QUEUE: usize = 4_096;
/// Part of [`QUEUE`] that messages which may be dropped leave free, in messages.
const RESERVED: usize = 1_024;
/// Time in the queue after which a message is dropped, if it may be.
const MAX_AGE: Duration = Duration::from_millis(400);
/// Interval of HTTP/2 keep-alive pings.
const KEEPALIVE_INTERVAL: Duration = Duration::from_millis(500);
/// Time without an answer to a keep-alive ping after which a link is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time limit for dialling a server.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// First pause between two attempts to dial; doubled after each failure.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two attempts to dial.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// HTTP/2 flow control window of a link, in bytes: 800 ms at 40 Mbit/s.
const WINDOW: u32 = 4 << 20;
/// Maximum size of a message, in bytes: an anchor.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// An event of a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// A link is up.
    Up(NodeId),
    /// A link is down.
    Down(NodeId),
    /// A message arrived.
    Message(NodeId, Message),
}

/// Settings of links.
#[derive(Clone)]
pub struct LinksConfig {
    /// Name of this server.
    pub me: NodeId,
    /// The cluster's token, with which links authenticate.
    pub token: Option<ClusterToken>,
    /// Certificates for mutual TLS; `None`: links are plaintext.
    pub tls: Option<Mutual>,
}

/// Counters of all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Links that are up.
    pub up: usize,
    /// Messages put into queues.
    pub sent: u64,
    /// Messages dropped because a queue was full: media, and data that may be lost.
    pub dropped: u64,
    /// Messages dropped because they had waited too long: media, and data that may be lost.
    pub stale: u64,
    /// Links closed because a queue was full of other messages.
    pub overflowed: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    dropped: AtomicU64,
    stale: AtomicU64,
    overflowed: AtomicU64,
}

#[derive(Default)]
struct Peer {
    /// Relay address of the server, while a link to it is wanted.
    address: Option<Arc<str>>,
    /// Whether a task dials the server.
    is_dialled: bool,
    link: Option<Link>,
    /// Lock that the served connection holds: one at a time.
    serving: Arc<AsyncMutex<()>>,
}

struct Link {
    queue: Sender<Queued>,
    end: watch::Sender<bool>,
}

struct Queued {
    at: Instant,
    may_drop: bool,
    message: Message,
}

struct Shared {
    me: NodeId,
    token: Option<MetadataValue<Ascii>>,
    tls: Option<Mutual>,
    peers: Mutex<HashMap<NodeId, Peer>>,
    events: Sender<LinkEvent>,
    counters: Arc<Counters>,
    runtime: Handle,
}

/// All links of this server. Clones share one state. The module's documentation has the method.
#[derive(Clone)]
pub struct Links(Arc<Shared>);

impl Links {
    /// A server's links, none at first. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// The token is no header value.
    pub fn new(config: &LinksConfig, events: Sender<LinkEvent>) -> Result<Links, RemoteError> {
        let token = config.token.as_ref().map(|token| token.header().parse());
        Ok(Links(Arc::new(Shared {
            me: config.me,
            token: token.transpose().map_err(|_| RemoteError::Token)?,
            tls: config.tls.clone(),
            peers: Mutex::default(),
            events,
            counters: Arc::default(),
            runtime: Handle::current(),
        })))
    }

    /// Sets the servers to which links are kept, with their relay addresses. Links that this server dialled to others
    /// are closed.
    pub fn set_targets(&self, targets: &HashMap<NodeId, Arc<str>>) {
        let mut peers = self.0.peers.lock();
        for (name, peer) in peers.iter_mut() {
            peer.address = targets.get(name).cloned();
            if peer.address.is_none()
                && peer.is_dialled
                && let Some(link) = &peer.link
            {
                link.end.send_replace(true);
            }
        }
        for (&name, address) in targets.iter().filter(|(name, _)| **name > self.0.me) {
            let peer = peers.entry(name).or_default();
            peer.address = Some(address.clone());
            if !std::mem::replace(&mut peer.is_dialled, true) {
                self.0.runtime.spawn(dial(self.0.clone(), name));
            }
        }
    }

    /// Sends a message, if there is a link. Never blocks.
    pub fn send(&self, node: NodeId, message: Message, may_drop: bool) {
        let counters = &self.0.counters;
        let peers = self.0.peers.lock();
        let Some(link) = peers.get(&node).and_then(|peer| peer.link.as_ref()) else { return };
        if may_drop && link.queue.capacity() < RESERVED {
            count(&counters.dropped);
            return;
        }
        let queued = Queued { at: Instant::now(), may_drop, message };
        if link.queue.try_send(queued).is_ok() {
            count(&counters.sent);
        } else if !link.end.send_replace(true) {
            count(&counters.overflowed);
        }
    }

    /// Closes the link to a server that sent a malformed message. A new link may follow.
    pub fn close(&self, node: NodeId) {
        let peers = self.0.peers.lock();
        if let Some(link) = peers.get(&node).and_then(|peer| peer.link.as_ref()) {
            link.end.send_replace(true);
        }
    }

    /// Counters of all links.
    pub fn stats(&self) -> LinkStats {
        let Shared { peers, counters, .. } = &*self.0;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkStats {
            up: peers.lock().values().filter(|peer| peer.link.is_some()).count(),
            sent: count(&counters.sent),
            dropped: count(&counters.dropped),
            stale: count(&counters.stale),
            overflowed: count(&counters.overflowed),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A gRPC server with keep-alive, which detects dead links.
pub fn server() -> Server {
    Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
}

/// Keeps a link to a server for as long as it is a target.
async fn dial(shared: Arc<Shared>, name: NodeId) {
    let mut pause = MIN_PAUSE;
    let mut is_reported = false;
    loop {
        let address = {
            let mut peers = shared.peers.lock();
            let Some(peer) = peers.get_mut(&name) else { return };
            let Some(address) = peer.address.clone() else {
                peer.is_dialled = false;
                return;
            };
            address
        };
        let begun = Instant::now();
        let mut failed = None;
        match timeout(DIAL_TIMEOUT, connect(&shared, &address)).await {
            Ok(Ok((queue, messages))) => serve(&shared, name, queue, messages).await,
            Ok(Err(why)) => failed = Some(why.to_string()),
            Err(_) => failed = Some("no answer in time".to_owned()),
        }
        // Logged once for each outage; dialling goes on.
        if let Some(why) = failed.as_ref().filter(|_| !std::mem::replace(&mut is_reported, true)) {
            tracing::warn!(node = %name, %address, why, "cannot link to a server that shares rooms: trying again; check its `node-listen` address and the firewall");
        }
        let lasted = failed.is_none() && begun.elapsed() > MAX_PAUSE;
        is_reported &= !lasted;
        pause = if lasted { MIN_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
        sleep(pause).await;
    }
}

async fn connect(
    shared: &Shared,
    address: &Arc<str>,
) -> Result<(Sender<Queued>, Streaming<Message>), Box<dyn std::error::Error + Send + Sync>> {
    // A lease must not be able to downgrade a link to plaintext.
    if shared.tls.is_some() && !address.starts_with("https://") {
        return Err("the address is not https".into());
    }
    let mut endpoint = Endpoint::from_shared(address.to_string())?
        .tcp_nodelay(true)
        .connect_timeout(DIAL_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if let Some(tls) = &shared.tls {
        endpoint = endpoint.tls_config(tls.to(Role::Server))?;
    }
    let mut client = RelayClient::new(endpoint.connect().await?)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (queue, waiting) = mpsc::channel(QUEUE);
    let mut request = Request::new(outgoing(waiting, shared.counters.clone()));
    request.metadata_mut().insert(NODE_HEADER, shared.me.to_string().parse()?);
    if let Some(token) = &shared.token {
        request.metadata_mut().insert(HEADER, token.clone());
    }
    Ok((queue, client.link(request).await?.into_inner()))
}

/// The messages of a queue, without those that may be dropped and have waited too long.
fn outgoing(
    waiting: Receiver<Queued>,
    counters: Arc<Counters>,
) -> impl Stream<Item = Message> + Send + 'static {
    ReceiverStream::new(waiting).filter_map(move |queued: Queued| {
        let is_stale = queued.may_drop && queued.at.elapsed() > MAX_AGE;
        if is_stale {
            count(&counters.stale);
        }
        (!is_stale).then_some(queued.message)
    })
}

/// Serves a link until it ends. A newer link to the same server replaces it.
async fn serve(
    shared: &Arc<Shared>,
    name: NodeId,
    queue: Sender<Queued>,
    mut messages: Streaming<Message>,
) {
    let (end, mut ended) = watch::channel(false);
    let serving = {
        let mut peers = shared.peers.lock();
        let peer = peers.entry(name).or_default();
        if let Some(former) = &peer.link {
            former.end.send_replace(true);
        }
        peer.serving.clone()
    };
    let guard = serving.lock_owned().await;
    if let Some(peer) = shared.peers.lock().get_mut(&name) {
        // It may no longer be a target.
        end.send_replace(peer.is_dialled && peer.address.is_none());
        peer.link = Some(Link { queue: queue.clone(), end });
    }
    let _ = shared.events.send(LinkEvent::Up(name)).await;
    tracing::info!(node = %name, "relay link up");
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            _ = ended.wait_for(|ended| *ended) => None,
            () = queue.closed() => None,
        };
        let Some(Ok(message)) = message else { break };
        if shared.events.send(LinkEvent::Message(name, message)).await.is_err() {
            break;
        }
    }
    if let Some(peer) = shared.peers.lock().get_mut(&name) {
        peer.link = None;
    }
    let _ = shared.events.send(LinkEvent::Down(name)).await;
    tracing::info!(node = %name, "relay link down");
    drop(guard);
}

/// The gRPC service.
#[derive(Clone)]
pub struct LinkService(pub Links);

/// The dialling server, if its name is valid and smaller than `me`.
fn caller(metadata: &MetadataMap, me: NodeId) -> Option<NodeId> {
    let name = metadata.get(NODE_HEADER)?.to_str().ok()?.parse().ok()?;
    (name < me).then_some(name)
}

#[tonic::async_trait]
impl Service for LinkService {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

    async fn link(
        &self,
        request: Request<Streaming<Message>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let shared = self.0.0.clone();
        let Some(name) = caller(request.metadata(), shared.me) else {
            return Err(Status::invalid_argument(
                "the server with the smaller name must dial, with its name in `windlass-node`",
            ));
        };
        let (queue, waiting) = mpsc::channel(QUEUE);
        let outgoing = outgoing(waiting, shared.counters.clone()).map(Ok);
        let messages = request.into_inner();
        tokio::spawn(async move { serve(&shared, name, queue, messages).await });
        Ok(Response::new(Box::pin(outgoing)))
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
