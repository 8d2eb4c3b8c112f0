//! The manifest of a recording: a JSON file beside its media, by which tools place the files in time. It is rewritten
//! at every change, and a server that was killed continues from it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A recording, or the part of it that one server made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the recording, the same on all servers of a cluster.
    pub recording: String,
    /// Name of this server's part.
    pub part: String,
    /// Name of the room.
    pub room: String,
    /// Identity or id of the only participant that is recorded; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// Whether enhanced pictures are made too, once the recording has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enhanced: bool,
    /// Time at which the recording was ordered, in seconds since 1970. Offsets of files count from here.
    pub started: f64,
    /// Time at which the recording ended, in seconds since 1970; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<f64>,
    /// Reason for which the recording ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// Description of an error, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The media files, in the order in which they begin.
    #[serde(default)]
    pub files: Vec<MediaFile>,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// An order ended the recording.
    Stopped,
    /// The room was empty for a while.
    RoomEmpty,
    /// A file could not be written.
    WriteFailed,
}

impl EndReason {
    /// Name of the reason, as the manifest has it.
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
    /// Name of the file, in the folder of the manifest.
    pub file: String,
    /// Id of the participant, as in signalling.
    pub participant: String,
    /// Identity in the participant's access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Display name of the participant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Time at which the first frame was made, in seconds since the recording started.
    pub offset: f64,
    /// Time from the first frame to the last, in seconds.
    pub duration: f64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Tracks of the file.
    pub tracks: Vec<MediaTrack>,
    /// Whether the file was completed. It then has an index.
    pub complete: bool,
    /// The file's enhanced picture, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<Enhanced>,
}

/// The enhanced picture of a file, in a file of its own with the same times and sound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Enhanced {
    /// How far it is.
    pub state: EnhancedState,
    /// Name of the file, if it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Size of the file in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Width of all pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    /// Height of all pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u16>,
    /// Number of pictures.
    #[serde(default)]
    pub frames: u64,
    /// Number of anchors that have a part in the pictures.
    #[serde(default)]
    pub anchors: u64,
    /// Description of the error for people, if it cannot be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far an enhanced picture is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnhancedState {
    /// It is made after the recording has ended.
    #[default]
    Waiting,
    /// It is there.
    Made,
    /// No anchors were recorded: nothing would be better than the file as it came.
    NoAnchors,
    /// It cannot be made.
    Failed,
}

impl MediaFile {
    /// Whether the file's enhanced picture is asked for, and not made yet.
    pub(crate) fn awaits_enhanced(&self) -> bool {
        self.enhanced.as_ref().is_some_and(|made| made.state == EnhancedState::Waiting)
    }
}

/// A track of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaTrack {
    /// `video` or `audio`.
    pub kind: String,
    /// `vp9` or `opus`.
    pub codec: String,
    /// Name that the publisher gave the track.
    pub name: String,
    /// Width of the first picture, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    /// Height of the first picture, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u16>,
    /// Number of frames or packets.
    pub frames: u64,
}

impl Manifest {
    /// File name of the manifest.
    pub fn file_name(&self) -> String {
        format!("recording-{}.json", self.part)
    }

    /// Sum of the sizes of the recording's files, in bytes.
    pub fn bytes(&self) -> u64 {
        let enhanced = |file: &MediaFile| file.enhanced.as_ref().map_or(0, |made| made.bytes);
        self.files.iter().map(|file| file.bytes + enhanced(file)).sum()
    }

    /// Whether enhanced pictures of an ended recording are to be made by this program.
    pub(crate) fn awaits_enhanced(&self) -> bool {
        cfg!(feature = "enhanced")
            && self.ended.is_some()
            && self.files.iter().any(MediaFile::awaits_enhanced)
    }

    /// Time from the start to the end of the last file, in seconds.
    pub fn duration(&self) -> f64 {
        self.files.iter().map(|file| file.offset + file.duration).fold(0.0, f64::max)
    }

    /// Writes the manifest so that a complete one exists at any time.
    pub(crate) fn save(&self, folder: &Path) -> std::io::Result<()> {
        let path = folder.join(self.file_name());
        let fresh = path.with_extension("json.part");
        std::fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(fresh, path)
    }

    /// Finds the manifests of all recordings below `root`; returns them with their folders.
    pub(crate) fn all(root: &Path) -> impl Iterator<Item = (Manifest, PathBuf)> {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        let folders = entries.map(|entry| entry.path());
        folders.filter_map(|folder| Some((Manifest::find(&folder)?.0, folder)))
    }

    /// Finds the manifest in the folder of a recording; returns it with its path.
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
