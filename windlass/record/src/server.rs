//! The recorder of a server: signalling orders recordings and is told of their end, and the SFU gives media.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver};
use windlass_signaling::{
    EventFile, EventRecording, Metric, RecordingEnd, RecordingOrder, Signaling,
};
use windlass_types::TrackId;

use crate::manifest::{EndReason, Manifest};
use crate::order::{BeginError, Event, Hooks, Order, Person};
use crate::recorder::{Recorder, Sink};
use crate::store::{Place, PlaceError, Store, StoreSetupError};

/// Maximum number of files that a webhook names.
const MAX_TOLD: usize = 100;
/// Maximum number of ended recordings of which signalling has not heard yet. Beyond it, rooms are not told; that is
/// counted.
const MAX_ENDED: usize = 4096;

/// Where recordings go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordTo {
    /// A folder of this machine.
    Folder(PathBuf),
    /// An S3-compatible store.
    Store(Place),
}

impl FromStr for RecordTo {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<RecordTo, PlaceError> {
        if text.starts_with("s3://") {
            return text.parse().map(RecordTo::Store);
        }
        Ok(RecordTo::Folder(text.into()))
    }
}

impl fmt::Display for RecordTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordTo::Folder(folder) => folder.display().fmt(f),
            RecordTo::Store(place) => place.fmt(f),
        }
    }
}

/// Error that keeps a server from recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be written into.
    #[error("{0}, or name another (`--record-to FOLDER`; for a store, STATE_DIRECTORY)")]
    Folder(#[from] BeginError),
    /// The store cannot be reached.
    #[error("recordings cannot be stored: {0}")]
    Store(#[from] StoreSetupError),
    /// Nothing says where recordings wait for the store.
    #[error(
        "recordings wait for the store in the server's folder, but none is known: set STATE_DIRECTORY or HOME"
    )]
    NoFolder,
}

/// A server's recorder: signalling orders, and rooms are told of what has ended.
///
/// ```
/// use std::sync::Arc;
/// use windlass_record::{RecordTo, ServerRecorder};
/// use windlass_signaling::{MetricSource, Recorder, RecordingOrder, Services, Signaling, SignalingConfig};
/// # use std::time::Duration;
/// # use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let media = SfuConfig { udp: ([127, 0, 0, 1], 0).into(), ..SfuConfig::default() };
/// # let sfu = Sfu::start(&media, &EnhancerSinks::none())?;
/// # let services = Services {
/// #     sfu: sfu.handle(),
/// #     enhancer_switch: Arc::new(|_| false),
/// #     metrics: MetricSource::default(),
/// #     drain: Arc::new(|| Duration::ZERO),
/// #     recorder: None,
/// #     cluster: None,
/// # };
/// let recorder = ServerRecorder::open(&RecordTo::Folder(folder.path().to_owned()), None)?;
/// let services = Services { recorder: Some(Arc::new(recorder.clone())), ..services };
/// let (handle, signaling) = (sfu.handle(), Signaling::new(SignalingConfig::default(), services)?);
/// recorder.start(move |track| handle.request_recorded_key_frame(track), signaling)?;
///
/// // Signalling does this when a moderator records the room.
/// let (recording, room) = ("rec_1".to_owned(), "tea".to_owned());
/// let order = RecordingOrder { recording, room, participant: None, since: 1_000, enhanced: false };
/// recorder.begin(&order)?;
/// // If the server stops, the recording goes on at its next start.
/// recorder.stop().await;
/// assert_eq!(recorder.unfinished(), [order]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerRecorder {
    recorder: Recorder,
    /// Name of this server's part of a recording.
    part: Arc<str>,
    /// The store, until the recorder starts.
    store: Arc<Mutex<Option<Store>>>,
}

impl ServerRecorder {
    /// Creates a recorder. What is for a store waits in `spool`.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be made or written into, or the environment's `AWS_…` variables do not say how to
    /// reach the store.
    pub fn open(to: &RecordTo, spool: Option<&Path>) -> Result<ServerRecorder, OpenError> {
        let part = format!("{:08x}", rand::random::<u32>()).into();
        let (recorder, store) = match to {
            RecordTo::Folder(folder) => (Recorder::new(folder)?, None),
            RecordTo::Store(place) => {
                let recorder = Recorder::new(spool.ok_or(OpenError::NoFolder)?)?;
                let store = recorder.store(place.clone())?;
                (recorder, Some(store))
            }
        };
        Ok(ServerRecorder { recorder, part, store: Arc::new(Mutex::new(store)) })
    }

    /// Returns the function that takes what the SFU gives.
    pub fn sink(&self) -> Sink {
        self.recorder.sink()
    }

