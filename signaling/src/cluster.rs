//! What signalling asks a cluster, where the server is one of several.

use std::pin::Pin;

use windlass_sfu::ParticipantId;

use crate::session::Person;

/// Where a room is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this server.
    Here,
    /// On another, whose signalling is at this address (`wss://…/ws`).
    At(String),
}

/// An answer that may take a while; never longer than a client waits.
pub type Placed<'a> = Pin<Box<dyn Future<Output = Place> + Send + 'a>>;

/// Who goes from one server to another, as both know them.
#[derive(Debug, Clone, Copy)]
pub struct Mover<'a> {
    /// The room.
    pub room: &'a str,
    /// Name and identity.
    pub person: &'a Person,
}

/// The cluster, as signalling needs it.
pub trait Cluster: Send + Sync {
    /// Where a room is, which is claimed for this server where nobody has it. `here`: so many of its participants are on this one.
    fn place<'a>(&'a self, room: &'a str, here: usize) -> Placed<'a>;

    /// Signalling addresses of the other servers that take rooms, the best first.
    fn others(&self) -> Vec<String>;

    /// What a participant who is sent to another server shows there. `None`: the others there will not know whose place it takes.
    fn ticket(&self, mover: &Mover<'_>, id: ParticipantId) -> Option<String>;

    /// The id of the participant to whom a server of the cluster gave that ticket, if it did just now and to this one.
    fn was(&self, mover: &Mover<'_>, ticket: &str) -> Option<String>;
}
