//! The ways between SFUs that share rooms: one gRPC stream between two of them, whatever number of rooms they share.
//!
//! The node with the smaller name dials. Messages wait in a bounded queue; media for which there is no room, or that has waited too long, is
//! dropped and counted, and where anything else finds no room the link is cut, so that both sides begin anew. What comes in waits for whoever
//! takes it, and so does its sender then.
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
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::mutual::{Mutual, Role};
use crate::relay::Message;
use crate::relay::relay_client::RelayClient;
use crate::relay::relay_server::Relay as Service;
use crate::remote::RemoteError;
use crate::token::{ClusterToken, HEADER};

/// Where whoever dials says its name.
const NODE: &str = "windlass-node";
/// Messages that may wait for a link: half a second of ten cameras.
const QUEUE: usize = 4_096;
/// Of these, places that media leaves free.
const RESERVED: usize = 1_024;
/// Media that has waited for so long is of no use.
const STALE: Duration = Duration::from_millis(400);
/// How often a link is asked whether it lives, and how long it may take to answer.
const ALIVE: Duration = Duration::from_millis(500);
const ANSWER: Duration = Duration::from_millis(1_500);
/// How long a node may take to accept a link.
const ACCEPT: Duration = Duration::from_secs(1);
/// Between two attempts, at first and at the most.
const AGAIN: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_secs(1);
/// What may be under way: at 40 Mbit/s, 800 ms.
const WINDOW: u32 = 4 << 20;
/// Largest message: an anchor.
pub const MOST_BYTES: usize = 4 << 20;

/// A node's name.
pub type Name = u64;

/// What links bring.
#[derive(Debug)]
pub enum Heard {
    /// There is a way to a node now.
    Up(Name),
    /// There is none any more.
    Down(Name),
    /// A node says something.
    Said(Name, Message),
}

/// How nodes are spoken to.
#[derive(Clone)]
pub struct LinksConfig {
    /// This node's own name.
    pub me: Name,
    /// The cluster's, which every link shows.
    pub token: Option<ClusterToken>,
    /// The cluster's authority and this node's own certificate; without, links are plain.
    pub tls: Option<Mutual>,
}

/// What links have done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Those that are up.
    pub up: usize,
    /// Messages handed to them.
    pub sent: u64,
    /// Media that found a queue full.
    pub dropped: u64,
    /// Media that had waited too long.
    pub stale: u64,
    /// Links that were cut because nothing found room any more.
    pub cut: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    dropped: AtomicU64,
    stale: AtomicU64,
    cut: AtomicU64,
}

#[derive(Default)]
struct Peer {
    /// Where it is dialled, while a link to it is wanted.
    address: Option<Arc<str>>,
    dialled: bool,
    link: Option<Link>,
    /// Whose link is served: one at a time.
    turn: Arc<Turn<()>>,
}

struct Link {
    queue: Sender<Queued>,
    end: watch::Sender<bool>,
}

struct Queued {
    since: Instant,
    is_media: bool,
    message: Message,
}

struct Shared {
    me: Name,
    token: Option<MetadataValue<Ascii>>,
    tls: Option<Mutual>,
    peers: Mutex<HashMap<Name, Peer>>,
    heard: Sender<Heard>,
    counters: Arc<Counters>,
    runtime: Handle,
}

/// See the module.
#[derive(Clone)]
pub struct Links(Arc<Shared>);

impl Links {
    /// No links yet; `heard` takes what they bring. To be called within tokio's runtime.
    pub fn new(config: &LinksConfig, heard: Sender<Heard>) -> Result<Links, RemoteError> {
        let token = config.token.as_ref().map(|token| token.header().parse());
        Ok(Links(Arc::new(Shared {
            me: config.me,
            token: token.transpose().map_err(|_| RemoteError::Token)?,
            tls: config.tls.clone(),
            peers: Mutex::default(),
            heard,
            counters: Arc::default(),
            runtime: Handle::current(),
        })))
    }

    /// Keeps links to these nodes, by name and address, and to no others that this one dials.
    pub fn want(&self, nodes: &HashMap<Name, Arc<str>>) {
        let mut peers = self.0.peers.lock();
        for (name, peer) in peers.iter_mut() {
            peer.address = nodes.get(name).cloned();
            if peer.address.is_none()
                && peer.dialled
                && let Some(link) = &peer.link
            {
                link.end.send_replace(true);
            }
        }
        for (&name, address) in nodes.iter().filter(|(name, _)| **name > self.0.me) {
            let peer = peers.entry(name).or_default();
            peer.address = Some(address.clone());
            if !std::mem::replace(&mut peer.dialled, true) {
                self.0.runtime.spawn(dial(self.0.clone(), name));
            }
        }
    }

    /// Says something to a node, to which there may be no link. Never waits.
    pub fn send(&self, node: Name, message: Message, is_media: bool) {
        let counters = &self.0.counters;
        let peers = self.0.peers.lock();
        let Some(link) = peers.get(&node).and_then(|peer| peer.link.as_ref()) else { return };
        if is_media && link.queue.capacity() < RESERVED {
            count(&counters.dropped);
            return;
        }
        let queued = Queued { since: Instant::now(), is_media, message };
        if link.queue.try_send(queued).is_ok() {
            count(&counters.sent);
        } else if !link.end.send_replace(true) {
            count(&counters.cut);
        }
    }

    /// Ends the link to a node that says what makes no sense; it may come again.
    pub fn cut(&self, node: Name) {
        let peers = self.0.peers.lock();
        if let Some(link) = peers.get(&node).and_then(|peer| peer.link.as_ref()) {
            link.end.send_replace(true);
        }
    }

