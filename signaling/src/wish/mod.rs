//! WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): one offer by `POST`, one answer, and a session that is a resource.
//!
//! For encoders and players that are not ours. Each session is a participant like others: the same tokens, limits, admin
//! API and webhooks. The server is ICE-lite and learns where a client is from its checks, so trickled candidates need not
//! be looked at; ICE restarts are not supported here (RFC 9725 §4.3.3 lets a session have one without the other).

mod error;
mod sdp;
mod session;
mod whep;
mod whip;

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, IF_MATCH};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_protocol::{ErrorCode, limits};

use self::error::WishError;
pub(crate) use self::session::Sessions;
use crate::Shared;

/// The type of offers and answers.
const SDP: &str = "application/sdp";
/// The type of trickled candidates (RFC 8840 §9).
const FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// ICE sessions never change here, so one tag is enough.
const TAG: &str = "\"1\"";

/// The routes, with their description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(whip::offer, whip::options))
        .routes(routes!(whip::patch, whip::end))
        .routes(routes!(whep::offer, whep::options))
        .routes(routes!(whep::patch, whep::end))
}

/// The offer, if the request is one.
fn read_offer(headers: &HeaderMap, body: &str) -> Result<String, WishError> {
    if !has_type(headers, SDP) {
        return Err(WishError::wrong_type(SDP));
    }
    if body.len() > limits::SDP_BYTES {
        let message = format!("the offer is longer than {} bytes", limits::SDP_BYTES);
        return Err(WishError::new(ErrorCode::TooLarge, message));
    }
    Ok(sdp::with_ports(body))
}

/// What to answer to candidates of a session (RFC 9725 §4.3): they are taken, and restarts are refused.
fn take_candidates(headers: &HeaderMap) -> Result<StatusCode, WishError> {
    if !has_type(headers, FRAGMENT) {
        return Err(WishError::wrong_type(FRAGMENT));
    }
    match headers.get(IF_MATCH).and_then(|tag| tag.to_str().ok()) {
        Some(TAG) => Ok(StatusCode::NO_CONTENT),
        Some("*") => Err(WishError::no_restart()),
        Some(_) => Err(WishError::other_tag()),
        None => Err(WishError::no_tag()),
    }
}

fn has_type(headers: &HeaderMap, wanted: &str) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    let bare = said.and_then(|said| said.split(';').next()).map(str::trim);
    bare.is_some_and(|bare| bare.eq_ignore_ascii_case(wanted))
}

/// A session that has begun: 201 with its answer and address.
fn created(answer: String, location: String) -> Response {
    let headers = [
        ("content-type", SDP.to_owned()),
        ("location", location),
        ("etag", TAG.to_owned()),
        ("accept-patch", FRAGMENT.to_owned()),
    ];
    (StatusCode::CREATED, headers, answer).into_response()
}

/// What may be posted.
fn capabilities() -> Response {
    let headers = [("accept-post", SDP), ("allow", "POST, OPTIONS")];
    (StatusCode::NO_CONTENT, headers).into_response()
}
