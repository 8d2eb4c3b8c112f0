//! The recorder's thread. It takes what the SFU gives from a bounded queue, and writes files. No other thread waits for
//! the disk.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use windlass_types::TrackId;
use windlass_types::recording::RecordInput;

use crate::files::Files;
#[cfg(feature = "enhanced")]
use crate::manifest::Enhanced;
use crate::manifest::{EndReason, Manifest};
use crate::order::{BeginError, Event, Hooks, Order};
use crate::queue::Queue;
use crate::recording::{Epoch, Recording, Wanted, part_of};
use crate::webm::{Patch, Whole, whole_part};

/// Interval of the work that is due without media.
const TICK: Duration = Duration::from_millis(200);

/// A request to the thread.
pub(crate) enum Request {
    /// Take media or an event of the SFU.
    Input(RecordInput),
    /// Begin a recording, or go on with one that has the same name.
    Begin(Order, Sender<Result<PathBuf, BeginError>>),
    /// End the recording of a room.
    End(String, EndReason),
    /// Note in the manifest what became of a file's enhanced picture.
    #[cfg(feature = "enhanced")]
    Made(Made, Sender<io::Result<()>>),
    /// End: the recordings go on when the server is started again.
    Stop(Sender<()>),
}

/// What became of a file's enhanced picture.
#[cfg(feature = "enhanced")]
pub(crate) struct Made {
    /// Folder of the recording.
    pub(crate) folder: PathBuf,
    /// Name of the file that it is the picture of.
    pub(crate) file: String,
    /// The enhanced picture.
    pub(crate) enhanced: Enhanced,
}

/// Files on this machine.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    open: HashMap<PathBuf, File>,
}

impl Files for LocalFiles {
    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if !self.open.contains_key(path) {
            let file = OpenOptions::new().write(true).create_new(true).open(path)?;
            self.open.insert(path.to_owned(), file);
        }
        let file = self.open.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        file.write_all(bytes)
    }

    fn complete(&mut self, path: &Path, patches: &[Patch], name: &Path) -> io::Result<()> {
        let mut file = self.open.remove(path).ok_or(io::ErrorKind::NotFound)?;
        for patch in patches {
            file.seek(SeekFrom::Start(patch.at))?;
            file.write_all(&patch.bytes)?;
        }
        file.sync_data()?;
        drop(file);
        std::fs::rename(path, name)
    }

    fn close(&mut self, path: &Path) -> io::Result<()> {
        self.open.remove(path).map_or(Ok(()), |file| file.sync_data())
    }

    fn save(&mut self, manifest: &Manifest, folder: &Path) -> io::Result<()> {
        manifest.save(folder)
    }
}

/// State of the recorder's thread.
pub(crate) struct Disk<F> {
    root: PathBuf,
    files: F,
    hooks: Hooks,
    queue: Arc<Queue>,
    epoch: Epoch,
    /// Running recordings, by room.
    recordings: HashMap<String, Recording>,
    rooms: HashMap<TrackId, String>,
}

impl<F: Files> Disk<F> {
    pub(crate) fn new(root: PathBuf, files: F, hooks: Hooks, queue: Arc<Queue>) -> Disk<F> {
        let epoch = Epoch { instant: Instant::now(), wall: SystemTime::now() };
        let (recordings, rooms) = (HashMap::new(), HashMap::new());
        Disk { root, files, hooks, queue, epoch, recordings, rooms }
    }

