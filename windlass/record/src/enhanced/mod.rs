//! Makes the enhanced files of ended recordings: one thread of the lowest priority, one file after the other.
//!
//! What is to be made stands in the manifests, so that a server that was killed goes on: an unfinished file is made
//! anew. A full disk is waited for. A file that cannot be made says so in the manifest, and nothing else is lost.

mod file;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use self::file::{EnhancedFileError, make_enhanced_file};
use crate::disk::{Made, Request};
use crate::manifest::{Enhanced, EnhancedState, Manifest, MediaFile};
use crate::queue::Queue;
use crate::recording::anchors_of;

/// Interval at which ended recordings are looked for.
const LOOK: Duration = Duration::from_secs(2);
/// Waits before further attempts, where the disk has failed. After the last one the file is given up.
const AGAIN: [Duration; 4] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(300),
];

/// Makes enhanced files.
pub(crate) struct EnhancedFiles {
    root: PathBuf,
    requests: Sender<Request>,
    queue: Arc<Queue>,
    stopped: Arc<AtomicBool>,
}

impl EnhancedFiles {
    /// Makes those of recordings below `root`, until `stopped` is set. The recorder's thread takes `requests`.
    pub(crate) fn new(
        root: PathBuf,
        requests: Sender<Request>,
        queue: Arc<Queue>,
        stopped: Arc<AtomicBool>,
    ) -> EnhancedFiles {
        EnhancedFiles { root, requests, queue, stopped }
    }

    /// Starts the thread.
    pub(crate) fn start(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("enhanced-files".to_owned());
        thread.spawn(move || self.run()).map(|_| ())
    }

    fn run(self) {
        lower_priority();
        while !self.is_stopped() {
            let waiting = waiting(&self.root);
            self.queue.set_unenhanced(waiting.len());
            for (left, (folder, file)) in (0..waiting.len()).rev().zip(waiting) {
                if self.make(folder, file).is_none() {
                    return;
                }
                self.queue.set_unenhanced(left);
            }
            self.wait(LOOK);
        }
    }

    /// Makes the enhanced file of a recorded one, or gives it up; `None` if the server stops.
    fn make(&self, folder: PathBuf, file: String) -> Option<()> {
        let path = folder.join(&file);
        let enhanced = self.attempt(&folder, &file)?;
        if let Some(error) = &enhanced.error {
            tracing::error!(file = %path.display(), %error, "enhanced picture of a recording cannot be made, and is given up; the recorded file stays as it was");
        } else {
            tracing::info!(file = %path.display(), state = ?enhanced.state, frames = enhanced.frames, anchors = enhanced.anchors, bytes = enhanced.bytes, "enhanced picture of a recording");
        }
        let done = enhanced.state != EnhancedState::Failed;
        let (answer, noted) = mpsc::channel();
        self.requests.send(Request::Made(Made { folder, file, enhanced }, answer)).ok()?;
        match noted.recv().ok()? {
            Ok(()) if done => _ = std::fs::remove_file(anchors_of(&path)),
            Ok(()) => {}
            Err(error) => {
                self.queue.enhanced_failed();
                tracing::error!(file = %path.display(), %error, "enhanced picture of a recording is made, but its manifest cannot be written: it is made again; check space and permissions of the folder");
                self.wait(AGAIN[0]);
            }
        }
        Some(())
    }

    /// Tries to make the enhanced file of a recorded one; `None` if the server stops.
    fn attempt(&self, folder: &Path, file: &str) -> Option<Enhanced> {
        for again in AGAIN.into_iter().map(Some).chain([None]) {
            let stopped = || self.is_stopped();
            let made =
                catch_unwind(AssertUnwindSafe(|| make_enhanced_file(folder, file, &stopped)));
            let (error, may_pass) = match made {
                Ok(Ok(enhanced)) => return Some(enhanced),
                Ok(Err(EnhancedFileError::Stopped)) => return None,
                Ok(Err(error)) => (error.to_string(), error.may_pass()),
                Err(_) => ("panic: please report this as a bug".to_owned(), false),
            };
            self.queue.enhanced_failed();
            let Some(again) = again.filter(|_| may_pass) else {
                let (state, error) = (EnhancedState::Failed, Some(error));
                return Some(Enhanced { state, error, ..Enhanced::default() });
            };
            tracing::error!(file = %folder.join(file).display(), %error, again_s = again.as_secs(), "enhanced picture of a recording cannot be made now; check space and permissions of its folder");
            self.wait(again);
        }
        None
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits, or until the server stops.
    fn wait(&self, time: Duration) {
        /// How often it looks whether the server stops.
        const STEP: Duration = Duration::from_millis(200);
        for _ in 0..time.as_millis() / STEP.as_millis() {
            if self.is_stopped() {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Recorded files of ended recordings whose enhanced files are to be made, with their folders.
fn waiting(root: &Path) -> Vec<(PathBuf, String)> {
    let ended = Manifest::all(root).filter(|(manifest, _)| manifest.awaits_enhanced());
    let files = ended.flat_map(|(manifest, folder)| {
        let files = manifest.files.into_iter().filter(MediaFile::awaits_enhanced);
        files.map(move |file| (folder.clone(), file.file))
    });
    files.collect()
}

/// Gives the calling thread the lowest priority, where threads have one of their own.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19) {
        tracing::debug!(%error, "the thread keeps its priority");
    }
}

#[cfg(test)]
mod tests;
