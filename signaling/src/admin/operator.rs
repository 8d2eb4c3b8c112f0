//! Authorization of the admin API.
//!
//! With token keys, the request must bear an access token that grants `admin` for the room of the path, or for `*`
//! where the path names no room. Without keys, nobody is authorized, unless the operator allows programs of this
//! machine (`admin-local`).
//!
//! A request is from a program of this machine if it comes from a loopback address and has a loopback address as `Host`
//! ([`crate::host`]). It must not have been forwarded by a proxy, nor made by a web page. Transparent forwarders (a
//! tunnel, a sidecar) cannot be distinguished from such a program.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams};
use axum::http::header::{AUTHORIZATION, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};

use super::error::AdminError;
use crate::clock::unix_now;
use crate::host;
use crate::shared::Shared;

/// Marks a request that another server of the cluster has authorized, and passes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Authorized;

/// Proof that a request is authorized for its path.
pub(crate) struct Operator;

impl FromRequestParts<Arc<Shared>> for Operator {
    type Rejection = AdminError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, AdminError> {
        if parts.extensions.get::<Authorized>().is_some() {
            return Ok(Operator);
        }
        let client = ConnectInfo::<SocketAddr>::from_request_parts(parts, shared).await;
        let params = RawPathParams::from_request_parts(parts, shared).await;
        let room = params.ok().and_then(|params| {
            params.iter().find(|(name, _)| *name == "room").map(|(_, room)| room.to_owned())
        });
        let access = &shared.config.access;
        let allowed = if access.is_open() {
            let local = client.is_ok_and(|ConnectInfo(client)| is_local(client, &parts.headers));
            if local && shared.config.admin_local {
                Ok(())
            } else if shared.config.admin_local {
                Err(AdminError::not_local())
            } else {
                Err(AdminError::no_keys())
            }
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

/// Headers that proxies add to requests.
const PROXY_HEADERS: [&str; 10] = [
    "cdn-loop",
    "cf-connecting-ip",
    "client-ip",
    "forwarded",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-real-ip",
];

fn is_local(client: SocketAddr, headers: &HeaderMap) -> bool {
    let passed_on = |name: &HeaderName| {
        name.as_str().starts_with("x-forwarded") || PROXY_HEADERS.contains(&name.as_str())
    };
    // An address that was typed into a browser is no request of a page.
    let typed = headers.get("sec-fetch-site").is_none_or(|from| from == "none");
    client.ip().to_canonical().is_loopback()
        && host::authority(headers).is_some_and(|host| host::is_loopback(&host))
        && !headers.contains_key(ORIGIN)
        && typed
        && !headers.keys().any(passed_on)
}

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;

    use super::*;

    fn local(client: &str, lines: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for &(name, value) in lines {
            headers.insert(name, value.parse().unwrap());
        }
        is_local(client.parse().unwrap(), &headers)
    }

    #[test]
    fn only_direct_requests_of_this_machine_are_local() {
        let own = [(HOST.as_str(), "localhost:7880")];
        for client in ["127.0.0.1:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
            assert!(local(client, &own), "{client}");
        }
        assert!(!local("192.0.2.1:9", &own));
        assert!(local("127.0.0.1:9", &[own[0], ("sec-fetch-site", "none")]));
        for line in [
            ("origin", "http://localhost:7880"),
            ("sec-fetch-site", "same-origin"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-host", "sfu.example"),
            ("x-real-ip", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("via", "1.1 proxy"),
            ("cf-connecting-ip", "192.0.2.1"),
            ("true-client-ip", "192.0.2.1"),
            ("x-client-ip", "192.0.2.1"),
        ] {
            assert!(!local("127.0.0.1:9", &[own[0], line]), "{line:?}");
        }
    }

    #[test]
    fn who_calls_the_server_by_a_name_is_not_local() {
        for host in ["evil.example:7880", "localhost.evil.example", "192.0.2.1:7880"] {
            assert!(!local("127.0.0.1:9", &[("host", host)]), "{host}");
        }
        assert!(!local("127.0.0.1:9", &[]));
    }
}
