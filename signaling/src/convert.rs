//! Conversion between the SFU's types and the protocol's.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_protocol::{
    Base64, ErrorCode, LayerKnobs, Offer, Participant, ProtocolError, Report, ServerMessage, Track,
    TrackStats,
};
use windlass_sfu::{
    AnchorReport, DataContent, DataError, DataMessage, Delivery, DisconnectReason, NetworkReport,
    ParticipantId, Publish, SfuEvent, Subscribe, TrackId, TrackInfo, TrackReport,
};
use windlass_types::Layer;

use crate::directory::{Agreed, Directory, GivenRung, Published};
use crate::session::action::{EnterError, ParticipantInfo};
use crate::session::config::close;

/// The track with an id from a message, if it is `known`.
pub(crate) fn track_id(
    track: &str,
    known: impl Fn(&TrackId) -> bool,
) -> Result<TrackId, ProtocolError> {
    let id = parse_track(track)?;
    if known(&id) { Ok(id) } else { Err(unknown_track(track)) }
}

/// An offer for the SFU, which checks whether tracks exist; malformed ids are refused here.
pub(crate) fn offer(offer: Offer) -> Result<windlass_sfu::Offer, ProtocolError> {
    let publish = offer.publish.into_iter();
    let publish = publish.map(|p| Publish {
        mid: p.mid,
        kind: p.kind,
        name: p.name,
        max: p.max,
        encrypted: p.encrypted,
        backup_of: p.backup_of,
    });
    let publish = publish.collect();
    let subscribe = offer.subscribe.into_iter();
    let subscribe = subscribe
        .map(|s| Ok(Subscribe { mid: s.mid, track: parse_track(&s.track)?, max: s.max }))
        .collect::<Result<_, ProtocolError>>()?;
    Ok(windlass_sfu::Offer { sdp: offer.sdp, publish, subscribe })
}

fn parse_track(track: &str) -> Result<TrackId, ProtocolError> {
    track.parse().map_err(|_| unknown_track(track))
}

fn unknown_track(track: &str) -> ProtocolError {
    ProtocolError::new(ErrorCode::UnknownTrack, format!("there is no track `{track}`"))
}

pub(crate) fn track(info: TrackInfo) -> Track {
    Track {
        id: info.track.to_string(),
        participant: info.participant.to_string(),
        kind: info.kind,
        name: info.name,
        muted: info.muted,
        encrypted: info.encrypted,
        stream: info.stream.map(|s| s.0),
    }
}

/// A participant as `welcome` describes it.
pub(crate) fn participant(id: ParticipantId, info: ParticipantInfo) -> Participant {
    let ParticipantInfo { name, identity, was, attributes } = info;
    Participant { id: id.to_string(), name, identity, was, attributes }
}

pub(crate) fn joined(id: ParticipantId, info: ParticipantInfo) -> ServerMessage {
    let ParticipantInfo { name, identity, was, attributes } = info;
    let participant = id.to_string();
    ServerMessage::ParticipantJoined { participant, name, identity, was, attributes }
}

pub(crate) fn changed(id: ParticipantId, info: ParticipantInfo) -> ServerMessage {
    let ParticipantInfo { name, attributes, .. } = info;
    ServerMessage::ParticipantChanged { participant: id.to_string(), name, attributes }
}

pub(crate) fn data(delivery: &Delivery) -> ServerMessage {
    let (text, bytes) = match &delivery.message.content {
        DataContent::Text(text) => (Some(text.clone()), None),
        DataContent::Bytes(bytes) => (None, Some(Base64(bytes.to_vec()))),
    };
    let DataMessage { topic, number, .. } = &*delivery.message;
    let (from, seq) = (delivery.from.to_string(), delivery.seq);
    ServerMessage::Data { from, seq, number: *number, topic: topic.clone(), text, bytes }
}

pub(crate) fn stats(tracks: &[windlass_sfu::TrackStats]) -> ServerMessage {
    let tracks = tracks
        .iter()
        .map(|t| TrackStats {
            track: t.track.to_string(),
            video_bitrate: t.media_bitrate,
            anchor_bitrate: t.anchor_bitrate,
            anchors_per_s: t.anchors_per_s,
            anchors_dropped: t.anchors_dropped,
            refused: t.refused,
        })
        .collect();
    ServerMessage::Stats { tracks }
}

pub(crate) fn knobs(track: TrackId, layers: Vec<(Layer, LayerKnobs)>) -> ServerMessage {
    let layers = layers.into_iter().collect();
    ServerMessage::Knobs { track: track.to_string(), layers }
}

/// A client's report, as the SFU takes it.
pub(crate) fn report(report: &Report) -> TrackReport {
    let anchors = AnchorReport {
        used: report.anchors_used,
        late: report.anchors_late,
        lost: report.anchors_lost,
        duplicate: report.anchors_duplicate,
        former_epoch: report.anchors_former_epoch,
    };
    let network = NetworkReport { network: report.network, absence: report.no_network };
    TrackReport { anchors, decay: report.anchor_decay, network }
}

