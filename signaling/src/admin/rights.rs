//! Rights while a call runs: operators may do in each room what moderators may in theirs.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_protocol::{Grant, limits};

use super::error::{AdminError, AdminErrorCode};
use super::operator::Operator;
use crate::access::ALL_ROOMS;
use crate::rights::{Entry, Moderation};
use crate::shared::Shared;

/// Restrictions of entering a room.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoomEntry {
    /// New participants are refused, except moderators and participants that return.
    #[serde(default)]
    locked: bool,
    /// New participants wait until a moderator or operator admits them.
    #[serde(default)]
    lobby: bool,
    /// Minimum time in seconds, even if the room is empty; by default until five minutes after the last participant
    /// left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
}

/// What a participant may do.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetGrants {
    /// The participant's grants from now on, of `publish`, `subscribe`, `enhance` and `data`. The token's other grants
    /// stay.
    grants: Vec<Grant>,
}

/// A duration.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Period)]
pub(crate) struct Duration {
    /// Duration in seconds. By default until all tokens that were used have expired, and at least a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
}

/// All bans of a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bans {
    /// The bans, sorted by identity.
    bans: Vec<Ban>,
}

/// A ban of an identity from a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ban {
    /// The identity.
    identity: String,
    /// Time at which the ban ends, in seconds since 1970.
    until: u64,
}

/// The lobby of a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Lobby {
    /// The participants in the lobby, the first one first.
    waiting: Vec<Waits>,
}

/// A participant in a lobby.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Waiting)]
pub(crate) struct Waits {
    /// Id by which the participant is admitted or refused.
    id: String,
    /// The identity in the participant's access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// The display name.
    name: String,
}

/// An answer to a participant in a lobby.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answered {
    /// Whether the participant may enter.
    admitted: bool,
}

/// Moderation of a room.
pub(super) fn moderation<'a>(shared: &'a Shared, room: &'a str) -> Moderation<'a> {
    Moderation { rights: &shared.rights, directory: &shared.directory, room }
}

fn check(room: &str) -> Result<(), AdminError> {
    let malformed = |message: String| AdminError::new(AdminErrorCode::Malformed, message);
    limits::check_room(room).map_err(|e| malformed(e.message))
}

fn check_text(what: &str, text: &str) -> Result<(), AdminError> {
    if (1..=limits::IDENTITY_BYTES).contains(&text.len()) {
        return Ok(());
    }
    let message = format!("{what} has 1 to {} bytes", limits::IDENTITY_BYTES);
    Err(AdminError::new(AdminErrorCode::Malformed, message))
}

/// Lock or unlock a room, or set its lobby. On all servers of a cluster.
#[utoipa::path(put, path = "/admin/rooms/{room}/entry", operation_id = "set_entry", tag = "rooms", request_body = RoomEntry,
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "Who may enter, as it is now", body = RoomEntry), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn entry(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
    wanted: Result<Json<RoomEntry>, JsonRejection>,
) -> Result<Json<RoomEntry>, AdminError> {
    let (Path(room), Json(wanted)) = (room?, wanted?);
    check(&room)?;
    let RoomEntry { locked, lobby, seconds } = wanted;
    moderation(&shared, &room).set_entry(Entry { locked, lobby }, seconds)?;
    tracing::info!(locked, lobby, "room access changed");
    Ok(Json(wanted))
}

