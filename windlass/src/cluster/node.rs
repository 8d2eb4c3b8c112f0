//! This server in a cluster: connects [`windlass_cluster::node`] with signalling and the SFU.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use anyhow::Result;
use windlass_cluster::mutual::Mutual;
use windlass_cluster::nats::Client;
use windlass_cluster::node::{
    Node as ClusterNode, NodeConfig as ClusterConfig, NodeError, NodeStats, Rule, SharingConfig,
};
use windlass_cluster::relay::messages::RelayedParticipant;
use windlass_cluster::ticket::Mover;
use windlass_sfu::{NodeId, ParticipantId, RelaySink, Relayed, SfuHandle};
use windlass_signaling::cluster::{self, Answers, Cluster, Ordered, Placed, RoomServer};
use windlass_signaling::{Metric, ParticipantInfo, Signaling};

use crate::config::{Config, NodeConfig};

/// Signalling and SFU in the form that the cluster needs.
pub(super) struct Host {
    signaling: Signaling,
    sfu: SfuHandle,
}

// An SFU that has stopped needs nothing of the cluster: its errors are ignored.
impl windlass_cluster::node::Host for Host {
    fn rooms(&self) -> Vec<(String, usize)> {
        self.signaling.rooms()
    }

    fn send_away(&self, room: &str, url: &str, must: bool) -> bool {
        self.signaling.send_away(room, url, must)
    }

    fn participant(&self, id: ParticipantId) -> Option<RelayedParticipant> {
        let (info, age) = self.signaling.participant(id)?;
        let ParticipantInfo { name, identity, was, attributes } = info;
        Some(RelayedParticipant { name, identity, was, attributes, age })
    }

    fn remote_joined(&self, id: ParticipantId, room: &str, who: RelayedParticipant) {
        let RelayedParticipant { name, identity, was, attributes, age } = who;
        let info = ParticipantInfo { name, identity, was, attributes };
        self.signaling.remote_joined(id, room, info, age);
    }

    fn remote_changed(&self, id: ParticipantId, who: RelayedParticipant) {
        self.signaling.remote_changed(id, who.name, who.attributes);
    }

    fn remote_left(&self, id: ParticipantId) {
        self.signaling.remote_left(id);
    }

    async fn set_shared(&self, room: &str, nodes: &[NodeId]) {
        let _ = self.sfu.share(room, nodes).await;
    }

    async fn on_link(&self, node: NodeId, up: bool) {
        let _ = self.sfu.linked(node, up).await;
    }

    async fn on_relayed(&self, node: NodeId, room: &Arc<str>, message: Relayed) {
        let _ = self.sfu.relayed(node, room, message).await;
    }

    async fn on_order(&self, order: Vec<u8>) -> Vec<u8> {
        self.signaling.on_order(&order).await
    }

    async fn next_rules(&self) -> Vec<Rule> {
        let rules = self.signaling.next_rules().await;
        rules.into_iter().map(|rule| Rule { key: rule.key, value: rule.value }).collect()
    }

    fn on_rule(&self, value: &[u8]) -> Result<String, Box<dyn Error>> {
        Ok(self.signaling.on_rule(value)?.key)
    }

    fn resend_rule(&self, key: &str) {
        self.signaling.resend_rule(key);
    }

    fn resend_rules_except(&self, keys: &HashSet<String>) {
        self.signaling.resend_rules_except(keys);
    }
}

/// This server as a node of its cluster.
pub(super) struct Node(Arc<ClusterNode<Host>>);

