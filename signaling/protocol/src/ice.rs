//! STUN and TURN servers for clients.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A STUN or TURN server, as `RTCPeerConnection` takes it.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServer {
    /// URLs of the server (`turn:…`, `turns:…`, `stun:…`).
    pub urls: Vec<String>,
    /// User name of the client at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub username: Option<String>,
    /// Password for the user name.
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

/// STUN and TURN servers for a client, with the lifetime of their credentials.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServers {
    /// The servers; empty where clients need none.
    pub servers: Vec<IceServer>,
    /// Lifetime of the credentials in seconds from now on; absent where they do not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub ttl_s: Option<u32>,
}

impl IceServers {
    /// Whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }
}
