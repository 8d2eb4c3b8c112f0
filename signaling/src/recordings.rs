//! Recordings of rooms, as the rules of the cluster have them ([`crate::rights`]): each server that has a recorder records what its own
//! participants publish, and everybody in the room is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::digest;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use windlass_sfu::{ParticipantId, Recorded};

use crate::rights::Recording;
use crate::shared::Shared;
use crate::webhooks::{Event, What};

/// What to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingOrder {
    /// Names the recording: the same on all servers of a cluster.
    pub recording: String,
    /// The room.
    pub room: String,
    /// The identity or the id of the participant that alone is recorded.
    pub participant: Option<String>,
    /// When it was ordered, in milliseconds since 1970.
    pub since: u64,
}

/// Why a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingEnd {
    /// It was ordered to end.
    Stopped,
    /// Its room was empty for a while.
    RoomEmpty,
}

/// What records rooms.
pub trait Recorder: Send + Sync {
    /// Begins a recording, or goes on with one of the same name. May wait for the disk. The error is for people.
    ///
    /// # Errors
    ///
    /// Nothing can be written.
    fn begin(&self, order: &RecordingOrder) -> Result<(), String>;

    /// Ends the recording of a room; [`crate::Signaling::recording_ended`] follows. Does not wait.
    fn end(&self, room: &str, why: RecordingEnd);

    /// Recordings that had not ended when the server did.
    fn unfinished(&self) -> Vec<RecordingOrder>;
}

/// A recording, in webhooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct EventRecording {
    /// Its name.
    pub id: String,
    /// The identity or the id of the participant that alone is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// Its folder on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its manifest, in that folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Sum of the sizes of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Time from the start to the end of the last file, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Its media; of more than 100 files the first ones: the manifest has all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<EventFile>,
    /// Why it ended: `stopped`, `room_empty` or `write_failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A file of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventFile {
    /// Its name.
    pub file: String,
    /// The participant's id.
    pub participant: String,
    /// The identity in its access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it begins, in seconds since the recording did.
    pub offset: f64,
    /// Its length in seconds.
    pub duration: f64,
    /// Its size.
    pub bytes: u64,
    /// Its tracks: `video`, `audio`.
    pub tracks: Vec<String>,
}

/// A recording that runs here.
#[derive(Debug)]
struct Running {
    id: String,
    ordered: Recording,
    /// What the SFU was told; `None`: nothing yet.
    told: Option<BTreeSet<ParticipantId>>,
}

/// The recordings that run here, by room.
#[derive(Debug, Default)]
pub(crate) struct Recordings(Mutex<BTreeMap<String, Running>>);

/// The name of a recording.
pub(crate) fn name(room: &str, since: u64) -> String {
    let digest = digest::digest(&digest::SHA256, format!("{since} {room}").as_bytes());
    let hex: Vec<String> = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("rec_{}", hex.concat())
}

/// Takes up the recordings that had not ended when the server did. Their rooms have a minute to be there again.
pub(crate) async fn resume(shared: &Arc<Shared>) {
    let Some(recorder) = shared.services.recorder.clone() else { return };
    for order in recorder.unfinished() {
        let RecordingOrder { recording, room, participant, since } = order.clone();
        let ordered = Recording { since, participant };
        let moderation = crate::admin::moderation(shared, &room);
        let resumed = moderation.resume_recording(&ordered);
        if resumed.is_err() || moderation.recording().as_ref() != Some(&ordered) {
            // It was ended meanwhile, or the room is recorded anew.
            continue;
        }
        let began = recorder.clone();
        let result = tokio::task::spawn_blocking(move || began.begin(&order)).await;
        match result {
            Ok(Ok(())) => {
                tracing::info!(%recording, "recording goes on after a restart");
                let running = Running { id: recording, ordered, told: None };
                shared.recordings.0.lock().await.insert(room, running);
            }
            Ok(Err(error)) => tracing::error!(%recording, %error, "recording cannot go on"),
            Err(_) => {}
        }
    }
}

/// Brings what runs here to what the rules say. The error of a recording that could not begin, by its room.
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
            };
            let begins = recorder.clone();
            let began = tokio::task::spawn_blocking(move || begins.begin(&order)).await;
            let began = began.unwrap_or_else(|_| Err("the recorder did not answer".to_owned()));
            if let Err(error) = began {
                tracing::error!(%error, "recording cannot begin");
                let _ = crate::admin::moderation(shared, &room).end_recording();
                told(shared, What::RecordingEnded, &room, failed(id, &error));
                errors.insert(room, error);
                continue;
            }
            let recording = EventRecording {
                id: id.clone(),
                participant: ordered.participant.clone(),
                ..EventRecording::default()
            };
            told(shared, What::RecordingStarted, &room, recording);
            running.insert(room.clone(), Running { id, ordered: ordered.clone(), told: None });
        }
        let Some(now) = running.get_mut(&room) else { continue };
        if now.told.as_ref() != Some(&members) {
            let recorded = match ordered.participant {
                None => Recorded::All,
                Some(_) => Recorded::Only(members.iter().copied().collect()),
            };
            let _ = shared.services.sfu.set_recorded(&room, Some(recorded)).await;
            now.told = Some(members);
        }
    }
    errors
}

/// The participants that alone are recorded; none where all are.
fn recorded_members(shared: &Shared, room: &str, ordered: &Recording) -> BTreeSet<ParticipantId> {
    let Some(whom) = &ordered.participant else { return BTreeSet::new() };
    let present = shared.directory.room(room).map(|state| state.present).unwrap_or_default();
    let meant = present.into_iter().filter(|present| {
        present.info.identity.as_deref() == Some(whom) || present.id.to_string() == *whom
    });
    meant.map(|present| present.id).collect()
}

/// A recording has ended here, by an order or by itself.
pub(crate) async fn ended(shared: &Arc<Shared>, room: &str, recording: EventRecording) {
    let mut running = shared.recordings.0.lock().await;
    if running.get(room).is_some_and(|now| now.id == recording.id) {
        // It ended by itself: nobody else may go on to say that the room is recorded.
        running.remove(room);
        let _ = shared.services.sfu.set_recorded(room, None).await;
        let _ = crate::admin::moderation(shared, room).end_recording();
    }
    drop(running);
    told(shared, What::RecordingEnded, room, recording);
}

fn told(shared: &Shared, what: What, room: &str, recording: EventRecording) {
    let recording = Some(recording);
    shared.webhooks.push(&Event { recording, ..Event::now(what, room) });
}

fn failed(id: String, error: &str) -> EventRecording {
    let reason = Some("write_failed".to_owned());
    EventRecording { id, reason, error: Some(error.to_owned()), ..EventRecording::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_has_a_name_that_is_a_folders_and_the_same_everywhere() {
        assert_eq!(name("tea", 5), name("tea", 5));
        assert_ne!(name("tea", 5), name("tea", 6));
        let name = name("../tea", 5);
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{name}");
    }
}
