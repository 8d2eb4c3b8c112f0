//! Events of webhooks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;
use windlass_protocol::TrackKind;

use crate::recordings::EventRecording;

/// Kind of an event.
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
    /// The enhanced pictures of a recording that has ended are made, or cannot be made.
    RecordingEnhanced,
    /// The store has the files of a recording that has ended, and the server has them no longer.
    RecordingStored,
}

/// The body of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Event {
    /// Id of the event, the same in all attempts; also in the header `webhook-id`.
    pub id: String,
    /// Kind of the event.
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
    /// Id of the participant, as in signalling.
    pub id: String,
    /// Identity in the participant's access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Display name of the participant.
    pub name: String,
}

/// A track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EventTrack {
    /// Id of the track, as in signalling.
    pub id: String,
    /// Kind of the track: `video` or `audio`.
    pub kind: TrackKind,
    /// Name that the publisher gives the track.
    pub name: String,
}

impl Event {
    /// An event in a room that happens now.
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
        // An event has no part that can fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
