//! The rooms that are recorded, and which of their tracks are.

use std::collections::HashMap;
use std::time::Instant;

use windlass_types::recording::{RecordInput, RecordedTrack};

use super::output::Output;
use super::recording::TrackRecording;
use super::track::Track;
use crate::api::{Kind, ParticipantId, TrackInfo};

/// Participants of a room whose tracks are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// Tracks of all participants.
    All,
    /// Tracks of these participants.
    Only(Vec<ParticipantId>),
}

impl Recorded {
    fn contains(&self, participant: ParticipantId) -> bool {
        match self {
            Recorded::All => true,
            Recorded::Only(these) => these.contains(&participant),
        }
    }
}

/// The rooms that are recorded. Operators order each recording, so there are few.
#[derive(Debug, Default)]
pub(super) struct RecordedRooms(HashMap<String, Recorded>);

impl RecordedRooms {
    /// Begins or ends the recording of a room.
    pub(super) fn set(&mut self, room: &str, recorded: Option<Recorded>) {
        match recorded {
            Some(recorded) => self.0.insert(room.to_owned(), recorded),
            None => self.0.remove(room),
        };
    }

    /// Whether a participant's tracks of a room are recorded.
    pub(super) fn wants(&self, room: &str, participant: ParticipantId) -> bool {
        self.0.get(room).is_some_and(|recorded| recorded.contains(participant))
    }
}

/// Lets the recordings of video tracks choose their layers anew. Called with each allocation.
pub(super) fn choose_layers<'a>(now: Instant, tracks: impl Iterator<Item = &'a mut Track>) {
    for track in tracks.filter(|track| track.info.kind == Kind::Video && !track.info.muted) {
        if let Some(recording) = &mut track.recording {
            recording.choose(now, &track.layers);
        }
    }
}

/// Begins or ends the recording of a track that is published here.
pub(super) fn set_track(track: &mut Track, wanted: bool, max_frame_bytes: usize) -> Option<Output> {
    if wanted == track.recording.is_some() || track.remote.is_some() {
        return None;
    }
    let id = track.info.track;
    track.recording = wanted.then(|| TrackRecording::new(id, max_frame_bytes));
    Some(Output::Record(if wanted {
        let TrackInfo { participant, kind, name, .. } = track.info.clone();
        let room = track.room.clone();
        RecordInput::Begin(RecordedTrack { track: id, room, participant, kind, name })
    } else {
        RecordInput::End(id)
    }))
}
