//! The frames that anchors may still be for, and the fields of those that others are predicted from.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::anchor::tiles::TileMap;
use crate::reconstruct::field::{Cell, Field, Link, trace};
use crate::reconstruct::source::Sources;
use crate::simd::Isa;
use crate::vp9::{FrameBuffer, FrameInfo, FrameKind};

/// A decoded frame.
pub(crate) struct Entry {
    id: u64,
    /// When it was shown; a frame may be shown again. Hidden frames were not.
    shown_at: [Option<u32>; 2],
    pub low: Arc<FrameBuffer>,
    info: Arc<FrameInfo>,
    /// The frames behind `Last`, `Golden`, `Altref`; 0 for none of the same size.
    references: [u64; 3],
    pub field: Field,
    /// What anchors have given it.
    pub given: Option<Given>,
}

/// What anchors have given a frame.
pub(crate) struct Given {
    /// The tiles.
    pub tiles: TileMap,
    /// Those of them that are the publisher's own.
    pub captured: TileMap,
    /// The source that holds their detail, and for the rest of the frame what it showed before.
    pub source: u32,
}

/// A reference slot of the VP9 decoder: which frame it holds, and that frame's field.
#[derive(Default)]
struct Slot {
    id: u64,
    field: Field,
}

/// Frames that are remembered however large they are.
const LEAST: usize = 16;
/// Luma samples of those that are remembered beyond them: 16 MB with chroma.
const SAMPLES: usize = 11_000_000;

/// Remembers the last `most` frames, fewer where they are large; its memory is used again.
pub(crate) struct History {
    most: usize,
    entries: VecDeque<Entry>,
    spare: Vec<Field>,
    slots: [Slot; 8],
    /// Frame ids begin at 1.
    last_id: u64,
    current: u64,
    /// Frames that the last anchor changed.
    changed: Vec<u64>,
}

