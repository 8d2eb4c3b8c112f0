//! The coder of the process: anchors that wait at the same time and are of one size are coded together.
//!
//! Workers hand in a detail and wait; [`LANES`] threads of each card take what waits, so that one prepares and assembles while
//! the other's pictures are on the card. A thread whose card fails ends, and the others go on; where one does not answer, all
//! of them are given up. Whoever waits is told, and lets the processor code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use thiserror::Error;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{AnchorCodecError, Htj2k};

use super::trial::trial;
use super::{CoderError, CudaCoder};
use crate::engine::cuda::CudaError;
use crate::engine::cuda::card::Card;
use crate::engine::cuda::waiting::Waiting;

/// Threads of a card, each with a stream and memory of its own.
const LANES: usize = 2;
/// Most details that wait; more are refused.
const MOST_WAITING: usize = 64;
/// Most that are coded together, and most samples of them where they are several.
const MOST_TOGETHER: usize = 16;
const MOST_SAMPLES: usize = 1 << 24;
/// A card that has not answered for so long hangs.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a detail was not coded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnchorError {
    /// It cannot be, on the processor neither.
    #[error(transparent)]
    Codec(#[from] AnchorCodecError),
    /// The GPU failed, or had no time or room for it.
    #[error(transparent)]
    Device(#[from] CudaError),
}

impl From<CoderError> for AnchorError {
    fn from(error: CoderError) -> Self {
        match error {
            CoderError::Pictures => AnchorError::Codec(AnchorCodecError::Encode),
            CoderError::Device(why) => AnchorError::Device(why),
        }
    }
}

type Coded = Result<Vec<u8>, AnchorError>;

/// A detail to be coded at a quality, in so many bytes at most.
struct Job {
    detail: Arc<Detail>,
    quality: u8,
    most: usize,
    back: Sender<Coded>,
}

struct Line {
    /// By size.
    waiting: Waiting<(usize, usize), Job>,
    /// Threads whose cards work.
    lanes: usize,
    failed: Option<CudaError>,
}

/// See the module.
pub struct SharedCoder {
    line: Mutex<Line>,
    come: Condvar,
    pictures: AtomicU64,
    batches: AtomicU64,
}

impl SharedCoder {
    /// That of this process, which is made if there is none yet. Says in plain words why there is none.
    pub fn of_process() -> Result<Arc<SharedCoder>, CudaError> {
        static CODER: Mutex<Option<Arc<SharedCoder>>> = Mutex::new(None);
        let mut made = CODER.lock();
        if let Some(coder) = &*made {
            let failed = coder.line.lock().failed.clone();
            return failed.map_or_else(|| Ok(coder.clone()), Err);
        }
        let coder = Arc::new(SharedCoder {
            line: Mutex::new(Line { waiting: Waiting::new(MOST_WAITING), lanes: 0, failed: None }),
            come: Condvar::new(),
            pictures: AtomicU64::new(0),
            batches: AtomicU64::new(0),
        });
        let mut refused = CudaError::NoDevice;
        for card in Card::all()?.iter().filter(|card| card.failure().is_none()) {
            for n in 0..LANES {
                match coder.clone().add_lane(card, n) {
                    Ok(()) => coder.line.lock().lanes += 1,
                    Err(why) => {
                        tracing::debug!(card = card.device.ordinal, %why, "it codes no anchors");
                        refused = why;
                    }
                }
            }
        }
        if coder.line.lock().lanes == 0 {
            return Err(refused);
        }
        *made = Some(coder.clone());
        Ok(coder)
    }

    fn add_lane(self: Arc<Self>, card: &Card, n: usize) -> Result<(), CudaError> {
        let mut lane = CudaCoder::on(&card.device)?;
        trial(&mut lane)?;
        let thread = std::thread::Builder::new().name(format!("coder-{}-{n}", card.device.ordinal));
        let spawned = thread.spawn(move || self.serve(&mut lane));
        spawned.map_err(|error| CudaError::Driver(format!("no thread for it: {error}")))?;
        Ok(())
    }

    /// The HTJ2K payload of a detail, as [`Htj2k`] makes it: at a quality or, where that takes more than `most` bytes, as large
    /// as they allow. Waits for it.
    pub fn code(&self, detail: &Arc<Detail>, quality: u8, most: usize) -> Coded {
        let (back, answer) = bounded(1);
        let job = Job { detail: detail.clone(), quality, most, back };
        let (width, height) = (detail.width(), detail.height());
        let together = (MOST_SAMPLES / (width * height).max(1)).min(MOST_TOGETHER);
        let mut line = self.line.lock();
        if let Some(why) = &line.failed {
            return Err(why.clone().into());
        }
        let waits = line.waiting.push(&(width, height), together, vec![job]);
        waits.map_err(|_| CudaError::Overloaded)?;
        drop(line);
        self.come.notify_one();
        match answer.recv_timeout(PATIENCE) {
            Ok(coded) => coded,
            Err(RecvTimeoutError::Timeout) => Err(self.fail(CudaError::Silent(PATIENCE)).into()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.fail(CudaError::Driver("its thread failed".to_owned())).into())
            }
        }
    }

    /// Pictures that were coded, and the batches that they went in.
    pub fn coded(&self) -> (u64, u64) {
        (self.pictures.load(Ordering::Relaxed), self.batches.load(Ordering::Relaxed))
    }

    /// Goes on without a thread, as long as there is another.
    fn end_lane(&self, why: CudaError) {
        let mut line = self.line.lock();
        line.lanes = line.lanes.saturating_sub(1);
        let none_left = line.lanes == 0;
        drop(line);
        if none_left {
            self.fail(why);
        } else {
            tracing::warn!(%why, "a GPU codes no more anchors: others do");
            // What came for this thread may be for another.
            self.come.notify_one();
        }
    }

    /// Gives it up: nothing is handed in any more, and who waits is told.
    fn fail(&self, why: CudaError) -> CudaError {
        let mut line = self.line.lock();
        if line.failed.is_none() {
            tracing::warn!(%why, "the GPU codes no more anchors: the processor does");
        }
        let why = line.failed.get_or_insert(why).clone();
        for job in line.waiting.drain() {
            job.end(Err(why.clone().into()));
        }
        drop(line);
        self.come.notify_all();
        why
    }

    /// What a thread does for as long as the card works.
    fn serve(&self, coder: &mut CudaCoder) {
        while let Some(jobs) = self.take() {
            let ran = catch_unwind(AssertUnwindSafe(|| code(coder, &jobs)));
            let failed = || CudaError::Driver("its thread failed".to_owned()).into();
            match ran.unwrap_or_else(|_| Err(failed())) {
                Ok(all) => {
                    self.pictures.fetch_add(all.len() as u64, Ordering::Relaxed);
                    self.batches.fetch_add(1, Ordering::Relaxed);
                    for (job, coded) in jobs.into_iter().zip(all) {
                        job.end(coded.map_err(AnchorError::Codec));
                    }
                }
                Err(why) => {
                    for job in jobs {
                        job.end(Err(why.clone()));
                    }
                    // One whose memory is full may have room again.
                    if let AnchorError::Device(why) = why
                        && why != CudaError::NoMemory
                    {
                        return self.end_lane(why);
                    }
                }
            }
        }
    }

    /// Waits for some that are of one size; none where it was given up.
    fn take(&self) -> Option<Vec<Job>> {
        let mut line = self.line.lock();
        while line.failed.is_none() {
            let jobs = line.waiting.take();
            if !jobs.is_empty() {
                return Some(jobs);
            }
            self.come.wait(&mut line);
        }
        None
    }
}

