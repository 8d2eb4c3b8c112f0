//! Sessions without a socket: a participant, and a task that listens for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use windlass_protocol::{ErrorCode, limits};
use windlass_sfu::{Answer, Offer, ParticipantId, SfuEvent, TrackId};

use super::error::WishError;
use crate::Shared;
use crate::convert::{self, Lists};
use crate::entry::{self, Inside};
use crate::session::Orders;
use crate::socket::unix_now;

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
}

/// All sessions, by their address: way, room and an id that nobody can guess.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// What is dropped ends the session.
    open: Mutex<HashMap<(Way, String, String), oneshot::Sender<()>>>,
}

impl Sessions {
    /// Until all have ended.
    pub(crate) async fn closed(&self) {
        while !self.open.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Answers the offer of a participant that has just entered, and lets it stay. Its answer and its path.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    (way, room): (Way, &str),
    inside: Inside,
    offer: Offer,
) -> Result<(String, String), WishError> {
    let id = inside.id;
    let lists = Lists::of(&offer);
    let Answer { sdp, tracks } = match shared.services.sfu.offer(id, offer).await {
        Ok(answer) => answer,
        Err(error) => {
            entry::leave(shared, id).await;
            return Err(convert::offer_error(&error).into());
        }
    };
    let answer = Answer { sdp, tracks };
    let (published, subscribed) = lists.agreed(&answer);
    shared.directory.negotiated(id, published, &subscribed);
    let key = (way, room.to_owned(), format!("{:032x}", rand::random::<u128>()));
    let path = format!("/{}/{room}/{}", way.path(), key.2);
    let (ended, end) = oneshot::channel();
    shared.sessions.open.lock().insert(key.clone(), ended);
    tokio::spawn(listen(Arc::downgrade(shared), key, inside, end));
    Ok((answer.sdp, path))
}

/// Whether there is such a session, for somebody whose token is good for its room.
pub(super) fn check(
    shared: &Shared,
    (way, room, session): (Way, &str, &str),
    token: Option<&str>,
) -> Result<(), WishError> {
    limits::check_room(room)?;
    let admitted = shared.config.access.admit(unix_now(), room, token);
    admitted.map_err(windlass_protocol::ProtocolError::from)?;
    let key = (way, room.to_owned(), session.to_owned());
    let known = shared.sessions.open.lock().contains_key(&key);
    if known { Ok(()) } else { Err(WishError::no_session()) }
}

/// Ends a session that [`check`] found.
pub(super) fn end(shared: &Shared, (way, room, session): (Way, &str, &str)) {
    shared.sessions.open.lock().remove(&(way, room.to_owned(), session.to_owned()));
}

/// Hears what happens to the participant until it is gone.
async fn listen(
    shared: Weak<Shared>,
    key: (Way, String, String),
    inside: Inside,
    mut end: oneshot::Receiver<()>,
) {
    let Inside { id, mut orders, joined, .. } = inside;
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
                if wanted.end.is_some() {
                    break;
                }
                hold(&shared, id, &mut held, &wanted).await;
                continue;
            }
            event = events.recv() => event,
        };
        let (Some(event), Some(shared)) = (event, shared.upgrade()) else { break };
        if matches!(event, SfuEvent::Disconnected) {
            break;
        }
        convert::note(&shared.directory, id, &event);
    }
    if let Some(shared) = shared.upgrade() {
        entry::leave(&shared, id).await;
        shared.sessions.open.lock().remove(&key);
    }
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
