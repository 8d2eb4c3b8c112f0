//! The `Host` of a request.
//!
//! A page of `http://evil.example` can resolve its name to this machine (DNS rebinding). For the browser the server is
//! then of the page's origin, and `Origin` and `Host` are equal. But the `Host` is always the page's own name. So
//! rights of this machine, and of the server's own page, need a literal host: `localhost`, or an address.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// The `Host` of a request, with its port; `None`: the request has none, or several.
pub(crate) fn authority(headers: &HeaderMap) -> Option<Authority> {
    let mut all = headers.get_all(HOST).iter();
    let host = all.next()?.to_str().ok()?.parse().ok()?;
    all.next().is_none().then_some(host)
}

/// Whether the host is `localhost`, or a loopback address.
pub(crate) fn is_loopback(host: &Authority) -> bool {
    host.host().eq_ignore_ascii_case("localhost")
        || address(host).is_some_and(|ip| ip.is_loopback())
}

/// Whether the host is `localhost` or an address, not a DNS name.
pub(crate) fn is_literal(host: &Authority) -> bool {
    is_loopback(host) || address(host).is_some()
}

fn address(host: &Authority) -> Option<IpAddr> {
    let host = host.host();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&'static str]) -> Option<Authority> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(HOST, line.parse().unwrap());
        }
        authority(&headers)
    }

    #[test]
    fn literals_are_told_from_names() {
        for (host, literal, loopback) in [
            ("localhost:7880", true, true),
            ("LOCALHOST", true, true),
            ("127.0.0.1", true, true),
            ("127.8.8.8:1", true, true),
            ("[::1]:7880", true, true),
            ("[::ffff:127.0.0.1]", true, true),
            ("192.0.2.1:7880", true, false),
            ("[2001:db8::1]", true, false),
            ("0.0.0.0:7880", true, false),
            ("evil.example", false, false),
            ("localhost.evil.example", false, false),
            ("127.0.0.1.evil.example:7880", false, false),
            ("2130706433", false, false),
            ("x", false, false),
        ] {
            let authority = of(&[host]).unwrap();
            assert_eq!(
                (is_literal(&authority), is_loopback(&authority)),
                (literal, loopback),
                "{host}"
            );
        }
    }

    #[test]
    fn one_host_is_said_or_none() {
        assert!(of(&[]).is_none() && of(&["a b"]).is_none() && of(&[""]).is_none());
        assert!(of(&["localhost", "evil.example"]).is_none());
    }
}
