//! Renditions: the enhanced pictures of a track, rebuilt and coded once by the server, for players that cannot rebuild
//! them.
//!
//! The renderer gets a track's frames and anchors as the recorder does. Its output arrives like a track of another node
//! ([`NodeId::RENDERER`]): packets of one layer, for which key frames can be requested. Only participants that asked
//! for the track are told of it. The track ends when the last of them leaves, or with its source.

pub(super) mod track;

use std::time::Instant;

use windlass_types::recording::RecordInput;
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::{RendererAnswer, RendererInput};
use windlass_types::{Layer, NodeId, VideoCodec};

use crate::api::{ParticipantId, Publish, RenditionError, SfuEvent, TrackId, TrackKind};
use crate::config::{RenditionLimits, share_of_one};
use crate::core::record::track::{RecordTerms, Taker, TrackRecording};
use crate::core::relay::track::RemotePublisher;
use crate::core::subscriber::rewriter::PacketIn;
use crate::core::track::Track;
use crate::core::{Core, Output};

impl Core {
    /// Begins a track's rendition for a participant, which may subscribe to it from now on. All that ask for it share
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if the participant has not joined or may not have it, the server renders nothing, there are too many
    /// renditions, or the track has none.
    pub fn render(
        &mut self,
        now: Instant,
        viewer: ParticipantId,
        track: TrackId,
    ) -> Result<TrackId, RenditionError> {
        let peer = self.peers.get(viewer).ok_or(RenditionError::NotJoined)?;
        if self.config.renditions.max == 0 {
            return Err(RenditionError::Off);
        }
        if !peer.permissions.enhance || !peer.permissions.subscribe {
            return Err(RenditionError::NotAllowed);
        }
        let there = self.tracks.get(track).filter(|track| *track.room == *peer.room);
        let max_pixels = self.config.renditions.pixels;
        let renderable =
            |track: &&Track| track.is_renderable() && !track.is_larger(now, max_pixels);
        let source = there.filter(renderable).ok_or(RenditionError::Plain)?;
        let (id, owner) = (source.rendition.id, peer.owner.publisher);
        let id = id.map_or_else(|| self.begin_rendition(track, owner), Ok)?;
        if let Some(rendition) = self.tracks.get_mut(id) {
            rendition.rendition.add_viewer(viewer);
        }
        self.schedule.allocate_now(now);
        Ok(id)
    }

    fn begin_rendition(&mut self, track: TrackId, owner: u64) -> Result<TrackId, RenditionError> {
        let RenditionLimits { max, pixels } = self.config.renditions;
        let of_owner = |track: &&Track| track.rendition.is_one() && track.rendition.owner == owner;
        if self.tracks.iter().filter(of_owner).count() >= share_of_one(max) {
            return Err(RenditionError::Full);
        }
        let rendition = self.tracks.add_rendition(track, max).ok_or(RenditionError::Full)?;
        if let Some(rendition) = self.tracks.get_mut(rendition) {
            rendition.rendition.owner = owner;
        }
        let terms = RecordTerms {
            taker: Taker::Renderer,
            max_frame_bytes: self.config.limits.tap_frame_bytes,
            below_pixels: Some(pixels),
            anchors: true,
        };
        if let Some(source) = self.tracks.get_mut(track) {
            source.recordings.renderer = Some(TrackRecording::new(track, terms));
        }
        self.outputs.push_back(Output::Render(RendererInput::Begin { track, rendition }));
        Ok(rendition)
    }

