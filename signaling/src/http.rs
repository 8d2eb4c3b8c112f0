//! HTTP connections: accepted, limited in time, closed gracefully.
//!
//! Clients that send or read nothing must not exhaust the file descriptors. So a request's head must arrive in time and
//! be short. A connection that is no WebSocket lasts at most [`MAX_LIFETIME`]. Addresses have a maximum number of
//! connections ([`entry::connection`]). WebSockets have the bounds of [`crate::session`] and [`Intake`].

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

use crate::client::TrustedProxies;
use crate::entry;
use crate::intake::{Intake, Paced};
use crate::shared::Shared;
use crate::tls::Tls;

/// Maximum lifetime of a connection that is no WebSocket.
const MAX_LIFETIME: Duration = Duration::from_secs(120);
/// Maximum size of a request's head, in bytes. Tokens have at most 4 KiB of it.
const MAX_HEAD_BYTES: usize = 12 * 1024;
/// Maximum number of headers of a request. Browsers send two dozen, proxies add a few.
const MAX_HEADERS: usize = 64;
/// Pause after a failed `accept`: usually the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Settings and state by which connections are served.
#[derive(Clone)]
pub(crate) struct Serving {
    /// Time from a connection's start, or the last answer, to a request's complete head.
    pub head_timeout: Duration,
    /// Certificate for HTTPS; `None`: HTTP.
    pub tls: Option<Tls>,
    /// Trusted proxies.
    pub proxies: TrustedProxies,
    /// Admission control and counters.
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
                // Too many connections: closed without an answer, since there is no request yet.
                let Ok(slot) = entry::connection(&serving.shared, client.ip()) else { continue };
                let (app, serving, stop) = (app.clone(), serving.clone(), stop.clone());
                connections.spawn(async move {
                    accepted_from(stream, client, app, serving, stop).await;
                    drop(slot);
                });
            }
            // The client has closed the connection.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection: trying again; check the open files limit (`ulimit -n`)");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves a connection from its first byte on. Other connections do not wait for its handshake.
async fn accepted_from(
    stream: TcpStream,
    client: SocketAddr,
    app: Router,
    serving: Serving,
    mut stop: watch::Receiver<bool>,
) {
    // Signalling messages are small and urgent.
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
            // Not by layers of the router, which would clone all routes for each connection.
            let known = request.extensions_mut();
            known.insert(ConnectInfo(client));
            known.insert(whose);
            known.insert(intake.clone());
            app.clone().oneshot(request)
        }));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.head_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        // Errors concern this client only.
        _ = &mut connection => return,
        () = tokio::time::sleep(MAX_LIFETIME) => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
