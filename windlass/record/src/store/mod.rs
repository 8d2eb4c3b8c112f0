//! Ended recordings on their way into an S3-compatible store.
//!
//! A recording is written to this machine first. When it has ended, its files are sent, the manifest last, and the
//! folder is deleted. A file of more than 16 MiB is sent in parts, and how far it is stands beside it, so that a killed
//! server goes on where it was. What cannot be sent waits on the disk and is tried again. No call waits for the store.

mod address;
mod client;
mod progress;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;

use self::address::Account;
pub use self::address::{EnvironmentError, Place, PlaceError};
use self::client::{Client, StoreError};
use self::progress::{Progress, Step, Upload};
use crate::manifest::Manifest;
use crate::order::Event;
use crate::queue::Queue;

/// Interval at which ended recordings are looked for.
const LOOK: Duration = Duration::from_secs(2);
/// Waits after failures: doubled from the first to the last.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(300)];

/// Error that keeps recordings from being sent to a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreSetupError {
    /// The environment does not say how to reach the store.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
    /// The system's certificates, with which the store's is verified, cannot be read.
    #[error(
        "the system's certificates cannot be read ({0}): install them (Debian: ca-certificates)"
    )]
    Certificates(#[from] io::Error),
}

/// Sends ended recordings to a store.
pub(crate) struct Store {
    place: Place,
    client: Client,
    root: PathBuf,
    queue: Arc<Queue>,
}

/// Why a recording is not stored yet.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {source}", file.display())]
    Disk { file: PathBuf, source: io::Error },
}

impl Store {
    /// Creates a store from the environment's `AWS_…` variables, for recordings that are written below `root`.
    pub(crate) fn new(
        place: Place,
        root: PathBuf,
        queue: Arc<Queue>,
    ) -> Result<Store, StoreSetupError> {
        let account = Account::of(&place, |name| std::env::var(name).ok())?;
        Ok(Store { place, client: Client::new(account)?, root, queue })
    }

    /// Sends recordings for as long as the server runs. `event` takes [`Event::Stored`].
    pub(crate) async fn run(self, event: impl Fn(Event) + Send + Sync) {
        let mut failures = 0;
        loop {
            let wait = match self.send_ended(&event).await {
                Ok(()) => {
                    if failures > 0 {
                        tracing::info!(place = %self.place, "recordings are stored again");
                    }
                    failures = 0;
                    LOOK
                }
                Err(error) => {
                    let [first, last] = AGAIN;
                    let wait = last.min(first * 2_u32.saturating_pow(failures));
                    failures += 1;
                    self.queue.store_failed();
                    tracing::error!(place = %self.place, root = %self.root.display(), %error, again_s = wait.as_secs(), "recording cannot be stored: it waits on the disk; see that the store is reached, and AWS_ENDPOINT_URL, AWS_REGION and the credentials; calls and recordings go on");
                    wait
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_ended(&self, event: &(impl Fn(Event) + Sync)) -> Result<(), SendError> {
        let root = self.root.clone();
        let ended = tokio::task::spawn_blocking(move || ended(&root)).await.unwrap_or_default();
        self.queue.set_unstored(ended.iter().map(|(manifest, _)| manifest.bytes()).sum());
        for (manifest, folder) in ended {
            self.send(&manifest, &folder).await?;
            let disk = |source| SendError::Disk { file: folder.clone(), source };
            std::fs::remove_dir_all(&folder).map_err(disk)?;
            let place = self.object(&manifest, None);
            tracing::info!(recording = %manifest.recording, %place, "recording stored");
            let place = format!("s3://{}/{place}", self.place.bucket);
            event(Event::Stored { manifest: Box::new(manifest), place });
        }
        self.queue.set_unstored(0);
        Ok(())
    }

    /// Sends what the store lacks of a recording.
    async fn send(&self, manifest: &Manifest, folder: &Path) -> Result<(), SendError> {
        let disk = |file: &Path| {
            let file = file.to_owned();
            move |source| SendError::Disk { file, source }
        };
        let names = manifest.files.iter().map(|file| file.file.clone());
        let mut files = Vec::new();
        for name in names.chain([manifest.file_name()]) {
            let path = folder.join(&name);
            match path.metadata() {
                Ok(data) => files.push((name, data.len())),
                // A file of a killed server whose first data was never written.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(disk(&path)(error)),
            }
        }
        let mut progress = Progress::read(folder);
        loop {
            match progress.next(&files) {
                Step::Done => return Ok(()),
                Step::Put(file) => {
                    let bytes = read(&folder.join(&file), 0, u64::MAX).await;
                    let bytes = bytes.map_err(disk(&folder.join(&file)))?;
                    self.client.put(&self.object(manifest, Some(&file)), bytes).await?;
                    progress.stored(file);
                }
                Step::Begin(file) => {
                    let id = self.client.begin(&self.object(manifest, Some(&file))).await?;
                    progress.upload = Some(Upload { file, id, etags: Vec::new() });
                }
                step => {
                    let Some(upload) = &mut progress.upload else { return Ok(()) };
                    let object = self.object(manifest, Some(&upload.file));
                    let sent = match step {
                        Step::Send(part) => {
                            let path = folder.join(&upload.file);
                            let bytes =
                                read(&path, part.at, part.bytes).await.map_err(disk(&path))?;
                            let number = upload.etags.len() as u16 + 1;
                            let sent = self.client.part(&object, &upload.id, number, bytes).await;
                            sent.map(|etag| upload.etags.push(etag))
                        }
                        _ => self.client.complete(&object, &upload.id, &upload.etags).await,
                    };
                    match sent {
                        Ok(()) if step == Step::Complete => {
                            let file = upload.file.clone();
                            progress.stored(file);
                        }
                        Ok(()) => {}
                        // The store has forgotten the upload, or put it together before the server was killed.
                        Err(StoreError::Refused { status: StatusCode::NOT_FOUND, .. })
                            if !upload.etags.is_empty() =>
                        {
                            progress.upload = None;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            progress.save(folder).map_err(disk(folder))?;
        }
    }

    /// Name of an object of a recording; without a file, what the names of all of them begin with.
    fn object(&self, manifest: &Manifest, file: Option<&str>) -> String {
        let parts = [self.place.prefix.as_str(), &manifest.recording, file.unwrap_or_default()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }
}

/// Recordings below `root` that have ended, with their folders.
fn ended(root: &Path) -> Vec<(Manifest, PathBuf)> {
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = folders.filter_map(|folder| Some((Manifest::find(&folder)?.0, folder)));
    all.filter(|(manifest, _)| manifest.ended.is_some()).collect()
}

/// Reads a part of a file, or up to its end.
async fn read(path: &Path, at: u64, bytes: u64) -> io::Result<Bytes> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut data = Vec::new();
        file.take(bytes).read_to_end(&mut data)?;
        Ok(Bytes::from(data))
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
#[path = "../../examples/real_store.rs"]
mod real_store;
#[cfg(test)]
mod tests;
