//! The tracks of a core, by their ids and by their streams at the enhancer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use str0m::media::Mid;
use windlass_types::{Refusal, StreamId};

use super::publisher::layers::Layers;
use super::shard::Shard;
use super::track::Track;
use crate::api::{ParticipantId, Publish, TrackId, TrackInfo, TrackKind};

/// The tracks.
pub(crate) struct Tracks {
    by_id: BTreeMap<TrackId, Track>,
    streams: HashMap<StreamId, TrackId>,
    /// Id of the next track.
    next: u64,
    shard: Shard,
}

impl Tracks {
    /// The tracks of a core, none at first. `shard` gives the ids.
    pub(crate) fn new(shard: Shard) -> Tracks {
        Tracks { by_id: BTreeMap::new(), streams: HashMap::new(), next: shard.first_id(), shard }
    }

    /// Adds a track of a room.
    pub(crate) fn add(
        &mut self,
        participant: ParticipantId,
        publish: &Publish,
        room: Arc<str>,
    ) -> TrackId {
        let Publish { mid, kind, name, encrypted, .. } = publish.clone();
        let id = self.next;
        self.next = self.shard.next_id(id);
        let track = TrackId(id);
        let stream = (kind == TrackKind::Video).then_some(StreamId(id as u32));
        let info = TrackInfo { track, participant, kind, name, muted: false, encrypted, stream };
        if let Some(stream) = stream {
            self.streams.insert(stream, track);
        }
        self.by_id.insert(track, Track::new(info, Mid::from(mid.as_str()), room));
        track
    }

    /// Adds a backup of a track; `None` where there may be none. It is no stream at the enhancer.
    pub(crate) fn add_backup(&mut self, of: TrackId, publish: &Publish) -> Option<TrackId> {
        let video = |kind| kind == TrackKind::Video;
        let track = self.get(of).filter(|track| {
            let taken = !track.is_announced() || track.backup.id.is_some();
            video(track.info.kind) && video(publish.kind) && !taken
        })?;
        let (participant, muted) = (track.info.participant, track.info.muted);
        let (room, subscribers) = (track.room.clone(), track.subscribers.clone());
        let id = self.add(participant, publish, room);
        let backup = self.by_id.get_mut(&id)?;
        self.streams.remove(&backup.info.stream.take()?);
        backup.info.muted = muted;
        backup.subscribers = subscribers;
        backup.layers = Layers::new(Some(Refusal::Codec));
        backup.backup.of = Some(of);
        self.get_mut(of)?.backup.id = Some(id);
        Some(id)
    }

    /// Adds the rendition of a track; `None` if all cores together have `max`. It is no stream at the enhancer.
    pub(crate) fn add_rendition(&mut self, of: TrackId, max: usize) -> Option<TrackId> {
        let source = self.get(of)?;
        let (participant, muted) = (source.info.participant, source.info.muted);
        let (room, publish) = (source.room.clone(), source.as_rendition());
        if !self.shard.acquire_rendition(max) {
            return None;
        }
        let id = self.add(participant, &publish, room);
        let rendition = self.by_id.get_mut(&id)?;
        if let Some(stream) = rendition.info.stream.take() {
            self.streams.remove(&stream);
        }
        rendition.info.muted = muted;
        rendition.layers = Layers::new(Some(Refusal::Codec));
        rendition.become_rendition(of);
        self.get_mut(of)?.rendition.id = Some(id);
        Some(id)
    }

    /// Removes a track.
    pub(crate) fn remove(&mut self, id: TrackId) -> Option<Track> {
        let track = self.by_id.remove(&id)?;
        if let Some(stream) = track.info.stream {
            self.streams.remove(&stream);
        }
        if let Some(of) = track.backup.of.and_then(|of| self.get_mut(of)) {
            of.backup.id = None;
        }
        if let Some(of) = track.rendition.of {
            self.shard.release_rendition();
            if let Some(of) = self.get_mut(of) {
                of.rendition.id = None;
            }
        }
        Some(track)
    }

    /// Whether there is or was a track with this id.
    pub(crate) fn has_assigned(&self, id: TrackId) -> bool {
        self.shard.has_assigned(id.0, self.next)
    }

    /// The track with this id.
    pub(crate) fn get(&self, id: TrackId) -> Option<&Track> {
        self.by_id.get(&id)
    }

    /// The track with this id, to change it.
    pub(crate) fn get_mut(&mut self, id: TrackId) -> Option<&mut Track> {
        self.by_id.get_mut(&id)
    }

    /// The track that belongs to a stream.
    pub(crate) fn of_stream(&self, stream: StreamId) -> Option<&Track> {
        self.by_id.get(self.streams.get(&stream)?)
    }

    /// The track that belongs to a stream, to change it.
    pub(crate) fn of_stream_mut(&mut self, stream: StreamId) -> Option<&mut Track> {
        self.by_id.get_mut(self.streams.get(&stream)?)
    }

    /// The ids of the tracks of a participant.
    pub(crate) fn of_publisher(&self, participant: ParticipantId) -> Vec<TrackId> {
        let own = self.iter().filter(|track| track.info.participant == participant);
        own.map(|track| track.info.track).collect()
    }

    /// All tracks, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Track> {
        self.by_id.values()
    }

    /// All tracks but backups and renditions, in the order of their ids.
    pub(crate) fn announced(&self) -> impl Iterator<Item = &Track> {
        self.iter().filter(|track| track.is_announced())
    }

    /// All tracks, in the order of their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Track> {
        self.by_id.values_mut()
    }

    /// Number of tracks, without renditions.
    pub(crate) fn len(&self) -> usize {
        self.iter().filter(|track| !track.rendition.is_one()).count()
    }

    /// When a tap or a key frame request of a track is due.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.iter().filter_map(|track| track.due(now)).min()
    }

    /// Number of streams.
    #[cfg(test)]
    pub(crate) fn stream_count(&self) -> usize {
        self.streams.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::harness::camera;

    #[test]
    fn a_track_is_found_by_its_stream_until_it_is_removed() {
        let mut tracks = Tracks::new(Shard::default());
        let publisher = ParticipantId(5);
        let mut add = |kind| tracks.add(publisher, &Publish { kind, ..camera() }, "tea".into());
        let (video, audio) = (add(TrackKind::Video), add(TrackKind::Audio));
        assert_eq!(tracks.of_publisher(publisher), [video, audio]);
        let stream = tracks.get(video).and_then(|track| track.info.stream).expect("it is video");
        assert_eq!(tracks.of_stream(stream).map(|track| track.info.track), Some(video));
        assert!(tracks.remove(video).is_some() && tracks.of_stream(stream).is_none());
        assert!(tracks.has_assigned(video) && !tracks.has_assigned(TrackId(audio.0 + 1)));
        assert_eq!((tracks.len(), tracks.stream_count()), (1, 0));
    }
}