    /// Starts the recorder's thread, and a task that tells rooms. `key_frame` asks the SFU for a key frame of a track.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no thread.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(
        &self,
        key_frame: impl Fn(TrackId) + Send + 'static,
        signaling: Signaling,
    ) -> io::Result<()> {
        let (events, ended) = mpsc::channel(MAX_ENDED);
        let (people, counted) = (signaling.clone(), self.recorder.clone());
        let tells = move |event| {
            if events.try_send(event).is_err() {
                counted.untold();
            }
        };
        if let Some(store) = self.store.lock().take() {
            tokio::spawn(store.run(tells.clone()));
        }
        self.recorder.start(Hooks {
            who: Box::new(move |id| {
                let (info, _) = people.participant(id)?;
                Some(Person { identity: info.identity, name: info.name })
            }),
            key_frame: Box::new(key_frame),
            event: Box::new(tells),
        })?;
        tokio::spawn(notify(ended, signaling));
        Ok(())
    }

    /// Completes all files. Running recordings continue when the server starts again.
    pub async fn stop(&self) {
        let recorder = self.recorder.clone();
        let _ = tokio::task::spawn_blocking(move || recorder.stop()).await;
    }

    /// Metrics of the recorder.
    pub fn metrics(&self) -> Vec<Metric> {
        let counts = self.recorder.counts();
        vec![
            Metric::new("windlass_recordings", counts.recordings),
            Metric::new("windlass_recordings_failed_total", counts.failed),
            Metric::new("windlass_recorded_bytes_total", counts.bytes),
            Metric::new("windlass_recorder_dropped_total", counts.dropped),
            Metric::new("windlass_recorder_gaps_total", counts.gaps),
            Metric::new("windlass_recorder_late_total", counts.late),
            Metric::new("windlass_recorder_untold_total", counts.untold),
            Metric::new("windlass_recordings_unstored_bytes", counts.unstored),
            Metric::new("windlass_recordings_store_failures_total", counts.store_failures),
            Metric::new("windlass_recorder_anchors_dropped_total", counts.anchors_dropped),
            Metric::new("windlass_recordings_unrendered", counts.unenhanced),
            Metric::new("windlass_recordings_render_failures_total", counts.enhanced_failures),
        ]
    }
}

/// Tells rooms of ended recordings, until the recorder has ended.
async fn notify(mut ended: Receiver<Event>, signaling: Signaling) {
    while let Some(event) = ended.recv().await {
        match event {
            Event::Ended { manifest, folder } => {
                let recording = recording_event(&manifest, folder.display().to_string());
                signaling.recording_ended(&manifest.room, recording).await;
            }
            Event::Enhanced { manifest, folder } => {
                let recording = recording_event(&manifest, folder.display().to_string());
                signaling.recording_enhanced(&manifest.room, recording);
            }
            Event::Stored { manifest, place } => {
                signaling.recording_stored(&manifest.room, recording_event(&manifest, place));
            }
        }
    }
}

impl windlass_signaling::Recorder for ServerRecorder {
    fn begin(&self, order: &RecordingOrder) -> Result<(), String> {
        let RecordingOrder { recording, room, participant, since, enhanced } = order.clone();
        if enhanced && !cfg!(feature = "enhanced") {
            return Err("this program was built without enhanced recordings".to_owned());
        }
        let (started, part) = (since as f64 / 1000.0, self.part.to_string());
        let order = Order { recording, room, participant, enhanced, started, part };
        self.recorder.begin(order).map(|_| ()).map_err(|error| error.to_string())
    }

    fn end(&self, room: &str, why: RecordingEnd) {
        let reason = match why {
            RecordingEnd::Stopped => EndReason::Stopped,
            RecordingEnd::RoomEmpty => EndReason::RoomEmpty,
        };
        self.recorder.end(room, reason);
    }

    fn unfinished(&self) -> Vec<RecordingOrder> {
        let open = self.recorder.unfinished().into_iter();
        let order = |order: Order| {
            let Order { recording, room, participant, enhanced, started, .. } = order;
            RecordingOrder {
                recording,
                room,
                participant,
                since: (started * 1000.0).round() as u64,
                enhanced,
            }
        };
        open.map(order).collect()
    }
}

/// Description of an ended recording for webhooks. `path` is where its files are.
fn recording_event(manifest: &Manifest, path: String) -> EventRecording {
    let files = manifest.files.iter().take(MAX_TOLD).map(|file| EventFile {
        file: file.file.clone(),
        participant: file.participant.clone(),
        identity: file.identity.clone(),
        offset: file.offset,
        duration: file.duration,
        bytes: file.bytes,
        tracks: file.tracks.iter().map(|track| track.kind.clone()).collect(),
        enhanced: file.enhanced.as_ref().and_then(|made| made.file.clone()),
    });
    EventRecording {
        id: manifest.recording.clone(),
        participant: manifest.participant.clone(),
        path: Some(path),
        manifest: Some(manifest.file_name()),
        bytes: Some(manifest.bytes()),
        duration: Some(manifest.duration()),
        files: files.collect(),
        reason: manifest.reason.map(|reason| reason.name().to_owned()),
        error: manifest.error.clone(),
    }
}
