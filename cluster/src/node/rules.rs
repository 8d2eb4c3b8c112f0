//! Exchanges the rules of moderators and operators (bans, locks, grants) with the other servers of the cluster, by a
//! bucket.
//!
//! A rule is written again every hour by one of the servers that know it, so it outlives the bucket's time limit for as
//! long as it holds. Source: decision 026.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::sleep;

use super::{Host, Rule};
use crate::nats::{BucketEvent, Client, RULES};

/// Age at which a rule is written again.
const REFRESH_AFTER: Duration = Duration::from_secs(3_600);
/// Upper bound of a random time in seconds, by which servers differ in [`REFRESH_AFTER`], so that one of them writes
/// first.
const REFRESH_SPREAD_S: u64 = 1_800;
/// Interval of checks for rules that must be written again.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Time after which all entries of a bucket have been read.
const INITIAL_READ: Duration = Duration::from_secs(1);
/// Pause between two attempts to write.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Counters of the exchange.
#[derive(Default)]
pub(super) struct Rules {
    malformed: Arc<AtomicU64>,
}

impl Rules {
    /// Starts to write and read rules.
    pub(super) fn start<H: Host>(&self, client: &Client, host: &Arc<H>) {
        tokio::spawn(write(client.clone(), host.clone()));
        tokio::spawn(read(client.clone(), host.clone(), self.malformed.clone()));
    }

    /// Number of malformed rules of other servers.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }
}

async fn write<H: Host>(client: Client, host: Arc<H>) {
    loop {
        for Rule { key, value } in host.next_rules().await {
            // Meanwhile the host keeps later rules, one for each key.
            while !client.write(&RULES, &key, &value).await {
                sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

async fn read<H: Host>(client: Client, host: Arc<H>, malformed: Arc<AtomicU64>) {
    let reader = Mutex::new(Reader {
        read: HashMap::new(),
        next_check: None,
        refresh_after: REFRESH_AFTER + Duration::from_secs(rand::random_range(0..REFRESH_SPREAD_S)),
    });
    let on_event = |event: BucketEvent<'_>| reader.lock().on_event(&event, &*host, &malformed);
    client.watch(&RULES, on_event).await;
}

struct Reader {
    /// When each rule was last read, by key.
    read: HashMap<String, Instant>,
    /// When to check for rules that must be written again.
    next_check: Option<Instant>,
    refresh_after: Duration,
}

impl Reader {
    fn on_event(&mut self, event: &BucketEvent<'_>, host: &impl Host, malformed: &AtomicU64) {
        let now = Instant::now();
        match event {
            BucketEvent::Written { key, value, .. } => match host.on_rule(value) {
                Ok(own_key) if own_key == *key => {
                    self.read.insert(own_key, now);
                }
                Ok(_) => {
                    malformed.fetch_add(1, Ordering::Relaxed);
                }
                Err(why) => {
                    tracing::warn!(%why, "malformed rule of another server ignored: check that all servers have the same version");
                    malformed.fetch_add(1, Ordering::Relaxed);
                }
            },
            // Rules are lifted by other rules, not by deletion.
            BucketEvent::Released { key, .. } | BucketEvent::Rejected { key } => {
                host.resend_rule(key);
            }
            BucketEvent::Reset => {
                self.read.clear();
                self.next_check = Some(now + INITIAL_READ);
            }
            BucketEvent::Readable { .. } => {
                if self.next_check.is_some_and(|check| now >= check) {
                    self.next_check = Some(now + CHECK_INTERVAL);
                    let refresh_after = self.refresh_after;
                    self.read.retain(|_, read| now.duration_since(*read) < refresh_after);
                    let fresh: HashSet<String> = self.read.keys().cloned().collect();
                    host.resend_rules_except(&fresh);
                }
            }
            BucketEvent::Unreadable => self.next_check = None,
        }
    }
}
