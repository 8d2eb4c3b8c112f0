//! CORS headers: pages of other origins may use WHIP and WHEP, as they may the WebSocket.
//!
//! Every origin is allowed, without the browser's credentials (Fetch §3.2). Where the operator names origins, `origin`
//! refuses the others.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;

/// Headers of every answer.
const ALWAYS: [(HeaderName, &str); 2] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        "location, link, etag, accept-patch, accept-post, retry-after, www-authenticate",
    ),
];

/// Headers of answers to `OPTIONS`.
const PREFLIGHT: [(HeaderName, &str); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "POST, PATCH, DELETE, OPTIONS"),
    // Encoders by drafts before the RFC send `etag` instead of `if-match`: this lets them read the error.
    (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, if-match, etag"),
    (ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// Adds the headers [`ALWAYS`] to an answer.
pub(super) async fn readable(mut answer: Response) -> Response {
    put(answer.headers_mut(), &ALWAYS);
    answer
}

/// Adds the headers [`PREFLIGHT`] to an answer.
pub(super) fn askable(headers: &mut HeaderMap) {
    put(headers, &PREFLIGHT);
}

fn put(headers: &mut HeaderMap, values: &[(HeaderName, &'static str)]) {
    for (name, value) in values {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
}
