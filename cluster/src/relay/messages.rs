//! Conversion between [`Relayed`] and the messages of `proto/relay.proto`. Malformed messages give a [`WireError`],
//! never a panic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_types::attributes;
use windlass_types::data::MAX_RECEIVERS;
use windlass_types::relay::{
    AnchorState, MAX_TRACK_NAME, Relayed, RelayedAnchor, RelayedData, RelayedPacket, RelayedTrack,
};
use windlass_types::{
    Anchor, Attributes, ConnectionQuality, DataContent, DataMessage, FrameLayers, Layer,
    ParticipantId, Refusal, StageTimes, StreamId, TrackId, TrackKind, VideoCodec,
};

use crate::proto::relay::message::What;
use crate::proto::relay::{self as proto, Message};
use crate::wire::{WireError, anchor_message, anchor_of, layer, micros, narrow, refusal};

/// Largest extended sequence number that is read. Those of a real stream begin with 16 bits.
const MAX_SEQ: u64 = 1 << 48;
/// Maximum payload of a packet, in bytes.
const MAX_PAYLOAD: usize = 2_048;
/// Maximum length of the name or identity of a participant, or of a room's name, in bytes.
const MAX_NAME: usize = 512;
/// Maximum number of codecs that are read of a list.
const MAX_CODECS: usize = 16;
/// Upper bound of the age of an anchor, and of [`AnchorState::holds`].
const MAX_SPAN: Duration = Duration::from_secs(10);

/// A participant of a shared room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayedParticipant {
    /// The display name.
    pub name: String,
    /// The identity in the access token.
    pub identity: Option<String>,
    /// The participant's id on the server from which it moved, as that server's ticket says.
    pub was: Option<String>,
    /// The attributes that the participant tells the others.
    pub attributes: Attributes,
    /// Time in the room, in whole seconds.
    pub age: Duration,
}

/// A message of another server.
#[derive(Debug)]
pub struct RoomMessage {
    /// The room.
    pub room: Arc<str>,
    /// The content.
    pub relayed: Relayed,
    /// The participant of [`Relayed::Joined`] or [`Relayed::Changed`].
    pub who: Option<RelayedParticipant>,
}

/// The message of `relayed`, sent `now`. `who` is the participant of [`Relayed::Joined`] or [`Relayed::Changed`].
pub fn encode(
    room: &str,
    relayed: &Relayed,
    who: Option<RelayedParticipant>,
    now: Instant,
) -> Message {
    let nothing = || proto::Nothing {};
    let what = match relayed {
        Relayed::Begin => What::Begin(nothing()),
        Relayed::End => What::End(nothing()),
        Relayed::Joined { participant } => What::Joined(person(*participant, who)),
        Relayed::Changed { participant } => What::Changed(person(*participant, who)),
        Relayed::Quality { participant, quality } => What::Quality(proto::Quality {
            participant: participant.0,
            quality: quality.name().to_owned(),
        }),
        Relayed::Data(data) => What::Data(data_message(data)),
        Relayed::Left { participant } => What::Left(participant.0),
        Relayed::Track(track) => What::Track(proto::Track {
            track: track.track.0,
            participant: track.participant.0,
            video: track.kind == TrackKind::Video,
            name: track.name.clone(),
            muted: track.muted,
            encrypted: track.encrypted,
            backup_of: track.backup_of.map(|of| of.0),
        }),
        Relayed::TrackRemoved { track } => What::TrackRemoved(track.0),
        Relayed::TrackMuted { track, muted } => {
            What::TrackMuted(proto::Muted { track: track.0, muted: *muted })
        }
        Relayed::Packet(packet) => What::Packet(proto::Packet {
            track: packet.track.0,
            layer: rid(packet.layer),
            seq: packet.seq,
            timestamp: packet.timestamp,
            marker: packet.marker,
            level: packet.level.map(i32::from),
            voice: packet.voice,
            blocks: packet.blocks.map(u32::from),
            codec: packet.codec as u32,
            frame: packet.frame.map(FrameLayers::to_bits),
            payload: Bytes::copy_from_slice(&packet.payload),
        }),
        Relayed::AnchorState { track, state } => What::Made(proto::Made {
            track: track.0,
            able: state.available,
            layer: rid(state.layer),
            scale: state.scale.into(),
            holds_us: micros(state.holds),
            refused: state.refused.map_or("", Refusal::name).to_owned(),
        }),
        Relayed::Anchor(anchor) => What::Anchor(relayed_anchor_message(anchor, now)),
        Relayed::KeyFrame { track, layer } => {
            What::KeyFrame(proto::KeyFrame { track: track.0, layer: layer.rid().to_owned() })
        }
        Relayed::Layers { track, wanted: [q, h, f] } => {
            What::Layers(proto::Layers { track: track.0, q: *q, h: *h, f: *f })
        }
        Relayed::Enhance { track, layer } => {
            What::Enhance(proto::Enhance { track: track.0, layer: rid(*layer) })
        }
        Relayed::KeyAnchor { track } => What::KeyAnchor(proto::KeyAnchor { track: track.0 }),
        Relayed::BackupWanted { track, codecs } => {
            let codecs = codecs.iter().map(|&codec| codec as u32).collect();
            What::BackupWanted(proto::BackupWanted { track: track.0, codecs })
        }
    };
    Message { room: room.to_owned(), what: Some(what) }
}

