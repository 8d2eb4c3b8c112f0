//! WHIP (RFC 9725): an encoder sends its tracks into a room. A token must grant `publish`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use windlass_media::AnchorCodecs;
use windlass_protocol::{ErrorCode, Grant, limits};
use windlass_sfu::{JoinOptions, Kind, Offer, Publish};

use super::error::WishError;
use super::session::{self, Way};
use super::{capabilities, created, read_offer, sdp, take_candidates};
use crate::Shared;
use crate::admin::bearer;
use crate::convert;
use crate::entry::{self, Entry};

/// Begin to send (RFC 9725 §4.2).
#[utoipa::path(post, path = "/whip/{room}", operation_id = "whip_offer", tag = "calls",
    params(("room" = String, Path, description = "The room's name")),
    request_body(content = String, content_type = "application/sdp"),
    responses((status = 201, description = "The answer; `Location` is the session", body = String, content_type = "application/sdp"),
        (status = "4XX", description = "Refused, with the reason", body = WishError)))]
pub(crate) async fn offer(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, WishError> {
    limits::check_room(&room)?;
    let sdp = read_offer(&headers, &body)?;
    let publish = published(&sdp)?;
    let options = JoinOptions { anchor_codecs: AnchorCodecs::NONE, loopback: false };
    let entry = Entry {
        room: &room,
        name: "WHIP".to_owned(),
        token: bearer(&headers),
        options,
        needed: Some(Grant::Publish),
    };
    let inside = entry::enter(&shared, entry).await.map_err(convert::enter_error)?;
    let offer = Offer { sdp, publish, subscribe: Vec::new() };
    let (answer, path) = session::begin(&shared, (Way::Whip, &room), inside, offer).await?;
    Ok(created(answer, path))
}

/// Every section that sends becomes a track.
fn published(sdp: &str) -> Result<Vec<Publish>, WishError> {
    let sends = sdp::sections(sdp).into_iter().filter(|section| section.sends);
    let publish: Vec<_> = sends
        .map(|section| Publish {
            mid: section.mid,
            kind: section.kind,
            name: if section.kind == Kind::Video { "camera" } else { "microphone" }.to_owned(),
            detail_of: None,
        })
        .collect();
    if publish.len() > limits::PUBLISHED_TRACKS {
        return Err(session::too_many("send"));
    }
    if publish.is_empty() {
        return Err(WishError::new(ErrorCode::BadSdp, "the offer has no section that sends"));
    }
    Ok(publish)
}

/// Say what may be posted (RFC 9725 §4.6).
#[utoipa::path(options, path = "/whip/{room}", operation_id = "whip_options", tag = "calls",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 204, description = "`Accept-Post` says it")))]
pub(crate) async fn options() -> Response {
    capabilities()
}

/// Tell candidates of a session (RFC 9725 §4.3.2).
#[utoipa::path(patch, path = "/whip/{room}/{session}", operation_id = "whip_patch", tag = "calls",
    params(("room" = String, Path, description = "The room's name"), ("session" = String, Path, description = "The session")),
    request_body(content = String, content_type = "application/trickle-ice-sdpfrag"),
    responses((status = 204, description = "They are known"), (status = "4XX", description = "Refused, with the reason", body = WishError)))]
pub(crate) async fn patch(
    State(shared): State<Arc<Shared>>,
    Path((room, session)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, WishError> {
    session::check(&shared, (Way::Whip, &room, &session), bearer(&headers))?;
    take_candidates(&headers)
}

/// End a session (RFC 9725 §4.2).
#[utoipa::path(delete, path = "/whip/{room}/{session}", operation_id = "whip_end", tag = "calls",
    params(("room" = String, Path, description = "The room's name"), ("session" = String, Path, description = "The session")),
    responses((status = 200, description = "It has ended"), (status = "4XX", description = "Refused, with the reason", body = WishError)))]
pub(crate) async fn end(
    State(shared): State<Arc<Shared>>,
    Path((room, session)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, WishError> {
    session::check(&shared, (Way::Whip, &room, &session), bearer(&headers))?;
    session::end(&shared, (Way::Whip, &room, &session));
    Ok(StatusCode::OK)
}