    /// Runs until it is stopped, or nobody can send requests any more.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        let mut next = Instant::now() + TICK;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match requests.recv_timeout(left) {
                Ok(Request::Input(input)) => {
                    self.queue.took(input.media_bytes());
                    self.input(input);
                }
                Ok(Request::Begin(order, answer)) => {
                    let _ = answer.send(self.begin(order));
                }
                Ok(Request::End(room, reason)) => self.end(&room, reason, None),
                #[cfg(feature = "enhanced")]
                Ok(Request::Made(made, answer)) => {
                    let _ = answer.send(self.made(&made));
                }
                Ok(Request::Stop(answer)) => {
                    self.stop();
                    let _ = answer.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.stop(),
            }
            if Instant::now() >= next {
                next = Instant::now() + TICK;
                self.advance();
            }
        }
    }

    fn begin(&mut self, order: Order) -> Result<PathBuf, BeginError> {
        if let Some(running) = self.recordings.get(&order.room) {
            return Ok(running.folder().to_owned());
        }
        let folder = self.root.join(&order.recording);
        let failed = |source| BeginError { folder: folder.clone(), source };
        private_folder(&folder).map_err(failed)?;
        let manifest = match Manifest::find(&folder) {
            Some((mut manifest, _)) => {
                recover(&folder, &mut manifest);
                (manifest.ended, manifest.reason, manifest.error) = (None, None, None);
                manifest
            }
            None => order.manifest(),
        };
        self.files.save(&manifest, &folder).map_err(failed)?;
        tracing::info!(recording = %order.recording, folder = %folder.display(), "recording begins");
        let recording = Recording::new(manifest, folder.clone(), self.epoch);
        self.recordings.insert(order.room, recording);
        self.queue.set_recordings(self.recordings.len());
        Ok(folder)
    }

    fn input(&mut self, input: RecordInput) {
        let track = input.track();
        if let RecordInput::Begin(begin) = &input {
            self.rooms.insert(track, begin.room.to_string());
        }
        let room = match &input {
            RecordInput::End(_) => self.rooms.remove(&track),
            _ => self.rooms.get(&track).cloned(),
        };
        let Some(room) = room else { return };
        let Some(recording) = self.recordings.get_mut(&room) else { return };
        let result = recording.input(input, &mut self.files, &self.hooks.who);
        self.queue.lost(recording.take_losses());
        self.after(&room, result);
    }

    fn advance(&mut self) {
        for room in self.recordings.keys().cloned().collect::<Vec<_>>() {
            let Some(recording) = self.recordings.get_mut(&room) else { continue };
            let result = recording.advance(Instant::now(), &mut self.files, &self.hooks.who);
            self.after(&room, result);
        }
    }

    /// Carries out what a step of a recording asked for. Ends a recording that cannot be written.
    fn after(&mut self, room: &str, result: io::Result<Wanted>) {
        match result {
            Ok(wanted) => wanted.into_iter().for_each(&self.hooks.key_frame),
            Err(error) => self.end(room, EndReason::WriteFailed, Some(&error)),
        }
    }

    fn end(&mut self, room: &str, reason: EndReason, error: Option<&io::Error>) {
        let Some(recording) = self.recordings.get_mut(room) else { return };
        let folder = recording.folder().to_owned();
        let failure = error.map(|error| format!("cannot write into {}: {error}", folder.display()));
        if let Some(error) = error {
            self.queue.failed();
            tracing::error!(folder = %folder.display(), %error, "recording ended: its file cannot be written; check space and permissions of the folder; calls go on");
        }
        let who = &self.hooks.who;
        let ended = recording.end(reason, failure.clone(), &mut self.files, who);
        if let (None, Err(error)) = (&failure, &ended) {
            self.queue.failed();
            tracing::error!(folder = %folder.display(), %error, "recording ended, but its last data cannot be written; check space and permissions of the folder");
            recording.manifest.reason = Some(EndReason::WriteFailed);
            recording.manifest.error = Some(format!("cannot write: {error}"));
        }
        let Some(recording) = self.recordings.remove(room) else { return };
        self.queue.set_recordings(self.recordings.len());
        let manifest = recording.manifest;
        tracing::info!(recording = %manifest.recording, ?reason, files = manifest.files.len(), bytes = manifest.bytes(), "recording ended");
        (self.hooks.event)(Event::Ended { manifest: Box::new(manifest), folder });
    }

    /// Notes what became of a file's enhanced picture, and tells of the last one. The recording may run again.
    #[cfg(feature = "enhanced")]
    fn made(&mut self, made: &Made) -> io::Result<()> {
        let Made { folder, file, enhanced } = made;
        let note = |manifest: &mut Manifest| {
            let entry = manifest.files.iter_mut().find(|entry| entry.file == *file);
            if let Some(entry) = entry {
                entry.enhanced = Some(enhanced.clone());
            }
        };
        let mut running = self.recordings.values_mut();
        if let Some(recording) = running.find(|recording| recording.folder() == folder) {
            note(&mut recording.manifest);
            return self.files.save(&recording.manifest, folder);
        }
        let (mut manifest, _) = Manifest::find(folder).ok_or(io::ErrorKind::NotFound)?;
        note(&mut manifest);
        self.files.save(&manifest, folder)?;
        if !manifest.awaits_enhanced() {
            let event = Event::Enhanced { manifest: Box::new(manifest), folder: folder.clone() };
            (self.hooks.event)(event);
        }
        Ok(())
    }

    /// Completes all files when the server stops. The manifests then say that the recordings have not ended.
    fn stop(&mut self) {
        for (_, mut recording) in std::mem::take(&mut self.recordings) {
            let who = &self.hooks.who;
            let ended = recording.end(EndReason::Stopped, None, &mut self.files, who);
            (recording.manifest.ended, recording.manifest.reason) = (None, None);
            let folder = recording.folder().to_owned();
            let saved = ended.and(self.files.save(&recording.manifest, &folder));
            if let Err(error) = saved {
                tracing::error!(folder = %folder.display(), %error, "recording cannot be saved before the server stops; check space and permissions of the folder");
            }
        }
    }
}

/// Whether a folder takes files: one is written and removed, with a new name each time, as others may look too.
pub(crate) fn takes_files(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".windlass-{:08x}", rand::random::<u32>()));
    OpenOptions::new().write(true).create_new(true).open(&probe)?;
    std::fs::remove_file(&probe)
}

/// Makes a folder that only its owner can read.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Completes the files of a killed server: they end with their last whole cluster, and get their final names.
pub(crate) fn recover(folder: &Path, manifest: &mut Manifest) {
    for file in manifest.files.iter_mut().filter(|file| !file.complete) {
        let whole = folder.join(&file.file);
        let part = part_of(&whole);
        let recovered = cut(&part).and_then(|whole_part| {
            std::fs::rename(&part, &whole)?;
            Ok(whole_part)
        });
        match recovered {
            Ok(part) => (file.bytes, file.duration) = (part.len, part.last.as_secs_f64()),
            // It was renamed before the manifest was written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                file.bytes = std::fs::metadata(&whole).map_or(0, |data| data.len());
            }
            Err(error) => {
                tracing::warn!(file = %part.display(), %error, "recorded file cannot be completed after a restart; check space and permissions of its folder");
            }
        }
    }
}

/// Cuts a file off after its last whole cluster.
fn cut(path: &Path) -> io::Result<Whole> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let whole = whole_part(|at, buffer| {
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut len = 0;
        while len < buffer.len() {
            match file.read(&mut buffer[len..]) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(_) => return None,
            }
        }
        (len > 0).then_some(len)
    });
    let whole = whole.unwrap_or_default();
    file.set_len(whole.len)?;
    Ok(whole)
}
