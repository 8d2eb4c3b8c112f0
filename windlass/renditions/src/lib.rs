//! The renderer of a server: it makes renditions, the enhanced pictures of tracks for players that cannot rebuild them.
//!
//! Each rendition has a thread, of a lower priority than media, and a bounded queue. A frame for which the queue
//! has no room is dropped, and the track goes on with a key frame. A panic ends the pictures so far, not the track.

mod counts;
mod pace;
mod queue;
mod thread;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use windlass_transcode::{CallConfig, max_call_pixels};
use windlass_types::TrackId;
use windlass_types::recording::RecordInput;
use windlass_types::rendition::{RendererAnswer, RendererInput};

pub use self::counts::Counts;
use self::counts::{Counters, count};
use self::queue::Queue;

/// Takes a step of a track that has a rendition. Returns `false` if it was dropped.
pub type Sink = Arc<dyn Fn(RendererInput) -> bool + Send + Sync>;

/// Takes the renderer's answers. Returns `false` if an answer was dropped.
pub type Answers = Box<dyn Fn(RendererAnswer) -> bool + Send + Sync>;

/// The renderer of a server. Clones share its threads.
///
/// ```
/// use windlass_renditions::{Load, Renderer};
///
/// let load = Load::of_cores(16);
/// assert_eq!((load.renditions, load.threads), (4, 2));
/// let renderer = Renderer::new(load, 2);
/// // The SFU calls `renderer.sink()` with frames and anchors, and takes the answers.
/// renderer.start(Box::new(|rendered| true));
/// assert_eq!(renderer.counts().renditions, 0);
/// ```
#[derive(Clone)]
pub struct Renderer {
    shared: Arc<Shared>,
}

/// How many renditions a machine makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Maximum number of renditions at once.
    pub renditions: usize,
    /// Threads of each one's encoder.
    pub threads: usize,
}

impl Load {
    /// The load for half of a machine's cores: more cores make more pictures, and larger ones.
    pub fn of_cores(cores: usize) -> Load {
        let threads = (cores / 8).clamp(1, 4);
        Load { renditions: (cores / 2 / threads).max(1), threads }
    }
}

struct Shared {
    config: CallConfig,
    tracks: Mutex<HashMap<TrackId, Arc<Queue>>>,
    answers: OnceLock<Answers>,
    counters: Counters,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl Renderer {
    /// Maximum pixels of a rendition's pictures.
    pub fn max_pixels(load: Load) -> u32 {
        max_call_pixels(load.threads)
    }

    /// A renderer whose pictures are `scale` times as wide as their layers. It answers once it is started.
    pub fn new(load: Load, scale: u16) -> Renderer {
        let config = CallConfig { scale, threads: load.threads };
        let (tracks, answers, counters) = (Mutex::default(), OnceLock::new(), Counters::default());
        Renderer { shared: Arc::new(Shared { config, tracks, answers, counters }) }
    }

    /// Gives answers to the SFU from now on.
    pub fn start(&self, answers: Answers) {
        let _ = self.shared.answers.set(answers);
    }

    /// The function that takes what an SFU gives. It never waits.
    pub fn sink(&self) -> Sink {
        let shared = self.shared.clone();
        Arc::new(move |input| shared.take(input))
    }

    /// Snapshot of the renderer's statistics.
    pub fn counts(&self) -> Counts {
        self.shared.counters.counts(self.shared.tracks.lock().len())
    }
}

impl Shared {
    fn take(self: &Arc<Shared>, input: RendererInput) -> bool {
        let track = input.track();
        match input {
            RendererInput::Begin { rendition, .. } => {
                let queue = Arc::<Queue>::default();
                // The former one, of the same track, has ended.
                self.tracks.lock().insert(track, queue.clone());
                let (shared, name) = (self.clone(), format!("rendition-{track}"));
                let thread = std::thread::Builder::new().name(name);
                if let Err(error) = thread.spawn(move || thread::run(&shared, rendition, &queue)) {
                    tracing::error!(%error, %track, "a rendition cannot start: no thread; check the limits of threads");
                    self.tracks.lock().remove(&track);
                    self.answer(RendererAnswer::Failed(rendition));
                }
                true
            }
            RendererInput::Media(RecordInput::End(_)) => {
                if let Some(queue) = self.tracks.lock().remove(&track) {
                    queue.close();
                }
                true
            }
            RendererInput::Media(media) => {
                let queue = self.tracks.lock().get(&track).cloned();
                // Nobody waits for the media of a rendition that could not start.
                queue.is_none_or(|queue| queue.push(media))
            }
            RendererInput::KeyFrame(_) => {
                if let Some(queue) = self.tracks.lock().get(&track) {
                    queue.request_key_frame();
                }
                true
            }
        }
    }

    /// Gives an answer to the SFU. Returns `false` if it was dropped, which is counted.
    fn answer(&self, rendered: RendererAnswer) -> bool {
        let taken = self.answers.get().is_some_and(|answers| answers(rendered));
        if !taken {
            count(&self.counters.dropped);
        }
        taken
    }
}

#[cfg(test)]
mod tests;
