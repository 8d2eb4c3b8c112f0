//! Detects media threads that have ended or hang. Each thread sends a heartbeat with each turn of its loop, at least
//! once a second.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Interval between two checks. Faults are counted in checks, not by the clock, so that a suspended process is no
/// fault.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Checks without a heartbeat after which a thread hangs: 5 s.
const HANG_CHECKS: u32 = 20;
/// Checks without a heartbeat after which a thread hangs for good: 30 s.
const LOST_CHECKS: u32 = 120;

/// A fault of a media thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadFault {
    /// The thread has ended without a stop command.
    Ended {
        /// Number of the thread, from 0.
        thread: usize,
    },
    /// The thread does not respond.
    Hang {
        /// Number of the thread, from 0.
        thread: usize,
        /// Time for which the thread has not responded.
        silence: Duration,
    },
}

impl fmt::Display for ThreadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadFault::Ended { thread } => write!(f, "media thread sfu-{thread} has ended"),
            ThreadFault::Hang { thread, silence } => {
                let seconds = silence.as_secs();
                write!(f, "media thread sfu-{thread} has not responded for {seconds} s")
            }
        }
    }
}

/// The heartbeats of all threads.
#[derive(Debug)]
pub(super) struct Watchdog {
    heartbeats: Vec<Heartbeat>,
    /// Whether all threads were stopped.
    stopped: Mutex<bool>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heartbeat {
    beats: AtomicU64,
    ended: AtomicBool,
    /// Checks since the last heartbeat.
    missed: AtomicU32,
}

impl Watchdog {
    /// A watchdog of `threads` threads without a fault.
    pub(super) fn new(threads: usize) -> Watchdog {
        let heartbeats = (0..threads).map(|_| Heartbeat::default()).collect();
        Watchdog { heartbeats, stopped: Mutex::new(false), changed: Condvar::new() }
    }

    /// Takes a heartbeat of a thread.
    pub(super) fn beat(&self, thread: usize) {
        self.heartbeats[thread].beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a thread has ended without a stop command.
    fn on_end(&self, thread: usize) {
        self.heartbeats[thread].ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Ends the watch. To be called when all threads have stopped.
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether a thread has ended without a stop command.
    pub(super) fn has_ended(&self, thread: usize) -> bool {
        self.heartbeats[thread].ended.load(Ordering::Relaxed)
    }

    /// The fault of a thread.
    pub(super) fn fault_of(&self, thread: usize) -> Option<ThreadFault> {
        if self.has_ended(thread) {
            return Some(ThreadFault::Ended { thread });
        }
        let missed = self.heartbeats[thread].missed.load(Ordering::Relaxed);
        let silence = CHECK_INTERVAL * missed;
        (missed >= HANG_CHECKS).then_some(ThreadFault::Hang { thread, silence })
    }

    /// The first thread's fault.
    pub(super) fn fault(&self) -> Option<ThreadFault> {
        (0..self.heartbeats.len()).find_map(|thread| self.fault_of(thread))
    }

    /// Watches until a thread has ended or hangs for good; `None` when all were stopped. Calls `on_hang` once for each
    /// thread that hangs.
    pub(super) fn watch(&self, on_hang: impl Fn(ThreadFault)) -> Option<ThreadFault> {
        let mut beats = vec![0; self.heartbeats.len()];
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ended) = (0..beats.len()).find(|&thread| self.has_ended(thread)) {
                return self.fault_of(ended);
            }
            if *stopped {
                return None;
            }
            let waited = self.changed.wait_timeout(stopped, CHECK_INTERVAL);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            stopped = guard;
            if !timeout.timed_out() {
                continue;
            }
            if let Some(lost) = self.check(&mut beats, &on_hang) {
                return Some(lost);
            }
        }
    }

