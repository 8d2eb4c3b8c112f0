//! Anchors that wait for their frame.

use std::collections::VecDeque;

use windlass_types::message::{MAX_ANCHOR, ReassembledAnchor};

/// Maximum number of anchors that wait for a frame not decoded yet, each part counted; beyond it the oldest is
/// dropped.
pub const MAX_EARLY: usize = 16;
/// Maximum total payload of the waiting anchors, in bytes; beyond it the oldest are dropped.
pub const MAX_EARLY_BYTES: usize = 2 * MAX_ANCHOR;
/// Maximum lead of an early anchor over the last frame, in RTP ticks: 10 s at 90 kHz.
pub(super) const MAX_LEAD: u32 = 900_000;

/// Anchors whose frame has not been decoded yet, oldest first.
#[derive(Default)]
pub(super) struct EarlyAnchors {
    waiting: VecDeque<ReassembledAnchor>,
}

/// The anchors that leave [`EarlyAnchors`] at a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Anchors whose frame is decoded.
    pub anchors: Vec<ReassembledAnchor>,
    /// Number of anchors that were dropped: their frame was never shown.
    pub dropped: u64,
}

/// Whether the frame of an anchor may still come, after a frame with timestamp `last`.
pub(super) fn may_come(rtp_timestamp: u32, last: Option<u32>) -> bool {
    last.is_none_or(|last| rtp_timestamp.wrapping_sub(last) <= MAX_LEAD)
}

impl EarlyAnchors {
    /// Drops all anchors.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Keeps an anchor until its frame comes. Returns how many older anchors were dropped to make room.
    pub(super) fn push(&mut self, anchor: &ReassembledAnchor) -> u64 {
        self.waiting.push_back(anchor.clone());
        let mut dropped = 0;
        while self.waiting.len() > MAX_EARLY || self.bytes() > MAX_EARLY_BYTES {
            self.waiting.pop_front();
            dropped += 1;
        }
        dropped
    }

    /// Takes out the anchors of decoded frames, after a frame with timestamp `last`. Drops those whose frame can no
    /// longer come.
    pub(super) fn take_due(&mut self, last: u32, is_decoded: impl Fn(u32) -> bool) -> Due {
        let mut due = Due::default();
        for _ in 0..self.waiting.len() {
            let Some(anchor) = self.waiting.pop_front() else { break };
            let rtp_timestamp = anchor.header.rtp_timestamp;
            if is_decoded(rtp_timestamp) {
                due.anchors.push(anchor);
            } else if may_come(rtp_timestamp, Some(last)) {
                // A frame in several chunks is not decoded before its last chunk.
                self.waiting.push_back(anchor);
            } else {
                due.dropped += 1;
            }
        }
        due
    }

    fn bytes(&self) -> usize {
        self.waiting.iter().map(|anchor| anchor.payload.len()).sum()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_types::message::{AnchorHeader, HTJ2K};
    use windlass_types::{AnchorSource, Size};

    fn anchor(rtp_timestamp: u32, bytes: usize) -> ReassembledAnchor {
        let header =
            AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, rtp_timestamp, Size::new(64, 64));
        ReassembledAnchor { header, payload: vec![0; bytes] }
    }

    #[test]
    fn an_anchor_leaves_with_its_frame_or_when_that_is_past() {
        let mut early = EarlyAnchors::default();
        for rtp_timestamp in [10, 20, 30] {
            assert_eq!(early.push(&anchor(rtp_timestamp, 1)), 0);
        }
        let due = early.take_due(20, |at| at == 20);
        assert_eq!(due, Due { anchors: vec![anchor(20, 1)], dropped: 1 });
        assert_eq!(early.len(), 1);
    }

    #[test]
    fn the_oldest_are_dropped_beyond_either_bound() {
        let mut early = EarlyAnchors::default();
        assert_eq!((0..MAX_EARLY as u32).map(|n| early.push(&anchor(n, 1))).sum::<u64>(), 0);
        assert_eq!(early.push(&anchor(99, 1)), 1);
        assert_eq!(early.push(&anchor(100, MAX_EARLY_BYTES)), MAX_EARLY as u64);
        assert_eq!(early.len(), 1);
    }

    #[test]
    fn a_frame_may_come_up_to_the_lead_after_the_last() {
        assert!(may_come(5, None) && may_come(5 + MAX_LEAD, Some(5)));
        assert!(!may_come(6 + MAX_LEAD, Some(5)) && !may_come(4, Some(5)));
    }
}
