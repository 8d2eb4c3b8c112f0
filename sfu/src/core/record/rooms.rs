//! The rooms that are recorded, and which of their tracks are.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use windlass_types::recording::{RecordInput, RecordedTrack};

use super::track::{RecordTerms, Taker, TrackRecording};
use crate::api::{ParticipantId, TrackInfo, TrackKind};
use crate::core::output::Output;
use crate::core::track::Track;

/// What is recorded of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Participants whose tracks are recorded.
    pub whom: RecordedWho,
    /// Whether anchors of their video are recorded too.
    pub anchors: bool,
}

/// Participants of a room whose tracks are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedWho {
    /// Tracks of all participants.
    All,
    /// Tracks of these participants.
    Only(Vec<ParticipantId>),
}

impl Recorded {
    fn contains(&self, participant: ParticipantId) -> bool {
        match &self.whom {
            RecordedWho::All => true,
            RecordedWho::Only(these) => these.contains(&participant),
        }
    }
}

/// The rooms that are recorded. Operators order each recording, so there are few.
#[derive(Debug, Default)]
pub(crate) struct RecordedRooms(HashMap<String, Recorded>);

impl RecordedRooms {
    /// Begins or ends the recording of a room.
    pub(crate) fn set(&mut self, room: &str, recorded: Option<Recorded>) {
        match recorded {
            Some(recorded) => self.0.insert(room.to_owned(), recorded),
            None => self.0.remove(room),
        };
    }

    /// How a participant's tracks of a room are recorded; `None`: they are not.
    pub(crate) fn terms(
        &self,
        room: &str,
        participant: ParticipantId,
        max_frame_bytes: usize,
    ) -> Option<RecordTerms> {
        let recorded = self.0.get(room).filter(|recorded| recorded.contains(participant))?;
        let (taker, anchors) = (Taker::Recorder, recorded.anchors);
        Some(RecordTerms { taker, max_frame_bytes, below_pixels: None, anchors })
    }
}

/// Lets the recordings of video tracks choose their layers again. Called with each allocation.
pub(crate) fn choose_layers<'a>(now: Instant, tracks: impl Iterator<Item = &'a mut Track>) {
    for track in tracks.filter(|track| track.info.kind == TrackKind::Video && !track.info.muted) {
        for recording in track.recordings.iter_mut() {
            recording.choose(now, &track.layers);
        }
    }
}

/// Requests a key anchor for each recording that begins to get anchors, or has lost frames. Called with each
/// allocation, after the taps are set.
pub(crate) fn request_key_anchors<'a>(
    tracks: impl Iterator<Item = &'a mut Track>,
    outputs: &mut VecDeque<Output>,
) {
    for track in tracks {
        let tapped = track.tapped();
        // Each of them takes note.
        let lacking = track
            .recordings
            .iter_mut()
            .filter_map(|recording| recording.lacks_key_anchor(tapped).then_some(()));
        if lacking.count() > 0 {
            outputs.extend(track.request_initial_anchor());
        }
    }
}

/// Begins or ends the recording of a track that is published here, unless it is encrypted.
pub(crate) fn set_track(track: &mut Track, wanted: Option<RecordTerms>) -> Option<Output> {
    if wanted.is_some() == track.recordings.recorder.is_some()
        || track.remote.is_some()
        || track.info.encrypted
    {
        return None;
    }
    let id = track.info.track;
    track.recordings.recorder = wanted.map(|terms| TrackRecording::new(id, terms));
    Some(Output::Record(if wanted.is_some() {
        let TrackInfo { participant, kind, name, .. } = track.info.clone();
        let room = track.room.clone();
        RecordInput::Begin(RecordedTrack { track: id, room, participant, kind, name })
    } else {
        RecordInput::End(id)
    }))
}
