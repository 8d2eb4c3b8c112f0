//! Events of webhooks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;
use windlass_protocol::TrackKind;

use crate::recordings::EventRecording;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EventType)]
pub(crate) enum What {
    /// The first participant joined a room.
    RoomStarted,
    /// The last participant left a room.
    RoomFinished,
    /// A participant joined.
    ParticipantJoined,
    /// A participant left; its tracks were unpublished before.
    ParticipantLeft,
    /// A track was published.
    TrackPublished,
    /// A track was unpublished.
    TrackUnpublished,
    /// A server has begun to record a room, or a participant of it.
    RecordingStarted,
    /// A server's recording of a room has ended, or could not begin.
    RecordingEnded,
}

/// The body of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Event {
    /// Id of the event, the same in all attempts; also in the header `webhook-id`.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub what: What,
    /// Time of the event, in seconds since 1970.
    pub at: f64,
    /// The room.
    pub room: String,
    /// The participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<EventParticipant>,
    /// The track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track: Option<EventTrack>,
    /// The recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<EventRecording>,
}

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EventParticipant {
    /// The id, as in signalling.
    pub id: String,
    /// The identity in its access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The display name.
    pub name: String,
}

/// A track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EventTrack {
    /// The id, as in signalling.
    pub id: String,
    /// `video` or `audio`.
    pub kind: TrackKind,
    /// The publisher's name for it.
    pub name: String,
}

impl Event {
    /// An event in a room, of now.
    pub(crate) fn now(what: What, room: &str) -> Event {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Event {
            id: format!("evt_{:032x}", rand::random::<u128>()),
            what,
            at: (at.as_millis() as f64) / 1000.0,
            room: room.to_owned(),
            participant: None,
            track: None,
            recording: None,
        }
    }

    pub(super) fn body(&self) -> String {
        // Nothing in it can fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
