//! Grants, by which access tokens say what their bearers may do, and the tokens themselves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A grant: something that an access token allows.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Publish tracks.
    Publish,
    /// Subscribe to others' tracks.
    Subscribe,
    /// Receive enhanced rungs. Without the grant, the participant gets plain rungs only.
    Enhance,
    /// Send messages to others, and change one's own name and attributes.
    Data,
    /// Moderate the room: decide who else may be in it, and what they may do there. Moderators send `moderate`
    /// messages.
    Moderate,
    /// Use the admin API: for the token's room, or with the room `*` for the whole server.
    Admin,
}

impl Grant {
    /// All grants, in the order of the documentation.
    pub const ALL: [Grant; 6] = [
        Grant::Publish,
        Grant::Subscribe,
        Grant::Enhance,
        Grant::Data,
        Grant::Moderate,
        Grant::Admin,
    ];

    /// Grants of a participant in an open room, and of a token that names none.
    pub const PARTICIPANT: [Grant; 4] =
        [Grant::Publish, Grant::Subscribe, Grant::Enhance, Grant::Data];

    /// The grant's name in tokens and messages.
    pub fn name(self) -> &'static str {
        match self {
            Grant::Publish => "publish",
            Grant::Subscribe => "subscribe",
            Grant::Enhance => "enhance",
            Grant::Data => "data",
            Grant::Moderate => "moderate",
            Grant::Admin => "admin",
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a grant: use publish, subscribe, enhance, data, moderate or admin")]
pub struct UnknownGrant(String);

impl FromStr for Grant {
    type Err = UnknownGrant;

    fn from_str(text: &str) -> Result<Self, UnknownGrant> {
        let named = |grant: &Grant| grant.name() == text;
        Grant::ALL.into_iter().find(named).ok_or_else(|| UnknownGrant(text.to_owned()))
    }
}

/// A JSON Web Token (RFC 7519) as a client sends it. Its `Debug` form hides it, so that it reaches no log.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessToken(String);

impl AccessToken {
    /// The token's text, which is a secret until it has expired.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for AccessToken {
    fn from(text: String) -> Self {
        AccessToken(text)
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_by_the_name_that_serde_writes() {
        for grant in Grant::ALL {
            assert_eq!(grant.name().parse(), Ok(grant));
            assert_eq!(serde_json::to_value(grant).unwrap(), grant.name());
        }
        assert!("fly".parse::<Grant>().is_err());
    }

    #[test]
    fn a_token_is_not_shown() {
        let shown = format!("{:?}", AccessToken::from("eyJhbGciOiJIUzI1NiJ9.e30.x".to_owned()));
        assert!(!shown.contains("eyJ"), "{shown}");
    }
}
