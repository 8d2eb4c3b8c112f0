//! What an SFU shares with others of rooms that are on several: links to them, and who is there.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Receiver};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use windlass_cluster::links::{self, Heard, LinkService, Links, LinksConfig, MOST_BYTES};
use windlass_cluster::mutual::{Mutual, Role};
use windlass_cluster::relay::relay_server::RelayServer;
use windlass_cluster::rooms;
use windlass_cluster::token::ClusterToken;
use windlass_sfu::{NodeId, ParticipantId, RelaySink, Relayed, SfuHandle};
use windlass_signaling::{Metric, Person, Signaling};

use super::Node;
use super::wire::{self, Said, Who};
use crate::config::Config;

/// Messages of all links that wait for the SFU.
const HEARD: usize = 1_024;
/// Participants of one room on other nodes who have names here; further ones have none.
const MOST_AFAR: usize = 10_000;

/// See the module.
pub struct Share {
    links: Links,
    address: String,
    /// Until it is started: what links bring, and who listens for them.
    parts: Mutex<Option<Parts>>,
    signaling: OnceLock<Signaling>,
    /// Participants on other nodes, by room.
    afar: Mutex<HashMap<Arc<str>, HashMap<ParticipantId, u64>>>,
    malformed: Arc<AtomicU64>,
}

struct Parts {
    heard: Receiver<Heard>,
    listener: TcpListener,
    token: Option<ClusterToken>,
    tls: Option<Mutual>,
}

impl Share {
    /// Listens for other nodes, and says nothing yet.
    pub async fn new(
        me: u64,
        listen: SocketAddr,
        address: Option<String>,
        config: &Config,
        tls: Option<Mutual>,
    ) -> Result<Share> {
        let listener = TcpListener::bind(listen).await;
        let listener = listener.with_context(|| {
            format!("cannot listen on {listen}: choose another address with `--node-listen`")
        })?;
        let local = listener.local_addr()?;
        tracing::info!(%local, "other servers may come");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (sender, heard) = mpsc::channel(HEARD);
        let token = config.cluster.token.clone();
        let own = LinksConfig { me, token: token.clone(), tls: tls.clone() };
        Ok(Share {
            links: Links::new(&own, sender)?,
            address: address.unwrap_or_else(|| format!("{scheme}://{local}")),
            parts: Mutex::new(Some(Parts { heard, listener, token, tls })),
            signaling: OnceLock::new(),
            afar: Mutex::default(),
            malformed: Arc::default(),
        })
    }

    /// Where other nodes reach it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many participants of a room each other node has.
    pub fn crowd(&self, room: &str) -> HashMap<Arc<str>, usize> {
        let mut crowd: HashMap<Arc<str>, usize> = HashMap::new();
        for node in self.afar().get(room).into_iter().flat_map(HashMap::values) {
            *crowd.entry(format!("{node:016x}").into()).or_default() += 1;
        }
        crowd
    }

    fn afar(&self) -> MutexGuard<'_, HashMap<Arc<str>, HashMap<ParticipantId, u64>>> {
        self.afar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the SFU has for other nodes.
    pub fn sink(node: &Arc<Node>) -> Option<RelaySink> {
        node.share.as_ref()?;
        let node = node.clone();
        Some(Arc::new(move |to, room, relayed| {
            if let Some(share) = &node.share {
                share.say(to, room, &relayed);
            }
        }))
    }

    fn say(&self, to: NodeId, room: &Arc<str>, relayed: &Relayed) {
        let who = match relayed {
            Relayed::Joined { participant } => {
                let known = self.signaling.get().and_then(|all| all.person(*participant));
                known.map(|(Person { name, identity, was }, age_s)| Who {
                    name,
                    identity,
                    was,
                    age_s,
                })
            }
            // It is told anew, or not at all, who is there.
            Relayed::Begin | Relayed::End => {
                self.forget(|of, _, at| of == room && *at == to.0);
                None
            }
            _ => None,
        };
        let message = wire::to_message(room, relayed, who, Instant::now());
        self.links.send(to.0, message, relayed.is_media());
    }

