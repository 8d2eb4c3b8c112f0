//! What the directory tells webhooks. Rooms of one's own are nobody else's business.

use windlass_sfu::TrackId;

use super::{OwnTrack, Present};
use crate::webhooks::{Event, EventParticipant, EventTrack, Webhooks, What};

/// A room began or ended.
pub(super) fn room(webhooks: &Webhooks, what: What, room: &str) {
    // Only the SFU's names of rooms of one's own have the sign in them.
    if !room.contains('/') {
        webhooks.push(&Event::now(what, room));
    }
}

/// Somebody came or left.
pub(super) fn participant(webhooks: &Webhooks, what: What, seen: &Present) {
    if !seen.room.contains('/') {
        webhooks.push(&of(what, seen));
    }
}

/// Somebody's track began or ended.
pub(super) fn track(webhooks: &Webhooks, what: What, seen: &Present, id: TrackId, own: &OwnTrack) {
    if !seen.room.contains('/') {
        let track = EventTrack { id: id.to_string(), kind: own.kind, name: own.name.clone() };
        webhooks.push(&Event { track: Some(track), ..of(what, seen) });
    }
}

fn of(what: What, seen: &Present) -> Event {
    let participant = EventParticipant {
        id: seen.id.to_string(),
        identity: seen.info.identity.clone(),
        name: seen.info.name.clone(),
    };
    Event { participant: Some(participant), ..Event::now(what, &seen.room) }
}
