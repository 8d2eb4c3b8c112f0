//! Records rooms: their tracks of now and of later, and key frames for the recorder.

use std::time::Instant;

use super::Core;
use super::recorded::{Recorded, set_track};
use crate::api::TrackId;

impl Core {
    /// Begins or ends the recording of a room. Recorded are those of its tracks, now and later, that are published
    /// here.
    pub fn set_recorded(&mut self, now: Instant, room: &str, recorded: Option<Recorded>) {
        self.recorded.set(room, recorded);
        let max = self.config.limits.tap_frame_bytes;
        for track in self.tracks.iter_mut().filter(|track| &*track.room == room) {
            let wanted = self.recorded.wants(room, track.info.participant);
            self.outputs.extend(set_track(track, wanted, max));
        }
        self.schedule.allocate_now(now);
    }

    /// Records a track that has begun, if its room is recorded.
    pub(super) fn record_track(&mut self, id: TrackId) {
        let Some(track) = self.tracks.get_mut(id) else { return };
        if self.recorded.wants(&track.room, track.info.participant) {
            let max = self.config.limits.tap_frame_bytes;
            self.outputs.extend(set_track(track, true, max));
        }
    }

    /// Gives the recorder a key frame of a track next. The recorder needs one, or has lost frames (`lost`).
    pub fn on_record_key_frame(&mut self, now: Instant, track: TrackId, lost: bool) {
        self.counters.record_overflows += u64::from(lost);
        let recording = self.tracks.get_mut(track).and_then(|track| track.recording.as_mut());
        if let Some(recording) = recording {
            recording.await_key();
            self.schedule.wake(now);
        }
    }
}
