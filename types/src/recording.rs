//! The input of a recorder from an SFU: the tracks of recorded rooms, and their media as publishers sent it.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;

use crate::{Anchor, Layer, ParticipantId, Size, TrackId, TrackKind};

/// A step of a recorded track. The numbers of tracks are unique for the life of the process.
#[derive(Debug, Clone)]
pub enum RecordInput {
    /// A track is recorded from now on.
    Begin(RecordedTrack),
    /// A complete frame of a video track. The first one is a key frame, and none is missing between it and the next
    /// [`RecordInput::Gap`].
    Video(RecordedFrame),
    /// Frames of a video track were lost: the next one is a key frame.
    Gap(TrackId),
    /// A packet of an audio track. Packets may come late, twice, or not at all.
    Audio(RecordedPacket),
    /// An anchor of a video track, made after its frame. Anchors may come late, or not at all.
    Anchor(RecordedAnchor),
    /// A track is not recorded any more.
    End(TrackId),
}

impl RecordInput {
    /// The track that the step is about.
    pub fn track(&self) -> TrackId {
        match self {
            RecordInput::Begin(begin) => begin.track,
            RecordInput::Video(frame) => frame.track,
            RecordInput::Audio(packet) => packet.track,
            RecordInput::Anchor(anchor) => anchor.track,
            RecordInput::Gap(track) | RecordInput::End(track) => *track,
        }
    }

    /// Whether the step is a frame or a packet.
    pub fn is_media(&self) -> bool {
        matches!(self, RecordInput::Video(_) | RecordInput::Audio(_))
    }

    /// Bytes of media or anchors in the step. A step with 0 bytes must not be lost: it says that a track begins or
    /// ends, or has a gap.
    pub fn media_bytes(&self) -> usize {
        match self {
            RecordInput::Video(frame) => frame.data.len(),
            RecordInput::Audio(packet) => packet.data.len(),
            RecordInput::Anchor(anchor) => anchor.anchor.payload.len(),
            RecordInput::Begin(_) | RecordInput::Gap(_) | RecordInput::End(_) => 0,
        }
    }
}

/// A recorded track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedTrack {
    /// The track.
    pub track: TrackId,
    /// The name of the track's room.
    pub room: Arc<str>,
    /// The track's publisher.
    pub participant: ParticipantId,
    /// Whether the track is audio or video.
    pub kind: TrackKind,
    /// The publisher's name for the track.
    pub name: String,
}

/// When a frame or packet was made, by its sender's and by the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTime {
    /// The publisher's RTP timestamp.
    pub rtp: u32,
    /// When the frame or packet reached the SFU.
    pub arrival: Instant,
    /// The newest sender report of the stream.
    pub report: Option<SenderReport>,
}

/// A sender report (RFC 3550 §6.4.1): one moment by two clocks. All tracks of a participant share the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderReport {
    /// Time by the sender's wall clock.
    pub time: SystemTime,
    /// RTP timestamp of that time.
    pub rtp: u32,
}

/// A complete VP9 frame.
#[derive(Debug, Clone)]
pub struct RecordedFrame {
    /// The track that the frame belongs to.
    pub track: TrackId,
    /// The layer that the frame belongs to. Each layer has RTP timestamps of its own.
    pub layer: Layer,
    /// The frame's time, at a clock rate of 90 kHz.
    pub time: RecordedTime,
    /// Whether the frame is a key frame.
    pub key: bool,
    /// Size of the track's last key frame.
    pub size: Size,
    /// The VP9 frame (or superframe), as the encoder made it.
    pub data: Bytes,
}

/// An anchor of a recorded track.
#[derive(Debug, Clone)]
pub struct RecordedAnchor {
    /// The track that the anchor belongs to.
    pub track: TrackId,
    /// The layer of the anchor's frame. The anchor has that frame's RTP timestamp.
    pub layer: Layer,
    /// The anchor, as the viewers of its layer get it.
    pub anchor: Anchor,
}

/// An Opus packet.
#[derive(Debug, Clone)]
pub struct RecordedPacket {
    /// The track that the packet belongs to.
    pub track: TrackId,
    /// The packet's time, at a clock rate of 48 kHz.
    pub time: RecordedTime,
    /// The Opus packet, without its RTP header.
    pub data: Bytes,
}
