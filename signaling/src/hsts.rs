//! Tells browsers that the server's name is for HTTPS alone (RFC 6797), where it has a certificate that they take.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::STRICT_TRANSPORT_SECURITY;
use axum::middleware::Next;
use axum::response::Response;

use crate::host;

/// Half a year, of this name alone: names below it are others' affair.
const POLICY: HeaderValue = HeaderValue::from_static("max-age=15552000");

/// Adds it to every answer. Not at `localhost`: it would hold for whatever else is served there, at other ports too.
pub(crate) async fn tell(request: Request, next: Next) -> Response {
    let named = host::said(request.headers()).is_some_and(|host| !host::is_literal(&host));
    let mut answer = next.run(request).await;
    if named {
        answer.headers_mut().insert(STRICT_TRANSPORT_SECURITY, POLICY);
    }
    answer
}
