//! What signalling needs of the cluster, where the server is one of several.

use std::pin::Pin;

use windlass_sfu::ParticipantId;

use crate::session::action::ParticipantInfo;

/// Where a room is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// The room is on this server.
    Local,
    /// The room is on the server with this signalling address (`wss://…/ws`).
    Redirect(String),
}

/// A placement that may take a while; never longer than a client waits.
pub type Placed<'a> = Pin<Box<dyn Future<Output = Placement> + Send + 'a>>;

/// What other servers answer to an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Those that came in time.
    pub answers: Vec<Vec<u8>>,
    /// Number of servers that were asked.
    pub asked: usize,
}

/// Answers that may take some seconds.
pub type Ordered<'a> = Pin<Box<dyn Future<Output = Answers> + Send + 'a>>;

/// A participant that moves from one server to another. Both servers know it by these.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    /// The room.
    pub room: &'a str,
    /// Name and identity.
    pub participant: &'a ParticipantInfo,
}

/// The cluster, as signalling needs it.
pub trait Cluster: Send + Sync {
    /// Where a room is, which is claimed for this server if no other has it. `local`: number of its participants on
    /// this server.
    fn place<'a>(&'a self, room: &'a str, local: usize) -> Placed<'a>;

    /// Signalling addresses of the other servers that take rooms, the best first.
    fn others(&self) -> Vec<String>;

    /// Has all other servers carry out an order of [`crate::Signaling::on_order`].
    fn order(&self, order: Vec<u8>) -> Ordered<'_>;

    /// The ticket that a participant shows on the server to which it moves. `None`: that server cannot tell whom it
    /// replaces.
    fn ticket(&self, mover: &Mover<'_>, id: ParticipantId) -> Option<String>;

    /// The participant's id on the server that issued the ticket, if the ticket is valid for it.
    fn former_id(&self, mover: &Mover<'_>, ticket: &str) -> Option<String>;
}
