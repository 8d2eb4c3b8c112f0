//! Records rooms by the rules of the cluster ([`crate::rights`]). Each server that has a recorder records what its own
//! participants publish. Everybody in the room is notified.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_sfu::{ParticipantId, Recorded, RecordedWho};

use crate::recordings::{EventRecording, RecordingEnd, RecordingOrder, Running, name};
use crate::rights::{Moderation, Recording};
use crate::shared::Shared;
use crate::webhooks::{Event, EventType};

fn moderation<'a>(shared: &'a Shared, room: &'a str) -> Moderation<'a> {
    Moderation { rights: &shared.rights, directory: &shared.directory, room }
}

/// Goes on with the recordings that had not ended when the server did. Their participants have a minute to come back.
pub(crate) async fn resume(shared: &Arc<Shared>) {
    let Some(recorder) = shared.services.recorder.clone() else { return };
    for order in recorder.unfinished() {
        let RecordingOrder { recording, room, participant, since, enhanced } = order.clone();
        let ordered = Recording { since, participant, enhanced };
        let rules = moderation(shared, &room);
        let resumed = rules.resume_recording(&ordered);
        if resumed.is_err() || rules.recording().as_ref() != Some(&ordered) {
            // The recording was ended meanwhile, or the room has a new one.
            continue;
        }
        let began = recorder.clone();
        let result = tokio::task::spawn_blocking(move || began.begin(&order)).await;
        match result {
            Ok(Ok(())) => {
                tracing::info!(%recording, "recording goes on after a restart");
                let running = Running { id: recording, ordered, notified: None };
                shared.recordings.0.lock().await.insert(room, running);
            }
            Ok(Err(error)) => {
                tracing::error!(%recording, %error, "recording cannot go on after a restart: check space and permissions of its folder");
            }
            Err(_) => {}
        }
    }
}

/// Begins and ends recordings by the current rules. Returns the errors of recordings that could not begin, by room.
pub(crate) async fn follow(shared: &Arc<Shared>) -> BTreeMap<String, String> {
    let mut errors = BTreeMap::new();
    let Some(recorder) = shared.services.recorder.clone() else { return errors };
    let wanted: BTreeMap<String, Recording> = shared.rights.recordings().into_iter().collect();
    let mut running = shared.recordings.0.lock().await;
    if wanted.is_empty() && running.is_empty() {
        return errors;
    }
    let ended = running.iter().filter(|(room, now)| wanted.get(*room) != Some(&now.ordered));
    for room in ended.map(|(room, _)| room.clone()).collect::<Vec<_>>() {
        running.remove(&room);
        let _ = shared.services.sfu.set_recorded(&room, None).await;
        let lifted = shared.rights.has_lifted_recording(&room);
        recorder.end(&room, if lifted { RecordingEnd::Stopped } else { RecordingEnd::RoomEmpty });
    }
    for (room, ordered) in wanted {
        let members = recorded_members(shared, &room, &ordered);
        if !running.contains_key(&room) {
            if shared.directory.count(&room) == 0 {
                continue;
            }
            let id = name(&room, ordered.since);
            let order = RecordingOrder {
                recording: id.clone(),
                room: room.clone(),
                participant: ordered.participant.clone(),
                since: ordered.since,
                enhanced: ordered.enhanced,
            };
            let begins = recorder.clone();
            let began = tokio::task::spawn_blocking(move || begins.begin(&order)).await;
            let began = began.unwrap_or_else(|_| Err("the recorder did not answer".to_owned()));
            if let Err(error) = began {
                tracing::error!(%error, "recording cannot begin: check space and permissions of the recordings' folder");
                let _ = moderation(shared, &room).end_recording();
                send_event(shared, EventType::RecordingEnded, &room, failed(id, &error));
                errors.insert(room, error);
                continue;
            }
            let recording = EventRecording {
                id: id.clone(),
                participant: ordered.participant.clone(),
                ..EventRecording::default()
            };
            send_event(shared, EventType::RecordingStarted, &room, recording);
            running.insert(room.clone(), Running { id, ordered: ordered.clone(), notified: None });
        }
        let Some(now) = running.get_mut(&room) else { continue };
        if now.notified.as_ref() != Some(&members) {
            let whom = match ordered.participant {
                None => RecordedWho::All,
                Some(_) => RecordedWho::Only(members.iter().copied().collect()),
            };
            let recorded = Recorded { whom, anchors: ordered.enhanced };
            let _ = shared.services.sfu.set_recorded(&room, Some(recorded)).await;
            now.notified = Some(members);
        }
    }
    errors
}

/// The participants of the room that are recorded alone; none where all are recorded.
fn recorded_members(shared: &Shared, room: &str, ordered: &Recording) -> BTreeSet<ParticipantId> {
    let Some(whom) = &ordered.participant else { return BTreeSet::new() };
    let present = shared.directory.room(room).map(|state| state.present).unwrap_or_default();
    let meant = present.into_iter().filter(|present| {
        present.info.identity.as_deref() == Some(whom) || present.id.to_string() == *whom
    });
    meant.map(|present| present.id).collect()
}

/// Handles the end of a recording here, by an order or by itself.
pub(crate) async fn ended(shared: &Arc<Shared>, room: &str, recording: EventRecording) {
    let mut running = shared.recordings.0.lock().await;
    if running.get(room).is_some_and(|now| now.id == recording.id) {
        // The recording ended by itself: no other server may go on to report that the room is recorded.
        running.remove(room);
        let _ = shared.services.sfu.set_recorded(room, None).await;
        let _ = moderation(shared, room).end_recording();
    }
    drop(running);
    send_event(shared, EventType::RecordingEnded, room, recording);
}

/// Tells webhooks of a recording whose enhanced pictures are made.
pub(crate) fn enhanced(shared: &Shared, room: &str, recording: EventRecording) {
    send_event(shared, EventType::RecordingEnhanced, room, recording);
}

/// Tells webhooks of a recording that the store has.
pub(crate) fn stored(shared: &Shared, room: &str, recording: EventRecording) {
    send_event(shared, EventType::RecordingStored, room, recording);
}

fn send_event(shared: &Shared, what: EventType, room: &str, recording: EventRecording) {
    let recording = Some(recording);
    shared.webhooks.push(&Event { recording, ..Event::now(what, room) });
}

fn failed(id: String, error: &str) -> EventRecording {
    let reason = Some("write_failed".to_owned());
    EventRecording { id, reason, error: Some(error.to_owned()), ..EventRecording::default() }
}
