//! Ctrl-C: the first one ends a measurement with the results so far, the second one ends the program at once.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

/// Exit status of a program that Ctrl-C ended, as shells have it (128 + SIGINT).
pub(crate) const STATUS: u8 = 130;

/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// Whether Ctrl-C was pressed.
static PRESSED: AtomicBool = AtomicBool::new(false);
/// Processes that would outlive this one; a second Ctrl-C ends them.
static STARTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// How far a measurement came before Ctrl-C ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Interrupted {
    /// Number of units that were measured.
    pub after: u64,
    /// Number of units that were to be measured.
    pub of: u64,
    /// The name of the units.
    pub unit: &'static str,
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interrupted { after, of, unit } = self;
        write!(f, "interrupted after {after} of {of} {unit}")
    }
}

/// The error of work that Ctrl-C ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Ctrl-C was pressed before anything was measured")]
pub(crate) struct Stopped;

/// Handles Ctrl-C from now on, instead of ending by it.
pub(crate) fn listen() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for Ctrl-C")?;
    // If Ctrl-C is pressed before the thread runs, the results so far must not be lost.
    let signals = runtime.block_on(async {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
    });
    let mut signals = signals.context("cannot wait for Ctrl-C")?;
    std::thread::spawn(move || {
        while runtime.block_on(signals.recv()).is_some() {
            if PRESSED.swap(true, Ordering::Relaxed) {
                for pid in started().iter() {
                    let _ = kill_process(*pid, Signal::KILL);
                }
                std::process::exit(STATUS.into());
            }
            eprintln!("\nstopping, with what there is so far; Ctrl-C again ends at once");
        }
    });
    Ok(())
}

/// Whether Ctrl-C was pressed.
pub(crate) fn pressed() -> bool {
    PRESSED.load(Ordering::Relaxed)
}

/// Waits until Ctrl-C is pressed.
pub(crate) async fn wait() {
    while !pressed() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Fails if Ctrl-C was pressed: for work that need not come to its end.
pub(crate) fn check() -> Result<(), Stopped> {
    if pressed() { Err(Stopped) } else { Ok(()) }
}

/// The results of work; `None` where Ctrl-C ended it.
pub(crate) fn kept<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if stopped(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn stopped(error: &Error) -> bool {
    error.chain().any(<dyn std::error::Error>::is::<Stopped>)
}

/// Shields a program that is started from the terminal's Ctrl-C, which would end it in the middle of its work.
pub(crate) fn shield(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Ends a process when a second Ctrl-C ends this program.
pub(crate) fn end_with_us(pid: Option<u32>) {
    started().extend(pid.and_then(|pid| Pid::from_raw(pid as i32)));
}

/// Forgets a process that has ended: its number may be another one's soon.
pub(crate) fn ended(pid: u32) {
    let ended = Pid::from_raw(pid as i32);
    started().retain(|&pid| Some(pid) != ended);
}

fn started() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_was_stopped_is_no_error_and_other_faults_are() {
        assert_eq!(kept(Ok(1)).unwrap(), Some(1));
        let stopped: Result<()> = Err(Stopped).context("clip a").context("evaluating");
        assert_eq!(kept(stopped).unwrap(), None);
        assert!(kept::<()>(Err(Error::msg("a file is missing"))).is_err());
    }
}
