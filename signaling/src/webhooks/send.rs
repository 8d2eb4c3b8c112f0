//! The shell of an [`Outbox`](super::outbox::Outbox): posts due events and reports the outcomes.
//!
//! An attempt succeeds if the receiver answers 2xx in time. Redirects are not followed, and bodies are not read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, USER_AGENT};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

use super::outbox::{Failed, Letter};
use super::sign::{WebhookSecret, signatures};
use super::{Counts, Receiver, WebhookError, WebhookUrl};
use crate::clock::unix_now;

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An HTTP client for these receivers.
pub(super) fn client(urls: &[WebhookUrl]) -> Result<HttpClient, WebhookError> {
    let builder = HttpsConnectorBuilder::new();
    let connector = match builder.with_native_roots() {
        Ok(builder) => builder.https_or_http().enable_http1().build(),
        Err(error) if urls.iter().any(WebhookUrl::is_https) => {
            return Err(WebhookError::Certificates(error));
        }
        // No receiver has a certificate.
        Err(_) => {
            let none = rustls::RootCertStore::empty();
            let config =
                rustls::ClientConfig::builder().with_root_certificates(none).with_no_client_auth();
            HttpsConnectorBuilder::new()
                .with_tls_config(config)
                .https_or_http()
                .enable_http1()
                .build()
        }
    };
    Ok(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(2).build(connector))
}

/// Parameters of attempts.
#[derive(Clone)]
pub(super) struct Sender {
    pub client: HttpClient,
    pub secrets: Vec<WebhookSecret>,
    pub timeout: Duration,
}

impl Sender {
    /// Makes an attempt. The error is a text for the log.
    async fn post(&self, url: &WebhookUrl, letter: &Letter) -> Result<(), String> {
        let now = unix_now();
        let signature = signatures(&self.secrets, &letter.id, now, &letter.body);
        let request = Request::post(url.uri())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &letter.id)
            .header("webhook-timestamp", now)
            .header("webhook-signature", signature)
            .body(Full::from(letter.body.clone()))
            .map_err(|e| e.to_string())?;
        match tokio::time::timeout(self.timeout, self.client.request(request)).await {
            Err(_) => Err("no answer in time".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(answer.status().to_string()),
        }
    }
}

/// Sends events for as long as the process runs.
pub(super) async fn run(receiver: Arc<Receiver>, sender: Sender, counts: Arc<Counts>) {
    let mut attempts: JoinSet<(String, Result<(), String>)> = JoinSet::new();
    loop {
        let now = Instant::now();
        let due = {
            let mut outbox = receiver.outbox.lock();
            while let Some(letter) = outbox.next(now) {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                attempts.spawn(async move {
                    let posted = sender.post(&receiver.url, &letter).await;
                    (letter.room, posted)
                });
            }
            // Due events wait for an attempt to end.
            outbox.due().filter(|due| *due > now)
        };
        let due = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = receiver.changed.notified() => {}
            () = due => {}
            Some(ended) = attempts.join_next() => {
                if let Ok((room, posted)) = ended {
                    settle(&receiver, &counts, &room, posted);
                }
            }
        }
    }
}

fn settle(receiver: &Receiver, counts: &Counts, room: &str, posted: Result<(), String>) {
    let now = Instant::now();
    let mut outbox = receiver.outbox.lock();
    let Err(reason) = posted else {
        counts.delivered.fetch_add(1, Ordering::Relaxed);
        return outbox.taken(room, now);
    };
    counts.failed.fetch_add(1, Ordering::Relaxed);
    match outbox.failed(room, now, rand::random()) {
        Failed::Again => tracing::debug!(%reason, "webhook failed: it will be sent again"),
        Failed::GivenUp => {
            counts.given_up.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%reason, "webhook failed too often: event dropped; check the receiver");
        }
    }
}