impl History {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            entries: VecDeque::with_capacity(most + 1),
            spare: Vec::with_capacity(most + 1),
            slots: Default::default(),
            last_id: 0,
            current: 0,
            changed: Vec::with_capacity(most),
        }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.spare.extend(self.entries.drain(..).map(|e| e.field));
        self.slots.iter_mut().for_each(|s| s.id = 0);
        self.current = 0;
    }

    /// Forgets what anchors have given, and no frame.
    pub fn without_detail(&mut self) {
        for entry in &mut self.entries {
            let (width, height) = entry.size();
            entry.field.reset(width, height);
            entry.given = None;
        }
        for slot in &mut self.slots {
            let (width, height) = slot.field.size();
            slot.field.reset(width, height);
        }
    }

    /// Forgets the frames of other sizes than that of the picture on display.
    pub fn forget_other_sizes(&mut self) {
        let Some(size) = self.current().map(Entry::size) else { return };
        for i in (0..self.entries.len()).rev() {
            if self.entries[i].size() != size {
                self.spare.extend(self.entries.remove(i).map(|e| e.field));
            }
        }
    }

    /// Takes a decoded frame and traces its field.
    pub fn push(&mut self, timestamp: u32, low: Arc<FrameBuffer>, info: Arc<FrameInfo>) {
        if let FrameKind::ShowExisting { slot } = info.kind {
            self.show(usize::from(slot & 7), timestamp, low, info);
            return;
        }
        self.make_room(info.shown);
        let size = (low.width(), low.height());
        let references = if info.is_intra() {
            [0; 3]
        } else {
            info.reference_slots.map(|slot| {
                let slot = &self.slots[usize::from(slot & 7)];
                if slot.field.size() == size { slot.id } else { 0 }
            })
        };
        let mut field = self.spare.pop().unwrap_or_default();
        field.reset(size.0, size.1);
        let links = [0, 1, 2].map(|i| {
            let slot = &self.slots[usize::from(info.reference_slots[i] & 7)];
            if references[i] == 0 { Link::Nothing } else { Link::Field(&slot.field) }
        });
        if references != [0; 3] {
            trace(&info, links, &mut field);
        }
        self.last_id += 1;
        let id = self.last_id;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if info.refresh_mask >> i & 1 == 1 {
                slot.id = id;
                slot.field.copy_from(&field);
            }
        }
        let shown_at = [None, info.shown.then_some(timestamp)];
        if info.shown {
            self.current = id;
        }
        let given = None;
        self.entries.push_back(Entry { id, shown_at, low, info, references, field, given });
    }

    /// Shows the frame that a slot holds. An anchor for what is shown now is one for that frame.
    fn show(&mut self, slot: usize, timestamp: u32, low: Arc<FrameBuffer>, info: Arc<FrameInfo>) {
        let id = self.slots[slot].id;
        if let Some(entry) = self.entries.iter_mut().find(|e| e.id == id) {
            entry.shown_at = [entry.shown_at[1], Some(timestamp)];
            self.current = id;
            return;
        }
        // It has left the memory, and comes back with its field; or it was never here, and has none.
        self.make_room(true);
        let mut field = self.spare.pop().unwrap_or_default();
        let slot = &mut self.slots[slot];
        if slot.id == 0 {
            self.last_id += 1;
            slot.id = self.last_id;
            slot.field.reset(low.width(), low.height());
        }
        field.copy_from(&slot.field);
        self.current = slot.id;
        self.entries.push_back(Entry {
            id: slot.id,
            shown_at: [None, Some(timestamp)],
            low,
            info,
            references: [0; 3],
            field,
            given: None,
        });
    }

    /// Makes room for one more: the oldest goes, but never the one on display unless another is to
    /// be `shown`.
    fn make_room(&mut self, shown: bool) {
        let area = self.entries.back().map_or(1, |e| e.low.width() * e.low.height()).max(1);
        while self.entries.len() >= self.most.min(LEAST.max(SAMPLES / area)) {
            let oldest = self.entries.iter().position(|e| shown || e.id != self.current);
            let Some(oldest) = oldest.and_then(|i| self.entries.remove(i)) else { return };
            self.spare.push(oldest.field);
        }
    }

    /// The frame on display, while it is remembered.
    pub fn current(&self) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.id == self.current)
    }

    /// Where the shown frame of a timestamp is.
    pub fn find(&self, timestamp: u32) -> Option<usize> {
        self.entries.iter().rposition(|e| e.shown_at.contains(&Some(timestamp)))
    }

    /// The frame at a place that [`find`](Self::find) gave.
    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// Shown frames after a place.
    pub fn shown_after(&self, at: usize) -> u32 {
        self.entries.iter().skip(at + 1).filter(|e| e.shown()).count() as u32
    }

    /// Lets the frame at a place have all its detail from one source, and those that descend from it
    /// follow.
    pub fn rebase(
        &mut self,
        at: usize,
        given: Given,
        isa: Isa,
        scale: usize,
        sources: &mut Sources,
    ) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        let captured = given.captured.count() > 0;
        entry.field.cells_mut().fill(Cell { source: given.source, ..Cell::default() });
        entry.given = Some(given);
        self.changed.clear();
        self.changed.push(entry.id);
        for i in at + 1..self.entries.len() {
            let entry = &self.entries[i];
            if !entry.references.iter().any(|r| self.changed.contains(r)) {
                continue;
            }
            // A frame with an anchor of its own keeps what that gave while it is there, but for what was made of the
            // low picture where the publisher's own pixels fit.
            let own = entry.given.as_ref().filter(|given| sources.get(given.source).is_some());
            let stays = |given: &Given| {
                if captured { given.captured.is_full() } else { given.tiles.is_full() }
            };
            if own.is_some_and(stays) {
                continue;
            }
            let mut field = self.spare.pop().unwrap_or_default();
            field.copy_from(&entry.field);
            trace(&entry.info, entry.references.map(|id| self.link(id)), &mut field);
            self.changed.push(entry.id);
            if let Some(given) = own {
                let made = given.tiles.without(&given.captured);
                let keep = captured.then(|| sources.fitting(isa, &entry.low, &field, &made));
                let keep = keep.flatten();
                sources.refill(isa, given.source, scale, &given.tiles, &field, keep.as_deref());
            } else {
                std::mem::swap(&mut self.entries[i].field, &mut field);
            }
            self.spare.push(field);
        }
        for slot in self.slots.iter_mut().filter(|s| self.changed.contains(&s.id)) {
            if let Some(entry) = self.entries.iter().find(|e| e.id == slot.id) {
                slot.field.copy_from(&entry.field);
            }
        }
    }

    /// The field of a frame, wherever it is still known.
    fn link(&self, id: u64) -> Link<'_> {
        if id == 0 {
            return Link::Nothing;
        }
        let entry = self.entries.iter().find(|e| e.id == id).map(|e| &e.field);
        let slot = || self.slots.iter().find(|s| s.id == id).map(|s| &s.field);
        entry.or_else(slot).map_or(Link::Unchanged, Link::Field)
    }
}

impl Entry {
    /// Width and height of its low picture.
    pub fn size(&self) -> (usize, usize) {
        (self.low.width(), self.low.height())
    }

    /// Counts frames in decoding order.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn shown(&self) -> bool {
        self.shown_at[1].is_some()
    }
}
