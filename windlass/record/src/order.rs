//! What a recorder is told and tells: orders, events, and who is who.

use std::io;
use std::path::PathBuf;

use windlass_types::{ParticipantId, TrackId};

use crate::manifest::Manifest;

/// Who a participant is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// The identity in its access token.
    pub identity: Option<String>,
    /// The display name.
    pub name: String,
}

/// Finds a participant.
pub type Who = Box<dyn Fn(ParticipantId) -> Option<Person> + Send>;

/// What a recorder asks of others, on its thread.
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
        /// What was recorded.
        manifest: Box<Manifest>,
        /// The recording's folder.
        folder: PathBuf,
    },
}

/// What to record.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Names the recording, and its folder: letters, digits, `_` and `-`.
    pub recording: String,
    /// The room.
    pub room: String,
    /// The identity or the id of the participant that alone is recorded.
    pub participant: Option<String>,
    /// When it was ordered, in seconds since 1970.
    pub started: f64,
    /// Names this server's part.
    pub part: String,
}

impl Order {
    pub(crate) fn manifest(&self) -> Manifest {
        let Order { recording, room, participant, started, part } = self.clone();
        Manifest {
            recording,
            part,
            room,
            participant,
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
        let Manifest { recording, part, room, participant, started, .. } = manifest;
        Order { recording, room, participant, started, part }
    }
}

/// Why a recording does not begin.
#[derive(Debug, thiserror::Error)]
#[error("cannot write into {}: {source}", folder.display())]
pub struct BeginError {
    pub(crate) folder: PathBuf,
    pub(crate) source: io::Error,
}
