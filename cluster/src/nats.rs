//! Leases and claims in NATS buckets: workers and SFUs write theirs, SFUs read all of them.
//!
//! Everything in a [`Bucket`] is [sealed](crate::sealed): what others write there is not heard, but counted, and said once a minute. So is a deletion: whoever
//! gives something up writes an empty content under its seal.
//!
//! Nobody waits for it. While it cannot be reached, streams stay where they are and go to workers that were known, and both sides
//! try again; what was written twice in the meantime is one lease, as its key is the worker's.
//!
//! Source: decisions 012, 013 and 025.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use async_nats::{ConnectOptions, ServerAddr};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::StreamExt;

use crate::lease::{HOLDS, Lease, RENEW};
use crate::rogues::Rogues;
use crate::rooms::{self, Claim, NodeLease};
use crate::sealed::{BusClock, BusTime, Rogue, SealKey, Seals};
use crate::token::ClusterToken;

/// A place of keys and values that all of a cluster read and some write. Whoever comes first makes it.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// By which NATS knows it.
    pub name: &'static str,
    /// What was not written again for so long goes by itself.
    pub holds: Duration,
    /// Who writes there.
    pub writers: Writers,
    /// How much it holds, which NATS sets aside at once.
    pub bytes: i64,
}

/// Who can seal what is in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Servers alone: who has the cluster's token.
    Servers,
    /// Enhancers too, whose token is [made from it](ClusterToken::of_enhancers).
    Enhancers,
}

// Readers of leases do not count on what goes by itself; it keeps the buckets from growing with machines and rooms that are no more.
// All of them, and the one of rules (`windlass/node/rights`), fit into 64 MiB, which is what the chart gives NATS.
/// Workers' leases.
const WORKERS: Bucket = Bucket {
    name: "windlass-workers",
    holds: LEFT_LYING,
    writers: Writers::Enhancers,
    bytes: 6 << 20,
};
/// SFUs' leases.
const NODES: Bucket =
    Bucket { name: "windlass-nodes", holds: LEFT_LYING, writers: Writers::Servers, bytes: 6 << 20 };
/// Claims to rooms.
const ROOMS: Bucket = Bucket {
    name: "windlass-rooms",
    holds: rooms::CLAIM_HOLDS,
    writers: Writers::Servers,
    bytes: 40 << 20,
};
/// What is written only to hear at what time that was: nobody reads it, so that it needs no seal.
const CLOCK: Bucket = Bucket {
    name: "windlass-clock",
    holds: LEFT_LYING,
    writers: Writers::Enhancers,
    bytes: 1 << 20,
};
const LEFT_LYING: Duration = Duration::from_secs(10);
const _: () = assert!(LEFT_LYING.as_secs() == 5 * HOLDS.as_secs());

/// How often the bus is asked for the time: should its clock jump, leases are believed again before they have ended.
const ASK: Duration = Duration::from_secs(1);
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

