//! `windlass enhance --each-device`: runs a process of this program for every device, because CUDA shows a process at
//! most one slice. Processes that end are started again, and end in order when this one is asked to.

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child as Process, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::EnhanceArgs;
use super::children::{Child, Own, children};
use crate::config::Config;
use crate::devices::{VISIBLE, chosen};
use crate::shutdown::{Asked, Signals};

/// Pause before a process that ended is started again, at first; it doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause before a process that ended is started again.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Lifetime after which a process counts as successfully started.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// Number of early ends in a row, of each process, after which this one gives up, so that its supervisor notices: a
/// minute of pauses that double.
const MAX_EARLY_ENDS: u32 = 8;
/// Time that processes have to end, beyond what draining may take; then they are killed.
const GRACE: Duration = Duration::from_secs(10);

/// What the processes are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Run,
    Drain,
    End,
    Kill,
}

impl Phase {
    fn signal(self) -> Option<Signal> {
        match self {
            Phase::Run => None,
            Phase::Drain => Some(Signal::TERM),
            Phase::End => Some(Signal::INT),
            Phase::Kill => Some(Signal::KILL),
        }
    }
}

/// For each process, the number of ends in a row before it was successfully started.
type Ends = Arc<[AtomicU32]>;

/// Runs all processes until SIGINT or SIGTERM. Fails if one of them did not end in order, or none can be kept running.
pub(super) fn run(args: &EnhanceArgs, config: &Config) -> Result<()> {
    let settings = args.serve.settings()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let own = Own {
        listen: args.listen,
        metrics: settings.metrics,
        address: args.address.as_deref(),
        threads: settings.enhancer_threads.is_none().then_some(cores),
    };
    let children = children(std::env::args_os().skip(1), &own, chosen(&config.devices)?)?;
    // One thread: they end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the process's thread")?;
    runtime.block_on(tend_all(children, config.drain))
}

async fn tend_all(children: Vec<Child>, drain: Duration) -> Result<()> {
    let mut signals = Signals::listen()?;
    // Once: a program that is replaced meanwhile is found by its path.
    let program = std::env::current_exe().context("cannot find this program")?;
    let count = children.len();
    windlass_logging::announce(&format!("Windlass enhances on {count} devices, a process each."))?;
    let (phase, phases) = watch::channel(Phase::Run);
    let ends: Ends = (0..count).map(|_| AtomicU32::new(0)).collect();
    let mut tended = JoinSet::new();
    for (n, child) in children.into_iter().enumerate() {
        let (program, phases, ends) = (program.clone(), phases.clone(), ends.clone());
        tended.spawn(async move { tend(&program, &child, n, phases, &ends).await });
    }
    let mut fine = true;
    let mut all_ended = async || {
        while let Some(ended) = tended.join_next().await {
            fine &= ended.unwrap_or(false);
        }
    };
    let asked = tokio::select! {
        asked = signals.next() => asked,
        () = hopeless(&ends) => {
            let _ = phase.send(Phase::End);
            let _ = timeout(GRACE, all_ended()).await;
            bail!("no enhancer process stays up: each ended {MAX_EARLY_ENDS} times in a row; see the log for the reasons");
        }
    };
    let mut ended = false;
    if asked == Asked::Drain && !drain.is_zero() {
        tracing::info!("enhancer processes drain, then end");
        let _ = phase.send(Phase::Drain);
        tokio::select! {
            () = all_ended() => ended = true,
            () = sleep(drain + GRACE) => {}
            _ = signals.next() => {}
        }
    }
    if !ended {
        let _ = phase.send(Phase::End);
        ended = timeout(GRACE, all_ended()).await.is_ok();
    }
    if !ended {
        let _ = phase.send(Phase::Kill);
        all_ended().await;
    }
    windlass_logging::say(&format!("Windlass has ended on {count} devices."));
    if fine {
        Ok(())
    } else {
        bail!("some enhancer processes did not end in order; the log above names them")
    }
}

/// Returns when all processes have ended too often.
async fn hopeless(ends: &Ends) {
    while ends.iter().any(|ends| ends.load(Ordering::Relaxed) < MAX_EARLY_ENDS) {
        sleep(MIN_PAUSE).await;
    }
}

/// Keeps a process running until it is to end. Returns whether it ended in order.
async fn tend(
    program: &Path,
    child: &Child,
    n: usize,
    mut phases: watch::Receiver<Phase>,
    ends: &Ends,
) -> bool {
    let (device, name) = (&child.device.uuid, &child.device.name);
    let mut pause = MIN_PAUSE;
    loop {
        let began = Instant::now();
        let ended = match start(program, child) {
            Ok(mut process) => {
                let pid = process.id().unwrap_or_default();
                tracing::info!(device, name, pid, listen = %child.listen, "enhancer process started");
                tokio::select! {
                    ended = see(&mut process, &mut phases) => ended,
                    never = begun_well(&ends[n]) => match never {},
                }
            }
            Err(error) => Err(error),
        };
        if *phases.borrow() != Phase::Run {
            let fine = ended.as_ref().is_ok_and(|ended| in_order(*ended));
            if !fine {
                tracing::warn!(
                    device,
                    how = how(&ended),
                    "enhancer process did not end in order while it stopped; its own last log lines say why"
                );
            }
            return fine;
        }
        if began.elapsed() >= STABLE_AFTER {
            pause = MIN_PAUSE;
        }
        let times = ends[n].fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(device, how = how(&ended), times, again_in = ?pause, "enhancer process ended; it is started again");
        tokio::select! {
            () = sleep(pause) => {}
            // It does not run: there is nothing to end.
            _ = phases.changed() => return true,
        }
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

/// Resets the number of early ends once the process has lived for [`STABLE_AFTER`].
async fn begun_well(ends: &AtomicU32) -> Infallible {
    sleep(STABLE_AFTER).await;
    ends.store(0, Ordering::Relaxed);
    std::future::pending().await
}

/// Whether a process ended in order. One that was still starting ends by the signal itself, which counts as in order.
fn in_order(ended: ExitStatus) -> bool {
    let by = [Signal::TERM, Signal::INT].map(|signal| Some(signal.as_raw()));
    ended.success() || by.contains(&ended.signal())
}

fn how(ended: &std::io::Result<ExitStatus>) -> String {
    ended.as_ref().map_or_else(ToString::to_string, ToString::to_string)
}

fn start(program: &Path, child: &Child) -> std::io::Result<Process> {
    Command::new(program)
        .args(&child.args)
        .arg(format!("--parent={}", std::process::id()))
        .env(VISIBLE, &child.device.uuid)
        .kill_on_drop(true)
        .spawn()
}

/// Waits until a process ends, and passes what it is to do on to it.
async fn see(
    process: &mut Process,
    phases: &mut watch::Receiver<Phase>,
) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            ended = process.wait() => return ended,
            changed = phases.changed() => {
                // Without a sender nobody waits any more either.
                let phase = if changed.is_ok() { *phases.borrow_and_update() } else { Phase::Kill };
                let pid = process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
                if let Some((pid, signal)) = pid.zip(phase.signal()) {
                    kill_process(pid, signal)?;
                }
                if changed.is_err() {
                    return process.wait().await;
                }
            }
        }
    }
}