    /// What they have done so far.
    pub fn stats(&self) -> LinkStats {
        let Shared { peers, counters, .. } = &*self.0;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkStats {
            up: peers.lock().values().filter(|peer| peer.link.is_some()).count(),
            sent: count(&counters.sent),
            dropped: count(&counters.dropped),
            stale: count(&counters.stale),
            cut: count(&counters.cut),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A gRPC server that finds out soon when a link is dead.
pub fn server() -> Server {
    Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(ALIVE))
        .http2_keepalive_timeout(Some(ANSWER))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
}

/// Keeps a link to a node for as long as it is wanted.
async fn dial(shared: Arc<Shared>, name: Name) {
    let mut pause = AGAIN;
    let mut told = false;
    loop {
        let address = {
            let mut peers = shared.peers.lock();
            let Some(peer) = peers.get_mut(&name) else { return };
            let Some(address) = peer.address.clone() else {
                peer.dialled = false;
                return;
            };
            address
        };
        let begun = Instant::now();
        let mut failed = None;
        match timeout(ACCEPT, connect(&shared, &address)).await {
            Ok(Ok((queue, messages))) => serve(&shared, name, queue, messages).await,
            Ok(Err(why)) => failed = Some(why.to_string()),
            Err(_) => failed = Some("it does not answer in time".to_owned()),
        }
        // Said once: what is shared with it is not until there is a link, and it is tried on and on.
        if let Some(why) = failed.as_ref().filter(|_| !std::mem::replace(&mut told, true)) {
            tracing::warn!(node = name, %address, why, "no link to another server of a room");
        }
        let lasted = failed.is_none() && begun.elapsed() > MOST_PAUSE;
        told &= !lasted;
        pause = if lasted { AGAIN } else { (pause * 2).min(MOST_PAUSE) };
        sleep(pause).await;
    }
}

async fn connect(
    shared: &Shared,
    address: &Arc<str>,
) -> Result<(Sender<Queued>, Streaming<Message>), Box<dyn std::error::Error + Send + Sync>> {
    // Whoever may write leases must not be able to have plain connections made.
    if shared.tls.is_some() && !address.starts_with("https://") {
        return Err("its address is not https".into());
    }
    let mut endpoint = Endpoint::from_shared(address.to_string())?
        .tcp_nodelay(true)
        .connect_timeout(ACCEPT)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(ANSWER)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if let Some(tls) = &shared.tls {
        endpoint = endpoint.tls_config(tls.to(Role::Server))?;
    }
    let mut client = RelayClient::new(endpoint.connect().await?)
        .max_decoding_message_size(MOST_BYTES)
        .max_encoding_message_size(MOST_BYTES);
    let (queue, waiting) = mpsc::channel(QUEUE);
    let mut request = Request::new(leaving(waiting, shared.counters.clone()));
    request.metadata_mut().insert(NODE, format!("{:016x}", shared.me).parse()?);
    if let Some(token) = &shared.token {
        request.metadata_mut().insert(HEADER, token.clone());
    }
    Ok((queue, client.link(request).await?.into_inner()))
}

/// What leaves by a link, without what has waited too long.
fn leaving(
    waiting: Receiver<Queued>,
    counters: Arc<Counters>,
) -> impl Stream<Item = Message> + Send + 'static {
    ReceiverStream::new(waiting).filter_map(move |queued: Queued| {
        let stale = queued.is_media && queued.since.elapsed() > STALE;
        if stale {
            count(&counters.stale);
        }
        (!stale).then_some(queued.message)
    })
}

/// Reads a link to its end. A newer one to the same node ends it.
async fn serve(
    shared: &Arc<Shared>,
    name: Name,
    queue: Sender<Queued>,
    mut messages: Streaming<Message>,
) {
    let (end, mut ended) = watch::channel(false);
    let turn = {
        let mut peers = shared.peers.lock();
        let peer = peers.entry(name).or_default();
        if let Some(former) = &peer.link {
            former.end.send_replace(true);
        }
        peer.turn.clone()
    };
    let own = turn.lock_owned().await;
    if let Some(peer) = shared.peers.lock().get_mut(&name) {
        // It may not be wanted any more by now.
        end.send_replace(peer.dialled && peer.address.is_none());
        peer.link = Some(Link { queue: queue.clone(), end });
    }
    let _ = shared.heard.send(Heard::Up(name)).await;
    tracing::info!(node = %format_args!("{name:016x}"), "linked");
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            _ = ended.wait_for(|ended| *ended) => None,
            () = queue.closed() => None,
        };
        let Some(Ok(message)) = message else { break };
        if shared.heard.send(Heard::Said(name, message)).await.is_err() {
            break;
        }
    }
    if let Some(peer) = shared.peers.lock().get_mut(&name) {
        peer.link = None;
    }
    let _ = shared.heard.send(Heard::Down(name)).await;
    tracing::info!(node = %format_args!("{name:016x}"), "no longer linked");
    drop(own);
}

/// The service, to be given to tonic's server.
#[derive(Clone)]
pub struct LinkService(pub Links);

/// Who dials, if that makes sense.
fn caller(metadata: &MetadataMap, me: Name) -> Option<Name> {
    let name = metadata.get(NODE)?.to_str().ok()?;
    let name = Name::from_str_radix(name, 16).ok()?;
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
            return Err(Status::invalid_argument("a node with a smaller name dials, and says it"));
        };
        let (queue, waiting) = mpsc::channel(QUEUE);
        let leaving = leaving(waiting, shared.counters.clone()).map(Ok);
        let messages = request.into_inner();
        tokio::spawn(async move { serve(&shared, name, queue, messages).await });
        Ok(Response::new(Box::pin(leaving)))
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
