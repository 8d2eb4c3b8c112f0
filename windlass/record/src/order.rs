//! Orders to a recorder, its events, and who participants are.

use std::io;
use std::path::PathBuf;

use windlass_types::{ParticipantId, TrackId};

use crate::manifest::Manifest;

/// Names of a participant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// Identity in the participant's access token.
    pub identity: Option<String>,
    /// Display name of the participant.
    pub name: String,
}

/// Function that finds a participant.
pub type Who = Box<dyn Fn(ParticipantId) -> Option<Person> + Send>;

/// Functions that a recorder calls, on its thread.
pub struct Hooks {
    /// Finds a participant.
    pub who: Who,
    /// Asks for a key frame of a track.
    pub key_frame: Box<dyn Fn(TrackId) + Send>,
    /// Takes events.
    pub event: Box<dyn Fn(Event) + Send>,
}

/// An event of a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A recording has ended, as its manifest says.
    Ended {
        /// Manifest of the recording.
        manifest: Box<Manifest>,
        /// Folder of the recording.
        folder: PathBuf,
    },
    /// The enhanced pictures of an ended recording are made, or cannot be made, as its manifest says.
    Enhanced {
        /// Manifest of the recording.
        manifest: Box<Manifest>,
        /// Folder of the recording.
        folder: PathBuf,
    },
    /// The store has an ended recording, and this machine no longer.
    Stored {
        /// Manifest of the recording.
        manifest: Box<Manifest>,
        /// Place of its files: `s3://BUCKET/PREFIX/RECORDING`.
        place: String,
    },
}

/// Order to record a room.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Name of the recording and of its folder: letters, digits, `_` and `-`.
    pub recording: String,
    /// Name of the room.
    pub room: String,
    /// Identity or id of the only participant that is recorded; `None` for all.
    pub participant: Option<String>,
    /// Whether enhanced pictures are made too, once the recording has ended.
    pub enhanced: bool,
    /// Time of the order, in seconds since 1970.
    pub started: f64,
    /// Name of this server's part.
    pub part: String,
}

impl Order {
    pub(crate) fn manifest(&self) -> Manifest {
        let Order { recording, room, participant, enhanced, started, part } = self.clone();
        Manifest {
            recording,
            part,
            room,
            participant,
            enhanced,
            started,
            ended: None,
            reason: None,
            error: None,
            files: Vec::new(),
        }
    }
}

impl From<Manifest> for Order {
    fn from(manifest: Manifest) -> Order {
        let Manifest { recording, part, room, participant, enhanced, started, .. } = manifest;
        Order { recording, room, participant, enhanced, started, part }
    }
}

/// Error that keeps a recording from beginning: its folder cannot be written into.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write into {}: {source}; give it space, and the server's user the right to write",
    folder.display()
)]
pub struct BeginError {
    pub(crate) folder: PathBuf,
    pub(crate) source: io::Error,
}
