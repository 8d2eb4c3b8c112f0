//! NATS buckets: workers and servers write leases, claims and rules, and servers read all of them.
//!
//! Every entry of a [`Bucket`] is [sealed](crate::sealed). Entries without a valid seal are ignored, counted, and
//! logged once a minute. Deletions have no seal, so they are ignored too: an entry is released by writing an empty
//! value.
//!
//! Nothing waits for NATS. While it is unreachable, rooms and streams stay where they are, and clients retry.
//!
//! Source: decisions 012, 013 and 025.

mod buckets;
mod connect;
mod orders;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::StreamExt;

use self::buckets::CLOCK;
pub(crate) use self::buckets::RULES;
pub use self::buckets::{
    Bucket, Writers, keep_node_lease, keep_worker_lease, release_claim, watch_claims,
    watch_node_leases, watch_worker_leases, write_claim,
};
pub use self::connect::{NatsConfig, NatsError, connect};
pub use crate::rejections::Rejected;
use crate::rejections::Rejections;
use crate::sealed::{BusClock, BusTime, SealError, SealKey, Seals, Stored};
use crate::token::ClusterToken;

/// Age at which the time of NATS is asked for again. If NATS's clock jumps, seals are valid again before leases end.
const CLOCK_SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two attempts to read a bucket.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of [`BucketEvent::Readable`], and of checks of the connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of copies of a bucket in a NATS cluster of several servers.
const REPLICAS: usize = 3;
/// The value of an entry that is released.
const RELEASED: &[u8] = &[];

/// A connection to NATS that seals and opens entries. Clones share one connection.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    nats: async_nats::Client,
    /// This process's key in the bucket [`CLOCK`].
    name: String,
    servers: SealKey,
    enhancers: SealKey,
    /// Seals of each bucket's entries, by the bucket's name.
    seals: Mutex<HashMap<&'static str, Arc<Seals>>>,
    clock: Mutex<BusClock>,
    /// Lock that a request for the time holds: one request at a time.
    sync: AsyncMutex<()>,
    rejections: Mutex<Rejections>,
}

impl Client {
    fn new(nats: async_nats::Client, token: &ClusterToken) -> Client {
        Client(Arc::new(Shared {
            nats,
            name: format!("{:016x}", rand::random::<u64>()),
            servers: SealKey::of(token),
            enhancers: SealKey::of(&token.of_enhancers()),
            seals: Mutex::default(),
            clock: Mutex::default(),
            sync: AsyncMutex::default(),
            rejections: Mutex::default(),
        }))
    }

    /// Whether the client is connected to a NATS server.
    pub fn is_connected(&self) -> bool {
        self.0.nats.connection_state() == State::Connected
    }

    /// Number of rejected entries by bucket and reason.
    pub fn rejected(&self) -> Vec<Rejected> {
        self.0.rejections.lock().counts()
    }

    /// The key with which servers seal.
    pub fn seal_key(&self) -> &SealKey {
        &self.0.servers
    }

    /// The time of NATS; `None`: not known yet.
    pub fn time(&self) -> Option<BusTime> {
        self.0.clock.lock().now(Instant::now())
    }

    /// The time for the next seal; asks NATS where the known time is too old.
    async fn seal_time(&self) -> Option<BusTime> {
        let _guard = self.0.sync.lock().await;
        let age = self.0.clock.lock().age(Instant::now());
        if age.is_none_or(|age| age >= CLOCK_SYNC_INTERVAL)
            && let Some(time) = self.request_time().await
        {
            self.0.clock.lock().sync(time, Instant::now());
        }
        self.0.clock.lock().next(Instant::now())
    }

    /// Writes an entry, and reads when NATS stored it.
    async fn request_time(&self) -> Option<BusTime> {
        let (store, name) = (self.store(&CLOCK).await?, &self.0.name);
        let revision = answer(store.put(name, Vec::new().into())).await?;
        let entry = answer(store.entry_for_revision(name, revision)).await??;
        Some(stored(&entry).at)
    }

