//! Sessions without a socket: a participant, and a task that listens for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Weak;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{IF_MATCH, LINK, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::sync::Mutex as TurnMutex;
use tokio::sync::oneshot;
use windlass_protocol::{ErrorCode, Grant, limits};
use windlass_sfu::{
    JoinOptions, Offer, ParticipantId, Publish, SfuEvent, Subscribe, TrackId, TrackInfo,
};

use super::caller::{Caller, read};
use super::error::WishError;
use super::ice::{self, Credentials};
use super::{FRAGMENT, SDP};
use crate::Shared;
use crate::cluster::Place;
use crate::convert::{self, Lists};
use crate::door::Permit;
use crate::entry::{self, Entry, Inside};
use crate::rate::TokenBucket;
use crate::session::{End, Orders};
use crate::socket::unix_now;
use crate::turn;

/// What a session's address begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// In.
    Whip,
    /// Out.
    Whep,
}

impl Way {
    fn path(self) -> &'static str {
        match self {
            Way::Whip => "whip",
            Way::Whep => "whep",
        }
    }

    /// What a token must grant.
    pub fn grant(self) -> Grant {
        match self {
            Way::Whip => Grant::Publish,
            Way::Whep => Grant::Subscribe,
        }
    }

    /// What the participant is called unless its token says.
    fn name(self) -> &'static str {
        match self {
            Way::Whip => "WHIP",
            Way::Whep => "WHEP",
        }
    }
}

/// A session's address: way, room and an id that nobody can guess.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub way: Way,
    pub room: String,
    pub id: String,
}

/// All sessions, by their address.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Key, Open>>,
}

/// A session that goes on until this is dropped.
#[derive(Debug)]
struct Open {
    participant: ParticipantId,
    /// Who began it, by its token; without token keys whoever knows its address.
    maker: Option<String>,
    agreed: Arc<TurnMutex<Agreed>>,
    _end: oneshot::Sender<()>,
}

/// What was agreed on, to agree on it again when ICE restarts.
#[derive(Debug)]
struct Agreed {
    offer: Offer,
    /// Which of the session's ICE sessions it is, from 1.
    ice_session: u32,
    restarts: TokenBucket,
}

impl Agreed {
    fn tag(&self) -> String {
        format!("\"{}\"", self.ice_session)
    }
}

