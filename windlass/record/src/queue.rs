//! Bounds of what waits for the disk, and the recorder's statistics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::recording::Losses;

/// Maximum frames and packets that wait for the disk: ten seconds of twenty participants.
const MAX_QUEUED: usize = 32_768;
/// Share of the queue that anchors may fill, with the media: the rest is for media alone.
const ANCHORS_SHARE: usize = 2;
/// Maximum bytes of media that wait for the disk.
pub(crate) const MAX_QUEUED_BYTES: usize = 64 << 20;

/// Statistics of the recorder, with the state of its queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: AtomicUsize,
    bytes: AtomicUsize,
    dropped: AtomicU64,
    gaps: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
    recordings: AtomicUsize,
    written: AtomicU64,
    untold: AtomicU64,
    unstored: AtomicU64,
    store_failures: AtomicU64,
    anchors_dropped: AtomicU64,
    unenhanced: AtomicUsize,
    enhanced_failures: AtomicU64,
}

impl Queue {
    /// Whether there is room for media of `bytes` bytes, which is then reserved.
    pub(crate) fn admit(&self, bytes: usize) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let there = self.bytes.load(Ordering::Relaxed);
        if waiting >= MAX_QUEUED || there + bytes > MAX_QUEUED_BYTES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Whether there is room for an anchor of `bytes` bytes, which is then reserved. Anchors yield to media.
    pub(crate) fn admit_anchor(&self, bytes: usize) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let there = self.bytes.load(Ordering::Relaxed);
        let room = waiting < MAX_QUEUED / ANCHORS_SHARE
            && there + bytes <= MAX_QUEUED_BYTES / ANCHORS_SHARE;
        if room {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.anchors_lost(1);
        }
        room
    }

    pub(crate) fn anchors_lost(&self, count: u64) {
        self.anchors_dropped.fetch_add(count, Ordering::Relaxed);
    }

    #[cfg(feature = "enhanced")]
    pub(crate) fn set_unenhanced(&self, files: usize) {
        self.unenhanced.store(files, Ordering::Relaxed);
    }

    #[cfg(feature = "enhanced")]
    pub(crate) fn enhanced_failed(&self) {
        self.enhanced_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn took(&self, bytes: usize) {
        if bytes > 0 {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn lost(&self, losses: Losses) {
        self.gaps.fetch_add(losses.gaps, Ordering::Relaxed);
        self.late.fetch_add(losses.late, Ordering::Relaxed);
        self.anchors_lost(losses.anchors);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn untold(&self) {
        self.untold.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn store_failed(&self) {
        self.store_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_unstored(&self, bytes: u64) {
        self.unstored.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_recordings(&self, count: usize) {
        self.recordings.store(count, Ordering::Relaxed);
    }
}

/// Snapshot of a recorder's statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of running recordings.
    pub recordings: usize,
    /// Number of recordings that ended because a file could not be written.
    pub failed: u64,
    /// Number of frames and packets dropped because the queue was full.
    pub dropped: u64,
    /// Number of gaps in video tracks.
    pub gaps: u64,
    /// Number of audio packets that came too late.
    pub late: u64,
    /// Bytes of media that were taken.
    pub bytes: u64,
    /// Number of recordings whose end the room was not told, because the queue to signalling was full.
    pub untold: u64,
    /// Bytes of ended recordings that the store does not have yet.
    pub unstored: u64,
    /// Number of attempts to store a recording that failed.
    pub store_failures: u64,
    /// Number of anchors that were dropped: the queue was full, or their frames are not in the file.
    pub anchors_dropped: u64,
    /// Number of enhanced files that are still to be made.
    pub unenhanced: usize,
    /// Number of attempts to make enhanced files that failed.
    pub enhanced_failures: u64,
}

impl Queue {
    /// Snapshot of the statistics.
    pub(crate) fn counts(&self) -> Counts {
        let Queue { dropped, gaps, late, failed, recordings, written, untold, .. } = self;
        let (unstored, store_failures) = (&self.unstored, &self.store_failures);
        let (anchors_dropped, enhanced_failures) = (&self.anchors_dropped, &self.enhanced_failures);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            recordings: recordings.load(Ordering::Relaxed),
            failed: of(failed),
            dropped: of(dropped),
            gaps: of(gaps),
            late: of(late),
            bytes: of(written),
            untold: of(untold),
            unstored: of(unstored),
            store_failures: of(store_failures),
            anchors_dropped: of(anchors_dropped),
            unenhanced: self.unenhanced.load(Ordering::Relaxed),
            enhanced_failures: of(enhanced_failures),
        }
    }
}
