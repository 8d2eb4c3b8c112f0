//! Engine on a GPU that engines share: pictures in, residuals out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::CudaError;
use super::gpu::{Done, Gpu, Job, STREAMS};
use super::loaded::{Loaded, Weights};
use super::resident::{ResidentMemory, ResidentPicture};
use super::stream::{MAX_PICTURES, ONE, Shape, Staging};
use super::strips::Strips;
use super::variant::Variant;
use crate::engine::check;
use crate::{Architecture, Engine, InferError, Input, Model, Residual, SwapError};

/// Default timeout of a launch.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The device of an engine, and how it runs the network.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceInfo {
    /// Index of the device among those that the driver shows.
    pub ordinal: usize,
    /// Name of the device, as the driver has it.
    pub name: String,
    /// Compute capability: 10 × major + minor.
    pub arch: i32,
    /// The driver's version: 1000 × major + 10 × minor.
    pub driver: i32,
    /// Memory in bytes.
    pub memory: usize,
    /// Number of multiprocessors.
    pub multiprocessors: i32,
    /// How the convolutions between the network's first and last run.
    pub variant: Variant,
    /// Description of the launches, in words.
    pub plan: String,
    /// Multiplications per low sample, with padding and what is computed twice.
    pub macs: f64,
    /// Bytes of the device's memory that are read and written per low sample.
    pub moved_bytes: f64,
}

/// A network on a GPU, which it shares with other engines.
pub struct CudaEngine {
    gpu: Arc<Gpu>,
    network: Arc<Loaded>,
    weights: Arc<Weights>,
    /// Staging memory that no picture uses.
    free: Vec<Staging>,
    /// Memory of the last resident picture, reused once that picture is gone.
    resident: Option<Arc<ResidentMemory>>,
    back: (Sender<Done>, Receiver<Done>),
    /// Maximum pictures of a launch.
    max_pictures: usize,
    timeout: Duration,
    took: Duration,
}

impl CudaEngine {
    /// Brings the network to the GPU that has the fewest engines, if it is not there: compiles its kernels, or finds
    /// them compiled, and uploads the weights.
    ///
    /// If the device can run the network in several ways, the fastest one with right results is used.
    ///
    /// # Errors
    ///
    /// Fails if there is no GPU that can be used, its kernels cannot be compiled, the network does not fit the GPU, or
    /// the GPU gets a picture of known result wrong.
    pub fn new(model: &Arc<Model>) -> Result<Self, CudaError> {
        CudaEngine::with(model, None)
    }

    /// Brings the network to the GPU as [`new`](Self::new) does, with a given variant of the kernels. The
    /// laboratory and tests compare variants by it.
    ///
    /// # Errors
    ///
    /// Fails where [`CudaEngine::new`] does.
    pub fn with_variant(model: &Arc<Model>, variant: Variant) -> Result<Self, CudaError> {
        CudaEngine::with(model, Some(variant))
    }

    fn with(model: &Arc<Model>, only: Option<Variant>) -> Result<Self, CudaError> {
        let gpu = Gpu::freest()?;
        let network = gpu.network(model.architecture(), only);
        let network = network.inspect_err(|why| lost(&gpu, why))?;
        let weights = network.weights(model).inspect_err(|why| lost(&gpu, why))?;
        gpu.engines.fetch_add(1, Ordering::Relaxed);
        Ok(CudaEngine {
            gpu,
            network,
            weights,
            free: Vec::new(),
            resident: None,
            back: bounded(STREAMS * MAX_PICTURES),
            max_pictures: MAX_PICTURES,
            timeout: TIMEOUT,
            took: Duration::ZERO,
        })
    }

