//! The way into a room, the same for sockets, WHIP and WHEP: token, seat, SFU.

use std::sync::atomic::Ordering;

use tokio::sync::watch;
use windlass_media::AnchorCodecs;
use windlass_protocol::Grant;
use windlass_sfu::{JoinOptions, Joined, ParticipantId};

use crate::Shared;
use crate::access::Grants;
use crate::directory::Seat;
use crate::redact::pseudonym;
use crate::session::{EnterError, Orders, Person};
use crate::socket::unix_now;

/// Who wants to enter which room.
pub(crate) struct Entry<'a> {
    /// The room, as in its link.
    pub room: &'a str,
    /// The name to show, where the token does not say another.
    pub name: String,
    /// What is to let it in.
    pub token: Option<&'a str>,
    /// A room of its own, and what it can decode.
    pub options: JoinOptions,
    /// Without this it would have no business there.
    pub needed: Option<Grant>,
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

/// Lets a participant into a room. Whoever is inside is forgotten by [`leave`].
pub(crate) async fn enter(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    enter_quietly(shared, entry).await.inspect_err(|error| {
        if matches!(error, EnterError::Access(_)) {
            shared.counters.joins_unauthorized.fetch_add(1, Ordering::Relaxed);
        }
        tracing::info!(%error, "join refused");
    })
}

async fn enter_quietly(shared: &Shared, entry: Entry<'_>) -> Result<Inside, EnterError> {
    let Entry { room, name, token, mut options, needed } = entry;
    let admission = shared.config.access.admit(unix_now(), room, token)?;
    let (identity, grants) = (admission.identity, admission.grants);
    needed.map_or(Ok(()), |grant| grants.check(grant))?;
    if !grants.has(Grant::Enhance) {
        // As one who can decode none: plain rungs only.
        options.anchor_codecs = AnchorCodecs::NONE;
    }
    let id = ParticipantId(rand::random_range(1..=u64::MAX));
    // `/` is in no client's room name, so that a loopback room is nobody else's.
    let key = if options.loopback { format!("loopback/{id}") } else { room.to_owned() };
    let person = Person { name: admission.name.unwrap_or(name), identity: identity.clone() };
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
