//! Recordings of rooms: tracks as they came, VP9 and Opus, in WebM files.
//!
//! The SFU gives complete VP9 frames and Opus packets to [`Recorder::sink`], which never waits. Media for which the
//! bounded queue has no room is dropped and counted. One thread writes files. [`webm`] and the code that places media
//! in time do no I/O.
//!
//! Each recording has a folder of its own, with a file for each participant's camera and microphone, and for each
//! screen. Another file begins where a participant comes back, where a track comes that the file lacks, and after a
//! restart of the server. The [`Manifest`] says where in time each file belongs. Files play while they are written, and
//! when the server is killed: a cluster of two seconds at most is lost.
//!
//! With an enhanced recording, anchors are written beside the files. When it has ended, an enhanced file is made of
//! each, with the lowest priority (feature `enhanced`).
//!
//! With a store, ended recordings are sent there, and deleted here.
//!
//! [`ServerRecorder`] is the recorder of a server: signalling orders recordings, the SFU gives media, and rooms are
//! told.

mod anchors;
mod check;
mod clock;
mod disk;
mod ebml;
#[cfg(feature = "enhanced")]
mod enhanced;
mod files;
mod group;
mod manifest;
mod order;
mod queue;
#[cfg(feature = "enhanced")]
mod read_anchors;
#[cfg(feature = "enhanced")]
mod read_webm;
mod recorder;
mod recording;
mod server;
mod store;
pub mod webm;

pub use self::check::CheckError;
pub use self::manifest::{EndReason, Enhanced, EnhancedState, Manifest, MediaFile, MediaTrack};
pub use self::order::{BeginError, Event, Hooks, Order, Person, Who};
pub use self::queue::Counts;
pub use self::recorder::{Recorder, Sink};
pub use self::server::{OpenError, RecordTo, ServerRecorder};
pub use self::store::{BucketError, EnvironmentError, Place, PlaceError, StoreSetupError};

#[cfg(test)]
mod tests;
