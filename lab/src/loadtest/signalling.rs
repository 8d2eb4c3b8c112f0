//! The signalling of a client, in the protocol of its server.

use std::time::Duration;

use anyhow::Result;
use windlass_protocol::ServerMessage;

use super::janus::Janus;
use super::signal::Signal;
use super::visits::Parting;

/// How long the connections of a client that vanished stay open.
const VANISHED: Duration = Duration::from_mins(1);

/// An open signalling socket.
pub(super) enum Signalling {
    /// The socket to a Windlass server.
    Windlass(Signal),
    /// The socket to Janus.
    Janus(Janus),
}

impl Signalling {
    /// The next message of a Windlass server; those of Janus are handled here. The future may be dropped without
    /// loss.
    pub(super) async fn receive(&mut self) -> Result<ServerMessage> {
        match self {
            Signalling::Windlass(signal) => signal.receive().await,
            Signalling::Janus(janus) => loop {
                janus.receive().await?;
            },
        }
    }

    /// Leaves as `how` says. Errors do not matter any more.
    pub(super) async fn part(self, how: Option<Parting>) {
        match how {
            Some(Parting::Vanish) => {
                // A machine without power closes no socket.
                tokio::spawn(async move {
                    tokio::time::sleep(VANISHED).await;
                    drop(self);
                });
            }
            Some(Parting::Goodbye) | None => self.close().await,
        }
    }

    /// Leaves and closes the socket. Errors do not matter any more.
    async fn close(self) {
        match self {
            Signalling::Windlass(signal) => signal.close().await,
            Signalling::Janus(janus) => janus.close().await,
        }
    }
}