    /// The device that the engine runs on.
    pub fn device(&self) -> DeviceInfo {
        let (device, plan) = (&self.gpu.device, &self.network.plan);
        let tiles: Vec<String> = plan
            .groups
            .iter()
            .filter(|group| !group.strips)
            .map(|g| format!("{}+{}", g.rows - 2 * g.margin, 2 * g.margin))
            .collect();
        let strips = plan.strips.map_or(String::new(), |strips| {
            let launches = plan.groups.iter().filter(|group| group.strips).count();
            let Strips { convs, warpgroups, .. } = strips;
            format!("; {launches} of {convs} convolutions in strips by {warpgroups} warpgroups")
        });
        DeviceInfo {
            ordinal: device.ordinal,
            macs: plan.macs(),
            moved_bytes: plan.bytes(),
            name: device.name.clone(),
            arch: device.arch,
            driver: device.driver,
            memory: device.memory,
            multiprocessors: device.multiprocessors,
            variant: plan.variant,
            plan: format!(
                "{} launches, on tiles of {} columns by {} rows, {} blocks of {} warps{strips}",
                plan.groups.len(),
                plan.pitch,
                tiles.join(", "),
                plan.resident,
                plan.warps
            ),
        }
    }

    /// Sets the maximum number of pictures of a launch. Smaller launches come back sooner. The laboratory
    /// measures both.
    pub fn limit_batch(&mut self, pictures: usize) {
        self.max_pictures = pictures.clamp(1, MAX_PICTURES);
    }

    /// Sets the time without an answer after which the GPU is disabled.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// [`Engine::infer_batch`] without its copy to single precision: calls `done` with the number of each picture, in
    /// order, and its residual in 1/64 grey level.
    ///
    /// # Errors
    ///
    /// Fails if too many pictures wait for the GPU, it has no memory left, does not answer, or fails.
    pub fn infer_each(
        &mut self,
        inputs: &[Input<'_>],
        mut done: impl FnMut(usize, &[i16]),
    ) -> Result<(), CudaError> {
        let Some(first) = inputs.first() else { return Ok(()) };
        let (width, height) = (first.low.width(), first.low.height());
        let shape = Shape { network: self.network.clone(), width, height };
        let mut come: Vec<Option<Staging>> = inputs.iter().map(|_| None).collect();
        let (mut under_way, mut next, mut handed_out) = (0, 0, 0);
        let mut failed = None;
        loop {
            // As many as keep all streams busy; a failure ends it once all have come back.
            let room = STREAMS * self.max_pictures - under_way;
            let until = (next + room.min(self.max_pictures)).min(inputs.len());
            if failed.is_none() && until > next {
                match self.submit(&shape, inputs, next..until, None) {
                    Ok(()) => {
                        under_way += until - next;
                        next = until;
                        if under_way < STREAMS * self.max_pictures && next < inputs.len() {
                            continue;
                        }
                    }
                    Err(why) => failed = Some(why),
                }
            }
            if under_way == 0 {
                break;
            }
            let Done { number, staging, took } = self.next_back()?;
            under_way -= 1;
            match took {
                Ok(took) => {
                    self.took += took;
                    come[number] = Some(staging);
                }
                Err(why) => {
                    self.free.push(staging);
                    failed.get_or_insert(why);
                }
            }
            while let Some(staging) = come.get_mut(handed_out).and_then(Option::take) {
                done(handed_out, &staging.residual.samples()[..shape.high()]);
                self.free.push(staging);
                handed_out += 1;
            }
        }
        self.free.extend(come.into_iter().flatten());
        failed.map_or(Ok(()), Err)
    }

    /// Super-resolves a picture and leaves it on the GPU. The memory belongs to this engine and is reused for its next
    /// picture once nobody keeps this one.
    fn hold_there(&mut self, input: &Input<'_>) -> Result<ResidentPicture, CudaError> {
        let (width, height) = (input.low.width(), input.low.height());
        let shape = Shape { network: self.network.clone(), width, height };
        let (low, high) = (shape.low(), shape.high());
        let old = self.resident.take().filter(|resident| Arc::strong_count(resident) == 1);
        let memory = match old.filter(|resident| resident.suits(low, high)) {
            Some(memory) => memory,
            None => Arc::new(ResidentMemory::new(&self.gpu.device, low, high)?),
        };
        self.submit(&shape, std::slice::from_ref(input), 0..1, Some(&memory))?;
        let Done { staging, took, .. } = self.next_back()?;
        self.free.push(staging);
        self.took += took?;
        self.resident = Some(memory.clone());
        let (gpu, scale) = (self.gpu.device.ordinal, self.network.architecture.scale);
        Ok(ResidentPicture { memory, gpu, width, height, scale })
    }

    /// Waits for the next picture that the GPU has done. A GPU that is silent for too long is given up, with the
    /// engine's memory that it still uses.
    fn next_back(&mut self) -> Result<Done, CudaError> {
        match self.back.1.recv_timeout(self.timeout) {
            Ok(done) => Ok(done),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let why = CudaError::Silent(self.timeout);
                self.gpu.fail(&why);
                // Late results are dropped.
                self.back = bounded(STREAMS * MAX_PICTURES);
                Err(why)
            }
        }
    }

