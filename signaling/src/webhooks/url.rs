//! URLs of receivers.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;
use serde::Deserialize;

/// The `http` or `https` URL of a receiver. Its `Debug` form shows the host only: paths may contain secrets.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookUrl(Uri);

/// The text is no URL of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook must be an http:// or https:// address")]
pub struct BadUrl;

impl WebhookUrl {
    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }

    /// Host and port of the receiver.
    pub fn address(&self) -> (&str, u16) {
        let usual = if self.is_https() { 443 } else { 80 };
        (self.0.host().unwrap_or_default(), self.0.port_u16().unwrap_or(usual))
    }

    /// Whether the scheme is https.
    pub(super) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }
}

impl FromStr for WebhookUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let uri: Uri = text.parse().map_err(|_| BadUrl)?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        // User and password before the host would not be sent.
        let host =
            uri.authority().is_some_and(|a| !a.host().is_empty() && !a.as_str().contains('@'));
        if known && host { Ok(WebhookUrl(uri)) } else { Err(BadUrl) }
    }
}

impl TryFrom<String> for WebhookUrl {
    type Error = BadUrl;

    fn try_from(text: String) -> Result<Self, BadUrl> {
        text.parse()
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({}…)", self.0.host().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_or_https_with_a_host() {
        for good in ["http://127.0.0.1:9/hook", "https://example.org", "https://[::1]/x?y=z"] {
            assert!(good.parse::<WebhookUrl>().is_ok(), "{good}");
        }
        for bad in ["", "/hook", "example.org", "ftp://example.org/", "http://", "https://a:b@c/"] {
            assert_eq!(bad.parse::<WebhookUrl>(), Err(BadUrl), "{bad}");
        }
    }

    #[test]
    fn the_path_is_not_shown() {
        let url: WebhookUrl = "https://example.org/secret".parse().unwrap();
        assert!(!format!("{url:?}").contains("secret"));
    }
}
