//! Recordings of rooms: tracks as they came, VP9 and Opus, in WebM files.
//!
//! The SFU gives complete VP9 frames and Opus packets to [`Recorder::sink`], which never waits: what a bounded queue has no room for is
//! dropped and counted. One thread writes files. [`webm`] and what puts media into its place in time are without I/O.
//!
//! Each recording has a folder of its own, with a file for each participant's camera and microphone, and for each screen. Another file
//! begins where a participant comes back, where a track comes that the file lacks, and after a restart of the server. The [`Manifest`]
//! says where in time each file belongs. Files play while they are written, and when the server is killed: a cluster of two seconds at
//! most is lost.

mod clock;
mod disk;
mod ebml;
mod group;
mod manifest;
mod recording;
pub mod webm;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use windlass_types::recording::RecordInput;
use windlass_types::{ParticipantId, TrackId};

use self::disk::{Disk, LocalFiles, Request};
pub use self::manifest::{EndReason, Manifest, MediaFile, MediaTrack};

/// Frames and packets that may wait for the disk: ten seconds of twenty participants.
const MAX_QUEUED: usize = 32_768;
/// Bytes of media that may wait for the disk.
const MAX_QUEUED_BYTES: usize = 64 << 20;

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
    fn manifest(&self) -> Manifest {
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
    folder: PathBuf,
    source: io::Error,
}

/// The recorder's figures.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: AtomicUsize,
    bytes: AtomicUsize,
    dropped: AtomicU64,
    gaps: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
    recordings: AtomicUsize,
    written: AtomicU64,
}

impl Queue {
    /// Whether media finds room.
    fn admit(&self, bytes: usize) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let there = self.bytes.load(Ordering::Relaxed);
        if waiting >= MAX_QUEUED || there + bytes > MAX_QUEUED_BYTES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    pub(crate) fn took(&self, bytes: usize) {
        if bytes > 0 {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn lost(&self, gaps: u64, late: u64) {
        self.gaps.fetch_add(gaps, Ordering::Relaxed);
        self.late.fetch_add(late, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_recordings(&self, count: usize) {
        self.recordings.store(count, Ordering::Relaxed);
    }
}

/// A snapshot of a recorder's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Recordings that run.
    pub recordings: usize,
    /// Recordings that ended because a file could not be written.
    pub failed: u64,
    /// Frames and packets dropped because the queue was full.
    pub dropped: u64,
    /// Gaps of video tracks.
    pub gaps: u64,
    /// Packets of audio that came too late.
    pub late: u64,
    /// Bytes of media that were taken.
    pub bytes: u64,
}

/// A recorder. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct Recorder {
    root: PathBuf,
    requests: Sender<Request>,
    /// Until it runs.
    waiting: Arc<Mutex<Option<Receiver<Request>>>>,
    queue: Arc<Queue>,
}

impl Recorder {
    /// A recorder that writes into a folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or written into.
    pub fn new(root: &Path) -> Result<Recorder, BeginError> {
        let failed = |source| BeginError { folder: root.to_owned(), source };
        std::fs::create_dir_all(root).map_err(failed)?;
        let probe = root.join(".windlass");
        std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)).map_err(failed)?;
        let (requests, receiver) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(Some(receiver)));
        Ok(Recorder { root: root.to_owned(), requests, waiting, queue: Arc::default() })
    }

    /// Takes what an SFU gives, and never waits. `false`: it was dropped, as the queue is full.
    pub fn sink(&self) -> Arc<dyn Fn(RecordInput) -> bool + Send + Sync> {
        let (requests, queue) = (self.requests.clone(), self.queue.clone());
        Arc::new(move |input| {
            let bytes = input.media_bytes();
            if bytes > 0 && !queue.admit(bytes) {
                return false;
            }
            requests.send(Request::Input(input)).is_ok()
        })
    }

    /// Starts the thread; nothing if it runs already.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn start(&self, hooks: Hooks) -> io::Result<Option<JoinHandle<()>>> {
        let Some(requests) = self.waiting.lock().take() else { return Ok(None) };
        let disk = Disk::new(self.root.clone(), LocalFiles::default(), hooks, self.queue.clone());
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        thread.spawn(move || disk.run(&requests)).map(Some)
    }

    /// Begins a recording, or goes on with one of that name. Waits for the disk. Returns its folder.
    ///
    /// # Errors
    ///
    /// Its folder cannot be written into.
    pub fn begin(&self, order: Order) -> Result<PathBuf, BeginError> {
        let gone =
            |folder: PathBuf| BeginError { folder, source: io::ErrorKind::BrokenPipe.into() };
        let folder = self.root.join(&order.recording);
        let (answer, answered) = mpsc::channel();
        if self.requests.send(Request::Begin(order, answer)).is_err() {
            return Err(gone(folder));
        }
        answered.recv().unwrap_or_else(|_| Err(gone(folder)))
    }

    /// Ends the recording of a room, if there is one: [`Event::Ended`] follows.
    pub fn end(&self, room: &str, reason: EndReason) {
        let _ = self.requests.send(Request::End(room.to_owned(), reason));
    }

    /// Recordings that had not ended when the server did.
    pub fn unfinished(&self) -> Vec<Order> {
        let Ok(folders) = std::fs::read_dir(&self.root) else { return Vec::new() };
        let manifests = folders.flatten().filter_map(|entry| Manifest::find(&entry.path()));
        let open = manifests.map(|(manifest, _)| manifest).filter(|m| m.ended.is_none());
        open.map(Order::from).collect()
    }

    /// Completes all files and ends the thread; waits for the disk. Recordings that run go on when the server is started again.
    pub fn stop(&self) {
        let (answer, answered) = mpsc::channel();
        if self.requests.send(Request::Stop(answer)).is_ok() {
            let _ = answered.recv();
        }
    }

    /// A snapshot of its figures.
    pub fn counts(&self) -> Counts {
        let Queue { dropped, gaps, late, failed, recordings, written, .. } = &*self.queue;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            recordings: recordings.load(Ordering::Relaxed),
            failed: of(failed),
            dropped: of(dropped),
            gaps: of(gaps),
            late: of(late),
            bytes: of(written),
        }
    }
}

#[cfg(test)]
mod tests;
