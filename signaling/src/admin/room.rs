//! Rooms, with their participants and tracks.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_protocol::{Grant, TrackKind, limits};
use windlass_sfu::{ParticipantId, TrackId};
use windlass_types::{AnchorPolicy, Rung};

use super::error::{AdminError, AdminErrorCode};
use super::operator::Operator;
use super::rights;
use crate::directory::{GivenRung, OwnTrack, Present, RoomSettings, RoomState};
use crate::rights::Entry;
use crate::shared::Shared;

/// An operator's settings of a room. Absent settings have the values of the server's configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RoomSettings)]
pub(crate) struct Settings {
    /// Maximum number of participants. The server's own bound holds too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    max_participants: Option<usize>,
    /// Policy by which anchors are chosen, such as `cost-effective`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    policy: Option<AnchorPolicy>,
}

/// All rooms.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rooms {
    /// The rooms, by name. Loopback rooms are called `loopback/` and the participant's id.
    rooms: Vec<Summary>,
}

/// A room in short.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RoomSummary)]
pub(crate) struct Summary {
    /// Name of the room.
    room: String,
    /// Number of participants.
    participants: usize,
    /// Number of published tracks.
    tracks: usize,
    #[serde(flatten)]
    settings: Settings,
}

/// A room, with its participants and tracks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoomDetails {
    /// Name of the room.
    room: String,
    #[serde(flatten)]
    settings: Settings,
    /// Participants of the room, the first one first.
    participants: Vec<Participant>,
}

/// A participant of a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Participant {
    /// Id of the participant, as in signalling.
    id: String,
    /// Identity in the participant's access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// The display name.
    name: String,
    /// Time at which the participant joined, in seconds since 1970.
    since: u64,
    /// Grants of the participant.
    grants: Vec<Grant>,
    /// Tracks that the participant publishes.
    tracks: Vec<Track>,
    /// Rungs that the participant receives of others' video.
    receives: Vec<Receives>,
}

/// A published track.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Track {
    /// Id of the track, as in signalling.
    id: String,
    /// Kind of the track: `video` or `audio`.
    kind: TrackKind,
    /// Name that the publisher gives the track.
    name: String,
    /// Whether the track is muted: it is not forwarded.
    muted: bool,
    /// Whether an operator muted the track, so that its publisher cannot unmute it.
    muted_by_operator: bool,
}

/// The rung that a participant receives of a track.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Receives {
    /// Id of the track.
    track: String,
    /// The rung: `q`, `q+`, `h`, `h+` or `f`.
    #[schema(value_type = String)]
    rung: Rung,
    /// Width of the rung's layer in pixels.
    width: u16,
    /// Height of the rung's layer in pixels.
    height: u16,
}

/// Whether a track is muted by an operator.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Muted {
    /// True: the track is muted until an operator unmutes it. False: its publisher decides.
    muted: bool,
}

/// List the rooms. Needs a token for `*`.
#[utoipa::path(get, path = "/admin/rooms", operation_id = "list_rooms", tag = "rooms",
    responses((status = 200, description = "All rooms", body = Rooms), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn list(_: Operator, State(shared): State<Arc<Shared>>) -> Json<Rooms> {
    let rooms = shared.directory.rooms().into_iter();
    let rooms = rooms.map(|(room, seen)| Summary {
        room,
        participants: seen.present.len(),
        tracks: seen.present.iter().map(|p| p.tracks.len()).sum(),
        settings: settings(&seen.settings),
    });
    Json(Rooms { rooms: rooms.collect() })
}

/// Show a room.
#[utoipa::path(get, path = "/admin/rooms/{room}", operation_id = "get_room", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "The room", body = RoomDetails), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn show(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<RoomDetails>, AdminError> {
    let Path(room) = room?;
    see(&shared, room).map(Json)
}

/// Create a room, or replace its settings. No participant is removed.
/// The room exists until it is deleted or the server stops.
#[utoipa::path(put, path = "/admin/rooms/{room}", operation_id = "configure_room", tag = "rooms", request_body = Settings,
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "The room as it is now", body = RoomDetails), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn configure(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
    wanted: Result<Json<Settings>, JsonRejection>,
) -> Result<Json<RoomDetails>, AdminError> {
    let (Path(room), Json(wanted)) = (room?, wanted?);
    let malformed = |message: String| AdminError::new(AdminErrorCode::Malformed, message);
    limits::check_room(&room).map_err(|e| malformed(e.message))?;
    if wanted.max_participants == Some(0) {
        return Err(malformed("`max_participants` must be at least 1".to_owned()));
    }
    let Settings { max_participants, policy } = wanted;
    if !shared.directory.configure(&room, RoomSettings { max_participants, policy, kept: true }) {
        let message = "too many rooms have settings of their own";
        return Err(AdminError::new(AdminErrorCode::TooManyRooms, message));
    }
    if !shared.services.sfu.set_policy(Some(room.clone()), policy).await? {
        let message = "too many rooms have policies of their own";
        return Err(AdminError::new(AdminErrorCode::TooManyRooms, message));
    }
    tracing::info!(?max_participants, ?policy, "room configured");
    see(&shared, room).map(Json)
}