    /// Unsubscribes a viewer from its renditions, and ends those without other viewers.
    pub(crate) fn leave_renditions(&mut self, viewer: ParticipantId) {
        let watched = self.tracks.iter().filter(|track| track.rendition.viewers.contains(&viewer));
        let watched: Vec<TrackId> = watched.map(|track| track.info.track).collect();
        for id in watched {
            let Some(rendition) = self.tracks.get_mut(id) else { continue };
            rendition.subscribers.retain(|&other| other != viewer);
            let is_last = rendition.rendition.remove_viewer(viewer);
            if let Some(peer) = self.peers.get_mut(viewer) {
                peer.slots_of(id).for_each(|slot| slot.set_track(None));
                let removed = SfuEvent::TrackRemoved { track: id };
                self.outputs.push_back(Output::Event(viewer, removed));
            }
            if is_last {
                self.remove_track(id);
            }
        }
    }

    /// Ends the renditions of tracks that cannot be read any more: their codec has changed.
    pub(crate) fn end_unreadable_renditions(&mut self) {
        let unreadable =
            |track: &&Track| track.rendition.id.is_some() && track.unreadable().is_some();
        let ended = self.tracks.iter().filter(unreadable).filter_map(|track| track.rendition.id);
        for rendition in ended.collect::<Vec<_>>() {
            self.remove_track(rendition);
        }
    }

    /// Ends the feed of a rendition that was removed, and tells its viewers.
    pub(crate) fn on_rendition_removed(&mut self, rendition: &Track) {
        let Some(track) = rendition.rendition.of else { return };
        if let Some(source) = self.tracks.get_mut(track) {
            source.recordings.renderer = None;
        }
        self.outputs.push_back(Taker::Renderer.output(RecordInput::End(track)));
        let removed = SfuEvent::TrackRemoved { track: rendition.info.track };
        for &viewer in &rendition.rendition.viewers {
            self.outputs.push_back(Output::Event(viewer, removed.clone()));
        }
    }

    /// Takes an answer of the renderer. The last ones of a rendition may come after its end.
    pub fn on_rendered(&mut self, now: Instant, rendered: RendererAnswer) {
        let id = rendered.rendition();
        let Some(source) = self.tracks.get(id).and_then(|track| track.rendition.of) else { return };
        match rendered {
            RendererAnswer::Packet(packet) => self.forward_rendered(now, &packet),
            RendererAnswer::KeyFrame(_) => self.on_render_key_frame(now, source, false),
            RendererAnswer::Failed(_) => self.remove_track(id),
        }
        self.schedule.wake(now);
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

    fn forward_rendered(&mut self, now: Instant, packet: &RelayedPacket) {
        let (track, payload) = (packet.track, &packet.payload);
        self.counters.rendered_packets += 1;
        self.forward_video(track, Layer::F, PacketIn::relayed(packet, now), None, payload);
    }
}

impl Track {
    /// Whether the renderer can read the track: VP9 that is published here, and not encrypted end to end. The codec is
    /// not known before its first packet.
    fn is_renderable(&self) -> bool {
        self.info.kind == TrackKind::Video
            && self.remote.is_none()
            && self.is_announced()
            && !self.info.encrypted
            && self.layers.codec().is_none_or(|codec| codec == VideoCodec::Vp9)
    }

    /// Whether the publisher itself sends a picture of at least `pixels`, or would if it were asked.
    fn is_larger(&self, now: Instant, pixels: u32) -> bool {
        let rates = self.params.rates(now, self.layers.rates(now));
        let sizes = self.layers.sizes().into_iter().zip(rates);
        let sent = sizes.filter(|(_, rate)| rate.is_some()).filter_map(|(size, _)| size);
        sent.into_iter().any(|size| size.pixels() >= pixels)
    }

    /// Makes the track the rendition of another one.
    pub(crate) fn become_rendition(&mut self, of: TrackId) {
        self.rendition.of = Some(of);
        self.remote = Some(RemotePublisher::new(NodeId::RENDERER, of, self.room.clone()));
    }

    /// What a publisher would offer for a rendition of this track.
    pub(crate) fn as_rendition(&self) -> Publish {
        Publish {
            mid: "rendition".to_owned(),
            kind: TrackKind::Video,
            name: self.info.name.clone(),
            max: None,
            encrypted: false,
            backup_of: None,
        }
    }
}
