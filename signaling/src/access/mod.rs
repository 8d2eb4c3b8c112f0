//! Access tokens and their grants: who may enter a room, and what they may do there.
//!
//! A token is a JSON Web Token (RFC 7519), signed by the application's own server with a key that it shares with this
//! one. [`Access`] has the operator's keys; without keys every room is open to everybody. It is pure:
//! a token and the time go in, an [`Admission`] or an [`AccessError`] comes out. Neither contains the token.

mod claims;
mod keys;

use std::sync::Arc;

use parking_lot::RwLock;
use windlass_protocol::{ErrorCode, Grant, ProtocolError};

pub use claims::{Claims, Grants, LEEWAY_S};
pub use keys::{BadKey, TokenKey, TokenKeys};

/// Latest expiry of a token, in seconds since 1970: the end of the year 9999.
const MAX_EXPIRES: f64 = 253_402_300_799.0;
/// The room of a token that is valid for all rooms.
pub const ALL_ROOMS: &str = "*";

/// The keys of access tokens. Clones share one state.
///
/// ```
/// use windlass_protocol::Grant;
/// use windlass_signaling::access::{Access, AccessError, Claims, Grants, TokenKey};
///
/// let key: TokenKey = "app=a secret that has 32 bytes at the least".parse()?;
/// let access = Access::new(vec![key.clone()])?;
/// let token = key.sign(&Claims {
///     room: "tea".into(),
///     sub: "ana@example.org".into(),
///     name: None,
///     grants: Grants::participant(),
///     exp: 2000.0,
///     jti: None,
///     nbf: None,
/// })?;
///
/// // Until second 2000 after 1970, Ana may enter this room and no other.
/// let ana = access.admit(1000, "tea", Some(&token)).expect("a valid token");
/// assert_eq!(ana.identity.as_deref(), Some("ana@example.org"));
/// assert!(!ana.grants.has(Grant::Admin));
/// assert_eq!(access.admit(1000, "work", Some(&token)), Err(AccessError::OtherRoom));
/// assert_eq!(access.admit(3000, "tea", Some(&token)), Err(AccessError::Expired));
/// # Ok::<(), windlass_signaling::access::BadKey>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Access {
    keys: Arc<RwLock<Option<TokenKeys>>>,
}

/// Identity, name and rights of a client that may enter a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The identity in the token; `None` in an open room.
    pub identity: Option<String>,
    /// The display name, if the token has one.
    pub name: Option<String>,
    /// Grants of the client.
    pub grants: Grants,
    /// Bearer of the token.
    pub bearer: Bearer,
}

/// Facts about a token that are kept while its bearer is in a room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearer {
    /// Id of the token (`jti`), if it has one.
    pub token: Option<String>,
    /// Time at which the token expires, in seconds since 1970; 0 without a token.
    pub expires: u64,
}

impl Admission {
    /// The admission of everybody, without keys.
    pub fn open() -> Self {
        Admission {
            identity: None,
            name: None,
            grants: Grants::participant(),
            bearer: Bearer::default(),
        }
    }
}

/// Why an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no token.
    #[error("this server needs an access token")]
    Missing,
    /// The text is no token, or not signed with a configured key.
    #[error("the access token is not valid: {0}")]
    Invalid(&'static str),
    /// The token is not valid yet.
    #[error("the access token is not valid yet")]
    Early,
    /// The token has expired.
    #[error("the access token has expired")]
    Expired,
    /// The token is for another room.
    #[error("the access token is for another room")]
    OtherRoom,
    /// The token lacks a grant.
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
    /// Access with a token that is signed by one of `keys`. Without keys, all rooms are open.
    ///
    /// # Errors
    ///
    /// Fails if there are more than 16 keys, two have one id, or a key is a private one or no Ed25519 key.
    pub fn new(keys: Vec<TokenKey>) -> Result<Access, BadKey> {
        let keys = if keys.is_empty() { None } else { Some(TokenKeys::new(keys)?) };
        Ok(Access { keys: Arc::new(RwLock::new(keys)) })
    }

    /// Whether everybody may enter every room.
    pub fn is_open(&self) -> bool {
        self.keys.read().is_none()
    }

    /// Takes over the keys of `other`. Participants stay.
    pub fn replace(&self, other: &Access) {
        let keys = other.keys.read().clone();
        *self.keys.write() = keys;
    }

    /// Admission of the bearer of a token to `room` at `now` (seconds since 1970).
    ///
    /// # Errors
    ///
    /// Fails if rooms need a token and there is none, it is not signed by one of the keys, it is not valid yet or has
    /// expired, or it is for another room.
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
            Bearer { token: claims.jti, expires: claims.exp.clamp(0.0, MAX_EXPIRES) as u64 };
        let Claims { sub, name, grants, .. } = claims;
        Ok(Admission { identity: Some(sub), name, grants, bearer })
    }

    /// Checks that the bearer may administer `room`, or the server (`None`).
    ///
    /// # Errors
    ///
    /// Fails where [`Access::admit`] does, or if the token does not grant [`Grant::Admin`].
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