/// End a room: its participants are removed, and its settings are deleted.
#[utoipa::path(delete, path = "/admin/rooms/{room}", operation_id = "close_room", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 204, description = "It has ended"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn close(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path(room) = room?;
    let seen = shared.directory.room(&room).ok_or_else(unknown_room)?;
    shared.directory.configure(&room, RoomSettings::default());
    shared.services.sfu.set_policy(Some(room.clone()), None).await?;
    let moderation = rights::moderation(&shared, &room);
    moderation.set_entry(Entry::default(), None)?;
    for participant in seen.present {
        take_out(&shared, &room, participant.id).await?;
    }
    tracing::info!("room closed");
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a participant. Its client does not rejoin by itself, but may with a valid token.
#[utoipa::path(delete, path = "/admin/rooms/{room}/participants/{participant}", operation_id = "remove_participant", tag = "rooms",
    params(("room" = String, Path, description = "The room's name"),
        ("participant" = String, Path, description = "The participant's id")),
    responses((status = 204, description = "It is removed"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn remove(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path((room, participant)) = path?;
    shared.directory.room(&room).ok_or_else(unknown_room)?;
    rights::moderation(&shared, &room).remove(&participant)?;
    tracing::info!("participant removed by operator");
    Ok(StatusCode::NO_CONTENT)
}

/// Mute or unmute a track.
#[utoipa::path(put, path = "/admin/rooms/{room}/tracks/{track}/muted", operation_id = "mute_track", tag = "rooms", request_body = Muted,
    params(("room" = String, Path, description = "The room's name"),
        ("track" = String, Path, description = "The track's id")),
    responses((status = 200, description = "The track as it is now", body = Track), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn mute(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    wanted: Result<Json<Muted>, JsonRejection>,
) -> Result<Json<Track>, AdminError> {
    let (Path((room, track)), Json(wanted)) = (path?, wanted?);
    shared.directory.room(&room).ok_or_else(unknown_room)?;
    let unknown =
        || AdminError::new(AdminErrorCode::UnknownTrack, "there is no such track in the room");
    let id: TrackId = track.parse().map_err(|_| unknown())?;
    let own = shared.directory.hold(&room, id, wanted.muted).ok_or_else(unknown)?;
    tracing::info!(track = %id, muted = wanted.muted, "track muted by operator");
    Ok(Json(self::track(id, own)))
}

/// Removes a participant, and does not wait until it has left. Returns `false` if it is not in the room.
async fn take_out(shared: &Shared, room: &str, id: ParticipantId) -> Result<bool, AdminError> {
    let ordered = shared.directory.remove(room, id);
    if ordered {
        shared.services.sfu.leave(id).await?;
    }
    Ok(ordered)
}

fn see(shared: &Shared, room: String) -> Result<RoomDetails, AdminError> {
    let RoomState { settings: set, mut present } =
        shared.directory.room(&room).ok_or_else(unknown_room)?;
    present.sort_by_key(|p| (p.since, p.id));
    let participants = present.into_iter().map(participant).collect();
    Ok(RoomDetails { room, settings: settings(&set), participants })
}

fn unknown_room() -> AdminError {
    AdminError::new(AdminErrorCode::UnknownRoom, "there is no such room")
}

fn settings(set: &RoomSettings) -> Settings {
    Settings { max_participants: set.max_participants, policy: set.policy }
}

fn participant(present: Present) -> Participant {
    let receives = present.rungs.into_iter();
    Participant {
        id: present.id.to_string(),
        identity: present.info.identity,
        name: present.info.name,
        since: present.since,
        grants: present.grants.list(),
        tracks: present.tracks.into_iter().map(|(id, own)| track(id, own)).collect(),
        receives: receives
            .map(|(track, GivenRung { rung, size })| Receives {
                track: track.to_string(),
                rung,
                width: size.width,
                height: size.height,
            })
            .collect(),
    }
}

fn track(id: TrackId, own: OwnTrack) -> Track {
    Track {
        id: id.to_string(),
        kind: own.kind,
        name: own.name,
        muted: own.muted,
        muted_by_operator: own.held,
    }
}
