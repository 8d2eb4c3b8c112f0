//! Which participant a datagram belongs to, by its source address or the ICE user name fragment of its STUN request.

use std::collections::HashMap;

use super::addresses::RemoteAddr;
use super::shard::Shard;
use crate::api::ParticipantId;

/// The routes of one core. The other cores learn of them by the [`Shard`].
pub(super) struct Routes {
    addresses: HashMap<RemoteAddr, ParticipantId>,
    ufrags: HashMap<String, ParticipantId>,
    shard: Shard,
}

impl Routes {
    /// No routes.
    pub(super) fn new(shard: Shard) -> Routes {
        Routes { addresses: HashMap::new(), ufrags: HashMap::new(), shard }
    }

    /// The participant at a source address.
    pub(super) fn by_address(&self, address: RemoteAddr) -> Option<ParticipantId> {
        self.addresses.get(&address).copied()
    }

    /// The participant of a server user name fragment.
    pub(super) fn by_ufrag(&self, ufrag: &str) -> Option<ParticipantId> {
        self.ufrags.get(ufrag).copied()
    }

    /// Routes an address to a participant.
    pub(super) fn add_address(&mut self, address: RemoteAddr, id: ParticipantId) {
        self.addresses.insert(address, id);
        self.shard.add_address(address);
    }

    /// Removes an address.
    pub(super) fn remove_address(&mut self, address: &RemoteAddr) {
        self.addresses.remove(address);
        self.shard.remove_address(address);
    }

    /// Routes a server user name fragment to a participant.
    pub(super) fn add_ufrag(&mut self, ufrag: String, id: ParticipantId) {
        self.shard.add_ufrag(&ufrag);
        self.ufrags.insert(ufrag, id);
    }

    /// Removes a server user name fragment.
    pub(super) fn remove_ufrag(&mut self, ufrag: &str) {
        self.ufrags.remove(ufrag);
        self.shard.remove_ufrag(ufrag);
    }

    /// All addresses.
    #[cfg(test)]
    pub(super) fn addresses(&self) -> impl ExactSizeIterator<Item = &RemoteAddr> {
        self.addresses.keys()
    }

    /// Number of user name fragments.
    #[cfg(test)]
    pub(super) fn ufrag_count(&self) -> usize {
        self.ufrags.len()
    }
}
