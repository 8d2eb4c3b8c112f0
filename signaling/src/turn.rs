//! TURN servers for clients whose network blocks other paths.
//!
//! The TURN servers are separate programs (for example coturn) that share a secret with this server. Each client gets a
//! user name with an expiry, and a password derived from name and secret (draft-uberti-behave-turn-rest-00), so the
//! credentials are of no use later.

use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use windlass_protocol::{IceServer, IceServers};

use crate::at_file;

/// A TURN or STUN server's address (RFC 7064, RFC 7065).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TurnUrl(String);

/// The text is no URL of a TURN or STUN server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a TURN server must be `turn:HOST[:PORT][?transport=udp|tcp]`, `turns:…` or `stun:HOST[:PORT]`"
)]
pub struct BadTurnUrl;

impl TurnUrl {
    /// The address as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the server needs credentials.
    pub fn needs_credentials(&self) -> bool {
        !self.0.starts_with("stun")
    }
}

impl FromStr for TurnUrl {
    type Err = BadTurnUrl;

    fn from_str(text: &str) -> Result<Self, BadTurnUrl> {
        let (scheme, rest) = text.split_once(':').ok_or(BadTurnUrl)?;
        let (place, query) = rest.split_once('?').map_or((rest, None), |(p, q)| (p, Some(q)));
        let relays = matches!(scheme, "turn" | "turns");
        let query_fits = match query {
            None => true,
            Some(query) => relays && matches!(query, "transport=udp" | "transport=tcp"),
        };
        let bracketed = place.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (host, port) = if let Some((ip, port)) = bracketed {
            let port = match port {
                "" => None,
                port => Some(port.strip_prefix(':').ok_or(BadTurnUrl)?),
            };
            (ip.parse::<std::net::Ipv6Addr>().is_ok(), port)
        } else {
            let (host, port) = place.split_once(':').map_or((place, None), |(h, p)| (h, Some(p)));
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            (!host.is_empty() && host.chars().all(fits), port)
        };
        let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if (relays || matches!(scheme, "stun" | "stuns")) && host && port_fits && query_fits {
            Ok(TurnUrl(text.to_owned()))
        } else {
            Err(BadTurnUrl)
        }
    }
}

impl TryFrom<String> for TurnUrl {
    type Error = BadTurnUrl;

    fn try_from(text: String) -> Result<Self, BadTurnUrl> {
        text.parse()
    }
}

/// A secret or password of TURN servers: the text itself, or `@FILE`. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TurnSecret(String);

/// Why a secret cannot be used. The error does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTurnSecret {
    /// The secret is empty.
    #[error("the secret of a TURN server must not be empty")]
    Empty,
    /// The secret's file cannot be read.
    #[error("cannot read the file of the TURN server's secret: {0}")]
    File(String),
}

impl FromStr for TurnSecret {
    type Err = BadTurnSecret;

    fn from_str(text: &str) -> Result<Self, BadTurnSecret> {
        let secret = at_file::text(text).map_err(|e| BadTurnSecret::File(e.to_string()))?;
        if secret.is_empty() { Err(BadTurnSecret::Empty) } else { Ok(TurnSecret(secret)) }
    }
}

impl TryFrom<String> for TurnSecret {
    type Error = BadTurnSecret;

    fn try_from(text: String) -> Result<Self, BadTurnSecret> {
        text.parse()
    }
}

impl fmt::Debug for TurnSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnSecret(…)")
    }
}

/// Credentials for the servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TurnAccess {
    /// No credentials: the servers are used for STUN only.
    #[default]
    Open,
    /// One name and password for all clients.
    Static(String, TurnSecret),
    /// A name and password for each client, derived from a shared secret, valid for a time.
    Rest(TurnSecret, Duration),
}

/// TURN and STUN servers, and credentials for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnConfig {
    /// URLs of the TURN and STUN servers; empty: clients get none.
    pub urls: Vec<TurnUrl>,
    /// Credentials for the TURN servers.
    pub access: TurnAccess,
}

impl TurnConfig {
    /// The ICE servers for a client, at `now` (seconds since 1970). The TURN server learns `identity` only.
    pub fn servers(&self, identity: &str, now: u64) -> IceServers {
        let (mut servers, mut ttl_s) = (Vec::new(), None);
        let (turn, stun): (Vec<_>, Vec<_>) =
            self.urls.iter().partition(|url| url.needs_credentials());
        let urls = |of: Vec<&TurnUrl>| of.into_iter().map(|url| url.0.clone()).collect();
        if !stun.is_empty() {
            servers.push(IceServer { urls: urls(stun), username: None, credential: None });
        }
        let credentials = match &self.access {
            TurnAccess::Open => None,
            TurnAccess::Static(name, TurnSecret(password)) => {
                Some((name.clone(), password.clone()))
            }
            TurnAccess::Rest(TurnSecret(secret), ttl) => {
                ttl_s = u32::try_from(ttl.as_secs()).ok();
                let name = format!("{}:{identity}", now.saturating_add(ttl.as_secs()));
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
                let password = BASE64.encode(hmac::sign(&key, name.as_bytes()));
                Some((name, password))
            }
        };
        if let Some((name, password)) = credentials.filter(|_| !turn.is_empty()) {
            servers.push(IceServer {
                urls: urls(turn),
                username: Some(name),
                credential: Some(password.into()),
            });
        }
        IceServers { ttl_s: ttl_s.filter(|_| !servers.is_empty()), servers }
    }
}

