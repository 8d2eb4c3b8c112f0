//! The GPUs of this process, each shared by all engines: pictures of one network and size that wait at the same time go
//! in one launch.
//!
//! An engine hands in pictures and waits. [`STREAMS`] threads of the GPU take pictures from a queue ([`Waiting`]), so
//! that the GPU copies for one launch while it computes another. Launches grow with the load. GPUs are detected once
//! per process. A GPU that fails is not used again, and its jobs fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use parking_lot::{Condvar, Mutex};

use super::CudaError;
use super::choose::choose;
use super::driver::Device;
use super::loaded::{Loaded, Weights};
use super::numa;
use super::resident::ResidentMemory;
use super::stream::{GpuStream, Picture, Shape, Staging};
use super::timeout::{TRIAL, within};
use super::variant::Variant;
use super::waiting::Waiting;
use crate::Architecture;

/// Launches under way at a time: one copies in, one computes, one copies out.
pub(super) const STREAMS: usize = 3;

/// Maximum pictures that wait for a GPU; more are refused.
const MAX_WAITING: usize = 1_024;

/// The GPUs of this process, found once.
static GPUS: Mutex<Vec<Arc<Gpu>>> = Mutex::new(Vec::new());

/// A picture on its way through a GPU.
pub(super) struct Job {
    pub staging: Staging,
    pub weights: Arc<Weights>,
    /// Memory on the GPU in which the residual stays; `None` if it comes back with `staging`.
    pub keep: Option<Arc<ResidentMemory>>,
    /// The engine's own number for the picture.
    pub number: usize,
    pub back: Sender<Done>,
}

/// A picture that the GPU has done.
pub(super) struct Done {
    pub number: usize,
    pub staging: Staging,
    /// GPU time that the picture took.
    pub took: Result<Duration, CudaError>,
}

/// Statistics of a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuStats {
    /// Index of the GPU among those that the driver shows.
    pub ordinal: usize,
    /// Name of the GPU, as the driver has it.
    pub name: String,
    /// `GPU-…`, or `MIG-…` of a slice; empty where the driver does not say.
    pub uuid: String,
    /// Reason for which the GPU was disabled; `None` while it works.
    pub failed: Option<String>,
    /// Engines that use the GPU.
    pub engines: usize,
    /// Sets of weights on the GPU, of all networks; none while another network is being loaded.
    pub resident: usize,
    /// Pictures that wait for a launch.
    pub waiting: usize,
    /// Pictures that are in a launch now.
    pub under_way: usize,
    /// Number of launches so far.
    pub launches: u64,
    /// Pictures that were super-resolved.
    pub pictures: u64,
    /// Time for which the GPU worked, copies included.
    pub busy: Duration,
    /// Number of times that the GPU's memory was full.
    pub full: u64,
}

/// A GPU of this process, which all engines share.
pub(super) struct Gpu {
    pub device: Arc<Device>,
    /// CPUs of the GPU's NUMA node; `None` if the machine has one node.
    cpus: Option<Vec<usize>>,
    /// The networks that are loaded, each with the variant that was asked for; `None`: any.
    networks: Mutex<Vec<(Option<Variant>, Weak<Loaded>)>>,
    /// The variant in which each network came to run, by the variant that was asked for. It is not tried again.
    passed: Mutex<Vec<(Option<Variant>, Architecture, Variant)>>,
    line: Mutex<Line>,
    come: Condvar,
    /// Time at which the last launch ended.
    ended: Mutex<Option<Instant>>,
    pub engines: AtomicUsize,
    under_way: AtomicUsize,
    launches: AtomicU64,
    pictures: AtomicU64,
    busy_ns: AtomicU64,
    full: AtomicU64,
}

struct Line {
    waiting: Waiting<Shape, (Shape, Job)>,
    failed: Option<CudaError>,
}

impl Gpu {
    /// GPUs that were found so far.
    pub(super) fn known() -> Vec<Arc<Gpu>> {
        GPUS.lock().clone()
    }

    /// All GPUs of this process, failed ones included.
    pub(super) fn all() -> Result<Vec<Arc<Gpu>>, CudaError> {
        let mut gpus = GPUS.lock();
        if gpus.is_empty() {
            for device in Device::all()? {
                gpus.push(Gpu::new(device)?);
            }
        }
        Ok(gpus.clone())
    }

