//! The HTTP connections under the router: accepted, bounded in time, closed in order.
//!
//! A client that opens connections and says nothing, or reads nothing, would hold their descriptors for ever, until
//! nobody else gets one. So a request's head must come in time and be short, no plain connection lasts longer than
//! [`LIFETIME`], and one address has so many of them at a time ([`entry::knock`]); one that has become a WebSocket has the
//! session's own bounds, and those of [`Intake`].

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::Shared;
use crate::client::TrustedProxies;
use crate::entry;
use crate::intake::{Intake, Paced};
use crate::tls::Tls;

/// Requests, answers and the time between them, altogether.
const LIFETIME: Duration = Duration::from_secs(120);
/// Longest head of a request, in bytes; all that is held of a client of whom nothing is known. Tokens have 4 KiB of it at most.
const HEAD_BYTES: usize = 12 * 1024;
/// Most headers of a request. Browsers send two dozen, proxies add a few.
const HEADERS: usize = 64;
/// After the system had no descriptor for a new connection.
const EXHAUSTED: Duration = Duration::from_millis(250);

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Serving {
    /// From a connection's start, or the last answer on it, to a request's complete head.
    pub head_timeout: Duration,
    /// HTTPS, or `None` for HTTP.
    pub tls: Option<Tls>,
    /// Who is believed to say for whom a request is.
    pub proxies: TrustedProxies,
    /// Where it is known who may connect.
    pub shared: Arc<Shared>,
}

/// Serves until `stop` is set and every connection has ended.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    serving: Serving,
    stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => {
                // One too many is closed without a word: it has said none either.
                let Ok(knock) = entry::knock(&serving.shared, client.ip()) else { continue };
                let (app, serving, stop) = (app.clone(), serving.clone(), stop.clone());
                connections.spawn(async move {
                    accepted_from(stream, client, app, serving, stop).await;
                    drop(knock);
                });
            }
            // The client changed its mind; the next one is there already.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection from its first byte on. A handshake is its own affair: nobody else waits for it.
async fn accepted_from(
    stream: TcpStream,
    client: SocketAddr,
    app: Router,
    serving: Serving,
    mut stop: watch::Receiver<bool>,
) {
    // Signalling messages are small and wait for nothing.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &serving.tls else {
        return connection(stream, client, app, serving, stop).await;
    };
    let Ok(handshake) = entry::handshake(&serving.shared, client.ip()) else {
        return tls.refused();
    };
    let stream = tokio::select! {
        stream = tls.accept(stream, serving.shared.services.sfu.thread_fault().is_none()) => stream,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    drop(handshake);
    if let Some(stream) = stream {
        connection(stream, client, app, serving, stop).await;
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    client: SocketAddr,
    app: Router,
    serving: Serving,
    mut stop: watch::Receiver<bool>,
) {
    let proxies = serving.proxies;
    let intake = Arc::new(Intake::default());
    let stream = Paced::new(stream, intake.clone());
    let service =
        TowerToHyperService::new(tower::service_fn(move |mut request: Request<Incoming>| {
            let whose = proxies.client(client.ip(), request.headers());
            // Not by layers of the router: each connection would have all routes again.
            let known = request.extensions_mut();
            known.insert(ConnectInfo(client));
            known.insert(whose);
            known.insert(intake.clone());
            app.clone().oneshot(request)
        }));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.head_timeout)
        .max_buf_size(HEAD_BYTES)
        .max_header_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        // Whatever ended it concerns this client only.
        _ = &mut connection => return,
        () = tokio::time::sleep(LIFETIME) => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
