//! A track's state for renditions: its own rendition, or its source and viewers if it is one.

use crate::api::{ParticipantId, TrackId};

/// A track's state for renditions.
#[derive(Debug, Default)]
pub(crate) struct Rendition {
    /// The track's rendition.
    pub(crate) id: Option<TrackId>,
    /// The track of which this one is the rendition.
    pub(crate) of: Option<TrackId>,
    /// Who began this rendition, as [`Owner::publisher`](windlass_types::Owner) numbers them.
    pub(crate) owner: u64,
    /// The participants that asked for this rendition, and may subscribe to it.
    pub(crate) viewers: Vec<ParticipantId>,
}

impl Rendition {
    /// Whether the track is a rendition.
    pub(crate) fn is_one(&self) -> bool {
        self.of.is_some()
    }

    /// Lets a participant subscribe to this rendition.
    pub(crate) fn add_viewer(&mut self, viewer: ParticipantId) {
        if !self.viewers.contains(&viewer) {
            self.viewers.push(viewer);
        }
    }

    /// Removes a viewer. Returns whether it was the last one.
    pub(crate) fn remove_viewer(&mut self, viewer: ParticipantId) -> bool {
        let before = self.viewers.len();
        self.viewers.retain(|&other| other != viewer);
        before > 0 && self.viewers.is_empty()
    }
}
