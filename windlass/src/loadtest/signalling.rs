//! Whatever signalling a client speaks.

use anyhow::Result;
use windlass_protocol::ServerMessage;

use super::janus::Janus;
use super::signal::Signal;

/// An open socket.
pub enum Signalling {
    /// Ours.
    Windlass(Signal),
    /// Janus'.
    Janus(Janus),
}

impl Signalling {
    /// The next message of ours; another server's are dealt with here. May be given up without loss.
    pub async fn receive(&mut self) -> Result<ServerMessage> {
        match self {
            Signalling::Windlass(signal) => signal.receive().await,
            Signalling::Janus(janus) => loop {
                janus.receive().await?;
            },
        }
    }

    /// Leaves and closes; errors do not matter any more.
    pub async fn close(self) {
        match self {
            Signalling::Windlass(signal) => signal.close().await,
            Signalling::Janus(janus) => janus.close().await,
        }
    }
}
