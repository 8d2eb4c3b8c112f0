//! What receivers are told.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;
use windlass_protocol::TrackKind;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// The first participant came into a room.
    RoomStarted,
    /// The last one left it.
    RoomFinished,
    /// Somebody came.
    ParticipantJoined,
    /// Somebody left; their tracks ended before.
    ParticipantLeft,
    /// Somebody sends a track.
    TrackPublished,
    /// A track ended.
    TrackUnpublished,
}

/// The body of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Event {
    /// The same at each attempt; also in the header `webhook-id`.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub what: What,
    /// When, in seconds since 1970.
    pub at: f64,
    /// In which room.
    pub room: String,
    /// Whose doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<EventParticipant>,
    /// Which track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track: Option<EventTrack>,
}

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EventParticipant {
    /// The id, as in signalling.
    pub id: String,
    /// Who that is by an access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The name that is shown.
    pub name: String,
}

/// A track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EventTrack {
    /// The id, as in signalling.
    pub id: String,
    /// `video` or `audio`.
    #[schema(value_type = String)]
    pub kind: TrackKind,
    /// The publisher's name for it.
    pub name: String,
}

impl Event {
    /// Something that has just happened in a room.
    pub(crate) fn now(what: What, room: &str) -> Event {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Event {
            id: format!("evt_{:032x}", rand::random::<u128>()),
            what,
            at: (at.as_millis() as f64) / 1000.0,
            room: room.to_owned(),
            participant: None,
            track: None,
        }
    }

    pub(super) fn body(&self) -> String {
        // Nothing in it can fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
