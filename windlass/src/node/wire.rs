//! What servers that share rooms tell each other, as messages of the relay's protocol and back. What makes no sense is a [`WireError`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_cluster::relay::message::What;
use windlass_cluster::relay::{self, Message};
use windlass_cluster::wire::{WireError, layer, micros, narrow, refusal, source, source_name};
use windlass_sfu::{
    AnchorState, Kind, ParticipantId, Publish, Relayed, RelayedAnchor, RelayedPacket, RelayedTrack,
    TrackId,
};
use windlass_types::{Anchor, Epoch, Layer, Refusal, StageTimes, StreamId};

/// Sequence numbers of publishers begin with sixteen bits; greater ones are of no real stream.
const MOST_SEQ: u64 = 1 << 48;
/// The longest payload of a packet.
const MOST_PACKET: usize = 2_048;
/// The longest name of a participant, or room, and identity.
const MOST_NAME: usize = 512;

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The name to show.
    pub name: String,
    /// By its token.
    pub identity: Option<String>,
    /// Its id at the server that its room was on before, by its own word.
    pub was: Option<String>,
    /// How long it has been in its room, in seconds.
    pub age_s: u64,
}

/// What another server says.
#[derive(Debug)]
pub struct Said {
    /// Of which room.
    pub room: Arc<str>,
    /// What.
    pub relayed: Relayed,
    /// Who that is, where somebody has joined.
    pub joined: Option<Who>,
}

/// A message of a room; `who`: whoever has joined.
pub fn to_message(room: &str, relayed: &Relayed, who: Option<Who>, now: Instant) -> Message {
    let nothing = || relay::Nothing {};
    let what = match relayed {
        Relayed::Begin => What::Begin(nothing()),
        Relayed::End => What::End(nothing()),
        Relayed::Joined { participant } => {
            let Who { name, identity, was, age_s } =
                who.unwrap_or(Who { name: String::new(), identity: None, was: None, age_s: 0 });
            What::Joined(relay::Person { participant: participant.0, name, identity, was, age_s })
        }
        Relayed::Left { participant } => What::Left(participant.0),
        Relayed::Track(track) => What::Track(relay::Track {
            track: track.track.0,
            participant: track.participant.0,
            video: track.kind == Kind::Video,
            name: track.name.clone(),
            muted: track.muted,
        }),
        Relayed::TrackRemoved { track } => What::TrackRemoved(track.0),
        Relayed::TrackMuted { track, muted } => {
            What::TrackMuted(relay::Muted { track: track.0, muted: *muted })
        }
        Relayed::Packet(packet) => What::Packet(relay::Packet {
            track: packet.track.0,
            layer: rid(packet.layer),
            seq: packet.seq,
            timestamp: packet.timestamp,
            marker: packet.marker,
            level: packet.level.map(i32::from),
            voice: packet.voice,
            blocks: packet.blocks.map(u32::from),
            payload: Bytes::copy_from_slice(&packet.payload),
        }),
        Relayed::AnchorState { track, state } => What::Made(relay::Made {
            track: track.0,
            able: state.available,
            layer: rid(state.layer),
            scale: state.scale.into(),
            holds_us: micros(state.holds),
            refused: state.refused.map_or("", Refusal::name).to_owned(),
        }),
        Relayed::Anchor(anchor) => What::Anchor(anchor_message(anchor, now)),
        Relayed::KeyFrame { track, layer } => {
            What::KeyFrame(relay::KeyFrame { track: track.0, layer: layer.rid().to_owned() })
        }
        Relayed::Layers { track, wanted: [q, h, f] } => {
            What::Layers(relay::Layers { track: track.0, q: *q, h: *h, f: *f })
        }
        Relayed::Enhance { track, layer } => {
            What::Enhance(relay::Enhance { track: track.0, layer: rid(*layer) })
        }
        Relayed::WholeAnchor { track } => What::WholeAnchor(relay::WholeAnchor { track: track.0 }),
    };
    Message { room: room.to_owned(), what: Some(what) }
}