    fn seals(&self, bucket: &Bucket) -> Arc<Seals> {
        let Shared { servers, enhancers, seals, .. } = &*self.0;
        let key = match bucket.writers {
            Writers::Servers => servers,
            Writers::Enhancers => enhancers,
        };
        let new = || Arc::new(Seals::new(key.clone(), bucket.name));
        seals.lock().entry(bucket.name).or_insert_with(new).clone()
    }

    fn reject(&self, bucket: &'static str, why: SealError) {
        let log = self.0.rejections.lock().rejected(bucket, why, Instant::now());
        if let Some(entries) = log {
            tracing::warn!(
                bucket,
                entries,
                "rejected entries of a NATS bucket: {why}; check who else writes there, and that all servers have the same cluster-token"
            );
        }
    }

    /// The bucket, created if there is none; `None`: NATS did not answer.
    async fn store(&self, bucket: &Bucket) -> Option<Store> {
        let context = jetstream::new(self.0.nats.clone());
        let name = bucket.name;
        if let Some(store) = answer(context.get_key_value(name)).await {
            return Some(store);
        }
        // As `create_key_value` does, which needs account information that servers before 2.10 do not give.
        let config = |num_replicas| stream::Config {
            name: format!("KV_{name}"),
            description: Some(
                "Who is there, and what is where, in a cluster of Windlass".to_owned(),
            ),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            max_age: bucket.ttl,
            max_bytes: bucket.bytes,
            // Leases from before a restart of NATS are out of date.
            storage: StorageType::Memory,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            discard: DiscardPolicy::New,
            num_replicas,
            ..stream::Config::default()
        };
        let is_clustered = self.0.nats.server_info().connect_urls.len() > 1;
        for replicas in [REPLICAS, 1] {
            if replicas > 1 && !is_clustered {
                continue;
            }
            match timeout(REQUEST_TIMEOUT, context.create_stream(config(replicas))).await {
                Ok(Ok(_)) => return answer(context.get_key_value(name)).await,
                Ok(Err(why)) => tracing::debug!(%why, name, replicas, "cannot create the bucket"),
                Err(_) => tracing::debug!(name, replicas, "bucket not created in time"),
            }
        }
        None
    }

    /// Writes an entry in place of `revision` (0: there is none, or it was released). Returns the new revision; `None`:
    /// another writer was faster, or NATS did not answer. An entry without a valid seal is overwritten.
    pub async fn replace(
        &self,
        bucket: &Bucket,
        key: &str,
        value: &[u8],
        revision: u64,
    ) -> Option<u64> {
        let (store, seals) = (self.store(bucket).await?, self.seals(bucket));
        let write = async |revision| {
            let sealed = seals.seal(key, value, self.seal_time().await?);
            answer(store.update(key, sealed.into(), revision)).await
        };
        if let Some(revision) = write(revision).await {
            return Some(revision);
        }
        let Some(entry) = answer(store.entry(key)).await? else { return write(0).await };
        let opened = seals.open(key, &entry.value, stored(&entry));
        let is_free = opened.map_or(true, |value| revision == 0 && value == RELEASED);
        if is_free { write(entry.revision).await } else { None }
    }

    /// Writes an entry in place of any other. Returns whether NATS has confirmed it.
    pub async fn write(&self, bucket: &Bucket, key: &str, value: &[u8]) -> bool {
        let Some(store) = self.store(bucket).await else { return false };
        let Some(now) = self.seal_time().await else { return false };
        let sealed = self.seals(bucket).seal(key, value, now);
        answer(store.put(key, sealed.into())).await.is_some()
    }

    /// Releases an entry, if it still has that revision. Returns whether NATS answered.
    pub async fn release(&self, bucket: &Bucket, key: &str, revision: u64) -> bool {
        let Some(store) = self.store(bucket).await else { return false };
        let Some(now) = self.seal_time().await else { return false };
        let sealed = self.seals(bucket).seal(key, RELEASED, now);
        timeout(REQUEST_TIMEOUT, store.update(key, sealed.into(), revision)).await.is_ok()
    }

