//! Whether the threads that forward live. Each beats with each turn of its loop, at least once a second; [`Vitals::watch`] sees
//! which have ended without being told to, and which say nothing any more.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often it is looked. Looks are counted, not time: while the whole process is held up, nobody is silent.
const LOOK: Duration = Duration::from_millis(250);
/// Looks without a beat after which a thread counts as silent: 5 s;
const SILENT: u32 = 20;
/// and after which it does not come back: 30 s.
const LOST: u32 = 120;

/// What is wrong with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ill {
    /// It has ended without being told to.
    Ended {
        /// Its number.
        thread: usize,
    },
    /// It says nothing any more.
    Silent {
        /// Its number.
        thread: usize,
        /// For how long.
        seconds: u64,
    },
}

impl fmt::Display for Ill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ill::Ended { thread } => write!(f, "the media thread sfu-{thread} has ended"),
            Ill::Silent { thread, seconds } => {
                write!(f, "the media thread sfu-{thread} has said nothing for {seconds} s")
            }
        }
    }
}

/// Of all threads.
#[derive(Debug)]
pub(super) struct Vitals {
    pulses: Vec<Pulse>,
    /// All were told to end.
    stopped: Mutex<bool>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Pulse {
    beats: AtomicU64,
    ended: AtomicBool,
    /// Looks since the last beat.
    looks: AtomicU32,
}

impl Vitals {
    /// All live.
    pub(super) fn new(threads: usize) -> Vitals {
        let pulses = (0..threads).map(|_| Pulse::default()).collect();
        Vitals { pulses, stopped: Mutex::new(false), changed: Condvar::new() }
    }

    /// A thread lives.
    pub(super) fn beat(&self, thread: usize) {
        self.pulses[thread].beats.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread has ended without being told to.
    fn end(&self, thread: usize) {
        self.pulses[thread].ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// All have ended as they were told.
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether a thread has ended without being told to.
    pub(super) fn has_ended(&self, thread: usize) -> bool {
        self.pulses[thread].ended.load(Ordering::Relaxed)
    }

    /// What is wrong with a thread.
    pub(super) fn of(&self, thread: usize) -> Option<Ill> {
        if self.has_ended(thread) {
            return Some(Ill::Ended { thread });
        }
        let looks = self.pulses[thread].looks.load(Ordering::Relaxed);
        let seconds = (LOOK * looks).as_secs();
        (looks >= SILENT).then_some(Ill::Silent { thread, seconds })
    }

    /// What is wrong with the first that is not well.
    pub(super) fn ill(&self) -> Option<Ill> {
        (0..self.pulses.len()).find_map(|thread| self.of(thread))
    }

    /// Watches until a thread has ended or does not come back; `None` when all were told to end. `told` hears of those that are silent,
    /// once each time.
    pub(super) fn watch(&self, told: impl Fn(Ill)) -> Option<Ill> {
        let mut beats = vec![0; self.pulses.len()];
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ended) = (0..beats.len()).find(|&thread| self.has_ended(thread)) {
                return self.of(ended);
            }
            if *stopped {
                return None;
            }
            let waited = self.changed.wait_timeout(stopped, LOOK);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            stopped = guard;
            if !timeout.timed_out() {
                continue;
            }
            for (thread, (pulse, last)) in self.pulses.iter().zip(&mut beats).enumerate() {
                let now = pulse.beats.load(Ordering::Relaxed);
                let looks = if now == *last { pulse.looks.load(Ordering::Relaxed) + 1 } else { 0 };
                *last = now;
                pulse.looks.store(looks, Ordering::Relaxed);
                if let Some(ill) = self.of(thread).filter(|_| looks == SILENT || looks >= LOST) {
                    told(ill);
                    if looks >= LOST {
                        return Some(ill);
                    }
                }
            }
        }
    }
}

/// Held by a thread while it runs: one that panics drops it.
pub(super) struct Life {
    vitals: Arc<Vitals>,
    thread: usize,
    was_told: bool,
}

impl Life {
    pub(super) fn of(vitals: Arc<Vitals>, thread: usize) -> Life {
        Life { vitals, thread, was_told: false }
    }

    /// Its end is as it should be.
    pub(super) fn was_told(&mut self) {
        self.was_told = true;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.was_told {
            self.vitals.end(self.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_without_being_told_is_ill_at_once_and_ends_the_watch() {
        let vitals = Arc::new(Vitals::new(2));
        assert_eq!(vitals.ill(), None);
        let watch = {
            let vitals = vitals.clone();
            std::thread::spawn(move || vitals.watch(|_| ()))
        };
        let mut told = Life::of(vitals.clone(), 0);
        told.was_told();
        drop(told);
        assert_eq!(vitals.ill(), None);
        drop(Life::of(vitals.clone(), 1));
        assert_eq!(vitals.ill(), Some(Ill::Ended { thread: 1 }));
        assert_eq!(watch.join().expect("watched"), Some(Ill::Ended { thread: 1 }));
    }

    #[test]
    fn threads_that_are_told_to_end_end_the_watch_without_a_word() {
        let vitals = Arc::new(Vitals::new(1));
        let watch = {
            let vitals = vitals.clone();
            std::thread::spawn(move || vitals.watch(|_| ()))
        };
        vitals.stop();
        assert_eq!(watch.join().expect("watched"), None);
    }

    #[test]
    fn a_thread_that_says_nothing_is_ill_until_it_beats_again() {
        let vitals = Arc::new(Vitals::new(1));
        let (told, hears) = std::sync::mpsc::channel();
        let watched = vitals.clone();
        let watch = std::thread::spawn(move || watched.watch(|ill| told.send(ill).expect("heard")));
        let ill = hears.recv_timeout(Duration::from_secs(30)).expect("told");
        assert_eq!(ill, Ill::Silent { thread: 0, seconds: 5 });
        vitals.beat(0);
        while vitals.ill().is_some() {
            std::thread::sleep(LOOK);
        }
        vitals.stop();
        assert_eq!(watch.join().expect("watched"), None);
    }
}
