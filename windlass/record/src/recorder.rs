//! The recorder: a bounded queue, and a thread that writes files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use windlass_types::recording::RecordInput;

use crate::disk::{Disk, LocalFiles, Request, takes_files};
#[cfg(feature = "enhanced")]
use crate::enhanced::EnhancedFiles;
use crate::manifest::{EndReason, Manifest};
use crate::order::{BeginError, Hooks, Order};
use crate::queue::{Counts, Queue};
use crate::store::{Place, Store, StoreSetupError};

/// Takes media and events of an SFU. Returns `false` if they were dropped.
pub type Sink = Arc<dyn Fn(RecordInput) -> bool + Send + Sync>;

/// A recorder. Clones are cheap, and share its thread and queue.
///
/// ```
/// use std::sync::mpsc::channel;
/// use windlass_record::{EndReason, Event, Hooks, Order, Recorder};
///
/// let folder = tempfile::tempdir()?;
/// let recorder = Recorder::new(folder.path())?;
/// let (events, ended) = channel();
/// let event = Box::new(move |event| _ = events.send(event));
/// recorder.start(Hooks { who: Box::new(|_| None), key_frame: Box::new(|_| ()), event })?;
/// # let (recording, part) = ("rec_1".to_owned(), "a1".to_owned());
/// let (room, participant, enhanced) = ("tea".to_owned(), None, false);
/// let order = Order { recording, room, participant, enhanced, started: 0.0, part };
/// assert!(recorder.begin(order)?.starts_with(folder.path()));
/// // The SFU calls `recorder.sink()` with frames and packets. Here it has none.
/// recorder.end("tea", EndReason::Stopped);
/// let Event::Ended { manifest, .. } = ended.recv()? else { panic!("there is no store") };
/// assert_eq!((manifest.reason, manifest.files.len()), (Some(EndReason::Stopped), 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    root: PathBuf,
    requests: Sender<Request>,
    /// Receiver of the requests until the thread starts.
    waiting: Arc<Mutex<Option<Receiver<Request>>>>,
    queue: Arc<Queue>,
    /// Whether enhanced files are left to the next start.
    stopped: Arc<AtomicBool>,
}

impl Recorder {
    /// Creates a recorder that writes into a folder. The folder is made if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be made or written into.
    pub fn new(root: &Path) -> Result<Recorder, BeginError> {
        let failed = |source| BeginError { folder: root.to_owned(), source };
        std::fs::create_dir_all(root).map_err(failed)?;
        takes_files(root).map_err(failed)?;
        let (requests, receiver) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(Some(receiver)));
        let (queue, stopped) = (Arc::default(), Arc::default());
        Ok(Recorder { root: root.to_owned(), requests, waiting, queue, stopped })
    }

    /// Returns the function that takes what an SFU gives. It never waits, and returns `false` if the queue is full.
    pub fn sink(&self) -> Sink {
        let (requests, queue) = (self.requests.clone(), self.queue.clone());
        Arc::new(move |input| {
            let bytes = input.media_bytes();
            let admitted = match &input {
                RecordInput::Anchor(_) => queue.admit_anchor(bytes),
                _ => bytes == 0 || queue.admit(bytes),
            };
            if !admitted {
                return false;
            }
            requests.send(Request::Input(input)).is_ok()
        })
    }

    /// Starts the thread. Does nothing if it runs already.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no thread.
    pub fn start(&self, hooks: Hooks) -> io::Result<Option<JoinHandle<()>>> {
        let Some(requests) = self.waiting.lock().take() else { return Ok(None) };
        let disk = Disk::new(self.root.clone(), LocalFiles::default(), hooks, self.queue.clone());
        #[cfg(feature = "enhanced")]
        EnhancedFiles::new(
            self.root.clone(),
            self.requests.clone(),
            self.queue.clone(),
            self.stopped.clone(),
        )
        .start()?;
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        thread.spawn(move || disk.run(&requests)).map(Some)
    }

    /// Begins a recording, or continues one with the same name. Waits for the disk. Returns the recording's folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written into.
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

    /// Ends the recording of a room, if there is one: [`Event::Ended`](crate::Event::Ended) follows.
    pub fn end(&self, room: &str, reason: EndReason) {
        let _ = self.requests.send(Request::End(room.to_owned(), reason));
    }

    /// Orders of recordings that had not ended when the server did.
    pub fn unfinished(&self) -> Vec<Order> {
        let manifests = Manifest::all(&self.root).map(|(manifest, _)| manifest);
        let open = manifests.filter(|manifest| manifest.ended.is_none());
        open.map(Order::from).collect()
    }

    /// A store that takes this recorder's ended recordings.
    pub(crate) fn store(&self, place: Place) -> Result<Store, StoreSetupError> {
        Store::new(place, self.root.clone(), self.queue.clone())
    }

    /// Completes all files and ends the thread; waits for the disk. Running recordings continue when the server starts
    /// again.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let (answer, answered) = mpsc::channel();
        if self.requests.send(Request::Stop(answer)).is_ok() {
            let _ = answered.recv();
        }
    }

    /// Counts a recording whose end nobody was told.
    pub(crate) fn untold(&self) {
        self.queue.untold();
    }

    /// Snapshot of the recorder's statistics.
    pub fn counts(&self) -> Counts {
        self.queue.counts()
    }
}
