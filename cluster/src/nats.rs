//! Leases and claims in NATS buckets: workers and SFUs write theirs, SFUs read all of them.
//!
//! Nobody waits for it. While it cannot be reached, streams stay where they are and go to workers that were known, and both sides
//! try again; what was written twice in the meantime is one lease, as its key is the worker's.
//!
//! Source: decisions 012 and 013.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::jetstream::kv::{self, Operation, Store};
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::StreamExt;

pub use async_nats::Client;

use crate::lease::{HOLDS, Lease, RENEW};
use crate::rooms::{self, Claim, NodeLease};

/// The bucket of workers' leases.
const WORKERS: &str = "windlass-workers";
/// That of SFUs' leases.
const NODES: &str = "windlass-nodes";
/// That of claims to rooms.
const ROOMS: &str = "windlass-rooms";
/// What each request may take.
const ANSWER: Duration = Duration::from_secs(1);
/// Between two attempts at the bucket.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest pause between two attempts to connect.
const MOST_PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked whether the server is there.
const LOOK: Duration = Duration::from_millis(100);
/// Copies where there are several servers.
const REPLICAS: usize = 3;
/// A bucket, at the most.
const MOST_BYTES: i64 = 64 << 20;

/// Which servers, and how they are spoken to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatsConfig {
    /// `nats://host:4222` or `tls://…`, with user and password or a token before the host where they are wanted.
    pub servers: Vec<String>,
    /// A file of credentials (`.creds`).
    pub credentials: Option<PathBuf>,
    /// The authority of the servers' certificates, where it is not one that the system knows.
    pub ca: Option<PathBuf>,
}

/// Why no connection can be tried at all.
#[derive(Debug, Error)]
pub enum NatsError {
    /// The file of credentials cannot be used.
    #[error("cannot use the credentials in {}: {why}", file.display())]
    Credentials {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: std::io::Error,
    },
    /// Addresses or certificates make no sense.
    #[error("cannot use the NATS servers: {0}")]
    Servers(#[from] async_nats::ConnectError),
}

/// Connects in the background, for as long as the client lives.
pub async fn connect(config: &NatsConfig, name: &str) -> Result<Client, NatsError> {
    let mut options = ConnectOptions::new()
        .name(name)
        .retry_on_initial_connect()
        .connection_timeout(ANSWER)
        .request_timeout(Some(ANSWER))
        .ping_interval(Duration::from_secs(2))
        .reconnect_delay_callback(|attempts| {
            let doubled = Duration::from_millis(50) * (1 << attempts.min(5));
            doubled.min(MOST_PAUSE)
        });
    if let Some(file) = &config.credentials {
        let failed = |why| NatsError::Credentials { file: file.clone(), why };
        let text = std::fs::read_to_string(file).map_err(failed)?;
        options = options.credentials(&text).map_err(failed)?;
    }
    if let Some(ca) = &config.ca {
        options = options.add_root_certificates(ca.clone());
    }
    Ok(options.connect(&config.servers).await?)
}

/// Whether a server answers.
pub fn is_connected(client: &Client) -> bool {
    client.connection_state() == State::Connected
}

/// The bucket, which whoever comes first makes; nothing where that does not succeed.
async fn bucket(client: &Client, name: &str) -> Option<Store> {
    let context = jetstream::new(client.clone());
    if let Ok(Ok(store)) = timeout(ANSWER, context.get_key_value(name)).await {
        return Some(store);
    }
    // What `create_key_value` makes as well; but that asks for what servers before 2.10 do not say of an account.
    let config = |num_replicas| stream::Config {
        name: format!("KV_{name}"),
        description: Some("Who is there, and what is where, in a cluster of Windlass".to_owned()),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        // Readers do not count on it; it keeps the bucket from growing with machines and rooms that are no more.
        max_age: if name == ROOMS { rooms::CLAIM_HOLDS } else { HOLDS * 5 },
        max_bytes: MOST_BYTES,
        // A lease that is older than a server's restart says nothing.
        storage: StorageType::Memory,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        discard: DiscardPolicy::New,
        num_replicas,
        ..stream::Config::default()
    };
    let several = client.server_info().connect_urls.len() > 1;
    for replicas in [REPLICAS, 1] {
        if replicas > 1 && !several {
            continue;
        }
        match timeout(ANSWER, context.create_stream(config(replicas))).await {
            Ok(Ok(_)) => return timeout(ANSWER, context.get_key_value(name)).await.ok()?.ok(),
            Ok(Err(why)) => tracing::debug!(%why, replicas, "no bucket"),
            Err(_) => tracing::debug!(replicas, "no bucket in time"),
        }
    }
    None
}

/// Keeps a worker's lease until `stop` says so, and gives it up then.
pub async fn keep_lease(
    client: Client,
    name: String,
    lease: impl Fn() -> Lease,
    stop: watch::Receiver<bool>,
) {
    keep(client, (WORKERS, &name), RENEW, || lease().write(), stop).await;
}

/// The same of an SFU's.
pub async fn keep_node(
    client: Client,
    name: &str,
    lease: impl Fn() -> NodeLease,
    stop: watch::Receiver<bool>,
) {
    let written = || serde_json::to_vec(&lease()).unwrap_or_default();
    keep(client, (NODES, name), rooms::RENEW, written, stop).await;
}

async fn keep(
    client: Client,
    (within, name): (&str, &str),
    every: Duration,
    lease: impl Fn() -> Vec<u8>,
    mut stop: watch::Receiver<bool>,
) {
    let mut renewals = interval(every);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut store = None;
    while !*stop.borrow() {
        tokio::select! {
            _ = renewals.tick() => {}
            _ = stop.changed() => break,
        }
        if store.is_none() {
            store = bucket(&client, within).await;
        }
        let Some(leases) = &store else { continue };
        let put = timeout(ANSWER, leases.put(name, lease().into())).await;
        if !matches!(put, Ok(Ok(_))) {
            // A server that was started anew has no bucket.
            store = None;
        }
    }
    if let Some(leases) = &store {
        let _ = timeout(ANSWER, leases.delete(name)).await;
    }
}

/// What is heard of a bucket.
#[derive(Debug)]
pub enum Heard<'a> {
    /// All that there is is about to be said.
    Begins,
    /// Something was written.
    Written {
        /// Whose lease, or which room.
        name: &'a str,
        /// The lease, or claim.
        bytes: &'a [u8],
        /// What was written later has a greater one.
        revision: u64,
    },
    /// It was given up.
    GivenUp {
        /// Whose lease, or which room.
        name: &'a str,
        /// See above.
        revision: u64,
    },
    /// It can be read since then without a break. Said again and again; never while it cannot.
    Readable {
        /// Since when.
        since: Instant,
    },
    /// It cannot be read any more.
    Cut,
}

