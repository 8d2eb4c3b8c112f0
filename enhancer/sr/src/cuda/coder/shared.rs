//! The coder of the process: anchors that wait at the same time and are of one size are encoded together.
//!
//! Workers hand in a detail and wait. Each GPU has [`STREAMS`] threads, so that one prepares and assembles while the
//! other's pictures are on the GPU. A thread whose GPU fails ends, and the others continue. If a GPU does not answer,
//! all of its threads are disabled. Workers whose job failed encode on the CPU.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use windlass_hybrid::Detail;
use windlass_types::tiles::TileMap;
use windlass_vp9::{Plane, PlaneSize};

use super::error::AnchorError;
use super::trial::trial;
use super::work::{Code, Coded, Encoding, Image, Job, Kind, run};
use super::{CudaCoder, TileDetail};
use crate::cuda::CudaError;
use crate::cuda::gpu::Gpu;
use crate::cuda::resident::ResidentPicture;
use crate::cuda::timeout::{TRIAL, timeout, within};
use crate::cuda::waiting::Waiting;

/// Threads per GPU, each with a stream and memory of its own.
const STREAMS: usize = 2;
/// Maximum jobs that wait for each GPU; more are refused.
const MAX_WAITING: usize = 64;
/// Maximum images encoded together.
const MAX_TOGETHER: usize = 16;
/// Maximum samples of several images encoded together. A single image may have more.
const MAX_SAMPLES: usize = 1 << 24;

struct Line {
    waiting: Waiting<Kind, Job>,
    /// The GPU of each thread that works.
    streams: Vec<usize>,
    failed: Option<CudaError>,
}

/// The work that a [`SharedCoder`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoderWork {
    /// Number of pictures that were encoded.
    pub pictures: u64,
    /// Number of batches that the pictures went in.
    pub batches: u64,
}

/// The process's coder of anchors on GPUs: encodes anchors of one size that wait at the same time together.
pub struct SharedCoder {
    line: Mutex<Line>,
    come: Condvar,
    pictures: AtomicU64,
    batches: AtomicU64,
}

impl SharedCoder {
    /// Returns this process's coder, made if there is none yet. The error says in plain words why there is none.
    ///
    /// # Errors
    ///
    /// Fails if there is no GPU, none of them encodes a picture of known result right, or the coder of this process has
    /// failed before.
    pub fn of_process() -> Result<Arc<SharedCoder>, CudaError> {
        /// The coder that all enhancers of the process share.
        static CODER: Mutex<Option<Arc<SharedCoder>>> = Mutex::new(None);
        let mut made = CODER.lock();
        if let Some(coder) = &*made {
            let failed = coder.line.lock().failed.clone();
            return failed.map_or_else(|| Ok(coder.clone()), Err);
        }
        let gpus = Gpu::all()?;
        let room = MAX_WAITING * gpus.len().max(1);
        let coder = Arc::new(SharedCoder {
            line: Mutex::new(Line {
                waiting: Waiting::new(room),
                streams: Vec::new(),
                failed: None,
            }),
            come: Condvar::new(),
            pictures: AtomicU64::new(0),
            batches: AtomicU64::new(0),
        });
        let mut refused = CudaError::NoDevice;
        for gpu in gpus.iter().filter(|gpu| gpu.failure().is_none()) {
            // Its memory goes with it.
            let device = gpu.device.clone();
            let tried = within(TRIAL, move || {
                CudaCoder::on(&device).and_then(|mut coder| trial(&mut coder))
            });
            let made = tried.and_then(|()| {
                (0..STREAMS).try_for_each(|n| {
                    coder.clone().add_stream(gpu, n)?;
                    coder.line.lock().streams.push(gpu.device.ordinal);
                    Ok(())
                })
            });
            if let Err(why) = made {
                tracing::warn!(gpu = gpu.device.ordinal, %why, "anchor encoding not available on this GPU, or by one thread alone: other GPUs or the CPU take over; check it with `nvidia-smi`, and restart to try it again");
                refused = why;
            }
        }
        if coder.line.lock().streams.is_empty() {
            return Err(refused);
        }
        *made = Some(coder.clone());
        Ok(coder)
    }

    fn add_stream(self: Arc<Self>, gpu: &Gpu, n: usize) -> Result<(), CudaError> {
        let (mut stream, ordinal) = (CudaCoder::on(&gpu.device)?, gpu.device.ordinal);
        let thread = std::thread::Builder::new().name(format!("coder-{ordinal}-{n}"));
        let spawned = thread.spawn(move || self.serve(&mut stream, ordinal));
        spawned.map_err(|error| CudaError::Driver(format!("no thread for it: {error}")))?;
        Ok(())
    }

    /// Encodes a detail as an HTJ2K payload, as [`Htj2k`](windlass_hybrid::anchor::codec::Htj2k) does, and waits for
    /// it.
    ///
    /// # Errors
    ///
    /// Fails if the detail cannot be encoded by the CPU either, too much waits for the GPUs, or a GPU fails.
    pub fn code(&self, detail: &Arc<Detail>, coding: Encoding) -> Result<Vec<u8>, AnchorError> {
        let size = detail.size();
        let image = Image::Here(detail.clone());
        let kind = Kind::Detail(size);
        let coded = self.ask(kind, together(size), |back| Job::Code(Code { image, coding, back }));
        coded.map(|(coded, _)| coded)
    }

