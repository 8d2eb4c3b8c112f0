//! Entry of participants into rooms, for sockets, WHIP and WHEP alike: admission control, access token, rules,
//! directory, SFU.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::watch;
use windlass_protocol::{Attributes, Grant};
use windlass_sfu::{JoinOptions, Joined, ParticipantId};

use crate::access::Admission;
use crate::admission::{Permit, Refused, Resource, Slot};
use crate::clock::unix_now;
use crate::cluster::{Mover, RoomServer};
use crate::directory::{Registered, Slots};
use crate::redact::pseudonym;
use crate::rights::{self, Denied, EntryMode, Member};
use crate::session::{Commands, EnterError, ParticipantInfo};
use crate::shared::Shared;

/// Prefix of loopback rooms' names in the SFU. Clients' room names have no `/`, so no other room has such a name.
pub(crate) const LOOPBACK: &str = "loopback/";

/// A request to enter a room.
pub(crate) struct Entry<'a> {
    /// The room's name.
    pub room: &'a str,
    /// Display name, if the token has none.
    pub name: String,
    /// Ticket of the server from which the participant moves.
    pub ticket: Option<String>,
    /// Result of [`admit`].
    pub admission: Admission,
    /// Seat token of an earlier stay in the room.
    pub seat: Option<String>,
    /// Whether a moderator has let the participant in.
    pub admitted: bool,
    /// The attributes that the participant tells the others.
    pub attributes: Attributes,
    /// Permit of the client, to which its participant and room are counted.
    pub permit: &'a Permit,
    /// Whether the room is a loopback room, and what the client can decode.
    pub options: JoinOptions,
}

/// A participant that has entered its room.
pub(crate) struct Inside {
    pub id: ParticipantId,
    /// Identity in the participant's access token.
    pub identity: Option<String>,
    /// Rights of the participant.
    pub member: Member,
    /// Seat token, with which the participant may enter again.
    pub seat: Option<String>,
    /// The attributes that the participant tells the others; none without the grant for them.
    pub attributes: Attributes,
    /// Commands of operators and other participants.
    pub commands: watch::Receiver<Commands>,
    /// State and events of the room.
    pub joined: Joined,
}

