//! Orders to all servers of a cluster, and their answers, as plain messages of NATS, which keeps none of them.
//!
//! Both are sealed by the servers' key ([`crate::sealed`]). The scope of an order is its sender, and each order of a
//! sender has a later time. The scope of an answer is the order's reply subject. So neither can be forged or replayed.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subject};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_stream::StreamExt;

use super::{Client, RETRY_INTERVAL};
use crate::sealed::{Scope, Seals, Stored};

/// Prefix of the subjects of orders: the sender `NAME` uses `windlass.orders.NAME`.
const SUBJECT: &str = "windlass.orders";
/// Scope of orders.
const ORDERS: &str = "windlass-orders";
/// Scope of answers.
const ANSWERS: &str = "windlass-answers";
/// Maximum size in bytes of an order or answer with its seal. NATS takes 1 MiB, unless it is configured otherwise.
const MAX_BYTES: usize = 1_000_000;
/// Maximum number of orders that are carried out at a time; later ones wait.
const MAX_AT_ONCE: usize = 4;

impl Client {
    /// Gives `order` to all other servers. Returns the answers of `others` of them, or those that came within
    /// `patience`.
    pub async fn order(&self, order: &[u8], others: usize, patience: Duration) -> Vec<Vec<u8>> {
        let until = Instant::now() + patience;
        let mut answers = Vec::new();
        if others == 0 {
            return answers;
        }
        let nats = &self.0.nats;
        let Some(now) = self.seal_time().await else { return answers };
        let scope = Scope { bucket: ORDERS, key: &self.0.name };
        let sealed = self.0.servers.seal(scope, now, order);
        let inbox = nats.new_inbox();
        let Ok(mut inbound) = nats.subscribe(inbox.clone()).await else { return answers };
        let subject = format!("{SUBJECT}.{}", self.0.name);
        let sent = nats.publish_with_reply(subject, inbox.clone(), sealed.into()).await;
        if sent.is_err() || nats.flush().await.is_err() {
            return answers;
        }
        while answers.len() < others {
            let Ok(Some(message)) = timeout_at(until, inbound.next()).await else { break };
            let scope = Scope { bucket: ANSWERS, key: &inbox };
            match self.0.servers.open(scope, &message.payload) {
                Ok((_, answer)) => answers.push(answer.to_vec()),
                Err(why) => self.reject(ANSWERS, why),
            }
        }
        answers
    }

    /// Carries out the orders of other servers by `perform`, for as long as the future is polled. The result of
    /// `perform` is the answer.
    pub async fn perform_orders<F>(&self, perform: impl Fn(Vec<u8>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Vec<u8>> + Send + 'static,
    {
        for scope in [ORDERS, ANSWERS] {
            self.0.rejections.lock().watch(scope);
        }
        let seals = Arc::new(Seals::new(self.0.servers.clone(), ORDERS));
        let (perform, places) = (Arc::new(perform), Arc::new(Semaphore::new(MAX_AT_ONCE)));
        let mut revision = 0;
        loop {
            // A subscription outlives reconnections.
            if let Ok(mut inbound) = self.0.nats.subscribe(format!("{SUBJECT}.*")).await {
                while let Some(message) = inbound.next().await {
                    let Some((reply, order)) = self.opened(message, &seals, &mut revision).await
                    else {
                        continue;
                    };
                    let Ok(place) = places.clone().acquire_owned().await else { return };
                    let (client, perform) = (self.clone(), perform.clone());
                    tokio::spawn(async move {
                        let answer = perform(order).await;
                        client.answer(reply, &answer).await;
                        drop(place);
                    });
                }
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Opens another server's order. Returns the reply subject and the order; `None`: the order is not valid, or this
    /// server sent it.
    async fn opened(
        &self,
        message: Message,
        seals: &Seals,
        revision: &mut u64,
    ) -> Option<(Subject, Vec<u8>)> {
        let sender = message.subject.as_str().rsplit('.').next().unwrap_or_default();
        let reply = message.reply.filter(|_| sender != self.0.name)?;
        // NATS does not say when it took a plain message: the current time stands for that.
        let at = self.seal_time().await?;
        *revision += 1;
        match seals.open(sender, &message.payload, Stored { at, revision: *revision }) {
            Ok(order) => Some((reply, order.to_vec())),
            Err(why) => {
                self.reject(ORDERS, why);
                None
            }
        }
    }

    async fn answer(&self, reply: Subject, answer: &[u8]) {
        let Some(at) = self.seal_time().await else { return };
        let sealed = self.0.servers.seal(Scope { bucket: ANSWERS, key: &reply }, at, answer);
        if sealed.len() > MAX_BYTES {
            tracing::warn!(
                bytes = sealed.len(),
                "answer to another server's order not sent: it is longer than NATS takes by default (1 MiB); ask this server itself"
            );
            return;
        }
        let _ = self.0.nats.publish(reply, sealed.into()).await;
    }
}
