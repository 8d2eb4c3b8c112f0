//! The way into a room, the same for sockets, WHIP and WHEP: door, token, seat, SFU.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::watch;
use windlass_media::AnchorCodecs;
use windlass_protocol::Grant;
use windlass_sfu::{JoinOptions, Joined, ParticipantId};

use crate::Shared;
use crate::access::{Admission, Grants};
use crate::cluster::{Mover, Place};
use crate::directory::Seat;
use crate::door::{Knock, Permit, Refused};
use crate::redact::pseudonym;
use crate::session::{EnterError, Orders, Person};
use crate::socket::unix_now;

/// What the SFU's name of a room of one participant's own begins with: `/` is in no client's room name, so that it is nobody else's.
pub(crate) const LOOPBACK: &str = "loopback/";

/// Who wants to enter which room.
pub(crate) struct Entry<'a> {
    /// The room, as in its link.
    pub room: &'a str,
    /// The name to show, where the token does not say another.
    pub name: String,
    /// By what another server has sent it here.
    pub ticket: Option<String>,
    /// What its token allows, by [`admit`].
    pub admission: Admission,
    /// A room of its own, and what it can decode.
    pub options: JoinOptions,
}

/// A participant that is in its room.
pub(crate) struct Inside {
    pub id: ParticipantId,
    /// By its token.
    pub identity: Option<String>,
    pub grants: Grants,
    /// What others want of it.
    pub orders: watch::Receiver<Orders>,
    /// What it found there, and what happens from now on.
    pub joined: Joined,
}

/// Takes a connection that may become anything, for as long as the knock lives. A trusted proxy's are many clients'.
pub(crate) fn knock(shared: &Shared, peer: IpAddr) -> Result<Knock, Refused> {
    let one = (!shared.config.proxies.is_trusted(peer.to_canonical())).then_some(peer);
    shared.door.knock(one, Instant::now()).inspect_err(|refused| {
        let counter = match refused {
            Refused::Full => &shared.counters.connections_refused_full,
            _ => &shared.counters.connections_refused_address,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Lets a client in at the door, for as long as the permit lives.
pub(crate) fn at_door(shared: &Shared, client: IpAddr) -> Result<Permit, Refused> {
    shared.door.enter(client, Instant::now()).inspect_err(|refused| {
        let counter = match refused {
            Refused::Full => &shared.counters.sockets_refused_full,
            _ => &shared.counters.sockets_refused_address,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Counts a join of the permit's address, unless it has joined too often.
pub(crate) fn count_join(shared: &Shared, permit: &Permit) -> Result<(), Refused> {
    permit.join(Instant::now()).inspect_err(|_| {
        shared.counters.joins_limited.fetch_add(1, Ordering::Relaxed);
    })
}

/// What the bearer of a token may do in a room. Without the grant that is `needed` it has no business there.
pub(crate) fn admit(
    shared: &Shared,
    room: &str,
    token: Option<&str>,
    needed: Option<Grant>,
) -> Result<Admission, EnterError> {
    let admitted = shared.config.access.admit(unix_now(), room, token);
    let allowed = admitted.and_then(|admission| {
        needed.map_or(Ok(()), |grant| admission.grants.check(grant))?;
        Ok(admission)
    });
    allowed.map_err(EnterError::from).inspect_err(|error| {
        shared.counters.joins_unauthorized.fetch_add(1, Ordering::Relaxed);
        tracing::info!(%error, "join refused");
    })
}

/// Where a room is that somebody wants to enter, and may.
pub(crate) async fn place(shared: &Shared, room: &str, options: &JoinOptions) -> Place {
    match &shared.services.cluster {
        Some(cluster) if !options.loopback => {
            cluster.place(room, shared.directory.people(room)).await
        }
        _ => Place::Here,
    }
}

/// Lets a participant into a room. Whoever is inside is forgotten by [`leave`].
pub(crate) async fn enter(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    enter_quietly(shared, entry).await.inspect_err(|error| tracing::info!(%error, "join refused"))
}

async fn enter_quietly(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    let Entry { room, name, ticket, admission, mut options } = entry;
    let (identity, grants) = (admission.identity, admission.grants);
    if !grants.has(Grant::Enhance) {
        // As one who can decode none: plain rungs only.
        options.anchor_codecs = AnchorCodecs::NONE;
    }
    let id = ParticipantId(rand::random_range(1..=u64::MAX));
    let key = if options.loopback { format!("{LOOPBACK}{id}") } else { room.to_owned() };
    let name = admission.name.unwrap_or(name);
    let mut person = Person { name, identity: identity.clone(), was: None };
    if let (Some(ticket), Some(cluster), false) =
        (ticket, &shared.services.cluster, options.loopback)
    {
        let was = cluster.was(&Mover { room, person: &person }, &ticket);
        // Whoever moves here was not here.
        person.was = was.filter(|was| !shared.directory.has(&key, was));
    }
    let seat = shared.directory.enter(id, &key, person, grants.clone(), unix_now());
    let Seat { orders, former } = seat?;
    if let Some(former) = former {
        shared.counters.replaced.fetch_add(1, Ordering::Relaxed);
        // Its place in the room is free before it is asked for.
        let _ = shared.services.sfu.leave(former).await;
    }
    match shared.services.sfu.join(&key, id, options).await {
        Ok(joined) => {
            tracing::info!(participant = %id, loopback = options.loopback, room = %pseudonym(room), "joined");
            shared.directory.entered(id);
            Ok(Inside { id, identity, grants, orders, joined })
        }
        Err(error) => {
            shared.directory.leave(id);
            Err(error.into())
        }
    }
}

/// The participant is gone, whether the SFU knows it already or not.
pub(crate) async fn leave(shared: &Shared, id: ParticipantId) {
    shared.directory.leave(id);
    tracing::info!(participant = %id, "left");
    let _ = shared.services.sfu.leave(id).await;
}
