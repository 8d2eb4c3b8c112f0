//! The manifest of a recording: a JSON file beside its media, by which tools put the files into their places in time.
//! It is written anew whenever something changes, and a server that was killed goes on by it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A recording, or the part of it that one server made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The recording: the same at all servers of a cluster.
    pub recording: String,
    /// Names this server's part.
    pub part: String,
    /// The room.
    pub room: String,
    /// The identity or the id of the participant that alone is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// When the recording was ordered, in seconds since 1970. Files have their offsets from here.
    pub started: f64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<f64>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// What went wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The media, in the order of their beginnings.
    #[serde(default)]
    pub files: Vec<MediaFile>,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It was ordered to end.
    Stopped,
    /// Its room was empty for a while.
    RoomEmpty,
    /// A file could not be written.
    WriteFailed,
}

impl EndReason {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Stopped => "stopped",
            EndReason::RoomEmpty => "room_empty",
            EndReason::WriteFailed => "write_failed",
        }
    }
}

/// A WebM file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaFile {
    /// Its name, in the folder of the manifest.
    pub file: String,
    /// The id of the participant, as in signalling.
    pub participant: String,
    /// The identity in its access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The display name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When its first frame was made, in seconds since the recording started.
    pub offset: f64,
    /// Time from its first frame to its last, in seconds.
    pub duration: f64,
    /// Its size.
    pub bytes: u64,
    /// Its tracks.
    pub tracks: Vec<MediaTrack>,
    /// Whether it was ended as it should be: it then has an index.
    pub complete: bool,
}

/// A track of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaTrack {
    /// `video` or `audio`.
    pub kind: String,
    /// `vp9` or `opus`.
    pub codec: String,
    /// The publisher's name for it.
    pub name: String,
    /// Width of the first picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    /// Height of the first picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u16>,
    /// Frames or packets.
    pub frames: u64,
}

impl Manifest {
    /// Its file name.
    pub fn file_name(&self) -> String {
        format!("recording-{}.json", self.part)
    }

    /// Sum of the sizes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Time from the start to the end of the last file, in seconds.
    pub fn duration(&self) -> f64 {
        self.files.iter().map(|file| file.offset + file.duration).fold(0.0, f64::max)
    }

    /// Writes it, so that there is a whole one at any time.
    pub(crate) fn save(&self, folder: &Path) -> std::io::Result<()> {
        let path = folder.join(self.file_name());
        let fresh = path.with_extension("json.part");
        std::fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(fresh, path)
    }

    /// The manifest in a folder of one recording, and its path.
    pub(crate) fn find(folder: &Path) -> Option<(Manifest, PathBuf)> {
        let entries = std::fs::read_dir(folder).ok()?;
        entries.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix("recording-")?.strip_suffix(".json")?;
            let text = std::fs::read(entry.path()).ok()?;
            Some((serde_json::from_slice(&text).ok()?, entry.path()))
        })
    }
}
