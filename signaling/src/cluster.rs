//! What signalling asks a cluster, where the server is one of several.

use std::pin::Pin;

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

/// The cluster, as signalling needs it.
pub trait Cluster: Send + Sync {
    /// Where a room is, which is claimed for this server where nobody has it. `here`: so many of its participants are on this one.
    fn place<'a>(&'a self, room: &'a str, here: usize) -> Placed<'a>;

    /// Signalling addresses of the other servers that take rooms, the best first.
    fn others(&self) -> Vec<String>;
}
