//! Lower priority for the enhancer's threads: on a small machine, forwarding goes first.
//!
//! Linux only, where a thread can have its own nice value. Elsewhere it does nothing.

/// Raises the calling thread's nice value. A failure costs only a log line.
#[cfg(target_os = "linux")]
pub(super) fn lower(nice: u8) {
    if nice == 0 {
        return;
    }
    // SAFETY: `setpriority` takes three integers and touches no memory of ours. On Linux, process
    // id 0 with PRIO_PROCESS means the calling thread alone.
    let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, i32::from(nice.min(19))) } != 0;
    if failed {
        tracing::debug!(nice, "the thread keeps its priority");
    }
}

/// Does nothing: other systems have one priority for the whole process.
#[cfg(not(target_os = "linux"))]
pub(super) fn lower(_nice: u8) {}
