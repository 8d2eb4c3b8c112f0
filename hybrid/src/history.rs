//! The remembered frames, for which anchors may still come.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cut::is_cut;
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::{DecodedFrame, FrameBuffer, PlaneSize};

/// A remembered frame that was shown.
pub(crate) struct Entry {
    id: u64,
    /// When the frame was shown; a frame may be shown again.
    shown_at: [Option<u32>; 2],
    pub low: Arc<FrameBuffer>,
    /// The tiles that anchors have given; `None` before the first anchor.
    anchored: Option<AnchoredTiles>,
}

/// The tiles of a frame that anchors have given.
struct AnchoredTiles {
    all: TileMap,
    /// The tiles of captured anchors.
    captured: TileMap,
}

/// Minimum number of remembered frames, however large the frames are.
const MIN_FRAMES: usize = 16;
/// Maximum number of luma samples of all remembered frames, beyond [`MIN_FRAMES`]: 16 MB with chroma.
const MAX_SAMPLES: usize = 11_000_000;

/// Remembers the last `max` frames, fewer where they are large.
pub(crate) struct History {
    max: usize,
    entries: VecDeque<Entry>,
    /// The id of the newest frame; ids begin at 1.
    last_id: u64,
    current: u64,
}

impl History {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, entries: VecDeque::with_capacity(max + 1), last_id: 0, current: 0 }
    }

    /// Forgets all frames.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.current = 0;
    }

    /// Forgets which tiles anchors have given; the frames stay.
    pub(crate) fn forget_anchors(&mut self) {
        for entry in &mut self.entries {
            entry.anchored = None;
        }
    }

    /// Forgets the frames of other sizes than that of the picture on display.
    pub(crate) fn forget_other_sizes(&mut self) {
        let Some(size) = self.current().map(Entry::size) else { return };
        self.entries.retain(|entry| entry.size() == size);
    }

    /// Takes a decoded frame. A frame that is not shown is not remembered until it is.
    pub(crate) fn push(&mut self, timestamp: u32, frame: &DecodedFrame) {
        if frame.info.shown {
            self.show(timestamp, &frame.picture);
        }
    }

    /// Takes the picture of a frame that is shown.
    pub(crate) fn show(&mut self, timestamp: u32, picture: &Arc<FrameBuffer>) {
        // A frame that is shown again is the same picture: an anchor for what is shown now is one for that frame.
        let known = self.entries.iter_mut().find(|e| Arc::ptr_eq(&e.low, picture));
        if let Some(entry) = known {
            entry.shown_at = [entry.shown_at[1], Some(timestamp)];
            self.current = entry.id;
            return;
        }
        let area = (picture.width() * picture.height()).max(1);
        while self.entries.len() >= self.max.min(MIN_FRAMES.max(MAX_SAMPLES / area)) {
            self.entries.pop_front();
        }
        self.last_id += 1;
        self.current = self.last_id;
        self.entries.push_back(Entry {
            id: self.last_id,
            shown_at: [None, Some(timestamp)],
            low: picture.clone(),
            anchored: None,
        });
    }

    /// The frame on display, while it is remembered.
    pub(crate) fn current(&self) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.id == self.current)
    }

    /// Whether the frame on display is new and of another scene than the one before it.
    pub(crate) fn is_cut(&self) -> bool {
        let mut latest = self.entries.iter().rev();
        let (Some(last), Some(before)) = (latest.next(), latest.next()) else { return false };
        last.id == self.current
            && last.size() == before.size()
            && is_cut(&before.low.planes()[0], &last.low.planes()[0])
    }

    /// The place of the frame with this timestamp, if it is remembered.
    pub(crate) fn find(&self, timestamp: u32) -> Option<usize> {
        self.entries.iter().rposition(|e| e.shown_at.contains(&Some(timestamp)))
    }

    /// The frame at a place that [`find`](Self::find) gave.
    pub(crate) fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// The frame at a place that [`find`](Self::find) gave, to be changed.
    pub(crate) fn entry_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Number of frames that were shown after a place.
    pub(crate) fn shown_after(&self, at: usize) -> u32 {
        self.entries.len().saturating_sub(at + 1) as u32
    }
}

impl Entry {
    /// Size of the frame's low picture.
    pub(crate) fn size(&self) -> PlaneSize {
        self.low.size()
    }

    /// The frame's id: frames are counted in the order in which they were first shown.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The tiles of an anchor that add something to this frame. Captured tiles replace enhanced ones.
    pub(crate) fn new_tiles(&self, tiles: &TileMap, source: AnchorSource) -> TileMap {
        match (&self.anchored, source) {
            (Some(anchored), AnchorSource::Captured) => tiles.without(&anchored.captured),
            (Some(anchored), AnchorSource::Enhanced) => tiles.without(&anchored.all),
            (None, _) => tiles.clone(),
        }
    }

    /// Notes the tiles that an anchor has given of this frame.
    pub(crate) fn add_tiles(&mut self, tiles: &TileMap, source: AnchorSource) {
        let size = Size::saturating(self.low.width(), self.low.height());
        let none = || TileMap::empty(size);
        let anchored =
            self.anchored.get_or_insert_with(|| AnchoredTiles { all: none(), captured: none() });
        anchored.all = anchored.all.with(tiles);
        if source == AnchorSource::Captured {
            anchored.captured = anchored.captured.with(tiles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_tiles_replace_enhanced_ones_and_not_the_other_way_round() {
        let (low, size) = (Arc::new(FrameBuffer::grey(150, 70)), Size::new(150, 70));
        let mut entry = Entry { id: 1, shown_at: [None; 2], low, anchored: None };
        let (mut one, full) = (TileMap::empty(size), TileMap::full(size));
        one.set(1, 0);
        let (enhanced, captured) = (AnchorSource::Enhanced, AnchorSource::Captured);
        entry.add_tiles(&full, enhanced);
        assert_eq!(entry.new_tiles(&one, enhanced).count(), 0);
        assert_eq!(entry.new_tiles(&one, captured), one);
        entry.add_tiles(&one, captured);
        assert_eq!(entry.new_tiles(&full, captured), full.without(&one));
    }
}
