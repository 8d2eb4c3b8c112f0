//! The frames that anchors may still be for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cut::is_cut;
use windlass_types::tiles::TileMap;
use windlass_vp9::{DecodedFrame, FrameBuffer};

/// A frame that was shown.
pub(crate) struct Entry {
    id: u64,
    /// When it was shown; a frame may be shown again.
    shown_at: [Option<u32>; 2],
    pub low: Arc<FrameBuffer>,
    /// What anchors have given it.
    pub given: Option<Given>,
}

/// What anchors have given a frame.
pub(crate) struct Given {
    /// The tiles.
    pub tiles: TileMap,
    /// Those of them that are the publisher's own.
    pub captured: TileMap,
}

/// Frames that are remembered however large they are.
const LEAST: usize = 16;
/// Luma samples of those that are remembered beyond them: 16 MB with chroma.
const SAMPLES: usize = 11_000_000;

/// Remembers the last `most` frames, fewer where they are large.
pub(crate) struct History {
    most: usize,
    entries: VecDeque<Entry>,
    /// Frame ids begin at 1.
    last_id: u64,
    current: u64,
}

impl History {
    pub fn new(most: usize) -> Self {
        Self { most, entries: VecDeque::with_capacity(most + 1), last_id: 0, current: 0 }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.current = 0;
    }

    /// Forgets what anchors have given, and no frame.
    pub fn without_detail(&mut self) {
        for entry in &mut self.entries {
            entry.given = None;
        }
    }

    /// Forgets the frames of other sizes than that of the picture on display.
    pub fn forget_other_sizes(&mut self) {
        let Some(size) = self.current().map(Entry::size) else { return };
        self.entries.retain(|entry| entry.size() == size);
    }

    /// Takes a decoded frame. One that is not shown has no place here until it is.
    pub fn push(&mut self, timestamp: u32, frame: &DecodedFrame) {
        if !frame.info.shown {
            return;
        }
        // A frame that is shown again is the same picture: an anchor for what is shown now is one for that frame.
        let known = self.entries.iter_mut().find(|e| Arc::ptr_eq(&e.low, &frame.picture));
        if let Some(entry) = known {
            entry.shown_at = [entry.shown_at[1], Some(timestamp)];
            self.current = entry.id;
            return;
        }
        let area = (frame.picture.width() * frame.picture.height()).max(1);
        while self.entries.len() >= self.most.min(LEAST.max(SAMPLES / area)) {
            self.entries.pop_front();
        }
        self.last_id += 1;
        self.current = self.last_id;
        self.entries.push_back(Entry {
            id: self.last_id,
            shown_at: [None, Some(timestamp)],
            low: frame.picture.clone(),
            given: None,
        });
    }

    /// The frame on display, while it is remembered.
    pub fn current(&self) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.id == self.current)
    }

    /// Whether the frame on display is new and of another scene than the one before it.
    pub fn is_cut(&self) -> bool {
        let mut latest = self.entries.iter().rev();
        let (Some(last), Some(before)) = (latest.next(), latest.next()) else { return false };
        last.id == self.current
            && last.size() == before.size()
            && is_cut(&before.low.planes()[0], &last.low.planes()[0])
    }

    /// Where the frame of a timestamp is.
    pub fn find(&self, timestamp: u32) -> Option<usize> {
        self.entries.iter().rposition(|e| e.shown_at.contains(&Some(timestamp)))
    }

    /// The frame at a place that [`find`](Self::find) gave.
    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// The same, to be changed.
    pub fn entry_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Frames after a place.
    pub fn shown_after(&self, at: usize) -> u32 {
        self.entries.len().saturating_sub(at + 1) as u32
    }
}

impl Entry {
    /// Width and height of its low picture.
    pub fn size(&self) -> (usize, usize) {
        (self.low.width(), self.low.height())
    }

    /// Counts frames in the order in which they were first shown.
    pub fn id(&self) -> u64 {
        self.id
    }
}
