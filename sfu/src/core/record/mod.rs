//! Records rooms: their tracks of now and of later, their anchors, and key frames for the recorder.

pub(super) mod rooms;
pub(super) mod track;

use std::time::Instant;

use windlass_types::Anchor;
use windlass_types::recording::{RecordInput, RecordedAnchor};

use self::rooms::{Recorded, set_track};
use crate::api::TrackId;
use crate::core::Core;
use crate::core::subscriber::rewriter::Source;
use crate::core::track::Track;

impl Core {
    /// Begins or ends the recording of a room. Recorded are those of its tracks, now and later, that are published
    /// here.
    pub fn set_recorded(&mut self, now: Instant, room: &str, recorded: Option<Recorded>) {
        self.recorded.set(room, recorded);
        let max = self.config.limits.tap_frame_bytes;
        let recordable = |track: &&mut Track| &*track.room == room && !track.backup.is_one();
        for track in self.tracks.iter_mut().filter(recordable) {
            let wanted = self.recorded.terms(room, track.info.participant, max);
            self.outputs.extend(set_track(track, wanted));
        }
        self.schedule.allocate_now(now);
    }

    /// Records a track that has begun, if its room is recorded.
    pub(crate) fn record_track(&mut self, id: TrackId) {
        let Some(track) = self.tracks.get_mut(id) else { return };
        let max = self.config.limits.tap_frame_bytes;
        let wanted = self.recorded.terms(&track.room, track.info.participant, max);
        self.outputs.extend(set_track(track, wanted));
    }

    /// Gives recorder and renderer an anchor, if its track is recorded with anchors of that layer.
    pub(crate) fn record_anchor(&mut self, source: Source, anchor: &Anchor) {
        let Some(track) = self.tracks.get(source.track) else { return };
        for recording in track.recordings.iter() {
            if recording.anchored_layer() == Some(source.layer) {
                let Source { track, layer } = source;
                let anchor = RecordedAnchor { track, layer, anchor: anchor.clone() };
                self.outputs.push_back(recording.output(RecordInput::Anchor(anchor)));
            }
        }
    }

    /// Notes that the recorder has dropped an anchor of a track: it is full. The next one depends on no other.
    pub fn on_record_anchor_lost(&mut self, track: TrackId) {
        self.counters.record_anchors_lost += 1;
        let recording = self.tracks.get_mut(track).and_then(|t| t.recordings.recorder.as_mut());
        if let Some(recording) = recording {
            recording.await_key_anchor();
        }
    }

    /// Gives the recorder a key frame of a track next. The recorder needs one, or has lost frames (`lost`).
    pub fn on_record_key_frame(&mut self, now: Instant, track: TrackId, lost: bool) {
        self.counters.record_overflows += u64::from(lost);
        let recording = self.tracks.get_mut(track).and_then(|t| t.recordings.recorder.as_mut());
        if let Some(recording) = recording {
            recording.await_key();
            self.schedule.wake(now);
        }
    }
}
