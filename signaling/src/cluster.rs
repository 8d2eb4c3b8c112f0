//! Interface from signalling to the cluster, where the server is one of several.

use std::pin::Pin;

use windlass_sfu::ParticipantId;

use crate::session::action::ParticipantInfo;

/// Which server has a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomServer {
    /// The room is on this server.
    Local,
    /// The room is on the server with this signalling address (`wss://…/ws`).
    Redirect(String),
}

/// The server of a room. The future may take a while, but never longer than a client waits.
pub type Placed<'a> = Pin<Box<dyn Future<Output = RoomServer> + Send + 'a>>;

/// Answers of other servers to an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Answers that came in time.
    pub answers: Vec<Vec<u8>>,
    /// Number of servers that got the order.
    pub asked: usize,
}

/// The answers to an order. The future may take some seconds.
pub type Ordered<'a> = Pin<Box<dyn Future<Output = Answers> + Send + 'a>>;

/// A participant that moves from one server to another. Both servers know it by these fields.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    /// The room.
    pub room: &'a str,
    /// Name and identity.
    pub participant: &'a ParticipantInfo,
}

/// The cluster, as signalling needs it.
pub trait Cluster: Send + Sync {
    /// Where a room is. A room that no other server has is claimed for this server. `local` is the number of the room's
    /// participants on this server.
    fn place<'a>(&'a self, room: &'a str, local: usize) -> Placed<'a>;

    /// Signalling addresses of the other servers that take rooms, the best first.
    fn others(&self) -> Vec<String>;

    /// Gives an order of [`crate::Signaling::on_order`] to all other servers.
    fn order(&self, order: Vec<u8>) -> Ordered<'_>;

    /// The ticket that a participant shows on the server to which it moves. `None`: that server cannot tell whom it
    /// replaces.
    fn ticket(&self, mover: &Mover<'_>, id: ParticipantId) -> Option<String>;

    /// The participant's id on the server that issued the ticket, if the ticket is valid for it.
    fn former_id(&self, mover: &Mover<'_>, ticket: &str) -> Option<String>;
}
