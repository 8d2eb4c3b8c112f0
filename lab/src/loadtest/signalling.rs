//! Whatever signalling a client speaks.

use std::time::Duration;

use anyhow::Result;
use windlass_protocol::ServerMessage;

use super::janus::Janus;
use super::signal::Signal;
use super::visits::Parting;

/// For how long nothing is closed of a client that vanished.
const VANISHED: Duration = Duration::from_secs(60);

/// An open socket.
pub(super) enum Signalling {
    /// Ours.
    Windlass(Signal),
    /// Janus'.
    Janus(Janus),
}

impl Signalling {
    /// The next message of ours; another server's are dealt with here. May be given up without loss.
    pub(super) async fn receive(&mut self) -> Result<ServerMessage> {
        match self {
            Signalling::Windlass(signal) => signal.receive().await,
            Signalling::Janus(janus) => loop {
                janus.receive().await?;
            },
        }
    }

    /// Goes as it is said; errors do not matter any more.
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

    /// Leaves and closes; errors do not matter any more.
    async fn close(self) {
        match self {
            Signalling::Windlass(signal) => signal.close().await,
            Signalling::Janus(janus) => janus.close().await,
        }
    }
}