/// What a message says; `Ok(None)`: something that newer servers say.
pub fn of_message(message: Message, now: Instant) -> Result<Option<Said>, WireError> {
    let Message { room, what } = message;
    if room.is_empty() || room.len() > MOST_NAME {
        return Err(WireError::Field("room"));
    }
    let mut joined = None;
    let Some(what) = what else { return Ok(None) };
    let track = TrackId;
    let relayed = match what {
        What::Begin(_) => Relayed::Begin,
        What::End(_) => Relayed::End,
        What::Joined(relay::Person { participant, name, identity, was, age_s }) => {
            let long = |text: &str| text.len() > MOST_NAME;
            if long(&name) || [&identity, &was].into_iter().flatten().any(|text| long(text)) {
                return Err(WireError::Field("name"));
            }
            joined = Some(Who { name, identity, was, age_s });
            Relayed::Joined { participant: ParticipantId(participant) }
        }
        What::Left(participant) => Relayed::Left { participant: ParticipantId(participant) },
        What::Track(told) => {
            if told.name.len() > Publish::MAX_NAME {
                return Err(WireError::Field("name"));
            }
            Relayed::Track(RelayedTrack {
                track: track(told.track),
                participant: ParticipantId(told.participant),
                kind: if told.video { Kind::Video } else { Kind::Audio },
                name: told.name,
                muted: told.muted,
            })
        }
        What::TrackRemoved(number) => Relayed::TrackRemoved { track: track(number) },
        What::TrackMuted(told) => {
            Relayed::TrackMuted { track: track(told.track), muted: told.muted }
        }
        What::Packet(packet) => {
            if packet.seq > MOST_SEQ || packet.payload.len() > MOST_PACKET {
                return Err(WireError::Field("packet"));
            }
            Relayed::Packet(RelayedPacket {
                track: track(packet.track),
                layer: any_layer(&packet.layer)?,
                seq: packet.seq,
                timestamp: packet.timestamp,
                marker: packet.marker,
                level: packet.level.map(|level| narrow(level, "level")).transpose()?,
                voice: packet.voice,
                blocks: packet.blocks.map(|pt| narrow(pt, "blocks")).transpose()?,
                payload: packet.payload.as_ref().into(),
            })
        }
        What::Made(told) => Relayed::AnchorState {
            track: track(told.track),
            state: AnchorState {
                available: told.able,
                layer: any_layer(&told.layer)?,
                scale: narrow(told.scale, "scale")?,
                holds: Duration::from_micros(told.holds_us).min(MOST_SPAN),
                refused: refusal(&told.refused)?,
            },
        },
        What::Anchor(told) => Relayed::Anchor(Box::new(anchor_of(told, now)?)),
        What::KeyFrame(told) => {
            let layer = layer(&told.layer)?;
            Relayed::KeyFrame { track: track(told.track), layer }
        }
        What::Layers(relay::Layers { track: number, q, h, f }) => {
            Relayed::Layers { track: track(number), wanted: [q, h, f] }
        }
        What::Enhance(told) => {
            Relayed::Enhance { track: track(told.track), layer: any_layer(&told.layer)? }
        }
        What::WholeAnchor(told) => Relayed::WholeAnchor { track: track(told.track) },
    };
    Ok(Some(Said { room: room.into(), relayed, joined }))
}

/// No anchor is older, and none may take longer.
const MOST_SPAN: Duration = Duration::from_secs(10);

fn anchor_message(relayed: &RelayedAnchor, now: Instant) -> relay::Anchor {
    let anchor = &relayed.anchor;
    relay::Anchor {
        track: relayed.track.0,
        layer: relayed.layer.rid().to_owned(),
        tapped: relayed.tapped.rid().to_owned(),
        age_us: micros(now.saturating_duration_since(anchor.arrival)),
        epoch: anchor.epoch.0.into(),
        rtp_timestamp: anchor.rtp_timestamp,
        source: source_name(anchor.source).to_owned(),
        codec: anchor.codec.into(),
        tiled: anchor.tiled,
        width: anchor.width.into(),
        height: anchor.height.into(),
        beyond_prior: anchor.beyond_prior,
        payload: anchor.payload.clone(),
    }
}

fn anchor_of(told: relay::Anchor, now: Instant) -> Result<RelayedAnchor, WireError> {
    let age = Duration::from_micros(told.age_us).min(MOST_SPAN);
    Ok(RelayedAnchor {
        track: TrackId(told.track),
        layer: layer(&told.layer)?,
        tapped: layer(&told.tapped)?,
        anchor: Anchor {
            // The SFU has a number of its own for it.
            stream: StreamId(0),
            epoch: Epoch(narrow(told.epoch, "epoch")?),
            rtp_timestamp: told.rtp_timestamp,
            arrival: now.checked_sub(age).unwrap_or(now),
            source: source(&told.source)?,
            codec: narrow(told.codec, "codec")?,
            tiled: told.tiled,
            width: narrow(told.width, "width")?,
            height: narrow(told.height, "height")?,
            beyond_prior: told.beyond_prior,
            payload: told.payload,
            times: StageTimes::default(),
        },
    })
}

fn rid(layer: Option<Layer>) -> String {
    layer.map(Layer::rid).unwrap_or_default().to_owned()
}

/// One that may be none.
fn any_layer(rid: &str) -> Result<Option<Layer>, WireError> {
    if rid.is_empty() { Ok(None) } else { layer(rid).map(Some) }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