    /// Encodes what some tiles of a picture on a GPU add, less what subscribers predict themselves, as an HTJ2K
    /// payload, and waits for it. Returns the encoded image as well, if it is wanted.
    ///
    /// # Errors
    ///
    /// Fails if the detail cannot be encoded by the CPU either, too much waits for the GPU, or the GPU fails.
    pub fn code_resident(
        &self,
        resident: &ResidentPicture,
        tiles: &TileMap,
        coding: Encoding,
        wants_image: bool,
    ) -> Result<Coded, AnchorError> {
        let size = resident.image_size(tiles);
        let image = Image::There(resident.clone(), tiles.clone(), wants_image);
        self.ask(Kind::Resident(resident.gpu, size), together(size), |back| {
            Job::Code(Code { image, coding, back })
        })
    }

    /// Measures what each tile of a picture on a GPU adds to what subscribers see, and waits for it.
    ///
    /// # Errors
    ///
    /// Fails if `seen` is not of the HR size, too much waits for the GPU, or the GPU fails.
    pub fn measure(
        &self,
        resident: &ResidentPicture,
        seen: &Arc<Plane>,
    ) -> Result<Vec<TileDetail>, AnchorError> {
        let (resident, seen) = (resident.clone(), seen.clone());
        self.ask(Kind::Measure(resident.gpu), 1, |back| Job::Measure(resident, seen, back))
    }

    /// Hands in a job and waits for its answer. At most `max` jobs of its kind are done together.
    fn ask<T>(
        &self,
        kind: Kind,
        max: usize,
        job: impl FnOnce(Sender<Result<T, AnchorError>>) -> Job,
    ) -> Result<T, AnchorError> {
        let (back, answer) = bounded(1);
        let mut line = self.line.lock();
        if let Some(why) = &line.failed {
            return Err(why.clone().into());
        }
        if kind.gpu().is_some_and(|gpu| !line.streams.contains(&gpu)) {
            return Err(no_coder().into());
        }
        let waits = line.waiting.push(&kind, max, vec![job(back)]);
        waits.map_err(|_| CudaError::Overloaded)?;
        drop(line);
        // Not each of them may do it.
        self.come.notify_all();
        match answer.recv_timeout(timeout()) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                let why = CudaError::Silent(timeout());
                match kind.gpu() {
                    Some(gpu) => self.end_streams(gpu, STREAMS, &why),
                    None => self.fail(&why),
                }
                Err(why.into())
            }
            Err(RecvTimeoutError::Disconnected) => Err(no_coder().into()),
        }
    }

    /// The work that the coder has done so far.
    pub fn done(&self) -> CoderWork {
        CoderWork {
            pictures: self.pictures.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
        }
    }

    /// Goes on without some threads of a GPU, as long as others are left.
    fn end_streams(&self, gpu: usize, threads: usize, why: &CudaError) {
        let mut line = self.line.lock();
        for _ in 0..threads {
            if let Some(at) = line.streams.iter().position(|of| *of == gpu) {
                line.streams.swap_remove(at);
            }
        }
        let none_left = line.streams.is_empty();
        let lost = !line.streams.contains(&gpu);
        for job in line.waiting.drain_of(|kind| lost && kind.gpu() == Some(gpu)) {
            job.fail(why.clone().into());
        }
        drop(line);
        if none_left {
            self.fail(why);
        } else if lost {
            tracing::warn!(gpu, %why, "anchor encoding disabled on this GPU after a failure: other GPUs take over; check it with `nvidia-smi`, and restart to use it again");
        } else {
            tracing::warn!(gpu, %why, "anchor encoding by one thread of this GPU fewer after a failure: its other one continues; check the GPU with `nvidia-smi`, and restart to use both again");
        }
    }

    /// Disables the encoder, and fails all pending jobs.
    fn fail(&self, why: &CudaError) {
        let mut line = self.line.lock();
        if line.failed.is_none() {
            tracing::warn!(%why, "anchor encoding disabled on all GPUs after a failure: the CPU takes over; check them with `nvidia-smi`, and restart to use them again");
        }
        let why = line.failed.get_or_insert_with(|| why.clone()).clone();
        for job in line.waiting.drain() {
            job.fail(why.clone().into());
        }
        drop(line);
        self.come.notify_all();
    }

    /// Loop of a thread, for as long as the GPU works.
    fn serve(&self, coder: &mut CudaCoder, gpu: usize) {
        while let Some(jobs) = self.take(gpu) {
            let note = |made: usize| {
                self.pictures.fetch_add(made as u64, Ordering::Relaxed);
                self.batches.fetch_add(u64::from(made > 0), Ordering::Relaxed);
            };
            let ran = catch_unwind(AssertUnwindSafe(|| run(coder, jobs, note)));
            let failed = || CudaError::Driver("its thread failed".to_owned()).into();
            match ran.unwrap_or_else(|_| Err(failed())) {
                // One whose memory is full may have room again.
                Ok(()) | Err(AnchorError::Codec(_) | AnchorError::Device(CudaError::NoMemory)) => {}
                Err(AnchorError::Device(why)) => return self.end_streams(gpu, 1, &why),
            }
        }
    }

    /// Waits for jobs of one kind; `None` if the encoder was disabled.
    fn take(&self, gpu: usize) -> Option<Vec<Job>> {
        let mut line = self.line.lock();
        while line.failed.is_none() {
            let jobs = line.waiting.take_of(|kind| kind.gpu().is_none_or(|of| of == gpu));
            if !jobs.is_empty() {
                return Some(jobs);
            }
            self.come.wait(&mut line);
        }
        None
    }
}

/// Maximum number of images of a size that are encoded together.
fn together(size: PlaneSize) -> usize {
    (MAX_SAMPLES / (size.width * size.height).max(1)).min(MAX_TOGETHER)
}

fn no_coder() -> CudaError {
    CudaError::Driver("the thread that codes on it has ended".to_owned())
}
