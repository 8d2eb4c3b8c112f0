//! WHEP (draft-ietf-wish-whep): a player receives the tracks of one participant of a room. The access token must grant
//! `subscribe`.
//!
//! The player offers sections that receive, without knowledge of the tracks. The server assigns the participant's
//! tracks to them, in order: video tracks to sections of video, audio tracks to sections of audio. Remaining sections
//! stay unused. The participant is the one that the query names, or the first that publishes video, or audio.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use windlass_sfu::{Subscribe, TrackInfo, TrackKind};

use super::caller::Caller;
use super::endpoint_options;
use super::error::WhipWhepError;
use super::protocol::Protocol;
use super::request::{SessionPath, SessionRequest};
use super::sections::{Section, sections};
use super::session::{self, Lists};
use crate::client::ClientAddr;
use crate::shared::Shared;

/// Begin to receive (draft-ietf-wish-whep §4.2).
#[utoipa::path(post, path = "/whep/{room}", operation_id = "whep_offer", tag = "calls",
    params(("room" = String, Path, description = "The room's name"), Wanted),
    request_body(content = String, content_type = "application/sdp"),
    responses((status = 201, description = "The answer; `Location` is the session", body = String, content_type = "application/sdp"),
        (status = 307, description = "The room is on another server; `Location` says where to offer"),
        (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn offer(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    Query(wanted): Query<Wanted>,
    RawQuery(query): RawQuery,
    Extension(client): Extension<ClientAddr>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, WhipWhepError> {
    let caller = Caller::admit(&shared, Protocol::Whep, &room, client, &headers, body).await?;
    let sections = sections(&caller.sdp, Protocol::Whep)?;
    if wanted.enhanced && !offers_av1(&caller.sdp) {
        return Err(WhipWhepError::enhanced_without_av1());
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let lists = |tracks: &[TrackInfo]| {
        let subscribe = assign(&sections, tracks, wanted.participant.as_deref());
        if subscribe.is_empty() {
            return Err(WhipWhepError::nothing_to_watch());
        }
        Ok(Lists { publish: Vec::new(), subscribe, enhanced: wanted.enhanced })
    };
    session::begin(&shared, caller, &query, lists).await
}

/// Whether each section of an offer for video has AV1, in which enhanced pictures come.
fn offers_av1(sdp: &str) -> bool {
    let is_av1 = |line: &str| {
        let map = line.strip_prefix("a=rtpmap:").and_then(|map| map.split_once(' '));
        map.is_some_and(|(_, codec)| codec.to_ascii_uppercase().starts_with("AV1/"))
    };
    let mut videos = sdp.split("\nm=").filter(|section| section.starts_with("video"));
    videos.all(|section| section.lines().any(is_av1))
}

/// The query of an offer.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The participant's id; by default the first that sends video, or audio.
    participant: Option<String>,
    /// Whether video is to come as the enhanced picture, rebuilt by the server and coded as AV1. Tracks of which the
    /// server can make none come as they are.
    #[serde(default)]
    enhanced: bool,
}

/// Assigns the room's tracks to sections, but for those that are encrypted end to end: a player has no key.
fn assign(sections: &[Section], tracks: &[TrackInfo], wanted: Option<&str>) -> Vec<Subscribe> {
    let plain = || tracks.iter().filter(|track| !track.encrypted);
    let of = |kind: TrackKind| plain().find(|track| track.kind == kind).map(|t| t.participant);
    let publisher = match wanted {
        Some(id) => id.parse().ok(),
        None => of(TrackKind::Video).or(of(TrackKind::Audio)),
    };
    let mut left: Vec<_> = plain().filter(|t| Some(t.participant) == publisher).collect();
    sections
        .iter()
        .filter_map(|section| {
            let at = left.iter().position(|track| track.kind == section.kind)?;
            let track = left.remove(at).track;
            Some(Subscribe { mid: section.mid.clone(), track, max: None })
        })
        .collect()
}

/// Say what may be posted (draft-ietf-wish-whep §4).
#[utoipa::path(options, path = "/whep/{room}", operation_id = "whep_options", tag = "calls",
    params(("room" = String, Path, description = "The room's name")),
    responses((status = 204, description = "`Accept-Post` says it")))]
pub(crate) async fn options() -> Response {
    endpoint_options()
}

/// Send candidates of a session, or restart its ICE (draft-ietf-wish-whep §4.3).
#[utoipa::path(patch, path = "/whep/{room}/{session}", operation_id = "whep_patch", tag = "calls",
    params(SessionPath),
    request_body(content = String, content_type = "application/trickle-ice-sdpfrag"),
    responses((status = 204, description = "The candidates are accepted"),
        (status = 200, description = "To `If-Match: *`: the server's new ICE credentials", body = String, content_type = "application/trickle-ice-sdpfrag"),
        (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn patch(request: SessionRequest, body: Body) -> Result<Response, WhipWhepError> {
    request.patch(Protocol::Whep, body).await
}

/// End a session (draft-ietf-wish-whep §4.2).
#[utoipa::path(delete, path = "/whep/{room}/{session}", operation_id = "whep_end", tag = "calls",
    params(SessionPath),
    responses((status = 200, description = "It has ended"), (status = "4XX", description = "Refused, with the reason", body = WhipWhepError)))]
pub(crate) async fn end(request: SessionRequest) -> Result<StatusCode, WhipWhepError> {
    request.end(Protocol::Whep)
}

/// Say what may be done with a session.
#[utoipa::path(options, path = "/whep/{room}/{session}", operation_id = "whep_session_options", tag = "calls",
    params(SessionPath),
    responses((status = 204, description = "`Allow` says it")))]
