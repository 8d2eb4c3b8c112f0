//! Ends the server: at once at SIGINT, and after its rooms have ended at SIGTERM.

use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{self, getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_sfu::SfuHandle;
use windlass_signaling::{Drain, Signaling};

use crate::cluster::Connections;

/// Interval at which it is checked whether rooms are left.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Signals that end the server, heard from its creation on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Whether further SIGTERMs are ignored.
    patient: bool,
}

impl Signals {
    /// Begins to listen for signals.
    pub(crate) fn listen() -> Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            patient: false,
        })
    }

    /// Waits until the server is to stop. SIGTERM lets rooms end first, for at most `drain`; any signal after that
    /// stops at once.
    pub(crate) async fn rooms_ended(
        self,
        signaling: Signaling,
        sfu: SfuHandle,
        cluster: Connections,
        drain: Duration,
    ) {
        let begin = async {
            // Newcomers are sent to another server, if there is one.
            tokio::join!(cluster.drain(), signaling.drain());
            "takes no new rooms and ends with the last one"
        };
        Box::pin(self.stopped(drain, begin, rooms_ended(&sfu))).await;
        cluster.stop();
    }

    /// Waits until a worker is to stop. SIGTERM lets its streams go to other workers first. With `supervised`, a second
    /// SIGTERM is ignored and only SIGINT ends the wait: a service manager signals all processes, and our supervising
    /// process passes SIGTERM on.
    pub(crate) async fn streams_left(
        mut self,
        streams: impl Fn() -> usize,
        give_away: impl FnOnce(),
        drain: Duration,
        supervised: bool,
    ) {
        self.patient = supervised;
        let begin = async {
            give_away();
            "takes no more streams and ends when all have gone to other workers"
        };
        let left = async {
            while streams() > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        self.stopped(drain, begin, left).await;
    }

    /// At SIGTERM runs `begin`, writes the text that it returns, and waits for `ended`, for at most `drain`.
    async fn stopped(
        mut self,
        drain: Duration,
        begin: impl Future<Output = &'static str>,
        ended: impl Future<Output = ()>,
    ) {
        tokio::select! {
            _ = self.interrupt.recv() => return,
            _ = self.terminate.recv() => {}
        }
        if drain.is_zero() {
            return;
        }
        let how = begin.await;
        windlass_logging::say(&format!(
            "Windlass {how}, or in {} seconds; a second signal ends it at once.",
            drain.as_secs()
        ));
        tokio::select! {
            () = ended => {}
            () = tokio::time::sleep(drain) => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv(), if !self.patient => {}
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::End,
            _ = self.terminate.recv() => Asked::Drain,
        }
    }
}

/// Function that sends this process SIGTERM when an operator orders it by the admin API. A second order does nothing,
/// because a second signal would end the process at once.
pub(crate) fn on_order(drain: Duration) -> Drain {
    let ordered = AtomicBool::new(false);
    Arc::new(move || {
        if !ordered.swap(true, Ordering::Relaxed)
            && let Err(error) = kill_process(getpid(), process::Signal::TERM)
        {
            tracing::error!(%error, "/admin/drain failed: the server cannot signal itself; end it with SIGTERM");
        }
        drain
    })
}

/// What a signal asks of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The process must end at once.
    End,
    /// The process must end when others have taken over.
    Drain,
}

async fn rooms_ended(sfu: &SfuHandle) {
    while sfu.stats().await.is_ok_and(|stats| stats.rooms > 0) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