/// Admits a connection, for as long as the slot lives.
pub(crate) fn connection(shared: &Shared, peer: IpAddr) -> Result<Slot, Refused> {
    let slot =
        shared.admission.acquire(Resource::Connection, counted(shared, peer), Instant::now());
    slot.inspect_err(|refused| {
        let counter = match refused {
            Refused::Full => &shared.counters.connections_refused_full,
            _ => &shared.counters.connections_refused_address,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Admits a TLS handshake, for as long as the slot lives.
pub(crate) fn handshake(shared: &Shared, peer: IpAddr) -> Result<Slot, Refused> {
    shared.admission.acquire(Resource::Handshake, counted(shared, peer), Instant::now())
}

/// The address to which a connection is counted; `None` for trusted proxies, which serve many clients.
fn counted(shared: &Shared, peer: IpAddr) -> Option<IpAddr> {
    (!shared.config.proxies.is_trusted(peer.to_canonical())).then_some(peer)
}

/// Admits a socket or session, for as long as the permit lives.
pub(crate) fn socket(shared: &Shared, client: IpAddr) -> Result<Permit, Refused> {
    shared.admission.socket(client, Instant::now()).inspect_err(|refused| {
        let counter = match refused {
            Refused::Full => &shared.counters.sockets_refused_full,
            _ => &shared.counters.sockets_refused_address,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Counts a join for the permit's address.
pub(crate) fn count_join(shared: &Shared, permit: &Permit) -> Result<(), Refused> {
    permit.join(Instant::now()).inspect_err(|_| {
        shared.counters.joins_limited.fetch_add(1, Ordering::Relaxed);
    })
}

/// Admission of the bearer of a token to a room. Refuses tokens without all grants that are `needed`.
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
        tracing::info!(%error, "join refused by the access token");
    })
}

/// Where a room is.
pub(crate) async fn place(shared: &Shared, room: &str, options: &JoinOptions) -> RoomServer {
    match &shared.services.cluster {
        Some(cluster) if !options.loopback => {
            cluster.place(room, shared.directory.count(room)).await
        }
        _ => RoomServer::Local,
    }
}

/// Whether a client may enter a room, and whether it must wait in the lobby.
pub(crate) fn check_entry(
    shared: &Shared,
    room: &str,
    loopback: bool,
    admission: &Admission,
    seat: Option<&str>,
) -> Result<EntryMode, Denied> {
    shared.rights.check_entry(room, loopback, admission, seat, unix_now())
}

/// Lets a participant enter a room, until [`leave`].
pub(crate) async fn enter(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    enter_quietly(shared, entry).await.inspect_err(|error| tracing::info!(%error, "join refused"))
}

async fn enter_quietly(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    let Entry { room, name, ticket, admission, permit, seat, admitted, attributes, mut options } =
        entry;
    let mode = check_entry(shared, room, options.loopback, &admission, seat.as_deref())?;
    if mode == EntryMode::Lobby && !admitted {
        return Err(Denied::Lobby.into());
    }
    let identity = admission.identity.clone();
    let id = ParticipantId(rand::random_range(1..=u64::MAX));
    let key = if options.loopback { format!("{LOOPBACK}{id}") } else { room.to_owned() };
    let name = admission.name.clone().unwrap_or(name);
    let mut info =
        ParticipantInfo { name, identity: identity.clone(), ..ParticipantInfo::default() };
    if let (Some(ticket), Some(cluster), false) =
        (ticket, &shared.services.cluster, options.loopback)
    {
        let former = cluster.former_id(&Mover { room, participant: &info }, &ticket);
        // A participant of this server has not moved here.
        info.was = former.filter(|former| !shared.directory.has(&key, former));
    }
    // A seat token names the participant that comes back after a lost connection, even without an identity.
    let seat = seat.filter(|_| !options.loopback);
    let seated = |seat: String| shared.rights.seated(room, identity.as_deref(), &seat, unix_now());
    info.was = info.was.or_else(|| seat.and_then(seated).map(|was| was.to_string()));
    let now = Instant::now();
    let who = identity.as_deref();
    let room_kind = if options.loopback { Resource::Loopback } else { Resource::Room };
    let slots = |is_new: bool| -> Result<Slots, Refused> {
        let room = is_new.then(|| permit.slot(room_kind, who, now)).transpose()?;
        Ok(Slots { own: Some(permit.slot(Resource::Participant, who, now)?), room })
    };
    let entered =
        shared.directory.enter(id, &key, info, admission.grants.clone(), unix_now(), slots);
    let Registered { commands, former } = entered.inspect_err(|error| {
        if let EnterError::Refused(_) = error {
            shared.counters.joins_over_share.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let (member, seat) = shared.rights.entered(id, room, options.loopback, &admission, unix_now());
    let grants = member.ruling.borrow().grants.clone();
    shared.directory.set_grants(id, &grants);
    options.permissions = rights::may(&grants);
    let attributes = if grants.has(Grant::Data) { attributes } else { Attributes::new() };
    shared.directory.set_attributes(id, None, attributes.clone());
    if let Some(former) = former {
        shared.counters.replaced.fetch_add(1, Ordering::Relaxed);
        // The SFU must have room for the new participant.
        let _ = shared.services.sfu.leave(former).await;
    }
    match shared.services.sfu.join(&key, id, options).await {
        Ok(joined) => {
            tracing::info!(participant = %id, loopback = options.loopback, room = %pseudonym(room), "joined");
            shared.directory.entered(id);
            let may = rights::may(&member.ruling.borrow().grants);
            if may != options.permissions {
                // The grants have changed meanwhile.
                let _ = shared.services.sfu.set_permissions(id, may).await;
            }
            Ok(Inside { id, identity, member, seat, attributes, commands, joined })
        }
        Err(error) => {
            shared.directory.leave(id);
            Err(error.into())
        }
    }
}

/// Removes a participant from its room; from the SFU too, if it is still there.
pub(crate) async fn leave(shared: &Shared, id: ParticipantId) {
    shared.directory.leave(id);
    tracing::info!(participant = %id, "left");
    let _ = shared.services.sfu.leave(id).await;
}
