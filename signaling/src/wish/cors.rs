//! What pages of other origins may do: as much as with the WebSocket.
//!
//! Here every origin is allowed, and no credentials of the browser's own are (Fetch §3.2); `origin` says otherwise where
//! the operator names origins.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;

/// On every answer.
const ALWAYS: [(HeaderName, &str); 2] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        "location, link, etag, accept-patch, accept-post, retry-after, www-authenticate",
    ),
];

/// On answers to `OPTIONS`.
const PREFLIGHT: [(HeaderName, &str); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "POST, PATCH, DELETE, OPTIONS"),
    // `etag` is of encoders by drafts before the RFC, which had it where `if-match` is now: they can hear what is wrong.
    (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, if-match, etag"),
    (ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// Lets pages of any origin read an answer.
pub(super) async fn readable(mut answer: Response) -> Response {
    put(answer.headers_mut(), &ALWAYS);
    answer
}

/// Lets pages of any origin ask.
pub(super) fn askable(headers: &mut HeaderMap) {
    put(headers, &PREFLIGHT);
}

fn put(headers: &mut HeaderMap, said: &[(HeaderName, &'static str)]) {
    for (name, value) in said {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
}