    /// Writes an entry at each interval until `stop` is true, then releases it.
    pub async fn keep(
        &self,
        bucket: &Bucket,
        key: &str,
        every: Duration,
        value: impl Fn() -> Vec<u8>,
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
            let Some(bucket) = &store else { continue };
            let Some(now) = self.seal_time().await else { continue };
            let sealed = seals.seal(key, &value(), now);
            if answer(bucket.put(key, sealed.into())).await.is_none() {
                // A restarted NATS server has no buckets.
                store = None;
            }
        }
        if let Some((bucket, now)) = store.zip(self.seal_time().await) {
            let _ = answer(bucket.put(key, seals.seal(key, RELEASED, now).into())).await;
        }
    }

    /// Follows a bucket for as long as the future is polled.
    pub async fn watch(&self, bucket: &Bucket, on_event: impl Fn(BucketEvent<'_>)) {
        let seals = self.seals(bucket);
        self.0.rejections.lock().watch(bucket.name);
        loop {
            if self.is_connected()
                && let Some(store) = self.store(bucket).await
                && let Some(mut entries) = answer(store.watch_with_history(">")).await
            {
                let since = Instant::now();
                let mut checks = interval(CHECK_INTERVAL);
                on_event(BucketEvent::Reset);
                while self.is_connected() {
                    tokio::select! {
                        entry = entries.next() => match entry {
                            Some(Ok(entry)) => on_event(self.open(bucket, &seals, &entry)),
                            Some(Err(why)) => {
                                tracing::debug!(%why, bucket = bucket.name, "cannot read the bucket");
                                break;
                            }
                            None => break,
                        },
                        _ = checks.tick() => on_event(BucketEvent::Readable { since }),
                    }
                }
            }
            on_event(BucketEvent::Unreadable);
            sleep(RETRY_INTERVAL).await;
        }
    }

    fn open<'a>(&self, bucket: &Bucket, seals: &Seals, entry: &'a kv::Entry) -> BucketEvent<'a> {
        let (key, revision) = (entry.key.as_str(), entry.revision);
        match seals.open(key, &entry.value, stored(entry)) {
            Ok(RELEASED) => BucketEvent::Released { key, revision },
            Ok(value) => BucketEvent::Written { key, value, revision },
            Err(why) => {
                self.reject(bucket.name, why);
                BucketEvent::Rejected { key }
            }
        }
    }
}

async fn answer<T, E>(request: impl Future<Output = Result<T, E>>) -> Option<T> {
    timeout(REQUEST_TIMEOUT, request).await.ok()?.ok()
}

fn stored(entry: &kv::Entry) -> Stored {
    let ms = entry.created.unix_timestamp_nanos() / 1_000_000;
    Stored { at: BusTime(u64::try_from(ms).unwrap_or_default()), revision: entry.revision }
}

/// An event in a bucket.
#[derive(Debug)]
pub enum BucketEvent<'a> {
    /// Reading begins: all entries follow.
    Reset,
    /// An entry was written.
    Written {
        /// Key of the entry.
        key: &'a str,
        /// Value of the entry, without the seal.
        value: &'a [u8],
        /// Revision of the entry. Later entries have greater ones.
        revision: u64,
    },
    /// An entry was released by its writer.
    Released {
        /// Key of the entry.
        key: &'a str,
        /// Revision of the entry. Later entries have greater ones.
        revision: u64,
    },
    /// An entry without a valid seal was written, or an entry was deleted. The event is not authentic; the writer of
    /// the former entry may write it again.
    Rejected {
        /// Key of the entry.
        key: &'a str,
    },
    /// The bucket is readable without interruption. The event is repeated while it is.
    Readable {
        /// Time since which the bucket is readable without interruption.
        since: Instant,
    },
    /// The bucket is not readable.
    Unreadable,
}
