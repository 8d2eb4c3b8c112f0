//! Who is let in, and what they may do there: access tokens and the grants in them.
//!
//! A token is a JSON Web Token (RFC 7519) that the application's own server signs with a key that it shares with this
//! one. [`Access`] is what the operator configured: keys, or none, and then every room is open to everybody. It is pure:
//! a token and the time go in, an [`Admission`] or an [`AccessError`] comes out. Neither tells the token.

mod claims;
mod keys;

use std::sync::Arc;

use parking_lot::RwLock;
use windlass_protocol::{ErrorCode, Grant, ProtocolError};

pub use claims::{Claims, Grants, LEEWAY_S};
pub use keys::{BadKey, TokenKey, TokenKeys};

/// Tokens that are good for longer than any calendar are taken for those that end here, in the year 9999.
const MOST_EXPIRES: f64 = 253_402_300_799.0;
/// The room of a token that is good for all rooms.
pub const ALL_ROOMS: &str = "*";

/// How rooms are protected. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Access {
    keys: Arc<RwLock<Option<TokenKeys>>>,
}

/// What somebody may do in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Who that is by the token; nobody in particular in an open room.
    pub identity: Option<String>,
    /// What the others are told, where the token says it.
    pub name: Option<String>,
    /// What it allows.
    pub grants: Grants,
    /// What it came with.
    pub bearer: Bearer,
}

/// What is remembered of a token while its bearer is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearer {
    /// Its own id, where it has one.
    pub token: Option<String>,
    /// Until when it is good, in seconds since 1970; 0 where there is none.
    pub expires: u64,
}

impl Admission {
    /// That of everybody, where there are no keys.
    pub fn open() -> Self {
        Admission {
            identity: None,
            name: None,
            grants: Grants::participant(),
            bearer: Bearer::default(),
        }
    }
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no token.
    #[error("this server needs an access token")]
    Missing,
    /// It is no token, or none that a configured key has signed.
    #[error("the access token is not valid: {0}")]
    Invalid(&'static str),
    /// It is good from a later time on.
    #[error("the access token is not valid yet")]
    Early,
    /// It was good until an earlier time.
    #[error("the access token has expired")]
    Expired,
    /// It is for another room.
    #[error("the access token is for another room")]
    OtherRoom,
    /// It lacks a grant.
    #[error("the access token does not grant `{0}`")]
    NotGranted(Grant),
}

impl AccessError {
    /// The code of the answer.
    pub fn code(self) -> ErrorCode {
        match self {
            AccessError::Missing | AccessError::Invalid(_) | AccessError::Early => {
                ErrorCode::Unauthorized
            }
            AccessError::Expired => ErrorCode::TokenExpired,
            AccessError::OtherRoom | AccessError::NotGranted(_) => ErrorCode::Forbidden,
        }
    }
}

impl From<AccessError> for ProtocolError {
    fn from(error: AccessError) -> Self {
        ProtocolError::new(error.code(), error.to_string())
    }
}

impl Access {
    /// Rooms that need a token signed by one of `keys`; without any, open ones.
    pub fn new(keys: Vec<TokenKey>) -> Result<Access, BadKey> {
        let keys = if keys.is_empty() { None } else { Some(TokenKeys::new(keys)?) };
        Ok(Access { keys: Arc::new(RwLock::new(keys)) })
    }

    /// Whether everybody may enter every room.
    pub fn is_open(&self) -> bool {
        self.keys.read().is_none()
    }

    /// Goes by the keys of another from now on. Who is inside stays.
    pub fn replace(&self, other: &Access) {
        let keys = other.keys.read().clone();
        *self.keys.write() = keys;
    }

    /// What the bearer of a token may do in `room` at `now` (seconds since 1970).
    pub fn admit(
        &self,
        now: u64,
        room: &str,
        token: Option<&str>,
    ) -> Result<Admission, AccessError> {
        let keys = self.keys.read().clone();
        let Some(keys) = keys else { return Ok(Admission::open()) };
        let claims = keys.verify(now, token.ok_or(AccessError::Missing)?)?;
        if !claims.is_for(room) {
            return Err(AccessError::OtherRoom);
        }
        let bearer =
            Bearer { token: claims.jti, expires: claims.exp.clamp(0.0, MOST_EXPIRES) as u64 };
        let Claims { sub, name, grants, .. } = claims;
        Ok(Admission { identity: Some(sub), name, grants, bearer })
    }

    /// Checks that the bearer may administer `room`, or where `room` is `None` the server.
    pub fn admin(
        &self,
        now: u64,
        room: Option<&str>,
        token: Option<&str>,
    ) -> Result<(), AccessError> {
        let admission = self.admit(now, room.unwrap_or(ALL_ROOMS), token)?;
        admission.grants.check(Grant::Admin)
    }
}

#[cfg(test)]
mod tests;
