//! The HTTP connections under the router: accepted, bounded in time, closed in order.
//!
//! A client that opens connections and says nothing, or reads nothing, would hold their descriptors for ever, until
//! nobody else gets one. So a request's head must come in time, and no plain connection lasts longer than
//! [`LIFETIME`]; one that has become a WebSocket has the session's own bounds.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Requests, answers and the time between them, altogether.
const LIFETIME: Duration = Duration::from_secs(120);
/// After the system had no descriptor for a new connection.
const EXHAUSTED: Duration = Duration::from_millis(250);

/// Serves until `stop` is set and every connection has ended. `head_timeout` is from a connection's start, or the
/// last answer on it, to a request's complete head.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    head_timeout: Duration,
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
                connections.spawn(connection(
                    stream,
                    client,
                    app.clone(),
                    head_timeout,
                    stop.clone(),
                ));
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

async fn connection(
    stream: TcpStream,
    client: SocketAddr,
    app: Router,
    head_timeout: Duration,
    mut stop: watch::Receiver<bool>,
) {
    // Signalling messages are small and wait for nothing.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(app.layer(Extension(ConnectInfo(client))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
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