    /// Hands some pictures to the GPU.
    fn submit(
        &mut self,
        shape: &Shape,
        inputs: &[Input<'_>],
        some: std::ops::Range<usize>,
        keep: Option<&Arc<ResidentMemory>>,
    ) -> Result<(), CudaError> {
        let mut jobs = Vec::with_capacity(some.len());
        for number in some {
            let fitting = self.free.iter().position(|staging| staging.holds(shape));
            let mut staging = if let Some(at) = fitting {
                self.free.swap_remove(at)
            } else {
                // Smaller pictures than before find room in what is there; larger ones need more.
                self.free.pop();
                self.gpu.staging(shape)?
            };
            let input = &inputs[number];
            staging.take(input);
            let (weights, back) = (self.weights.clone(), self.back.0.clone());
            jobs.push(Job { staging, weights, keep: keep.cloned(), number, back });
        }
        self.gpu.submit(shape, self.max_pictures, jobs)
    }
}

impl Drop for CudaEngine {
    fn drop(&mut self) {
        self.gpu.engines.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Gives up a GPU that is lost.
fn lost(gpu: &Gpu, why: &CudaError) {
    if matches!(why, CudaError::Driver(_)) {
        gpu.fail(why);
    }
}

impl From<CudaError> for InferError {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::NoMemory | CudaError::Overloaded => {
                InferError::DeviceFull(error.to_string())
            }
            other => InferError::Device(other.to_string()),
        }
    }
}

impl Engine for CudaEngine {
    fn backend(&self) -> &'static str {
        "cuda"
    }

    fn on_cpu(&self) -> bool {
        false
    }

    fn accelerators(&self) -> Option<usize> {
        Some(Gpu::known().iter().filter(|gpu| gpu.failure().is_none()).count())
    }

    fn take_time(&mut self) -> Option<Duration> {
        Some(std::mem::take(&mut self.took))
    }

    fn architecture(&self) -> Architecture {
        self.network.architecture
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        let architecture = self.architecture();
        check(&architecture, inputs, out)?;
        for (input, out) in inputs.iter().zip(&mut *out) {
            out.resize(
                architecture.scale * input.low.width(),
                architecture.scale * input.low.height(),
            );
        }
        self.infer_each(inputs, |n, samples| {
            for (value, sample) in out[n].data.iter_mut().zip(samples) {
                *value = f32::from(*sample) * (1.0 / ONE);
            }
        })?;
        Ok(())
    }

    fn hold(&mut self, input: Input<'_>) -> Result<Option<ResidentPicture>, InferError> {
        check(&self.architecture(), &[input], &[Residual::default()])?;
        Ok(self.hold_there(&input).map(Some)?)
    }

    fn swap(&mut self, model: &Arc<Model>) -> Result<(), SwapError> {
        SwapError::check(self.architecture(), model)?;
        if let Some(why) = self.gpu.failure() {
            return Err(SwapError::Device(why.to_string()));
        }
        match self.network.weights(model).inspect_err(|why| lost(&self.gpu, why)) {
            Ok(weights) => {
                self.weights = weights;
                Ok(())
            }
            Err(why @ CudaError::NoMemory) => Err(SwapError::DeviceFull(why.to_string())),
            Err(why) => Err(SwapError::Device(why.to_string())),
        }
    }
}