/// The servers as `Link` headers, for clients of WHIP and WHEP (RFC 9725 §4.6).
pub(crate) fn links(ice: &IceServers) -> Vec<HeaderValue> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let one = |server: &IceServer, url: &str| {
        let mut link = format!("<{url}>; rel=\"ice-server\"");
        if let (Some(name), Some(password)) = (&server.username, &server.credential) {
            let (name, password) = (quoted(name), quoted(password.reveal()));
            let _ = write!(link, "; username=\"{name}\"; credential=\"{password}\"");
            link.push_str("; credential-type=\"password\"");
        }
        let mut value = HeaderValue::try_from(link).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let of = |server: &IceServer| {
        server.urls.iter().filter_map(|url| one(server, url)).collect::<Vec<_>>()
    };
    ice.servers.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(urls: &[&str], access: TurnAccess) -> TurnConfig {
        TurnConfig { urls: urls.iter().map(|url| url.parse().expect("url")).collect(), access }
    }

    #[test]
    fn a_password_is_made_of_the_secret_and_the_name_that_says_when_it_ends() {
        let rest = TurnAccess::Rest("north".parse().expect("secret"), Duration::from_secs(600));
        let ice = config(&["turn:turn.example.org:3478?transport=udp"], rest).servers("p12", 1_000);
        assert_eq!(ice.ttl_s, Some(600));
        let [server] = &ice.servers[..] else { panic!("one server") };
        assert_eq!(server.username.as_deref(), Some("1600:p12"));
        // printf 1600:p12 | openssl dgst -sha1 -hmac north -binary | base64
        assert_eq!(
            server.credential.as_ref().expect("password").reveal(),
            "BFypu9lDgCxxjMtxThwhzMoCX6Y="
        );
    }

    #[test]
    fn stun_servers_are_told_without_a_password_and_static_ones_do_not_end() {
        let access = TurnAccess::Static("anna".into(), "north".parse().expect("secret"));
        let ice = config(&["stun:a.example.org", "turns:b.example.org"], access).servers("p1", 5);
        assert_eq!(ice.ttl_s, None);
        let names: Vec<_> = ice.servers.iter().map(|s| s.username.as_deref()).collect();
        assert_eq!(names, [None, Some("anna")]);
        assert!(TurnConfig::default().servers("p1", 5).is_empty());
    }

    #[test]
    fn links_name_each_address_and_keep_quotes_inside_of_quotes() {
        let access = TurnAccess::Static("an\"na".into(), "nor\\th".parse().expect("secret"));
        let ice = config(&["stun:a", "turn:b", "turns:c"], access).servers("p1", 5);
        let links = links(&ice);
        let texts: Vec<_> = links.iter().map(|link| link.to_str().expect("text")).collect();
        let rest = r#"rel="ice-server"; username="an\"na"; credential="nor\\th"; credential-type="password""#;
        assert_eq!(
            texts,
            [
                "<stun:a>; rel=\"ice-server\"".to_owned(),
                format!("<turn:b>; {rest}"),
                format!("<turns:c>; {rest}")
            ]
        );
        assert!(links.iter().all(HeaderValue::is_sensitive));
    }

    #[test]
    fn addresses_of_turn_servers_are_checked() {
        for good in [
            "turn:turn.example.org",
            "turn:192.0.2.1:3478",
            "turns:turn.example.org:443?transport=tcp",
            "turn:[2001:db8::1]:3478?transport=udp",
            "stun:[2001:db8::1]",
        ] {
            assert!(good.parse::<TurnUrl>().is_ok(), "{good}");
        }
        for bad in [
            "turn.example.org",
            "turn:",
            "turn://turn.example.org",
            "turn:a:0",
            "turn:a:b",
            "turn:a?transport=quic",
            "stun:a?transport=udp",
            "turn:user@a",
            "turn:[2001:db8::zz]",
            "https://a",
            "turn:[::1]x",
        ] {
            assert_eq!(bad.parse::<TurnUrl>(), Err(BadTurnUrl), "{bad}");
        }
    }

    #[test]
    fn no_secret_is_told_by_its_debug_form() {
        let rest = TurnAccess::Rest("north".parse().expect("secret"), Duration::from_secs(600));
        let config = config(&["turn:a"], rest);
        let password = config.servers("p1", 1).servers[0].credential.clone().expect("password");
        let shown = format!("{config:?} {:?}", config.servers("p1", 1));
        assert!(!shown.contains("north") && !shown.contains(password.reveal()), "{shown}");
        assert_eq!("".parse::<TurnSecret>(), Err(BadTurnSecret::Empty));
    }
}
