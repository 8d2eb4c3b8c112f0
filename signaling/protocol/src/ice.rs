//! Servers that help a client to reach this one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A STUN or TURN server, as `RTCPeerConnection` takes it.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServer {
    /// Its addresses (`turn:…`, `turns:…`, `stun:…`).
    pub urls: Vec<String>,
    /// The name by which the client may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub username: Option<String>,
    /// The password that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub credential: Option<IceCredential>,
}

/// The password of a TURN server. Its `Debug` form hides it, so that it reaches no log.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IceCredential(String);

impl IceCredential {
    /// The password itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for IceCredential {
    fn from(text: String) -> Self {
        IceCredential(text)
    }
}

impl fmt::Debug for IceCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IceCredential(…)")
    }
}

/// All of them, with how long what they need is good.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServers {
    /// The servers; none where clients need none.
    pub servers: Vec<IceServer>,
    /// For how many seconds from now on their names and passwords are good; absent where they stay so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub ttl_s: Option<u32>,
}

impl IceServers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }
}
