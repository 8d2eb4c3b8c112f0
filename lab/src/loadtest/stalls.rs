//! How long this machine keeps its programs waiting: a run's figures of time say nothing of the server below that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the thread sleeps at a time.
const SLEEP: Duration = Duration::from_millis(5);

/// A thread that sleeps, and notes how much too late it wakes up. It ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    max_us: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Stalls {
    /// Starts the thread.
    pub(super) fn watch() -> Stalls {
        let stalls = Stalls::default();
        let (max_us, ended) = (stalls.max_us.clone(), stalls.ended.clone());
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                thread::sleep(SLEEP);
                let late = begun.elapsed().saturating_sub(SLEEP);
                max_us.fetch_max(late.as_micros() as u64, Ordering::Relaxed);
            }
        });
        stalls
    }

    /// The longest time until now by which the thread was late.
    pub(super) fn max(&self) -> Duration {
        Duration::from_micros(self.max_us.load(Ordering::Relaxed))
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
