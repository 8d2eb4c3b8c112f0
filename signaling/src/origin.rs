//! Origins of pages that may use the server.
//!
//! There are no cookies, and with token keys a page needs a token. So pages of all origins may use the server, unless
//! the operator names origins; then only those may. This protects browsers from foreign pages, not the server from
//! other programs, which can send any origin.
//!
//! The server's own page is always allowed if its origin equals the request's `Host` and that is an address or
//! `localhost`. A DNS name proves nothing ([`crate::host`]), so a server's public name must be among the named origins.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use thiserror::Error;

use crate::host;

/// An origin (RFC 6454): `https://calls.example`, with its port unless that is the scheme's default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin(String);

/// The text is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an origin must be http://HOST[:PORT] or https://HOST[:PORT], with nothing behind it")]
pub struct NotAnOrigin;

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Origin, NotAnOrigin> {
        let text = text.trim().to_ascii_lowercase();
        let (scheme, authority) = text.split_once("://").ok_or(NotAnOrigin)?;
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(NotAnOrigin),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        if authority.is_empty() || !authority.chars().all(plain) {
            return Err(NotAnOrigin);
        }
        // In the form that browsers send.
        let authority = authority.strip_suffix(usual).unwrap_or(authority);
        Ok(Origin(format!("{scheme}://{authority}")))
    }
}

impl TryFrom<String> for Origin {
    type Error = NotAnOrigin;

    fn try_from(text: String) -> Result<Origin, NotAnOrigin> {
        text.parse()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Pages that may use the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origins {
    /// Pages of all origins.
    #[default]
    Any,
    /// Pages of these origins, and the server's own by its address.
    Only(Vec<Origin>),
}

impl Origins {
    /// Whether a request is allowed: it comes from no page, or from an allowed one.
    fn allow(&self, headers: &HeaderMap) -> bool {
        let Origins::Only(allowed) = self else { return true };
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let Ok(text) = origin.to_str() else { return false };
        let page = text.split_once("://").map(|(_, authority)| authority);
        let host = host::authority(headers).filter(host::is_literal);
        let own =
            page.zip(host).is_some_and(|(page, host)| host.as_str().eq_ignore_ascii_case(page));
        own || text.parse().is_ok_and(|origin| allowed.contains(&origin))
    }
}

/// Refuses requests of other pages, and adds CORS headers for allowed ones.
pub(crate) async fn check(
    State(origins): State<Arc<Origins>>,
    request: Request,
    next: Next,
) -> Response {
    if !origins.allow(request.headers()) {
        let why = "pages of this origin may not use the server (option `origins`)\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    if *origins != Origins::Any && headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        match origin {
            Some(origin) => headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin),
            None => headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN),
        };
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;

    use super::*;

    fn allows(host: &str, origin: &str) -> bool {
        let only = ["https://calls.example", "http://localhost:5173"];
        let only = only.map(|origin| origin.parse().expect("an origin"));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a header"));
        headers.insert(ORIGIN, origin.parse().expect("a header"));
        Origins::Only(only.to_vec()).allow(&headers)
    }

    #[test]
    fn pages_of_named_origins_are_allowed() {
        for origin in ["https://calls.example", "http://localhost:5173"] {
            assert!(allows("sfu.example:7880", origin), "{origin}");
        }
        for origin in [
            "https://calls.example.evil.example",
            "http://calls.example",
            "https://calls.example:8443",
            "https://evil.example",
            "null",
            "http://localhost",
        ] {
            assert!(!allows("sfu.example:7880", origin), "{origin}");
        }
    }

    #[test]
    fn the_servers_own_page_is_allowed_by_its_address() {
        for host in ["192.0.2.1:7880", "[2001:db8::1]:7880", "localhost:7880", "127.0.0.1"] {
            assert!(allows(host, &format!("https://{host}")), "{host}");
            assert!(!allows(host, "https://192.0.2.2:7880"), "{host}");
        }
    }

    #[test]
    fn a_name_that_leads_here_makes_no_page_the_servers_own() {
        for host in ["evil.example:7880", "evil.example", "sfu.example:7880"] {
            assert!(!allows(host, &format!("http://{host}")), "{host}");
        }
    }

    #[test]
    fn requests_without_an_origin_are_allowed_and_any_allows_all() {
        assert!(Origins::Only(Vec::new()).allow(&HeaderMap::new()));
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static("null"));
        assert!(Origins::Any.allow(&headers));
        assert!(!Origins::Only(Vec::new()).allow(&headers));
    }

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let read = |text: &str| text.parse::<Origin>().map(|o| o.to_string());
        assert_eq!(read(" HTTPS://Calls.Example:443 "), Ok("https://calls.example".into()));
        assert_eq!(read("http://[::1]:80"), Ok("http://[::1]".into()));
        for wrong in
            ["calls.example", "https://", "https://a/", "https://a b", "ftp://a", "*", "null"]
        {
            assert_eq!(read(wrong), Err(NotAnOrigin), "{wrong}");
        }
    }
}
