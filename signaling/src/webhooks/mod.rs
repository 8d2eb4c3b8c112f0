//! Webhooks: the application's server is told what happens in rooms.
//!
//! Each event is one `POST` with a JSON body, signed as [Standard Webhooks](https://www.standardwebhooks.com) say
//! ([`sign`]). Events of a room come in order, each after the one before was taken; rooms do not wait for each other.
//! [`outbox`] is pure: it says what to send when. [`send`] is the shell around it. What is not taken is tried again with
//! growing pauses; what waits has a bound, beyond which the oldest of the room that has most is dropped and counted.

mod event;
pub(crate) mod outbox;
mod send;
mod sign;
mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use event::{Event, EventParticipant, EventTrack, What};
pub use sign::{BadSecret, WebhookSecret};
pub use url::{BadUrl, WebhookUrl};

use self::outbox::{Outbox, Pauses};

/// Most events that wait for one receiver.
const WAITING: usize = 1000;

/// Where events go.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// The receivers. Each is told everything.
    pub urls: Vec<WebhookUrl>,
    /// What events are signed with; by several while they are changed.
    pub secrets: Vec<WebhookSecret>,
    /// How long a receiver may take to answer.
    pub timeout: Duration,
    /// Pauses before the second attempt, and before later ones at most.
    pub pauses: (Duration, Duration),
    /// Attempts until an event is given up.
    pub attempts: u32,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        WebhookConfig {
            urls: Vec::new(),
            secrets: Vec::new(),
            timeout: Duration::from_secs(10),
            pauses: (Duration::from_millis(500), Duration::from_secs(60)),
            attempts: 12,
        }
    }
}

/// Why webhooks cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There are receivers, but nothing to sign with.
    #[error("webhooks need a secret to be signed with")]
    NoSecret,
    /// The system's certificates, by which https receivers are known, cannot be read.
    #[error("cannot read the system's certificates: {0}")]
    Certificates(std::io::Error),
}

/// What has been counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub delivered: AtomicU64,
    pub failed: AtomicU64,
    pub given_up: AtomicU64,
    pub dropped: AtomicU64,
}

/// The way to all receivers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Webhooks {
    receivers: Arc<[Arc<Receiver>]>,
    pub counts: Arc<Counts>,
}

/// One receiver, and what waits for it.
#[derive(Debug)]
struct Receiver {
    url: WebhookUrl,
    outbox: Mutex<Outbox>,
    changed: Notify,
}

impl Webhooks {
    /// Checks the configuration, and starts sending where there is somebody to send to. Needs a runtime then.
    pub(crate) fn start(config: &WebhookConfig) -> Result<Webhooks, WebhookError> {
        let mut receivers = Vec::new();
        for url in &config.urls {
            if config.secrets.is_empty() {
                return Err(WebhookError::NoSecret);
            }
            let (first, most) = config.pauses;
            let pauses = Pauses { first, most, attempts: config.attempts };
            receivers.push(Arc::new(Receiver {
                url: url.clone(),
                outbox: Mutex::new(Outbox::new(WAITING, pauses)),
                changed: Notify::new(),
            }));
        }
        let webhooks = Webhooks { receivers: receivers.into(), counts: Arc::default() };
        if !webhooks.receivers.is_empty() {
            let client = send::client(&config.urls)?;
            for receiver in webhooks.receivers.iter() {
                let (secrets, timeout) = (config.secrets.clone(), config.timeout);
                let sender = send::Sender { client: client.clone(), secrets, timeout };
                tokio::spawn(send::run(receiver.clone(), sender, webhooks.counts.clone()));
            }
        }
        Ok(webhooks)
    }

    /// Tells all receivers, as soon as they take it. Never waits.
    pub(crate) fn push(&self, event: &Event) {
        if self.receivers.is_empty() {
            return;
        }
        let (room, body) = (event.room.as_str(), event.body());
        for receiver in self.receivers.iter() {
            let dropped = receiver.outbox.lock().push(room, &event.id, &body, Instant::now());
            self.counts.dropped.fetch_add(u64::from(dropped), Ordering::Relaxed);
            receiver.changed.notify_one();
        }
    }

    /// How many events wait.
    pub(crate) fn waiting(&self) -> usize {
        self.receivers.iter().map(|receiver| receiver.outbox.lock().len()).sum()
    }

    /// Until nothing waits any more.
    pub(crate) async fn flushed(&self) {
        while self.waiting() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
