//! WHIP (RFC 9725): an encoder publishes tracks in a room. The access token must grant `publish`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use windlass_sfu::{Publish, TrackKind};

use super::caller::Caller;
use super::endpoint_options;
use super::error::WhipWhepError;
use super::protocol::Protocol;
use super::request::{SessionPath, SessionRequest};
use super::sections::{Section, sections};
use super::session::{self, Lists};
use crate::client::ClientAddr;
use crate::shared::Shared;

/// Begin to send (RFC 9725 §4.2).
#[utoipa::path(post, path = "/whip/{room}", operation_id = "whip_offer", tag = "calls",
    params(("room" = String, Path, description = "The room's name")),
    request_body(content = String, content_type = "application/sdp"),
    responses((status = 201, description = "The answer; `Location` is the session", body = String, content_type = "application/sdp"),
        (status = 307, description = "The room is on another server; `Location` says where to offer"),
        (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn offer(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    Extension(client): Extension<ClientAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, WhipWhepError> {
    let caller = Caller::admit(&shared, Protocol::Whip, &room, client, &headers, body).await?;
    let sections = sections(&caller.sdp, Protocol::Whip)?;
    let publish = sections.into_iter().map(track).collect();
    let lists = Lists { publish, subscribe: Vec::new(), enhanced: false };
    session::begin(&shared, caller, "", |_| Ok(lists)).await
}

/// The track of a section that sends.
fn track(section: Section) -> Publish {
    let name = if section.kind == TrackKind::Video { "camera" } else { "microphone" }.to_owned();
    Publish {
        mid: section.mid,
        kind: section.kind,
        name,
        max: None,
        encrypted: false,
        backup_of: None,
    }
}

/// Say what may be posted (RFC 9725 §4.2).
#[utoipa::path(options, path = "/whip/{room}", operation_id = "whip_options", tag = "calls",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 204, description = "`Accept-Post` says it")))]
pub(crate) async fn options() -> Response {
    endpoint_options()
}

/// Send candidates of a session, or restart its ICE (RFC 9725 §4.3).
#[utoipa::path(patch, path = "/whip/{room}/{session}", operation_id = "whip_patch", tag = "calls",
    params(SessionPath),
    request_body(content = String, content_type = "application/trickle-ice-sdpfrag"),
    responses((status = 204, description = "The candidates are accepted"),
        (status = 200, description = "To `If-Match: *`: the server's new ICE credentials", body = String, content_type = "application/trickle-ice-sdpfrag"),
        (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn patch(request: SessionRequest, body: Body) -> Result<Response, WhipWhepError> {
    request.patch(Protocol::Whip, body).await
}

/// End a session (RFC 9725 §4.2).
#[utoipa::path(delete, path = "/whip/{room}/{session}", operation_id = "whip_end", tag = "calls",
    params(SessionPath),
    responses((status = 200, description = "It has ended"), (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn end(request: SessionRequest) -> Result<StatusCode, WhipWhepError> {
    request.end(Protocol::Whip)
}

/// Say what may be done with a session.
#[utoipa::path(options, path = "/whip/{room}/{session}", operation_id = "whip_session_options", tag = "calls",
    params(SessionPath),
    responses((status = 204, description = "`Allow` says it")))]
pub(crate) async fn session_options() -> Response {
    super::session_options()
}
