//! Interface from a node of a cluster to the server that it is a part of.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use windlass_types::relay::Relayed;
use windlass_types::{NodeId, ParticipantId};

use crate::relay::messages::RelayedParticipant;

/// Signalling and SFU of this server.
pub trait Host: Send + Sync + 'static {
    /// Rooms with participants on this server, and how many these are. Loopback rooms are not included.
    fn rooms(&self) -> Vec<(String, usize)>;

    /// Sends the participants of a room to the server with the signalling address `url`. With `must`, participants that
    /// do not go are disconnected after a while. Returns whether this is new to any of them.
    fn send_away(&self, room: &str, url: &str, must: bool) -> bool;

    /// The participant on this server with this id; `None`: it has left.
    fn participant(&self, id: ParticipantId) -> Option<RelayedParticipant>;

    /// Notes that a participant of a shared room has joined on another server.
    fn remote_joined(&self, id: ParticipantId, room: &str, who: RelayedParticipant);

    /// Notes that a participant on another server has another name or other attributes.
    fn remote_changed(&self, id: ParticipantId, who: RelayedParticipant);

    /// Notes that a participant has left on another server, or that the link to that server is lost.
    fn remote_left(&self, id: ParticipantId);

    /// Sets the servers with which a room is shared from now on; with none, the room is not shared any more.
    fn set_shared(&self, room: &str, nodes: &[NodeId]) -> impl Future<Output = ()> + Send;

    /// Notes that the link to a server has come up or gone down.
    fn on_link(&self, node: NodeId, up: bool) -> impl Future<Output = ()> + Send;

    /// Takes a message about a room that another server has relayed.
    fn on_relayed(
        &self,
        node: NodeId,
        room: &Arc<str>,
        message: Relayed,
    ) -> impl Future<Output = ()> + Send;

    /// Carries out another server's order. Returns the answer.
    fn on_order(&self, order: Vec<u8>) -> impl Future<Output = Vec<u8>> + Send;

    /// Rules of moderators and operators that other servers must get. Waits until there are some.
    fn next_rules(&self) -> impl Future<Output = Vec<Rule>> + Send;

    /// Takes a rule of another server. Returns the rule's key.
    ///
    /// # Errors
    ///
    /// The rule is malformed.
    fn on_rule(&self, value: &[u8]) -> Result<String, Box<dyn Error>>;

    /// Marks the rule with that key to be sent again, if it holds.
    fn resend_rule(&self, key: &str);

    /// Marks all rules that hold to be sent again, except those with these keys.
    fn resend_rules_except(&self, keys: &HashSet<String>);
}

/// A rule, as it is written into the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Subject of the rule as a key: a later rule with the same key replaces it.
    pub key: String,
    /// The rule.
    pub value: Vec<u8>,
}
