//! WHIP and WHEP sessions: a participant without a socket, and a task that follows its events.

use std::sync::Arc;
use std::sync::Weak;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{IF_MATCH, LINK, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::oneshot;
use windlass_protocol::{Attributes, ErrorCode, limits};
use windlass_sfu::{
    JoinOptions, Offer, ParticipantId, Publish, RenditionError, SfuEvent, Subscribe, TrackId,
    TrackInfo, TrackKind,
};

use super::caller::{Caller, read};
use super::error::WhipWhepError;
use super::ice::{self, Credentials};
use super::open::{Agreed, Key, Open};
use super::protocol::{FRAGMENT, Protocol, SDP};
use crate::admission::Permit;
use crate::clock::unix_now;
use crate::cluster::RoomServer;
use crate::convert;
use crate::entry::{self, Entry, Inside};
use crate::rate::TokenBucket;
use crate::session::{Commands, End, RateLimit};
use crate::shared::Shared;
use crate::turn;

/// Redirects a client to the same path on the room's server (RFC 9725 §4.5: clients follow).
fn redirect(url: &str, protocol: Protocol, room: &str, query: &str) -> Response {
    // Signalling is at `ws…://host/ws`; WHIP and WHEP are beside it.
    let server = url.strip_suffix("/ws").unwrap_or(url).replacen("ws", "http", 1);
    let location = format!("{server}/{}/{room}{query}", protocol.path());
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response()
}

/// What a session publishes and subscribes to.
pub(super) struct Lists {
    pub(super) publish: Vec<Publish>,
    pub(super) subscribe: Vec<Subscribe>,
    /// Whether video is to come as its rendition.
    pub(super) enhanced: bool,
}

/// Lets a client enter its room and answers its offer; or redirects it to another server, with the same `query`.
/// `lists` gives the published and subscribed sections of the offer for the room's tracks.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    caller: Caller<'_>,
    query: &str,
    lists: impl FnOnce(&[TrackInfo]) -> Result<Lists, WhipWhepError>,
) -> Result<Response, WhipWhepError> {
    let Caller { protocol, room, admission, permit, sdp } = caller;
    let owner = permit.owner(admission.identity.as_deref());
    let options =
        JoinOptions { owner, decodes_anchors: false, media_only: true, ..JoinOptions::default() };
    if let RoomServer::Redirect(url) = entry::place(shared, room, &options).await {
        return Ok(redirect(&url, protocol, room, query));
    }
    let entry = Entry {
        room,
        name: protocol.name().to_owned(),
        ticket: None,
        admission,
        permit: &permit,
        seat: None,
        admitted: false,
        attributes: Attributes::new(),
        options,
    };
    let inside = entry::enter(shared, entry).await.map_err(convert::enter_error)?;
    let participant = inside.id;
    let offered = async {
        let tracks = &inside.joined.tracks;
        let Lists { publish, mut subscribe, enhanced } = lists(tracks)?;
        if enhanced {
            render(shared, participant, tracks, &mut subscribe).await?;
        }
        let offer = Offer { sdp, publish, subscribe };
        negotiate(shared, participant, offer.clone()).await.map(|answer| (offer, answer))
    };
    let offered = offered.await;
    let (offer, answer) = match offered {
        Ok(offered) => offered,
        Err(error) => {
            entry::leave(shared, participant).await;
            return Err(error);
        }
    };
    let RateLimit { burst, per_second } = shared.config.session.offers;
    let restarts = TokenBucket::new(burst, per_second, Instant::now());
    let agreed = Agreed { offer, ice_session: 1, restarts };
    let id = format!("{:032x}", rand::random::<u128>());
    let headers = [
        ("content-type", SDP.to_owned()),
        ("location", format!("/{}/{room}/{id}", protocol.path())),
        ("etag", agreed.tag()),
        ("accept-patch", FRAGMENT.to_owned()),
    ];
    let key = Key { protocol, room: room.to_owned(), id };
    let (ended, end) = oneshot::channel();
    let agreed = Arc::new(AsyncMutex::new(agreed));
    let owner = inside.identity.clone();
    let open = Open::new(participant, owner, agreed.clone(), ended);
    shared.sessions.open.lock().insert(key.clone(), open);
    tokio::spawn(follow(Arc::downgrade(shared), key, permit, inside, agreed, end));
    let mut response = (StatusCode::CREATED, headers, answer).into_response();
    let ice = shared.config.turn.servers(&participant.to_string(), unix_now());
    for link in turn::links(&ice) {
        response.headers_mut().append(LINK, link);
    }
    Ok(response)
}

