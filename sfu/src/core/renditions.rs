//! Renditions: the enhanced pictures of a track, rebuilt and coded once by the server, for players that cannot rebuild
//! them.
//!
//! The renderer gets a track's frames and anchors as the recorder does. What it makes comes back as a track of another
//! node does ([`NodeId::RENDERER`]): packets of one layer, for which key frames are requested. Nobody hears of that
//! track but the participants that have asked for it. It ends when the last of them leaves, or with its source.

use std::time::{Duration, Instant};

use windlass_types::recording::{RecordInput, RecordedTrack};
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::Rendered;
use windlass_types::{Layer, NodeId, VideoCodec};

use super::Core;
use super::recording::{RecordTerms, Taker, TrackRecording};
use super::relayed::RemotePublisher;
use super::rewriter::PacketIn;
use super::track::Track;
use crate::api::{Kind, ParticipantId, Publish, RenderError, SfuEvent, TrackId};

impl Core {
    /// Begins a track's rendition for a participant, which may subscribe to it from now on. All that ask for it share
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined, the server renders nothing, there are too many renditions, or the
    /// renderer cannot read the track.
    pub fn render(
        &mut self,
        now: Instant,
        viewer: ParticipantId,
        track: TrackId,
    ) -> Result<TrackId, RenderError> {
        let peer = self.peers.get(viewer).ok_or(RenderError::NotJoined)?;
        if self.config.limits.renditions == 0 {
            return Err(RenderError::Off);
        }
        let there = self.tracks.get(track).filter(|track| *track.room == *peer.room);
        let source = there.filter(|track| track.is_renderable()).ok_or(RenderError::Unreadable)?;
        let id = match source.rendition.id {
            Some(id) => id,
            None => self.begin_rendition(track)?,
        };
        if let Some(rendition) = self.tracks.get_mut(id) {
            rendition.rendition.add_viewer(viewer);
        }
        self.schedule.allocate_now(now);
        Ok(id)
    }

    fn begin_rendition(&mut self, of: TrackId) -> Result<TrackId, RenderError> {
        let limits = &self.config.limits;
        let id = self.tracks.add_rendition(of, limits.renditions).ok_or(RenderError::Full)?;
        let taker = Taker::Renderer;
        let terms = RecordTerms { taker, max_frame_bytes: limits.tap_frame_bytes, anchors: true };
        let source = self.tracks.get_mut(of).ok_or(RenderError::Unreadable)?;
        source.recordings.renderer = Some(TrackRecording::new(of, terms));
        let info = &source.info;
        let begin = RecordedTrack {
            track: of,
            room: source.room.clone(),
            participant: info.participant,
            kind: info.kind,
            name: info.name.clone(),
        };
        self.outputs.push_back(taker.output(RecordInput::Begin(begin)));
        Ok(id)
    }

    /// Ends what a participant alone has watched.
    pub(super) fn leave_renditions(&mut self, viewer: ParticipantId) {
        let left = self
            .tracks
            .iter_mut()
            .filter_map(|track| track.rendition.remove_viewer(viewer).then_some(track.info.track));
        for rendition in left.collect::<Vec<_>>() {
            self.remove_track(rendition);
        }
    }

    /// Ends the feed of a rendition that was removed, and tells its viewers.
    pub(super) fn on_rendition_removed(&mut self, rendition: &Track) {
        let source = rendition.rendition.of.and_then(|of| self.tracks.get_mut(of));
        if let Some(recording) = source.and_then(|source| source.recordings.renderer.take()) {
            self.outputs.push_back(recording.end());
        }
        let removed = SfuEvent::TrackRemoved { track: rendition.info.track };
        for &viewer in &rendition.rendition.viewers {
            self.outputs.push_back(super::Output::Event(viewer, removed.clone()));
        }
    }

    /// Takes an answer of the renderer.
    pub fn on_rendered(&mut self, now: Instant, rendered: Rendered) {
        match rendered {
            Rendered::Packet(packet) => self.forward_rendered(now, packet),
            Rendered::KeyFrame(track) => self.on_render_key_frame(now, track, false),
        }
    }

    /// Gives the renderer a key frame of a track next. The renderer needs one, or has lost frames (`lost`).
    pub fn on_render_key_frame(&mut self, now: Instant, track: TrackId, lost: bool) {
        self.counters.render_overflows += u64::from(lost);
        let track = self.tracks.get_mut(track);
        if let Some(recording) = track.and_then(|track| track.recordings.renderer.as_mut()) {
            recording.await_key();
            self.schedule.wake(now);
        }
    }

    /// Notes that the renderer has dropped an anchor of a track. The next one depends on no other.
    pub fn on_render_anchor_lost(&mut self, track: TrackId) {
        self.counters.render_overflows += 1;
        let track = self.tracks.get_mut(track);
        if let Some(recording) = track.and_then(|track| track.recordings.renderer.as_mut()) {
            recording.await_key_anchor();
        }
    }

    fn forward_rendered(&mut self, now: Instant, packet: RelayedPacket) {
        let source = self.tracks.get(packet.track);
        // The last packets of a rendition may come after its end.
        let Some(id) = source.and_then(|source| source.rendition.id) else { return };
        let RelayedPacket { seq, timestamp, marker, codec, payload, .. } = packet;
        let packet = PacketIn {
            seq,
            timestamp,
            arrival: now,
            handover_delay: Duration::ZERO,
            marker,
            codec,
            stale: false,
        };
        self.counters.rendered_packets += 1;
        self.forward_video(id, Layer::F, packet, None, &payload);
        self.schedule.wake(now);
    }
}

impl Track {
    /// Whether the renderer can read the track: VP9 that is published here, and not encrypted end to end.
    fn is_renderable(&self) -> bool {
        self.info.kind == Kind::Video
            && self.remote.is_none()
            && self.is_announced()
            && !self.info.encrypted
            && self.layers.codec() == Some(VideoCodec::Vp9)
    }

    /// Makes the track the rendition of another one.
    pub(super) fn become_rendition(&mut self, of: TrackId) {
        self.rendition.of = Some(of);
        self.remote = Some(RemotePublisher::new(NodeId::RENDERER, of, self.room.clone()));
    }

    /// What a publisher would offer for a rendition of this track.
    pub(super) fn as_rendition(&self) -> Publish {
        Publish {
            mid: "rendition".to_owned(),
            kind: Kind::Video,
            name: self.info.name.clone(),
            max: None,
            encrypted: false,
            backup_of: None,
        }
    }
}
