//! HTTP Strict Transport Security (RFC 6797), for servers with a certificate that browsers accept.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::STRICT_TRANSPORT_SECURITY;
use axum::middleware::Next;
use axum::response::Response;

use crate::host;

/// Value of the header: half a year, without subdomains.
const POLICY: HeaderValue = HeaderValue::from_static("max-age=15552000");

/// Adds the header to every answer, except at `localhost`, where it would hold for all ports.
pub(crate) async fn add_header(request: Request, next: Next) -> Response {
    let named = host::authority(request.headers()).is_some_and(|host| !host::is_literal(&host));
    let mut answer = next.run(request).await;
    if named {
        answer.headers_mut().insert(STRICT_TRANSPORT_SECURITY, POLICY);
    }
    answer
}