/// Puts renditions in the place of the video tracks of which the server can make one.
async fn render(
    shared: &Shared,
    viewer: ParticipantId,
    tracks: &[TrackInfo],
    subscribe: &mut [Subscribe],
) -> Result<(), WhipWhepError> {
    let is_video = |id| tracks.iter().any(|info| info.track == id && info.kind == TrackKind::Video);
    let mut rendered = false;
    for subscribe in subscribe.iter_mut().filter(|subscribe| is_video(subscribe.track)) {
        match shared.services.sfu.render(viewer, subscribe.track).await {
            Ok(rendition) => (subscribe.track, rendered) = (rendition, true),
            Err(RenditionError::Plain) => {}
            // The first is what the player is there for.
            Err(RenditionError::Full) if rendered => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The answer to an offer.
async fn negotiate(
    shared: &Shared,
    id: ParticipantId,
    offer: Offer,
) -> Result<String, WhipWhepError> {
    let lists = convert::Lists::of(&offer);
    let answer = shared.services.sfu.offer(id, offer).await;
    let answer = answer.map_err(|error| WhipWhepError::from(convert::offer_error(&error)))?;
    shared.directory.negotiated(id, lists.agreed(&answer));
    Ok(answer.sdp)
}

/// Ends a session.
pub(super) fn end(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
) -> Result<StatusCode, WhipWhepError> {
    authorized(shared, key, token)?;
    // One of concurrent requests ends the session.
    let ended = shared.sessions.open.lock().remove(key);
    ended.map(|_| StatusCode::OK).ok_or_else(WhipWhepError::no_session)
}

/// Takes a session's candidates, or restarts its ICE (RFC 9725 §4.3).
pub(super) async fn patch(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, WhipWhepError> {
    let (id, agreed) = authorized(shared, key, token)?;
    let fragment = read(headers, FRAGMENT, body).await?;
    let mut agreed = agreed.lock().await;
    match headers.get(IF_MATCH).and_then(|tag| tag.to_str().ok()) {
        None => Err(WhipWhepError::no_tag()),
        Some("*") => {
            let credentials =
                Credentials::of(&fragment).ok_or_else(WhipWhepError::no_credentials)?;
            if !agreed.restarts.take(Instant::now()) {
                return Err(WhipWhepError::new(ErrorCode::RateLimited, "too many restarts of ICE"));
            }
            let sdp = credentials.put_into(&agreed.offer.sdp);
            let offer = Offer { sdp, ..agreed.offer.clone() };
            let answer = negotiate(shared, id, offer.clone()).await?;
            agreed.offer = offer;
            agreed.ice_session = agreed.ice_session.wrapping_add(1);
            let headers = [("content-type", FRAGMENT.to_owned()), ("etag", agreed.tag())];
            Ok((StatusCode::OK, headers, ice::fragment(&answer)).into_response())
        }
        Some(tag) if tag == agreed.tag() => Ok(StatusCode::NO_CONTENT.into_response()),
        Some(_) => Err(WhipWhepError::other_tag()),
    }
}

/// The session, if the bearer of the token may change it.
fn authorized(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
) -> Result<(ParticipantId, Arc<AsyncMutex<Agreed>>), WhipWhepError> {
    limits::check_room(&key.room)?;
    let admission = entry::admit(shared, &key.room, token, &[]).map_err(convert::enter_error)?;
    let sessions = shared.sessions.open.lock();
    let open = sessions.get(key).ok_or_else(WhipWhepError::no_session)?;
    if open.owner.is_some() && open.owner != admission.identity {
        return Err(WhipWhepError::not_yours());
    }
    Ok((open.participant, open.agreed.clone()))
}

/// Follows the participant's events until it has left.
async fn follow(
    shared: Weak<Shared>,
    key: Key,
    permit: Permit,
    inside: Inside,
    agreed: Arc<AsyncMutex<Agreed>>,
    mut end: oneshot::Receiver<()>,
) {
    let Inside { id, mut commands, mut member, joined, .. } = inside;
    let mut events = joined.events;
    let Some(mut stop) = shared.upgrade().map(|shared| shared.stop.subscribe()) else { return };
    let mut held = Vec::new();
    loop {
        let event = tokio::select! {
            _ = &mut end => break,
            () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
            changed = commands.changed() => {
                let (Ok(()), Some(shared)) = (changed, shared.upgrade()) else { break };
                let latest = commands.borrow_and_update().clone();
                // The client cannot be told to move. If it may move, it stays. If it must move, it is disconnected and
                // connects again.
                if !matches!(latest.end, None | Some(End::Moved { must: false, .. })) {
                    break;
                }
                hold(&shared, id, &mut held, &latest).await;
                continue;
            }
            changed = member.ruling.changed() => {
                let ruling = member.ruling.borrow_and_update().clone();
                // Without its one grant the session has no purpose.
                if changed.is_err() || ruling.denied.is_some() || !ruling.grants.has(key.protocol.grant()) {
                    break;
                }
                continue;
            }
            event = events.recv() => event,
        };
        let (Some(event), Some(shared)) = (event, shared.upgrade()) else { break };
        match event {
            SfuEvent::Disconnected(_) => break,
            // A restart of ICE must not offer the track again.
            SfuEvent::TrackRemoved { track } => {
                agreed.lock().await.offer.subscribe.retain(|s| s.track != track);
            }
            _ => {}
        }
        convert::note(&shared.directory, id, &event);
    }
    if let Some(shared) = shared.upgrade() {
        entry::leave(&shared, id).await;
        shared.sessions.open.lock().remove(&key);
    }
    drop(permit);
}

/// Mutes the tracks that an operator has muted, and unmutes others: a WHIP client cannot mute by itself.
async fn hold(shared: &Shared, id: ParticipantId, held: &mut Vec<TrackId>, commands: &Commands) {
    let changes: Vec<_> = held
        .iter()
        .filter(|track| !commands.held.contains(track))
        .map(|track| (*track, false))
        .chain(commands.held.iter().filter(|t| !held.contains(t)).map(|track| (*track, true)))
        .collect();
    for (track, muted) in changes {
        let _ = shared.services.sfu.set_muted(id, track, muted).await;
        shared.directory.muted(id, track, muted);
    }
    *held = commands.held.iter().copied().collect();
}
