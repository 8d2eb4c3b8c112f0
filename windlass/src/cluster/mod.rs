//! Connections to other machines: workers, other servers of the cluster, and NATS.
//!
//! `no_cluster.rs` takes the place of this module in a build without the feature `cluster`.

pub(crate) mod enhance;
mod mutual;
mod node;
mod workers;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use windlass_cluster::mutual::{Mutual, Role};
use windlass_cluster::nats;
use windlass_sfu::{EnhancerSinks, RelaySink, SfuHandle};
use windlass_signaling::cluster::Cluster;
use windlass_signaling::rights::SeatKey;
use windlass_signaling::{Metric, Signaling};

use self::node::Node;
use self::workers::Workers;
use crate::config::Config;
use crate::deliver::Deliver;

pub(crate) use windlass_cluster::mutual::Files;
pub(crate) use windlass_cluster::nats::NatsConfig;
pub(crate) use windlass_cluster::token::ClusterToken;

/// Whether workers enhance instead of this process.
pub(crate) fn has_workers(config: &Config) -> bool {
    Workers::wanted(config)
}

/// This server's connections to other machines.
#[derive(Clone)]
pub(crate) struct Connections {
    workers: Arc<Workers>,
    nats: Option<nats::Client>,
    node: Option<Arc<Node>>,
    mutual: Option<Mutual>,
}

impl Connections {
    /// Connects to NATS, if the configuration names it. Other servers do not see this one before [`Connections::join`].
    pub(crate) async fn open(config: &Config) -> Result<Connections> {
        let nats = match &config.nats {
            Some(nats) => Some(connect(nats, config).await?),
            None => None,
        };
        let mutual = mutual::start(config.cluster.files.as_ref(), Role::Server)?;
        let node = match nats.clone().zip(config.node.clone()) {
            Some((client, node)) => Some(Node::new(client, node, config, mutual.clone()).await?),
            None => None,
        };
        Ok(Connections { workers: Arc::default(), nats, node, mutual })
    }

    /// Sink for what the SFU has for other servers; `None` if this server does not share rooms.
    pub(crate) fn relay(&self) -> Option<RelaySink> {
        self.node.as_ref()?.sink()
    }

    /// Sinks for the SFU's tap inputs and requests to the workers.
    pub(crate) fn enhancer(&self) -> EnhancerSinks {
        let (inputs, requests) = (self.workers.clone(), self.workers.clone());
        EnhancerSinks {
            tap: Arc::new(move |input| inputs.push(input)),
            requests: Arc::new(move |stream, request| requests.request(stream, request)),
        }
    }

    /// Key of seats that all servers of the cluster share; `None` if this server is alone.
    pub(crate) fn seats(&self) -> Option<SeatKey> {
        let client = self.nats.as_ref().filter(|_| self.node.is_some())?;
        Some(SeatKey::of(&client.seal_key().derive("windlass seats")))
    }

    /// Starts the exchange with workers, if the configuration asks for them.
    pub(crate) fn start_workers(&self, config: &Config, to_sfu: Deliver) -> Result<()> {
        if !has_workers(config) {
            return Ok(());
        }
        self.workers.start(config, to_sfu, self.nats.clone(), self.mutual.clone())
    }

    /// Whether the exchange with workers has started.
    pub(crate) fn has_workers(&self) -> bool {
        self.workers.started()
    }

    /// Placement of rooms on the servers of the cluster; `None` if this server is alone.
    pub(crate) fn placement(&self) -> Option<Arc<dyn Cluster>> {
        self.node.clone().map(|node| node as Arc<dyn Cluster>)
    }

    /// Joins the cluster, if this server is one of several.
    pub(crate) fn join(&self, signaling: Signaling, sfu: SfuHandle) {
        if let Some(node) = &self.node {
            node.start(signaling, sfu);
        }
    }

    /// Hands all rooms over to other servers, if there are any, and takes no new ones.
    pub(crate) async fn drain(&self) {
        if let Some(node) = &self.node {
            node.drain().await;
        }
    }

    /// Releases the lease.
    pub(crate) fn stop(&self) {
        if let Some(node) = &self.node {
            node.stop();
        }
    }

    /// Releases the lease, and waits until that is done; `None` if there is no lease.
    pub(crate) fn leave(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let node = self.node.clone()?;
        Some(Box::pin(async move { node.leave().await }))
    }

    /// Metrics of all connections.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut all = self.workers.metrics();
        if let Some(nats) = &self.nats {
            all.push(Metric::new("windlass_cluster_nats_connected", nats.is_connected()));
            all.extend(nats.rejected().into_iter().map(
                |nats::Rejected { bucket, reason, count }| {
                    let metric = Metric::new("windlass_cluster_rejected_entries_total", count);
                    metric.label("bucket", bucket).label("reason", reason)
                },
            ));
        }
        all.extend(self.mutual.iter().flat_map(mutual::metrics));
        all.extend(self.node.as_ref().map_or_else(Vec::new, |node| node.metrics()));
        all
    }
}

/// Whether NATS accepts this server within `patience`; `None` if the configuration names no NATS.
pub(crate) fn nats_answers(config: &Config, patience: Duration) -> Option<Result<()>> {
    let nats = config.nats.as_ref()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Some(runtime.map_err(Error::from).and_then(|runtime| {
        runtime.block_on(async {
            let client = connect(nats, config).await?;
            let connected = async {
                while !client.is_connected() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let late = |_| {
                anyhow!(
                    "no connection to any of {} NATS servers within {patience:?}",
                    nats.servers.len()
                )
            };
            tokio::time::timeout(patience, connected).await.map_err(late)
        })
    }))
}

async fn connect(nats: &NatsConfig, config: &Config) -> Result<nats::Client> {
    let token = config.cluster.token.as_ref().filter(|token| !token.is_of_enhancers());
    let token = token.context(
        "cluster-token is a token of enhancers: a server needs the token from which it was derived",
    )?;
    Ok(nats::connect(nats, "windlass serve", token).await?)
}