impl Sessions {
    /// Until all have ended.
    pub(crate) async fn closed(&self) {
        while !self.open.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Where a caller goes that the room's own server should have: the same address there (RFC 9725 §4.5 has clients follow).
fn elsewhere(url: &str, way: Way, room: &str, query: &str) -> Response {
    // Signalling is at `ws…://host/ws`, and this beside it.
    let server = url.strip_suffix("/ws").unwrap_or(url).replacen("ws", "http", 1);
    let location = format!("{server}/{}/{room}{query}", way.path());
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response()
}

/// Lets a caller into its room, answers its offer, and lets it stay; or sends it to another server, with the same `query`. `lists` says what the sections of the offer are for,
/// by the tracks that there are.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    caller: Caller<'_>,
    query: &str,
    lists: impl FnOnce(&[TrackInfo]) -> Result<(Vec<Publish>, Vec<Subscribe>), WishError>,
) -> Result<Response, WishError> {
    let Caller { way, room, admission, permit, sdp } = caller;
    let owner = permit.owner(admission.identity.as_deref());
    let options = JoinOptions { owner, decodes_anchors: false, ..JoinOptions::default() };
    if let Place::At(url) = entry::place(shared, room, &options).await {
        return Ok(elsewhere(&url, way, room, query));
    }
    let entry = Entry {
        room,
        name: way.name().to_owned(),
        ticket: None,
        admission,
        permit: &permit,
        seat: None,
        admitted: false,
        options,
    };
    let inside = entry::enter(shared, entry).await.map_err(convert::enter_error)?;
    let participant = inside.id;
    let offered = match lists(&inside.joined.tracks) {
        Ok((publish, subscribe)) => {
            let offer = Offer { sdp, publish, subscribe };
            negotiate(shared, participant, offer.clone()).await.map(|answer| (offer, answer))
        }
        Err(error) => Err(error),
    };
    let (offer, answer) = match offered {
        Ok(offered) => offered,
        Err(error) => {
            entry::leave(shared, participant).await;
            return Err(error);
        }
    };
    let (burst, per_second) = shared.config.session.offers;
    let restarts = TokenBucket::new(burst, per_second, Instant::now());
    let agreed = Agreed { offer, ice_session: 1, restarts };
    let id = format!("{:032x}", rand::random::<u128>());
    let headers = [
        ("content-type", SDP.to_owned()),
        ("location", format!("/{}/{room}/{id}", way.path())),
        ("etag", agreed.tag()),
        ("accept-patch", FRAGMENT.to_owned()),
    ];
    let key = Key { way, room: room.to_owned(), id };
    let (ended, end) = oneshot::channel();
    let agreed = Arc::new(TurnMutex::new(agreed));
    let maker = inside.identity.clone();
    let open = Open { participant, maker, agreed: agreed.clone(), _end: ended };
    shared.sessions.open.lock().insert(key.clone(), open);
    tokio::spawn(listen(Arc::downgrade(shared), (key, permit), inside, agreed, end));
    let mut response = (StatusCode::CREATED, headers, answer).into_response();
    let ice = shared.config.turn.servers(&participant.to_string(), unix_now());
    for link in turn::links(&ice) {
        response.headers_mut().append(LINK, link);
    }
    Ok(response)
}

/// The answer to an offer.
async fn negotiate(shared: &Shared, id: ParticipantId, offer: Offer) -> Result<String, WishError> {
    let lists = Lists::of(&offer);
    let answer = shared.services.sfu.offer(id, offer).await;
    let answer = answer.map_err(|error| WishError::from(convert::offer_error(&error)))?;
    let (published, subscribed) = lists.agreed(&answer);
    shared.directory.negotiated(id, published, &subscribed);
    Ok(answer.sdp)
}

/// Ends a session.
pub(super) fn end(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
) -> Result<StatusCode, WishError> {
    asked(shared, key, token)?;
    // Whoever is first ends it.
    let ended = shared.sessions.open.lock().remove(key);
    ended.map(|_| StatusCode::OK).ok_or_else(WishError::no_session)
}

/// Takes a session's candidates, or restarts its ICE (RFC 9725 §4.3).
pub(super) async fn patch(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, WishError> {
    let (id, agreed) = asked(shared, key, token)?;
    let fragment = read(headers, FRAGMENT, body).await?;
    let mut agreed = agreed.lock().await;
    match headers.get(IF_MATCH).and_then(|tag| tag.to_str().ok()) {
        None => Err(WishError::no_tag()),
        Some("*") => {
            let credentials = Credentials::of(&fragment).ok_or_else(WishError::no_credentials)?;
            if !agreed.restarts.take(Instant::now()) {
                return Err(WishError::new(ErrorCode::RateLimited, "too many restarts of ICE"));
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
        Some(_) => Err(WishError::other_tag()),
    }
}

/// The session that somebody asks something of who may: whoever began it.
fn asked(
    shared: &Shared,
    key: &Key,
    token: Option<&str>,
) -> Result<(ParticipantId, Arc<TurnMutex<Agreed>>), WishError> {
    limits::check_room(&key.room)?;
    let admission = entry::admit(shared, &key.room, token, &[]).map_err(convert::enter_error)?;
    let sessions = shared.sessions.open.lock();
    let open = sessions.get(key).ok_or_else(WishError::no_session)?;
    if open.maker.is_some() && open.maker != admission.identity {
        return Err(WishError::not_yours());
    }
    Ok((open.participant, open.agreed.clone()))
}

/// Hears what happens to the participant until it is gone.
async fn listen(
    shared: Weak<Shared>,
    (key, permit): (Key, Permit),
    inside: Inside,
    agreed: Arc<TurnMutex<Agreed>>,
    mut end: oneshot::Receiver<()>,
) {
    let Inside { id, mut orders, mut member, joined, .. } = inside;
    let mut events = joined.events;
    let Some(mut stop) = shared.upgrade().map(|shared| shared.stop.subscribe()) else { return };
    let mut held = Vec::new();
    loop {
        let event = tokio::select! {
            _ = &mut end => break,
            () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
            changed = orders.changed() => {
                let (Ok(()), Some(shared)) = (changed, shared.upgrade()) else { break };
                let wanted = orders.borrow_and_update().clone();
                // Nobody can tell it where there is more of the room; if it must go, it finds that out.
                if !matches!(wanted.end, None | Some(End::Moved { must: false, .. })) {
                    break;
                }
                hold(&shared, id, &mut held, &wanted).await;
                continue;
            }
            changed = member.ruling.changed() => {
                let ruling = member.ruling.borrow_and_update().clone();
                // It came for this one thing.
                if changed.is_err() || ruling.out.is_some() || !ruling.grants.has(key.way.grant()) {
                    break;
                }
                continue;
            }
            event = events.recv() => event,
        };
        let (Some(event), Some(shared)) = (event, shared.upgrade()) else { break };
        match event {
            SfuEvent::Disconnected(_) => break,
            // A restart must not ask for what is gone.
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

/// Mutes what an operator wants muted, and nothing else: such a client cannot mute by itself.
async fn hold(shared: &Shared, id: ParticipantId, held: &mut Vec<TrackId>, wanted: &Orders) {
    let changes: Vec<_> = held
        .iter()
        .filter(|track| !wanted.held.contains(track))
        .map(|track| (*track, false))
        .chain(wanted.held.iter().filter(|t| !held.contains(t)).map(|track| (*track, true)))
        .collect();
    for (track, muted) in changes {
        let _ = shared.services.sfu.set_muted(id, track, muted).await;
        shared.directory.muted(id, track, muted);
    }
    *held = wanted.held.iter().copied().collect();
}

/// What cannot be answered because a list is too long.
pub(super) fn too_many(what: &str) -> WishError {
    WishError::new(ErrorCode::TooLarge, format!("the offer has too many sections that {what}"))
}
