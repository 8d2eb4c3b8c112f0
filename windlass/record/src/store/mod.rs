//! Ended recordings on their way into an S3-compatible store.
//!
//! A recording is written to this machine first. When it has ended, its files are sent, the manifest last, and the
//! folder is deleted. A file of more than 16 MiB is sent in parts, and how far it is stands beside it, so that a killed
//! server goes on where it was. What cannot be sent waits on the disk and is tried again. No call waits for the store.

mod address;
mod bucket;
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
use self::bucket::Bucket;
pub use self::bucket::BucketError;
use self::client::{Client, StoreError};
use self::progress::{Progress, Step, Upload};
use crate::disk::recover;
use crate::manifest::Manifest;
use crate::order::Event;
use crate::queue::Queue;
use crate::recording::part_of;

/// Interval at which ended recordings are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Waits after failures: doubled from the first to the last.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(300)];

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

/// The bucket of a place, by the environment's `AWS_…` variables.
pub(crate) fn bucket_of(place: &Place) -> Result<Bucket, StoreSetupError> {
    let account = Account::of(place, |name| std::env::var(name).ok())?;
    Ok(Bucket::new(Client::new(account)?))
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
    #[error(
        "{}: {source}; check the disk, and space and permissions of the folder",
        file.display()
    )]
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
                    POLL_INTERVAL
                }
                Err(error) => {
                    let [first, last] = RETRY_PAUSES;
                    let wait = last.min(first * 2_u32.saturating_pow(failures));
                    failures += 1;
                    self.queue.store_failed();
                    tracing::error!(place = %self.place, root = %self.root.display(), %error, again_s = wait.as_secs(), "recording cannot be stored: it waits on the disk and is sent again; calls and recordings go on");
                    wait
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_ended(&self, event: &(impl Fn(Event) + Sync)) -> Result<(), SendError> {
        let ended = on_disk(&self.root, |root| Ok(ended(root))).await?;
        self.queue.set_unstored(ended.iter().map(|(manifest, _)| manifest.bytes()).sum());
        for (manifest, folder) in ended {
            self.send(&manifest, &folder).await?;
            on_disk(&folder, |folder| std::fs::remove_dir_all(folder)).await?;
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
        let whole = manifest.clone();
        let files = on_disk(folder, move |folder| sizes(folder, &whole)).await?;
        let mut progress = on_disk(folder, |folder| Ok(Progress::read(folder))).await?;
        while self.step(manifest, folder, &files, &mut progress).await? {
            let now = progress.clone();
            on_disk(folder, move |folder| now.save(folder)).await?;
        }
        Ok(())
    }

    /// Does what is to be done next. Returns `false` if that is nothing.
    async fn step(
        &self,
        manifest: &Manifest,
        folder: &Path,
        files: &[(String, u64)],
        progress: &mut Progress,
    ) -> Result<bool, SendError> {
        let object = |file: &str| self.object(manifest, Some(file));
        match progress.next(files) {
            Step::Done => return Ok(false),
            Step::Put(file) => {
                let bytes = read(&folder.join(&file), 0, u64::MAX).await?;
                self.client.put(&object(&file), bytes).await?;
                progress.stored(file);
            }
            Step::Begin(file) => {
                let id = self.client.begin(&object(&file)).await?;
                progress.upload = Some(Upload { file, id, etags: Vec::new() });
            }
            Step::Send(mut upload, part) => {
                let bytes = read(&folder.join(&upload.file), part.at, part.bytes).await?;
                let number = upload.etags.len() as u16 + 1;
                let sent = self.client.part(&object(&upload.file), &upload.id, number, bytes).await;
                progress.upload = unless_forgotten(&upload, sent)?.map(|etag| {
                    upload.etags.push(etag);
                    upload
                });
            }
            Step::Complete(upload) => {
                let Upload { file, id, etags } = &upload;
                let done = self.client.complete(&object(file), id, etags).await;
                match unless_forgotten(&upload, done)? {
                    Some(()) => progress.stored(upload.file),
                    None => progress.upload = None,
                }
            }
        }
        Ok(true)
    }

    /// Name of an object of a recording; without a file, what the names of all of them begin with.
    fn object(&self, manifest: &Manifest, file: Option<&str>) -> String {
        let parts = [self.place.prefix.as_str(), &manifest.recording, file.unwrap_or_default()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }
}

/// What the store has answered; `None` if it has forgotten the upload, or had put it together before the server was
/// killed.
fn unless_forgotten<T>(
    upload: &Upload,
    answer: Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    match answer {
        Err(StoreError::Refused { status: StatusCode::NOT_FOUND, .. })
            if !upload.etags.is_empty() =>
        {
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

/// Recordings below `root` that have ended, with their folders. A file that could not be completed gets its final name.
fn ended(root: &Path) -> Vec<(Manifest, PathBuf)> {
    // Enhanced pictures are made of the files here.
    let complete = |manifest: &Manifest| manifest.ended.is_some() && !manifest.awaits_enhanced();
    let mut ended: Vec<_> =
        Manifest::all(root).filter(|(manifest, _)| complete(manifest)).collect();
    for (manifest, folder) in &mut ended {
        recover(folder, manifest);
    }
    ended
}

/// Writes the manifest as it is now; returns the files of a recording with their sizes in bytes, the manifest last.
fn sizes(folder: &Path, manifest: &Manifest) -> io::Result<Vec<(String, u64)>> {
    manifest.save(folder)?;
    let mut files = Vec::new();
    for file in &manifest.files {
        let whole = folder.join(&file.file);
        match whole.metadata() {
            Ok(data) => files.push((file.file.clone(), data.len())),
            // Nothing of it was ever written.
            Err(_) if !part_of(&whole).exists() => {}
            Err(error) => return Err(error),
        }
        let enhanced = file.enhanced.as_ref().and_then(|made| made.file.clone());
        if let Some(enhanced) = enhanced {
            let bytes = folder.join(&enhanced).metadata()?.len();
            files.push((enhanced, bytes));
        }
    }
    let name = manifest.file_name();
    let bytes = folder.join(&name).metadata()?.len();
    files.push((name, bytes));
    Ok(files)
}

/// Works on a file or folder where other tasks do not wait for the disk.
async fn on_disk<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, SendError> {
    let file = path.to_owned();
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&file);
        done.map_err(|source| SendError::Disk { file, source })
    });
    let lost = |error| SendError::Disk { file: path.to_owned(), source: io::Error::other(error) };
    done.await.map_err(lost)?
}

/// Reads a part of a file, or up to its end.
async fn read(path: &Path, at: u64, bytes: u64) -> Result<Bytes, SendError> {
    let read = move |path: &Path| {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut data = Vec::new();
        file.take(bytes).read_to_end(&mut data)?;
        Ok(Bytes::from(data))
    };
    on_disk(path, read).await
}

#[cfg(test)]
#[path = "../../examples/real_store.rs"]
mod real_store;
#[cfg(test)]
mod tests;