/// Set the grants of a participant. What it may no longer do ends at once. Holds for its identity until its tokens have
/// expired.
#[utoipa::path(put, path = "/admin/rooms/{room}/participants/{participant}/grants", tag = "rooms", request_body = SetGrants,
    params(("room" = String, Path, description = "The room's name"),
        ("participant" = String, Path, description = "The participant's id")),
    responses((status = 204, description = "It may do that"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn set_grants(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    wanted: Result<Json<SetGrants>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let (Path((room, participant)), Json(wanted)) = (path?, wanted?);
    moderation(&shared, &room).grants(&participant, Some(wanted.grants))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Restore the grants of a participant's token.
#[utoipa::path(delete, path = "/admin/rooms/{room}/participants/{participant}/grants", tag = "rooms",
    params(("room" = String, Path, description = "The room's name"),
        ("participant" = String, Path, description = "The participant's id")),
    responses((status = 204, description = "It may do that"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn reset_grants(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path((room, participant)) = path?;
    moderation(&shared, &room).grants(&participant, None)?;
    Ok(StatusCode::NO_CONTENT)
}

/// List a room's bans; of the room `*`, those that hold in all.
#[utoipa::path(get, path = "/admin/rooms/{room}/bans", operation_id = "list_bans", tag = "rooms",
    params(("room" = String, Path, description = "The room's name, or `*`")),
    responses((status = 200, description = "They are", body = Bans), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn bans(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<Bans>, AdminError> {
    let Path(room) = room?;
    let bans = moderation(&shared, &room).bans().into_iter();
    Ok(Json(Bans { bans: bans.map(|(identity, until)| Ban { identity, until }).collect() }))
}

/// Ban an identity from a room, or with the room `*` from all: its participants are removed, and its tokens refused. On
/// all servers of a cluster.
#[utoipa::path(put, path = "/admin/rooms/{room}/bans/{identity}", tag = "rooms", request_body = Duration,
    params(("room" = String, Path, description = "The room's name, or `*`"),
        ("identity" = String, Path, description = "The identity, as tokens say it")),
    responses((status = 204, description = "It is banned"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn ban(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    wanted: Result<Json<Duration>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let (Path((room, identity)), Json(Duration { seconds })) = (path?, wanted?);
    if room != ALL_ROOMS {
        check(&room)?;
    }
    check_text("an identity", &identity)?;
    moderation(&shared, &room).ban(&identity, seconds)?;
    tracing::info!(?seconds, "identity banned");
    Ok(StatusCode::NO_CONTENT)
}

/// Lift a ban.
#[utoipa::path(delete, path = "/admin/rooms/{room}/bans/{identity}", tag = "rooms",
    params(("room" = String, Path, description = "The room's name, or `*`"),
        ("identity" = String, Path, description = "The identity, as tokens say it")),
    responses((status = 204, description = "There is none any more"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn unban(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path((room, identity)) = path?;
    if room != ALL_ROOMS {
        check(&room)?;
    }
    check_text("an identity", &identity)?;
    moderation(&shared, &room).unban(&identity)?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the participants in a room's lobby.
#[utoipa::path(get, path = "/admin/rooms/{room}/waiting", operation_id = "list_waiting", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "They are", body = Lobby), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn waiting(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<Lobby>, AdminError> {
    let Path(room) = room?;
    let waiting = moderation(&shared, &room).waiting().into_iter();
    let waiting = waiting.map(|knock| {
        let windlass_protocol::Knock { id, name, identity } = knock;
        Waits { id, identity, name }
    });
    Ok(Json(Lobby { waiting: waiting.collect() }))
}

/// Admit or refuse a participant in the lobby.
#[utoipa::path(put, path = "/admin/rooms/{room}/waiting/{waiting}", operation_id = "answer_waiting", tag = "rooms", request_body = Answered,
    params(("room" = String, Path, description = "The room's name"),
        ("waiting" = String, Path, description = "The id of the participant in the lobby")),
    responses((status = 204, description = "The participant gets the answer"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn answer(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    wanted: Result<Json<Answered>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let (Path((room, waiting)), Json(Answered { admitted })) = (path?, wanted?);
    moderation(&shared, &room).answer(&waiting, admitted)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Revoke an access token by its `jti`: its participants are removed, and the token is refused. On all servers of a
/// cluster. Needs a token for `*`.
#[utoipa::path(put, path = "/admin/revoked/{token}", operation_id = "revoke_token", tag = "server", request_body = Duration,
    params(("token" = String, Path, description = "The token's `jti`")),
    responses((status = 204, description = "It is revoked"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn revoke(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    token: Result<Path<String>, PathRejection>,
    wanted: Result<Json<Duration>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let (Path(token), Json(Duration { seconds })) = (token?, wanted?);
    check_text("a `jti`", &token)?;
    moderation(&shared, ALL_ROOMS).revoke(&token, seconds)?;
    tracing::info!(?seconds, "access token revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Lift a revocation.
#[utoipa::path(delete, path = "/admin/revoked/{token}", operation_id = "reinstate_token", tag = "server",
    params(("token" = String, Path, description = "The token's `jti`")),
    responses((status = 204, description = "The token is good again"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn reinstate(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    token: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path(token) = token?;
    check_text("a `jti`", &token)?;
    moderation(&shared, ALL_ROOMS).reinstate(&token)?;
    Ok(StatusCode::NO_CONTENT)
}
