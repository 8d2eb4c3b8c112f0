//! When the server ends: SIGINT at once, SIGTERM after its rooms have ended.

use std::io::Result;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_sfu::SfuHandle;
use windlass_signaling::Signaling;

/// How often it is looked whether rooms are left.
const LOOK: Duration = Duration::from_millis(250);

/// The signals that end the server, heard from now on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    pub fn listen() -> Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for either.
    pub async fn any(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits until the server is to stop. SIGTERM lets rooms end first, for `drain` at most; any signal after that
    /// does not.
    pub async fn stopped(mut self, signaling: Signaling, sfu: SfuHandle, drain: Duration) {
        tokio::select! {
            _ = self.interrupt.recv() => return,
            _ = self.terminate.recv() => {}
        }
        if drain.is_zero() {
            return;
        }
        signaling.drain().await;
        eprintln!(
            "Windlass takes no new rooms and ends with the last one, or in {} seconds; a second signal ends it at once.",
            drain.as_secs()
        );
        tokio::select! {
            () = rooms_ended(&sfu) => {}
            () = tokio::time::sleep(drain) => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn rooms_ended(sfu: &SfuHandle) {
    while sfu.stats().await.is_ok_and(|stats| stats.rooms > 0) {
        tokio::time::sleep(LOOK).await;
    }
}
