//! `GET /healthz`: the process lives, and its media threads do. `GET /readyz`: it takes new calls.
//!
//! A draining server is alive but not ready: load balancers send it no new calls, and supervisors do not restart it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::sfu_stats::NoStats;
use crate::shared::Shared;

/// The answer of `/readyz`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    ready: bool,
    /// Why the server is not ready: `draining`, `stopping`, `media_stopped`, `media_silent`.
    reasons: Vec<&'static str>,
}

/// Say `ok` while the process and its media threads live.
#[utoipa::path(get, path = "/healthz", tag = "server", responses(
    (status = 200, description = "The process lives", body = String, content_type = "text/plain"),
    (status = 503, description = "A media thread has ended, or says nothing any more: restart the server", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz(State(shared): State<Arc<Shared>>) -> Response {
    match shared.services.sfu.thread_fault() {
        None => "ok\n".into_response(),
        Some(ill) => (StatusCode::SERVICE_UNAVAILABLE, format!("{ill}\n")).into_response(),
    }
}

/// Say whether the server takes new calls, and if not, why.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, description = "It takes new calls", body = Readiness),
    (status = 503, description = "It does not", body = Readiness)))]
pub(crate) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let mut reasons = Vec::new();
    if shared.draining.load(Ordering::Relaxed) {
        reasons.push("draining");
    }
    if *shared.stop.borrow() {
        reasons.push("stopping");
    }
    match shared.stats.get(&shared.services.sfu).await {
        Ok(_) => {}
        Err(NoStats::Stopped) => reasons.push("media_stopped"),
        Err(NoStats::Silent) => reasons.push("media_silent"),
    }
    let ready = reasons.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(CACHE_CONTROL, "no-store")], Json(Readiness { ready, reasons })).into_response()
}
