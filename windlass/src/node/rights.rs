//! Rules of moderators and operators: told to the other servers of the cluster, and heard of them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use windlass_cluster::nats::{Bucket, Client, Heard, Writers};
use windlass_cluster::sealed::{BusTime, SealKey};
use windlass_signaling::rights::SeatKey;
use windlass_signaling::{Metric, Signaling};

/// A rule is written again every hour by one server or another, and goes from the bucket when there is none any more.
const RIGHTS: Bucket = Bucket {
    name: "windlass-rights",
    holds: Duration::from_secs(6 * 3_600),
    writers: Writers::Servers,
    bytes: 8 << 20,
};
/// A rule that was not heard for so long is told again, a little later by each server.
const STALE: Duration = Duration::from_secs(3_600);
const LATER: u64 = 1_800;
/// Between two looks for such rules.
const LOOK: Duration = Duration::from_secs(60);
/// All that is in the bucket has been heard so long after it could be read.
const ALL_HEARD: Duration = Duration::from_secs(1);
/// Between two attempts to write.
const AGAIN: Duration = Duration::from_millis(500);

/// Which rules were heard when.
struct Known {
    heard: HashMap<String, Instant>,
    /// When it is looked for what was not.
    look: Option<Instant>,
    stale: Duration,
}

/// See the module. Counts what made no sense.
#[derive(Default)]
pub struct Rights {
    senseless: Arc<AtomicU64>,
}

impl Rights {
    /// Tells and hears, from now on.
    pub fn start(&self, client: &Client, signaling: &Signaling) {
        tokio::spawn(tell(client.clone(), signaling.clone()));
        tokio::spawn(hear(client.clone(), signaling.clone(), self.senseless.clone()));
    }

    /// What it has counted.
    pub fn metrics(&self) -> Metric {
        Metric::counter("cluster_rules_refused", self.senseless.load(Ordering::Relaxed))
            .help("Bans and other rules told by other SFUs that made no sense.")
    }
}

/// By which servers of a cluster know each other's seats.
pub fn seats(key: &SealKey) -> SeatKey {
    SeatKey::of(&key.seal(("windlass seats", "key"), BusTime(0), &[]))
}

async fn tell(client: Client, signaling: Signaling) {
    loop {
        for rule in signaling.rules_to_tell().await {
            // What is said meanwhile waits in signaling, each thing once.
            while !client.write(&RIGHTS, &rule.key, &rule.bytes).await {
                sleep(AGAIN).await;
            }
        }
    }
}

async fn hear(client: Client, signaling: Signaling, senseless: Arc<AtomicU64>) {
    let known = Mutex::new(Known {
        heard: HashMap::new(),
        look: None,
        stale: STALE + Duration::from_secs(rand::random_range(0..LATER)),
    });
    let heard = |heard: Heard<'_>| {
        let known = &mut *known.lock().unwrap_or_else(PoisonError::into_inner);
        known.take(&heard, &signaling, &senseless);
    };
    client.read(&RIGHTS, heard).await;
}

impl Known {
    fn take(&mut self, heard: &Heard<'_>, signaling: &Signaling, senseless: &AtomicU64) {
        let now = Instant::now();
        match heard {
            Heard::Written { name, bytes, .. } => match signaling.rule_heard(bytes) {
                Ok(rule) if rule.key == *name => {
                    self.heard.insert((*name).to_owned(), now);
                }
                Ok(_) => {
                    senseless.fetch_add(1, Ordering::Relaxed);
                }
                Err(why) => {
                    tracing::warn!(%why, "a rule makes no sense");
                    senseless.fetch_add(1, Ordering::Relaxed);
                }
            },
            // Nobody takes a rule back by deleting it.
            Heard::GivenUp { name, .. } | Heard::Refused { name } => {
                signaling.tell_rule_again(name);
            }
            Heard::Begins => {
                self.heard.clear();
                self.look = Some(now + ALL_HEARD);
            }
            Heard::Readable { .. } => {
                if self.look.is_some_and(|look| now >= look) {
                    self.look = Some(now + LOOK);
                    self.heard.retain(|_, heard| now.duration_since(*heard) < self.stale);
                    let fresh: HashSet<String> = self.heard.keys().cloned().collect();
                    signaling.tell_rules_again(&fresh);
                }
            }
            Heard::Cut => self.look = None,
        }
    }
}