pub(crate) async fn session_options() -> Response {
    super::session_options()
}

#[cfg(test)]
mod tests {
    use windlass_sfu::{ParticipantId, TrackId};

    use super::*;

    fn track(track: u64, participant: u64, kind: TrackKind) -> TrackInfo {
        let (track, participant) = (TrackId(track), ParticipantId(participant));
        TrackInfo {
            track,
            participant,
            kind,
            name: String::new(),
            muted: false,
            encrypted: false,
            stream: None,
        }
    }

    fn map(kinds: &[TrackKind], wanted: Option<&str>) -> Vec<(String, u64)> {
        let tracks = [
            track(1, 7, TrackKind::Audio),
            track(2, 8, TrackKind::Audio),
            track(3, 8, TrackKind::Video),
            track(4, 8, TrackKind::Video),
        ];
        let numbered = kinds.iter().enumerate();
        let sections: Vec<_> =
            numbered.map(|(n, &kind)| Section { mid: n.to_string(), kind }).collect();
        let mapped = assign(&sections, &tracks, wanted);
        mapped.into_iter().map(|s| (s.mid, s.track.0)).collect()
    }

    #[test]
    fn enhanced_pictures_need_av1() {
        let [with, without] = ["45 AV1", "98 VP9"]
            .map(|codec| format!("m=video 9 UDP 45\r\na=rtpmap:{codec}/90000\r\n"));
        assert!(offers_av1(&format!("v=0\r\n{with}m=audio 9 UDP 1\r\n{with}")));
        assert!(!offers_av1(&format!("v=0\r\n{with}{without}")));
        assert!(!offers_av1(&format!("v=0\r\n{without}a=fmtp:45 AV1/90000\r\n")));
    }

    #[test]
    fn sections_are_filled_with_one_participants_tracks_by_kind_and_order() {
        let (a, v) = (TrackKind::Audio, TrackKind::Video);
        let pairs = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
            list.iter().map(|(mid, track)| ((*mid).to_owned(), *track)).collect()
        };
        assert_eq!(map(&[v, a], None), pairs(&[("0", 3), ("1", 2)]));
        assert_eq!(map(&[a, v, v, v], None), pairs(&[("0", 2), ("1", 3), ("2", 4)]));
        assert_eq!(map(&[v, a], Some("p7")), pairs(&[("1", 1)]));
        assert_eq!(map(&[v], Some("p99")), []);
        assert_eq!(map(&[v], Some("x")), []);
    }
}
