//! The keys that sign tokens: several at a time, so that keys can be rotated.
//!
//! The algorithm belongs to the key, never to the token: a secret is for HS256, a PEM file for EdDSA (Ed25519). A token
//! that names a key by `kid` is checked with that one; one that names none with each.

use std::fmt;
use std::str::FromStr;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::Deserialize;

use super::{AccessError, Claims};

use crate::at_file;

/// Maximum number of keys: all are tried where a token names none.
const MAX_KEYS: usize = 16;
/// Minimum length of a secret, in bytes (RFC 7518 §3.2).
const MIN_SECRET_BYTES: usize = 32;
/// Maximum length of a key id, in bytes.
const MAX_ID_BYTES: usize = 64;

/// A key as an operator configures it: `ID=SECRET`, or `ID=@FILE`. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TokenKey {
    id: String,
    text: Vec<u8>,
}

/// Why a key cannot be used. The error does not contain the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The key has no id before an equals sign.
    #[error(
        "a token key must be ID=SECRET or ID=@FILE, with an id of 1 to 64 letters, digits, `-`, `_` or `.`"
    )]
    Form,
    /// The secret is too short.
    #[error(
        "the secret of token key `{0}` is too short: it needs 32 bytes or more; `windlass key` makes one"
    )]
    Short(String),
    /// The key's file cannot be read.
    #[error("cannot read the file of token key `{id}`: {reason}")]
    File {
        /// Id of the key.
        id: String,
        /// The system's error.
        reason: String,
    },
    /// The file is PEM, but has no Ed25519 key.
    #[error(
        "the file of token key `{0}` is PEM without an Ed25519 key: make one with `openssl genpkey -algorithm ed25519 -out KEY`, and give \
         the server its public half (`openssl pkey -in KEY -pubout`)"
    )]
    Pem(String),
    /// Two keys have the same id.
    #[error("two token keys have the id `{0}`: give each an id of its own")]
    Twice(String),
    /// There are too many keys.
    #[error("there are {0} token keys; at most 16 can be used at a time")]
    Many(usize),
    /// A private key, with which tokens cannot be checked.
    #[error(
        "token key `{0}` is private: give the server its public half (`openssl pkey -in KEY -pubout`)"
    )]
    Private(String),
    /// A public key, with which tokens cannot be made.
    #[error("token key `{0}` is public and cannot sign tokens: use its private half")]
    Public(String),
}

impl FromStr for TokenKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let (id, secret) = text.split_once('=').ok_or(BadKey::Form)?;
        let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.chars().all(is_id) {
            return Err(BadKey::Form);
        }
        let text = at_file::bytes(secret)
            .map_err(|e| BadKey::File { id: id.to_owned(), reason: e.to_string() })?;
        let key = TokenKey { id: id.to_owned(), text };
        if !key.is_pem() && key.text.len() < MIN_SECRET_BYTES {
            return Err(BadKey::Short(key.id));
        }
        Ok(key)
    }
}

impl TryFrom<String> for TokenKey {
    type Error = BadKey;

    fn try_from(text: String) -> Result<Self, BadKey> {
        text.parse()
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TokenKey {
    fn is_pem(&self) -> bool {
        self.text.starts_with(b"-----BEGIN ")
    }

    /// Makes a token. Needs the secret, or the private key.
    ///
    /// # Errors
    ///
    /// Fails if the key is a public one, or the token cannot be encoded.
    pub fn sign(&self, claims: &Claims) -> Result<String, BadKey> {
        let (algorithm, key) = if self.is_pem() {
            let key = EncodingKey::from_ed_pem(&self.text);
            (Algorithm::EdDSA, key.map_err(|_| BadKey::Public(self.id.clone()))?)
        } else {
            (Algorithm::HS256, EncodingKey::from_secret(&self.text))
        };
        let header = Header { kid: Some(self.id.clone()), ..Header::new(algorithm) };
        jsonwebtoken::encode(&header, claims, &key).map_err(|_| BadKey::Pem(self.id.clone()))
    }

    /// The key that checks the tokens that this key signs.
    fn verifier(&self) -> Result<Verifier, BadKey> {
        let (algorithm, key) = if self.is_pem() {
            if EncodingKey::from_ed_pem(&self.text).is_ok() {
                return Err(BadKey::Private(self.id.clone()));
            }
            let key = DecodingKey::from_ed_pem(&self.text);
            (Algorithm::EdDSA, key.map_err(|_| BadKey::Pem(self.id.clone()))?)
        } else {
            (Algorithm::HS256, DecodingKey::from_secret(&self.text))
        };
        Ok(Verifier { id: self.id.clone(), algorithm, key })
    }
}

struct Verifier {
    id: String,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Keys that check tokens.
#[derive(Clone)]
pub struct TokenKeys(std::sync::Arc<[Verifier]>);

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl TokenKeys {
    /// The set of `keys`, each with an id of its own.
    ///
    /// # Errors
    ///
    /// Fails if there are more than 16 keys, two have one id, or a key is a private one or no Ed25519 key.
    pub fn new(keys: Vec<TokenKey>) -> Result<TokenKeys, BadKey> {
        if keys.len() > MAX_KEYS {
            return Err(BadKey::Many(keys.len()));
        }
        let mut verifiers: Vec<Verifier> = Vec::new();
        for key in keys {
            if verifiers.iter().any(|v| v.id == key.id) {
                return Err(BadKey::Twice(key.id));
            }
            verifiers.push(key.verifier()?);
        }
        Ok(TokenKeys(verifiers.into()))
    }

    /// The claims of a token that is signed with one of the keys, and valid now.
    pub(super) fn verify(&self, now: u64, token: &str) -> Result<Claims, AccessError> {
        let header = jsonwebtoken::decode_header(token)
            .map_err(|_| AccessError::Invalid("it is no JSON Web Token with a known `alg`"))?;
        if header.crit.is_some() {
            return Err(AccessError::Invalid(
                "its header has `crit`, of which nothing is known here",
            ));
        }
        let named = |key: &&Verifier| header.kid.as_ref().is_none_or(|kid| *kid == key.id);
        let mut error = AccessError::Invalid("its `kid` names no key of this server");
        for key in self.0.iter().filter(named) {
            match key.verify(token) {
                Ok(claims) => return claims.check(now).map(|()| claims),
                Err(e) => error = e,
            }
        }
        Err(error)
    }
}

impl Verifier {
    fn verify(&self, token: &str) -> Result<Claims, AccessError> {
        let mut validation = Validation::new(self.algorithm);
        // The claims' times are checked with the caller's clock.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let verified = jsonwebtoken::decode::<Claims>(token, &self.key, &validation);
        verified.map(|token| token.claims).map_err(|e| {
            AccessError::Invalid(match e.kind() {
                ErrorKind::InvalidSignature => "its signature is not that of a key of this server",
                ErrorKind::InvalidAlgorithm => "its `alg` is not that of the key",
                ErrorKind::InvalidAudience => "it has an `aud`, so it is meant for another service",
                ErrorKind::Json(_) => "its claims are not `room`, `sub`, `exp`, `name`, `grants`",
                _ => "it cannot be read",
            })
        })
    }
}