/// Reads all workers' leases for as long as it is polled.
pub async fn watch_leases(client: Client, heard: impl Fn(Heard<'_>)) {
    read(client, WORKERS, heard).await;
}

/// The same of SFUs'.
pub async fn watch_nodes(client: Client, heard: impl Fn(Heard<'_>)) {
    read(client, NODES, heard).await;
}

/// The same of claims to rooms.
pub async fn watch_claims(client: Client, heard: impl Fn(Heard<'_>)) {
    read(client, ROOMS, heard).await;
}

/// Claims a room in the place of the claim of `revision` (0: none); the claim's own revision. `None`: somebody else was quicker, or
/// it cannot be said.
pub async fn claim(client: &Client, room: &str, claim: &Claim, revision: u64) -> Option<u64> {
    let store = bucket(client, ROOMS).await?;
    let bytes = serde_json::to_vec(claim).unwrap_or_default();
    // The same as `create` where there is none, but for what was deleted: that has a revision too.
    let claimed = if revision == 0 {
        timeout(ANSWER, store.create(room, bytes.into())).await.ok()?.ok()
    } else {
        timeout(ANSWER, store.update(room, bytes.into(), revision)).await.ok()?.ok()
    };
    if claimed.is_none() {
        tracing::debug!(room, revision, "somebody else has claimed it");
    }
    claimed
}

/// Gives a claim up, if it is still that of the revision. Whether an answer came.
pub async fn release(client: &Client, room: &str, revision: u64) -> bool {
    let Some(store) = bucket(client, ROOMS).await else { return false };
    timeout(ANSWER, store.delete_expect_revision(room, Some(revision))).await.is_ok()
}

async fn read(client: Client, name: &str, heard: impl Fn(Heard<'_>)) {
    loop {
        if is_connected(&client)
            && let Some(store) = bucket(&client, name).await
            && let Ok(Ok(mut entries)) = timeout(ANSWER, store.watch_with_history(">")).await
        {
            let since = Instant::now();
            let mut looks = interval(LOOK);
            heard(Heard::Begins);
            while is_connected(&client) {
                tokio::select! {
                    entry = entries.next() => match entry {
                        Some(Ok(kv::Entry { key, value, operation, revision, .. })) => {
                            heard(match operation {
                                Operation::Put => {
                                    Heard::Written { name: &key, bytes: &value, revision }
                                }
                                Operation::Delete | Operation::Purge => {
                                    Heard::GivenUp { name: &key, revision }
                                }
                            });
                        }
                        Some(Err(why)) => {
                            tracing::debug!(%why, "leases cannot be read");
                            break;
                        }
                        None => break,
                    },
                    _ = looks.tick() => heard(Heard::Readable { since }),
                }
            }
        }
        heard(Heard::Cut);
        sleep(AGAIN).await;
    }
}
