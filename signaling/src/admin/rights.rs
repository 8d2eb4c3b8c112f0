//! Rights while a call runs: what moderators may say of their room, operators may say of each.

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
use crate::Shared;
use crate::access::ALL_ROOMS;
use crate::rights::{Door, Orders};

/// Who may come into a room.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoomDoor {
    /// Nobody new may, but for moderators and those who were there and come back.
    #[serde(default)]
    locked: bool,
    /// Whoever comes waits until a moderator, or an operator, admits them.
    #[serde(default)]
    lobby: bool,
    /// For so long at least, though nobody is in the room; without, for five minutes after the last has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
}

/// What a participant may do.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetGrants {
    /// Of `publish`, `subscribe` and `enhance`, those that it has from now on; its token's other grants stay.
    #[schema(value_type = Vec<String>)]
    grants: Vec<Grant>,
}

/// For how long.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Duration {
    /// In seconds; without, for as long as any token that is shown is good, a day at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
}

/// All bans of a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bans {
    /// By identity.
    bans: Vec<Ban>,
}

/// Nobody of this identity may be in the room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ban {
    /// Whose.
    identity: String,
    /// In seconds since 1970.
    until: u64,
}

/// All who wait to be let into a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Lobby {
    /// Who came first at first.
    waiting: Vec<Waits>,
}

/// Somebody who waits to be let into a room.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Waits {
    /// By which it is answered.
    id: String,
    /// Who that is by an access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// The name that is shown.
    name: String,
}

/// What somebody who waits is told.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answered {
    /// Whether it may come in.
    admitted: bool,
}

/// Orders about a room.
pub(super) fn orders<'a>(shared: &'a Shared, room: &'a str) -> Orders<'a> {
    Orders { rights: &shared.rights, directory: &shared.directory, room }
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

/// Lock a room, or give it a lobby, or end that. On all servers of a cluster.
#[utoipa::path(put, path = "/admin/rooms/{room}/door", tag = "rooms", request_body = RoomDoor,
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "The door as it is now", body = RoomDoor), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn door(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
    wanted: Result<Json<RoomDoor>, JsonRejection>,
) -> Result<Json<RoomDoor>, AdminError> {
    let (Path(room), Json(wanted)) = (room?, wanted?);
    check(&room)?;
    let RoomDoor { locked, lobby, seconds } = wanted;
    orders(&shared, &room).set_door(Door { locked, lobby }, seconds)?;
    tracing::info!(locked, lobby, "the door of a room is set");
    Ok(Json(wanted))
}

/// Set what a participant may do from now on; what it does and may not any more ends. It holds for its identity until tokens have expired.
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
    orders(&shared, &room).grants(&participant, Some(wanted.grants))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Let a participant do again what its token says.
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
    orders(&shared, &room).grants(&participant, None)?;
    Ok(StatusCode::NO_CONTENT)
}

/// List a room's bans; of the room `*`, those that hold in all.
#[utoipa::path(get, path = "/admin/rooms/{room}/bans", tag = "rooms",
    params(("room" = String, Path, description = "The room's name, or `*`")),
    responses((status = 200, description = "They are", body = Bans), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn bans(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<Bans>, AdminError> {
    let Path(room) = room?;
    let bans = orders(&shared, &room).bans().into_iter();
    Ok(Json(Bans { bans: bans.map(|(identity, until)| Ban { identity, until }).collect() }))
}

/// Ban an identity from a room, or with the room `*` from all: whoever has it goes, and comes in by no token. On all servers of a cluster.
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
    orders(&shared, &room).ban(&identity, seconds)?;
    tracing::info!(?seconds, "an identity is banned");
    Ok(StatusCode::NO_CONTENT)
}

/// End a ban.
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
    orders(&shared, &room).unban(&identity)?;
    Ok(StatusCode::NO_CONTENT)
}

/// List who waits to be let into a room.
#[utoipa::path(get, path = "/admin/rooms/{room}/waiting", tag = "rooms",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 200, description = "They are", body = Lobby), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn waiting(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<Lobby>, AdminError> {
    let Path(room) = room?;
    let waiting = orders(&shared, &room).waiting().into_iter();
    let waiting = waiting.map(|knock| {
        let windlass_protocol::Knock { id, name, identity } = knock;
        Waits { id, identity, name }
    });
    Ok(Json(Lobby { waiting: waiting.collect() }))
}

/// Admit or refuse somebody who waits.
#[utoipa::path(put, path = "/admin/rooms/{room}/waiting/{waiting}", tag = "rooms", request_body = Answered,
    params(("room" = String, Path, description = "The room's name"),
        ("waiting" = String, Path, description = "The id of who waits")),
    responses((status = 204, description = "It is told"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn answer(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    wanted: Result<Json<Answered>, JsonRejection>,
) -> Result<StatusCode, AdminError> {
    let (Path((room, waiting)), Json(Answered { admitted })) = (path?, wanted?);
    orders(&shared, &room).answer(&waiting, admitted)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Revoke an access token by its `jti`: whoever came with it goes, and nobody comes in by it. On all servers of a cluster. Needs a token for `*`.
#[utoipa::path(put, path = "/admin/revoked/{token}", tag = "server", request_body = Duration,
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
    orders(&shared, ALL_ROOMS).revoke(&token, seconds)?;
    tracing::info!(?seconds, "a token is revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Take a revocation back.
#[utoipa::path(delete, path = "/admin/revoked/{token}", tag = "server",
    params(("token" = String, Path, description = "The token's `jti`")),
    responses((status = 204, description = "The token is good again"), (status = "4XX", description = "Refused, with the reason", body = AdminError)))]
pub(crate) async fn reinstate(
    _: Operator,
    State(shared): State<Arc<Shared>>,
    token: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, AdminError> {
    let Path(token) = token?;
    check_text("a `jti`", &token)?;
    orders(&shared, ALL_ROOMS).reinstate(&token)?;
    Ok(StatusCode::NO_CONTENT)
}