pub(crate) fn regions(track: TrackId, request: &windlass_sfu::RegionRequest) -> ServerMessage {
    ServerMessage::Regions {
        track: track.to_string(),
        id: request.id,
        width: request.size.width,
        height: request.size.height,
        scale: request.scale,
        tiles: BASE64.encode(&request.tiles),
        bytes: request.bytes,
    }
}

pub(crate) fn enter_error(error: EnterError) -> ProtocolError {
    use windlass_sfu::JoinError as E;
    let error = match error {
        EnterError::Access(error) => return error.into(),
        EnterError::Denied(out) => return out.into(),
        EnterError::Refused(refused) => {
            return ProtocolError::new(ErrorCode::RateLimited, refused.to_string());
        }
        EnterError::Join(error) => error,
    };
    let code = match error {
        E::RoomFull => ErrorCode::RoomFull,
        E::ServerFull => ErrorCode::ServerFull,
        E::AlreadyJoined => ErrorCode::AlreadyJoined,
        E::Draining | E::Closed => ErrorCode::ShuttingDown,
    };
    ProtocolError::new(code, error.to_string())
}

pub(crate) fn offer_error(error: &windlass_sfu::OfferError) -> ProtocolError {
    use windlass_sfu::OfferError as E;
    let code = match error {
        E::NotJoined => ErrorCode::NotJoined,
        E::BadSdp(_) | E::BadMid { .. } | E::PayloadType { .. } => ErrorCode::BadSdp,
        E::NoCodec { .. } => ErrorCode::NoCodec,
        E::UnknownTrack { .. } => ErrorCode::UnknownTrack,
        E::TooManyTracks => ErrorCode::RoomFull,
        E::TooLarge | E::TooManyLines { .. } => ErrorCode::TooLarge,
        E::NotAllowed(_) => ErrorCode::Forbidden,
        E::SubscribedTwice { .. } => ErrorCode::Malformed,
        E::Fault => ErrorCode::Internal,
        E::Closed => ErrorCode::ShuttingDown,
    };
    ProtocolError::new(code, error.to_string())
}

pub(crate) fn data_error(error: DataError) -> ProtocolError {
    let code = match error {
        DataError::NotJoined => ErrorCode::NotJoined,
        DataError::Limited => ErrorCode::RateLimited,
        DataError::Closed => ErrorCode::ShuttingDown,
    };
    ProtocolError::new(code, error.to_string())
}

/// The error and close code for a client that the SFU removed.
pub(crate) fn ended(why: DisconnectReason) -> (ProtocolError, u16) {
    let (code, message, closed) = match why {
        DisconnectReason::Left | DisconnectReason::Lost => {
            (ErrorCode::Internal, "the media connection was lost", close::MEDIA_LOST)
        }
        DisconnectReason::Fault => {
            let message = "a fault of the server ended the media connection: join again";
            (ErrorCode::Internal, message, close::MEDIA_LOST)
        }
        DisconnectReason::NeverConnected => {
            (ErrorCode::NoMedia, "no media connection came up in time", close::MEDIA_LOST)
        }
        DisconnectReason::Flood => {
            let message = "what the media connection sent took too much of the server";
            (ErrorCode::RateLimited, message, close::REFUSED)
        }
        DisconnectReason::TooManyChannels => {
            (ErrorCode::TooLarge, "more data channels than a client may open", close::REFUSED)
        }
    };
    (ProtocolError::new(code, message), closed)
}

/// The publish and subscribe lists of an offer, kept until its answer is known.
pub(crate) struct Lists {
    published: Vec<Publish>,
    subscribed: BTreeSet<TrackId>,
}

impl Lists {
    /// Keeps the lists of an offer.
    pub(crate) fn of(offer: &windlass_sfu::Offer) -> Lists {
        Lists {
            published: offer.publish.clone(),
            subscribed: offer.subscribe.iter().map(|s| s.track).collect(),
        }
    }

    /// The agreed tracks, with the ids in the answer.
    pub(crate) fn agreed(self, answer: &windlass_sfu::Answer) -> Agreed {
        // A backup is part of its track.
        let tracks = self.published.into_iter().filter(|section| section.backup_of.is_none());
        let published = tracks.filter_map(|section| {
            let (_, track) = answer.tracks.iter().find(|(mid, _)| *mid == section.mid)?;
            Some(Published { track: *track, kind: section.kind, name: section.name })
        });
        Agreed { published: published.collect(), subscribed: self.subscribed }
    }
}

/// Reports a participant's rungs to the directory.
pub(crate) fn note(directory: &Directory, id: ParticipantId, event: &SfuEvent) {
    match *event {
        SfuEvent::RungChanged { track, rung, size, .. } => {
            directory.set_rung(id, track, Some(GivenRung { rung, size }));
        }
        SfuEvent::TrackRemoved { track } => directory.set_rung(id, track, None),
        _ => {}
    }
}
