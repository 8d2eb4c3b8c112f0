//! Two keys, somebody else's, and tokens made with them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use windlass_protocol::Grant;
use windlass_signaling::SignalingConfig;
use windlass_signaling::access::{Access, Claims, Grants, TokenKey};

pub(crate) const OLD: &str = "old=0123456789abcdef0123456789abcdef";
pub(crate) const NEW: &str = "new=fedcba9876543210fedcba9876543210";
pub(crate) const STRANGER: &str = "old=00000000000000000000000000000000";

pub(crate) fn config() -> SignalingConfig {
    let keys = [OLD, NEW].map(|text| text.parse().unwrap());
    let access = Access::new(keys.to_vec()).unwrap();
    SignalingConfig { access, ..SignalingConfig::default() }
}

/// A token that is good for `seconds` from now on.
pub(crate) fn token(
    key: &str,
    room: &str,
    identity: &str,
    grants: &[Grant],
    seconds: f64,
) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let claims = Claims {
        room: room.into(),
        sub: identity.into(),
        name: None,
        grants: Grants::new(grants.iter().copied()),
        exp: now + seconds,
        nbf: None,
        jti: Some(format!("{identity}-token")),
    };
    key.parse::<TokenKey>().unwrap().sign(&claims).unwrap()
}

pub(crate) fn guest(room: &str, identity: &str) -> String {
    token(NEW, room, identity, &Grant::PARTICIPANT, 60.0)
}

pub(crate) fn join(room: &str, token: &str) -> serde_json::Value {
    json!({"type": "join", "version": 1, "room": room, "name": "Ana", "token": token})
}
