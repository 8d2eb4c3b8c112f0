//! What a token says.

use serde::{Deserialize, Serialize};
use windlass_protocol::{Grant, limits};

use super::{ALL_ROOMS, AccessError};

/// By how many seconds clocks may differ.
pub const LEEWAY_S: u64 = 10;

/// What a token allows: a set, in tokens and messages a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// These.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Grants {
        let mut grants: Vec<_> = grants.into_iter().collect();
        grants.sort_unstable();
        grants.dedup();
        Grants(grants)
    }

    /// All that a participant needs.
    pub fn participant() -> Grants {
        Grants::new(Grant::PARTICIPANT)
    }

    /// Whether `grant` is among them.
    pub fn has(&self, grant: Grant) -> bool {
        self.0.contains(&grant)
    }

    /// The error, if `grant` is not among them.
    pub fn check(&self, grant: Grant) -> Result<(), AccessError> {
        if self.has(grant) { Ok(()) } else { Err(AccessError::NotGranted(grant)) }
    }

    /// Them, in the order of the documentation.
    pub fn list(&self) -> Vec<Grant> {
        Grants::new(self.0.iter().copied()).0
    }
}

/// The claims of a token (RFC 7519 §4). Others are ignored, but for `aud`, with which a token is meant for somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// The room that it is for; `*` for all.
    pub room: String,
    /// Who the bearer is: the identity, one participant in a room at a time.
    pub sub: String,
    /// What the others are told in the place of what the client says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it allows; without it, what a participant needs.
    #[serde(default = "Grants::participant")]
    pub grants: Grants,
    /// Until when it is good, in seconds since 1970.
    pub exp: f64,
    /// Its own id, by which it can be revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// From when on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<f64>,
}

impl Claims {
    /// Whether the token lets its bearer into `room`. Nothing but a token for all rooms is for "all rooms".
    pub fn is_for(&self, room: &str) -> bool {
        self.room == ALL_ROOMS || self.room == room
    }

    /// Refuses claims that are out of their time at `now`, or out of bounds.
    pub(super) fn check(&self, now: u64) -> Result<(), AccessError> {
        let (now, leeway) = (now as f64, LEEWAY_S as f64);
        if !self.exp.is_finite() || now >= self.exp + leeway {
            return Err(AccessError::Expired);
        }
        if self.nbf.is_some_and(|nbf| !nbf.is_finite() || now + leeway < nbf) {
            return Err(AccessError::Early);
        }
        if !limits::is_identity(&self.sub) {
            return Err(AccessError::Invalid(
                "`sub` must be 1 to 128 bytes without invisible characters or marks of direction",
            ));
        }
        if self.jti.as_deref().is_some_and(|id| !(1..=limits::IDENTITY_BYTES).contains(&id.len())) {
            return Err(AccessError::Invalid("`jti` must be 1 to 128 bytes"));
        }
        if self.name.as_deref().is_some_and(|name| limits::check_name(name).is_err()) {
            return Err(AccessError::Invalid("`name` is none that a participant can have"));
        }
        Ok(())
    }
}
