//! Events of webhooks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;
use windlass_protocol::{TrackKind, described};

use crate::recordings::EventRecording;

described! {
    /// Kind of an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum EventType {
        /// The first participant has joined.
        RoomStarted,
        /// A participant has joined. Has `participant`.
        ParticipantJoined,
        /// A participant sends a track: the offer with it was answered. Has `participant` and `track`.
        TrackPublished,
        /// The track is no longer offered, or its publisher leaves. Has `participant` and `track`.
        TrackUnpublished,
        /// A participant left, or was removed, replaced or lost. Has `participant`.
        ParticipantLeft,
        /// The last participant has left.
        RoomFinished,
        /// A server has begun to record the room. Has `recording`.
        RecordingStarted,
        /// The files of a recording are complete, or it could not begin or go on. Has `recording`.
        RecordingEnded,
        /// The enhanced pictures of an ended recording are made, or cannot be made. Has `recording`.
        RecordingEnhanced,
        /// The store has the files of an ended recording, and the server no longer. Has `recording`.
        RecordingStored,
    }
}

/// The body of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Event {
    /// Id of the event, the same in all attempts; also in the header `webhook-id`.
    pub id: String,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub what: EventType,
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
    pub(crate) fn now(what: EventType, room: &str) -> Event {
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