    /// Serves and dials from now on.
    pub fn start(&self, node: &Arc<Node>, signaling: Signaling, sfu: SfuHandle) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Parts { heard, listener, token, tls }) = parts else { return };
        let _ = self.signaling.set(signaling);
        let links = self.links.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(links, listener, token, tls).await {
                tracing::error!(%error, "no other server can reach this one");
            }
        });
        let (taker, takes) = (node.clone(), sfu.clone());
        tokio::spawn(async move { take(&taker, &takes, heard).await });
        let sharer = node.clone();
        tokio::spawn(async move { keep_shared(&sharer, &sfu).await });
    }

    /// A node says something.
    async fn said(
        &self,
        own: &Node,
        sfu: &SfuHandle,
        node: u64,
        message: windlass_cluster::relay::Message,
    ) {
        let Said { room, relayed, joined: who } = match wire::of_message(message, Instant::now()) {
            Ok(Some(said)) => said,
            Ok(None) => return,
            Err(why) => {
                tracing::warn!(node = %format_args!("{node:016x}"), %why, "a node makes no sense");
                self.malformed.fetch_add(1, Ordering::Relaxed);
                return self.links.cut(node);
            }
        };
        let left = match &relayed {
            Relayed::Joined { participant } => {
                let name = format!("{node:016x}");
                if !own.known().rooms.shares(&rooms::key(&room), &name) {
                    return;
                }
                let afar = &mut *self.afar();
                let people = afar.entry(room.clone()).or_default();
                if people.len() < MOST_AFAR
                    && let Some((signaling, who)) = self.signaling.get().zip(who)
                {
                    people.insert(*participant, node);
                    let person = Person { name: who.name, identity: who.identity, was: who.was };
                    signaling.came_afar(*participant, &room, person, who.age_s);
                }
                None
            }
            Relayed::Left { participant } => Some(*participant),
            _ => None,
        };
        let _ = sfu.relayed(NodeId(node), &room, relayed).await;
        if let Some(participant) = left {
            self.forget(|of, id, at| **of == *room && *id == participant && *at == node);
        }
    }

    /// Forgets who is not there any more.
    fn forget(&self, gone: impl Fn(&Arc<str>, &ParticipantId, &u64) -> bool) {
        let mut afar = self.afar();
        for (room, people) in afar.iter_mut() {
            people.retain(|id, node| {
                let gone = gone(room, id, node);
                if let Some(signaling) = self.signaling.get().filter(|_| gone) {
                    signaling.left_afar(*id);
                }
                !gone
            });
        }
        afar.retain(|_, people| !people.is_empty());
    }

    /// What it does.
    pub fn metrics(&self) -> Vec<Metric> {
        let stats = self.links.stats();
        vec![
            Metric::gauge("relay_links", stats.up as f64)
                .help("SFUs to which there is a link, for rooms that both have."),
            Metric::counter("relay_sent", stats.sent).help("Messages handed to these links."),
            Metric::counter("relay_dropped", stats.dropped)
                .help("Packets and anchors for which a link had no room."),
            Metric::counter("relay_stale", stats.stale)
                .help("Packets and anchors that had waited too long for a link."),
            Metric::counter("relay_cut", stats.cut)
                .help("Links that were cut because they took nothing any more."),
            Metric::counter("relay_malformed", self.malformed.load(Ordering::Relaxed))
                .help("Messages of other SFUs that made no sense; each ended its link."),
        ]
    }
}

async fn serve(
    links: Links,
    listener: TcpListener,
    token: Option<ClusterToken>,
    tls: Option<Mutual>,
) -> Result<()> {
    let service = RelayServer::new(LinkService(links))
        .max_decoding_message_size(MOST_BYTES)
        .max_encoding_message_size(MOST_BYTES);
    let check = move |request| match &token {
        Some(token) => token.check(request),
        None => Ok(request),
    };
    let router = links::server().add_service(InterceptedService::new(service, check));
    let ended = if let Some(tls) = tls {
        router.serve_with_incoming(tls.incoming(listener, Role::Server)).await
    } else {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        router.serve_with_incoming(incoming).await
    };
    ended.context("the port for other servers")
}

/// Hands the SFU what links bring, for as long as they do.
async fn take(node: &Arc<Node>, sfu: &SfuHandle, mut heard: Receiver<Heard>) {
    let Some(share) = &node.share else { return };
    while let Some(heard) = heard.recv().await {
        let (name, up) = match heard {
            Heard::Said(name, message) => {
                share.said(node, sfu, name, message).await;
                continue;
            }
            Heard::Up(name) => (name, true),
            Heard::Down(name) => (name, false),
        };
        node.known().rooms.linked(&format!("{name:016x}"), up, Instant::now());
        let _ = sfu.linked(NodeId(name), up).await;
        if !up {
            share.forget(|_, _, at| *at == name);
        }
    }
}

/// Tells the SFU on which other nodes its rooms are, and keeps links to these.
async fn keep_shared(node: &Arc<Node>, sfu: &SfuHandle) {
    let Some(share) = &node.share else { return };
    let mut told: HashMap<String, BTreeSet<u64>> = HashMap::new();
    loop {
        let mut wanted = HashMap::new();
        let mut shared: HashMap<String, BTreeSet<u64>> = HashMap::new();
        {
            let known = node.known();
            for (key, nodes) in known.rooms.shared() {
                let Some(room) = rooms::room(key) else { continue };
                let names = nodes.iter().filter_map(|name| {
                    let number = u64::from_str_radix(name, 16).ok()?;
                    wanted.insert(number, known.rooms.relay(name)?);
                    Some(number)
                });
                shared.insert(room, names.collect());
            }
        }
        share.links.want(&wanted);
        for (room, nodes) in &shared {
            if told.get(room) != Some(nodes) {
                let nodes: Vec<_> = nodes.iter().copied().map(NodeId).collect();
                let _ = sfu.share(room, &nodes).await;
            }
        }
        for room in told.keys().filter(|room| !shared.contains_key(*room)) {
            let _ = sfu.share(room, &[]).await;
        }
        told = shared;
        node.changed.notified().await;
    }
}
