//! Webhooks: events of rooms for the application's server.
//!
//! Each event is one `POST` with a JSON body, signed as [Standard Webhooks](https://www.standardwebhooks.com) say
//! ([`sign`]). Events of a room are sent in order, each after the receiver has accepted the one before; rooms do not
//! wait for each other. [`outbox`] is pure: it decides what to send when. [`send`] is the shell around it. Failed
//! events are retried with growing pauses. The queue is bounded: beyond it, the oldest event of the room with the most
//! events is dropped and counted.

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

pub(crate) use event::{Event, EventParticipant, EventTrack, EventType};
pub use sign::{BadSecret, WebhookSecret};
pub use url::{BadUrl, WebhookUrl};

use self::outbox::{Outbox, Pauses};

/// Maximum number of events in the queue of a receiver.
const MAX_WAITING: usize = 1000;

/// Receivers of events.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// The receivers. Each gets all events.
    pub urls: Vec<WebhookUrl>,
    /// Secrets that sign events. There are several during a rotation.
    pub secrets: Vec<WebhookSecret>,
    /// Time that a receiver has to answer.
    pub timeout: Duration,
    /// Pause before the second attempt. Later ones are longer.
    pub first_pause: Duration,
    /// Maximum pause between two attempts.
    pub max_pause: Duration,
    /// Maximum number of attempts for an event.
    pub attempts: u32,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        WebhookConfig {
            urls: Vec::new(),
            secrets: Vec::new(),
            timeout: Duration::from_secs(10),
            first_pause: Duration::from_millis(500),
            max_pause: Duration::from_secs(60),
            attempts: 12,
        }
    }
}

/// Why webhooks cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There are receivers, but no secret.
    #[error("webhooks need a secret that signs them: set `webhook-secret`")]
    NoSecret,
    /// The system's CA certificates, needed for https receivers, cannot be read.
    #[error("cannot read the system's certificates: {0}; install them (Debian: ca-certificates)")]
    Certificates(std::io::Error),
}

/// Counters of events.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub delivered: AtomicU64,
    pub failed: AtomicU64,
    pub given_up: AtomicU64,
    pub dropped: AtomicU64,
}

/// The queues of all receivers. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Webhooks {
    receivers: Arc<[Arc<Receiver>]>,
    pub counts: Arc<Counts>,
}

/// A receiver and its queue of events.
#[derive(Debug)]
struct Receiver {
    url: WebhookUrl,
    outbox: Mutex<Outbox>,
    changed: Notify,
}

impl Webhooks {
    /// Checks the configuration, and starts to send if there are receivers. With receivers, it must be called within a
    /// tokio runtime.
    pub(crate) fn start(config: &WebhookConfig) -> Result<Webhooks, WebhookError> {
        let mut receivers = Vec::new();
        for url in &config.urls {
            if config.secrets.is_empty() {
                return Err(WebhookError::NoSecret);
            }
            let (first, max) = (config.first_pause, config.max_pause);
            let pauses = Pauses { first, max, attempts: config.attempts };
            receivers.push(Arc::new(Receiver {
                url: url.clone(),
                outbox: Mutex::new(Outbox::new(MAX_WAITING, pauses)),
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

    /// Queues an event for all receivers. Never blocks.
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

    /// Number of queued events.
    pub(crate) fn waiting(&self) -> usize {
        self.receivers.iter().map(|receiver| receiver.outbox.lock().len()).sum()
    }

    /// Waits until all queues are empty.
    pub(crate) async fn flushed(&self) {
        while self.waiting() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
