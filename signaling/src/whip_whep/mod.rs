//! WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): one offer by `POST`, one answer, and a session that is a resource.
//!
//! For encoders and players other than the SDK. Each session is a participant like others, with the same tokens,
//! limits, admin API and webhooks. The server is ICE-lite and learns a client's address from its connectivity checks,
//! so trickled candidates are ignored.

mod caller;
mod cors;
mod error;
mod ice;
pub(crate) mod open;
mod protocol;
mod request;
mod sections;
mod session;
mod whep;
mod whip;

use std::sync::Arc;

use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::protocol::{FRAGMENT, SDP};
use crate::shared::Shared;

/// The routes, with their OpenAPI description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(whip::offer, whip::options))
        .routes(routes!(whip::patch, whip::end, whip::session_options))
        .routes(routes!(whep::offer, whep::options))
        .routes(routes!(whep::patch, whep::end, whep::session_options))
        .layer(map_response(cors::readable))
}

/// The answer to `OPTIONS` of an endpoint.
fn endpoint_options() -> Response {
    options([("accept-post", SDP), ("allow", "POST, OPTIONS")])
}

/// The answer to `OPTIONS` of a session.
fn session_options() -> Response {
    options([("accept-patch", FRAGMENT), ("allow", "PATCH, DELETE, OPTIONS")])
}

fn options(headers: [(&'static str, &'static str); 2]) -> Response {
    let mut answer = (StatusCode::NO_CONTENT, headers).into_response();
    cors::askable(answer.headers_mut());
    answer
}