/// The content of a message that arrived `now`; `None`: a kind of message that only newer versions know.
///
/// # Errors
///
/// The message is malformed.
pub fn decode(message: Message, now: Instant) -> Result<Option<RoomMessage>, WireError> {
    let Message { room, what } = message;
    if room.is_empty() || room.len() > MAX_NAME {
        return Err(WireError::Field("room"));
    }
    let mut who = None;
    let Some(what) = what else { return Ok(None) };
    let track = TrackId;
    let relayed = match what {
        What::Begin(_) => Relayed::Begin,
        What::End(_) => Relayed::End,
        What::Joined(person) => {
            let participant = ParticipantId(person.participant);
            who = Some(participant_of(person)?);
            Relayed::Joined { participant }
        }
        What::Changed(person) => {
            let participant = ParticipantId(person.participant);
            who = Some(participant_of(person)?);
            Relayed::Changed { participant }
        }
        What::Quality(proto::Quality { participant, quality }) => Relayed::Quality {
            participant: ParticipantId(participant),
            quality: ConnectionQuality::from_name(&quality).ok_or(WireError::Field("quality"))?,
        },
        What::Data(message) => Relayed::Data(data_of(message)?),
        What::Left(participant) => Relayed::Left { participant: ParticipantId(participant) },
        What::Track(message) => {
            if message.name.len() > MAX_TRACK_NAME {
                return Err(WireError::Field("name"));
            }
            Relayed::Track(RelayedTrack {
                track: track(message.track),
                participant: ParticipantId(message.participant),
                kind: if message.video { TrackKind::Video } else { TrackKind::Audio },
                name: message.name,
                muted: message.muted,
                encrypted: message.encrypted,
                backup_of: message.backup_of.map(track),
            })
        }
        What::TrackRemoved(number) => Relayed::TrackRemoved { track: track(number) },
        What::TrackMuted(message) => {
            Relayed::TrackMuted { track: track(message.track), muted: message.muted }
        }
        What::Packet(packet) => {
            if packet.seq > MAX_SEQ || packet.payload.len() > MAX_PAYLOAD {
                return Err(WireError::Field("packet"));
            }
            Relayed::Packet(RelayedPacket {
                track: track(packet.track),
                layer: optional_layer(&packet.layer)?,
                seq: packet.seq,
                timestamp: packet.timestamp,
                marker: packet.marker,
                level: packet.level.map(|level| narrow(level, "level")).transpose()?,
                voice: packet.voice,
                blocks: packet.blocks.map(|pt| narrow(pt, "blocks")).transpose()?,
                codec: video_codec(packet.codec)?,
                frame: packet.frame.map(FrameLayers::from_bits),
                payload: packet.payload.as_ref().into(),
            })
        }
        What::Made(message) => Relayed::AnchorState {
            track: track(message.track),
            state: AnchorState {
                available: message.able,
                layer: optional_layer(&message.layer)?,
                scale: narrow(message.scale, "scale")?,
                holds: Duration::from_micros(message.holds_us).min(MAX_SPAN),
                refused: refusal(&message.refused)?,
            },
        },
        What::Anchor(message) => Relayed::Anchor(Box::new(relayed_anchor_of(message, now)?)),
        What::KeyFrame(message) => {
            let layer = layer(&message.layer)?;
            Relayed::KeyFrame { track: track(message.track), layer }
        }
        What::Layers(proto::Layers { track: number, q, h, f }) => {
            Relayed::Layers { track: track(number), wanted: [q, h, f] }
        }
        What::Enhance(message) => {
            Relayed::Enhance { track: track(message.track), layer: optional_layer(&message.layer)? }
        }
        What::KeyAnchor(message) => Relayed::KeyAnchor { track: track(message.track) },
        What::BackupWanted(message) => Relayed::BackupWanted {
            track: track(message.track),
            // A newer version may know others.
            codecs: message.codecs.into_iter().take(MAX_CODECS).filter_map(known_codec).collect(),
        },
    };
    Ok(Some(RoomMessage { room: room.into(), relayed, who }))
}

