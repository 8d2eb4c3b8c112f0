//! The buckets of a cluster, and the leases and claims in them.

use std::time::Duration;

use tokio::sync::watch;

use super::{BucketEvent, Client};
use crate::lease::{self, Lease};
use crate::rooms::{self, ClaimWrite, NodeLease};

/// A key-value bucket that all servers of a cluster read. The first one that needs it creates it.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// Name of the bucket in NATS.
    pub name: &'static str,
    /// Age at which NATS deletes an entry.
    pub ttl: Duration,
    /// Roles that write entries.
    pub writers: Writers,
    /// Maximum size in bytes, which NATS reserves at once. All buckets together fit into the 64 MiB of the Helm chart.
    pub bytes: i64,
}

/// The roles whose seals are valid in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Servers: holders of the cluster's token.
    Servers,
    /// Servers and enhancers: holders of the [token of enhancers](crate::token::ClusterToken::of_enhancers).
    Enhancers,
}

/// [`Bucket::ttl`] of leases. Readers end leases by their own timeouts; the limit keeps the bucket small.
const LEASE_TTL: Duration = Duration::from_secs(10);
const _: () = assert!(LEASE_TTL.as_secs() == 5 * lease::LEASE_TIMEOUT.as_secs());

/// Bucket with the leases of workers.
const WORKERS: Bucket = Bucket {
    name: "windlass-workers",
    ttl: LEASE_TTL,
    writers: Writers::Enhancers,
    bytes: 6 << 20,
};
/// Bucket with the leases of servers.
const NODES: Bucket =
    Bucket { name: "windlass-nodes", ttl: LEASE_TTL, writers: Writers::Servers, bytes: 6 << 20 };
/// Bucket with the claims to rooms.
const ROOMS: Bucket = Bucket {
    name: "windlass-rooms",
    ttl: rooms::CLAIM_TTL,
    writers: Writers::Servers,
    bytes: 40 << 20,
};
/// Bucket of entries that are written to learn the time of NATS. Their content is not read, so they have no seal.
pub(super) const CLOCK: Bucket =
    Bucket { name: "windlass-clock", ttl: LEASE_TTL, writers: Writers::Enhancers, bytes: 1 << 20 };
/// Bucket with the rules of moderators and operators. Servers write them again every hour ([`crate::node`]).
pub(crate) const RULES: Bucket = Bucket {
    name: "windlass-rights",
    ttl: Duration::from_secs(6 * 3_600),
    writers: Writers::Servers,
    bytes: 8 << 20,
};

/// Keeps a worker's lease until `stop` is true, then releases it.
pub async fn keep_worker_lease(
    client: Client,
    name: String,
    lease: impl Fn() -> Lease,
    stop: watch::Receiver<bool>,
) {
    let value = || lease().write();
    client.keep(&WORKERS, &name, lease::RENEW_INTERVAL, value, stop).await;
}

/// Keeps a server's lease until `stop` is true, then releases it.
pub async fn keep_node_lease(
    client: Client,
    name: &str,
    lease: impl Fn() -> NodeLease,
    stop: watch::Receiver<bool>,
) {
    let value = || serde_json::to_vec(&lease()).unwrap_or_default();
    client.keep(&NODES, name, rooms::RENEW_INTERVAL, value, stop).await;
}

/// Follows the leases of workers for as long as the future is polled.
pub async fn watch_worker_leases(client: Client, on_event: impl Fn(BucketEvent<'_>)) {
    client.watch(&WORKERS, on_event).await;
}

/// Follows the leases of servers for as long as the future is polled.
pub async fn watch_node_leases(client: Client, on_event: impl Fn(BucketEvent<'_>)) {
    client.watch(&NODES, on_event).await;
}

/// Follows the claims to rooms for as long as the future is polled.
pub async fn watch_claims(client: Client, on_event: impl Fn(BucketEvent<'_>)) {
    client.watch(&ROOMS, on_event).await;
}

/// Writes a claim. Returns its revision; `None`: another server was faster, or NATS did not answer.
pub async fn write_claim(client: &Client, write: &ClaimWrite) -> Option<u64> {
    let value = serde_json::to_vec(&write.claim).unwrap_or_default();
    client.replace(&ROOMS, &write.room, &value, write.replaces).await
}

/// Releases a claim, if it still has that revision. Returns whether NATS answered.
pub async fn release_claim(client: &Client, room: &str, revision: u64) -> bool {
    client.release(&ROOMS, room, revision).await
}