/// Connects in the background, for as long as the client lives. `token` seals, and opens what others have sealed.
pub async fn connect(
    config: &NatsConfig,
    name: &str,
    token: &ClusterToken,
) -> Result<Client, NatsError> {
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
    // The library leaves in the addresses what stands there.
    options = match access(&config.servers) {
        Some((user, Some(password))) => options.user_and_password(user, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    let nats = options.connect(&config.servers).await?;
    Ok(Client(Arc::new(Shared {
        nats,
        name: format!("{:016x}", rand::random::<u64>()),
        servers: SealKey::of(token),
        enhancers: SealKey::of(&token.of_enhancers()),
        seals: Mutex::default(),
        clock: Mutex::default(),
        asking: Turn::default(),
        rogues: Mutex::default(),
    })))
}

/// User and password, or a token alone, before the host of the first address that has them: all servers of a NATS cluster take the same.
fn access(servers: &[String]) -> Option<(String, Option<String>)> {
    let addresses = servers.iter().filter_map(|server| server.parse::<ServerAddr>().ok());
    let mut known = addresses.filter_map(|address| {
        let user = address.username()?.to_owned();
        Some((user, address.password().map(str::to_owned)))
    });
    known.next()
}

/// A connection to NATS, and what makes and knows the cluster's seals. A clone is the same.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    nats: async_nats::Client,
    /// Its own key where it asks for the time.
    name: String,
    servers: SealKey,
    enhancers: SealKey,
    /// By bucket: what was read of each.
    seals: Mutex<HashMap<&'static str, Arc<Seals>>>,
    clock: Mutex<BusClock>,
    /// One asks at a time.
    asking: Turn<()>,
    rogues: Mutex<Rogues>,
}

impl Client {
    /// Whether a server answers.
    pub fn is_connected(&self) -> bool {
        self.0.nats.connection_state() == State::Connected
    }

    /// What was refused so far, as it was not the cluster's own, by bucket and reason.
    pub fn refused(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.0.rogues.lock().counts()
    }

    /// What seals for servers alone.
    pub fn seal_key(&self) -> &SealKey {
        &self.0.servers
    }

    /// What time it is on the bus, as far as that was heard.
    pub fn time(&self) -> Option<BusTime> {
        self.0.clock.lock().now(Instant::now())
    }

    /// The same for the next seal, asked for anew where that is some time ago.
    async fn now(&self) -> Option<BusTime> {
        let _turn = self.0.asking.lock().await;
        let age = self.0.clock.lock().age(Instant::now());
        if age.is_none_or(|age| age >= ASK)
            && let Some(time) = self.ask().await
        {
            self.0.clock.lock().heard(time, Instant::now());
        }
        self.0.clock.lock().next(Instant::now())
    }

    /// Writes something, and looks when that was.
    async fn ask(&self) -> Option<BusTime> {
        let (store, name) = (self.store(&CLOCK).await?, &self.0.name);
        let revision = answer(store.put(name, Vec::new().into())).await?;
        let entry = answer(store.entry_for_revision(name, revision)).await??;
        Some(written(&entry))
    }

    /// The seals of a bucket.
    fn seals(&self, bucket: &Bucket) -> Arc<Seals> {
        let Shared { servers, enhancers, seals, .. } = &*self.0;
        let key = match bucket.writers {
            Writers::Servers => servers,
            Writers::Enhancers => enhancers,
        };
        let fresh = || Arc::new(Seals::new(key.clone(), bucket.name));
        seals.lock().entry(bucket.name).or_insert_with(fresh).clone()
    }

    fn refuse(&self, bucket: &Bucket, why: Rogue) {
        let told = self.0.rogues.lock().refused(bucket.name, why, Instant::now());
        if let Some(times) = told {
            tracing::warn!(
                bucket = bucket.name,
                times,
                "refused what is not this cluster's own: {why}; somebody else writes there, or has another cluster-token"
            );
        }
    }

    /// The bucket, which whoever comes first makes; nothing where that does not succeed.
    async fn store(&self, bucket: &Bucket) -> Option<Store> {
        let context = jetstream::new(self.0.nats.clone());
        let name = bucket.name;
        if let Some(store) = answer(context.get_key_value(name)).await {
            return Some(store);
        }
        // What `create_key_value` makes as well; but that asks for what servers before 2.10 do not say of an account.
        let config = |num_replicas| stream::Config {
            name: format!("KV_{name}"),
            description: Some(
                "Who is there, and what is where, in a cluster of Windlass".to_owned(),
            ),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            max_age: bucket.holds,
            max_bytes: bucket.bytes,
            // A lease that is older than a server's restart says nothing.
            storage: StorageType::Memory,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            discard: DiscardPolicy::New,
            num_replicas,
            ..stream::Config::default()
        };
        let several = self.0.nats.server_info().connect_urls.len() > 1;
        for replicas in [REPLICAS, 1] {
            if replicas > 1 && !several {
                continue;
            }
            match timeout(ANSWER, context.create_stream(config(replicas))).await {
                Ok(Ok(_)) => return answer(context.get_key_value(name)).await,
                Ok(Err(why)) => tracing::debug!(%why, replicas, "no bucket"),
                Err(_) => tracing::debug!(replicas, "no bucket in time"),
            }
        }
        None
    }

    /// Writes a key in the place of `revision` (0: of nothing, or what was given up); the new revision. `None`: somebody else was quicker, or it
    /// cannot be said. Where what is there is nobody's own, it is written over.
    pub async fn replace(
        &self,
        bucket: &Bucket,
        key: &str,
        content: &[u8],
        revision: u64,
    ) -> Option<u64> {
        let (store, seals) = (self.store(bucket).await?, self.seals(bucket));
        let write = async |revision| {
            let sealed = seals.seal(key, content, self.now().await?);
            answer(store.update(key, sealed.into(), revision)).await
        };
        if let Some(revision) = write(revision).await {
            return Some(revision);
        }
        let Some(entry) = answer(store.entry(key)).await? else { return write(0).await };
        let sealed = seals.open(key, &entry.value, (written(&entry), entry.revision));
        let is_free = sealed.map_or(true, |content| revision == 0 && content.is_empty());
        if is_free { write(entry.revision).await } else { None }
    }

    /// Writes a key in the place of whatever is there. Whether that is known to be done.
    pub async fn write(&self, bucket: &Bucket, key: &str, content: &[u8]) -> bool {
        let Some(store) = self.store(bucket).await else { return false };
        let Some(now) = self.now().await else { return false };
        let sealed = self.seals(bucket).seal(key, content, now);
        answer(store.put(key, sealed.into())).await.is_some()
    }

    /// Gives a key up, if it is still that of the revision. Whether an answer came.
    pub async fn give_up(&self, bucket: &Bucket, key: &str, revision: u64) -> bool {
        let Some(store) = self.store(bucket).await else { return false };
        let Some(now) = self.now().await else { return false };
        let sealed = self.seals(bucket).seal(key, GIVEN_UP, now);
        timeout(ANSWER, store.update(key, sealed.into(), revision)).await.is_ok()
    }

    /// Writes a key again and again until `stop` says so, and gives it up then.
    pub async fn keep(
        &self,
        (bucket, key): (&Bucket, &str),
        every: Duration,
        content: impl Fn() -> Vec<u8>,
        mut stop: watch::Receiver<bool>,
    ) {
        let seals = self.seals(bucket);
        let mut renewals = interval(every);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut store = None;
        while !*stop.borrow() {
            tokio::select! {
                _ = renewals.tick() => {}
                _ = stop.changed() => break,
            }
            if store.is_none() {
                store = self.store(bucket).await;
            }
            let Some(there) = &store else { continue };
            let Some(now) = self.now().await else { continue };
            let sealed = seals.seal(key, &content(), now);
            if answer(there.put(key, sealed.into())).await.is_none() {
                // A server that was started anew has no bucket.
                store = None;
            }
        }
        if let Some((there, now)) = store.zip(self.now().await) {
            let _ = answer(there.put(key, seals.seal(key, GIVEN_UP, now).into())).await;
        }
    }

    /// Reads a bucket for as long as it is polled.
    pub async fn read(&self, bucket: &Bucket, heard: impl Fn(Heard<'_>)) {
        let seals = self.seals(bucket);
        self.0.rogues.lock().reads(bucket.name);
        loop {
            if self.is_connected()
                && let Some(store) = self.store(bucket).await
                && let Some(mut entries) = answer(store.watch_with_history(">")).await
            {
                let since = Instant::now();
                let mut looks = interval(LOOK);
                heard(Heard::Begins);
                while self.is_connected() {
                    tokio::select! {
                        entry = entries.next() => match entry {
                            Some(Ok(entry)) => heard(self.open(bucket, &seals, &entry)),
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

    fn open<'a>(&self, bucket: &Bucket, seals: &Seals, entry: &'a kv::Entry) -> Heard<'a> {
        let (name, revision) = (entry.key.as_str(), entry.revision);
        match seals.open(name, &entry.value, (written(entry), revision)) {
            Ok(GIVEN_UP) => Heard::GivenUp { name, revision },
            Ok(bytes) => Heard::Written { name, bytes, revision },
            Err(why) => {
                self.refuse(bucket, why);
                Heard::Refused { name }
            }
        }
    }
}

/// What is written to a key that is given up.
const GIVEN_UP: &[u8] = &[];

async fn answer<T, E>(request: impl Future<Output = Result<T, E>>) -> Option<T> {
    timeout(ANSWER, request).await.ok()?.ok()
}

/// When the bus says that something was written.
fn written(entry: &kv::Entry) -> BusTime {
    let ms = entry.created.unix_timestamp_nanos() / 1_000_000;
    BusTime(u64::try_from(ms).unwrap_or_default())
}

/// What is heard of a bucket.
#[derive(Debug)]
pub enum Heard<'a> {
    /// All that there is is about to be said.
    Begins,
    /// Something was written.
    Written {
        /// Its key: whose lease, or which room.
        name: &'a str,
        /// Its content: the lease, or claim.
        bytes: &'a [u8],
        /// What was written later has a greater one.
        revision: u64,
    },
    /// It was given up.
    GivenUp {
        /// See above.
        name: &'a str,
        /// See above.
        revision: u64,
    },
    /// Somebody who is not of the cluster has written or deleted it: it says nothing, and whoever wrote it before may do so again.
    Refused {
        /// See above.
        name: &'a str,
    },
    /// It can be read since then without a break. Said again and again; never while it cannot.
    Readable {
        /// Since when.
        since: Instant,
    },
    /// It cannot be read any more.
    Cut,
}

/// Keeps a worker's lease until `stop` says so, and gives it up then.
pub async fn keep_lease(
    client: Client,
    name: String,
    lease: impl Fn() -> Lease,
    stop: watch::Receiver<bool>,
) {
    client.keep((&WORKERS, &name), RENEW, || lease().write(), stop).await;
}

/// The same of an SFU's.
pub async fn keep_node(
    client: Client,
    name: &str,
    lease: impl Fn() -> NodeLease,
    stop: watch::Receiver<bool>,
) {
    let written = || serde_json::to_vec(&lease()).unwrap_or_default();
    client.keep((&NODES, name), rooms::RENEW, written, stop).await;
}

/// Reads all workers' leases for as long as it is polled.
pub async fn watch_leases(client: Client, heard: impl Fn(Heard<'_>)) {
    client.read(&WORKERS, heard).await;
}

/// The same of SFUs'.
pub async fn watch_nodes(client: Client, heard: impl Fn(Heard<'_>)) {
    client.read(&NODES, heard).await;
}

/// The same of claims to rooms.
pub async fn watch_claims(client: Client, heard: impl Fn(Heard<'_>)) {
    client.read(&ROOMS, heard).await;
}

/// Claims a room in the place of the claim of `revision` (0: none); the claim's own revision. `None`: somebody else was quicker, or
/// it cannot be said.
pub async fn claim(client: &Client, room: &str, claim: &Claim, revision: u64) -> Option<u64> {
    let bytes = serde_json::to_vec(claim).unwrap_or_default();
    client.replace(&ROOMS, room, &bytes, revision).await
}

/// Gives a claim up, if it is still that of the revision. Whether an answer came.
pub async fn release(client: &Client, room: &str, revision: u64) -> bool {
    client.give_up(&ROOMS, room, revision).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_one_is_to_nats_stands_before_the_host() {
        let of =
            |servers: &[&str]| access(&servers.iter().map(ToString::to_string).collect::<Vec<_>>());
        let known = |user: &str, password: Option<&str>| {
            Some((user.to_owned(), password.map(str::to_owned)))
        };
        assert_eq!(of(&["tls://a:4222", "nats://b:4222"]), None);
        assert_eq!(of(&["tls://windlass:x9@nats:4222"]), known("windlass", Some("x9")));
        assert_eq!(of(&["nats://a:4222", "nats://t0ken@b:4222"]), known("t0ken", None));
    }
}
