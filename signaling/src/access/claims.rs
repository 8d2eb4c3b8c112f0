//! The claims of a token.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_protocol::{Grant, limits};

use super::{ALL_ROOMS, AccessError};

/// Maximum difference of clocks, in seconds.
pub const LEEWAY_S: u64 = 10;

/// A set of grants; in tokens and messages a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// The set that has these grants.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Grants {
        let mut grants: Vec<_> = grants.into_iter().collect();
        grants.sort_unstable();
        grants.dedup();
        Grants(grants)
    }

    /// The grants of a participant.
    pub fn participant() -> Grants {
        Grants::new(Grant::PARTICIPANT)
    }

    /// Whether the set has `grant`.
    pub fn has(&self, grant: Grant) -> bool {
        self.0.contains(&grant)
    }

    /// Checks that the set has `grant`.
    ///
    /// # Errors
    ///
    /// Fails if the set lacks `grant`.
    pub fn check(&self, grant: Grant) -> Result<(), AccessError> {
        if self.has(grant) { Ok(()) } else { Err(AccessError::NotGranted(grant)) }
    }

    /// The grants, in the order of the documentation.
    pub fn list(&self) -> Vec<Grant> {
        Grants::new(self.0.iter().copied()).0
    }
}

/// The claims of a token (RFC 7519 §4). Other claims are ignored, except `aud`: a token with it is for another service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Claims {
    /// Room of the token; `*` for all.
    pub room: String,
    /// Identity of the bearer, which has one participant in a room at a time.
    pub sub: String,
    /// Display name of the bearer, instead of the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Grants of the bearer; by default those of a participant.
    #[serde(default = "Grants::participant")]
    #[schema(value_type = Option<Vec<Grant>>)]
    pub grants: Grants,
    /// Time at which the token expires, in seconds since 1970.
    pub exp: f64,
    /// Id of the token, by which it can be revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// Time from which on the token is valid, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<f64>,
}

impl Claims {
    /// Whether the token is for `room`. Only a token for all rooms is for the room `*`.
    pub fn is_for(&self, room: &str) -> bool {
        self.room == ALL_ROOMS || self.room == room
    }

    /// Refuses claims that are not valid at `now`, or out of bounds.
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
