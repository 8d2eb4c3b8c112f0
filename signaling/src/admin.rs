//! `POST /admin/enhancer` and `/admin/policy`: the operator's switches.
//!
//! They need an access token for all rooms that grants `admin`. Without token keys they are for this machine only: a
//! request counts as local when it comes from a loopback address, was not passed on by a proxy, and not made by a web
//! page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use windlass_media::AnchorPolicy;

use crate::Shared;
use crate::access::AccessError;
use crate::socket::unix_now;

/// What to do with the enhancer, and what became of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Enhancer {
    enabled: bool,
}

pub(crate) async fn switch_enhancer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let wanted: Enhancer = match read_allowed(&shared, client, request).await {
        Ok(wanted) => wanted,
        Err(refusal) => return refusal,
    };
    let switch = shared.services.enhancer_switch.clone();
    // Stopping waits for the enhancer's threads.
    match tokio::task::spawn_blocking(move || switch(wanted.enabled)).await {
        Ok(enabled) => {
            tracing::info!(enabled, "enhancer switched");
            Json(Enhancer { enabled }).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// By which policy a room's anchors are chosen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoomPolicy {
    /// All rooms without a policy of their own, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    room: Option<String>,
    /// `null` takes a room's own policy back; for all rooms, what the configuration says.
    #[serde(deserialize_with = "Option::deserialize")]
    policy: Option<AnchorPolicy>,
}

pub(crate) async fn set_policy(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let wanted: RoomPolicy = match read_allowed(&shared, client, request).await {
        Ok(wanted) => wanted,
        Err(refusal) => return refusal,
    };
    let RoomPolicy { room, policy } = wanted.clone();
    match shared.services.sfu.set_policy(room, policy).await {
        Ok(true) => {
            tracing::info!(room = wanted.room, policy = ?wanted.policy, "policy set");
            Json(wanted).into_response()
        }
        Ok(false) => {
            let text =
                "too many rooms have policies of their own; take one back with \"policy\": null\n";
            (StatusCode::CONFLICT, text).into_response()
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// What an operator asks for, or the answer to whoever may not ask or cannot be understood.
async fn read_allowed<T: DeserializeOwned>(
    shared: &Shared,
    client: SocketAddr,
    request: Request,
) -> Result<T, Response> {
    // Nothing of a stranger's request is read.
    if let Err(refusal) = allow(shared, client, request.headers()) {
        shared.counters.admin_refused.fetch_add(1, Ordering::Relaxed);
        return Err(*refusal);
    }
    let read = Json::<T>::from_request(request, &()).await;
    read.map(|Json(wanted)| wanted).map_err(IntoResponse::into_response)
}

fn allow(shared: &Shared, client: SocketAddr, headers: &HeaderMap) -> Result<(), Box<Response>> {
    let access = &shared.config.access;
    if access.is_open() {
        let text = "without token keys, only a program on the server's own machine may do this\n";
        let refusal = || Box::new((StatusCode::FORBIDDEN, text).into_response());
        return if is_local(client, headers) { Ok(()) } else { Err(refusal()) };
    }
    access.admin(unix_now(), None, bearer(headers)).map_err(|error| {
        let status = match error {
            AccessError::OtherRoom | AccessError::NotGranted(_) => StatusCode::FORBIDDEN,
            _ => StatusCode::UNAUTHORIZED,
        };
        let challenge = [(WWW_AUTHENTICATE, "Bearer")];
        Box::new((status, challenge, format!("{error}\n")).into_response())
    })
}

/// The token of `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn is_local(client: SocketAddr, headers: &HeaderMap) -> bool {
    let passed_on = ["forwarded", "x-forwarded-for", "x-real-ip", "via", "origin"];
    client.ip().to_canonical().is_loopback() && !passed_on.iter().any(|h| headers.contains_key(*h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_direct_requests_of_this_machine_are_local() {
        let none = HeaderMap::new();
        let client = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(is_local(client("127.0.0.1:9"), &none));
        assert!(is_local(client("[::1]:9"), &none));
        assert!(is_local(client("[::ffff:127.0.0.1]:9"), &none));
        assert!(!is_local(client("192.0.2.1:9"), &none));
        for header in ["x-forwarded-for", "origin"] {
            let mut headers = HeaderMap::new();
            headers.insert(header, "http://example.org".parse().unwrap());
            assert!(!is_local(client("127.0.0.1:9"), &headers), "{header}");
        }
    }
}