fn person(participant: ParticipantId, who: Option<RelayedParticipant>) -> proto::Person {
    let RelayedParticipant { name, identity, was, attributes, age } = who.unwrap_or_default();
    proto::Person {
        participant: participant.0,
        name,
        identity,
        was,
        attributes: attributes.into_iter().collect(),
        age_s: age.as_secs(),
    }
}

fn participant_of(person: proto::Person) -> Result<RelayedParticipant, WireError> {
    let proto::Person { name, identity, was, attributes, age_s, .. } = person;
    let is_long = |text: &str| text.len() > MAX_NAME;
    if is_long(&name) || [&identity, &was].into_iter().flatten().any(|text| is_long(text)) {
        return Err(WireError::Field("name"));
    }
    let attributes: Attributes = attributes.into_iter().collect();
    if !attributes::are_valid(&attributes) {
        return Err(WireError::Field("attributes"));
    }
    Ok(RelayedParticipant { name, identity, was, attributes, age: Duration::from_secs(age_s) })
}

fn data_message(data: &RelayedData) -> proto::Data {
    let DataMessage { topic, content, reliable, number } = &*data.message;
    let content = match content {
        DataContent::Text(text) => proto::data::Content::Text(text.clone()),
        DataContent::Bytes(bytes) => proto::data::Content::Bytes(bytes.clone()),
    };
    proto::Data {
        from: data.from.0,
        seq: data.seq,
        to: data.to.iter().flatten().map(|id| id.0).collect(),
        topic: topic.clone(),
        content: Some(content),
        reliable: *reliable,
        number: *number,
    }
}

fn data_of(data: proto::Data) -> Result<RelayedData, WireError> {
    let proto::Data { from, seq, to, topic, content, reliable, number } = data;
    let content = match content {
        Some(proto::data::Content::Text(text)) => DataContent::Text(text),
        Some(proto::data::Content::Bytes(bytes)) => DataContent::Bytes(bytes),
        None => return Err(WireError::Field("content")),
    };
    let message = DataMessage { topic, content, reliable, number };
    if !message.is_valid() || to.len() > MAX_RECEIVERS {
        return Err(WireError::Field("data"));
    }
    let to = (!to.is_empty()).then(|| to.into_iter().map(ParticipantId).collect());
    Ok(RelayedData { from: ParticipantId(from), seq, to, message: Arc::new(message) })
}

fn relayed_anchor_message(relayed: &RelayedAnchor, now: Instant) -> proto::Anchor {
    let anchor = &relayed.anchor;
    proto::Anchor {
        track: relayed.track.0,
        layer: relayed.layer.rid().to_owned(),
        tapped: relayed.tapped.rid().to_owned(),
        age_us: micros(now.saturating_duration_since(anchor.arrival)),
        anchor: Some(anchor_message(anchor)),
    }
}

fn relayed_anchor_of(message: proto::Anchor, now: Instant) -> Result<RelayedAnchor, WireError> {
    let age = Duration::from_micros(message.age_us).min(MAX_SPAN);
    let anchor = message.anchor.ok_or(WireError::Field("anchor"))?;
    // The SFU numbers streams itself.
    let anchor = anchor_of(anchor, StreamId(0), now.checked_sub(age).unwrap_or(now))?;
    Ok(RelayedAnchor {
        track: TrackId(message.track),
        layer: layer(&message.layer)?,
        tapped: layer(&message.tapped)?,
        // The publisher's server has counted its stages.
        anchor: Anchor { times: StageTimes::default(), ..anchor },
    })
}

fn rid(layer: Option<Layer>) -> String {
    layer.map(Layer::rid).unwrap_or_default().to_owned()
}

/// The video codec with that number.
fn video_codec(number: u32) -> Result<VideoCodec, WireError> {
    known_codec(number).ok_or(WireError::Field("codec"))
}

/// The video codec with that number, if there is one.
fn known_codec(number: u32) -> Option<VideoCodec> {
    VideoCodec::ALL.into_iter().find(|codec| *codec as u32 == number)
}

/// The layer with that name; `None` for an empty name.
fn optional_layer(rid: &str) -> Result<Option<Layer>, WireError> {
    if rid.is_empty() { Ok(None) } else { layer(rid).map(Some) }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
