//! Counts how long a stream's decoders hold slots, and how much memory their pictures take. Decoders count; admission
//! reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windlass_scheduler::{admission, memory};

use super::clock::Clock;

/// Slot time and picture sizes of one stream's decoders since admission last asked.
#[derive(Debug, Default)]
pub(super) struct SlotTime {
    low_frames: AtomicU64,
    low_nanos: AtomicU64,
    high_nanos: AtomicU64,
    /// Pixels of the largest low picture so far. Pools of pictures keep the memory that they have had.
    low_pixels: AtomicU64,
    /// Pixels of the largest picture at HR size so far; 0 while there are none.
    high_pixels: AtomicU64,
}

/// A frame that is being decoded. Its slot time is counted when this value is dropped.
pub(super) struct Decoding<'a> {
    nanos: &'a AtomicU64,
    clock: &'a Clock,
    began: Instant,
}

impl SlotTime {
    /// Begins to count a low frame, from `since` on (when its slot was given), else from now on.
    pub(super) fn low<'a>(&'a self, clock: &'a Clock, since: Option<Instant>) -> Decoding<'a> {
        self.low_frames.fetch_add(1, Ordering::Relaxed);
        Decoding { nanos: &self.low_nanos, clock, began: since.unwrap_or_else(|| clock.now()) }
    }

    /// Begins to count a frame at HR size, from `since` on (when its slot was given), else from now on.
    pub(super) fn high<'a>(&'a self, clock: &'a Clock, since: Option<Instant>) -> Decoding<'a> {
        Decoding { nanos: &self.high_nanos, clock, began: since.unwrap_or_else(|| clock.now()) }
    }

    /// Notes that a low picture of this many pixels has been decoded.
    pub(super) fn decoded_low(&self, pixels: u64) {
        self.low_pixels.fetch_max(pixels, Ordering::Relaxed);
    }

    /// Notes that a picture at HR size, of this many pixels, has been decoded.
    pub(super) fn decoded_high(&self, pixels: u64) {
        self.high_pixels.fetch_max(pixels, Ordering::Relaxed);
    }

    /// Notes that the decoder at HR size has ended, so that its pictures are freed.
    pub(super) fn high_ended(&self) {
        self.high_pixels.store(0, Ordering::Relaxed);
    }

    /// Takes what was used since the last call.
    pub(super) fn take(&self) -> admission::Work {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let [low, high] =
            [&self.low_pixels, &self.high_pixels].map(|size| size.load(Ordering::Relaxed));
        let memory = if low > 0 { memory::of(low, high) } else { 0 };
        let [low, high] =
            [&self.low_nanos, &self.high_nanos].map(|nanos| Duration::from_nanos(take(nanos)));
        admission::Work { frames: take(&self.low_frames), low, high, memory }
    }
}

impl Drop for Decoding<'_> {
    fn drop(&mut self) {
        let nanos = u64::try_from(self.clock.since(self.began).as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}
