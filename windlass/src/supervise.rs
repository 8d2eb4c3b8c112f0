//! Ends the process when one of its media threads has died or hangs, so that its supervisor starts it again.
//!
//! Part of its rooms are gone then, and the rest of the thread's state is unknown. Until the end, `/healthz` reports
//! it, no room begins at that thread, and the node's lease is given up: rooms go to other servers at once.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use windlass_logging::FlushOnDrop;
use windlass_sfu::{SfuHandle, ThreadFault};

use crate::cluster::Connections;

/// Exit status for a fault of the program itself (`EX_SOFTWARE` of sysexits.h).
const STATUS: i32 = 70;
/// Maximum time for giving up the lease.
const LEAVING: Duration = Duration::from_millis(500);
/// Maximum time from the fault to the end of the process. If anything hangs, the process is aborted then.
const ENDING: Duration = Duration::from_millis(800);

/// Watches the SFU's threads from a thread of its own, which needs nothing else of the process to work.
pub(crate) fn start(sfu: SfuHandle, cluster: Connections) -> Result<()> {
    let runtime = Handle::current();
    let watch = move || {
        let on_hang = |fault: ThreadFault| {
            tracing::error!(
                "{fault}: its calls stand still, and /healthz reports it; the process ends if that lasts, for its supervisor to start it again"
            );
        };
        if let Some(fault) = sfu.watch(on_hang) {
            end(fault, &cluster, &runtime);
        }
    };
    let thread = std::thread::Builder::new().name("supervisor".to_owned());
    thread.spawn(watch).context("cannot start the thread that watches the others")?;
    Ok(())
}

fn end(fault: ThreadFault, cluster: &Connections, runtime: &Handle) {
    let _ = std::thread::Builder::new().spawn(|| {
        std::thread::sleep(ENDING);
        std::process::abort();
    });
    let (left, leaves) = mpsc::channel();
    if let Some(leave) = cluster.leave() {
        runtime.spawn(async move {
            leave.await;
            let _ = left.send(());
        });
    } else {
        drop(left);
    }
    tracing::error!(
        "{fault}: the process ends with status {STATUS}, for its supervisor to start it again"
    );
    let _ = leaves.recv_timeout(LEAVING);
    drop(FlushOnDrop);
    std::process::exit(STATUS);
}
