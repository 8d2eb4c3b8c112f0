//! Interface to a recorder: orders of signalling, and reports on recordings.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use windlass_sfu::ParticipantId;

use crate::rights::Recording;

/// An order to record a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingOrder {
    /// Name of the recording: the same on all servers of a cluster.
    pub recording: String,
    /// The room.
    pub room: String,
    /// Identity, or else id, of the only participant to record; `None`: all.
    pub participant: Option<String>,
    /// Time of the order, in milliseconds since 1970.
    pub since: u64,
    /// Whether enhanced pictures are made of it too, once it has ended.
    pub enhanced: bool,
}

/// Why a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingEnd {
    /// An order ended the recording.
    Stopped,
    /// The room of the recording was empty for a while.
    RoomEmpty,
}

/// Records rooms for signalling.
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
    /// Name of the recording.
    pub id: String,
    /// Identity, or else id, of the only participant that is recorded; absent: all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// Folder of the recording on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Manifest of the recording, in its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Sum of the files' sizes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Time from the start to the end of the last file, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Files with media. Of more than 100 files only the first ones are listed: the manifest has all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<EventFile>,
    /// Why the recording ended: `stopped`, `room_empty` or `write_failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Description of the error for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A file of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventFile {
    /// Name of the file.
    pub file: String,
    /// Id of the recorded participant.
    pub participant: String,
    /// Identity in the participant's access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Time at which the file begins, in seconds since the recording's start.
    pub offset: f64,
    /// Length of the file in seconds.
    pub duration: f64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Tracks in the file: `video`, `audio`.
    pub tracks: Vec<String>,
    /// The file with the enhanced picture, in the same folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<String>,
}

/// A recording that runs here.
#[derive(Debug)]
pub(crate) struct Running {
    /// Name of the recording.
    pub(crate) id: String,
    /// Rule by which the room is recorded.
    pub(crate) ordered: Recording,
    /// Participants in the last order to the SFU; `None`: there was no order yet.
    pub(crate) notified: Option<BTreeSet<ParticipantId>>,
}

/// The recordings that run here, by room.
#[derive(Debug, Default)]
pub(crate) struct Recordings(pub(crate) Mutex<BTreeMap<String, Running>>);

/// The name of a recording.
pub(crate) fn name(room: &str, since: u64) -> String {
    let digest = digest::digest(&digest::SHA256, format!("{since} {room}").as_bytes());
    let hex: Vec<String> = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("rec_{}", hex.concat())
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