    /// The GPU that works and has the fewest engines.
    pub(super) fn freest() -> Result<Arc<Gpu>, CudaError> {
        let gpus = Gpu::all()?;
        let working = gpus.iter().filter(|gpu| gpu.failure().is_none());
        let freest = working.min_by_key(|gpu| gpu.engines.load(Ordering::Relaxed));
        let failure = || gpus.iter().find_map(|gpu| gpu.failure());
        freest.cloned().ok_or_else(|| failure().unwrap_or(CudaError::NoDevice))
    }

    fn new(device: Arc<Device>) -> Result<Arc<Gpu>, CudaError> {
        let cpus = numa::cpus(&device.bus, Path::new("/sys"));
        let gpu = Arc::new(Gpu {
            device,
            cpus,
            networks: Mutex::default(),
            passed: Mutex::default(),
            line: Mutex::new(Line { waiting: Waiting::new(MAX_WAITING), failed: None }),
            come: Condvar::new(),
            ended: Mutex::default(),
            engines: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            launches: AtomicU64::new(0),
            pictures: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            full: AtomicU64::new(0),
        });
        for n in 0..STREAMS {
            let (mut stream, gpu) = (GpuStream::new(&gpu.device)?, gpu.clone());
            let name = format!("gpu-{}-{n}", gpu.device.ordinal);
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                if let Some(cpus) = &gpu.cpus {
                    numa::bind_to(cpus);
                }
                gpu.serve(&mut stream);
            });
            thread.map_err(|error| CudaError::Driver(format!("no thread for it: {error}")))?;
        }
        Ok(gpu)
    }

    /// The network on this GPU, in the given variant or the quickest; it is loaded if it is not there yet.
    pub(super) fn network(
        &self,
        architecture: Architecture,
        only: Option<Variant>,
    ) -> Result<Arc<Loaded>, CudaError> {
        let mut networks = self.networks.lock();
        networks.retain(|(_, network)| network.strong_count() > 0);
        let asked = networks.iter().filter(|(of, _)| *of == only);
        let mut known = asked.filter_map(|(_, network)| network.upgrade());
        if let Some(network) = known.find(|known| known.architecture == architecture) {
            return Ok(network);
        }
        let mut passed = self.passed.lock();
        let before = passed.iter().find(|of| (of.0, of.1) == (only, architecture)).map(|of| of.2);
        let device = self.device.clone();
        let chosen = within(TRIAL, move || choose(&device, architecture, only, before));
        let network = chosen.inspect_err(|why| {
            if matches!(why, CudaError::Silent(_)) {
                self.fail(why);
            }
        })?;
        passed.retain(|of| (of.0, of.1) != (only, architecture));
        passed.push((only, architecture, network.plan.variant));
        networks.push((only, Arc::downgrade(&network)));
        Ok(network)
    }

    /// Allocates memory for a picture that an engine shares with the GPU, on the GPU's NUMA node.
    pub(super) fn staging(&self, shape: &Shape) -> Result<Staging, CudaError> {
        let Some(cpus) = &self.cpus else {
            return Staging::new(&self.device, shape);
        };
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                numa::bind_to(cpus);
                Staging::new(&self.device, shape)
            });
            made.join().unwrap_or_else(|_| Err(CudaError::Driver("no memory for it".to_owned())))
        })
    }

    /// Hands in pictures of one shape. At most `max` of them go in one launch.
    pub(super) fn submit(
        &self,
        shape: &Shape,
        max: usize,
        jobs: Vec<Job>,
    ) -> Result<(), CudaError> {
        let max = max.min(shape.max_pictures());
        let mut line = self.line.lock();
        if let Some(why) = &line.failed {
            return Err(why.clone());
        }
        let jobs = jobs.into_iter().map(|job| (shape.clone(), job)).collect();
        line.waiting.push(shape, max, jobs).map_err(|_| CudaError::Overloaded)?;
        drop(line);
        self.come.notify_one();
        Ok(())
    }

    /// Reason for which the GPU was disabled.
    pub(super) fn failure(&self) -> Option<CudaError> {
        self.line.lock().failed.clone()
    }

    /// Disables the GPU: it takes no more jobs, and waiting jobs fail.
    pub(super) fn fail(&self, why: &CudaError) {
        let mut line = self.line.lock();
        if line.failed.is_none() {
            tracing::warn!(gpu = self.device.ordinal, name = self.device.name, %why, "GPU disabled after a failure: other GPUs or the CPU take over; check it with `nvidia-smi`, and restart to use it again");
        }
        line.failed.get_or_insert_with(|| why.clone());
        for (_, job) in line.waiting.drain() {
            job.end(Err(why.clone()));
        }
        drop(line);
        self.come.notify_all();
    }

    /// Snapshot of the GPU's statistics.
    pub(super) fn stats(&self) -> GpuStats {
        // A count does not wait while a network is compiled.
        let networks = self.networks.try_lock();
        let networks = networks.iter().flat_map(|all| all.iter());
        let networks = networks.filter_map(|(_, network)| network.upgrade());
        let networks: Vec<_> = networks.collect();
        let resident = networks.iter().map(|network| network.resident()).sum();
        let line = self.line.lock();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GpuStats {
            ordinal: self.device.ordinal,
            name: self.device.name.clone(),
            uuid: self.device.uuid.clone(),
            failed: line.failed.as_ref().map(ToString::to_string),
            engines: self.engines.load(Ordering::Relaxed),
            resident,
            waiting: line.waiting.len(),
            under_way: self.under_way.load(Ordering::Relaxed),
            launches: count(&self.launches),
            pictures: count(&self.pictures),
            busy: Duration::from_nanos(count(&self.busy_ns)),
            full: count(&self.full),
        }
    }

    /// Runs a thread of the GPU until the GPU fails.
    fn serve(&self, stream: &mut GpuStream) {
        loop {
            let mut line = self.line.lock();
            let mut taken = line.waiting.take();
            while taken.is_empty() {
                if line.failed.is_some() {
                    return;
                }
                self.come.wait(&mut line);
                taken = line.waiting.take();
            }
            drop(line);
            let Some(shape) = taken.first().map(|(shape, _)| shape.clone()) else { continue };
            let mut jobs: Vec<Job> = taken.into_iter().map(|(_, job)| job).collect();
            self.under_way.fetch_add(jobs.len(), Ordering::Relaxed);
            let ran = catch_unwind(AssertUnwindSafe(|| self.launch(stream, &shape, &mut jobs)));
            let ran =
                ran.unwrap_or_else(|_| Err(CudaError::Driver("its thread failed".to_owned())));
            if let Err(why) = &ran
                && *why != CudaError::NoMemory
            {
                self.fail(why);
            }
            self.under_way.fetch_sub(jobs.len(), Ordering::Relaxed);
            for job in jobs {
                job.end(ran.clone());
            }
        }
    }

    /// Runs some pictures, in smaller numbers if the GPU has no room for all at once. Returns the GPU time of each.
    fn launch(
        &self,
        stream: &mut GpuStream,
        shape: &Shape,
        jobs: &mut [Job],
    ) -> Result<Duration, CudaError> {
        let began = Instant::now();
        let (mut done, mut at_once) = (0, jobs.len());
        while done < jobs.len() {
            let until = (done + at_once).min(jobs.len());
            let some = jobs[done..until].iter_mut();
            let some = some.map(|Job { staging, weights, keep, .. }| {
                let keep = keep.as_deref();
                Picture { staging, weights, keep }
            });
            match stream.run(shape, &mut some.collect::<Vec<_>>()) {
                Ok(()) => {
                    self.launches.fetch_add(1, Ordering::Relaxed);
                    done = until;
                }
                Err(CudaError::NoMemory) => {
                    self.full.fetch_add(1, Ordering::Relaxed);
                    stream.shrink()?;
                    if at_once == 1 {
                        return Err(CudaError::NoMemory);
                    }
                    at_once = at_once.div_ceil(2);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(self.account(shape, began, jobs.len()))
    }

    /// Adds a launch that began at `began` to the statistics. Launches that overlap share the GPU's time.
    fn account(&self, shape: &Shape, began: Instant, pictures: usize) -> Duration {
        let now = Instant::now();
        let before = self.ended.lock().replace(now);
        let alone = before.map_or(began, |before| before.max(began));
        let busy = now.saturating_duration_since(alone);
        let ns = u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
        self.busy_ns.fetch_add(ns, Ordering::Relaxed);
        self.pictures.fetch_add(pictures as u64, Ordering::Relaxed);
        let took = busy / u32::try_from(pictures.max(1)).unwrap_or(u32::MAX);
        self.line.lock().waiting.note(shape, took);
        took
    }
}

impl Job {
    fn end(self, took: Result<Duration, CudaError>) {
        let Job { staging, number, back, keep, .. } = self;
        // The engine may want that memory again.
        drop(keep);
        // The engine is gone: its memory is freed.
        let _ = back.try_send(Done { number, staging, took });
    }
}
