//! An SFU inside a program of your own: its rooms, its signalling and your pages on one port.
//!
//! ```sh
//! cargo xtask page   # once: the SDK's files, which browsers get from here
//! cargo run -p windlass-signaling --example embed
//! ```
//!
//! Open <http://localhost:8080/> in two windows. Anybody may enter; `SignalingConfig::access` closes rooms.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use tokio::net::TcpListener;
use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
use windlass_signaling::{MetricSource, Services, Signaling, SignalingConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(8080), |port| port.parse())?;
    // The SFU runs on threads of its own. It gives the frames of low layers to an enhancer; here is none.
    let media = SfuConfig { udp: SocketAddr::from(([127, 0, 0, 1], 0)), ..SfuConfig::default() };
    let sfu = Sfu::start(&media, &EnhancerSinks::none())?;
    let services = Services {
        sfu: sfu.handle(),
        enhancer_switch: Arc::new(|_| false),
        metrics: MetricSource::default(),
        drain: Arc::new(|| Duration::ZERO),
        recorder: None,
        cluster: None,
    };
    let signaling = Signaling::new(SignalingConfig::default(), services)?;
    let pages = Router::new()
        .route("/", get(Html(include_str!("../../client-web/examples/call.html"))))
        .route("/whip.html", get(Html(include_str!("../../client-web/examples/whip.html"))))
        .route("/{file}", get(sdk));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://localhost:{}/", listener.local_addr()?.port());
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    signaling.serve(listener, pages, stop, Duration::from_secs(1)).await;
    Ok(())
}

/// The SDK's files, as `cargo xtask page` builds them.
async fn sdk(Path(file): Path<String>) -> impl IntoResponse {
    let kind = match file.as_str() {
        "windlass-client.js" | "worker.js" | "network-webgpu.js" => "text/javascript",
        "windlass.wasm" => "application/wasm",
        _ => return Err(StatusCode::NOT_FOUND),
    };
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../client-web/dist");
    let bytes = std::fs::read(format!("{dist}/{file}")).map_err(|_| StatusCode::NOT_FOUND)?;
    Ok(([(header::CONTENT_TYPE, kind)], bytes))
}
