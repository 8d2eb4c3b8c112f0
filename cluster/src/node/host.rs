//! What a node of a cluster needs of the server that it is a part of.

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

    /// A participant on this server; `None`: it has left.
    fn participant(&self, id: ParticipantId) -> Option<RelayedParticipant>;

    /// A participant of a shared room joined on another server.
    fn remote_joined(&self, id: ParticipantId, room: &str, who: RelayedParticipant);

    /// A participant on another server has another name or other attributes.
    fn remote_changed(&self, id: ParticipantId, who: RelayedParticipant);

    /// A participant left on another server, or the link to that server is lost.
    fn remote_left(&self, id: ParticipantId);

    /// Sets the servers with which a room is shared from now on; with none, the room is not shared any more.
    fn set_shared(&self, room: &str, nodes: &[NodeId]) -> impl Future<Output = ()> + Send;

    /// The link to a server has come up or gone down.
    fn on_link(&self, node: NodeId, up: bool) -> impl Future<Output = ()> + Send;

    /// A server has relayed something of a room.
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

    /// The rule with that key must be sent again, if it holds.
    fn resend_rule(&self, key: &str);

    /// All rules that hold must be sent again, except those with these keys.
    fn resend_rules_except(&self, keys: &HashSet<String>);
}

/// A rule, as it is written into the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What the rule is about: a later rule with the same key replaces it.
    pub key: String,
    /// The rule.
    pub value: Vec<u8>,
}
