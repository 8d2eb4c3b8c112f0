//! Records that servers write into the cluster's buckets: leases of servers, claims to rooms, and the keys of claims.

use std::fmt::Write;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest lease or claim that is read, in bytes.
const MAX_RECORD_BYTES: usize = 1_024;
/// Maximum number of servers in [`Claim::with`].
pub(super) const MAX_WITH: usize = 31;

/// The lease of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeLease {
    /// Signalling address for clients (`wss://host/ws`).
    pub url: String,
    /// Relay address for other servers (`https://host:port`). `None`: this server does not share rooms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<String>,
    /// Participants on this server, of all rooms.
    pub participants: u32,
    /// The server is about to stop and takes no new rooms.
    pub draining: bool,
}

/// The claim to one room: it names the servers that serve the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// Name of the owner. The owner alone changes the claim, as long as it lives.
    pub node: String,
    /// Names of the other servers of the room, where it is shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

impl Claim {
    /// The claim of a room on one server.
    pub fn sole(node: &str) -> Claim {
        Claim { node: node.to_owned(), with: Vec::new() }
    }
}

/// Why a lease or claim is refused.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The record is longer than any that a server writes.
    #[error(
        "the server's lease or claim is too long: it has {0} bytes, more than {MAX_RECORD_BYTES}"
    )]
    TooLong(usize),
    /// The record is not the expected JSON.
    #[error("the server's lease or claim is malformed: {0}")]
    Json(#[from] serde_json::Error),
    /// An address has the wrong scheme, no host, or credentials.
    #[error(
        "the lease's address is not a ws:// or wss:// URL (relay: http:// or https://) of a host"
    )]
    Address,
    /// Clients reach the other server without TLS, and this one by TLS.
    #[error(
        "the lease's node-url begins with ws://, and that of this server with wss://: give all servers wss://"
    )]
    Plain,
    /// A claim names more servers than a room may have.
    #[error("the claim names {0} further servers, more than {MAX_WITH}")]
    TooManyNodes(usize),
}

impl NodeLease {
    /// Parses and checks a lease. `only_wss`: signalling without TLS is refused.
    pub(super) fn parse(bytes: &[u8], only_wss: bool) -> Result<NodeLease, RecordError> {
        let lease: NodeLease = parse(bytes)?;
        let is_relay = |url: &str| is_address(url, &["http://", "https://"]);
        let is_read = is_address(&lease.url, &["wss://", "ws://"])
            && lease.relay.as_deref().is_none_or(is_relay);
        if !is_read {
            return Err(RecordError::Address);
        }
        if only_wss && !lease.url.starts_with("wss://") {
            return Err(RecordError::Plain);
        }
        Ok(lease)
    }
}

impl Claim {
    /// Parses and checks a claim.
    pub(super) fn parse(bytes: &[u8]) -> Result<Claim, RecordError> {
        let claim: Claim = parse(bytes)?;
        if claim.with.len() > MAX_WITH {
            return Err(RecordError::TooManyNodes(claim.with.len()));
        }
        Ok(claim)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(RecordError::TooLong(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// Whether `url` has one of these schemes, a host, and no user name or password.
fn is_address(url: &str, schemes: &[&str]) -> bool {
    let Some(rest) = schemes.iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:[]%".contains(c);
    !host.is_empty() && host.chars().all(fits) && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The bucket key of a room: `r` and the name in hexadecimal, since NATS keys allow few characters.
pub fn room_key(room: &str) -> String {
    room.bytes().fold(String::from("r"), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

/// The room of a bucket key; `None` where the key is not one of [`room_key`].
pub fn room_of_key(key: &str) -> Option<String> {
    let digits = key.strip_prefix('r').filter(|digits| digits.is_ascii())?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}
