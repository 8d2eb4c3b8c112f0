//! The secret of a cluster: whoever has it is one of its servers. Enhancers are given another that is made from it, so that whoever takes one of them over
//! is no server.

use std::fmt::{self, Write};
use std::str::FromStr;

use aws_lc_rs::digest;
use serde::Deserialize;
use thiserror::Error;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

/// Fewest characters.
const LEAST: usize = 16;
/// What enhancers' tokens begin with.
const OF_ENHANCERS: &str = "enhancer-";
/// Where a stream shows it.
pub(crate) const HEADER: &str = "authorization";

/// See the module. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ClusterToken(String);

/// Why it cannot be used. Never tells it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadToken {
    /// Too short to be a secret, or of characters that a header cannot have.
    #[error("the cluster's token must have {LEAST} visible ASCII characters or more")]
    Weak,
    /// Its file cannot be read.
    #[error("cannot read the file of the cluster's token: {0}")]
    File(String),
}

impl FromStr for ClusterToken {
    type Err = BadToken;

    /// Itself, or `@FILE`.
    fn from_str(text: &str) -> Result<Self, BadToken> {
        let token = match text.strip_prefix('@') {
            None => text.to_owned(),
            Some(file) => {
                let read = std::fs::read_to_string(file);
                read.map_err(|error| BadToken::File(format!("{file}: {error}")))?.trim().to_owned()
            }
        };
        if token.len() < LEAST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
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
    /// For seals.
    pub(crate) fn secret(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// What the cluster's enhancers have, and whoever comes to them shows. Itself, if it is theirs.
    #[must_use]
    pub fn of_enhancers(&self) -> ClusterToken {
        if self.is_of_enhancers() {
            return self.clone();
        }
        // Charts and shells make it as well: `enhancer-` and the SHA-256 of `enhancer ` and the token, in hexadecimal.
        let hash = digest::digest(&digest::SHA256, format!("enhancer {}", self.0).as_bytes());
        let hex = hash.as_ref().iter().fold(String::from(OF_ENHANCERS), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        ClusterToken(hex)
    }

    /// Whether it is enhancers' alone: no server can do with it.
    pub fn is_of_enhancers(&self) -> bool {
        self.0.starts_with(OF_ENHANCERS)
    }

    /// As a stream shows it.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Refuses whoever does not show it.
    pub fn check<T>(&self, request: Request<T>) -> Result<Request<T>, Status> {
        if self.is_shown(request.metadata()) {
            Ok(request)
        } else {
            Err(Status::unauthenticated("the cluster's token is missing or another"))
        }
    }

    /// In a time that does not tell how much of it is right.
    fn is_shown(&self, metadata: &MetadataMap) -> bool {
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
