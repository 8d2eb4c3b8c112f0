//! The renderer's statistics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a renderer.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pictures: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// Snapshot of a renderer's statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of renditions that are made now.
    pub renditions: usize,
    /// Number of pictures that were encoded.
    pub pictures: u64,
    /// Number of frames that were not encoded because the renderer was late.
    pub late: u64,
    /// Number of frames that could not be decoded or encoded.
    pub failed: u64,
    /// Number of panics.
    pub faults: u64,
    /// Number of packets and requests that the SFU had no room for.
    pub dropped: u64,
}

impl Counters {
    /// Snapshot of the statistics.
    pub(crate) fn counts(&self, renditions: usize) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            renditions,
            pictures: of(&self.pictures),
            late: of(&self.late),
            failed: of(&self.failed),
            faults: of(&self.faults),
            dropped: of(&self.dropped),
        }
    }
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