impl Node {
    /// Creates a node. Other servers do not see it before [`Node::start`].
    pub(super) async fn new(
        client: Client,
        node: NodeConfig,
        config: &Config,
        tls: Option<Mutual>,
    ) -> Result<Arc<Node>> {
        let NodeConfig { url, listen, address, max_participants } = node;
        let token = config.cluster.token.clone();
        let sharing = listen.map(|listen| SharingConfig { listen, address, token, tls });
        let config = ClusterConfig { url, max_room_participants: max_participants, sharing };
        let node = ClusterNode::new(client, config).await.map_err(|error| match error {
            NodeError::Listen { address, source } => anyhow::Error::new(source).context(format!(
                "cannot listen on {address}: choose another address with `--node-listen`"
            )),
            other @ NodeError::Links(_) => other.into(),
        });
        Ok(Arc::new(Node(node?)))
    }

    /// Joins the cluster.
    pub(super) fn start(&self, signaling: Signaling, sfu: SfuHandle) {
        self.0.start(Host { signaling, sfu });
    }

    /// Sink for what the SFU has for other servers; `None` if this server does not share rooms.
    pub(super) fn sink(&self) -> Option<RelaySink> {
        let node = self.0.clone();
        let send = move |to, room: &Arc<str>, relayed| node.relay(to, room, &relayed);
        self.0.shares_rooms().then(|| Arc::new(send) as RelaySink)
    }

    /// Hands all rooms over to other servers, if there are any, and takes no new ones.
    pub(super) async fn drain(&self) {
        self.0.drain().await;
    }

    /// Releases the lease.
    pub(super) fn stop(&self) {
        self.0.stop();
    }

    /// Releases the lease, and waits until that is done.
    pub(super) async fn leave(&self) {
        self.0.leave().await;
    }

    /// Metrics of the node.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        metrics(&self.0.stats())
    }
}

impl Cluster for Node {
    fn place<'a>(&'a self, room: &'a str, local: usize) -> Placed<'a> {
        Box::pin(async move {
            match self.0.place(room, local).await {
                None => RoomServer::Local,
                Some(url) => RoomServer::Redirect(url.to_string()),
            }
        })
    }

    fn others(&self) -> Vec<String> {
        self.0.others().iter().map(ToString::to_string).collect()
    }

    fn order(&self, order: Vec<u8>) -> Ordered<'_> {
        Box::pin(async move {
            let (answers, asked) = self.0.order(&order).await;
            Answers { answers, asked }
        })
    }

    fn ticket(&self, of: &cluster::Mover<'_>, id: ParticipantId) -> Option<String> {
        self.0.ticket(mover(of), &id.to_string())
    }

    fn former_id(&self, of: &cluster::Mover<'_>, ticket: &str) -> Option<String> {
        self.0.former_id(mover(of), ticket)
    }
}

fn mover<'a>(of: &cluster::Mover<'a>) -> Mover<'a> {
    let ParticipantInfo { name, identity, .. } = of.participant;
    Mover { room: of.room, name, identity: identity.as_deref() }
}

fn metrics(stats: &NodeStats) -> Vec<Metric> {
    let mut all = vec![
        Metric::new("windlass_cluster_nodes", stats.nodes),
        Metric::new("windlass_cluster_rooms", stats.claims),
        Metric::new("windlass_cluster_rooms_shared", stats.shared_rooms),
        Metric::new("windlass_cluster_refused_total", stats.malformed_records),
        Metric::new("windlass_cluster_tickets_refused_total", stats.tickets_refused),
        Metric::new("windlass_cluster_rooms_moved_total", stats.rooms_moved),
        Metric::new("windlass_cluster_rooms_spread_total", stats.nodes_added),
        Metric::new("windlass_cluster_rules_refused_total", stats.malformed_rules),
    ];
    if let Some(sharing) = &stats.sharing {
        let links = sharing.links;
        all.extend([
            Metric::new("windlass_relay_links", links.up),
            Metric::new("windlass_relay_sent_total", links.sent),
            Metric::new("windlass_relay_dropped_total", links.dropped),
            Metric::new("windlass_relay_stale_total", links.stale),
            Metric::new("windlass_relay_cut_total", links.overflowed),
            Metric::new("windlass_relay_malformed_total", sharing.malformed),
        ]);
    }
    all
}
