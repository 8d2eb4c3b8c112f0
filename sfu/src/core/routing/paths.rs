//! The ICE credentials and addresses of one client.

use std::collections::VecDeque;

use super::addresses::RemoteAddr;
use super::nomination::Nomination;

/// Maximum number of server user name fragments that lead to one connection. Each ICE restart adds one.
const MAX_UFRAGS: usize = 8;
/// Maximum number of client addresses that lead to one connection.
const MAX_ADDRESSES: usize = 16;
/// Maximum number of addresses that a client may use with one pair of credentials: the stack keeps each of them.
const MAX_NEW_ADDRESSES: usize = 1000;

/// The paths of one client.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Server user name fragments, oldest first.
    ufrags: Vec<String>,
    /// Source addresses of the client, oldest first.
    addresses: VecDeque<RemoteAddr>,
    /// Number of addresses used since the last credentials.
    new_addresses: usize,
    /// The address at which the client receives.
    pub nomination: Nomination,
}

impl Paths {
    /// The server's user name fragments, oldest first.
    pub(crate) fn ufrags(&self) -> &[String] {
        &self.ufrags
    }

    /// The client's addresses, oldest first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &RemoteAddr> {
        self.addresses.iter()
    }

    /// Whether a server user name fragment belongs to the last answer.
    pub(crate) fn is_current(&self, ufrag: &str) -> bool {
        self.ufrags.last().is_some_and(|last| last == ufrag)
    }

    /// Whether the client may use one more address; after [`MAX_NEW_ADDRESSES`] it must restart ICE.
    pub(crate) fn admit_new_address(&mut self) -> bool {
        self.new_addresses += 1;
        self.new_addresses <= MAX_NEW_ADDRESSES
    }

    /// Adds the user name fragment of new credentials; returns the oldest one if there are too many.
    pub(crate) fn add_ufrag(&mut self, ufrag: String) -> Option<String> {
        self.new_addresses = 0;
        let oldest = (self.ufrags.len() == MAX_UFRAGS).then(|| self.ufrags.remove(0));
        self.ufrags.push(ufrag);
        oldest
    }

    /// Adds an address; returns the oldest one if there are too many.
    pub(crate) fn add_address(&mut self, address: RemoteAddr) -> Option<RemoteAddr> {
        self.addresses.push_back(address);
        (self.addresses.len() > MAX_ADDRESSES).then(|| self.addresses.pop_front()).flatten()
    }

    /// Removes an address that leads to another connection now.
    pub(crate) fn remove_address(&mut self, address: RemoteAddr) {
        self.addresses.retain(|a| *a != address);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn the_oldest_user_name_fragments_and_addresses_are_replaced() {
        let mut paths = Paths::default();
        for n in 0..MAX_UFRAGS {
            assert_eq!(paths.add_ufrag(n.to_string()), None);
        }
        assert_eq!(paths.add_ufrag("last".into()), Some("0".into()));
        assert!(paths.is_current("last") && !paths.is_current("1"));
        let address = |port: usize| SocketAddr::from(([192, 0, 2, 1], port as u16)).into();
        for port in 0..MAX_ADDRESSES {
            assert_eq!(paths.add_address(address(port)), None);
        }
        assert_eq!(paths.add_address(address(99)), Some(address(0)));
    }

    #[test]
    fn new_credentials_allow_new_addresses() {
        let mut paths = Paths::default();
        assert!((0..MAX_NEW_ADDRESSES).all(|_| paths.admit_new_address()));
        assert!(!paths.admit_new_address());
        paths.add_ufrag("next".into());
        assert!(paths.admit_new_address());
    }
}
