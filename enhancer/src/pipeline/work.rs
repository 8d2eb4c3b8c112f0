//! Slot time of a stream's decoders: they count it, and admission reads it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use windlass_scheduler::{admission, memory};

use super::clock::Clock;

/// Slot time of a stream's decoders: they count it, and admission reads it.
#[derive(Debug, Default)]
pub(super) struct Work {
    frames: AtomicU64,
    nanos: AtomicU64,
    /// Slot time of pictures at HR size, in nanoseconds.
    more_nanos: AtomicU64,
    /// Pixels of the largest picture so far, and of the largest of those at HR size: pools keep what they have had.
    pixels: AtomicU64,
    larger: AtomicU64,
}

/// A frame that is being decoded, until it is dropped.
pub(super) struct Doing<'a> {
    nanos: &'a AtomicU64,
    clock: &'a Clock,
    began: Instant,
}

impl Work {
    /// A low frame is decoded, with a slot since then.
    pub(super) fn frame<'a>(&'a self, clock: &'a Clock, since: Option<Instant>) -> Doing<'a> {
        self.frames.fetch_add(1, Ordering::Relaxed);
        Doing { nanos: &self.nanos, clock, began: since.unwrap_or_else(|| clock.now()) }
    }

    /// A picture at HR size is.
    pub(super) fn picture<'a>(&'a self, clock: &'a Clock, since: Option<Instant>) -> Doing<'a> {
        Doing { nanos: &self.more_nanos, clock, began: since.unwrap_or_else(|| clock.now()) }
    }

    /// A low picture of so many pixels was made.
    pub(super) fn made(&self, pixels: u64) {
        self.pixels.fetch_max(pixels, Ordering::Relaxed);
    }

    /// A picture at HR size was.
    pub(super) fn made_larger(&self, pixels: u64) {
        self.larger.fetch_max(pixels, Ordering::Relaxed);
    }

    /// There are no pictures at HR size any more.
    pub(super) fn without_larger(&self) {
        self.larger.store(0, Ordering::Relaxed);
    }

    /// What was done since this was last asked.
    pub(super) fn take(&self) -> admission::Work {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let seconds = |counter: &AtomicU64| take(counter) as f64 / 1e9;
        let (seconds, more) = (seconds(&self.nanos), seconds(&self.more_nanos));
        let sizes = [&self.pixels, &self.larger].map(|size| size.load(Ordering::Relaxed));
        let memory = if sizes[0] > 0 { memory::of(sizes[0], sizes[1]) } else { 0 };
        admission::Work { frames: take(&self.frames), seconds, more, memory }
    }
}

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        let nanos = u64::try_from(self.clock.since(self.began).as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}
