//! Who may use the admin API.
//!
//! With token keys: the bearer of an access token that grants `admin` for the room of the path, or for `*` where the path
//! names none. Without: a program of this machine. A request counts as that when it comes from a loopback address, was
//! not passed on by a proxy, and not made by a web page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::error::AdminError;
use crate::Shared;
use crate::socket::unix_now;

/// Proof that the request's sender may do what its path says.
pub(crate) struct Operator;

impl FromRequestParts<Arc<Shared>> for Operator {
    type Rejection = AdminError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, AdminError> {
        let client = ConnectInfo::<SocketAddr>::from_request_parts(parts, shared).await;
        let params = RawPathParams::from_request_parts(parts, shared).await;
        let room = params.ok().and_then(|params| {
            params.iter().find(|(name, _)| *name == "room").map(|(_, room)| room.to_owned())
        });
        let access = &shared.config.access;
        let allowed = if access.is_open() {
            let local = client.is_ok_and(|ConnectInfo(client)| is_local(client, &parts.headers));
            if local { Ok(()) } else { Err(AdminError::not_local()) }
        } else {
            let token = bearer(&parts.headers);
            access.admin(unix_now(), room.as_deref(), token).map_err(AdminError::from)
        };
        allowed.map(|()| Operator).inspect_err(|_| {
            shared.counters.admin_refused.fetch_add(1, Ordering::Relaxed);
        })
    }
}

/// The token of `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
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