    /// Compares all heartbeats with those of the last check; the fault of a thread that hangs for good.
    fn check(&self, beats: &mut [u64], on_hang: impl Fn(ThreadFault)) -> Option<ThreadFault> {
        for (thread, (heartbeat, last)) in self.heartbeats.iter().zip(beats).enumerate() {
            let now = heartbeat.beats.load(Ordering::Relaxed);
            let missed =
                if now == *last { heartbeat.missed.load(Ordering::Relaxed) + 1 } else { 0 };
            *last = now;
            heartbeat.missed.store(missed, Ordering::Relaxed);
            if let Some(fault) =
                self.fault_of(thread).filter(|_| missed == HANG_CHECKS || missed >= LOST_CHECKS)
            {
                on_hang(fault);
                if missed >= LOST_CHECKS {
                    return Some(fault);
                }
            }
        }
        None
    }
}

/// Held by a media thread while it runs, so that a panic is detected by its drop.
pub(super) struct ThreadGuard {
    watchdog: Arc<Watchdog>,
    thread: usize,
    stopped: bool,
}

impl ThreadGuard {
    /// The guard of a thread that starts.
    pub(super) fn new(watchdog: Arc<Watchdog>, thread: usize) -> ThreadGuard {
        ThreadGuard { watchdog, thread, stopped: false }
    }

    /// Marks that the thread ends by a stop command.
    pub(super) fn set_stopped(&mut self) {
        self.stopped = true;
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        if !self.stopped {
            self.watchdog.on_end(self.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_thread_that_ends_without_a_stop_is_a_fault_and_ends_the_watch() {
        let watchdog = Arc::new(Watchdog::new(2));
        assert_eq!(watchdog.fault(), None);
        let watch = {
            let watchdog = watchdog.clone();
            std::thread::spawn(move || watchdog.watch(|_| ()))
        };
        let mut stopped = ThreadGuard::new(watchdog.clone(), 0);
        stopped.set_stopped();
        drop(stopped);
        assert_eq!(watchdog.fault(), None);
        drop(ThreadGuard::new(watchdog.clone(), 1));
        assert_eq!(watchdog.fault(), Some(ThreadFault::Ended { thread: 1 }));
        assert_eq!(watch.join().expect("watched"), Some(ThreadFault::Ended { thread: 1 }));
    }

    #[test]
    fn stopped_threads_end_the_watch_without_a_fault() {
        let watchdog = Arc::new(Watchdog::new(1));
        let watch = {
            let watchdog = watchdog.clone();
            std::thread::spawn(move || watchdog.watch(|_| ()))
        };
        watchdog.stop();
        assert_eq!(watch.join().expect("watched"), None);
    }

    #[test]
    fn a_thread_that_hangs_has_a_fault_until_its_next_heartbeat() {
        let (watchdog, mut beats, faults) = (Watchdog::new(1), [0], RefCell::new(Vec::new()));
        let mut check = |times: u32| {
            (0..times).find_map(|_| watchdog.check(&mut beats, |f| faults.borrow_mut().push(f)))
        };
        assert_eq!((check(HANG_CHECKS - 1), watchdog.fault()), (None, None));
        let silence = Duration::from_secs(5);
        let fault = Some(ThreadFault::Hang { thread: 0, silence });
        assert_eq!((check(1), watchdog.fault()), (None, fault));
        assert_eq!(check(1), None, "it is told once");
        watchdog.beat(0);
        assert_eq!((check(1), watchdog.fault()), (None, None));
        assert_eq!(faults.take(), Vec::from_iter(fault));
    }

    #[test]
    fn a_thread_that_hangs_for_good_ends_the_watch() {
        let (watchdog, mut beats) = (Watchdog::new(2), [0; 2]);
        let lost = (0..LOST_CHECKS).find_map(|_| {
            watchdog.beat(0);
            watchdog.check(&mut beats, |_| ())
        });
        let silence = Duration::from_secs(30);
        assert_eq!(lost, Some(ThreadFault::Hang { thread: 1, silence }));
    }
}
