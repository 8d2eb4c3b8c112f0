//! The shared secret of a cluster's servers. Enhancers have a token that is derived from it, so that a compromised
//! enhancer cannot act as a server.

use std::fmt::{self, Write};
use std::str::FromStr;

use aws_lc_rs::digest;
use serde::Deserialize;
use thiserror::Error;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

/// Minimum length of a token, in characters.
const MIN_CHARS: usize = 16;
/// Prefix of enhancers' tokens.
const ENHANCER_PREFIX: &str = "enhancer-";
/// Metadata key of the token in gRPC requests.
pub(crate) const HEADER: &str = "authorization";

/// A token. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ClusterToken(String);

/// Why a token cannot be used. The error does not contain the token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadToken {
    /// The token is too short, or has characters that a header cannot have.
    #[error("the cluster's token must have {MIN_CHARS} visible ASCII characters or more")]
    Weak,
    /// The token's file cannot be read.
    #[error("cannot read the file of the cluster's token: {0}")]
    File(String),
}

impl FromStr for ClusterToken {
    type Err = BadToken;

    /// Parses the token itself, or `@FILE`.
    fn from_str(text: &str) -> Result<Self, BadToken> {
        let token = match text.strip_prefix('@') {
            None => text.to_owned(),
            Some(file) => {
                let read = std::fs::read_to_string(file);
                read.map_err(|error| BadToken::File(format!("{file}: {error}")))?.trim().to_owned()
            }
        };
        if token.len() < MIN_CHARS || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadToken::Weak);
        }
        Ok(ClusterToken(token))
    }
}

impl TryFrom<String> for ClusterToken {
    type Error = BadToken;

    fn try_from(text: String) -> Result<Self, BadToken> {
        text.parse()
    }
}

impl fmt::Debug for ClusterToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterToken(…)")
    }
}

impl ClusterToken {
    /// The bytes from which seal keys are derived.
    pub(crate) fn secret(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The token of the cluster's enhancers, with which their clients authenticate too. A token of enhancers gives
    /// itself.
    #[must_use]
    pub fn of_enhancers(&self) -> ClusterToken {
        if self.is_of_enhancers() {
            return self.clone();
        }
        // The Helm chart and shell scripts compute it too: `enhancer-` and the SHA-256 of `enhancer ` and the token, in
        // hexadecimal.
        let hash = digest::digest(&digest::SHA256, format!("enhancer {}", self.0).as_bytes());
        let hex = hash.as_ref().iter().fold(String::from(ENHANCER_PREFIX), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        ClusterToken(hex)
    }

    /// Whether the token is one of enhancers, with which no server can run.
    pub fn is_of_enhancers(&self) -> bool {
        self.0.starts_with(ENHANCER_PREFIX)
    }

    /// The value of [`HEADER`].
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Passes requests with this token.
    ///
    /// # Errors
    ///
    /// The request has no token, or another one.
    pub fn check<T>(&self, request: Request<T>) -> Result<Request<T>, Status> {
        if self.matches(request.metadata()) {
            Ok(request)
        } else {
            Err(Status::unauthenticated("the cluster token is missing or wrong"))
        }
    }

    /// Compares the request's token with this one in constant time.
    fn matches(&self, metadata: &MetadataMap) -> bool {
        let shown = metadata.get(HEADER).map_or(&[][..], tonic::metadata::MetadataValue::as_bytes);
        let own = self.header();
        let differs = shown.iter().zip(own.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        shown.len() == own.len() && differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shows_it_may_and_nobody_else() {
        let token: ClusterToken = "north-by-north-west".parse().unwrap();
        let shows = |value: Option<&str>| {
            let mut request = Request::new(());
            if let Some(value) = value {
                request.metadata_mut().insert(HEADER, value.parse().unwrap());
            }
            token.check(request).is_ok()
        };
        assert!(shows(Some(&token.header())));
        for wrong in ["", "Bearer north-by-north-wesx", "Bearer north", "north-by-north-west"] {
            assert!(!shows(Some(wrong)), "{wrong}");
        }
        assert!(!shows(None));
        assert_eq!(format!("{token:?}"), "ClusterToken(…)");
    }

    #[test]
    fn enhancers_have_one_that_is_made_from_it_and_stays_as_it_is() {
        let token: ClusterToken = "north-by-north-west".parse().unwrap();
        let theirs = token.of_enhancers();
        // printf 'enhancer %s' north-by-north-west | sha256sum
        let made = "enhancer-436b98e5100b4970c53c80664a5eda557802ae6f184253a589dcfb0b6065de92";
        assert_eq!(theirs.header(), format!("Bearer {made}"));
        assert!(theirs.is_of_enhancers() && !token.is_of_enhancers());
        assert_eq!(theirs.of_enhancers(), theirs);
        assert_eq!(made.parse(), Ok(theirs));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        assert_eq!("short".parse::<ClusterToken>(), Err(BadToken::Weak));
        assert_eq!("with a space and long".parse::<ClusterToken>(), Err(BadToken::Weak));
        assert!(matches!("@/nowhere/token".parse::<ClusterToken>(), Err(BadToken::File(_))));
    }
}
