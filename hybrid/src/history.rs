//! The frames that anchors may still be for, and the fields of those that others are predicted from.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::anchor::tiles::TileMap;
use crate::reconstruct::field::{Field, Link, trace};
use crate::vp9::{FrameBuffer, FrameInfo, FrameKind};

/// A decoded frame.
pub(crate) struct Entry {
    id: u64,
    pub timestamp: u32,
    pub shown: bool,
    pub low: Arc<FrameBuffer>,
    info: Arc<FrameInfo>,
    /// The frames behind `Last`, `Golden`, `Altref`; 0 for none of the same size.
    references: [u64; 3],
    pub field: Field,
    /// The tiles that anchors have given it.
    pub given: Option<TileMap>,
}

/// A reference slot of the VP9 decoder: which frame it holds, and that frame's field.
#[derive(Default)]
struct Slot {
    id: u64,
    field: Field,
}

/// Remembers the last `most` frames; its memory is used again.
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

    /// Takes a decoded frame and traces its field.
    pub fn push(&mut self, timestamp: u32, low: Arc<FrameBuffer>, info: Arc<FrameInfo>) {
        if let FrameKind::ShowExisting { slot } = info.kind {
            // An anchor for what is shown now is one for the frame that the slot holds.
            let id = self.slots[usize::from(slot & 7)].id;
            if let Some(entry) = self.entries.iter_mut().find(|e| e.id == id) {
                entry.timestamp = timestamp;
                entry.shown = true;
                self.current = id;
            }
            return;
        }
        while self.entries.len() >= self.most {
            self.spare.extend(self.entries.pop_front().map(|e| e.field));
        }
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
        let shown = info.shown;
        if shown {
            self.current = id;
        }
        let given = None;
        self.entries.push_back(Entry { id, timestamp, shown, low, info, references, field, given });
    }

    /// The frame on display, while it is remembered.
    pub fn current(&self) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.id == self.current)
    }

    /// Where the shown frame of a timestamp is.
    pub fn find(&self, timestamp: u32) -> Option<usize> {
        self.entries.iter().rposition(|e| e.shown && e.timestamp == timestamp)
    }

    /// The frame at a place that [`find`](Self::find) gave.
    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// Shown frames after a place.
    pub fn shown_after(&self, at: usize) -> u32 {
        self.entries.iter().skip(at + 1).filter(|e| e.shown).count() as u32
    }

    /// Lets the frame at a place have all its detail from one source, and those that descend from it
    /// follow.
    pub fn rebase(&mut self, at: usize, source: u32, given: TileMap) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        for cell in entry.field.cells_mut() {
            *cell = crate::reconstruct::field::Cell { source, ..Default::default() };
        }
        entry.given = Some(given);
        self.changed.clear();
        self.changed.push(entry.id);
        for i in at + 1..self.entries.len() {
            let entry = &self.entries[i];
            let follows = entry.references.iter().any(|r| self.changed.contains(r));
            // A frame with an anchor of its own keeps it.
            if !follows || entry.given.is_some() {
                continue;
            }
            let mut field = std::mem::take(&mut self.entries[i].field);
            let links = self.entries[i].references.map(|id| match id {
                0 => Link::Nothing,
                id => self
                    .entries
                    .iter()
                    .find(|e| e.id == id)
                    .map_or(Link::Unchanged, |e| Link::Field(&e.field)),
            });
            trace(&self.entries[i].info, links, &mut field);
            self.entries[i].field = field;
            self.changed.push(self.entries[i].id);
        }
        for slot in self.slots.iter_mut().filter(|s| self.changed.contains(&s.id)) {
            if let Some(entry) = self.entries.iter().find(|e| e.id == slot.id) {
                slot.field.copy_from(&entry.field);
            }
        }
    }
}
