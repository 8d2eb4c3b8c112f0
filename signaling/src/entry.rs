//! The way into a room, the same for sockets, WHIP and WHEP: door, token, seat, SFU.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::watch;
use windlass_protocol::Grant;
use windlass_sfu::{JoinOptions, Joined, ParticipantId};

use crate::Shared;
use crate::access::Admission;
use crate::cluster::{Mover, Place};
use crate::directory::{Seat, Seats};
use crate::door::{self, Guest, Permit, Refused};
use crate::redact::pseudonym;
use crate::rights::{self, Member, Out, Way};
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
    /// By which it comes back.
    pub seat: Option<String>,
    /// Whether a moderator has let it in.
    pub admitted: bool,
    /// Its place at the door, for which what it takes is counted.
    pub permit: &'a Permit,
    /// A room of its own, and what it can decode.
    pub options: JoinOptions,
}

/// A participant that is in its room.
pub(crate) struct Inside {
    pub id: ParticipantId,
    /// By its token.
    pub identity: Option<String>,
    /// What holds for it.
    pub member: Member,
    /// By which it comes back.
    pub seat: Option<String>,
    /// What others want of it.
    pub orders: watch::Receiver<Orders>,
    /// What it found there, and what happens from now on.
    pub joined: Joined,
}

/// Takes a connection that may become anything, for as long as the seat lives.
pub(crate) fn knock(shared: &Shared, peer: IpAddr) -> Result<door::Seat, Refused> {
    let knock = shared.door.knock(Guest::Connection, one(shared, peer), Instant::now());
    knock.inspect_err(|refused| {
        let counter = match refused {
            Refused::Full => &shared.counters.connections_refused_full,
            _ => &shared.counters.connections_refused_address,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// The same for its handshake.
pub(crate) fn handshake(shared: &Shared, peer: IpAddr) -> Result<door::Seat, Refused> {
    shared.door.knock(Guest::Handshake, one(shared, peer), Instant::now())
}

/// The address that a connection counts for: a trusted proxy's are many clients'.
fn one(shared: &Shared, peer: IpAddr) -> Option<IpAddr> {
    (!shared.config.proxies.is_trusted(peer.to_canonical())).then_some(peer)
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

/// What the bearer of a token may do in a room. Without the grants that are `needed` it has no business there.
pub(crate) fn admit(
    shared: &Shared,
    room: &str,
    token: Option<&str>,
    needed: &[Grant],
) -> Result<Admission, EnterError> {
    let admitted = shared.config.access.admit(unix_now(), room, token);
    let allowed = admitted.and_then(|admission| {
        needed.iter().try_for_each(|grant| admission.grants.check(*grant))?;
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

/// Whether, and how, somebody may come into a room.
pub(crate) fn way_in(
    shared: &Shared,
    room: &str,
    loopback: bool,
    admission: &Admission,
    seat: Option<&str>,
) -> Result<Way, Out> {
    shared.rights.way_in(room, loopback, admission, seat, unix_now())
}

/// Lets a participant into a room. Whoever is inside is forgotten by [`leave`].
pub(crate) async fn enter(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    enter_quietly(shared, entry).await.inspect_err(|error| tracing::info!(%error, "join refused"))
}

async fn enter_quietly(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    let Entry { room, name, ticket, admission, permit, seat, admitted, mut options } = entry;
    let way = way_in(shared, room, options.loopback, &admission, seat.as_deref())?;
    if way == Way::Lobby && !admitted {
        return Err(Out::Lobby.into());
    }
    let identity = admission.identity.clone();
    let id = ParticipantId(rand::random_range(1..=u64::MAX));
    let key = if options.loopback { format!("{LOOPBACK}{id}") } else { room.to_owned() };
    let name = admission.name.clone().unwrap_or(name);
    let mut person = Person { name, identity: identity.clone(), was: None };
    if let (Some(ticket), Some(cluster), false) =
        (ticket, &shared.services.cluster, options.loopback)
    {
        let was = cluster.was(&Mover { room, person: &person }, &ticket);
        // Whoever moves here was not here.
        person.was = was.filter(|was| !shared.directory.has(&key, was));
    }
    let now = Instant::now();
    let who = identity.as_deref();
    let begins = if options.loopback { Guest::Loopback } else { Guest::Room };
    let seats = |is_new: bool| -> Result<Seats, Refused> {
        let room = is_new.then(|| permit.seat(begins, who, now)).transpose()?;
        Ok(Seats { own: Some(permit.seat(Guest::Participant, who, now)?), room })
    };
    let entered =
        shared.directory.enter(id, &key, person, admission.grants.clone(), unix_now(), seats);
    let Seat { orders, former } = entered.inspect_err(|error| {
        if let EnterError::Refused(_) = error {
            shared.counters.joins_over_share.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let (member, seat) = shared.rights.entered(id, room, options.loopback, &admission, unix_now());
    let grants = member.ruling.borrow().grants.clone();
    shared.directory.set_grants(id, &grants);
    options.permissions = rights::may(&grants);
    if let Some(former) = former {
        shared.counters.replaced.fetch_add(1, Ordering::Relaxed);
        // Its place in the room is free before it is asked for.
        let _ = shared.services.sfu.leave(former).await;
    }
    match shared.services.sfu.join(&key, id, options).await {
        Ok(joined) => {
            tracing::info!(participant = %id, loopback = options.loopback, room = %pseudonym(room), "joined");
            shared.directory.entered(id);
            let may = rights::may(&member.ruling.borrow().grants);
            if may != options.permissions {
                // It has changed meanwhile.
                let _ = shared.services.sfu.set_permissions(id, may).await;
            }
            Ok(Inside { id, identity, member, seat, orders, joined })
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