impl Job {
    fn end(self, coded: Coded) {
        // Nobody waits any more.
        let _ = self.back.try_send(coded);
    }
}

/// Codes details of one size.
fn code(
    coder: &mut CudaCoder,
    jobs: &[Job],
) -> Result<Vec<Result<Vec<u8>, AnchorCodecError>>, AnchorError> {
    let Some(first) = jobs.first() else { return Ok(Vec::new()) };
    let format = Htj2k::format(&first.detail)?;
    let samples: Vec<&[i16]> = jobs.iter().map(|job| job.detail.samples()).collect();
    coder.transform(&samples, format, Htj2k::LEVELS)?;
    let steps = jobs.iter().enumerate().map(|(n, job)| (n, Htj2k::step(job.quality)));
    let all = coder.encode(&steps.collect::<Vec<_>>())?;
    let mut within = Vec::with_capacity(jobs.len());
    for (n, (job, coded)) in jobs.iter().zip(all).enumerate() {
        if coded.len() <= job.most {
            within.push(Ok(coded));
            continue;
        }
        let mut failed = None;
        let coded = Htj2k::encode_within_by(&job.detail, job.most, |step| {
            let coded = coder.encode(&[(n, step)]).map(|all| all.into_iter().next());
            let coded = coded.map_err(|why| failed = Some(why)).ok().flatten();
            coded.ok_or(AnchorCodecError::Encode)
        });
        if let Some(why) = failed {
            return Err(why.into());
        }
        within.push(coded);
    }
    Ok(within)
}
