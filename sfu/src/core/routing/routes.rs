//! Which participant a datagram belongs to, by its source address or the ICE user name fragment of its STUN request.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use super::addresses::{LocalAddrs, RemoteAddr};
use crate::api::ParticipantId;
use crate::core::shard::Shard;

/// The routes of one core. The other cores learn of them by the [`Shard`].
pub(crate) struct Routes {
    locals: LocalAddrs,
    addresses: HashMap<RemoteAddr, ParticipantId>,
    ufrags: HashMap<String, ParticipantId>,
    shard: Shard,
}

impl Routes {
    /// The routes of a core, none at first. `locals` are the server's addresses.
    pub(crate) fn new(locals: LocalAddrs, shard: Shard) -> Routes {
        Routes { locals, addresses: HashMap::new(), ufrags: HashMap::new(), shard }
    }

    /// The server's addresses.
    pub(crate) fn locals(&self) -> &LocalAddrs {
        &self.locals
    }

    /// Sets the server's addresses for TCP.
    pub(crate) fn set_tcp(&mut self, addresses: Vec<SocketAddr>) {
        self.locals.tcp = addresses;
    }

    /// The number of the core that owns a datagram, if it is another one.
    pub(crate) fn other_owner(&self, source: RemoteAddr, data: &[u8]) -> Option<usize> {
        self.shard.other_owner(source, data)
    }

    /// Whether a datagram may be processed: its source is known, or is within the `max` datagrams a second of unknown
    /// sources.
    pub(crate) fn admit(&self, now: Instant, source: RemoteAddr, max: u32) -> bool {
        self.addresses.contains_key(&source)
            || self.shard.admit_unauthenticated(now, source.address.ip(), max)
    }

    /// The participant at a source address.
    pub(crate) fn by_address(&self, address: RemoteAddr) -> Option<ParticipantId> {
        self.addresses.get(&address).copied()
    }

    /// The participant of a server user name fragment.
    pub(crate) fn by_ufrag(&self, ufrag: &str) -> Option<ParticipantId> {
        self.ufrags.get(ufrag).copied()
    }

    /// Routes an address to a participant.
    pub(crate) fn add_address(&mut self, address: RemoteAddr, id: ParticipantId) {
        self.addresses.insert(address, id);
        self.shard.add_address(address);
    }

    /// Removes an address.
    pub(crate) fn remove_address(&mut self, address: &RemoteAddr) {
        self.addresses.remove(address);
        self.shard.remove_address(address);
    }

    /// Routes a server user name fragment to a participant.
    pub(crate) fn add_ufrag(&mut self, ufrag: String, id: ParticipantId) {
        self.shard.add_ufrag(&ufrag);
        self.ufrags.insert(ufrag, id);
    }

    /// Removes a server user name fragment.
    pub(crate) fn remove_ufrag(&mut self, ufrag: &str) {
        self.ufrags.remove(ufrag);
        self.shard.remove_ufrag(ufrag);
    }

    /// All addresses.
    #[cfg(test)]
    pub(crate) fn addresses(&self) -> impl ExactSizeIterator<Item = &RemoteAddr> {
        self.addresses.keys()
    }

    /// Number of user name fragments.
    #[cfg(test)]
    pub(crate) fn ufrag_count(&self) -> usize {
        self.ufrags.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_known_sources_are_not_limited() {
        let (now, id) = (Instant::now(), ParticipantId(1));
        let mut routes = Routes::new(LocalAddrs::default(), Shard::default());
        let source = RemoteAddr::from(SocketAddr::from(([192, 0, 2, 1], 5000)));
        assert!(routes.admit(now, source, 1) && !routes.admit(now, source, 1));
        routes.add_address(source, id);
        routes.add_ufrag("abc".to_owned(), id);
        assert!(routes.admit(now, source, 1));
        assert_eq!((routes.by_address(source), routes.by_ufrag("abc")), (Some(id), Some(id)));
        routes.remove_address(&source);
        assert!(!routes.admit(now, source, 1) && routes.by_address(source).is_none());
    }
}
