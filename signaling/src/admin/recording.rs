//! Recordings, by an operator's order.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_protocol::limits;

use super::error::{AdminError, AdminErrorCode};
use super::everywhere::RequestedAt;
use super::operator::Operator;
use super::rights::moderation;
use crate::rights::Recording;
use crate::shared::Shared;
use crate::{record as recorded, recordings};

/// Settings of a new recording.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Id of the only participant to record, also after it comes back with its identity. By default all are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    participant: Option<String>,
    /// Whether enhanced pictures are made too, in files of their own, when the recording has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    enhanced: bool,
}

/// The recording of a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoomRecording {
    /// Name of the recording and of its folder.
    recording: String,
    /// Time of the order to record, in seconds since 1970.
    started: f64,
    /// Identity, or else id, of the only participant that is recorded; absent: all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    participant: Option<String>,
    /// Whether enhanced pictures are made too, when the recording has ended.
    enhanced: bool,
}

fn seen(room: &str, recording: Recording) -> RoomRecording {
    let Recording { since, participant, enhanced } = recording;
    let recording = recordings::name(room, since);
    RoomRecording { recording, started: since as f64 / 1000.0, participant, enhanced }
}

/// Record a room, or one of its participants: tracks as they come, on the servers where they are published. Everybody
/// in the room is told.
#[utoipa::path(post, path = "/admin/rooms/{room}/recording", tag = "rooms", request_body = Record,
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "The recording, also one that ran already", body = RoomRecording), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn record(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    RequestedAt(since): RequestedAt,
    room: Result<Path<String>, PathRejection>,
    wanted: Result<Json<Record>, JsonRejection>,
) -> Result<Json<RoomRecording>, AdminError> {
    let (Path(room), Json(wanted)) = (room?, wanted?);
    let malformed = |message: String| AdminError::new(AdminErrorCode::Malformed, message);
    limits::check_room(&room).map_err(|e| malformed(e.message))?;
    if shared.services.recorder.is_none() {
        let message = "this server records nothing: it has no option `record-to`";
        return Err(AdminError::new(AdminErrorCode::NoRecorder, message));
    }
    let unknown = |code| AdminError::new(code, "there is no such room, or nobody of that id in it");
    let state = shared.directory.room(&room).filter(|state| !state.present.is_empty());
    let state = state.ok_or_else(|| unknown(AdminErrorCode::UnknownRoom))?;
    let participant = match wanted.participant {
        None => None,
        Some(id) => {
            let mut present = state.present.into_iter();
            let one = present.find(|present| present.id.to_string() == id);
            let one = one.ok_or_else(|| unknown(AdminErrorCode::UnknownParticipant))?;
            Some(one.info.identity.unwrap_or(id))
        }
    };
    let ordered = Recording { since, participant, enhanced: wanted.enhanced };
    let recording = moderation(&shared, &room).record(ordered)?;
    if let Some(error) = recorded::follow(&shared).await.remove(&room) {
        return Err(AdminError::new(AdminErrorCode::NotWritable, error));
    }
    tracing::info!("recording ordered by operator");
    Ok(Json(seen(&room, recording)))
}

/// Show the recording of a room.
#[utoipa::path(get, path = "/admin/rooms/{room}/recording", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "The recording", body = RoomRecording), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn recording(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<RoomRecording>, AdminError> {
    let Path(room) = room?;
    let recording = moderation(&shared, &room).recording().ok_or_else(not_recorded)?;
    Ok(Json(seen(&room, recording)))
}

/// End the recording of a room.
#[utoipa::path(delete, path = "/admin/rooms/{room}/recording", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 204, description = "It has ended"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn end_recording(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path(room) = room?;
    let moderation = moderation(&shared, &room);
    moderation.recording().ok_or_else(not_recorded)?;
    moderation.end_recording()?;
    recorded::follow(&shared).await;
    tracing::info!("recording ended by operator");
    Ok(StatusCode::NO_CONTENT)
}

fn not_recorded() -> AdminError {
    AdminError::new(AdminErrorCode::NotRecorded, "the room is not recorded")
}
