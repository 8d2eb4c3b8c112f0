//! Events of the directory for webhooks. Loopback rooms have no events.

use windlass_sfu::TrackId;

use super::{OwnTrack, Present};
use crate::webhooks::{Event, EventParticipant, EventTrack, EventType, Webhooks};

/// Queues the event that a room began or ended.
pub(super) fn room(webhooks: &Webhooks, what: EventType, room: &str) {
    // Only the names of loopback rooms contain `/`.
    if !room.contains('/') {
        webhooks.push(&Event::now(what, room));
    }
}

/// Queues the event that a participant joined or left.
pub(super) fn participant(webhooks: &Webhooks, what: EventType, present: &Present) {
    if !present.room.contains('/') {
        webhooks.push(&of(what, present));
    }
}

/// Queues the event that a track was published or unpublished.
pub(super) fn track(
    webhooks: &Webhooks,
    what: EventType,
    present: &Present,
    id: TrackId,
    own: &OwnTrack,
) {
    if !present.room.contains('/') {
        let track = EventTrack { id: id.to_string(), kind: own.kind, name: own.name.clone() };
        webhooks.push(&Event { track: Some(track), ..of(what, present) });
    }
}

fn of(what: EventType, present: &Present) -> Event {
    let participant = EventParticipant {
        id: present.id.to_string(),
        identity: present.info.identity.clone(),
        name: present.info.name.clone(),
    };
    Event { participant: Some(participant), ..Event::now(what, &present.room) }
}
